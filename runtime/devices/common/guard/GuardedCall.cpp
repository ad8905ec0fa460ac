//===- GuardedCall.cpp - a kernel's faults as values ----------------------===//

#include "GuardedCall.h"

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <mutex>
#include <pthread.h>
#include <ucontext.h>

namespace dmxrt {
namespace {

struct Call {
  sigjmp_buf back;
  pthread_t thread;
  struct sigaction before;
  GuardFault fault;
};

std::mutex turn; // to be the one call
std::atomic<Call *> current{nullptr};

/// What is not the call's goes to who handled it before.
void passOn(const struct sigaction &before, int signal, siginfo_t *info, void *context) {
  if (before.sa_flags & SA_SIGINFO)
    before.sa_sigaction(signal, info, context);
  else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    before.sa_handler(signal);
  else
    sigaction(signal, &before, nullptr); // it faults again, then for good
}

void onFault(int signal, siginfo_t *info, void *context) {
  Call *call = current.load();
  if (!call) // ended meanwhile: it faults again, in the hands of the next one
    return;
  if (!pthread_equal(call->thread, pthread_self()))
    return passOn(call->before, signal, info, context);
  bool located = info->si_code == SEGV_MAPERR || info->si_code == SEGV_ACCERR;
  call->fault.address = located ? reinterpret_cast<uintptr_t>(info->si_addr) : 0;
#if defined(__x86_64__)
  call->fault.write = static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_ERR] & 2;
#endif
  siglongjmp(call->back, 1);
}

} // namespace

std::optional<int32_t> callGuarded(int32_t (*function)(const void *), const void *argument, GuardFault &fault) {
  std::lock_guard<std::mutex> lock(turn);
  static Call call; // not on the stack, whose variables a jump leaves undefined
  call.thread = pthread_self();
  struct sigaction action{};
  action.sa_sigaction = onFault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, &call.before);
  std::optional<int32_t> code;
  if (sigsetjmp(call.back, 1) == 0) {
    current.store(&call);
    code = function(argument);
  } else {
    fault = call.fault;
    code.reset();
  }
  current.store(nullptr);
  sigaction(SIGSEGV, &call.before, nullptr);
  return code;
}

} // namespace dmxrt
