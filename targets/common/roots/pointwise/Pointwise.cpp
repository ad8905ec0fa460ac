//===- Pointwise.cpp - elementwise and data-movement regions ------------------===//

#include "Plan.h"
#include "targets/common/roots/KernelTable.h"

#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/masks/Where.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

static dmir::BlockedAttr blockedOf(Type type) { return dyn_cast_or_null<dmir::BlockedAttr>(dmir::layoutOf(type)); }

/// True when the region is one function applied to every element in memory, padding included: it may
/// then run over memory in order whatever the layout. Integer division would fail on padding.
static bool isFlat(const RegionBody &body) {
  auto type = body.resultType();
  for (Value result : body.results)
    if (cast<RankedTensorType>(result.getType()).getEncoding() != type.getEncoding())
      return false;
  for (Operation &op : *body.block) {
    if (mlir::isa<dmir::ConstantOp, dmir::YieldOp>(op))
      continue;
    if (!op.hasTrait<dmir::Elementwise>() || mlir::isa<dmir::MaskOp>(op))
      return false;
    if (blockedOf(type) && mlir::isa<dmir::DivOp, dmir::ModOp, dmir::FmodOp>(op))
      return false;
    for (Value v : op.getOperands()) {
      auto own = cast<RankedTensorType>(v.getType());
      bool same = dmir::dimsOf(own) == dmir::dimsOf(type) &&
                  (!mlir::isa<BlockArgument>(v) || own.getEncoding() == type.getEncoding());
      bool splat = dmir::elementsOf(own).is(1);
      if ((!same && !splat) || (v.getDefiningOp<dmir::ConstantOp>() && !splat))
        return false;
    }
  }
  return llvm::none_of(body.results,
                       [](Value v) { return mlir::isa<BlockArgument>(v) || v.getDefiningOp<dmir::ConstantOp>(); });
}

static Dim elementsInMemory(RankedTensorType type) {
  Dim count = 1;
  auto blocked = blockedOf(type);
  for (auto [axis, dim] : llvm::enumerate(dmir::dimsOf(type)))
    count *= blocked && static_cast<int64_t>(axis) == blocked.getAxis()
                 ? Dim::ceilDiv(dim, blocked.getBlock()) * blocked.getBlock()
                 : dim;
  return count;
}

/// Cost of an element with lanes along `group`, by emitting it once.
static double costAlong(const RegionBody &body, ArrayRef<AxisGroup> groups, unsigned group, int64_t lanes,
                        const Processor &processor) {
  return dryRunCost(body.block, processor, lanes, [&](ElementExpr &e, llvm::function_ref<Value()> opaque) {
    SmallVector<Index> at;
    for (unsigned g = 0; g < groups.size(); ++g)
      at.push_back(g == group ? e.at(opaque(), lanes, lanes > 1) : e.at(opaque()));
    ResultWriter(e, body).write(spread(e, groups, at, body.resultType().getRank()));
  });
}

/// A tile is written out vector by vector: heavy functions would be much code.
static constexpr double kMostOfVector = 100;

/// The same where tiles of values are computed with lanes along `group` and turned in registers before they are stored;
/// nothing where lanes do not lie beside each other in memory along that group.
static std::optional<double> costTurned(const RegionBody &body, ArrayRef<AxisGroup> groups, unsigned group,
                                        int64_t lanes, const Processor &processor) {
  bool gathers = false;
  double cost = dryRunCost(body.block, processor, lanes, [&](ElementExpr &e, llvm::function_ref<Value()> opaque) {
    SmallVector<Index> at;
    for (unsigned g = 0; g < groups.size(); ++g)
      at.push_back(g == group ? e.at(opaque(), lanes, 1) : e.at(opaque()));
    ResultWriter(e, body).evaluate(spread(e, groups, at, body.resultType().getRank()));
    gathers = e.counts.gathered > 0;
  });
  if (gathers)
    return std::nullopt;
  // A vector's store, and an exchange of halves for each bit of its lanes.
  return cost + (1 + static_cast<double>(llvm::Log2_64(lanes))) / static_cast<double>(lanes);
}

/// The key of a strategy that has PointwisePlan::wide.
static constexpr StringLiteral kWide = "neighbours";

