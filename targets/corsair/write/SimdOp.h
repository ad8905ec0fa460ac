//===- SimdOp.h - one EXEC_SIMD over strided tensors ------------*- C++ -*-===//
#pragma once

#include "DeviceTensor.h"
#include "Window.h"

namespace dmxc::corsair {

/// An operand of a SIMD function, with a stride for each dim of the op.
struct SimdOperand {
  hw::ElemKind kind = hw::ElemKind::F16;
  Address address;
  llvm::SmallVector<int64_t> strides;
};

/// A function over a space of any number of dims. The emitter joins dims, puts the rest into loops, and shares the
/// largest dim among the slices.
struct SimdOp {
  hw::SimdFunction function;
  llvm::SmallVector<int64_t> dims;
  unsigned inner = 0; ///< the innermost dims that make a row; 0 for elementwise functions
  SimdOperand result;
  llvm::SmallVector<SimdOperand, 3> sources;
  float imm0 = 0, imm1 = 0;
  int64_t index = 0;
  std::optional<Window> window; ///< its dims have meanings of their own
  bool countPadding = false;    ///< in the divisor of an average

  /// An operand that is a tensor with the op's dims (right-aligned broadcast).
  static SimdOperand operand(const DeviceTensor &tensor, llvm::ArrayRef<int64_t> dims);
};

/// Writes the op. A row of more than four dims that do not join is not emitted: false.
[[nodiscard]] bool emitSimd(Program &program, SimdOp op, int sliceCount);

} // namespace dmxc::corsair
