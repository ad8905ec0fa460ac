//===- TopKOfTeam.cpp - the k best elements of a line, by a team --------------===//
//
// Each member knows the best of its own elements, and the best of these is the next of the line. Then the elements of
// the member that had it are dealt out to all, who look for its next best one: the best of those that come behind the
// one just found. Elements are in a total order, of equal ones the lower index comes first, so none is found twice.
//
//===----------------------------------------------------------------------===//

#include "TopKOfTeam.h"
#include "Ranks.h"
#include "targets/common/roots/Loops.h"
#include "targets/common/roots/Rows.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/IR/TypeUtilities.h"

#include <limits>

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

/// Lines of fewer elements are a thread's, and so are those of which more are wanted: each takes all members' time. A
/// member has about so many; so many lines beside each other are left to a thread each, which then has neighbours as
/// its neighbours.
static constexpr int64_t kFewest = 64, kMostWanted = 1024, kEach = 128, kMany = 16384;
/// The place of no element.
static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

namespace {

class TeamEmitter {
public:
  TeamEmitter(KernelBuilder &b, const RegionBody &body, const TopKOfTeam &plan)
      : b(b), e(b, body.block), body(body), plan(plan), op(cast<dmir::TopKOp>(body.root)),
        element(getElementTypeOrSelf(op.getInput().getType())), compute(e.computed(element)),
        ranks{b, element, /*largest=*/op.getLargest(), /*nanFirst=*/op.getLargest()} {}

  void line(ArrayRef<Value> others);

private:
  /// An element, or none: its order and its place in one number, of which the higher one is better; else value, place.
  using Entry = SmallVector<Value>;

  Entry none();
  Value valueAt(Value position) {
    e.forget();
    return e.evaluateWide(op.getInput(), indexAt(position));
  }
  Entry entryOf(Value order, Value value, Value position) {
    return plan.packed ? Entry{ranks.pack(order ? order : ranks.orderOf(value), position)} : Entry{value, position};
  }
  Entry later(ValueRange found, Value order, Value position);
  Entry best();
  Value slotOf(Value member, Value round);
  Entry better(ValueRange x, ValueRange y);
  Value outranks(ValueRange x, ValueRange y);
  Value placeOf(ValueRange entry);
  Entry pick(Value which, ValueRange yes, ValueRange no);
  Entry ofTeam(ValueRange own) {
    if (plan.packed)
      return {b.mostOfTeam(own[0])};
    return b.ofTeam(own, [&](ValueRange x, ValueRange y) { return better(x, y); });
  }
  Entry nextOf(Value owner, ValueRange last);
  void write(Value number, Value position);
  Indices indexAt(Value position);

