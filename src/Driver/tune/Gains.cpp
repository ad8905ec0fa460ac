//===- Gains.cpp - whether a candidate is faster than noise ---------------===//
#include "Gains.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dmxc::driver {

double medianOf(std::vector<double> values) {
  if (values.empty())
    return 1;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// The ends of an interval that has the median of what `values` are samples of, but for one of a thousand such: of a
/// sign test, whatever the distribution is.
static std::pair<double, double> intervalOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  double below = 0, ways = std::pow(0.5, static_cast<double>(n)); // that so many of n coins fall on one side
  size_t rank = 0;
  for (; rank < n / 2 && below + ways <= 0.0005; ++rank) {
    below += ways;
    ways *= static_cast<double>(n - rank) / static_cast<double>(rank + 1);
  }
  if (rank == 0) // too few to say anything
    return {0, std::numeric_limits<double>::infinity()};
  return {values[rank - 1], values[n - rank]};
}

bool gains(const Ratios &ratios) {
  constexpr double least = 1.01;
  const auto [low, high] = intervalOf(ratios.candidate);
  const auto [controlLow, controlHigh] = intervalOf(ratios.control);
  // A control that is not near to itself says that the machine is not fit for measuring.
  return low > least && low > controlHigh && std::abs(medianOf(ratios.control) - 1) < least - 1;
}

} // namespace dmxc::driver
