//===- Schedule.h - a possible order of a program ---------------*- C++ -*-===//
//
// Queues and quads run at once; only tokens, barriers and messages order them.
// Following these gives every instruction a step, so that what happens before
// something else has a smaller one. Steps count instructions of engines along the
// longest chain; they are no clocks.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Image.h"

namespace dmx::corsair {

/// From an instruction's first to its last execution, both included.
struct Steps {
  uint32_t first = ~0u, last = 0;
  bool executed() const { return first <= last; }
  void add(uint32_t from, uint32_t to) {
    first = std::min(first, from);
    last = std::max(last, to);
  }
};

struct Schedule {
  uint32_t steps = 0; ///< of the whole program
  /// By launch, queue and position in the stream.
  std::vector<std::array<std::vector<Steps>, 4>> of;
};

/// A trip count's registers as the launch sets them: nothing when a dim, a scalar, a CPU function or a message may
/// set it instead.
std::optional<int64_t> fixedRegister(const Image &image, const Kernel &kernel, const Launch &launch, int number);

/// Nothing where the order is known at run time only (trip counts from the host) or queues wait for ever.
/// The instructions of a loop without tokens and barriers share the loop's steps.
std::optional<Schedule> scheduleOf(const Image &image, const Kernel &kernel, const Program &program);

} // namespace dmx::corsair
