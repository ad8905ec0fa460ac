//===- TileMatmul.cpp - tiles of weights times rows of activations --------===//

#include "DotProduct.h"
#include "TileKernel.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <vector>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace dmx::blockfp {
namespace {

/// The exponents of one operand, empty blocks and NaN aside.
struct ExponentRange {
  int low = 255, high = 0;
  /// A block with exponent byte 0 and mantissas: no quantizer writes it, but an
  /// imported MXINT8 tensor can have it.
  bool hasTiny = false;

  void add(uint8_t exponent, const int16_t *mantissas, int count) {
    if (exponent == kNaNExponent)
      return;
    if (exponent == 0) {
      hasTiny |= std::any_of(mantissas, mantissas + count, [](int16_t m) { return m != 0; });
      return;
    }
    low = std::min<int>(low, exponent);
    high = std::max<int>(high, exponent);
  }
};

/// The exponent of a partial is e_a + e_b - bias.
int exponentBias(const TileProduct &product) {
  return 254 + (product.activation.format.precision - 2) + (product.weight.format.precision - 2);
}

/// Whether every scale, and so every partial that is not zero, is a normal f32
/// number. Then every sum is too (sums are multiples of the smallest scale), no
/// flush can happen, and plain f32 arithmetic is the definition.
bool isFastRange(const ExponentRange &a, const ExponentRange &w, int bias) {
  if (a.hasTiny || w.hasTiny)
    return false;
  if (a.high == 0 || w.high == 0)
    return true; // zeros and NaN only
  return a.low + w.low - bias >= -126 && a.high + w.high - bias <= 127 && w.low - (bias - 127) >= -126;
}

float powerOfTwo(int exponent) { // -126..127
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

/// 2^(exponent - bias), NaN and zero as the kernels want them. Outside the fast
/// range nobody reads the result.
float scaleOf(uint8_t exponent, int bias) {
  if (exponent == kNaNExponent)
    return std::numeric_limits<float>::quiet_NaN();
  return exponent == 0 ? 0 : powerOfTwo(std::max(exponent - bias, -126));
}

/// The high bytes (signed) into the first plane, the low ones (unsigned) into
/// the second: section 4, p = 16.
void splitPlanes(const int16_t *in, size_t count, int16_t *high, int16_t *low) {
  for (size_t i = 0; i < count; ++i) {
    low[i] = in[i] & 255;
    high[i] = in[i] >> 8;
  }
}

/// [64][block] to [block/2][64][2]: a transpose of 32-bit words.
void pairColumns(const int16_t *in, int block, int16_t *out) {
  int words = block / 2;
#if defined(__x86_64__)
  for (int n = 0; n < kTileRuns; n += 4)
    for (int k = 0; k < words; k += 4) {
      __m128i row[4];
      for (int i = 0; i < 4; ++i)
        row[i] = _mm_loadu_si128(reinterpret_cast<const __m128i *>(in + ptrdiff_t(n + i) * block + 2 * k));
      __m128i low01 = _mm_unpacklo_epi32(row[0], row[1]);
      __m128i low23 = _mm_unpacklo_epi32(row[2], row[3]);
      __m128i high01 = _mm_unpackhi_epi32(row[0], row[1]);
      __m128i high23 = _mm_unpackhi_epi32(row[2], row[3]);
      __m128i column[4] = {_mm_unpacklo_epi64(low01, low23), _mm_unpackhi_epi64(low01, low23),
                           _mm_unpacklo_epi64(high01, high23), _mm_unpackhi_epi64(high01, high23)};
      for (int i = 0; i < 4; ++i)
        _mm_storeu_si128(reinterpret_cast<__m128i *>(out + ptrdiff_t(k + i) * 2 * kTileRuns + 2 * n), column[i]);
    }
#else
  for (int n = 0; n < kTileRuns; ++n)
    for (int k = 0; k < words; ++k)
      std::memcpy(out + (ptrdiff_t(k) * kTileRuns + n) * 2, in + ptrdiff_t(n) * block + 2 * k, 2 * sizeof *in);
#endif
}

/// One operand, unpacked: mantissas [leaf][run][block], exponents [leaf][run].
struct Operand {
  std::vector<int16_t> mantissas;
  std::vector<uint8_t> exponents;
  std::vector<float> scales;
  ExponentRange range;

  /// `runs` has [tile][run], null pointers for zeros.
  void unpack(const TileShape &shape, std::span<const TileRun> runs, int runsPerTile) {
    int block = shape.format.block, precision = shape.format.precision;
    int blocks = shape.blocksPerRun(), blockBytes = block * precision / 8;
    size_t tiles = runs.size() / runsPerTile;
    mantissas.resize(runs.size() * blocks * block);
    exponents.resize(runs.size() * blocks);
    range = {};
    size_t entry = 0;
    for (size_t tile = 0; tile < tiles; ++tile)
      for (int b = 0; b < blocks; ++b)
        for (int r = 0; r < runsPerTile; ++r, ++entry) {
          const TileRun &run = runs[tile * runsPerTile + r];
          int16_t *m = mantissas.data() + entry * block;
          if (!run.mantissas) {
            std::fill_n(m, block, int16_t(0));
            exponents[entry] = 0;
            continue;
          }
          exponents[entry] = static_cast<uint8_t>(run.scales[b]);
          unpackMantissas(run.mantissas + b * blockBytes, block, precision, m);
          range.add(exponents[entry], m, block);
        }
  }

  void computeScales(int bias) {
    scales.resize(exponents.size());
    for (size_t i = 0; i < exponents.size(); ++i)
      scales[i] = scaleOf(exponents[i], bias);
  }
};

TileKernel kernelOf(SimdLevel level) {
  switch (level) {
#if defined(__x86_64__)
  case SimdLevel::Avx2:
    return tileKernelAvx2;
  case SimdLevel::Avx512:
    return tileKernelAvx512;
  case SimdLevel::Avx512Vnni:
    return tileKernelAvx512Vnni;
#endif
  default:
    return tileKernelPortable;
  }
}

/// The definition, element by element, for exponents near the ends of f32.
void multiplyExactly(const TileProduct &product, const Operand &a, const Operand &w, size_t leaves, float *sums,
                     ptrdiff_t sumStride) {
  size_t block = product.weight.format.block;
  auto view = [&](const Operand &operand, size_t entry, int precision) {
    return BlockView{operand.exponents[entry], {operand.mantissas.data() + entry * block, block}, precision};
  };
  std::vector<float> partials(leaves);
  for (int r = 0; r < product.rows; ++r)
    for (int n = 0; n < kTileRuns; ++n) {
      for (size_t leaf = 0; leaf < leaves; ++leaf)
        partials[leaf] = partialToF32(dotBlocks(view(a, leaf * product.rows + r, product.activation.format.precision),
                                                view(w, leaf * kTileRuns + n, product.weight.format.precision)));
      float reduced = roundSum(reducePartials(partials));
      float &out = sums[r * sumStride + n];
      out = product.accumulate ? addToSum(out, reduced) : reduced;
    }
}

} // namespace

const char *nameOf(SimdLevel level) {
  constexpr const char *kNames[kSimdLevels] = {"portable", "avx2", "avx512", "avx512vnni"};
  return kNames[static_cast<int>(level)];
}

bool isSupported(SimdLevel level) {
  if (level == SimdLevel::Portable)
    return true;
#if defined(__x86_64__)
  if (level == SimdLevel::Avx2)
    return __builtin_cpu_supports("avx2");
  bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return avx512 && (level == SimdLevel::Avx512 || __builtin_cpu_supports("avx512vnni"));
#else
  return false;
#endif
}

SimdLevel bestSimdLevel() {
  for (int level = kSimdLevels - 1; level > 0; --level)
    if (isSupported(static_cast<SimdLevel>(level)))
      return static_cast<SimdLevel>(level);
  return SimdLevel::Portable;
}

MaybeError checkTileProduct(const TileProduct &product, size_t tiles) {
  const BlockFormat &a = product.activation.format, &w = product.weight.format;
  std::string formats = nameOf(a) + " x " + nameOf(w);
  auto isNarrow = [](int p) { return p == 4 || p == 8; };
  bool known = a.kind == FormatKind::Bfp && w.kind == FormatKind::Bfp &&
               ((isNarrow(a.precision) && isNarrow(w.precision)) || (a.precision == 16 && w.precision == 16));
  if (!known)
    return "the array has no product " + formats + "; cast the operands to BFP16, BFP12 or BFP24";
  if (a.block != w.block || product.activation.depth != product.weight.depth)
    return "the operands of " + formats + " need the same block size and tile depth";
  std::string error;
  if (!makeTileShape(a, product.activation.depth, error) || !makeTileShape(w, product.weight.depth, error))
    return error;
  if (product.rows < 1 || product.rows > kMaxProductRows)
    return "a product has 1 to " + std::to_string(kMaxProductRows) + " rows, not " + std::to_string(product.rows);
  if (tiles < 1 || tiles > kMaxProductTiles)
    return "a product has 1 to " + std::to_string(kMaxProductTiles) + " tiles along K, not " + std::to_string(tiles);
  return std::nullopt;
}

struct TileMatmul::Scratch {
  Operand a, w;
  std::vector<TileRun> aRuns, wRuns;
  std::vector<int16_t> aPlanes, wPlanes, paired;

