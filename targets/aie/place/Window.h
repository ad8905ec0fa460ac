//===- Window.h - a convolution as a product --------------------*- C++ -*-===//
//
// Nothing is copied: the rows of a are read out of the image, over and over where windows overlap. The image lies in
// DDR with its channels innermost, zeros before each row (which are those behind the row before) and rows that a stride
// steps over in planes of their own, so that the windows of all rows of the product are one step apart. Along k go the
// planes, in each the kernel's rows that it has, in each the kernel's columns and their channels in one run, filled up
// to whole tiles: what is read there meets weights of zero.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace dmxc::aie {

struct Window {
  int64_t images = 1, channels = 1, height = 1, width = 1; ///< of the input; of one of rank 3 the height is 1
  int64_t outputs = 1, outHeight = 1, outWidth = 1;        ///< channels and pixels of the result
  int64_t kernelHeight = 1, kernelWidth = 1, strideHeight = 1, strideWidth = 1;
  int64_t top = 0, left = 0; ///< zeros before the image
  int64_t together = 1;      ///< output pixels beside each other that a row of the product has
  int64_t bytes = 2;         ///< of an element; at most a word

  bool operator==(const Window &) const = default;

  int64_t macs() const { return images * outputs * outHeight * outWidth * channels * kernelHeight * kernelWidth; }
  /// Elements from a pixel of the image to the next: so many that windows begin at whole words.
  int64_t pixel() const;
  /// From a window to that of the product's next row.
  int64_t step() const { return strideWidth * together * pixel(); }
  /// Rows of the product for a row of output pixels, and for those of an image.
  int64_t rowsAcross() const;
  int64_t rowsDown() const;
  /// Elements of a row of the image, and of a plane of the rows of all images.
  int64_t imageRow() const { return rowsAcross() * step(); }
  int64_t plane() const { return images * rowsDown() * imageRow(); }
  /// Planes in which the kernel has rows, and how many in one.
  int64_t planes() const { return std::min(strideHeight, kernelHeight); }
  int64_t kernelRows(int64_t plane) const { return (kernelHeight - plane + strideHeight - 1) / strideHeight; }
  /// Elements of a kernel's row of windows that lie together; in tiles of k.
  int64_t run() const { return ((together - 1) * strideWidth + kernelWidth) * pixel(); }
  int64_t runTiles(int64_t k) const { return (run() + k - 1) / k; }

  /// The sizes of the product.
  int64_t m() const {
    return ((images - 1) * rowsDown() + outHeight - 1) * rowsAcross() + (outWidth + together - 1) / together;
  }
  int64_t k(int64_t tile) const { return kernelHeight * runTiles(tile) * tile; }
  int64_t n() const { return together * outputs; }
};

/// Tasks by which a shim reads tiles of a: `steps` times a `stride` (elements) further, each time all tiles of a run.
/// Few: where a plane has one row of the kernel all planes are one task.
struct WindowTask {
  int64_t offset, steps, stride;
};
std::vector<WindowTask> tasksOf(const Window &window);

} // namespace dmxc::aie
