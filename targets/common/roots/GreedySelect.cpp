//===- GreedySelect.cpp - candidates that nothing taken before excludes -------===//

#include "KernelTable.h"
#include "Loops.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

namespace {

/// A row of candidates from the first to the last one, with the positions taken so far in scratch.
class GreedyRow {
public:
  GreedyRow(KernelBuilder &b, const RegionBody &body)
      : b(b), body(body), e(b, body.block), op(cast<dmir::GreedySelectOp>(body.root)),
        lanes(chooseLanes({op.getCandidates(), op.getExcludes()}, b.processor())) {}

  /// As many candidates at a time as there are lanes, then what is left one by one.
  void emit(Value ofRow) {
    row = ofRow;
    limit = e.evaluate(op.getLimit(), {});
    Value size = b.idx(dmir::dimOf(op.getResult(), 1)), whole = b.idx(0), taken = b.idx(0);
    if (lanes > 1) {
      whole = b.mulC(b.floorDiv(size, b.idx(lanes)), lanes);
      ElementExpr::Lanes all(e, lanes);
      taken = b.forLoop(b.idx(0), whole, b.idx(lanes), taken,
                        [&](Value first, ValueRange count) -> Values { return {block(first, count[0])}; })[0];
    }
    b.forLoop(whole, size, b.idx(1), taken, [&](Value i, ValueRange count) -> Values { return {one(i, count[0])}; });
  }

private:
  using Values = SmallVector<Value>;

  Values whileLoop(ValueRange init, llvm::function_ref<Value(ValueRange)> goesOn,
                   llvm::function_ref<Values(ValueRange)> step) {
    auto loop = scf::WhileOp::create(b, init.getTypes(), init);
    // The op stands before its blocks are filled: what is evaluated in them looks for the kernel around it.
    SmallVector<Location> locations(init.size(), b.getLoc());
    Block *before = b.createBlock(&loop.getBefore(), {}, init.getTypes(), locations);
    scf::ConditionOp::create(b, goesOn(before->getArguments()), before->getArguments());
    Block *after = b.createBlock(&loop.getAfter(), {}, init.getTypes(), locations);
    e.forget();
    scf::YieldOp::create(b, step(after->getArguments()));
    b.setInsertionPointAfter(loop);
    e.forget();
    return llvm::to_vector<2>(ValueRange(loop.getResults()));
  }
  Value both(Value x, Value y) { return arith::AndIOp::create(b, x, y); }
  Value isBelow(Value x, Value y) { return b.cmp(arith::CmpIPredicate::slt, x, y); }
  Value isSome(Value bits) { return b.cmp(arith::CmpIPredicate::ne, bits, b.idx(0)); }
  Value without(Value bits, Value others) { return both(bits, arith::XOrIOp::create(b, others, b.idx(-1))); }
  Value takenAt(Value number) { return b.load(b.getI64Type(), b.scratch(), number); }

  /// What a candidate taken at a position excludes of those at `at`.
  Value excludedBy(Value position, Index at) { return e.evaluate(op.getExcludes(), {e.at(row), e.at(position), at}); }
  /// Lanes as the bits of an i64, and back.
  Value bitsOf(Value on) {
    Type bits = b.getIntegerType(lanes);
    Value number = vector::ExtractOp::create(b, vector::BitCastOp::create(b, VectorType::get({1}, bits), on), 0);
    return lanes == 64 ? number : Value(arith::ExtUIOp::create(b, b.getI64Type(), number));
  }
  Value lanesOf(Value bits) {
    Type type = b.getIntegerType(lanes);
    Value number = lanes == 64 ? bits : Value(arith::TruncIOp::create(b, type, bits));
    Value vector = vector::BroadcastOp::create(b, VectorType::get({1}, type), number);
    return vector::BitCastOp::create(b, VectorType::get({lanes}, b.getI1Type()), vector);
  }

  /// Candidates from `first` on: of those that nothing taken before excludes the first is taken, then the first of
  /// those that it does not exclude. Returns how many are taken.
  Value block(Value first, Value count) {
    e.forget();
    const Index at = e.at(first, lanes, 1);
    Value none = b.idx(0), free = bitsOf(e.evaluate(op.getCandidates(), {e.at(row), at}));
    free = arith::SelectOp::create(b, isBelow(count, limit), free, none);
    free = whileLoop(
        {none, free}, [&](ValueRange c) { return both(isBelow(c[0], count), isSome(c[1])); },
        [&](ValueRange c) -> Values {
          return {b.addC(c[0], 1), without(c[1], bitsOf(excludedBy(takenAt(c[0]), at)))};
        })[1];
    Values found = whileLoop(
        {count, free, none}, [&](ValueRange c) { return both(isBelow(c[0], limit), isSome(c[1])); },
        [&](ValueRange c) -> Values {
          Value lane = LLVM::CountTrailingZerosOp::create(b, b.getI64Type(), c[1], /*is_zero_poison=*/true);
          Value position = b.add(first, lane), own = arith::ShLIOp::create(b, b.idx(1), lane);
          b.store(position, b.scratch(), c[0]);
          Value left = without(without(c[1], own), bitsOf(excludedBy(position, at)));
          return {b.addC(c[0], 1), left, arith::OrIOp::create(b, c[2], own)};
        });
    store(lanesOf(found[2]), at);
    return found[0];
  }

  Value one(Value i, Value count) {
    e.forget();
    const Index at = e.at(i);
    Value no = b.constantInt(b.getI1Type(), 0);
    Value candidate = both(e.evaluate(op.getCandidates(), {e.at(row), at}), isBelow(count, limit));
    Value hit = whileLoop(
        {b.idx(0), arith::XOrIOp::create(b, candidate, b.constantInt(b.getI1Type(), 1))},
        [&](ValueRange c) { return both(isBelow(c[0], count), b.cmp(arith::CmpIPredicate::eq, c[1], no)); },
        [&](ValueRange c) -> Values { return {b.addC(c[0], 1), excludedBy(takenAt(c[0]), at)}; })[1];
    Value takes = b.cmp(arith::CmpIPredicate::eq, hit, no);
    store(takes, at);
    b.ifThen(takes, [&] { b.store(i, b.scratch(), count); });
    return b.add(count, arith::ExtUIOp::create(b, b.getI64Type(), takes));
  }

  void store(Value taken, Index at) {
    e.forget();
    e.store(taken, b.buffer(body.block->getNumArguments()), body.resultType(0), {e.at(row), at});
  }

  KernelBuilder &b;
  const RegionBody &body;
  ElementExpr e;
  dmir::GreedySelectOp op;
  int64_t lanes;
  Value row, limit;
};

} // namespace

/// One work item a row. Scratch holds the positions taken so far. What excludes may be fused: it is computed for those
/// alone.
static Result<KernelPlan> planGreedySelect(const RegionBody &body, const PlanRequest &request) {
  SmallVector<Dim> dims = dmir::dimsOf(body.root->getResult(0));
  double count = nominal(body.block, dims[1]);
  WorkPlan work = request.nominal.planWork(body.block, {dims[0], 1}, count * count / 4);
  KernelPlan plan("greedy-select", work);
  plan.scratch = dims[1] * 8;
  plan.emit = [body, work](KernelBuilder &b) {
    GreedyRow row(b, body);
    emitItems(b, work, [&](ArrayRef<Value> outer, Value, Value) { row.emit(outer[0]); });
  };
  return plan;
}

void dmxc::kernels::registerGreedySelect(KernelTable &table) {
  table.add<dmir::GreedySelectOp>({.plan = planGreedySelect, .readsOnce = true});
}
