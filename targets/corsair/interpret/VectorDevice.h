//===- VectorDevice.h - what the vector device computes ---------*- C++ -*-===//
#pragma once

#include "View.h"

#include "mlir/IR/Operation.h"

namespace dmxc::corsair::stages {

/// A function of single elements, or of rows of one dim, whose operands are broadcast to the result.
struct Mapped {
  hw::SimdFunction function = hw::SimdFunction::Copy;
  float imm0 = 0, imm1 = 0;
  int64_t inner = 0; ///< dims of a row
};
Status mapped(const Mapped &op, const View &out, llvm::ArrayRef<View> inputs);
Status filled(const View &out, double value);

/// A function of rows along some dims, which a reduction leaves out of its result or keeps with one element. The
/// elements of a row follow one another as they lie in memory.
Status rows(hw::SimdFunction function, const View &input, const View &out, llvm::ArrayRef<int64_t> axes, float imm0);

/// "softmax" and "causal_mask" of which a mask keeps columns: `row` is which of all rows the first one is. Of a folded
/// buffer of 2 n rows those from the middle on begin at `folded` - n - `row`.
struct Masked {
  bool weighs = false; ///< softmax
  std::optional<int64_t> upper, lower;
  int64_t row = 0;
  std::optional<int64_t> folded;
  float fill = 0;
};
Status masked(const Masked &op, const View &input, const View &out);

/// What an op of DMIR is on the device, by its name and attributes: a function of elements, rows or windows.
Status vectorOp(mlir::Operation *named, const View &out, llvm::ArrayRef<View> inputs);

/// Rows of `data` along an axis, by index; an index beyond it is an error.
Status gathered(const View &data, const View &indices, const View &out, int64_t axis);
/// `updates` over rows of `out`, by the indices along an axis of the first of the other elements.
Status scattered(const View &updates, const View &indices, const View &out, int64_t axis);
/// Parts along the first dim, added in order in f32.
Status summed(const View &parts, const View &out);

} // namespace dmxc::corsair::stages
