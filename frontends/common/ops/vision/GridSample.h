//===- GridSample.h - sampling images at computed places --------*- C++ -*-===//
#pragma once

#include "../../Emitter.h"

#include <string>

namespace dmxc::frontend {

/// What lies outside of an image.
enum class Padding { Zeros, Border, Reflection };

struct Sampler {
  Emitter &e;
  std::string mode; ///< nearest, linear or cubic
  Padding padding;
  bool alignCorners;
};

/// One tap on one axis: its weight (null for 1), its index, and where it lies inside (null for everywhere).
struct Tap {
  Val weight, index, inside;
};

/// The taps at places on an axis of `size` elements.
std::vector<Tap> tapsOf(const Sampler &s, const Val &at, Dim size);
/// The sums for an image [N, C, spatial..] and taps on each spatial axis, [N, points]: [N, C, points].
Val sampled(const Sampler &s, const Val &x, DType wide, const std::vector<std::vector<Tap>> &taps);
/// Whether it has no elements, whatever its symbols are.
bool isEmpty(const Val &x);

/// An image [N, C, spatial..] at the places of a grid [N, out.., axes] of coordinates in [-1, 1]: [N, C, out..].
Val gridSample(const Sampler &s, const Val &x, Val grid);

} // namespace dmxc::frontend
