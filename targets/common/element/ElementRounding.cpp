//===- ElementRounding.cpp - numbers as 8-bit multiples of a block's scale ===//

#include "ElementExpr.h"

#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

static Type withElement(Type like, Type element) {
  auto vector = dyn_cast<VectorType>(like);
  return vector ? Type(vector.clone(element)) : element;
}

Value kernels::magnitudeBits(KernelBuilder &b, Value x) {
  Type bits = withElement(x.getType(), b.getI32Type());
  return arith::AndIOp::create(b, Value(arith::BitcastOp::create(b, bits, x)), b.constantInt(bits, 0x7fffffff));
}

Value kernels::scaleOfGreatest(KernelBuilder &b, Value bits) {
  Type type = withElement(bits.getType(), b.getF32Type());
  Value most = arith::BitcastOp::create(b, type, bits);
  Value scale = arith::DivFOp::create(b, most, b.constant(type, 127));
  // 0 but for infinities and NaN, which it makes NaN of.
  scale = arith::AddFOp::create(b, scale, Value(arith::SubFOp::create(b, most, most)));
  Value least = b.constant(type, std::numeric_limits<float>::min());
  Value counts = arith::CmpFOp::create(b, arith::CmpFPredicate::UGE, scale, least);
  return arith::SelectOp::create(b, counts, scale, b.constant(type, 0));
}

Value kernels::wholeOverScale(KernelBuilder &b, Value x, Value scale) {
  Value zero = b.constant(x.getType(), 0);
  Value counts = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, scale, zero);
  Value whole = math::RoundEvenOp::create(b, Value(arith::DivFOp::create(b, x, scale)));
  return arith::SelectOp::create(b, counts, whole, zero);
}

Value kernels::evaluateRoundBlocks(ElementExpr &e, dmir::RoundBlocksOp op, ArrayRef<Index> index) {
  KernelBuilder &b = e.builder();
  const auto block = static_cast<int64_t>(op.getBlock());
  Dim columns = dmir::dimsOf(op.getInput()).back();
  Index first = e.mulC(e.divRem(index.back(), block).first, block);
  Type bits = b.laneType(b.getI32Type(), e.lanes());
  // A row's last block may be shorter: what is beyond it is its last number again.
  Value most = b.forLoop(b.idx(0), b.minS(b.idx(block), b.idx(columns)), b.idx(1), b.constantInt(bits, 0),
                         [&](Value i, ValueRange carried) {
                           Indices at(index.begin(), index.end());
                           at.back() = e.clamp(e.add(first, e.at(i)), 0, columns - 1);
                           Value x = e.evaluate(op.getInput(), at);
                           return SmallVector<Value>{arith::MaxSIOp::create(b, carried[0], magnitudeBits(b, x))};
                         })[0];
  Value scale = scaleOfGreatest(b, most);
  return arith::MulFOp::create(b, wholeOverScale(b, e.evaluate(op.getInput(), index), scale), scale);
}
