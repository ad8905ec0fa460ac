//===- TileKernel.h - inner loops of the tile product -----------*- C++ -*-===//
//
// Private to TileMatmul. A kernel is the same code compiled for one instruction
// set (TileKernelBody.inc); integer arithmetic and the fixed order of the f32
// tree make the bits equal.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "DotProduct.h"

#include <bit>

namespace dmx::blockfp {

/// Tree levels: 64 tiles of 8 blocks each, and the root.
constexpr int kTreeLevels = std::bit_width(unsigned(kMaxProductTiles)) - 1 + 3 + 1;

/// Unpacked operands. A leaf is one block of one tile: `block` elements of K; its
/// dot products are the leaves of the reduction tree, in K order. p = 16 has two
/// planes, the high and the low byte of the mantissas, else there is one.
struct TileOperands {
  int rows = 0, leaves = 0, block = 0, planes = 1;
  const int16_t *a = nullptr; ///< [plane][leaf][row][block]
  /// [plane][leaf], each [64][block], or [block/2][64][2] when `paired`: what
  /// multiplies a pair of neighbours of K is then one vector.
  const int16_t *w = nullptr;
  bool paired = false;
  /// Powers of two, NaN for exponent 255, 0 for empty blocks: partial =
  /// accumulator * (aScale * wScale), exact by the choice of the caller.
  const float *aScale = nullptr; ///< [leaf][row]
  const float *wScale = nullptr; ///< [leaf][64]
  bool accumulate = false;
  float *sums = nullptr;
  ptrdiff_t sumStride = 0;

  const int16_t *aLeaf(int plane, int leaf, int row) const {
    return a + ((ptrdiff_t(plane) * leaves + leaf) * rows + row) * block;
  }
  const int16_t *wLeaf(int plane, int leaf) const { return w + (ptrdiff_t(plane) * leaves + leaf) * kTileRuns * block; }
};

using TileKernel = void (*)(const TileOperands &);

void tileKernelPortable(const TileOperands &operands);
#if defined(__x86_64__)
void tileKernelAvx2(const TileOperands &operands);
void tileKernelAvx512(const TileOperands &operands);
void tileKernelAvx512Vnni(const TileOperands &operands);
#endif

} // namespace dmx::blockfp
