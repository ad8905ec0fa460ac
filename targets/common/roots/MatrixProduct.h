//===- MatrixProduct.h - a dmir.matmul as products of matrices --*- C++ -*-===//
#pragma once

#include "targets/common/element/ElementExpr.h"
#include "targets/common/element/StridedView.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

namespace dmxc::kernels {

/// Sizes of a product, and where in memory its operands lie.
struct MatrixProduct {
  mutable dmir::MatMulOp op; ///< a handle, whose accessors are not const
  Dim batch = 1, m, n, k;
  llvm::SmallVector<Dim> batchDims;
  /// Batch dims are part of m: the right operand has none.
  bool joined = false;
  std::optional<StridedView> lhs, rhs;
  llvm::SmallVector<Dim> lhsBatch, rhsBatch;  ///< strides of the batch axes, 0 where broadcast
  Dim lhsRow = 0;                             ///< stride of the rows, joined or not
  bool unclear = false;                       ///< whether a batch axis is broadcast is known at run time only
  mlir::Type element, lhsElement, rhsElement; ///< of the result and of the operands

  /// `throughCasts`: operands may be cast on the way from memory.
  explicit MatrixProduct(dmir::MatMulOp op, bool throughCasts = false);
  /// Makes batch dims rows, where one right operand is for all batch items and rows of the left one are equally far
  /// apart through all of them.
  void joinRows();
  /// The index in the result of row `m` of a batch item, all but its column. `rowAxis` carries the row through joined
  /// batch items, where what follows allows that (joinedAxis).
  Indices rowIndex(ElementExpr &e, std::optional<unsigned> rowAxis, mlir::Value item, mlir::Value m) const;

private:
  llvm::SmallVector<Dim> batchStrides(const StridedView &view, mlir::Value operand);
  bool joinsRows() const;
};

} // namespace dmxc::kernels
