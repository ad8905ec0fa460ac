//===- Ranks.cpp - an element's order and place as one number -----------------===//

#include "Ranks.h"

#include "targets/common/element/ElementExpr.h"

#include "mlir/IR/TypeUtilities.h"

#include <limits>

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

static constexpr int64_t kMostPlace = std::numeric_limits<uint32_t>::max();

bool Ranks::fit(Type element, Dim size) {
  unsigned bits = element.getIntOrFloatBitWidth();
  return bits > 1 && bits <= 32 && size.isStatic() && *size.known() < kMostPlace;
}

Value Ranks::orderOf(Value value) const {
  Type i32 = b.getI32Type(), type = value.getType();
  if (auto vector = dyn_cast<VectorType>(type))
    i32 = vector.clone(i32);
  Value top = b.constantInt(i32, std::numeric_limits<int32_t>::min()), ones = b.constantInt(i32, -1), order = value;
  bool isFloat = isa<FloatType>(getElementTypeOrSelf(type));
  if (isFloat) { // a number's bits, all turned where it is negative; -0 and 0 are equal
    Value bits = arith::BitcastOp::create(b, i32, arith::AddFOp::create(b, value, b.constant(type, 0)));
    Value sign = arith::ShRSIOp::create(b, bits, b.constantInt(i32, 31));
    order = arith::XOrIOp::create(b, bits, arith::OrIOp::create(b, sign, top));
  } else {
    bool isUnsigned = isUnsignedElement(element);
    if (type != i32)
      order = isUnsigned ? Value(arith::ExtUIOp::create(b, i32, value)) : Value(arith::ExtSIOp::create(b, i32, value));
    if (!isUnsigned)
      order = arith::XOrIOp::create(b, order, top);
  }
  if (!largest)
    order = arith::XOrIOp::create(b, order, ones);
  if (!isFloat)
    return order;
  Value isNaN = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, value, value);
  return arith::SelectOp::create(b, isNaN, nanFirst ? ones : b.constantInt(i32, 0), order);
}

Value Ranks::pack(Value order, Value place) const {
  Value high = arith::ShLIOp::create(b, arith::ExtUIOp::create(b, b.getI64Type(), order), b.idx(32));
  return arith::OrIOp::create(b, high, lastFirst ? b.addC(place, 1) : b.sub(b.idx(kMostPlace), place));
}

Value Ranks::placeOf(Value packed) const {
  Value low = arith::AndIOp::create(b, packed, b.idx(kMostPlace));
  return lastFirst ? b.addC(low, -1) : b.sub(b.idx(kMostPlace), low);
}
