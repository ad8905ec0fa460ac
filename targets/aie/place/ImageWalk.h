//===- ImageWalk.h - how the array reads windows of an image ----*- C++ -*-===//
//
// Nothing is copied: the rows of a are read out of the image, over and over where windows overlap. The image lies in
// DDR with its channels innermost, zeros before each row (which are those behind the row before) and rows that a stride
// steps over in planes of their own, so that the windows of all rows of the product are one step apart. Along k go the
// planes, in each the kernel's rows that it has, in each the kernel's columns and their channels in one run, filled up
// to whole tiles: what is read there meets weights of zero. Of columns that are dilated the pixels between are read as
// well, or each column is a run of its own, whichever has fewer tiles.
//
// Of a convolution in groups each group is an image, a matrix of weights and a matrix of results of its own; several
// groups together are one, whose weights are zero where an output meets channels of another group.
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
  int64_t images = 1, channels = 1, outputs = 1; ///< of a matrix: of the groups that are together
  int64_t groups = 1, together = 1;
  int64_t pixels = 1; ///< of the result, beside each other, that a row of the product has
  int64_t bytes = 2;  ///< of an element; at most a word
  bool operator==(const ImageWalk &) const = default;

  /// Of a convolution of one or two axes and fixed sizes; each group by itself.
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
  /// How many groups are together.
  void setTogether(int64_t groups);
  int64_t matrices() const { return groups / together; }
  /// Rows of the kernel that lie in one plane follow each other by so many; the rows 0, 1, .. begin such a series each.
  int64_t rowsApart() const;
  int64_t series() const { return std::min(rowsApart(), number(down.taps)); }
  int64_t kernelRows(int64_t first) const { return (number(down.taps) - first + rowsApart() - 1) / rowsApart(); }
  /// The row of the image, less where windows begin, that a row of the kernel meets: its plane, and the row in that.
  int64_t planeOf(int64_t row) const { return row * down.dilation % down.stride; }
  int64_t rowInPlane(int64_t row) const { return row * down.dilation / down.stride; }
  /// Runs of a row of the kernel, elements of one that lie together, and its tiles of k.
  int64_t runs(int64_t tile) const;
  int64_t run(int64_t tile) const { return runOf(runs(tile)); }
  int64_t runTiles(int64_t tile) const { return tilesOf(runs(tile), tile); }
  /// Elements from a column of the kernel to the next.
  int64_t columnsApart() const { return across.dilation * pixel(); }
  /// Where along k a place of the kernel has the first channel of the first pixel. The order is that of tasksOf.
  int64_t kOf(int64_t row, int64_t column, int64_t tile) const;

  /// The sizes of the product.
  int64_t m() const;
  int64_t k(int64_t tile) const { return number(down.taps) * runs(tile) * runTiles(tile) * tile; }
  int64_t n() const { return pixels * outputs; }

private:
  int64_t runOf(int64_t runs) const;
  int64_t tilesOf(int64_t runs, int64_t tile) const { return (runOf(runs) + tile - 1) / tile; }
};

/// Tasks by which a shim reads tiles of a: `steps` times a `stride` further, each time `tiles` that are `tile` apart
/// (all in elements). Few: where a plane has one row of the kernel all planes are one task.
struct ImageTask {
  int64_t offset, steps, stride, tiles, tile;
};
std::vector<ImageTask> tasksOf(const ImageWalk &walk, int64_t tile);

} // namespace dmxc::aie
