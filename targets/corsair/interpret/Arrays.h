//===- Arrays.h - what the arrays compute -----------------------*- C++ -*-===//
#pragma once

#include "View.h"

namespace dmxc::corsair::stages {

/// A product whose sums have not left the arrays: what is added along K, part after part, and the vector that lies in
/// OB before all of it does, wherever a text adds it.
struct Sums {
  struct Part {
    View left, right;   ///< numbers of m x k and k x n
    int64_t atOnce = 1; ///< blocks of 64 along k that one tree adds up
  };
  std::vector<Part> parts;  ///< in the order in which they are added
  std::optional<View> bias; ///< BFP32_1 of each column
};

/// Of a matrix, these blocks of 64 along an axis, one behind the other; zeros beyond its end.
View blocksOf(const View &matrix, size_t axis, llvm::ArrayRef<int64_t> blocks);
/// The sums, m x n of BFP32_1. Null, or why these are no product.
Result<View> addedUp(const Sums &sums);
/// The same, in what is of the result's format.
Status sumsInto(const Sums &sums, const View &out);

/// A convolution of images [n, c, h, w] (or [n, c, w]) by weights [o, c / groups, kh, kw]: a product whose rows are
/// pixels, with K over the kernel's places and then blocks of 64 channels, or `windows`, whose channels have no gaps
/// between them. Fills f16.
struct Convolution {
  Dims kernel, strides, dilations, low;
  int64_t groups = 1, atOnce = 1;
  bool windows = false;
};
Status convolve(const Convolution &conv, const View &image, const View &weights, const std::optional<View> &bias,
                const View &out);

} // namespace dmxc::corsair::stages
