//===- Rows.cpp - walking the rows that an op reduces -------------------------===//

#include "Rows.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/IR/TypeUtilities.h"

#include <cmath>
#include <limits>

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

// A copy of a row is padded to the widest register, so that whole vectors can be read from it.
static constexpr int64_t kSlotAlign = 16;

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

/// Axis of the result that shows the operand's kept axis.
static unsigned resultAxis(unsigned axis, ArrayRef<int64_t> axes, bool dropsAxes) {
  return dropsAxes ? axis - llvm::count_if(axes, [&](int64_t a) { return a < axis; }) : axis;
}

static double costAlong(const RegionBody &body, const RowPlan &plan, unsigned group, int64_t lanes,
                        const Processor &processor) {
  return dryRunCost(body.block, processor, lanes, [&](ElementExpr &e, llvm::function_ref<Value()> opaque) {
    SmallVector<Index> at;
    for (unsigned g = 0; g < plan.groups.size(); ++g)
      at.push_back(g == group ? e.at(opaque(), lanes, lanes > 1) : e.at(opaque()));
    e.evaluateWide(plan.input, spread(e, plan.groups, at, shapeOf(plan.input).size()));
  });
}

ArrayRef<TileField<Team>> Team::fields() {
  static const TileField<Team> all[] = {
      {"threads", &Team::threads, "threads of a block that has a row, or some", Effect::Order},
      {"blocks", &Team::blocks, "blocks that share a row", Effect::Order},
      {"columns", &Team::columns, "rows beside each other that a block has at a time", Effect::Order}};
  return all;
}

/// Several threads for each row, where the processor has teams.
static void chooseTeam(const RegionBody &body, RowPlan &plan, double passes, const Processor &processor) {
  int64_t rows = 1;
  std::optional<unsigned> inner;
  for (auto [g, group] : llvm::enumerate(plan.groups))
    if (plan.reduced[g])
      inner = g;
    else
      rows *= std::max<int64_t>(nominal(body.block, group.size), 1);
  if (!inner)
    return;
  bool ends = *inner + 1 == plan.groups.size();
  int64_t beside = ends ? 1 : std::max<int64_t>(nominal(body.block, plan.groups.back().size), 1);
  unsigned bits = getElementTypeOrSelf(plan.input.getType()).getIntOrFloatBitWidth();
  plan.team = processor.teamOf({plan.count, std::max<int64_t>(nominal(body.block, plan.count), 1), rows, beside,
                                std::max<int64_t>(bits / 8, 1), passes});
  if (ends)
    plan.team.columns = 1;
  if (plan.team.shares())
    plan.laneGroup = *inner;
}

/// Cuts the rows into work items; `cost` is that of a row.
static void cutRows(const RegionBody &body, RowPlan &plan, double cost, const Processor &processor) {
  for (unsigned g = 0; g < plan.groups.size(); ++g)
    if (!plan.reduced[g] && g != plan.laneGroup)
      plan.kept.push_back(g);
  if (plan.lanesAcross())
    plan.kept.push_back(plan.laneGroup);
  SmallVector<Dim> dims;
  for (unsigned g : plan.kept)
    dims.push_back(plan.groups[g].size);
  if (!plan.lanesAcross() && !plan.hasColumns())
    dims.push_back(1);
  plan.work = processor.planWork(body.block, dims, cost);
  if (!plan.hasColumns())
    return;
  plan.work.items = Dim::ceilDiv(dims.back(), plan.team.columns);
  for (Dim dim : ArrayRef(dims).drop_back())
    plan.work.items *= dim;
  plan.work.chunk = plan.team.columns;
}

