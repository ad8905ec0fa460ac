//===- RoundingError.h - how far rounded numbers are off --------*- C++ -*-===//
#pragma once

#include <cmath>
#include <limits>

namespace dmxc {

/// Of numbers and what was made of them: the RMS of the differences over the RMS of the numbers.
class RoundingError {
public:
  /// Of those that are not finite nothing is said.
  void add(float value, double rounded) {
    if (!std::isfinite(value))
      return;
    double difference = rounded - value;
    squares += static_cast<double>(value) * value;
    errors += difference * difference;
  }
  /// Infinite where a finite number became one that is not.
  double relative() const {
    if (errors == 0)
      return 0;
    double error = std::sqrt(errors / squares);
    return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
  }

private:
  double squares = 0, errors = 0;
};

} // namespace dmxc