  KernelBuilder &b;
  ElementExpr e;
  const RegionBody &body;
  const TopKOfTeam &plan;
  dmir::TopKOp op;
  Type element, compute;
  Ranks ranks;
  SmallVector<Value> outer;
};

Indices TeamEmitter::indexAt(Value position) {
  Indices index;
  for (Value other : outer)
    index.push_back(e.at(other));
  index.insert(index.begin() + static_cast<int64_t>(op.getAxis()), e.at(position));
  return index;
}

TeamEmitter::Entry TeamEmitter::none() {
  if (plan.packed)
    return {b.idx(0)};
  return {b.constantInt(compute, 0), b.idx(kNone)};
}

/// Where the order of an element is kept: those of one round lie in different banks, and so do those of one member.
Value TeamEmitter::slotOf(Value member, Value round) { return b.add(b.mulC(round, plan.team.members() + 1), member); }

/// The better one of those that a member found so far, as order and place of 32 bits each, and of one that comes later.
TeamEmitter::Entry TeamEmitter::later(ValueRange found, Value order, Value position) {
  Value isNone = b.cmp(arith::CmpIPredicate::eq, found[1], b.constantInt(b.getI32Type(), -1));
  Value takes = arith::OrIOp::create(b, isNone, b.cmp(arith::CmpIPredicate::ugt, order, found[0]));
  return pick(takes, {order, arith::TruncIOp::create(b, b.getI32Type(), position)}, found);
}

/// The best of a member's own elements.
TeamEmitter::Entry TeamEmitter::best() {
  constexpr int64_t together = 8;
  Value ones = b.constantInt(b.getI32Type(), -1), zero = b.constantInt(b.getI32Type(), 0);
  Entry found =
      dealOut(b, dmir::dimOf(op.getInput(), op.getAxis()), plan.team.members(), together,
              plan.packed ? Entry{zero, ones} : none(), [&](const Dealt &dealt, ValueRange c) {
                SmallVector<Value> values;
                for (Value position : dealt.positions)
                  values.push_back(valueAt(position));
                Entry best(c);
                for (auto [u, position] : llvm::enumerate(dealt.positions)) {
                  Value order = plan.packed ? ranks.orderOf(values[u]) : Value();
                  if (plan.keeps)
                    b.store(order, b.scratch(), slotOf(b.member(), b.addC(dealt.round, static_cast<int64_t>(u))));
                  best = plan.packed ? later(best, order, position) : better(best, {values[u], position});
                }
                return best;
              });
  if (!plan.packed)
    return found;
  return {ranks.pack(found[0], arith::ExtUIOp::create(b, b.getI64Type(), found[1]))};
}

Value TeamEmitter::placeOf(ValueRange entry) { return plan.packed ? ranks.placeOf(entry[0]) : entry[1]; }

/// i1: x, which is there, comes before y.
Value TeamEmitter::outranks(ValueRange x, ValueRange y) {
  if (plan.packed)
    return b.cmp(arith::CmpIPredicate::ugt, x[0], y[0]);
  Value lower = b.cmp(arith::CmpIPredicate::slt, x[1], y[1]), no = b.constantInt(b.getI1Type(), 0);
  Value notAfter = b.cmp(arith::CmpIPredicate::eq, comesBefore(b, op, y[0], x[0]), no);
  Value isNone = b.cmp(arith::CmpIPredicate::eq, y[1], b.idx(kNone));
  Value first = arith::OrIOp::create(b, comesBefore(b, op, x[0], y[0]), arith::AndIOp::create(b, notAfter, lower));
  return arith::OrIOp::create(b, isNone, first);
}

TeamEmitter::Entry TeamEmitter::pick(Value which, ValueRange yes, ValueRange no) {
  Entry out;
  for (auto [one, other] : llvm::zip(yes, no))
    out.push_back(arith::SelectOp::create(b, which, one, other));
  return out;
}

TeamEmitter::Entry TeamEmitter::better(ValueRange x, ValueRange y) {
  if (plan.packed)
    return {arith::MaxUIOp::create(b, x[0], y[0])};
  Value isThere = b.cmp(arith::CmpIPredicate::ne, x[1], b.idx(kNone));
  return pick(arith::AndIOp::create(b, isThere, outranks(x, y)), x, y);
}

/// The best element of a member behind the one that was found last: all look for it.
TeamEmitter::Entry TeamEmitter::nextOf(Value owner, ValueRange last) {
  int64_t members = plan.team.members();
  Value size = b.idx(dmir::dimOf(op.getInput(), op.getAxis()));
  Value count = b.ceilDiv(b.sub(size, owner), b.idx(members));
  Entry found = b.forLoop(b.member(), count, b.idx(members), none(), [&](Value i, ValueRange c) {
    Value position = b.add(owner, b.mulC(i, members));
    Value order = plan.keeps ? b.load(b.getI32Type(), b.scratch(), slotOf(owner, i)) : Value();
    Entry entry = entryOf(order, plan.keeps ? Value() : valueAt(position), position);
    return pick(outranks(last, entry), better(c, entry), c);
  });
  return ofTeam(found);
}

void TeamEmitter::write(Value number, Value position) {
  b.byOne([&] {
    unsigned first = body.block->getNumArguments();
    e.forget();
    Value value = e.evaluateWide(op.getInput(), indexAt(position));
    e.store(e.narrow(value, element), b.buffer(first), body.resultType(0), indexAt(number));
    e.store(position, b.buffer(first + 1), body.resultType(1), indexAt(number));
    e.forget();
  });
}

void TeamEmitter::line(ArrayRef<Value> others) {
  outer.assign(others.begin(), others.end());
  int64_t members = plan.team.members();
  Dim k = dmir::dimOf(op.getValues(), op.getAxis());
  auto select = [&] {
    Value member = b.member(), step = b.idx(members);
    Entry own = best(), first = ofTeam(own);
    write(b.idx(0), placeOf(first));
    Entry carried = own;
    carried.append(first);
    b.forLoop(b.idx(1), b.idx(k), b.idx(1), carried, [&](Value i, ValueRange c) {
      ValueRange mine = c.take_front(own.size()), last = c.drop_front(own.size());
      Value owner = b.rem(placeOf(last), step);
      Entry next = pick(b.cmp(arith::CmpIPredicate::eq, member, owner), nextOf(owner, last), mine);
      Entry now = ofTeam(next);
      write(i, placeOf(now));
      next.append(now);
      return next;
    });
  };
  if (k.isStatic())
    select();
  else // of none nothing is kept
    b.ifThen(b.cmp(arith::CmpIPredicate::sgt, b.idx(k), b.idx(0)), select);
}

} // namespace

