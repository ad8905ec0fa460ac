//===- Terms.h - sums of products of two operands' elements -----*- C++ -*-===//
#pragma once

#include "targets/common/element/ElementExpr.h"

namespace dmxc::kernels {

/// An accumulated value (f32, f64, i32, i64) as a tensor element is carried, rounded or wrapped once.
mlir::Value fromAccumulator(ElementExpr &e, mlir::Value value, mlir::Type element);

/// How an element of a product is summed: floats of 16 bits and fewer in f32, others in the result's own type.
class Terms {
public:
  using Value = mlir::Value;
  using Step = llvm::function_ref<Value(Value position, Value sum)>;

  /// `element` is the result's.
  Terms(ElementExpr &e, mlir::Type element) : e(e), b(e.builder()), element(element) {}

  Value zero() const { return b.constantInt(b.laneType(e.computed(element), e.lanes()), 0); }
  /// An operand's element, as it is summed.
  Value operand(Value tensor, llvm::ArrayRef<Index> index) const;
  /// sum + x * y
  Value add(Value sum, Value x, Value y) const;
  /// The sum of `count` terms, `step` by `step`. Many floats are summed in runs, whose sums are summed: a sum's
  /// rounding errors are those of its longest chain.
  Value sum(Value count, Dim known, Step step) const;
  /// The result's element, of its carried type.
  Value finish(Value sum) const { return fromAccumulator(e, sum, element); }

private:
  ElementExpr &e;
  KernelBuilder &b;
  mlir::Type element;
};

/// Terms of an element of a convolution, and the convolution's multiplications and additions.
Dim termsOfConvolution(mlir::Operation *op);
Dim operationsOfConvolution(mlir::Operation *op);

/// Multiplications and additions of a product whose elements have `terms` terms.
inline Dim productOperations(mlir::Operation *op, Dim terms) {
  return terms * 2 * dmir::elementsOf(op->getResult(0).getType());
}

} // namespace dmxc::kernels
