//===- DotProduct.h - DIMC dot product, PPR and OB --------------*- C++ -*-===//
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

namespace dmx::corsair {

// --- one block ---------------------------------------------------------------

/// One block of an operand, unpacked.
struct BlockView {
  uint8_t exponent = 0;
  std::span<const int16_t> mantissas;
  int precision = 8;
};

/// What a core delivers for one output element: accumulator * 2^exponent, or
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

/// Step 3: BFP32_1 of the reduced partials, written (`ob` is BFP32_1) or added:
/// BFP32_1(f32(ob + new)).
inline float writeOb(float reduced) { return roundToBfp32(reduced); }
inline float accumulateOb(float ob, float next) { return roundToBfp32(f32Add(ob, next)); }

// --- tiles -------------------------------------------------------------------

/// Instruction sets of the tile product. All give the same bits.
enum class SimdLevel : uint8_t { Portable, Avx2, Avx512, Avx512Vnni };
constexpr int kSimdLevels = 4;
const char *nameOf(SimdLevel level);
/// Whether this CPU and its operating system have the level.
bool isSupported(SimdLevel level);
SimdLevel bestSimdLevel();

constexpr int kMaxPprMode = 6, kMaxProductRows = 4096;

/// One MATMUL: `rows` activation rows against num_imc weight tiles.
struct TileProduct {
  TileShape activation;    ///< R tiles
  TileShape weight;        ///< C tiles, one per core
  int rows = kTileRuns;    ///< m
  int pprMode = 0;         ///< d, num_imc <= 2^d
  bool accumulate = false; ///< add to OB instead of writing it
};

/// Nothing, or why the array cannot compute this product of num_imc tiles.
/// Both operands have the same depth and block. Precisions are 8x8, 4x4, 16x16
/// and, at the INT8 rate, 8x4 and 4x8.
MaybeError checkTileProduct(const TileProduct &product, size_t numImc);

/// Computes tile products and keeps their scratch memory from one to the next.
/// One per thread.
class TileMatmul {
public:
  explicit TileMatmul(SimdLevel level = bestSimdLevel());
  ~TileMatmul();
  TileMatmul(TileMatmul &&) noexcept;
  TileMatmul &operator=(TileMatmul &&) noexcept;

  /// Sections 4 and 5: activations[i] and weights[i] are the operands of core i,
  /// in increasing K; rows are the runs 0..m-1 of the activation tiles, m <= 64.
  /// Element [r][n] of OB, BFP32_1 in f32, is at ob[r * obStride + n], n < 64;
  /// accumulating, it is read first. `ob` does not overlap the tiles.
  MaybeError run(const TileProduct &product, std::span<const std::byte *const> activations,
                 std::span<const std::byte *const> weights, float *ob, ptrdiff_t obStride = kTileRuns);
  /// The same with rows from anywhere: activations[i * m + r] is row r of core
  /// i, m up to 4096. A run of null pointers is a row of zeros.
  MaybeError runRows(const TileProduct &product, std::span<const TileRun> activations,
                     std::span<const std::byte *const> weights, float *ob, ptrdiff_t obStride = kTileRuns);

private:
  struct Scratch;
  void multiply(const TileProduct &product, int leaves, float *ob, ptrdiff_t obStride);

  SimdLevel level;
  std::unique_ptr<Scratch> scratch;
};

} // namespace dmx::corsair