RowPlan dmxc::kernels::planRows(const RegionBody &body, const Processor &processor, ArrayRef<int64_t> axes,
                                bool dropsAxes, bool lanesMayReduce, double passes, bool teams) {
  RowPlan plan;
  plan.input = body.root->getOperand(0);
  int64_t lanes = chooseLanes(plan.input, processor);
  Value rootResult = body.root->getResult(0);
  SmallVector<Value> leaves(body.root->getResults());
  bool keepsAll = dmir::dimsOf(rootResult) == dmir::dimsOf(plan.input);
  auto isReduced = [&](unsigned axis) { return llvm::is_contained(axes, axis); };
  auto joinsInResults = [&](unsigned axis) {
    unsigned at = resultAxis(axis, axes, dropsAxes);
    for (Value result : body.results) {
      // A moved result is stored by the index of each axis.
      Attribute blocked = dmir::layoutOf(result.getType());
      if (blocked || dmir::dimsOf(result) != dmir::dimsOf(rootResult) || !axesJoin(result, at, leaves))
        return false;
    }
    return true;
  };
  plan.groups = groupAxes(plan.input, {}, [&](unsigned axis) {
    return isReduced(axis) == isReduced(axis + 1) && ((isReduced(axis) && !keepsAll) || joinsInResults(axis));
  });
  for (AxisGroup &group : plan.groups) {
    plan.reduced.push_back(isReduced(group.first));
    if (plan.reduced.back())
      plan.count *= group.size;
  }
  if (teams)
    chooseTeam(body, plan, passes, processor);
  // The group whose lanes make an element cheapest, counting lanes that stay empty.
  double best = std::numeric_limits<double>::infinity();
  for (unsigned g = plan.groups.size(); g-- > 0;) {
    if (plan.team.shares() || (plan.reduced[g] && !lanesMayReduce))
      continue;
    double size = std::max<int64_t>(nominal(body.block, plan.groups[g].size), 1);
    double cost = costAlong(body, plan, g, lanes, processor) * llvm::alignTo(size, lanes) / size;
    // Combining the partial results of a row costs some elements' time.
    if (plan.reduced[g])
      cost += 10.0 / nominal(body.block, plan.count);
    if (cost < 0.8 * best) {
      best = cost;
      plan.laneGroup = g;
    }
  }
  double rowCost = passes * (std::isfinite(best) ? best : 1.0) * nominal(body.block, plan.count) / 3;
  cutRows(body, plan, rowCost + 1, processor);
  return plan;
}

std::string RowPlan::algorithm(const RegionBody &body) const {
  return body.root->getName().stripDialect().str() + (team.shares()   ? "-by-team"
                                                      : lanesAcross() ? "-across"
                                                                      : "-along");
}

KernelPlan dmxc::kernels::planOfRows(const RegionBody &body, const Processor &processor, RowPlan &rows,
                                     int64_t copyBytes) {
  KernelPlan plan(rows.algorithm(body), rows.work);
  if (!rows.team.shares()) {
    plan.scratch = rows.slots() * copyBytes;
    return plan;
  }
  std::optional<int64_t> slots = rows.slots().known();
  rows.copies = copyBytes && slots && *slots <= processor.mostTeamScratch(rows.team) / copyBytes;
  plan.own.set(kTeam, writeTile(rows.team, body.root->getContext()));
  plan.launch = processor.launchOfTeams(rows.work.items, rows.team, rows.copies ? *slots * copyBytes : 0);
  return plan;
}

Dim RowPlan::slots() const {
  if (lanesAcross())
    return count * kSlotAlign;
  if (groups.empty())
    return kSlotAlign;
  Dim others = 1;
  for (auto [g, group] : llvm::enumerate(groups))
    if (reduced[g] && g != laneGroup)
      others *= group.size;
  return others * slotsOfRun();
}

Dim RowPlan::slotsOfRun() const {
  Dim size = groups[laneGroup].size;
  int64_t each = team.shares() ? team.members() : kSlotAlign;
  return Dim::ceilDiv(size, each) * (team.shares() ? team.threads : kSlotAlign);
}

Value dmxc::kernels::sizeAsFloat(KernelBuilder &b, Dim size, Type type) {
  if (std::optional<int64_t> number = size.known())
    return b.constant(type, static_cast<double>(*number));
  Value scalar = arith::SIToFPOp::create(b, getElementTypeOrSelf(type), b.idx(size));
  auto vector = dyn_cast<VectorType>(type);
  return b.splat(scalar, vector ? vector.getNumElements() : 1);
}

//===----------------------------------------------------------------------===//
// Walks
//===----------------------------------------------------------------------===//

RowWalker::RowWalker(KernelBuilder &b, const RegionBody &body, const RowPlan &plan)
    : b(b), body(body), plan(plan), e(b, body.block), writer(e, body), at(plan.groups.size()) {
  const Processor &processor = b.processor();
  lanes = chooseLanes(plan.input, processor, &narrowest);
  for (Value value : writer.values()) { // the epilogue's types count too
    unsigned bits;
    chooseLanes(value, processor, &bits);
    narrowest = std::min(narrowest, bits);
  }
  if (plan.groups.empty() ||
      costAlong(body, plan, plan.laneGroup, lanes, processor) >= costAlong(body, plan, plan.laneGroup, 1, processor))
    lanes = 1;
  for (unsigned g = 0; g < plan.groups.size(); ++g)
    if (plan.reduced[g] && (plan.lanesAcross() || g != plan.laneGroup))
      outer.push_back(g);
}

