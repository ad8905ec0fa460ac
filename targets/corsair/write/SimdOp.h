//===- SimdOp.h - one EXEC_SIMD over strided tensors ------------*- C++ -*-===//
#pragma once

#include "DeviceTensor.h"

#include "schemas/corsair/simd/SimdJob.h"

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
  Address index;       ///< a number, of no buffer
  bool causal = false; ///< `index` counts from the row on, the last dim but one; both stay apart from the others
  std::optional<hw::Window> window; ///< its dims have meanings of their own
  bool countPadding = false;        ///< in the divisor of an average

  std::optional<Address> count = {}; ///< instead of the first of the dims, which stays apart: a number of no buffer

  /// Its rows and columns are the last two dims, and `index` counts from the row on; `turned`: both from the last on.
  void countFromRow(bool turned);
  /// Ends at so many times `columns` of the last of two dims.
  void limitColumns(int64_t columns, const Address &times);

  /// An operand that is a tensor with the op's dims (right-aligned broadcast).
  static SimdOperand operand(const DeviceTensor &tensor, llvm::ArrayRef<int64_t> dims);
};

/// A window as the clause of a task.
mlir::DictionaryAttr windowClause(mlir::Builder &builder, const hw::Window &window);
/// Writes an op of four dims of which the slices of a mask share the first, if there are several.
void emitShared(const QueueWriter &queue, const SimdOp &op, int mask);
/// Writes the op. A row of more than four dims that do not join is not emitted: false.
[[nodiscard]] bool emitSimd(Program &program, SimdOp op, int sliceCount);

} // namespace dmxc::corsair
