//===- AttentionBounds.cpp - how great scores may be that are left out ---------===//
//
// A number is added to scores that a mask leaves out. They weigh nothing where the row's greatest score is far above
// what they are at most: a score is at most the sum of the query's magnitudes times the greatest magnitude of keys, and
// what is done to it on the way to the mask is followed by bounds. NaN and infinities make bounds that tell nothing.
//
//===----------------------------------------------------------------------===//

#include "AttentionEmitter.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace dmxc::kernels;
using namespace mlir;

/// exp of a difference beyond is 0 in f32.
static constexpr double kFarApart = 110;

//===----------------------------------------------------------------------===//
// What can be bounded
//===----------------------------------------------------------------------===//

/// Whether a value is the same along rows or along columns, so that its bounds of a row cost little.
static bool isLine(Value value) {
  SmallVector<Dim> dims = dmir::dimsOf(value);
  return dims.size() < 2 || dims.back().is(1) || dims[dims.size() - 2].is(1);
}

/// The operand of an op that a product's scores come through, where the op can be bounded.
static std::optional<unsigned> throughOperand(Value value, Value product) {
  Operation *op = value.getDefiningOp();
  auto leads = [&](Value operand) { return operand == product || throughOperand(operand, product).has_value(); };
  if (mlir::isa_and_nonnull<dmir::ReshapeOp, dmir::NegOp, dmir::TanhOp>(op))
    return leads(op->getOperand(0)) ? std::optional(0u) : std::nullopt;
  if (!mlir::isa_and_nonnull<dmir::AddOp, dmir::SubOp, dmir::MulOp, dmir::DivOp>(op))
    return std::nullopt;
  for (unsigned i : {0u, 1u})
    if (leads(op->getOperand(i)) && isLine(op->getOperand(1 - i)) && !(i && mlir::isa<dmir::DivOp>(op)))
      return i;
  return std::nullopt;
}

bool AttentionDetails::canLeaveOut(dmir::MaskOp last) const {
  Value input = last.getInput(), product = dmir::MatMulOp(attention.scores).getResult();
  return !last.getAdds() || input == product || throughOperand(input, product);
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

static Value highOf(CpuBuilder &b, Value x, Value y) { return arith::MaximumFOp::create(b, x, y); }
static Value lowOf(CpuBuilder &b, Value x, Value y) { return arith::MinimumFOp::create(b, x, y); }

/// The greatest magnitude of a matrix; `lanes` along columns, or one by one.
Value AttentionEmitter::greatestOf(const GemmMatrix &matrix, Type element, Value rows, Value columns, bool sums) {
  Value base = b.elementPtr(element, matrix.base, matrix.offset ? matrix.offset({}) : b.idx(0));
  const int64_t lanes = CpuBuilder::constantOf(matrix.colStride) == 1 ? b.isa().lanes(32) : 1;
  Value whole = b.mulC(b.floorDiv(columns, b.idx(lanes)), lanes);
  auto fold = [&](Value from, Value to, int64_t lanes) {
    Value start = b.constant(b.laneType(f32, lanes), 0);
    Value all = b.forLoop(b.idx(0), rows, b.idx(1), start, [&](Value row, ValueRange outer) {
      Value line = b.mul(row, matrix.rowStride);
      return b.forLoop(from, to, b.idx(lanes), outer, [&](Value column, ValueRange inner) {
        Value x = b.load(element, base, b.add(line, b.mul(column, matrix.colStride)), lanes);
        x = math::AbsFOp::create(b, convertElements(b, {element, f32, false}, x));
        return SmallVector<Value>{sums ? add(inner[0], x) : highOf(b, inner[0], x)};
      });
    })[0];
    return lanes > 1 ? combineLanes(b, all, [&](Value x, Value y) { return sums ? add(x, y) : highOf(b, x, y); }) : all;
  };
  Value found = fold(b.idx(0), whole, lanes);
  if (lanes == 1)
    return found;
  Value rest = fold(whole, columns, 1);
  return sums ? add(found, rest) : highOf(b, found, rest);
}

/// Keys [at, end) count among those whose greatest magnitude is known.
void AttentionEmitter::boundKeys(Value at, Value end) {
  GemmMatrix k = matrixWithin(b, d.scores.right(b), batch, {});
  Value offset = b.add(k.offset({}), b.mul(at, k.colStride)), depth = b.idx(d.scores.k), count = b.sub(end, at);
  k.offset = [offset](Value) { return offset; };
  if (CpuBuilder::constantOf(k.rowStride) == 1) {
    std::swap(k.rowStride, k.colStride);
    std::swap(depth, count);
  }
  Value greatest = greatestOf(k, d.scores.rhsElement, depth, count, /*sums=*/false);
  Value place = b.idx(kGreatestKey);
  b.store(highOf(b, b.load(f32, state, place), greatest), state, place);
}

/// Bounds of an operand beside the scores, in a row of them.
ScoreBounds AttentionEmitter::boundsOfOther(Value other, Value whole, Value row) {
  SmallVector<Dim> own = dmir::dimsOf(other), dims = dmir::dimsOf(whole);
  auto read = [&](Index column, int64_t lanes) {
    ElementExpr::Lanes scope(e, lanes);
    e.forget();
    return e.evaluate(other, broadcastIndices(e, indexOf(whole, row, column), own, dims));
  };
  if (own.empty() || own.back().is(1)) {
    Value x = read(e.at(0), 1);
    return {x, x};
  }
  if (auto known = lineBounds.find(other); known != lineBounds.end())
    return known->second;
  const int64_t lanes = b.isa().lanes(32);
  Value count = b.idx(d.result.k), end = b.mulC(b.floorDiv(count, b.idx(lanes)), lanes);
  auto fold = [&](Value from, Value to, int64_t lanes) -> ScoreBounds {
    const double infinite = std::numeric_limits<double>::infinity();
    Type type = b.laneType(f32, lanes);
    Value start[] = {b.constant(type, infinite), b.constant(type, -infinite)};
    SmallVector<Value> found = b.forLoop(from, to, b.idx(lanes), start, [&](Value column, ValueRange bounds) {
      Value x = read(e.at(column, lanes, lanes > 1), lanes);
      return SmallVector<Value>{lowOf(b, bounds[0], x), highOf(b, bounds[1], x)};
    });
    if (lanes == 1)
      return {found[0], found[1]};
    return {combineLanes(b, found[0], [&](Value x, Value y) { return lowOf(b, x, y); }),
            combineLanes(b, found[1], [&](Value x, Value y) { return highOf(b, x, y); })};
  };
  ScoreBounds bounds = fold(b.idx(0), end, lanes);
  if (lanes > 1) {
    ScoreBounds rest = fold(end, count, 1);
    bounds = {lowOf(b, bounds.low, rest.low), highOf(b, bounds.high, rest.high)};
  }
  return bounds;
}

ScoreBounds AttentionEmitter::boundsOf(Value value, Value row, ScoreBounds ofProduct) {
  if (value == d.scores.result())
    return ofProduct;
  Operation *op = value.getDefiningOp();
  const unsigned through = *throughOperand(value, d.scores.result());
  ScoreBounds own = boundsOf(op->getOperand(through), row, ofProduct);
  if (mlir::isa<dmir::ReshapeOp>(op))
    return own;
  if (mlir::isa<dmir::TanhOp>(op)) {
    Value zero = b.constant(f32, 0); // NaN stays one
    return {add(mul(own.low, zero), b.constant(f32, -1)), add(mul(own.high, zero), b.constant(f32, 1))};
  }
  auto negated = [&](ScoreBounds x) -> ScoreBounds {
    return {arith::NegFOp::create(b, x.high), arith::NegFOp::create(b, x.low)};
  };
  if (mlir::isa<dmir::NegOp>(op))
    return negated(own);
  ScoreBounds other = boundsOfOther(op->getOperand(1 - through), value, row);
  if (mlir::isa<dmir::SubOp>(op))
    (through == 0 ? other : own) = negated(through == 0 ? other : own);
  if (mlir::isa<dmir::AddOp, dmir::SubOp>(op))
    return {add(own.low, other.low), add(own.high, other.high)};
  ScoreBounds all;
  for (Value x : {own.low, own.high})
    for (Value y : {other.low, other.high}) {
      Value z = mlir::isa<dmir::MulOp>(op) ? mul(x, y) : Value(arith::DivFOp::create(b, x, y));
      all.low = all.low ? lowOf(b, all.low, z) : z;
      all.high = all.high ? highOf(b, all.high, z) : z;
    }
  if (!mlir::isa<dmir::DivOp>(op))
    return all;
  // Between divisors of both signs quotients have no bounds.
  Value zero = b.constant(f32, 0), nothing = b.constant(f32, std::numeric_limits<double>::quiet_NaN());
  Value isOneSign = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, mul(other.low, other.high), zero);
  auto known = [&](Value bound) -> Value { return arith::SelectOp::create(b, isOneSign, bound, nothing); };
  return {known(all.low), known(all.high)};
}

