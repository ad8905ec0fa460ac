//===- FloatLowering.cpp - conversions of narrow floats ------------------===//

#include "FloatLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using dmxc::kernels::NarrowFloats;

namespace {

/// Integer and float arithmetic on values of one shape (a scalar or a vector).
class Bits {
public:
  Bits(PatternRewriter &rewriter, Location loc, Type shape)
      : b(rewriter), loc(loc), vector(dyn_cast<VectorType>(shape)) {}

  Type type(Type element) const { return vector ? Type(VectorType::get(vector.getShape(), element)) : element; }
  Type ints(unsigned bits) const { return type(b.getIntegerType(bits)); }
  Value constant(unsigned bits, uint64_t value) {
    TypedAttr attr = IntegerAttr::get(b.getIntegerType(bits), APInt(bits, value));
    if (vector)
      attr = DenseElementsAttr::get(cast<VectorType>(ints(bits)), ArrayRef<Attribute>(attr));
    return arith::ConstantOp::create(b, loc, attr);
  }
  Value i32(uint32_t value) { return constant(32, value); }
  template <typename Op> Value make(Value x, Value y) { return Op::create(b, loc, x, y); }
  template <typename Op> Value castTo(Type element, Value x) { return Op::create(b, loc, type(element), x); }
  Value bitcast(Type element, Value x) { return castTo<arith::BitcastOp>(element, x); }
  Value andI(Value x, uint32_t m) { return make<arith::AndIOp>(x, i32(m)); }
  Value orI(Value x, Value y) { return make<arith::OrIOp>(x, y); }
  Value addI(Value x, Value y) { return make<arith::AddIOp>(x, y); }
  Value subI(Value x, Value y) { return make<arith::SubIOp>(x, y); }
  Value shl(Value x, unsigned n) { return make<arith::ShLIOp>(x, i32(n)); }
  Value shr(Value x, unsigned n) { return make<arith::ShRUIOp>(x, i32(n)); }
  Value cmp(arith::CmpIPredicate p, Value x, uint32_t c) { return arith::CmpIOp::create(b, loc, p, x, i32(c)); }
  Value select(Value c, Value x, Value y) { return arith::SelectOp::create(b, loc, c, x, y); }