Indices RowWalker::operandIndex() { return spread(e, plan.groups, at, shapeOf(plan.input).size()); }

Indices RowWalker::resultIndex(bool whole) {
  Indices index = operandIndex(), kept;
  if (whole)
    return index;
  bool drops = shapeOf(body.root->getResult(0)).size() != index.size();
  for (auto [g, group] : llvm::enumerate(plan.groups))
    for (unsigned axis = group.first; axis <= group.last; ++axis) {
      if (!plan.reduced[g])
        kept.push_back(index[axis]);
      else if (!drops)
        kept.push_back(e.at(0));
    }
  return kept;
}

void RowWalker::write(Value value, bool whole) {
  e.bindValue(body.root->getResult(0), value);
  auto store = [&] { writer.write(resultIndex(whole)); };
  auto ofRow = [&] { inside ? b.ifThen(inside, store) : store(); };
  if (whole || !plan.team.shares())
    return ofRow();
  b.byOne(ofRow);
}

void RowWalker::rows(llvm::function_ref<void()> bodyFn) {
  emitItems(b, plan.work, [&](ArrayRef<Value> positions, Value lo, Value hi) {
    for (auto [g, position] : llvm::zip(plan.kept, positions))
      at[g] = e.at(position);
    e.forget();
    if (!plan.lanesAcross()) {
      ElementExpr::Lanes one(e, 1);
      if (plan.hasColumns()) { // all threads take part in what teams do together
        Value column = b.add(lo, b.column());
        inside = b.cmp(arith::CmpIPredicate::slt, column, hi);
        at[plan.kept.back()] = e.at(b.minS(column, b.addC(hi, -1)));
      }
      return bodyFn();
    }
    laneLoop(e, lo, hi, lanes, narrowest, 64, [&](Index along) {
      at[plan.laneGroup] = along;
      e.forget();
      bodyFn();
    });
  });
}

RowWalker::Carried RowWalker::outerLoops(ValueRange init, llvm::function_ref<Carried(Value, ValueRange)> bodyFn,
                                         int64_t chains) {
  auto nest = [&](auto &&self, size_t depth, Value slot, ValueRange carried) -> Carried {
    if (depth == outer.size())
      return bodyFn(slot, carried);
    Dim size = plan.groups[outer[depth]].size;
    auto step = [&](Value i, ValueRange c) {
      at[outer[depth]] = e.at(i);
      return self(self, depth + 1, b.add(b.mulC(slot, size), i), c);
    };
    if (chains == 1 || depth + 1 < outer.size())
      return b.forLoop(b.idx(0), b.idx(size), b.idx(1), carried, step);
    Dim whole = Dim::floorDiv(size, chains) * chains;
    Carried acc = b.forLoop(b.idx(0), b.idx(whole), b.idx(chains), carried, [&](Value i, ValueRange c) {
      Carried next;
      for (int64_t u = 0; u < chains; ++u)
        next.push_back(step(b.addC(i, u), c[u])[0]);
      return next;
    });
    acc[0] = b.forLoop(b.idx(whole), b.idx(size), b.idx(1), acc[0], step)[0];
    return acc;
  };
  return nest(nest, 0, b.idx(0), init);
}

SmallVector<Value> dmxc::kernels::dealOut(KernelBuilder &b, Dim size, int64_t members, int64_t most, ValueRange init,
                                          llvm::function_ref<SmallVector<Value>(const Dealt &, ValueRange)> body) {
  Dim whole = Dim::floorDiv(size, members * most) * members * most, rounds = Dim::floorDiv(size, members) * members,
      left = Dim::floorDiv(rounds - whole, members);
  Value member = b.member();
  SmallVector<Value> carried(init);
  auto loop = [&](Dim lo, Dim hi, int64_t count) {
    carried = b.forLoop(b.idx(lo), b.idx(hi), b.idx(members * count), carried, [&](Value i, ValueRange c) {
      Dealt dealt{{}, b.floorDiv(i, b.idx(members)), false};
      for (int64_t u = 0; u < count; ++u)
        dealt.positions.push_back(b.addC(b.add(i, member), u * members));
      return body(dealt, c);
    });
  };
  loop(0, whole, most);
  if (!left.is(0))
    loop(whole, rounds, left.valueOr(1));
  if (rounds != size)
    carried = b.forLoop(b.add(b.idx(rounds), member), b.idx(size), b.idx(members), carried, [&](Value i, ValueRange c) {
      return body({{i}, b.idx(Dim::floorDiv(size, members)), true}, c);
    });
  return carried;
}

