//===- BlockTensor.cpp - tiles and tensors in the wire layout -------------===//

#include "BlockFloat.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

namespace dmx::blockfp {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire layout is written as it lies in memory");

constexpr int kMaxDepth = 128;
constexpr int kMinBias = 4, kMaxBias = 18;

/// The part of a tensor under one tile, in elements.
struct TileArea {
  int64_t firstRun, firstElement; ///< in the tensor
  int runs, length;               ///< inside the tensor; the rest is padding
};

TileArea areaOf(const TensorLayout &layout, int64_t i, int64_t j) {
  TileArea area{i * kTileRuns, j * layout.tile.depth, 0, 0};
  area.runs = static_cast<int>(std::min<int64_t>(kTileRuns, layout.runs() - area.firstRun));
  area.length = static_cast<int>(std::min<int64_t>(layout.tile.depth, layout.runLength() - area.firstElement));
  return area;
}

/// A tile's values run by run, padded with zeros.
struct TileValues {
  alignas(64) float run[kTileRuns][kMaxDepth];
};

void gather(const TensorLayout &layout, const TileArea &area, const MatrixView &values, TileValues &tile) {
  if (layout.orientation == Orientation::Row) {
    for (int r = 0; r < area.runs; ++r) {
      const float *row = values.data + (area.firstRun + r) * values.stride + area.firstElement;
      std::copy_n(row, area.length, tile.run[r]);
    }
  } else {
    for (int k = 0; k < area.length; ++k) {
      const float *row = values.data + (area.firstElement + k) * values.stride + area.firstRun;
      for (int r = 0; r < area.runs; ++r)
        tile.run[r][k] = row[r];
    }
  }
  for (int r = 0; r < area.runs; ++r)
    std::fill(tile.run[r] + area.length, tile.run[r] + layout.tile.depth, 0.0f);
  for (int r = area.runs; r < kTileRuns; ++r)
    std::fill_n(tile.run[r], layout.tile.depth, 0.0f);
}

void scatter(const TensorLayout &layout, const TileArea &area, const TileValues &tile, float *out, int64_t stride) {
  if (layout.orientation == Orientation::Row) {
    for (int r = 0; r < area.runs; ++r)
      std::copy_n(tile.run[r], area.length, out + (area.firstRun + r) * stride + area.firstElement);
    return;
  }
  for (int k = 0; k < area.length; ++k) {
    float *row = out + (area.firstElement + k) * stride + area.firstRun;
    for (int r = 0; r < area.runs; ++r)
      row[r] = tile.run[r][k];
  }
}

/// The numbers of the stochastic stream for one run of a tile.
void drawRun(const TensorLayout &layout, const TileArea &area, int run, const StochasticStream &stream, uint16_t *u) {
  bool row = layout.orientation == Orientation::Row;
  int64_t r = area.firstRun + run;
  for (int k = 0; k < layout.tile.depth; ++k) {
    int64_t element = area.firstElement + k;
    u[k] = stream.at(row ? r * layout.cols + element : element * layout.cols + r);
  }
}

bool isFinite(std::span<const float> values) {
  uint32_t largest = 0;
  for (float value : values)
    largest = std::max(largest, std::bit_cast<uint32_t>(value) & 0x7fffffff);
  return largest < 0x7f800000;
}

/// The largest |value|; infinity when one is not finite.
float peakOf(const float *values, int count) {
  float peak = 0;
  for (int n = 0; n < count; ++n)
    peak = std::isfinite(values[n]) ? std::max(peak, std::fabs(values[n])) : std::numeric_limits<float>::infinity();
  return peak;
}

MaybeError packTile(const TileShape &shape, const TileValues &values, Rounding rounding, const auto &drawNumbers,
                    std::byte *out) {
  std::array<uint16_t, kMaxDepth> u{};
  std::byte *scales = out, *mantissas = out + shape.scaleBytes();
  for (int r = 0; r < kTileRuns; ++r) {
    if (rounding == Rounding::Stochastic)
      drawNumbers(r, u.data());
    if (!quantizeRun(shape, values.run[r], rounding, u.data(), scales + r * (shape.scaleBytes() / kTileRuns),
                     mantissas + r * shape.runBytes()))
      return nameOf(shape.format) + " has no code for NaN or infinity";
  }
  return std::nullopt;
}

void unpackTile(const TileShape &shape, const std::byte *tile, TileValues &values) {
  for (int r = 0; r < kTileRuns; ++r)
    dequantizeRun(shape, runOf(shape, tile, r), values.run[r]);
}

} // namespace

// --- shapes ------------------------------------------------------------------

int TileShape::scaleBytes() const { return format.isBfp32() ? 0 : kTileRuns * blocksPerRun(); }
int TileShape::runBytes() const { return format.isBfp32() ? depth * 4 : depth * format.precision / 8; }
int TileShape::bytes() const { return scaleBytes() + kTileRuns * runBytes(); }

