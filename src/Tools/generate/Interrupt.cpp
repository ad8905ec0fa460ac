//===- Interrupt.cpp - signals that end a loop, not the process -----------===//
#include "Interrupt.h"

namespace dmxc::tools {

static volatile std::sig_atomic_t theSignal = 0;
static struct sigaction previous; // what a second signal does

static void note(int signal) {
  theSignal = signal;
  sigaction(signal, &previous, nullptr);
}

InterruptWatch::InterruptWatch() {
  theSignal = 0;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    if (sigaction(kSignals[i], nullptr, &before[i]) == 0 && before[i].sa_handler == SIG_IGN)
      continue;
    previous = before[i];
    struct sigaction action = {};
    action.sa_handler = note; // without SA_RESTART: a read that waits for a prompt ends
    sigemptyset(&action.sa_mask);
    sigaction(kSignals[i], &action, nullptr);
  }
}

InterruptWatch::~InterruptWatch() {
  for (size_t i = 0; i < kSignals.size(); ++i)
    sigaction(kSignals[i], &before[i], nullptr);
}

int InterruptWatch::caught() { return theSignal; }

} // namespace dmxc::tools
