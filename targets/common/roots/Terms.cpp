//===- Terms.cpp - sums of products of two operands' elements ----------------===//

#include "Terms.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/IR/TypeUtilities.h"

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

Value dmxc::kernels::fromAccumulator(ElementExpr &e, Value value, Type element) {
  KernelBuilder &b = e.builder();
  if (mlir::isa<FloatType>(element))
    return e.narrow(value, element);
  Type narrow = b.laneType(e.carried(element), e.lanes());
  return narrow == value.getType() ? value : Value(arith::TruncIOp::create(b, narrow, value));
}

Value Terms::operand(Value tensor, ArrayRef<Index> index) const {
  Value value = e.evaluateWide(tensor, index);
  Type own = getElementTypeOrSelf(value.getType()), wide = e.computed(element);
  if (own == wide)
    return value;
  // Bytes may be summed in i32; floats of 16 bits are f32 already.
  Type type = b.laneType(wide, e.lanes());
  return isUnsignedElement(elementOf(tensor)) ? Value(arith::ExtUIOp::create(b, type, value))
                                              : Value(arith::ExtSIOp::create(b, type, value));
}

Value Terms::add(Value sum, Value x, Value y) const {
  if (mlir::isa<FloatType>(element))
    return b.fma(x, y, sum);
  return arith::AddIOp::create(b, sum, arith::MulIOp::create(b, x, y));
}

Value Terms::sum(Value count, Dim known, Step step) const {
  constexpr int64_t run = 64;
  auto over = [&](Value first, Value last) {
    return b.forLoop(first, last, b.idx(1), zero(),
                     [&](Value i, ValueRange c) { return SmallVector<Value>{step(i, c[0])}; })[0];
  };
  if (!mlir::isa<FloatType>(element) || known.valueOr(run + 1) <= run)
    return over(b.idx(0), count);
  return b.forLoop(b.idx(0), count, b.idx(run), zero(), [&](Value first, ValueRange c) {
    Value part = over(first, b.minS(b.addC(first, run), count));
    return SmallVector<Value>{arith::AddFOp::create(b, c[0], part)};
  })[0];
}
