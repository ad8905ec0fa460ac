//===- DecisionsMade.h - when a target may choose no more -------*- C++ -*-===//
#pragma once

#include "llvm/ADT/Twine.h"
#include "llvm/Support/ErrorHandling.h"

namespace dmxc {

/// While there is one, this thread decides nothing: what a strategy says is read. A function that chooses asks `check`,
/// which then ends the program, in every build.
class DecisionsMade {
public:
  DecisionsMade() { ++made; }
  ~DecisionsMade() { --made; }
  DecisionsMade(const DecisionsMade &) = delete;
  DecisionsMade &operator=(const DecisionsMade &) = delete;
  /// `what`: "a blocking".
  static void check(const char *what) {
    if (made)
      llvm::report_fatal_error(llvm::Twine(what) + " is decided after the phase partition");
  }

private:
  inline static thread_local int made = 0;
};

} // namespace dmxc