int defaultTileDepth(const BlockFormat &format) {
  bool deep = format.kind == FormatKind::Bfp && format.precision == 4;
  return deep || format.block == kMaxDepth ? kMaxDepth : 64;
}

std::optional<TileShape> makeTileShape(const BlockFormat &format, int depth, std::string &error) {
  error.clear();
  if (typeId(format) == 0)
    error = nameOf(format) + " is not a format of the family";
  else if (format.kind == FormatKind::MxFloat)
    error = nameOf(format) + " has no tile layout; convert it to BFP16 first";
  else if ((depth != 64 && depth != kMaxDepth) || depth % format.block != 0)
    error = "tiles of " + nameOf(format) + " cannot be " + std::to_string(depth) + " deep";
  if (!error.empty())
    return std::nullopt;
  return TileShape{format, depth};
}

int64_t TensorLayout::runs() const { return orientation == Orientation::Row ? rows : cols; }
int64_t TensorLayout::runLength() const { return orientation == Orientation::Row ? cols : rows; }

std::optional<TensorLayout> makeLayout(const BlockFormat &format, Orientation orientation, int64_t rows, int64_t cols,
                                       std::string &error) {
  auto tile = makeTileShape(format, defaultTileDepth(format), error);
  if (!tile)
    return std::nullopt;
  constexpr int64_t kMaxExtent = int64_t(1) << 40, kMaxElements = kMaxExtent;
  if (rows < 0 || cols < 0 || rows > kMaxExtent || cols > kMaxExtent || (cols != 0 && rows > kMaxElements / cols)) {
    error = "a tensor of " + std::to_string(rows) + " x " + std::to_string(cols) + " elements cannot be packed";
    return std::nullopt;
  }
  return TensorLayout{*tile, orientation, rows, cols};
}

// --- tiles and tensors -------------------------------------------------------

MaybeError quantizeTile(const TensorLayout &layout, const MatrixView &values, const TensorRounding &rounding, int64_t i,
                        int64_t j, std::byte *out) {
  TileArea area = areaOf(layout, i, j);
  TileValues tile;
  gather(layout, area, values, tile);
  auto draw = [&](int run, uint16_t *u) { drawRun(layout, area, run, rounding.stream, u); };
  return packTile(layout.tile, tile, rounding.mode, draw, out);
}

MaybeError quantizeTensor(const TensorLayout &layout, const MatrixView &values, const TensorRounding &rounding,
                          std::byte *out) {
  for (int64_t i = 0; i < layout.tilesOverRuns(); ++i)
    for (int64_t j = 0; j < layout.tilesAlongRun(); ++j)
      if (MaybeError error = quantizeTile(layout, values, rounding, i, j, out + layout.tileOffset(i, j)))
        return error;
  return std::nullopt;
}

void dequantizeTile(const TensorLayout &layout, const std::byte *tile, int64_t i, int64_t j, float *out,
                    int64_t stride) {
  TileValues values;
  unpackTile(layout.tile, tile, values);
  scatter(layout, areaOf(layout, i, j), values, out, stride);
}

void dequantizeTensor(const TensorLayout &layout, const std::byte *tiles, float *out, int64_t stride) {
  for (int64_t i = 0; i < layout.tilesOverRuns(); ++i)
    for (int64_t j = 0; j < layout.tilesAlongRun(); ++j)
      dequantizeTile(layout, tiles + layout.tileOffset(i, j), i, j, out, stride);
}

MaybeError convertTile(const TileShape &from, const std::byte *in, const TileShape &to, std::byte *out) {
  if (from.depth != to.depth)
    return "a tile " + std::to_string(from.depth) + " deep cannot become one " + std::to_string(to.depth) + " deep";
  TileValues values;
  unpackTile(from, in, values);
  return packTile(to, values, Rounding::Nearest, [](int, uint16_t *) {}, out);
}

// --- runs ---------------------------------------------------------------------

bool quantizeRun(const TileShape &shape, const float *run, Rounding rounding, const uint16_t *u, std::byte *scales,
                 std::byte *mantissas) {
  const BlockFormat &format = shape.format;
  size_t block = format.block;
  std::array<int16_t, kMaxDepth> m;
  if (format.isBfp32()) {
    for (int k = 0; k < shape.depth; ++k) {
      float value = roundToBfp32(run[k]);
      std::memcpy(mantissas + sizeof value * k, &value, sizeof value);
    }
    return true;
  }
  bool scaled = format.kind == FormatKind::Sbfp;
  if (scaled && !isFinite({run, static_cast<size_t>(shape.depth)}))
    return false;
  QuantizeMode mode{format.precision, format.asymmetric, rounding};
  for (int b = 0; b < shape.blocksPerRun(); ++b) {
    size_t first = b * block;
    std::span<const float> x(run + first, block);
    std::span<int16_t> out(m.data() + first, block);
    std::span<const uint16_t> numbers;
    if (rounding == Rounding::Stochastic)
      numbers = {u + first, block};
    scales[b] = static_cast<std::byte>(scaled ? quantizeSbfpBlock(x, format.scaleBias, out)
                                              : quantizeBlock(x, mode, out, numbers));
  }
  packMantissas(m.data(), shape.depth, format.precision, mantissas);
  return true;
}

