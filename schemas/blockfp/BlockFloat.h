//===- BlockFloat.h - block floating point blocks and tensors ---*- C++ -*-===//
//
// Quantization of one block (sections 2 and 3) and of 2-D tensors into the wire
// layout of section 8.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "BlockFormat.h"
#include "ScalarNumbers.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace dmx::blockfp {

/// Nothing on success, else a sentence without a full stop.
using MaybeError = std::optional<std::string>;

/// The exponent byte of a block that reads back as NaN (OCP's E8M0 code).
constexpr uint8_t kNaNExponent = 255;

// --- one block ---------------------------------------------------------------

/// How a block is quantized: the fields of a BlockFormat that matter, and the
/// rounding. Any p from 2 to 16.
struct QuantizeMode {
  int precision = 8;
  bool asymmetric = false;
  Rounding rounding = Rounding::Nearest;
};

/// Section 2. Writes x.size() mantissas and returns the exponent byte e; value
/// i is mantissas[i] * 2^(e - 127 - (p - 2)). `u` has a number of the
/// stochastic stream per element and is read in that rounding only.
/// In an asymmetric format the lower bound is -2^(p-1) in every rounding; to
/// nearest, this is step 6 of the specification.
uint8_t quantizeBlock(std::span<const float> x, const QuantizeMode &mode, std::span<int16_t> mantissas,
                      std::span<const uint16_t> u = {});

/// The exact values. NaN for exponent 255. (Only -2^(p-1) with exponent 254 is
/// beyond f32: it becomes minus infinity.)
void dequantizeBlock(uint8_t exponent, std::span<const int16_t> mantissas, int precision, std::span<float> out);

/// BFP32_1: 22 fraction bits, ties to even; saturates, flushes below 2^-126
/// before rounding. NaN and infinity become NaN, as in any block.
float roundToBfp32(float x);

/// Section 3, 16 elements: mantissas within +-7 and the scale byte, an unsigned
/// 4e4m float with bias 4..18; 0 is a block that was flushed. Infinite and NaN
/// elements have no code: the caller refuses them (quantizeTensor does).
uint8_t quantizeSbfpBlock(std::span<const float> x, int bias, std::span<int16_t> mantissas);
/// The value of a scale byte, exact.
float sbfpScale(uint8_t code, int bias);

// --- tiles and tensors -------------------------------------------------------

constexpr int kTileRuns = 64; ///< rows (R) or columns (C) of a tile

/// A tile of the wire layout: 64 runs of `depth` elements along the blocked
/// dimension. All scale bytes first, [run][block of the run], then the
/// mantissas run by run as little-endian bit fields of p bits: int16 for p=16,
/// int8 for p=8, element 2i in the low nibble for p=4. BFP32_1 has no scale
/// bytes; its elements are little-endian f32.
struct TileShape {
  BlockFormat format;
  int depth = 64; ///< elements of a run: 64, or 128 (p=4 and blocks of 128)

  int blocksPerRun() const { return depth / format.block; }
  int scaleBytes() const; ///< of the tile
  int runBytes() const;   ///< mantissas of one run
  int bytes() const;      ///< 4,160 for BFP16_64; a multiple of 64
  bool operator==(const TileShape &) const = default;
};

/// The depth of the format's own matrix tile: 128 for p=4 and for blocks of 128,
/// else 64.
int defaultTileDepth(const BlockFormat &format);
/// Refuses depths other than 64 and 128, blocks that do not divide them, and
/// MX float formats, whose wire layout is not defined.
std::optional<TileShape> makeTileShape(const BlockFormat &format, int depth, std::string &error);

/// One run inside a tile: its scale bytes and its mantissas.
struct TileRun {
  const std::byte *scales = nullptr;
  const std::byte *mantissas = nullptr;
};
inline TileRun runOf(const TileShape &shape, const std::byte *tile, int run) {
  return {tile + run * shape.scaleBytes() / kTileRuns, tile + shape.scaleBytes() + run * shape.runBytes()};
}

