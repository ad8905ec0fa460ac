//===- DotProduct.h - dot products of blocks and of tiles -------*- C++ -*-===//
//
// Sections 4 and 5. The functions on single blocks are the definition; the tile
// product gives the same bits fast.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "BlockFloat.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace dmx::blockfp {

// --- one block ---------------------------------------------------------------

/// One block of an operand, unpacked.
struct BlockView {
  uint8_t exponent = 0;
  std::span<const int16_t> mantissas;
  int precision = 8;
};

/// What one block delivers for one output element: accumulator * 2^exponent, or
/// NaN.
struct Partial {
  int64_t accumulator = 0;
  int exponent = 0;
  bool isNaN = false;
};

/// Section 4: the exact integer dot product of two blocks of the same length,
/// p = 4, 8 or 16 each; exponent = e_a + e_b - 254 - (p_a - 2) - (p_b - 2).
Partial dotBlocks(const BlockView &a, const BlockView &b);

/// The p = 16 product as the array computes it: m = 256 h + l (l unsigned), four
/// 8-bit passes combined as integers. The same number as the exact product.
int64_t dotInFourPasses(std::span<const int16_t> a, std::span<const int16_t> b);

/// Section 5, step 1: rounded once to f32 (exact for p <= 8), flushed below
/// 2^-126, infinite beyond f32.
float partialToF32(const Partial &partial);

/// Steps 1 and 2: the balanced tree over partials in K order, in f32. What is
/// missing to a power of two counts as +0, so that all modes d with
/// 2^d >= partials.size() give the same.
float reducePartials(std::span<const float> partials);

/// Step 3: BFP32_1 of the reduced partials, written (`sum` is BFP32_1) or added:
/// BFP32_1(f32(sum + new)).
inline float roundSum(float reduced) { return roundToBfp32(reduced); }
inline float addToSum(float sum, float next) { return roundToBfp32(f32Add(sum, next)); }

// --- tiles -------------------------------------------------------------------

/// Instruction sets of the tile product. All give the same bits.
enum class SimdLevel : uint8_t { Portable, Avx2, Avx512, Avx512Vnni };
constexpr int kSimdLevels = 4;
const char *nameOf(SimdLevel level);
/// Whether this CPU and its operating system have the level.
bool isSupported(SimdLevel level);
SimdLevel bestSimdLevel();

constexpr int kMaxProductTiles = 64, kMaxProductRows = 4096;

/// One product: `rows` activation rows against a weight tile per activation tile.
struct TileProduct {
  TileShape activation;    ///< R tiles
  TileShape weight;        ///< C tiles
  int rows = kTileRuns;    ///< m
  bool accumulate = false; ///< add to the sums instead of writing them
};

/// Nothing, or why there is no such product of this many tiles along K.
/// Both operands have the same depth and block. Precisions are 8x8, 4x4, 16x16
/// and, at the INT8 rate, 8x4 and 4x8.
MaybeError checkTileProduct(const TileProduct &product, size_t tiles);

/// Computes tile products and keeps their scratch memory from one to the next.
/// One per thread.
class TileMatmul {
public:
  explicit TileMatmul(SimdLevel level = bestSimdLevel());
  ~TileMatmul();
  TileMatmul(TileMatmul &&) noexcept;
  TileMatmul &operator=(TileMatmul &&) noexcept;

  /// Sections 4 and 5: activations[i] and weights[i] are the operands of leaf i,
  /// in increasing K; rows are the runs 0..m-1 of the activation tiles, m <= 64.
  /// Element [r][n] of the sums, BFP32_1 in f32, is at sums[r * sumStride + n], n < 64;
  /// accumulating, it is read first. `sums` does not overlap the tiles.
  MaybeError run(const TileProduct &product, std::span<const std::byte *const> activations,
                 std::span<const std::byte *const> weights, float *sums, ptrdiff_t sumStride = kTileRuns);
  /// The same with rows from anywhere: activations[i * m + r] is row r of leaf
  /// i, m up to 4096. A run of null pointers is a row of zeros.
  MaybeError runRows(const TileProduct &product, std::span<const TileRun> activations,
                     std::span<const std::byte *const> weights, float *sums, ptrdiff_t sumStride = kTileRuns);

private:
  struct Scratch;
  void multiply(const TileProduct &product, int leaves, float *sums, ptrdiff_t sumStride);

  SimdLevel level;
  std::unique_ptr<Scratch> scratch;
};

} // namespace dmx::blockfp