  /// p = 16: both operands by bytes.
  void split(TileOperands &operands) {
    size_t aSize = a.mantissas.size(), wSize = w.mantissas.size();
    aPlanes.resize(2 * aSize);
    wPlanes.resize(2 * wSize);
    splitPlanes(operands.a, aSize, aPlanes.data(), aPlanes.data() + aSize);
    splitPlanes(operands.w, wSize, wPlanes.data(), wPlanes.data() + wSize);
    operands.planes = 2;
    operands.a = aPlanes.data();
    operands.w = wPlanes.data();
  }

  void pair(TileOperands &operands) {
    size_t size = operands.planes * w.mantissas.size();
    size_t leafSize = size_t(kTileRuns) * operands.block;
    paired.resize(size);
    for (size_t at = 0; at < size; at += leafSize)
      pairColumns(operands.w + at, operands.block, paired.data() + at);
    operands.paired = true;
    operands.w = paired.data();
  }
};

TileMatmul::TileMatmul(SimdLevel level)
    : level(isSupported(level) ? level : SimdLevel::Portable), scratch(std::make_unique<Scratch>()) {}
TileMatmul::~TileMatmul() = default;
TileMatmul::TileMatmul(TileMatmul &&) noexcept = default;
TileMatmul &TileMatmul::operator=(TileMatmul &&) noexcept = default;

MaybeError TileMatmul::run(const TileProduct &product, std::span<const std::byte *const> activations,
                           std::span<const std::byte *const> weights, float *sums, ptrdiff_t sumStride) {
  // Nothing of the tiles is touched before runRows has checked the product.
  std::vector<TileRun> &rows = scratch->aRuns;
  rows.clear();
  if (product.rows > kTileRuns)
    return "a tile has 64 rows, not " + std::to_string(product.rows);
  if (!checkTileProduct(product, weights.size()))
    for (const std::byte *tile : activations)
      for (int r = 0; r < product.rows; ++r)
        rows.push_back(runOf(product.activation, tile, r));
  return runRows(product, rows, weights, sums, sumStride);
}

MaybeError TileMatmul::runRows(const TileProduct &product, std::span<const TileRun> activations,
                               std::span<const std::byte *const> weights, float *sums, ptrdiff_t sumStride) {
  if (MaybeError error = checkTileProduct(product, weights.size()))
    return error;
  if (activations.size() != weights.size() * product.rows)
    return "each weight tile needs its activation rows";
  std::vector<TileRun> &columns = scratch->wRuns;
  columns.clear();
  for (const std::byte *tile : weights)
    for (int n = 0; n < kTileRuns; ++n)
      columns.push_back(runOf(product.weight, tile, n));
  scratch->a.unpack(product.activation, activations, product.rows);
  scratch->w.unpack(product.weight, columns, kTileRuns);
  int leaves = static_cast<int>(weights.size()) * product.weight.blocksPerRun();
  multiply(product, leaves, sums, sumStride);
  return std::nullopt;
}

void TileMatmul::multiply(const TileProduct &product, int leaves, float *sums, ptrdiff_t sumStride) {
  Operand &a = scratch->a, &w = scratch->w;
  int bias = exponentBias(product);
  if (!isFastRange(a.range, w.range, bias))
    return multiplyExactly(product, a, w, leaves, sums, sumStride);
  a.computeScales(127);
  w.computeScales(bias - 127);
  TileOperands operands;
  operands.rows = product.rows;
  operands.leaves = leaves;
  operands.block = product.weight.format.block;
  operands.a = a.mantissas.data();
  operands.w = w.mantissas.data();
  operands.aScale = a.scales.data();
  operands.wScale = w.scales.data();
  operands.accumulate = product.accumulate;
  operands.sums = sums;
  operands.sumStride = sumStride;
  if (product.weight.format.precision == 16)
    scratch->split(operands);
  // For one or two rows, pairing costs more than it gains.
  if (level != SimdLevel::Portable && product.rows > 2)
    scratch->pair(operands);
  kernelOf(level)(operands);
}

} // namespace dmx::blockfp
