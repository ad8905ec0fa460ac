//===- Reduce.cpp - reductions over axes --------------------------------------===//

#include "KernelTable.h"
#include "Rows.h"
#include "targets/common/roots/ranks/Ranks.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/IR/TypeUtilities.h"

#include <limits>

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

namespace {

/// The arithmetic of one dmir.reduce.
struct Kind {
  KernelBuilder &b;
  dmir::Reduction kind;
  Type element; ///< of the operand, as in DMIR
  bool isFloat, isUnsigned, isBool;

  Kind(KernelBuilder &b, dmir::ReduceOp op)
      : b(b), kind(op.getKind()), element(getElementTypeOrSelf(op.getInput().getType())),
        isFloat(mlir::isa<FloatType>(element)), isUnsigned(isUnsignedElement(element)), isBool(element.isInteger(1)) {}

  /// Integer means divide the exact sum.
  Type accumulator(ElementExpr &e) const {
    if (kind == dmir::Reduction::mean && !isFloat && !isBool)
      return b.getI64Type();
    return e.computed(element);
  }

  Value widen(Value value, Type to) const {
    Type type = value.getType();
    if (getElementTypeOrSelf(type) == to)
      return value;
    Type wide = to;
    if (auto vector = dyn_cast<VectorType>(type))
      wide = VectorType::get(vector.getShape(), to);
    return isUnsigned ? Value(arith::ExtUIOp::create(b, wide, value)) : Value(arith::ExtSIOp::create(b, wide, value));
  }

  Value start(Type type) const {
    double infinity = std::numeric_limits<double>::infinity();
    unsigned bits = element.getIntOrFloatBitWidth();
    switch (kind) {
    case dmir::Reduction::sum:
      return b.constantInt(type, 0);
    case dmir::Reduction::mean:
      return b.constantInt(type, isBool ? 1 : 0);
    case dmir::Reduction::prod:
      return b.constantInt(type, 1);
    case dmir::Reduction::max:
      if (isFloat)
        return b.constant(type, -infinity);
      return b.constantInt(type, isUnsigned ? 0 : static_cast<int64_t>(uint64_t(1) << (bits - 1)));
    case dmir::Reduction::min:
      if (isFloat)
        return b.constant(type, infinity);
      return b.constantInt(type, isUnsigned ? -1 : static_cast<int64_t>((uint64_t(1) << (bits - 1)) - 1));
    }
    llvm_unreachable("not a reduction");
  }

  Value combine(Value x, Value y) const {
    if (isBool && (kind == dmir::Reduction::sum || kind == dmir::Reduction::max))
      return arith::OrIOp::create(b, x, y);
    if (isBool)
      return arith::AndIOp::create(b, x, y);
    switch (kind) {
    case dmir::Reduction::sum:
    case dmir::Reduction::mean:
      return isFloat ? Value(arith::AddFOp::create(b, x, y)) : Value(arith::AddIOp::create(b, x, y));
    case dmir::Reduction::prod:
      return isFloat ? Value(arith::MulFOp::create(b, x, y)) : Value(arith::MulIOp::create(b, x, y));
    case dmir::Reduction::max:
      return emitMax(b, x, y, isUnsigned);
    case dmir::Reduction::min:
      return emitMin(b, x, y, isUnsigned);
    }
    llvm_unreachable("not a reduction");
  }