/// Of heavy functions a thread takes no more at a time than its registers hold.
static int64_t chooseWide(const RegionBody &body, const PlanRequest &request, Dim size, double cost) {
  if (request.strategy) {
    auto given = request.strategy.getAs<IntegerAttr>(kWide);
    return given ? std::clamp<int64_t>(given.getInt(), 1, 64) : 1;
  }
  constexpr double most = 512;
  unsigned narrowest;
  chooseLanes(body.results, request.nominal, &narrowest);
  int64_t wide = request.nominal.neighboursOf(nominal(body.block, size), narrowest);
  while (wide > 1 && cost * static_cast<double>(wide) > most)
    wide /= 2;
  return wide;
}

/// Tiles where they are cheaper than `best`, the cost with lanes along the lane group.
static void chooseTurned(const RegionBody &body, PointwisePlan &plan, int64_t lanes, double &best,
                         const Processor &processor) {
  Type element = getElementTypeOrSelf(body.results.front().getType());
  auto isLong = [&](unsigned g) { return nominal(body.block, plan.groups[g].size) >= kTurned; };
  const unsigned last = plan.groups.size() - 1;
  const bool few = hasFewLast(plan);
  if (body.results.size() != 1 || lanes == 1 || lanes > kTurned || element.getIntOrFloatBitWidth() < 8 || last == 0 ||
      !(few || isLong(last)))
    return;
  // Lanes that would be stored apart from each other cost what no count of instructions tells.
  double most = plan.laneGroup == last ? 0.7 * best : best;
  // Tiles along both of the last groups need enough of them.
  const bool joins =
      few && last > 1 && nominal(body.block, plan.groups[last - 1].size * plan.groups[last].size) >= kTurned;
  for (unsigned g = few && !joins ? last - 1 : 0; g < last; ++g) {
    double cost = isLong(g) ? costTurned(body, plan.groups, g, lanes, processor).value_or(best) : best;
    if (cost < most && cost * static_cast<double>(lanes) <= kMostOfVector) {
      best = cost;
      most = 0.7 * cost;
      plan.across = g;
      plan.laneGroup = last;
      plan.joined = few && g + 1 < last;
    }
  }
}

/// Whether tiles of a blocked result are computed with lanes along positions, which lie beside each other where those
/// of a block's channels do not, and turned.
static bool turnsBlocks(const RegionBody &body, const PointwisePlan &plan, int64_t lanes, const Processor &processor) {
  const unsigned last = plan.groups.size() - 1;
  Type element = getElementTypeOrSelf(body.results.front().getType());
  if (body.results.size() != 1 || lanes == 1 || element.getIntOrFloatBitWidth() < 8 ||
      plan.groups[last].first == plan.blockedAxis || nominal(body.block, plan.groups[last].size) < kTurned)
    return false;
  bool gathers = false;
  dryRunCost(body.block, processor, lanes, [&](ElementExpr &e, llvm::function_ref<Value()> opaque) {
    SmallVector<Index> at;
    for (const AxisGroup &group : plan.groups)
      at.push_back(group.first == plan.blockedAxis ? e.at(opaque(), plan.block, 1) : e.at(opaque()));
    ResultWriter(e, body).evaluate(spread(e, plan.groups, at, body.resultType().getRank()));
    gathers = e.counts.gathered > 0;
  });
  std::optional<double> cost = gathers ? costTurned(body, plan.groups, last, lanes, processor) : std::nullopt;
  return cost && *cost * static_cast<double>(lanes) <= kMostOfVector;
}

