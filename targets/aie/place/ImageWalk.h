//===- ImageWalk.h - how the array reads windows of an image ----*- C++ -*-===//
//
// Nothing is copied: the rows of a are read out of the image, over and over where windows overlap. The image lies in
// DDR with its channels innermost, zeros before each row (which are those behind the row before) and rows that a stride
// steps over in planes of their own, so that the windows of all rows of the product are one step apart. Along k go the
// planes, in each the kernel's rows that it has, in each the kernel's columns and their channels in one run, filled up
// to whole tiles: what is read there meets weights of zero.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "targets/common/roots/Contraction.h"

#include <algorithm>
#include <vector>

namespace dmxc::aie {

struct ImageWalk {
  using Axis = kernels::Windows::Axis;

  Axis down{1, 1, 1, 1, 1, 0, 0}, across = down; ///< of fixed sizes; of an image of one row the first as it is here
  int64_t images = 1, channels = 1, outputs = 1;
  int64_t pixels = 1; ///< of the result, beside each other, that a row of the product has
  int64_t bytes = 2;  ///< of an element; at most a word
  bool operator==(const ImageWalk &) const = default;

  /// Of a convolution of one or two axes, one group, fixed sizes and no dilation.
  static ImageWalk of(const kernels::Contraction &convolution, int64_t bytes);
  static int64_t number(Dim dim) { return *dim.known(); }

  /// Elements from a pixel of the image to the next: so many that windows begin at whole words.
  int64_t pixel() const;
  /// From a window to that of the product's next row.
  int64_t step() const { return across.stride * pixels * pixel(); }
  /// Rows of the product for a row of output pixels, and for those of an image.
  int64_t rowsAcross() const;
  int64_t rowsDown() const;
  /// Elements of a row of the image, and of a plane of the rows of all images.
  int64_t imageRow() const { return rowsAcross() * step(); }
  int64_t plane() const { return images * rowsDown() * imageRow(); }
  /// Planes in which the kernel has rows, and how many in one.
  int64_t planes() const { return std::min(down.stride, number(down.taps)); }
  int64_t kernelRows(int64_t plane) const { return (number(down.taps) - plane + down.stride - 1) / down.stride; }
  /// Elements of a kernel's row of windows that lie together; in tiles of k.
  int64_t run() const { return ((pixels - 1) * across.stride + number(across.taps)) * pixel(); }
  int64_t runTiles(int64_t k) const { return (run() + k - 1) / k; }

  /// The sizes of the product.
  int64_t m() const;
  int64_t k(int64_t tile) const { return number(down.taps) * runTiles(tile) * tile; }
  int64_t n() const { return pixels * outputs; }
};

/// Tasks by which a shim reads tiles of a: `steps` times a `stride` (elements) further, each time all tiles of a run.
/// Few: where a plane has one row of the kernel all planes are one task.
struct ImageTask {
  int64_t offset, steps, stride;
};
std::vector<ImageTask> tasksOf(const ImageWalk &walk);

} // namespace dmxc::aie
