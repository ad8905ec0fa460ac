//===- Dequantize.cpp - integers of few bits as floats, and floats as such ===//
#include "Evaluator.h"
#include "Strided.h"
#include "Types.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dmxc::reference {
namespace {

/// Integers that lie densely in the bytes of the last axis.
class PackedIntegers {
public:
  PackedIntegers(const Tensor &bytes, int64_t bits)
      : bytes(bytes.as<uint8_t>()), isSigned(bytes.dtype() == DType::I8), bits(bits),
        strides(stridesOf(bytes.shape())) {}

  int64_t at(std::span<const int64_t> index) const {
    int64_t byte = 0, last = index.back();
    for (size_t axis = 0; axis + 1 < index.size(); ++axis)
      byte += index[axis] * strides[axis];
    int64_t value = bytes[byte + last * bits / 8] >> last * bits % 8 & ((1 << bits) - 1);
    return isSigned && value >> (bits - 1) ? value - (int64_t(1) << bits) : value;
  }

private:
  const uint8_t *bytes;
  bool isSigned;
  int64_t bits;
  Strides strides;
};

template <typename T> void dequantize(const Call &call, dmir::DequantizeOp op, Tensor &result) {
  const Shape &shape = result.shape(), &scales = call.in[1].shape();
  const bool hasZeros = call.in.size() > 2, floatZeros = hasZeros && isFloat(call.in[2].dtype());
  PackedIntegers q(call.in[0], op.getBits());
  std::optional<PackedIntegers> zeros;
  if (hasZeros && !floatZeros)
    zeros.emplace(call.in[2], op.getBits());
  Strides strides = stridesOf(scales);
  const int64_t zero = static_cast<int64_t>(op.getZero());
  Shape index(shape.size(), 0), block = index;
  T *out = result.as<T>();
  for (int64_t i = 0, count = result.numElements(); i < count; ++i) {
    int64_t rest = i, at = 0;
    for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis]) {
      index[axis] = rest % shape[axis];
      block[axis] = axis == op.getAxis() ? index[axis] / op.getBlock() : index[axis];
      if (scales[axis] == 1)
        block[axis] = 0;
      at += block[axis] * strides[axis];
    }
    T value = static_cast<T>(q.at(index) - zero - (zeros ? zeros->at(block) : 0));
    if (floatZeros)
      value -= call.in[2].as<T>()[at];
    out[i] = value * call.in[1].as<T>()[at];
  }
}

Outputs evaluateDequantize(const Call &call) {
  auto op = llvm::cast<dmir::DequantizeOp>(call.op);
  Tensor result = call.makeResult();
  if (result.dtype() == DType::F64)
    dequantize<double>(call, op, result);
  else
    dequantize<float>(call, op, result);
  return one(std::move(result));
}

/// One block; every step is rounded to f32.
void roundBlock(std::span<const float> in, float *out) {
  float most = 0;
  for (float x : in)
    most = std::isfinite(x) ? std::max(most, std::abs(x)) : std::numeric_limits<float>::quiet_NaN();
  float scale = most / 127.0f;
  if (scale < std::numeric_limits<float>::min())
    scale = 0;
  for (size_t i = 0; i < in.size(); ++i)
    out[i] = scale == 0 ? 0 : std::nearbyint(in[i] / scale) * scale;
}

Outputs evaluateRoundBlocks(const Call &call) {
  Tensor result = call.makeResult();
  const auto block = static_cast<int64_t>(llvm::cast<dmir::RoundBlocksOp>(call.op).getBlock());
  const int64_t columns = result.shape().back(), count = result.numElements();
  for (int64_t row = 0; row < count; row += columns)
    for (int64_t at = 0; at < columns; at += block)
      roundBlock({call.in[0].as<float>() + row + at, static_cast<size_t>(std::min(block, columns - at))},
                 result.as<float>() + row + at);
  return one(std::move(result));
}

} // namespace

void addDequantize(Table &table) {
  table["dmir.dequantize"] = {evaluateDequantize, Mode::Arithmetic};
  table["dmir.round_blocks"] = {evaluateRoundBlocks, Mode::Arithmetic};
}

} // namespace dmxc::reference
