//===- BlockRounding.cpp - floats as integers with a scale a block --------===//

#include "dmxc/Support/BlockRounding.h"

#include "dmxc/Support/Half.h"
#include "dmxc/Support/RoundingError.h"

#include <algorithm>
#include <cmath>

using namespace dmxc;

namespace {

constexpr int64_t kMostBlock = 256;

/// To nearest, ties to even, of what is below 2^51: without a call a number.
double nearest(double x) {
  constexpr double shift = 6755399441055744.0; // 1.5 * 2^52
  return (x + shift) - shift;
}

float readFloat(const Tensor &numbers, int64_t i) {
  if (numbers.dtype() == DType::F32)
    return numbers.as<float>()[i];
  uint16_t bits = numbers.as<uint16_t>()[i];
  return numbers.dtype() == DType::F16 ? halfToFloat(bits) : bfloatToFloat(bits);
}

/// The integers of a block, in `codes`, and what they are multiples of.
struct Block {
  float scale = 0;
  int zero = 0;
  int codes[kMostBlock];
};

class Rounder {
public:
  Rounder(const Tensor &numbers, int64_t axis, const BlockRounding &rounding)
      : numbers(numbers), rounding(rounding), rank(numbers.rank()) {
    const Shape &shape = numbers.shape();
    rows = shape[rank - 2], columns = shape[rank - 1];
    matrices = rows * columns ? numbers.numElements() / (rows * columns) : 0;
    alongRows = axis == rank - 1;
    k = alongRows ? columns : rows, n = alongRows ? rows : columns;
    strideK = alongRows ? 1 : columns, strideN = alongRows ? columns : 1;
    blocks = (k + rounding.block - 1) / rounding.block;
  }

  std::optional<RoundedBlocks> run() {
    // Lines of k are words of a column, which packs fastest and suits rows that are gathered.
    const bool wholeLines = k * rounding.bits % 8 == 0, wholeCrosses = n * rounding.bits % 8 == 0;
    if ((!wholeLines && !wholeCrosses) || matrices == 0 || rounding.block > kMostBlock)
      return std::nullopt;
    std::optional<float> most = greatest();
    if (!most)
      return std::nullopt;
    lines = wholeLines;
    makeTensors(*most);
    const int64_t outer = strideK == 1 ? n : blocks, inner = strideK == 1 ? blocks : n;
    for (int64_t matrix = 0; matrix < matrices; ++matrix)
      for (int64_t i = 0; i < outer; ++i)
        for (int64_t j = 0; j < inner; ++j)
          roundBlock(matrix, strideK == 1 ? i : j, strideK == 1 ? j : i);
    result.error = error.relative();
    return std::move(result);
  }

private:
  /// nullopt where a number is not finite.
  std::optional<float> greatest() const {
    float most = 0;
    bool finite = true;
    for (int64_t i = 0, count = numbers.numElements(); i < count; ++i) {
      float x = std::abs(readFloat(numbers, i));
      finite &= x <= std::numeric_limits<float>::max();
      most = std::max(most, x);
    }
    return finite ? std::optional(most) : std::nullopt;
  }

  void makeTensors(float most) {
    // The greatest scale: where it is a normal f16 the smaller ones lose no more than it has itself.
    const double greatestScale = most / (rounding.bits == 8 ? 127.0 : 7.5);
    halfScales = most == 0 || (greatestScale >= 0x1p-14 && greatestScale <= 65504);
    result.turned = lines != alongRows;
    result.axis = lines ? rank - 1 : rank - 2;
    auto shaped = [&](DType type, int64_t along, int64_t across, int64_t bits) {
      Shape shape = numbers.shape();
      shape[rank - 2] = lines ? across : along;
      shape[rank - 1] = ((lines ? along : across) * bits + 7) / 8;
      return Tensor(type, shape);
    };
    result.codes = shaped(rounding.isSigned() ? DType::I8 : DType::U8, k, n, rounding.bits);
    result.scales = shaped(halfScales ? DType::F16 : DType::F32, blocks, n, 8);
    if (rounding.zeroPoints)
      result.zeros = shaped(DType::U8, blocks, n, rounding.bits);
  }

