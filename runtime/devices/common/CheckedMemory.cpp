//===- CheckedMemory.cpp - bytes, and what is known of them ---------------===//
#include "CheckedMemory.h"

#include "runtime/Error.h"

#include <new>

namespace dmxrt::sim {

CheckedMemory::CheckedMemory(std::string_view name, int64_t size, std::function<std::string(uint16_t)> threads)
    : name(name), size(size), threads(std::move(threads)),
      bytes(static_cast<std::byte *>(std::calloc(static_cast<size_t>(size), 1))) {
  if (!bytes)
    throw std::bad_alloc();
  shadow.resize(static_cast<uint64_t>(size));
}

std::byte *CheckedMemory::access(int64_t address, int64_t count, bool write, const Actor &actor, std::string &fault) {
  bool isHost = actor.epoch.thread == kHostThread;
  auto who = [&](uint16_t thread) { return thread == kHostThread ? std::string("the host") : threads(thread); };
  auto what = [&](uint64_t at) {
    return cat(who(actor.epoch.thread), write ? " writes " : " reads ", name, " at ", at);
  };
  if (address < 0 || count < 0 || count > size || address > size - count) {
    fault = cat("out of bounds: ", who(actor.epoch.thread), write ? " writes " : " reads ", count, " bytes of ", name,
                " at ", address, ", which has ", size);
    return nullptr;
  }
  auto begin = static_cast<uint64_t>(address), bytesAsked = static_cast<uint64_t>(count);
  Problem problem;
  if (write ? !shadow.write(begin, bytesAsked, 1, actor, problem)
            : !shadow.read(begin, bytesAsked, kAnyKind, actor, problem)) {
    fault = problem.why == Problem::Race ? cat("race: ", what(problem.address), ", which ", who(problem.other.thread),
                                               problem.otherWrote ? " writes" : " reads", " in no order with it")
                                         : cat("undefined: ", what(problem.address), ", which nothing has written");
    return nullptr;
  }
  if (!isHost)
    (write ? writtenBytes : readBytes) += bytesAsked;
  return bytes.get() + begin;
}

} // namespace dmxrt::sim
