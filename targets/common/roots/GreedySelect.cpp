//===- GreedySelect.cpp - candidates that nothing taken before excludes -------===//

#include "KernelTable.h"
#include "Loops.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

namespace {

/// i1: one of the positions taken so far, `count` of them in scratch, excludes candidate i.
Value excluded(ElementExpr &e, dmir::GreedySelectOp op, Value row, Value i, Value count) {
  KernelBuilder &b = e.builder();
  Value no = b.constantInt(b.getI1Type(), 0), one = b.idx(1);
  SmallVector<Type> types{b.getI64Type(), b.getI1Type()};
  auto loop = scf::WhileOp::create(b, types, ValueRange{b.idx(0), no});
  // The op stands before its blocks are filled: what is evaluated in them looks for the kernel around it.
  SmallVector<Location> locations(2, b.getLoc());
  Block *before = b.createBlock(&loop.getBefore(), {}, types, locations);
  Value more = b.cmp(arith::CmpIPredicate::slt, before->getArgument(0), count);
  Value free = b.cmp(arith::CmpIPredicate::eq, before->getArgument(1), no);
  scf::ConditionOp::create(b, arith::AndIOp::create(b, more, free), before->getArguments());
  Block *after = b.createBlock(&loop.getAfter(), {}, types, locations);
  e.forget();
  Value taken = b.load(b.getI64Type(), b.scratch(), after->getArgument(0));
  Value hit = e.evaluate(op.getExcludes(), {e.at(row), e.at(taken), e.at(i)});
  scf::YieldOp::create(b, ValueRange{b.add(after->getArgument(0), one), hit});
  b.setInsertionPointAfter(loop);
  return loop.getResult(1);
}

} // namespace

static void emitGreedySelect(KernelBuilder &b, const RegionBody &body, const WorkPlan &work) {
  auto op = cast<dmir::GreedySelectOp>(body.root);
  ElementExpr e(b, body.block);
  Dim size = dmir::dimOf(op.getResult(), 1);
  unsigned first = body.block->getNumArguments();
  emitItems(b, work, [&](ArrayRef<Value> outer, Value, Value) {
    Value row = outer[0], limit = e.evaluate(op.getLimit(), {});
    b.forLoop(b.idx(0), b.idx(size), b.idx(1), b.idx(0), [&](Value i, ValueRange taken) -> SmallVector<Value> {
      e.forget();
      Indices at{e.at(row), e.at(i)};
      Value candidate = e.evaluate(op.getCandidates(), at);
      Value room = b.cmp(arith::CmpIPredicate::slt, taken[0], limit);
      Value no = b.constantInt(b.getI1Type(), 0);
      auto test = scf::IfOp::create(b, TypeRange(b.getI1Type()), arith::AndIOp::create(b, candidate, room), true);
      {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(test.thenBlock());
        Value hit = excluded(e, op, row, i, taken[0]);
        scf::YieldOp::create(b, b.cmp(arith::CmpIPredicate::eq, hit, no));
        b.setInsertionPointToStart(test.elseBlock());
        scf::YieldOp::create(b, no);
      }
      Value takes = test.getResult(0);
      e.forget();
      e.store(takes, b.buffer(first), body.resultType(0), at);
      b.ifThen(takes, [&] { b.store(i, b.scratch(), taken[0]); });
      return {b.add(taken[0], arith::ExtUIOp::create(b, b.getI64Type(), takes))};
    });
  });
}

/// One work item a row. Scratch holds the positions taken so far. What excludes may be fused: it is computed for those
/// alone.
static Result<KernelPlan> planGreedySelect(const RegionBody &body, const PlanRequest &request) {
  SmallVector<Dim> dims = dmir::dimsOf(body.root->getResult(0));
  double count = nominal(body.block, dims[1]);
  WorkPlan work = request.nominal.planWork(body.block, {dims[0], 1}, count * count / 4);
  KernelPlan plan("greedy-select", work);
  plan.scratch = dims[1] * 8;
  plan.emit = [body, work](KernelBuilder &b) { emitGreedySelect(b, body, work); };
  return plan;
}

void dmxc::kernels::registerGreedySelect(KernelTable &table) {
  table.add<dmir::GreedySelectOp>({.plan = planGreedySelect, .readsOnce = true});
}
