//===- Contraction.h - matmul and conv as products of matrices --*- C++ -*-===//
#pragma once

#include "targets/common/element/ElementExpr.h"
#include "targets/common/element/StridedView.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

namespace dmxc::kernels {

/// What a convolution multiplies its weights with: a column for each output pixel, whose terms are the taps of the
/// channels of a group, in the weights' order. They are read out of the image, over and over where windows overlap.
struct Windows {
  struct Axis {
    Dim in, out, taps;
    int64_t stride, dilation;
    Dim low;   ///< zeros before the image; what is behind it is zero as well
    Dim apart; ///< elements from a pixel of the image to the next
  };
  llvm::SmallVector<Axis> axes; ///< spatial, the outermost first
  Dim channels;                 ///< of a group
  Dim channelsApart;            ///< elements from one to the next

  /// Whether a column is a pixel of the image, and the columns are all of them, one after the other in memory.
  bool areImage() const;
};

/// Sizes of a product of matrices, and where in memory its operands lie: of a dmir.matmul, or of a dmir.conv, whose
/// left operand are the weights (a row an output of a group), whose right one are windows, and whose batch dims are the
/// images and, where there are several, the groups.
struct Contraction {
  mlir::Operation *op;
  Dim batch = 1, m, n, k;
  llvm::SmallVector<Dim> batchDims;
  /// Batch dims are part of m: the right operand has none.
  bool joined = false;
  std::optional<StridedView> lhs, rhs;        ///< of a convolution: of the weights and the image
  llvm::SmallVector<Dim> lhsBatch, rhsBatch;  ///< strides of the batch axes, 0 where broadcast
  Dim lhsRow = 0;                             ///< stride of the rows, joined or not
  bool unclear = false;                       ///< whether a batch axis is broadcast is known at run time only
  mlir::Type element, lhsElement, rhsElement; ///< of the result and of the operands
  std::optional<Windows> windows;             ///< of a convolution

  /// `throughCasts`: operands may be cast on the way from memory.
  explicit Contraction(dmir::MatMulOp op, bool throughCasts = false);
  /// Of operands that lie so; null: in no buffer.
  Contraction(dmir::MatMulOp op, std::optional<StridedView> lhs, std::optional<StridedView> rhs);
  explicit Contraction(dmir::ConvOp op);
  /// Whether an op is one of these.
  static bool is(mlir::Operation *op) { return llvm::isa<dmir::MatMulOp, dmir::ConvOp>(op); }
  static Contraction of(mlir::Operation *op);

  mlir::Value result() const { return op->getResult(0); }
  /// Makes batch dims rows, where one right operand is for all batch items and rows of the left one are equally far
  /// apart through all of them.
  void joinRows();
  /// The index in the result of row `m` of a batch item, all but its column. `rowAxis` carries the row through joined
  /// batch items, where what follows allows that (joinedAxis).
  Indices rowIndex(ElementExpr &e, std::optional<unsigned> rowAxis, mlir::Value item, mlir::Value m) const;
  /// That index with the column behind it: of a convolution a pixel.
  Indices withColumn(ElementExpr &e, llvm::ArrayRef<Index> row, Index column) const;

private:
  llvm::SmallVector<Dim> batchStrides(const StridedView &view, mlir::Value operand);
  void placeWeights(dmir::ConvOp conv);
  void placeImage(dmir::ConvOp conv);
  bool joinsRows() const;
};

} // namespace dmxc::kernels