  PatternRewriter &b;
  Location loc;
  VectorType vector;
};

//===----------------------------------------------------------------------===//
// The four conversions with f32
//===----------------------------------------------------------------------===//

Value extendBf16(Bits &e, Value x) {
  Value wide = e.castTo<arith::ExtUIOp>(e.b.getI32Type(), e.bitcast(e.b.getI16Type(), x));
  return e.bitcast(e.b.getF32Type(), e.shl(wide, 16));
}

Value truncateToBf16(Bits &e, Value x) {
  Value bits = e.bitcast(e.b.getI32Type(), x);
  Value odd = e.andI(e.shr(bits, 16), 1);
  Value rounded = e.shr(e.addI(bits, e.addI(odd, e.i32(0x7fff))), 16);
  // A NaN keeps its sign and top payload bits and becomes quiet.
  Value isNan = e.cmp(arith::CmpIPredicate::ugt, e.andI(bits, 0x7fffffff), 0x7f800000);
  Value nan = e.orI(e.shr(bits, 16), e.i32(0x40));
  Value result = e.select(isNan, nan, rounded);
  Value narrow = e.castTo<arith::TruncIOp>(e.b.getI16Type(), result);
  return e.bitcast(e.b.getBF16Type(), narrow);
}

/// By an instruction, whose result is moved as an integer like all others.
Value roundToBf16(Bits &e, Value x) {
  Value rounded = LLVM::FPTruncOp::create(e.b, e.loc, e.type(e.b.getBF16Type()), x);
  return e.bitcast(e.b.getBF16Type(), LLVM::BitcastOp::create(e.b, e.loc, e.ints(16), rounded));
}

Value extendF16(Bits &e, Value x) {
  Value bits = e.castTo<arith::ExtUIOp>(e.b.getI32Type(), e.bitcast(e.b.getI16Type(), x));
  Value magnitude = e.shl(e.andI(bits, 0x7fff), 13);
  Value sign = e.shl(e.andI(bits, 0x8000), 16);
  // Normal numbers: rebias the exponent; inf and NaN: to the top exponent.
  Value normal = e.addI(magnitude, e.i32((127 - 15) << 23));
  Value special = e.orI(magnitude, e.i32(0x7f800000));
  // Subnormals: m * 2^-24, exact as a difference of two normal floats.
  Value biased = e.addI(magnitude, e.i32((127 - 14) << 23));
  Value floatBits = e.bitcast(e.b.getF32Type(), biased);
  Value base = e.bitcast(e.b.getF32Type(), e.i32((127 - 14) << 23));
  Value subnormal = e.bitcast(e.b.getI32Type(), e.make<arith::SubFOp>(floatBits, base));
  Value isSpecial = e.cmp(arith::CmpIPredicate::uge, magnitude, 0x7c00u << 13);
  Value isSubnormal = e.cmp(arith::CmpIPredicate::ult, magnitude, 0x0400u << 13);
  Value result = e.select(isSpecial, special, e.select(isSubnormal, subnormal, normal));
  return e.bitcast(e.b.getF32Type(), e.orI(result, sign));
}

Value truncateToF16(Bits &e, Value x) {
  Value bits = e.bitcast(e.b.getI32Type(), x);
  Value sign = e.shr(e.andI(bits, 0x80000000u), 16);
  Value magnitude = e.andI(bits, 0x7fffffff);
  // Normal results: rebias, round to nearest even on bit 13.
  Value odd = e.andI(e.shr(magnitude, 13), 1);
  Value bias = e.i32(0u - ((127u - 15u) << 23) + 0xfff);
  Value normal = e.shr(e.addI(e.addI(magnitude, bias), odd), 13);
  // Subnormal results: adding 0.5 aligns the significand at 2^-24 and rounds as
  // it should.
  Value half = e.i32(0x3f000000);
  Value aligned = e.make<arith::AddFOp>(e.bitcast(e.b.getF32Type(), magnitude), e.bitcast(e.b.getF32Type(), half));
  Value subnormal = e.subI(e.bitcast(e.b.getI32Type(), aligned), half);
  Value isSubnormal = e.cmp(arith::CmpIPredicate::ult, magnitude, 0x38800000);
  Value overflows = e.cmp(arith::CmpIPredicate::uge, magnitude, 0x47800000);
  Value isNan = e.cmp(arith::CmpIPredicate::ugt, magnitude, 0x7f800000);
  Value nan = e.orI(e.andI(e.shr(magnitude, 13), 0x3ff), e.i32(0x7e00));
  Value special = e.select(isNan, nan, e.i32(0x7c00));
  Value finite = e.select(isSubnormal, subnormal, normal);
  Value result = e.orI(e.select(overflows, special, finite), sign);
  return e.bitcast(e.b.getF16Type(), e.castTo<arith::TruncIOp>(e.b.getI16Type(), result));
}

/// f64 -> f32 rounding to odd, so that a second rounding to a narrower type is
/// the only one.
Value truncateToOdd(Bits &e, Value x) {
  Value nearest = e.castTo<arith::TruncFOp>(e.b.getF32Type(), x);
  Value back = e.castTo<arith::ExtFOp>(e.b.getF64Type(), nearest);
  Value bits = e.bitcast(e.b.getI32Type(), nearest);
  auto magnitude = [&](Value v) {
    Value raw = e.bitcast(e.b.getI64Type(), v);
    Value mask = e.constant(64, 0x7fffffffffffffffull);
    return e.make<arith::AndIOp>(raw, mask);
  };
  // The magnitudes order like the floats; a NaN is quiet on both sides and left
  // alone.
  Value had = magnitude(x), got = magnitude(back);
  Value tooBig = arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::ugt, got, had);
  Value exact = arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::UEQ, x, back);
  Value towardsZero = e.select(tooBig, e.subI(bits, e.i32(1)), bits);
  Value odd = e.orI(towardsZero, e.i32(1));
  return e.bitcast(e.b.getF32Type(), e.select(exact, bits, odd));
}

//===----------------------------------------------------------------------===//
// The patterns and the pass
//===----------------------------------------------------------------------===//