/// Quantizes shape.depth values into one run. `u` has as many numbers of the
/// stochastic stream, read in that rounding only. False when the format is SBFP
/// and a value is not finite, for which it has no code.
[[nodiscard]] bool quantizeRun(const TileShape &shape, const float *values, Rounding rounding, const uint16_t *u,
                               std::byte *scales, std::byte *mantissas);
/// The exact values of one run.
void dequantizeRun(const TileShape &shape, const TileRun &run, float *values);

/// The wire layout of a 2-D tensor [rows, cols]. Ragged edges are padded with
/// zeros (exponent byte 0), which change neither exponents nor products.
///
/// Tile (i, j) covers the runs 64i.. and the elements j*depth.. of each; tiles
/// lie row-major over that grid. For R it is the grid of the tensor; for C that
/// of the transposed tensor, so that a C tensor is byte for byte the R tensor of
/// its transpose, and the tiles of a column of weights are neighbours.
struct TensorLayout {
  TileShape tile;
  Orientation orientation = Orientation::Row;
  int64_t rows = 0, cols = 0;

  /// Rows (R) or columns (C).
  int64_t runs() const;
  /// Elements of a run: the dimension that the blocks cut.
  int64_t runLength() const;
  int64_t tilesOverRuns() const { return (runs() + kTileRuns - 1) / kTileRuns; }
  int64_t tilesAlongRun() const { return (runLength() + tile.depth - 1) / tile.depth; }
  int64_t tileOffset(int64_t i, int64_t j) const { return (i * tilesAlongRun() + j) * tile.bytes(); }
  int64_t bytes() const { return tileOffset(tilesOverRuns(), 0); }
};

/// The layout with the format's own tile depth. Refuses negative and
/// overflowing sizes.
std::optional<TensorLayout> makeLayout(const BlockFormat &format, Orientation orientation, int64_t rows, int64_t cols,
                                       std::string &error);

/// A dense f32 matrix in memory; `stride` is elements from row to row.
struct MatrixView {
  const float *data = nullptr;
  int64_t stride = 0;
};

struct TensorRounding {
  Rounding mode = Rounding::Nearest;
  StochasticStream stream; ///< read in Rounding::Stochastic; the index of an
                           ///< element is row * cols + col of the tensor
};

/// Packs tile (i, j); `out` has tile.bytes() bytes. Tiles are independent:
/// threads may share a tensor.
MaybeError quantizeTile(const TensorLayout &layout, const MatrixView &values, const TensorRounding &rounding, int64_t i,
                        int64_t j, std::byte *out);
/// Packs the whole tensor; `out` has layout.bytes() bytes.
MaybeError quantizeTensor(const TensorLayout &layout, const MatrixView &values, const TensorRounding &rounding,
                          std::byte *out);

/// Unpacks tile (i, j) into the matrix; padding is not written.
void dequantizeTile(const TensorLayout &layout, const std::byte *tile, int64_t i, int64_t j, float *out,
                    int64_t stride);
void dequantizeTensor(const TensorLayout &layout, const std::byte *tiles, float *out, int64_t stride);

/// Re-quantizes a tile into another format of the same depth, through exact
/// values (section 2.2): BFP16 -> BFP12, SBFP12 -> BFP16_64.
MaybeError convertTile(const TileShape &from, const std::byte *in, const TileShape &to, std::byte *out);

/// `count` mantissas (a multiple of 8) from the bit fields of a tile's run.
void unpackMantissas(const std::byte *in, int count, int precision, int16_t *out);
void packMantissas(const int16_t *in, int count, int precision, std::byte *out);

/// Section 3: the smallest bias from 4 to 18 under which no non-zero block of
/// the tensor is flushed and none saturates. Nothing, and a sentence with the
/// range of the scales, when none fits or a value is not finite.
std::optional<int> chooseSbfpBias(Orientation orientation, int64_t rows, int64_t cols, const MatrixView &values,
                                  std::string &error);

} // namespace dmx::blockfp
