//===- TestTensors.h - operands of kernel tests -----------------*- C++ -*-===//
#pragma once

#include "dmxc/Support/Tensor.h"

#include "mlir/IR/Builders.h"

#include <random>

namespace dmxc::cpu::test {

/// The signless MLIR type of a tensor's elements.
inline mlir::Type mlirType(mlir::Builder &b, DType type) {
  switch (type) {
  case DType::F16:
    return b.getF16Type();
  case DType::BF16:
    return b.getBF16Type();
  case DType::F32:
    return b.getF32Type();
  case DType::F64:
    return b.getF64Type();
  default:
    return b.getIntegerType(dtypeBits(type));
  }
}

/// Small values that every float type holds exactly; any value of 8-bit
/// integers.
inline Tensor randomTensor(DType type, Shape shape, uint64_t seed) {
  Tensor tensor(type, std::move(shape));
  std::mt19937_64 rng(seed);
  for (int64_t i = 0; i < tensor.numElements(); ++i) {
    if (isFloat(type))
      tensor.setDouble(i, (static_cast<int64_t>(rng() % 257) - 128) / 64.0);
    else
      tensor.setInt(i, static_cast<int64_t>(rng() % 256) - (isUnsignedInt(type) ? 0 : 128));
  }
  return tensor;
}

} // namespace dmxc::cpu::test
