//===- Contraction.h - matmul and conv as products of matrices --*- C++ -*-===//
#pragma once

#include "targets/common/element/ElementExpr.h"
#include "targets/common/element/StridedView.h"
#include "targets/common/roots/windows/Window.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

namespace dmxc::kernels {

/// What a convolution multiplies its weights with: a column for each output pixel, whose terms are the taps of the
/// channels of a group, in the weights' order. They are read out of the image, over and over where windows overlap.
struct Windows {
  using Axis = WindowAxis;
  llvm::SmallVector<Axis> axes; ///< spatial, the outermost first; what is not in the image is zero
  Dim channels;                 ///< of a group
  Dim channelsApart;            ///< elements from one to the next

  /// Whether a column is a pixel of the image, and the columns are all of them, one after the other in memory.
  bool areImage() const;
};

/// Sizes of a product of matrices: C[batch][m][n] = sum over k of A[batch][m][k] * B[batch][k][n].
struct ContractionSizes {
  Dim batch = 1, m = 0, n = 0, k = 0;

  /// What the model asks for: none of what tiles are filled up with.
  Dim multiplyAdds() const { return batch * m * n * k; }
};

/// Sizes of a product of matrices, and where in memory its operands lie: of a dmir.matmul, or of a dmir.conv, whose
/// left operand are the weights (a row an output of a group), whose right one are windows, and whose batch dims are the
/// images and, where there are several, the groups.
struct Contraction : ContractionSizes {
  mlir::Operation *op;
  llvm::SmallVector<Dim> batchDims;
  /// Batch dims are part of m: the right operand has none.
  bool joined = false;
  std::optional<StridedView> lhs, rhs;        ///< of a convolution: of the weights and the image
  llvm::SmallVector<Dim> lhsBatch, rhsBatch;  ///< strides of the batch axes, 0 where broadcast
  Dim lhsRow = 0;                             ///< stride of the rows, joined or not
  bool unclear = false;                       ///< whether a batch axis is broadcast is known at run time only
  mlir::Type element, lhsElement, rhsElement; ///< of the result and of the operands
  std::optional<Windows> windows;             ///< of a convolution; places in memory are those of `rhs`

  /// `throughCasts`: operands may be cast on the way from memory.
  explicit Contraction(dmir::MatMulOp op, bool throughCasts = false);
  /// Of operands that lie so; null: in no buffer.
  Contraction(dmir::MatMulOp op, std::optional<StridedView> lhs, std::optional<StridedView> rhs);
  explicit Contraction(dmir::ConvOp op);
  /// Of rows in groups: batch counts the matrices on the right, each of which some of all m rows meet.
  explicit Contraction(dmir::GroupedMatMulOp op);
  /// Of operands as if each lay in a buffer of its own, in row-major order, whatever computes it and whatever layout
  /// others would like it to have.
  static Contraction ofWhole(mlir::Operation *op);
  /// Whether an op is one of these.
  static bool is(mlir::Operation *op) { return llvm::isa<dmir::MatMulOp, dmir::ConvOp>(op); }
  static Contraction of(mlir::Operation *op);
  /// The axis of its result along which its outputs lie: columns of a matrix, channels of an image.
  static int64_t outputAxis(mlir::Operation *product);

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
  void place(std::optional<StridedView> left, std::optional<StridedView> right);
  void placeWeights(dmir::ConvOp conv, const StridedView &view);
  void placeImage(dmir::ConvOp conv);
  bool joinsRows() const;
};

/// How the elements of an operand meet those of a product's result: one for all of them, one an output of the product,
/// or in another way.
enum class Spread : uint8_t { One, Outputs, Otherwise };
Spread spreadOver(mlir::Operation *product, mlir::Value operand);

/// An op behind a product, and what it takes.
struct Follower {
  mlir::Operation *op;
  mlir::Value value; ///< the product's, or what the follower before makes of it
  mlir::Value other; ///< of an op of two operands
};
/// A product and what follows it, each op the one reader of the one before.
struct Chain {
  mlir::Operation *product;
  llvm::SmallVector<Follower> followers;

  /// `op` reads `value`, the last one's.
  void add(mlir::Operation *op, mlir::Value value);
};
/// The chain that ends with a value, of ops for which `computes` is true of the chain up to them; nullopt where there
/// is none. An op without readers is one that a formula may become: the formula's ops read what it reads, too.
std::optional<Chain> chainTo(mlir::Value value, llvm::function_ref<bool(const Chain &)> computes);

} // namespace dmxc::kernels
