//===- ImageDiff.h - what differs between two images ------------*- C++ -*-===//
#pragma once

#include "../Image.h"

namespace dmx::corsair {

/// One difference; an empty side means that the thing is in the other image only.
struct ImageDifference {
  std::string what; ///< "machine", "stream", "function", "kernel", "image"
  std::string name; ///< "mm_compute at 12", "mm footprint GM"
  std::string a, b; ///< as in the text form
};

/// Streams and functions by name with the first instruction that differs, kernels by name with their
/// arguments, footprints and launches. Instructions are compared as they read: marks and functions by
/// name. Empty exactly when the two images have the same bytes.
std::vector<ImageDifference> diff(const Image &a, const Image &b);

} // namespace dmx::corsair