  void roundBlock(int64_t matrix, int64_t row, int64_t block) {
    float values[kMostBlock];
    const int64_t first = block * rounding.block, count = std::min(rounding.block, k - first);
    const int64_t base = matrix * k * n + row * strideN + first * strideK;
    for (int64_t i = 0; i < count; ++i)
      values[i] = readFloat(numbers, base + i * strideK);
    Block made;
    choose(values, count, made);
    const double scale = made.scale, low = rounding.isSigned() ? -127 : 0;
    const double high = rounding.isSigned() ? 127 : (1 << rounding.bits) - 1;
    for (int64_t i = 0; i < count; ++i) {
      double q = scale == 0 ? 0 : nearest(values[i] / scale);
      double kept = std::clamp(q + made.zero, low, high);
      made.codes[i] = static_cast<int>(kept);
      error.add(values[i], (kept - made.zero) * scale);
    }
    store(matrix, row, block, count, made);
  }

  float roundedScale(double scale) const {
    return halfScales ? halfToFloat(doubleToHalf(scale)) : static_cast<float>(scale);
  }

  void choose(const float *values, int64_t count, Block &made) const {
    if (rounding.zeroPoints) {
      const float low = std::min(0.0f, *std::min_element(values, values + count));
      const float high = std::max(0.0f, *std::max_element(values, values + count));
      const double steps = (1 << rounding.bits) - 1;
      made.scale = roundedScale((static_cast<double>(high) - low) / steps);
      made.zero = made.scale == 0
                      ? 0
                      : static_cast<int>(std::clamp(nearest(-low / static_cast<double>(made.scale)), 0.0, steps));
      return;
    }
    float extreme = 0;
    for (int64_t i = 0; i < count; ++i)
      if (std::abs(extreme) < std::abs(values[i]))
        extreme = values[i];
    made.zero = static_cast<int>(rounding.zero());
    made.scale =
        rounding.bits == 8 ? roundedScale(std::abs(static_cast<double>(extreme)) / 127) : roundedScale(extreme / -8.0);
  }

  void put(Tensor &to, int64_t matrix, int64_t along, int64_t across, int64_t depth, int64_t code) {
    const Shape &shape = to.shape();
    const int64_t lineBytes = shape[rank - 1], height = shape[rank - 2];
    const int64_t line = lines ? across : along, bit = (lines ? along : across) * depth;
    auto *byte = to.as<uint8_t>() + (matrix * height + line) * lineBytes + bit / 8;
    *byte = static_cast<uint8_t>(*byte | (code & ((1 << depth) - 1)) << bit % 8);
  }

  void store(int64_t matrix, int64_t row, int64_t block, int64_t count, const Block &made) {
    for (int64_t i = 0; i < count; ++i)
      put(result.codes, matrix, block * rounding.block + i, row, rounding.bits, made.codes[i]);
    if (rounding.zeroPoints)
      put(result.zeros, matrix, block, row, rounding.bits, made.zero);
    const int64_t at = matrix * blocks * n + (lines ? row * blocks + block : block * n + row);
    if (halfScales)
      result.scales.as<uint16_t>()[at] = doubleToHalf(made.scale);
    else
      result.scales.as<float>()[at] = made.scale;
  }

  const Tensor &numbers;
  const BlockRounding &rounding;
  const int64_t rank;
  int64_t rows, columns, matrices, k, n, strideK, strideN, blocks;
  bool alongRows;         ///< of the numbers, k runs along the last axis
  bool lines = true;      ///< of the result
  bool halfScales = true; ///< else f32
  RoundingError error;
  RoundedBlocks result;
};

} // namespace

int64_t RoundedBlocks::bytes() const {
  return static_cast<int64_t>(codes.byteSize() + scales.byteSize() + (zeros.empty() ? 0 : zeros.byteSize()));
}

std::optional<RoundedBlocks> dmxc::roundInBlocks(const Tensor &numbers, int64_t axis, const BlockRounding &rounding) {
  return Rounder(numbers, axis, rounding).run();
}
