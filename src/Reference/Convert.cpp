//===- Convert.cpp - element conversions ----------------------------------===//
#include "Convert.h"
#include "Evaluator.h"

#include "dmxc/Support/Half.h"

#include "llvm/Support/ErrorHandling.h"

#include <bit>
#include <cmath>
#include <vector>

namespace dmxc::reference {

uint16_t floatToBfloat(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return static_cast<uint16_t>((bits >> 16 & 0x8000) | 0x7fc0);
  // Adding just under half an ulp, and one more if the kept part is odd, rounds to even and carries into infinity.
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

uint16_t floatToHalf(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint16_t sign = bits >> 16 & 0x8000;
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return sign | 0x7e00;
  if (magnitude >= 0x47800000) // 65536 and above, infinity too; 65520 .. 65536 get there by carrying below
    return sign | 0x7c00;
  if (magnitude < 0x38800000) {
    // Subnormal: with 0.5 added, the unit in the last place of the float is 2^-24, that of f16's subnormals.
    float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return sign | static_cast<uint16_t>(std::bit_cast<uint32_t>(shifted) - 0x3f000000);
  }
  uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return sign | static_cast<uint16_t>((rounded - 0x38000000) >> 13);
}

const float *halfTable() {
  static const std::vector<float> table = [] {
    std::vector<float> values(65536);
    for (uint32_t i = 0; i < 65536; ++i)
      values[i] = halfToFloat(static_cast<uint16_t>(i));
    return values;
  }();
  return table.data();
}

double toDoubleSticky(uint64_t value) {
  if (value < uint64_t(1) << 53)
    return static_cast<double>(value);
  return static_cast<double>((value >> 11 | ((value & 0x7ff) != 0)) << 11);
}

double toDoubleSticky(int64_t value) {
  return value < 0 ? -toDoubleSticky(uint64_t(0) - static_cast<uint64_t>(value))
                   : toDoubleSticky(static_cast<uint64_t>(value));
}

DType nativeType(DType type, Mode mode) {
  if (mode == Mode::Raw)
    return type;
  if (isPacked(type)) {
    if (mode == Mode::Movement)
      return DType::U8;
    return isSignedInt(type) ? DType::I8 : isUnsignedInt(type) ? DType::U8 : DType::F32;
  }
  if (mode == Mode::Arithmetic && isFloat(type) && type != DType::F64)
    return DType::F32;
  return type;
}

namespace {

/// Values of a type whose elements are bytes or nibbles, by bit pattern.
std::vector<float> narrowTable(DType type) {
  std::vector<float> values(size_t(1) << dtypeBits(type));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = narrowToFloat(type, static_cast<uint8_t>(i));
  return values;
}

void widenFloats(const Tensor &tensor, float *out) {
  int64_t count = tensor.numElements();
  switch (tensor.dtype()) {
  case DType::F16: {
    const float *table = halfTable();
    const uint16_t *in = tensor.as<uint16_t>();
    for (int64_t i = 0; i < count; ++i)
      out[i] = table[in[i]];
    return;
  }
  case DType::BF16: {
    const uint16_t *in = tensor.as<uint16_t>();
    for (int64_t i = 0; i < count; ++i)
      out[i] = bfloatToFloat(in[i]);
    return;
  }
  default: {
    std::vector<float> table = narrowTable(tensor.dtype());
    bool packed = isPacked(tensor.dtype());
    for (int64_t i = 0; i < count; ++i)
      out[i] = table[packed ? packedBits(tensor.dtype(), tensor.data(), i) : tensor.as<uint8_t>()[i]];
  }
  }
}

void narrowFloats(const float *in, Tensor &out) {
  int64_t count = out.numElements();
  uint16_t *bits = out.as<uint16_t>();
  if (out.dtype() == DType::F16) {
    for (int64_t i = 0; i < count; ++i)
      bits[i] = floatToHalf(in[i]);
  } else if (out.dtype() == DType::BF16) {
    for (int64_t i = 0; i < count; ++i)
      bits[i] = floatToBfloat(in[i]);
  } else {
    // Overflow saturates, as in a cast; but an infinity stays one where there is one, so that -x, |x| and max are
    // right.
    for (int64_t i = 0; i < count; ++i)
      if (out.dtype() == DType::F8E5M2 && std::isinf(in[i]))
        out.as<uint8_t>()[i] = doubleToNarrow(DType::F8E5M2, in[i], false);
      else
        out.setDouble(i, in[i]);
  }
}

} // namespace

Tensor toNative(const Tensor &tensor, Mode mode) {
  DType native = nativeType(tensor.dtype(), mode);
  if (native == tensor.dtype())
    return tensor;
  Tensor result(native, tensor.shape());
  if (native == DType::F32) {
    widenFloats(tensor, result.as<float>());
    return result;
  }
  bool extendSign = native == DType::I8;
  uint8_t *out = result.as<uint8_t>();
  for (int64_t i = 0, count = tensor.numElements(); i < count; ++i) {
    uint8_t bits = packedBits(tensor.dtype(), tensor.data(), i);
    out[i] = extendSign ? static_cast<uint8_t>(signExtended(tensor.dtype(), bits)) : bits;
  }
  return result;
}

Tensor fromNative(const Tensor &tensor, DType target, Mode mode) {
  if (tensor.dtype() == target)
    return tensor;
  Tensor result(target, tensor.shape());
  if (tensor.dtype() == DType::F32) {
    narrowFloats(tensor.as<float>(), result);
    return result;
  }
  const uint8_t *in = tensor.as<uint8_t>();
  for (int64_t i = 0, count = tensor.numElements(); i < count; ++i)
    setPackedBits(target, result.mutableData(), i, in[i]);
  return result;
}

} // namespace dmxc::reference