/// The elements of one run that a member has. All loads of a step come before what is made of them.
RowWalker::Carried RowWalker::alongOfTeam(ValueRange carried, int64_t unroll,
                                          llvm::function_ref<Value(Value, Value)> elementAt, Combiner combine,
                                          bool reads) {
  const Team &team = plan.team;
  int64_t members = team.members();
  bool isOneRow = team.columns == 1 && team.blocks == 1;
  Value own = b.add(b.mulC(b.memberHere(), team.columns), b.column());
  return dealOut(b, plan.groups[plan.laneGroup].size, members, unroll, carried, [&](const Dealt &dealt, ValueRange c) {
    Carried next(c), elements;
    for (Value position : reads ? ArrayRef(dealt.positions) : ArrayRef<Value>()) {
      at[plan.laneGroup] = e.at(position);
      e.evaluateWide(plan.input, operandIndex()); // at hand below
    }
    for (auto [u, position] : llvm::enumerate(dealt.positions)) {
      // Each member reads alone what it keeps: those of a block have their elements of a round beside each other.
      Value round = b.addC(dealt.round, static_cast<int64_t>(u));
      elements.push_back(elementAt(position, isOneRow ? position : b.add(b.mulC(round, team.threads), own)));
    }
    size_t first = dealt.isLast && !c.empty() ? c.size() - 1 : 0;
    for (size_t u = 0; u < elements.size() && !c.empty(); ++u)
      next[first + u] = combine(c[first + u], elements[u]);
    return next;
  });
}

/// The elements of one run along the lane group: `unroll` vectors with a carried value each, then single
/// vectors with the first one, then the rest: masked into the second one, or one by one into the last.
RowWalker::Carried RowWalker::along(Value outerSlot, ValueRange carried, int64_t unroll,
                                    llvm::function_ref<Value(Value)> element, Combiner combine, bool reads) {
  Dim size = plan.groups.empty() ? Dim(1) : plan.groups[plan.laneGroup].size;
  Value start = plan.groups.empty() ? b.idx(0) : b.mulC(outerSlot, plan.slotsOfRun());
  auto elementAt = [&](Value position, Value slot) {
    if (!plan.groups.empty())
      at[plan.laneGroup] = e.at(position, e.lanes(), e.lanes() > 1);
    return element(b.add(start, slot));
  };
  if (plan.team.shares())
    return alongOfTeam(carried, unroll, elementAt, combine, reads);
  auto step = [&](Carried &to, size_t i, Value position) {
    Value value = elementAt(position, position);
    if (!to.empty())
      to[i] = combine(to[i], value);
  };
  Carried acc(carried);
  Dim whole = Dim::floorDiv(size, lanes * unroll) * lanes * unroll, vectors = Dim::floorDiv(size, lanes) * lanes;
  auto walk = [&](Value lo, Value hi, ValueRange init, int64_t by, int64_t copies, size_t first) {
    return b.forLoop(lo, hi, b.idx(by), init, [&](Value i, ValueRange c) {
      Carried next(c);
      for (int64_t u = 0; u < copies; ++u)
        step(next, first + u, b.addC(i, u * lanes));
      return next;
    });
  };
  auto loop = [&](Dim lo, Dim hi, int64_t by, int64_t copies, size_t first) {
    if (!(lo.isStatic() && hi.isStatic() && *lo.known() >= *hi.known()))
      acc = walk(b.idx(lo), b.idx(hi), acc, by, copies, first);
  };
  {
    ElementExpr::Lanes all(e, lanes);
    if (range)
      acc = inRange(b.idx(whole), reads, acc, [&](Value from, Value to, ValueRange init) {
        return walk(from, to, init, lanes * unroll, unroll, 0);
      });
    else
      loop(0, whole, lanes * unroll, unroll, 0);
    loop(whole, vectors, lanes, 1, 0);
  }
  if (vectors == size)
    return acc;
  if (lanes > 1 && b.processor().hasMasks(narrowest)) {
    if (size.isStatic()) {
      ElementExpr::Lanes some(e, lanes, b.headMask(lanes, *(size - vectors).known()));
      step(acc, 1, b.idx(vectors));
      return acc;
    }
    return b.forLoop(b.idx(vectors), b.idx(size), b.idx(lanes), acc, [&](Value i, ValueRange c) { // once or not at all
      Carried next(c);
      ElementExpr::Lanes some(e, lanes, b.headMask(lanes, b.sub(b.idx(size), i)));
      step(next, 1, i);
      return next;
    });
  }
  ElementExpr::Lanes one(e, 1);
  loop(vectors, size, 1, 1, unroll);
  return acc;
}

