//===- Messages.h - diagnostics on stderr -----------------------*- C++ -*-===//
#pragma once

#include "dmxc/Driver/Options.h"
#include "dmxc/Support/Diagnostic.h"

#include <map>

namespace dmxc::driver {

/// Prints messages as they come, but for errors and warnings of nodes: those wait for flush(), where equal ones become
/// one message with their number and three names (all of them, as they came, with --all-errors and as JSON). One caller
/// at a time, as Diagnostics does it.
class Messages {
public:
  Messages(const Options &options, bool color) : options(options), color(color) {}
  void take(const Diagnostic &diagnostic);
  /// Prints what waits. True if something was left out.
  bool flush();

private:
  void print(const Diagnostic &diagnostic);

  const Options &options;
  bool color;
  std::vector<Diagnostic> waiting;
};

/// Equal errors, and equal warnings, as one each, in the order of their first: of one operator and reason, or where
/// more than three operators have a reason, of that. `leftOut` becomes true where names or notes are missing.
std::vector<Diagnostic> grouped(const std::vector<Diagnostic> &errors, bool &leftOut);

} // namespace dmxc::driver