void dequantizeRun(const TileShape &shape, const TileRun &packed, float *run) {
  const BlockFormat &format = shape.format;
  size_t block = format.block;
  if (format.isBfp32()) {
    std::memcpy(run, packed.mantissas, sizeof(float) * shape.depth);
    return;
  }
  std::array<int16_t, kMaxDepth> m;
  unpackMantissas(packed.mantissas, shape.depth, format.precision, m.data());
  for (int b = 0; b < shape.blocksPerRun(); ++b) {
    auto scale = static_cast<uint8_t>(packed.scales[b]);
    size_t first = b * block;
    if (format.kind == FormatKind::Sbfp) {
      float value = sbfpScale(scale, format.scaleBias);
      for (size_t k = first; k < first + block; ++k)
        run[k] = static_cast<float>(m[k]) * value;
    } else {
      dequantizeBlock(scale, {m.data() + first, block}, format.precision, {run + first, block});
    }
  }
}

// --- mantissa fields ---------------------------------------------------------

void unpackMantissas(const std::byte *in, int count, int precision, int16_t *out) {
  auto bytes = reinterpret_cast<const uint8_t *>(in);
  if (precision == 16) {
    std::memcpy(out, in, sizeof(int16_t) * count);
  } else if (precision == 8) {
    for (int i = 0; i < count; ++i)
      out[i] = static_cast<int8_t>(bytes[i]);
  } else if (precision == 4) {
    for (int i = 0; i < count / 2; ++i) {
      out[2 * i] = static_cast<int8_t>(bytes[i] << 4) >> 4;
      out[2 * i + 1] = static_cast<int8_t>(bytes[i]) >> 4;
    }
  } else {
    assert(precision == 6);
    for (int i = 0; i < count; i += 4, bytes += 3) {
      uint32_t group = bytes[0] | bytes[1] << 8 | bytes[2] << 16;
      for (int n = 0; n < 4; ++n) // the shift left makes bit 5 the sign
        out[i + n] = static_cast<int8_t>(group >> 6 * n << 2) >> 2;
    }
  }
}

void packMantissas(const int16_t *in, int count, int precision, std::byte *out) {
  auto bytes = reinterpret_cast<uint8_t *>(out);
  if (precision == 16) {
    std::memcpy(out, in, sizeof(int16_t) * count);
  } else if (precision == 8) {
    for (int i = 0; i < count; ++i)
      bytes[i] = static_cast<uint8_t>(in[i]);
  } else if (precision == 4) {
    for (int i = 0; i < count / 2; ++i)
      bytes[i] = static_cast<uint8_t>((in[2 * i] & 15) | (in[2 * i + 1] & 15) << 4);
  } else {
    assert(precision == 6);
    for (int i = 0; i < count; i += 4, bytes += 3) {
      uint32_t group = 0;
      for (int n = 0; n < 4; ++n)
        group |= static_cast<uint32_t>(in[i + n] & 63) << 6 * n;
      for (int n = 0; n < 3; ++n)
        bytes[n] = static_cast<uint8_t>(group >> 8 * n);
    }
  }
}

// --- SBFP bias ---------------------------------------------------------------

std::optional<int> chooseSbfpBias(Orientation orientation, int64_t rows, int64_t cols, const MatrixView &values,
                                  std::string &error) {
  constexpr BlockFormat kFormat{FormatKind::Sbfp, 4, 16, false, kMinBias};
  auto layout = makeLayout(kFormat, orientation, rows, cols, error);
  if (!layout)
    return std::nullopt;
  double smallest = std::numeric_limits<double>::infinity(), largest = 0;
  TileValues tile;
  for (int64_t i = 0; i < layout->tilesOverRuns(); ++i)
    for (int64_t j = 0; j < layout->tilesAlongRun(); ++j) {
      gather(*layout, areaOf(*layout, i, j), values, tile);
      for (const auto &run : tile.run)
        for (int k = 0; k < layout->tile.depth; k += kFormat.block) {
          float peak = peakOf(run + k, kFormat.block);
          double scale = static_cast<float>(peak / 7.0);
          if (peak > 0)
            smallest = std::min(smallest, scale);
          largest = std::max(largest, scale);
        }
    }
  if (std::isinf(largest)) {
    error = "the tensor has NaN or infinite values, for which SBFP12_16 has no "
            "code";
    return std::nullopt;
  }
  for (int bias = kMinBias; bias <= kMaxBias; ++bias)
    if (smallest >= std::ldexp(1, 1 - bias) && largest <= std::ldexp(2 - 1.0 / 16, 15 - bias))
      return bias;
  char range[64];
  std::snprintf(range, sizeof range, "%g to %g", smallest, largest);
  error = std::string("no SBFP12_16 bias from 4 to 18 fits block scales from ") + range;
  return std::nullopt;
}

} // namespace dmx::blockfp