/// The group that lanes lie along, and items of a row-major result.
static void planLanes(const RegionBody &body, PointwisePlan &plan, int64_t lanes, const Processor &processor) {
  // The innermost axis unless another one is much cheaper: stores in order are kind to caches.
  plan.laneGroup = plan.groups.size() - 1;
  double best = 0;
  for (unsigned g = plan.groups.size(); g-- > 0;) {
    int64_t size = nominal(body.block, plan.groups[g].size);
    if (size < lanes / 2 && g + 1 != plan.groups.size())
      continue;
    double fill = std::max(1.0, double(llvm::alignTo(size, lanes)) / std::max<int64_t>(size, 1));
    double cost = costAlong(body, plan.groups, g, lanes, processor) * (processor.hasMasks(32) ? fill : 1);
    if (g + 1 == plan.groups.size() || cost < 0.7 * best) {
      best = cost;
      plan.laneGroup = g;
    }
  }
  chooseTurned(body, plan, lanes, best, processor);
  plan.inOrder = plan.across && (plan.joined || !hasFewLast(plan)) &&
                 llvm::any_of(body.block->getArgumentTypes(), [](Type type) { return blockedOf(type) != nullptr; });
  SmallVector<Dim> dims;
  Dim along = plan.groups[plan.laneGroup].size;
  for (auto [g, group] : llvm::enumerate(plan.groups))
    if (plan.joined && g + 1 == plan.laneGroup)
      along *= group.size;
    else if (g != plan.laneGroup && plan.across != g)
      dims.push_back(group.size);
  if (plan.across) {
    Dim across = plan.groups[*plan.across].size;
    dims.push_back(Dim::ceilDiv(plan.inOrder ? across : along, kTurned));
    dims.push_back(plan.inOrder ? along : across);
    best *= kTurned;
  } else {
    dims.push_back(along);
  }
  plan.work = processor.planWork(body.block, dims, best / 3);
}

static PointwisePlan planOf(const RegionBody &body, const PlanRequest &request) {
  const Processor &processor = request.nominal;
  PointwisePlan plan;
  auto type = body.resultType();
  int64_t lanes = chooseLanes(body.results, processor);
  auto blocked = blockedOf(type);
  plan.flat = isFlat(body);
  if (plan.flat) {
    plan.groups = {{0, static_cast<unsigned>(std::max<int64_t>(type.getRank() - 1, 0)), elementsInMemory(type)}};
    SmallVector<AxisGroup> all = plan.groups;
    double cost = costAlong(body, all, 0, lanes, processor) / 3;
    // Neighbours share a byte of packed results: one thread writes them all.
    bool packed = llvm::any_of(body.results, [](Value v) { return isPacked(getElementTypeOrSelf(v.getType())); });
    plan.work = processor.planWork(body.block, {plan.groups[0].size}, packed ? 0 : cost);
    plan.wide = packed ? 1 : chooseWide(body, request, plan.groups[0].size, 3 * cost);
    if (plan.wide > 1)
      plan.work.items = Dim::ceilDiv(plan.groups[0].size, plan.wide);
    return plan;
  }
  if (type.getRank() == 0) {
    plan.work = processor.planWork(body.block, {1}, 1);
    return plan;
  }
  auto mayJoin = [&](unsigned axis) {
    return !blocked || (axis != blocked.getAxis() && axis + 1 != blocked.getAxis());
  };
  plan.groups = groupAxes(body.results, {}, mayJoin);
  SmallVector<Dim> dims;
  if (blocked) {
    plan.block = blocked.getBlock();
    plan.blockedAxis = blocked.getAxis();
    for (AxisGroup &group : plan.groups)
      dims.push_back(group.first == blocked.getAxis() ? Dim::ceilDiv(group.size, plan.block) : group.size);
    // The innermost loop counts blocks of one position: work is planned without it.
    if (turnsBlocks(body, plan, std::min(lanes, plan.block), processor))
      plan.across = plan.groups.size() - 1;
    else
      dims.push_back(1);
    plan.work = processor.planWork(body.block, dims, (plan.across ? 1.0 : 4.0) * plan.block / lanes);
    return plan;
  }
  planLanes(body, plan, lanes, processor);
  return plan;
}

/// Items of `wide` elements: where all tensors begin at multiples of 16 bytes, which a caller's need not, all are
/// loaded and stored together; else, and at the end, one by one.
static void emitWide(KernelBuilder &b, Dim size, int64_t wide,
                     llvm::function_ref<void(Value first, int64_t count)> body, ArrayRef<Value> pointers) {
  constexpr int64_t wideBytes = 16;
  Value aligned = b.areAligned(pointers, wideBytes), end = b.idx(size);
  b.forItems(Dim::ceilDiv(size, wide), [&](Value item) {
    Value first = b.mulC(item, wide), last = b.addC(first, wide);
    Value whole = b.cmp(arith::CmpIPredicate::sle, last, end);
    b.ifThen(
        arith::AndIOp::create(b, aligned, whole),
        [&] {
          b.assumeAligned(pointers, wideBytes);
          body(first, wide);
        },
        [&] { b.forLoop(first, b.minS(last, end), b.idx(1), [&](Value i) { body(i, 1); }); });
  });
}