  /// The result's carried value from the accumulated one, of `count` elements.
  Value finish(ElementExpr &e, Value sum, Dim count) const {
    Type type = sum.getType();
    if (kind == dmir::Reduction::mean && isFloat) // 0/0 is NaN
      sum = count.is(0) ? b.constant(type, std::numeric_limits<double>::quiet_NaN())
                        : Value(arith::DivFOp::create(b, sum, sizeAsFloat(b, count, type)));
    if (kind == dmir::Reduction::mean && !isFloat && !isBool) {
      Value n = b.splat(b.idx(Dim::max(count, 1)), e.lanes());
      sum = isUnsigned ? Value(arith::DivUIOp::create(b, sum, n)) : Value(arith::DivSIOp::create(b, sum, n));
      Type narrow = b.laneType(e.carried(element), e.lanes());
      return narrow == sum.getType() ? sum : Value(arith::TruncIOp::create(b, narrow, sum));
    }
    if (kind == dmir::Reduction::mean && isBool && count.valueOr(1) == 0)
      return b.constantInt(type, 0);
    if (kind == dmir::Reduction::mean && isBool && !count.isStatic()) { // of nothing it is 0
      Value any = b.splat(b.cmp(arith::CmpIPredicate::ne, b.idx(count), b.idx(0)), e.lanes());
      return arith::AndIOp::create(b, sum, any);
    }
    return e.narrow(sum, element);
  }
};

void emitSimple(RowWalker &walker, dmir::ReduceOp op) {
  KernelBuilder &b = walker.b;
  Kind kind(b, op);
  Type scalar = kind.accumulator(walker.e);
  auto start = [&](Type type) { return kind.start(type); };
  auto combine = [&](Value x, Value y) { return kind.combine(x, y); };
  auto element = [&] { return kind.widen(walker.element(), scalar); };
  auto finish = [&](Value sum) { walker.write(kind.finish(walker.e, sum, walker.plan.count), /*whole=*/false); };
  if (walker.plan.inBlocks)
    return walker.foldBlocks(scalar, start, combine, element, finish);
  walker.rows([&] { finish(walker.fold(scalar, start, combine, [&](Value) { return element(); })); });
}

/// i1: `value`, which comes later, takes the place of `best`.
Value beats(KernelBuilder &b, dmir::ArgReduceOp op, Value value, Value best) {
  using P = arith::CmpIPredicate;
  using F = arith::CmpFPredicate;
  Type element = getElementTypeOrSelf(op.getInput().getType());
  bool isUnsigned = isUnsignedElement(element), max = op.getKind() == dmir::Extremum::max, last = op.getSelectLast();
  if (!mlir::isa<FloatType>(element)) {
    P p = max ? (last ? (isUnsigned ? P::uge : P::sge) : (isUnsigned ? P::ugt : P::sgt))
              : (last ? (isUnsigned ? P::ule : P::sle) : (isUnsigned ? P::ult : P::slt));
    return arith::CmpIOp::create(b, p, value, best);
  }
  // A NaN beats numbers, and with selectLast earlier NaNs; nothing else beats a NaN.
  auto cmp = [&](F p, Value x, Value y) -> Value { return arith::CmpFOp::create(b, p, x, y); };
  Value better = cmp(max ? (last ? F::OGE : F::OGT) : (last ? F::OLE : F::OLT), value, best);
  Value isNaN = cmp(F::UNO, value, value);
  if (!last)
    isNaN = arith::AndIOp::create(b, isNaN, cmp(F::ORD, best, best));
  return arith::OrIOp::create(b, better, isNaN);
}

/// (value, position) of the better one of two elements; a position of kNone: there is none yet.
constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

SmallVector<Value> betterOf(KernelBuilder &b, dmir::ArgReduceOp op, ValueRange x, ValueRange y) {
  auto pick = [&](Value which, Value yes, Value no) -> Value { return arith::SelectOp::create(b, which, yes, no); };
  Value inOrder = b.cmp(arith::CmpIPredicate::slt, x[1], y[1]);
  Value first = pick(inOrder, x[0], y[0]), firstAt = pick(inOrder, x[1], y[1]), second = pick(inOrder, y[0], x[0]),
        secondAt = pick(inOrder, y[1], x[1]);
  Value takes =
      arith::AndIOp::create(b, beats(b, op, second, first), b.cmp(arith::CmpIPredicate::ne, secondAt, b.idx(kNone)));
  return {pick(takes, second, first), pick(takes, secondAt, firstAt)};
}

/// The same of elements whose order and place are one number.
void emitRankOfTeam(RowWalker &walker, const Ranks &ranks) {
  KernelBuilder &b = walker.b;
  walker.rows([&] {
    Value best = walker.fold(
        b.getI64Type(), [&](Type) { return b.idx(0); },
        [&](Value x, Value y) -> Value { return arith::MaxUIOp::create(b, x, y); },
        [&](Value) { return ranks.pack(ranks.orderOf(walker.element()), walker.at[walker.plan.laneGroup].base); },
        /*reads=*/true, /*isMost=*/true);
    walker.write(ranks.placeOf(best), /*whole=*/false);
  });
}

void emitArgOfTeam(RowWalker &walker, dmir::ArgReduceOp op) {
  KernelBuilder &b = walker.b;
  Type element = getElementTypeOrSelf(op.getInput().getType());
  if (Ranks::fit(element, walker.plan.count))
    return emitRankOfTeam(walker, {b, element, op.getKind() == dmir::Extremum::max, /*nanFirst=*/true,
                                   /*lastFirst=*/op.getSelectLast()});
  walker.rows([&] {
    Value none = b.constantInt(walker.e.computed(getElementTypeOrSelf(op.getInput().getType())), 0);
    SmallVector<Value> best = walker.ofTeam(
        {none, b.idx(kNone)},
        [&](Value position, ValueRange c) -> SmallVector<Value> {
          Value value = walker.element();
          Value isFirst = b.cmp(arith::CmpIPredicate::eq, c[1], b.idx(kNone));
          Value takes = arith::OrIOp::create(b, isFirst, beats(b, op, value, c[0]));
          return {arith::SelectOp::create(b, takes, value, c[0]), arith::SelectOp::create(b, takes, position, c[1])};
        },
        [&](ValueRange x, ValueRange y) { return betterOf(b, op, x, y); });
    walker.write(best[1], /*whole=*/false);
  });
}

void emitArg(RowWalker &walker, dmir::ArgReduceOp op) {
  if (walker.plan.team.shares())
    return emitArgOfTeam(walker, op);
  KernelBuilder &b = walker.b;
  walker.rows([&] {
    int64_t lanes = walker.e.lanes();
    Type type = b.laneType(walker.e.computed(getElementTypeOrSelf(op.getInput().getType())), lanes);
    Value zero = b.constantInt(b.laneType(b.getI64Type(), lanes), 0), one = b.constantInt(zero.getType(), 1);
    // The first element takes whatever stands before it.
    Value yes = b.constantInt(b.laneType(b.getI1Type(), lanes), 1), no = b.constantInt(yes.getType(), 0);
    SmallVector<Value> best =
        walker.inOrder({b.constantInt(type, 0), zero, zero, yes}, [&](ValueRange c) -> SmallVector<Value> {
          Value value = walker.element();
          Value takes = arith::OrIOp::create(b, c[3], beats(b, op, value, c[0]));
          return {arith::SelectOp::create(b, takes, value, c[0]), arith::SelectOp::create(b, takes, c[2], c[1]),
                  arith::AddIOp::create(b, c[2], one), no};
        });
    walker.write(best[1], /*whole=*/false);
  });
}

void emitCumSum(RowWalker &walker, dmir::CumSumOp op) {
  KernelBuilder &b = walker.b;
  Type element = getElementTypeOrSelf(op.getInput().getType());
  bool isFloat = mlir::isa<FloatType>(element);
  const RowPlan &plan = walker.plan;
  unsigned axisGroup = 0;
  while (!plan.reduced[axisGroup])
    ++axisGroup;
  walker.rows([&] {
    Value zero = b.constantInt(b.laneType(walker.e.computed(element), walker.e.lanes()), 0);
    walker.inOrder(zero, [&](ValueRange c) -> SmallVector<Value> {
      if (op.getReverse())
        walker.at[axisGroup] = walker.e.at(b.sub(b.idx(plan.groups[axisGroup].size - 1), walker.at[axisGroup].base));
      Value value = walker.element();
      Value next =
          isFloat ? Value(arith::AddFOp::create(b, c[0], value)) : Value(arith::AddIOp::create(b, c[0], value));
      walker.write(walker.e.narrow(op.getExclusive() ? Value(c[0]) : next, element), /*whole=*/true);
      return {next};
    });
  });
}

} // namespace