/// Independent sums of a run. Members of a team have as many loads under way, as far as a run has elements for them.
int64_t RowWalker::chains() const {
  constexpr int64_t usual = 4, most = 8;
  if (!plan.team.shares())
    return usual;
  return nominal(body.block, plan.groups[plan.laneGroup].size) > usual * plan.team.members() ? most : usual;
}

Value RowWalker::combineChains(Carried acc, llvm::function_ref<Value(Value, Value)> combine) {
  for (size_t chains = acc.size(); chains > 1; chains /= 2)
    for (size_t i = 0; i < chains / 2; ++i)
      acc[i] = combine(acc[i], acc[i + chains / 2]);
  return acc[0];
}

Value RowWalker::fold(Type scalar, llvm::function_ref<Value(Type)> start,
                      llvm::function_ref<Value(Value, Value)> combine, llvm::function_ref<Value(Value)> elementFn,
                      bool reads, bool isMost) {
  // Independent chains hide the latency of the combination; a sum's rounding errors are those of its longest chain.
  if (plan.lanesAcross()) {
    bool several = !outer.empty() && plan.groups[outer.back()].size.valueOr(16) >= 16;
    int64_t chains = several ? RowPlan::kChains : 1;
    Carried acc(chains, start(b.laneType(scalar, e.lanes())));
    acc = outerLoops(
        acc, [&](Value slot, ValueRange c) { return Carried{combine(c[0], elementFn(b.mulC(slot, e.lanes())))}; },
        chains);
    return combineChains(acc, combine);
  }
  const int64_t unroll = chains();
  Carried init(unroll, start(b.laneType(scalar, lanes)));
  init.push_back(start(scalar));
  Carried acc = outerLoops(init, [&](Value slot, ValueRange c) {
    auto element = [&](Value at) -> Value {
      Value value = elementFn(at);
      return e.mask() ? arith::SelectOp::create(b, e.mask(), value, start(value.getType())) : value;
    };
    return along(slot, c, unroll, element, combine, reads);
  });
  for (int64_t left = unroll / 2; left > 0; left /= 2)
    for (int64_t i = 0; i < left; ++i)
      acc[i] = combine(acc[2 * i], acc[2 * i + 1]);
  Value sum = combine(combineLanes(b, acc[0], combine), acc[unroll]);
  if (isMost)
    return b.mostOfTeam(sum);
  return b.ofTeam(sum, [&](ValueRange x, ValueRange y) { return Carried{combine(x[0], y[0])}; })[0];
}

RowWalker::Carried RowWalker::ofTeam(ValueRange init, llvm::function_ref<Carried(Value, ValueRange)> bodyFn,
                                     KernelBuilder::Combine combine) {
  Dim size = plan.groups[plan.laneGroup].size;
  Carried own = b.forLoop(b.member(), b.idx(size), b.idx(plan.team.members()), init, [&](Value i, ValueRange c) {
    at[plan.laneGroup] = e.at(i);
    return bodyFn(i, c);
  });
  return b.ofTeam(own, combine);
}

void RowWalker::each(llvm::function_ref<void(Value)> bodyFn) {
  outerLoops({}, [&](Value slot, ValueRange) {
    if (plan.lanesAcross())
      bodyFn(b.mulC(slot, e.lanes()));
    else
      along(
          slot, {}, plan.team.shares() && plan.copies ? chains() : 1, [&](Value at) { return bodyFn(at), Value(); },
          nullptr, /*reads=*/false);
    return Carried();
  });
}

RowWalker::Carried RowWalker::inOrder(ValueRange init, llvm::function_ref<Carried(ValueRange)> bodyFn) {
  return outerLoops(init, [&](Value, ValueRange c) {
    if (plan.lanesAcross())
      return bodyFn(c);
    Dim size = plan.groups.empty() ? Dim(1) : plan.groups[plan.laneGroup].size;
    return b.forLoop(b.idx(0), b.idx(size), b.idx(1), c, [&](Value i, ValueRange inner) {
      if (!plan.groups.empty())
        at[plan.laneGroup] = e.at(i);
      return bodyFn(inner);
    });
  });
}
