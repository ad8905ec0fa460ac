//===- Gains.h - whether a candidate is faster than noise -------*- C++ -*-===//
#pragma once

#include <vector>

namespace dmxc::driver {

/// CPU times of the default over those of a candidate, and over those of the default again; a pair each.
struct Ratios {
  std::vector<double> candidate, control;
};

double medianOf(std::vector<double> values);
/// Whether the candidate is faster by more than a hundredth, and by more than the control differs from itself: by the
/// interval that has the median with a probability of 0.999.
bool gains(const Ratios &ratios);

} // namespace dmxc::driver
