//===- ConvPlan.h - static geometry of a convolution ------------*- C++ -*-===//
//
// Private to the Conv*.cpp files.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Conv.h"

#include <vector>

namespace dmxc::cpu {

/// The same convolution with the fewest spatial dims: a pointwise one is a
/// single row of all positions.
ConvKernel normalized(const ConvKernel &spec);

/// Whether 16 input channels at a time may go over a whole image (ConvTiles::passes).
bool canPass(const ConvKernel &spec, ConvMode mode);

/// Lanes when output channels of a vector belong to different groups.
ConvMode convMode(const ConvKernel &spec);

constexpr int64_t kPanelColumns = 16; ///< output channels that are adjacent in the packed weights

/// Bytes at the start of scratch for sums that wait; a multiple of 64.
int64_t convSumBytes(const ConvKernel &spec, const ConvTiles &tiles);
/// Panels of weights that are widened at once: those of an item, or the one that it has a part of.
inline int64_t convWordPanels(const ConvTiles &tiles) { return std::max<int64_t>(1, tiles.columns() / kPanelColumns); }

/// Input channels that are adjacent in the packed weights.
int64_t weightBlock(const ConvKernel &spec);

/// Adjacent register tiles of a row that run the same code.
struct TileSpan {
  int64_t firstTile, count;
  int64_t firstPixel, pixels; ///< of the first tile; every tile has `pixels`
  /// valid[kw]: the pixels of the tile whose tap kw lies inside the input.
  std::vector<std::vector<int64_t>> valid;
  /// Input column that addresses count from, for the first tile (never
  /// negative), and the same relative to pixel 0, tap 0.
  int64_t anchor, shift;
};

/// A row of the output cut in balanced tiles of at most `rows` pixels.
std::vector<TileSpan> planRow(const ConvKernel &spec, int64_t rows);
int64_t tilesOfRow(const ConvKernel &spec, int64_t rows);
/// Most pixels of a work item whose results are turned; the usual is an eighth.
constexpr int64_t kMostTurned = 4096;
/// Most pixels of a work item, of a normalized spec.
int64_t pixelsOfItem(const ConvTiles &tiles, const ConvKernel &spec);

} // namespace dmxc::cpu