struct LowerExtF : OpRewritePattern<arith::ExtFOp> {
  LowerExtF(MLIRContext *context, NarrowFloats has) : OpRewritePattern(context), has(has) {}
  LogicalResult matchAndRewrite(arith::ExtFOp op, PatternRewriter &rewriter) const override {
    Type from = getElementTypeOrSelf(op.getIn().getType());
    Type to = getElementTypeOrSelf(op.getType());
    bool viaFloat = to.isF64();
    if (!from.isBF16() && !(from.isF16() && (viaFloat || !has.half)))
      return failure();
    Bits e(rewriter, op.getLoc(), op.getType());
    Value wide = from.isBF16() ? extendBf16(e, op.getIn())
                 : has.half    ? e.castTo<arith::ExtFOp>(rewriter.getF32Type(), op.getIn())
                               : extendF16(e, op.getIn());
    if (viaFloat)
      wide = e.castTo<arith::ExtFOp>(to, wide);
    rewriter.replaceOp(op, wide);
    return success();
  }
  NarrowFloats has;
};

struct LowerTruncF : OpRewritePattern<arith::TruncFOp> {
  LowerTruncF(MLIRContext *context, NarrowFloats has) : OpRewritePattern(context), has(has) {}
  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    Type from = getElementTypeOrSelf(op.getIn().getType());
    Type to = getElementTypeOrSelf(op.getType());
    if (!to.isBF16() && !(to.isF16() && (from.isF64() || !has.half)))
      return failure();
    Bits e(rewriter, op.getLoc(), op.getType());
    Value narrow = from.isF64() ? truncateToOdd(e, op.getIn()) : op.getIn();
    narrow = to.isBF16() ? (has.roundsToBf16 ? roundToBf16(e, narrow) : truncateToBf16(e, narrow))
             : has.half  ? e.castTo<arith::TruncFOp>(to, narrow)
                         : truncateToF16(e, narrow);
    rewriter.replaceOp(op, narrow);
    return success();
  }
  NarrowFloats has;
};

//===----------------------------------------------------------------------===//
// bf16 as i16
//===----------------------------------------------------------------------===//

Type withoutBf16(Type type) {
  if (!getElementTypeOrSelf(type).isBF16())
    return type;
  Type i16 = IntegerType::get(type.getContext(), 16);
  auto vector = dyn_cast<VectorType>(type);
  return vector ? Type(vector.clone(i16)) : i16;
}

TypedAttr withoutBf16(TypedAttr value) {
  if (auto scalar = dyn_cast<FloatAttr>(value))
    return IntegerAttr::get(withoutBf16(scalar.getType()), scalar.getValue().bitcastToAPInt());
  Type i16 = IntegerType::get(value.getContext(), 16);
  return cast<DenseElementsAttr>(value).bitcast(i16);
}

/// After the patterns bf16 values are only moved. LLVM makes scalars of that type f32 on the way,
/// and calls a library function to get back; as integers they stay what they are.
void moveAsIntegers(Operation *root) {
  SmallVector<arith::BitcastOp> casts;
  root->walk([&](Operation *op) {
    if (mlir::isa<LLVM::BitcastOp, LLVM::FPTruncOp, LLVM::CallIntrinsicOp>(op)) // what an instruction computes with
      return;
    if (auto constant = dyn_cast<arith::ConstantOp>(op);
        constant && withoutBf16(constant.getType()) != constant.getType())
      constant.setValueAttr(withoutBf16(constant.getValue()));
    for (Value result : op->getResults())
      result.setType(withoutBf16(result.getType()));
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          argument.setType(withoutBf16(argument.getType()));
    if (auto bitcast = dyn_cast<arith::BitcastOp>(op))
      casts.push_back(bitcast);
  });
  for (arith::BitcastOp op : casts)
    if (op.getIn().getType() == op.getType()) {
      op.replaceAllUsesWith(op.getIn());
      op.erase();
    }
}

struct FloatLoweringPass : PassWrapper<FloatLoweringPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FloatLoweringPass)
  explicit FloatLoweringPass(NarrowFloats has) : has(has) {}
  StringRef getArgument() const override { return "dmxc-float-lowering"; }
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<LowerExtF, LowerTruncF>(&getContext(), has);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    moveAsIntegers(getOperation());
  }
  NarrowFloats has;
};

} // namespace

std::unique_ptr<Pass> dmxc::kernels::createFloatLoweringPass(NarrowFloats has) {
  return std::make_unique<FloatLoweringPass>(has);
}
