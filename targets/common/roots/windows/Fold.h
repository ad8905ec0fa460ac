//===- Fold.h - what a pooling makes of a window's values -------*- C++ -*-===//
#pragma once

#include "targets/common/element/ElementExpr.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

#include <limits>

namespace dmxc::kernels {

using Carried = llvm::SmallVector<mlir::Value>;

/// What the values of a window are folded to, one after the other: their sum, or the largest; NaN where there is one.
/// That is told apart, so that a step is one instruction.
class Fold {
public:
  /// Of elements of a type that are computed as another one. The average of integers divides the exact sum.
  Fold(KernelBuilder &b, dmir::Pooling kind, mlir::Type element, mlir::Type computed)
      : number(kind == dmir::Pooling::average && !mlir::isa<mlir::FloatType>(element) ? mlir::Type(b.getI64Type())
                                                                                      : computed),
        b(b), element(element), isMax(kind == dmir::Pooling::max), isFloat(mlir::isa<mlir::FloatType>(element)),
        isUnsigned(isUnsignedElement(element)) {}

  const mlir::Type number; ///< of what is folded

  Carried start(int64_t lanes) const {
    mlir::Type type = b.laneType(number, lanes);
    if (!isMax)
      return {b.constantInt(type, 0)};
    unsigned bits = element.getIntOrFloatBitWidth();
    if (!isFloat)
      return {b.constantInt(type, isUnsigned ? 0 : static_cast<int64_t>(uint64_t(1) << (bits - 1)))};
    return {b.constant(type, -std::numeric_limits<double>::infinity()),
            b.constantInt(b.laneType(b.getI1Type(), lanes), 0)};
  }
  Carried step(mlir::ValueRange c, mlir::Value value) const {
    if (isMax && isFloat) {
      mlir::Value larger = mlir::arith::CmpFOp::create(b, mlir::arith::CmpFPredicate::OGT, value, c[0]);
      mlir::Value isNaN = mlir::arith::CmpFOp::create(b, mlir::arith::CmpFPredicate::UNO, value, value);
      return {mlir::arith::SelectOp::create(b, larger, value, c[0]), mlir::arith::OrIOp::create(b, c[1], isNaN)};
    }
    if (isMax)
      return {emitMax(b, c[0], value, isUnsigned)};
    if (isFloat)
      return {mlir::arith::AddFOp::create(b, c[0], value)};
    mlir::Type type = c[0].getType();
    if (value.getType() != type)
      value = isUnsigned ? mlir::Value(mlir::arith::ExtUIOp::create(b, type, value))
                         : mlir::Value(mlir::arith::ExtSIOp::create(b, type, value));
    return {mlir::arith::AddIOp::create(b, c[0], value)};
  }
  mlir::Value end(mlir::ValueRange c) const {
    if (c.size() == 1)
      return c[0];
    mlir::Value nan = b.constant(c[0].getType(), std::numeric_limits<double>::quiet_NaN());
    return mlir::arith::SelectOp::create(b, c[1], nan, c[0]);
  }
  /// How many elements there are, of the type that is folded.
  mlir::Value count(mlir::Value elements) const {
    return isFloat ? mlir::Value(mlir::arith::SIToFPOp::create(b, number, elements)) : elements;
  }
  mlir::Value times(mlir::Value count, mlir::Value other) const {
    return isFloat ? mlir::Value(mlir::arith::MulFOp::create(b, count, other))
                   : mlir::Value(mlir::arith::MulIOp::create(b, count, other));
  }
  mlir::Value divided(mlir::Value sum, mlir::Value count) const {
    if (isFloat)
      return mlir::arith::DivFOp::create(b, sum, count);
    count = mlir::arith::MaxSIOp::create(b, count, b.constantInt(count.getType(), 1));
    return isUnsigned ? mlir::Value(mlir::arith::DivUIOp::create(b, sum, count))
                      : mlir::Value(mlir::arith::DivSIOp::create(b, sum, count));
  }

private:
  KernelBuilder &b;
  mlir::Type element;
  bool isMax, isFloat, isUnsigned;
};

} // namespace dmxc::kernels
