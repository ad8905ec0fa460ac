//===- VectorMathReduce.cpp - argument reduction by pi/2 ----------------------===//
//
// Up to 2^20 Cody and Waite's method: pi/2 in four parts, the first three of 33 bits, so that
// their products with n < 2^20 are exact even without FMA. Beyond, the method of Payne and Hanek:
// only those bits of 2/pi that matter for x's exponent are multiplied, in integers. That path is
// under a branch no lane usually takes, and goes lane by lane.
//
//===----------------------------------------------------------------------===//

#include "VectorMathTrig.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;

namespace dmxc::kernels::expr {

namespace {

constexpr double codyWaiteLimit = 0x1p20;
constexpr double halfPi[] = {0x1.921fb544p+0, 0x1.0b4611a6p-34, 0x1.3198a2ep-69, 0x1.b839a252049c1p-104};

TrigParts reduceCodyWaite(Expr x, bool precise) {
  constexpr double magic = 0x1.8p52;
  Expr t = fma(x, 0x1.45f306dc9c883p-1, x.num(magic));
  Expr n = t - magic;
  Expr a = x - n * halfPi[0]; // exact: close numbers
  if (!precise)
    return {(a - n * halfPi[1]) - n * halfPi[2], x.num(0.0), bits(t)};
  // The first differences may cancel all of a, so they are kept exactly.
  Pair b = twoSum(a, -(n * halfPi[1]));
  Pair c = twoSum(b.hi, -(n * halfPi[2]));
  Pair r = fastTwoSum(c.hi, c.lo + (b.lo - n * halfPi[3]));
  return {r.hi, r.lo, bits(t)};
}

/// 64 zero bits, then the first bits of 2/pi after the binary point.
constexpr uint64_t twoOverPi[] = {0,
                                  0xa2f9836e4e441529,
                                  0xfc2757d1f534ddc0,
                                  0xdb6295993c439041,
                                  0xfe5163abdebbc561,
                                  0xb7246e3a424dd2e0,
                                  0x06492eea09d1921c,
                                  0xfe1deb1cb129a73e,
                                  0xe88235f52ebb4484,
                                  0xe99c7026b45f7e41,
                                  0x3991d639835339f4,
                                  0x9c845f8bbdf9283b,
                                  0x1ff897ffde05980f,
                                  0xef2f118b5a0a6d1f,
                                  0x6d367ecf27cb09b7,
                                  0x4f463f669e5fea2d,
                                  0x7527bac7ebe5f17b,
                                  0x3d0739f78a5292ea,
                                  0x6bfb5fb11f8d5d08,
                                  0x56033046fc7b6bab};

/// 64 bits of twoOverPi that start at bit `position` (an i64), plus `word` words.
Expr tableBits(Expr position, unsigned word) {
  ImplicitLocOpBuilder &b = position.b();
  auto type = VectorType::get({std::size(twoOverPi)}, b.getI64Type());
  Value table = arith::ConstantOp::create(b, DenseElementsAttr::get(type, ArrayRef(twoOverPi)));
  Expr index = position >> 6, offset = position & 63;
  auto load = [&](unsigned delta) {
    Expr at = (index + index.integer(word + delta)).convert<arith::IndexCastOp>(b.getIndexType());
    OpFoldResult where(at.value);
    return Expr(*position.context, vector::ExtractOp::create(b, table, ArrayRef(where)));
  };
  // A shift by 64 would be undefined, so the low part is shifted in two steps.
  Expr high = load(0).make<arith::ShLIOp>(offset);
  Expr low = (load(1) >> 1).make<arith::ShRUIOp>(offset.integer(63) - offset);
  return high | low;
}

Expr toDouble(Expr i, bool isUnsigned) {
  Type f64 = i.b().getF64Type();
  return isUnsigned ? i.convert<arith::UIToFPOp>(f64) : i.convert<arith::SIToFPOp>(f64);
}

/// Low and high words of a 64x64 product.
std::pair<Expr, Expr> wideProduct(Expr x, Expr y) {
  auto op = arith::MulUIExtendedOp::create(x.b(), x.value, y.value);
  return {Expr(*x.context, op.getLow()), Expr(*x.context, op.getHigh())};
}

/// The signed 192-bit fraction (f2, f1, f0) * 2^-192 times pi/2, as a pair.
Pair fractionToRadians(Expr f2, Expr f1, Expr f0) {
  // Words are cut at 11 bits into parts that are exact as doubles.
  auto parts = [](Expr w, bool isUnsigned) {
    return std::pair(toDouble(w & ~uint64_t(0x7ff), isUnsigned), toDouble(w & 0x7ff, true));
  };
  auto [a, b] = parts(f2, false);
  auto [c, d] = parts(f1, true);
  Pair s = twoSum(a * 0x1p-64, b * 0x1p-64);
  Pair s2 = twoSum(s.hi, c * 0x1p-128);
  Pair v = fastTwoSum(s2.hi, s.lo + s2.lo + (d * 0x1p-128 + toDouble(f0, true) * 0x1p-192));
  Pair p = twoProd(v.hi, v.hi.num(0x1.921fb54442d18p+0));
  return fastTwoSum(p.hi, p.lo + (v.hi * 0x1.1a62633145c07p-54 + v.lo * 0x1.921fb54442d18p+0));
}

/// One scalar of at least 2^20; anything for infinity and NaN.
TrigParts reducePayneHanek(Expr x) {
  Expr raw = bits(x);
  Expr exponent = (raw >> 52) & 0x7ff;
  Expr m = (raw & 0xfffffffffffff) | (uint64_t(1) << 52);
  // |x| = m 2^e with e = exponent - 1075. Bits of 2/pi above weight 2^(2-e) give multiples of 4
  // quadrants; the first one that counts stands at e - 2 after the point, 64 later in the table.
  Expr position = exponent - exponent.integer(1075 + 2 - 64);
  Expr w2 = tableBits(position, 0), w1 = tableBits(position, 1), w0 = tableBits(position, 2);
  auto [l0, h0] = wideProduct(m, w0);
  auto [l1, h1] = wideProduct(m, w1);
  Expr r1 = l1 + h0;
  Expr carry = compareInt(arith::CmpIPredicate::ult, r1, h0).convert<arith::ExtUIOp>(x.b().getI64Type());
  Expr r2 = m * w2 + h1 + carry;
  // Two bits of quadrant, then the fraction; its top bit read as a sign rounds to nearest.
  Expr quadrant = (r2 + r2.integer(uint64_t(1) << 61)) >> 62;
  Pair r = fractionToRadians((r2 << 2) | (r1 >> 62), (r1 << 2) | (l0 >> 62), l0 << 2);
  Expr negative = x < 0.0;
  return {select(negative, -r.hi, r.hi), select(negative, -r.lo, r.lo),
          select(negative, quadrant.integer(0) - quadrant, quadrant)};
}

/// Replaces the lanes beyond the limit in `small`; the body of the rare branch.
SmallVector<Value> reduceLargeLanes(Expr x, const TrigParts &small) {
  ImplicitLocOpBuilder &b = x.b();
  auto replace = [](Expr lane, Expr r, Expr low, Expr quadrant) {
    TrigParts p = reducePayneHanek(lane);
    Expr large = abs(lane) >= codyWaiteLimit;
    return std::array{select(large, p.r, r), select(large, p.low, low), select(large, p.quadrant, quadrant)};
  };
  auto vector = dyn_cast<VectorType>(x.value.getType());
  if (!vector) {
    auto r = replace(x, small.r, small.low, small.quadrant);
    return {r[0].value, r[1].value, r[2].value};
  }
  Value zero = arith::ConstantIndexOp::create(b, 0), one = arith::ConstantIndexOp::create(b, 1);
  Value lanes = arith::ConstantIndexOp::create(b, vector.getNumElements());
  Value init[] = {small.r.value, small.low.value, small.quadrant.value};
  auto loop = scf::ForOp::create(b, zero, lanes, one, init);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  OpFoldResult at(loop.getInductionVar());
  auto extract = [&](Value from) { return Expr(*x.context, vector::ExtractOp::create(b, from, ArrayRef(at))); };
  auto args = loop.getRegionIterArgs();
  auto r = replace(extract(x.value), extract(args[0]), extract(args[1]), extract(args[2]));
  SmallVector<Value> next;
  for (auto [value, into] : llvm::zip(r, args))
    next.push_back(vector::InsertOp::create(b, value.value, into, ArrayRef(at)));
  scf::YieldOp::create(b, next);
  return SmallVector<Value>(loop.getResults());
}

} // namespace

TrigParts reduceTrig(Expr x, bool precise) {
  ImplicitLocOpBuilder &b = x.b();
  TrigParts small = reduceCodyWaite(x, precise);
  Value large = (abs(x) >= codyWaiteLimit).value;
  if (isa<VectorType>(large.getType()))
    large = vector::ReductionOp::create(b, vector::CombiningKind::OR, large);
  Type types[] = {small.r.value.getType(), small.low.value.getType(), small.quadrant.value.getType()};
  auto branch = scf::IfOp::create(b, types, large, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, reduceLargeLanes(x, small));
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, ValueRange{small.r.value, small.low.value, small.quadrant.value});
  b.setInsertionPointAfter(branch);
  Expr r(*x.context, branch.getResult(0));
  // Infinities have no angle.
  r = select(abs(x) < std::numeric_limits<double>::infinity(), r, std::numeric_limits<double>::quiet_NaN());
  return {r, Expr(*x.context, branch.getResult(1)), Expr(*x.context, branch.getResult(2))};
}

} // namespace dmxc::kernels::expr
