//===- Interrupt.h - signals that end a loop, not the process ---*- C++ -*-===//
//
// Private to the Tools room.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <array>
#include <csignal>

namespace dmxc::tools {

/// While it lives the first SIGINT, SIGTERM or SIGHUP is noted; a second one is as it was before. One at a time.
class InterruptWatch {
public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch &) = delete;
  /// The signal that came; 0 for none.
  static int caught();

private:
  static constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, 3> before = {};
};

} // namespace dmxc::tools