std::optional<KernelPlan> dmxc::kernels::planTopKOfTeam(const RegionBody &body, const PlanRequest &request) {
  auto op = cast<dmir::TopKOp>(body.root);
  SmallVector<Dim> dims = dmir::dimsOf(op.getInput());
  Dim size = dims[op.getAxis()], lines = 1;
  bool isLast = op.getAxis() + 1 == dims.size();
  dims.erase(dims.begin() + static_cast<int64_t>(op.getAxis()));
  for (Dim dim : dims)
    lines *= dim;
  int64_t about = nominal(body.block, size), rows = std::max<int64_t>(nominal(body.block, lines), 1);
  Type element = getElementTypeOrSelf(op.getInput().getType());
  unsigned bits = element.getIntOrFloatBitWidth();
  Dim wanted = dmir::dimOf(op.getValues(), op.getAxis());
  if (about < kFewest || wanted.is(0) || nominal(body.block, wanted) > kMostWanted || (!isLast && rows >= kMany))
    return std::nullopt;
  // A team is asked for as if of rows that are shorter; blocks that share one would wait for each other at each
  // element.
  constexpr int64_t usual = 4, most = 4096;
  RowShape shape{size, std::clamp(about * usual / kEach, kFewest, most), rows, 1, std::max<int64_t>(bits / 8, 1), 1};
  TopKOfTeam own;
  own.team = request.nominal.teamOf(shape);
  if (!own.team.shares())
    return std::nullopt;
  own.team.columns = 1;
  dims.push_back(1);
  own.work = request.nominal.planWork(body.block, dims, 1);
  own.packed = Ranks::fit(element, size);
  constexpr int64_t kept = 4; // bytes
  Dim slots = Dim::ceilDiv(size, own.team.members()) * (own.team.members() + 1);
  own.keeps = own.packed && own.team.blocks == 1 && *slots.known() <= request.nominal.mostTeamScratch(own.team) / kept;
  KernelPlan plan("top-k-by-team", own.work);
  plan.own.set(kTeam, writeTile(own.team, op->getContext()));
  plan.launch = request.nominal.launchOfTeams(own.work.items, own.team, own.keeps ? *slots.known() * kept : 0);
  plan.emit = [body, own](KernelBuilder &b) {
    TeamEmitter emitter(b, body, own);
    emitItems(b, own.work, [&](ArrayRef<Value> outer, Value, Value) { emitter.line(outer); });
  };
  return plan;
}