static void emitFlat(KernelBuilder &b, const RegionBody &body, const PointwisePlan &plan) {
  ElementExpr e(b, body.block);
  unsigned narrowest, first = body.block->getNumArguments();
  int64_t lanes = chooseLanes(body.results, b.processor(), &narrowest);
  // Operands of the result's shape are read at the position in memory, whatever the index is.
  Index position;
  for (BlockArgument argument : body.block->getArguments()) {
    auto type = cast<RankedTensorType>(argument.getType());
    if (!dmir::elementsOf(type).is(1) || type == body.resultType())
      e.bind(argument, [&, argument](ArrayRef<Index>) {
        return e.loadElement(getElementTypeOrSelf(argument.getType()), b.buffer(argument.getArgNumber()), position);
      });
  }
  // All values before the first store, which may overwrite an operand.
  auto compute = [&](Index at, int64_t count) {
    SmallVector<std::pair<Index, SmallVector<Value>>> computed;
    for (int64_t u = 0; u < count; ++u) {
      position = count > 1 ? e.at(b.addC(at.base, u)) : at;
      // Never uniform, so that bound operands are asked for in the full number of lanes.
      Indices index(body.resultType().getRank(), position);
      SmallVector<Value> &values = computed.emplace_back(position, SmallVector<Value>()).second;
      for (Value result : body.results)
        values.push_back(e.evaluate(result, index));
    }
    for (auto &[where, values] : computed)
      for (auto [i, value] : llvm::enumerate(values))
        e.storeElement(value, b.buffer(first + i), body.resultType(i).getElementType(), where);
    e.forget();
  };
  if (plan.wide > 1) {
    SmallVector<Value> pointers;
    for (unsigned i = 0; i < first + body.results.size(); ++i)
      if (i >= first || !dmir::elementsOf(body.block->getArgument(i).getType()).is(1))
        pointers.push_back(b.buffer(i));
    return emitWide(
        b, plan.groups[0].size, plan.wide, [&](Value at, int64_t count) { compute(e.at(at), count); }, pointers);
  }
  emitItems(b, plan.work, [&](ArrayRef<Value>, Value lo, Value hi) {
    laneLoop(e, lo, hi, lanes, narrowest, 64, [&](Index at) { compute(at, 1); });
  });
}

static void emitPointwise(KernelBuilder &b, const RegionBody &body, const PointwisePlan &plan) {
  if (plan.flat)
    return emitFlat(b, body, plan);
  if (plan.block)
    return emitBlocks(b, body, plan);
  if (plan.across)
    return emitTurned(b, body, plan);
  ElementExpr e(b, body.block);
  ResultWriter writer(e, body);
  int64_t rank = body.resultType().getRank();
  unsigned narrowest;
  int64_t lanes = chooseLanes(body.results, b.processor(), &narrowest);
  if (rank == 0 || costAlong(body, plan.groups, plan.laneGroup, lanes, b.processor()) >
                       costAlong(body, plan.groups, plan.laneGroup, 1, b.processor()))
    lanes = 1;
  emitItems(b, plan.work, [&](ArrayRef<Value> outer, Value lo, Value hi) {
    laneLoop(e, lo, hi, lanes, narrowest, 64, [&](Index along) {
      SmallVector<Index> at;
      for (Value position : outer)
        at.push_back(e.at(position));
      if (rank)
        at.insert(at.begin() + plan.laneGroup, along);
      writer.write(spread(e, plan.groups, at, rank));
    });
  });
}

KernelPlan dmxc::kernels::planPointwise(const RegionBody &body, const PlanRequest &request) {
  PointwisePlan details = planOf(body, request);
  KernelPlan plan(details.flat ? "elementwise" : details.across ? "pointwise-turned" : "pointwise", details.work);
  if (details.wide > 1)
    plan.own.set(kWide, Builder(body.block->getParentOp()->getContext()).getI64IntegerAttr(details.wide));
  plan.emit = [body, details](KernelBuilder &b) { emitPointwise(b, body, details); };
  return plan;
}