/// Bounds of what is beside the scores and the same in all rows, once for the block.
void AttentionEmitter::boundLines() {
  lineBounds.clear();
  for (Value value = dmir::MaskOp(d.mask).getInput(); d.adds() && d.group == 1 && value != d.scores.result();) {
    Operation *op = value.getDefiningOp();
    const unsigned through = *throughOperand(value, d.scores.result());
    Value other = op->getNumOperands() > 1 ? op->getOperand(1 - through) : Value();
    if (other && !dmir::dimsOf(other).empty() && !dmir::dimsOf(other).back().is(1))
      lineBounds[other] = boundsOfOther(other, value, b.idx(0));
    value = op->getOperand(through);
  }
}

/// Whether what is left out may weigh something in a row, i1: its greatest score is not far above what replaces scores,
/// or above what they are at most with what is added.
Value AttentionEmitter::mayCount(Value row) {
  Value most = b.constant(f32, d.fill());
  if (d.adds()) {
    constexpr double roomForRounding = 1.01; // of operands to bf16, too
    GemmMatrix q = queriesOfBlock();
    GemmMatrix own = q;
    Value offset = b.add(q.offset ? q.offset({}) : b.idx(0), b.mul(row, q.rowStride));
    own.offset = [offset](Value) { return offset; };
    Value sum = greatestOf(own, queries ? Type(f32) : d.scores.lhsElement, b.idx(1), b.idx(d.scores.k), /*sums=*/true);
    Value high = mul(mul(sum, b.load(f32, state, b.idx(kGreatestKey))), b.constant(f32, roomForRounding));
    Value input = dmir::MaskOp(d.mask).getInput();
    most = add(boundsOf(input, row, {arith::NegFOp::create(b, high), high}).high, most);
  }
  Value apart = arith::SubFOp::create(b, b.load(f32, highest, row), most);
  return arith::CmpFOp::create(b, arith::CmpFPredicate::ULE, apart, b.constant(f32, kFarApart));
}