static RowPlan rowsOf(const RegionBody &body, const Processor &processor) {
  if (auto op = dyn_cast<dmir::ReduceOp>(body.root))
    return planRows(body, processor, op.getAxes(), !op.getKeepDims(), true);
  if (auto op = dyn_cast<dmir::ArgReduceOp>(body.root))
    return planRows(body, processor, {static_cast<int64_t>(op.getAxis())}, !op.getKeepDims(), false, 2);
  return planRows(body, processor, {static_cast<int64_t>(cast<dmir::CumSumOp>(body.root).getAxis())}, false, false, 2,
                  /*teams=*/false);
}

static Result<KernelPlan> planReduce(const RegionBody &body, const PlanRequest &request) {
  RowPlan details = rowsOf(body, request.nominal);
  if (mlir::isa<dmir::ReduceOp>(body.root) && request.nominal.lanes(32) > 1)
    details.chooseBlocks(body);
  KernelPlan plan = planOfRows(body, request.nominal, details);
  plan.scratch = plan.scratch + details.blockBytes();
  plan.emit = [body, details](KernelBuilder &b) {
    RowWalker walker(b, body, details);
    if (auto op = dyn_cast<dmir::ReduceOp>(body.root))
      emitSimple(walker, op);
    else if (auto op = dyn_cast<dmir::ArgReduceOp>(body.root))
      emitArg(walker, op);
    else
      emitCumSum(walker, cast<dmir::CumSumOp>(body.root));
  };
  return plan;
}

void dmxc::kernels::registerReductions(KernelTable &table) {
  KernelRow row{.plan = planReduce, .readsOnce = true};
  table.add<dmir::CumSumOp>(row);
  row.epilogue = true;
  table.add<dmir::ReduceOp, dmir::ArgReduceOp>(row);
}
