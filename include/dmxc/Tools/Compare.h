//===- Compare.h - how near tensors are to expected ones --------*- C++ -*-===//
#pragma once

#include "dmxc/Support/Tensor.h"

#include <optional>
#include <string>

namespace dmxc::tools {

/// The rule of tests/models/rule.py: floats may differ by so much of their reference, and of the tensor's largest one,
/// since an order of sums leaves that in elements near zero.
inline constexpr double kOfElement = 2e-3, kOfLargest = 2e-4;
/// Of a pair of which one is given.
inline constexpr double kUsualRtol = 1e-3, kUsualAtol = 1e-7;

struct Tolerance {
  /// As numpy's assert_allclose has them, where either is given; the other one is as usual then. Without both the
  /// rule above judges floats, and integers must be equal.
  std::optional<double> rtol, atol;
  /// Floats of targets with coarse numbers: a tensor matches as a whole, when its signal to quantisation noise ratio
  /// reaches this many decibels. Other tensors match element by element.
  std::optional<double> minSqnr;
};

/// In words, for people: "|error| <= 0.002 |expected| + 0.0002 max |expected|; integers equal".
std::string ruleText(const Tolerance &tolerance);

/// The result of a comparison. An element matches when both are NaN, both are the same infinity, or their difference is
/// within the tolerance.
struct Comparison {
  bool pass = true;
  /// Set when dtype or shape differ; elements were not compared then.
  std::string structural;
  int64_t count = 0;
  int64_t mismatches = 0;
  int64_t first = -1;     ///< row-major position of the first mismatch
  int64_t worst = -1;     ///< of the one farthest beyond its tolerance
  double maxAbsolute = 0; ///< largest |actual - expected| over finite pairs
  double maxRelative = 0; ///< largest |actual - expected| / |expected|, expected != 0
  /// 10 log10(sum expected^2 / sum (actual - expected)^2) over finite pairs, decibels; infinite without any difference.
  double sqnr = 0;
  bool judgedBySqnr = false;

  /// sqrt(sum (actual - expected)^2 / sum expected^2) over finite pairs; 0 without any difference.
  double relativeRms() const;
};

Comparison compareTensors(const Tensor &actual, const Tensor &expected, Tolerance tolerance);

/// One or more lines for people: "max abs 1.2e-07, max rel 3.4e-06", or what
/// differs, with the first and the worst mismatch, indices and values.
std::string describe(const Comparison &comparison, const Tensor &actual, const Tensor &expected);

/// "[1, 0, 12]" for a row-major position; "[]" for a scalar.
std::string indexString(const Shape &shape, int64_t position);

/// Pseudo-random contents, the same on every machine for one seed: floats
/// uniform in [-1, 1), integers and bools 0 or 1 (so that they are valid as
/// masks and as indices into any table of two rows or more).
Tensor randomTensor(DType type, const Shape &shape, uint64_t seed);
/// The same in a tensor that is there already.
void fillRandom(Tensor &tensor, uint64_t seed);

/// "f32 1x10, min -3.1, max 4.2, [0.1, 0.2, ...]".
std::string tensorSummary(const Tensor &tensor);

} // namespace dmxc::tools
