//===- LoopOps.cpp - transform.dmx.interchange, tile, unroll, .. ----------===//
#include "Nest.h"
#include "Order.h"

#include "dmxc/Dialect/Transform/Forms.h"

#include "mlir/Dialect/Affine/Analysis/LoopAnalysis.h"
#include "mlir/Dialect/Affine/LoopUtils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IntegerSet.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::transform;
using affine::AffineForOp;
using Failure = DiagnosedSilenceableFailure;
using mlir::transform::TransformOpInterface;
using mlir::transform::TransformResults;
using mlir::transform::TransformRewriter;
using mlir::transform::TransformState;
using Effects = SmallVectorImpl<MemoryEffects::EffectInstance>;

//===----------------------------------------------------------------------===//
// What all have in common
//===----------------------------------------------------------------------===//

/// "'dmx.tile'": as messages call an op.
static std::string called(Operation *op) { return "'" + op->getName().getStringRef().drop_front(10).str() + "'"; }

static Failure refuse(TransformOpInterface op, const Twine &why, StringRef label = "schedule-refused") {
  return op.emitSilenceableError() << called(op) << " " << why.str() << " [" << label << "]";
}

/// Of an op that is given one loop: that loop.
static Failure loopOf(TransformOpInterface op, TransformState &state, Value handle, AffineForOp &loop) {
  SmallVector<Operation *> ops = llvm::to_vector(state.getPayloadOps(handle));
  if (ops.size() != 1)
    return refuse(op,
                  "is of one loop, the handle has " + Twine(ops.size()) + (ops.empty() ? "" : "; choose one with nth"),
                  "schedule-match");
  loop = dyn_cast<AffineForOp>(ops[0]);
  if (loop)
    return Failure::success();
  std::string kind = ops[0]->getName().getStringRef().str();
  return refuse(op, "is of loops of 'affine.for'; this is '" + kind + "' " + placeOf(ops[0]) +
                        (isa<scf::ForOp>(ops[0]) ? ", for which MLIR has transform.loop.*"
                                                 : "; match with kind = \"nest\" or \"loop\""));
}

/// A number of the script, or of a parameter.
static Failure numberOf(TransformOpInterface op, TransformState &state, Value parameter, std::optional<int64_t> given,
                        int64_t least, const char *what, int64_t &number) {
  if (parameter) {
    ArrayRef<Attribute> values = state.getParams(parameter);
    auto value = values.size() == 1 ? dyn_cast<IntegerAttr>(values.front()) : IntegerAttr();
    if (!value || !value.getType().isSignlessInteger())
      return refuse(op, Twine(what) + " rests on a parameter that is not one number");
    given = value.getValue().getSExtValue();
  }
  number = given.value_or(0);
  constexpr int64_t most = int64_t(1) << 40; // of trips: what is computed of them is no overflow
  if (number < least)
    return refuse(op, Twine(what) + " is " + Twine(number) + "; give " + Twine(least) + " or more");
  if (number > most)
    return refuse(op, Twine(what) + " is " + Twine(number) + "; give " + Twine(most) + " at most");
  return Failure::success();
}

/// Says what an op that needs a form found, or did.
Failure dmxc::transform::require(TransformOpInterface op, RewriterBase &rewriter, AffineForOp &root, StringRef form,
                                 unsigned depth) {
  if (form.empty())
    return Failure::success();
  Result<Form> wanted = findForm(form, op);
  const std::string nest = placeOf(root);
  Reached reached = bringAbout(rewriter, root, wanted->properties, depth);
  if (!reached.root || reached.left.at)
    return refuse(op, "needs " + form + " of the nest " + nest + ": " + reached.left.why, "schedule-form");
  root = reached.root;
  emitRemark(op->getLoc()) << called(op) << ": " << form << " of the nest " << nest
                           << (reached.did.empty() ? ": nothing to be done" : ": " + reached.did) << kLogMark;
  return Failure::success();
}

Failure dmxc::transform::ensure(TransformOpInterface op, AffineForOp root, StringRef form, unsigned depth) {
  Result<Form> promised = findForm(form, op);
  Finding finding = lacking(root, promised->properties, depth);
  if (!finding.at)
    return Failure::success();
  return emitDefiniteFailure(op->getLoc()) << called(op) << " promised " << form << " of the nest " << placeOf(root)
                                           << ", and is at fault: " << finding.why << " [schedule-postcondition]";
}

/// The first loops of a nest, which has the form that an op needs; an op that names more than there are is refused.
static Failure takeLoops(TransformOpInterface op, RewriterBase &rewriter, AffineForOp root, StringRef form,
                         size_t count, SmallVector<AffineForOp> &loops) {
  if (size_t have = chainFrom(root).size(); have < count)
    return refuse(op, "names " + Twine(count) + " loops, the nest " + placeOf(root) + " has " + Twine(have));
  if (Failure failed = require(op, rewriter, root, form, count); !failed.succeeded())
    return failed;
  loops = chainFrom(root);
  if (loops.size() < count)
    return refuse(op, "names " + Twine(count) + " loops, the nest " + placeOf(root) + " has " + Twine(loops.size()));
  loops.truncate(count);
  return Failure::success();
}

static void consumesAll(Operation *op, Effects &effects) {
  for (OpOperand &operand : op->getOpOperands())
    if (isa<mlir::transform::TransformHandleTypeInterface>(operand.get().getType()))
      mlir::transform::consumesHandle(operand, effects);
    else
      mlir::transform::onlyReadsHandle(operand, effects);
  mlir::transform::producesHandle(op->getOpResults(), effects);
  mlir::transform::modifiesPayload(effects);
}

//===----------------------------------------------------------------------===//
// loop
//===----------------------------------------------------------------------===//

Failure LoopOp::apply(TransformRewriter &, TransformResults &results, TransformState &state) {
  AffineForOp root;
  if (Failure failed = loopOf(*this, state, getNest(), root); !failed.succeeded())
    return failed;
  SmallVector<AffineForOp> loops = chainFrom(root);
  const auto depth = static_cast<int64_t>(getDepth());
  if (depth < 0 || depth >= static_cast<int64_t>(loops.size()))
    return refuse(*this, "[" + Twine(depth) + "]: the nest " + placeOf(root) + " has " + Twine(loops.size()) +
                             " loops, counted from 0");
  results.set(cast<OpResult>(getLoop()), {loops[depth].getOperation()});
  return Failure::success();
}

void LoopOp::getEffects(Effects &effects) {
  mlir::transform::onlyReadsHandle(getNestMutable(), effects);
  mlir::transform::producesHandle(getOperation()->getOpResults(), effects);
  mlir::transform::onlyReadsPayload(effects);
}

//===----------------------------------------------------------------------===//
// interchange
//===----------------------------------------------------------------------===//

Failure InterchangeOp::apply(TransformRewriter &rewriter, TransformResults &results, TransformState &state) {
  AffineForOp root;
  if (Failure failed = loopOf(*this, state, getNest(), root); !failed.succeeded())
    return failed;
  ArrayRef<int64_t> order = getOrder();
  SmallVector<int64_t> sorted(order);
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, order.size())) || order.empty())
    return refuse(*this, "names each loop once, from 0 on, for example [1, 0]");
  SmallVector<AffineForOp> loops;
  if (Failure failed = takeLoops(*this, rewriter, root, kNeeds, order.size(), loops); !failed.succeeded())
    return failed;
  SmallVector<LoopPlan> plan;
  SmallVector<AffineExpr> counters;
  for (int64_t number : order) {
    plan.push_back({static_cast<unsigned>(number)});
    counters.push_back(getAffineDimExpr(number, getContext()));
  }
  if (std::string why = problemOf(loops, plan); !why.empty())
    return refuse(*this, "cannot order the loops of the nest " + placeOf(loops[0]) + " so: " + why, "schedule-illegal");
  if (std::string why = problemOfOrder(loops, counters); !why.empty())
    return refuse(*this, "would change what the nest " + placeOf(loops[0]) + " computes: " + why, "schedule-illegal");
  AffineForOp made = llvm::is_sorted(order) ? loops[0] : rebuild(rewriter, loops, plan).front();
  results.set(cast<OpResult>(getOuter()), {made.getOperation()});
  return ensure(*this, made, kKeeps, order.size());
}

void InterchangeOp::getEffects(Effects &effects) { consumesAll(*this, effects); }

//===----------------------------------------------------------------------===//
// tile
//===----------------------------------------------------------------------===//

LogicalResult TileOp::verify() {
  if (static_cast<size_t>(llvm::count(getSizes(), ShapedType::kDynamic)) != getDynamicSizes().size())
    return emitOpError("has another number of parameters than of sizes that are open");
  if (llvm::all_of(getSizes(), [](int64_t size) { return size == 0; }))
    return emitOpError("cuts no loop; give the trips of a tile, for example [2, 4] [schedule-refused]");
  return success();
}

/// The order of trips in tiles, as expressions of the counters; fails where the loops do not begin at numbers.
static FailureOr<SmallVector<AffineExpr>> tiledOrder(ArrayRef<AffineForOp> loops, ArrayRef<int64_t> sizes) {
  SmallVector<AffineExpr> order, inside;
  for (size_t number = 0; number < loops.size(); ++number) {
    AffineForOp loop = loops[number];
    AffineExpr counter = getAffineDimExpr(number, loop.getContext());
    if (sizes[number] && !loop.hasConstantLowerBound())
      return failure();
    order.push_back(sizes[number]
                        ? (counter - loop.getConstantLowerBound()).floorDiv(sizes[number] * loop.getStepAsInt())
                        : counter);
    if (sizes[number])
      inside.push_back(counter);
  }
  llvm::append_range(order, inside);
  return order;
}

/// Whether tiles have the trips in the order that they had.
static bool keepsOrder(ArrayRef<int64_t> sizes) {
  return llvm::count(sizes, 0) + 1 == static_cast<int64_t>(sizes.size()) && sizes.back() != 0;
}

Failure TileOp::apply(TransformRewriter &rewriter, TransformResults &results, TransformState &state) {
  AffineForOp root;
  if (Failure failed = loopOf(*this, state, getNest(), root); !failed.succeeded())
    return failed;
  SmallVector<int64_t> sizes;
  auto parameter = getDynamicSizes().begin();
  for (int64_t given : getSizes()) {
    const bool open = given == ShapedType::kDynamic;
    if (Failure failed =
            numberOf(*this, state, open ? *parameter++ : Value(), given, 0, "a size", sizes.emplace_back());
        !failed.succeeded())
      return failed;
  }
  if (llvm::all_of(sizes, [](int64_t size) { return size == 0; }))
    return refuse(*this, "cuts no loop: all sizes are 0");
  SmallVector<AffineForOp> loops;
  if (Failure failed = takeLoops(*this, rewriter, root, kNeeds, sizes.size(), loops); !failed.succeeded())
    return failed;
  SmallVector<LoopPlan> plan, points;
  for (auto [number, size] : llvm::enumerate(sizes)) {
    int64_t reach = 0;
    if (size && llvm::MulOverflow(size, loops[number].getStepAsInt(), reach))
      return refuse(*this, "has a size that is too large: " + Twine(size));
    using Part = LoopPlan::Part;
    plan.push_back({static_cast<unsigned>(number), size ? Part::Tiles : Part::Whole, size});
    if (size)
      points.push_back({static_cast<unsigned>(number), Part::Points, size});
  }
  const size_t first = plan.size();
  llvm::append_range(plan, points);
  if (std::string why = problemOf(loops, plan); !why.empty())
    return refuse(*this, "cannot tile the nest " + placeOf(loops[0]) + ": " + why, "schedule-illegal");
  if (!keepsOrder(sizes)) {
    FailureOr<SmallVector<AffineExpr>> order = tiledOrder(loops, sizes);
    std::string why = failed(order) ? "a loop begins at no number" : problemOfOrder(loops, *order);
    if (!why.empty())
      return refuse(*this, "would change what the nest " + placeOf(loops[0]) + " computes: " + why, "schedule-illegal");
  }
  SmallVector<AffineForOp> made = rebuild(rewriter, loops, plan);
  results.set(cast<OpResult>(getTiles()), {made.front().getOperation()});
  results.set(cast<OpResult>(getPoints()), {made[first].getOperation()});
  return ensure(*this, made.front(), kKeeps, made.size());
}

void TileOp::getEffects(Effects &effects) { consumesAll(*this, effects); }

//===----------------------------------------------------------------------===//
// unroll
//===----------------------------------------------------------------------===//

static LogicalResult verifyCount(Operation *op, Value parameter, std::optional<int64_t> count, bool isFull = false) {
  if (parameter || isFull || (count && *count > 0))
    return success();
  return op->emitOpError("needs a number of 1 or more, or a parameter [schedule-refused]");
}

LogicalResult UnrollOp::verify() { return verifyCount(*this, getDynamicFactor(), getFactor(), getFull()); }

Failure UnrollOp::apply(TransformRewriter &rewriter, TransformResults &results, TransformState &state) {
  AffineForOp loop;
  if (Failure failed = loopOf(*this, state, getLoop(), loop); !failed.succeeded())
    return failed;
  int64_t factor = 1;
  if (!getFull())
    if (Failure failed = numberOf(*this, state, getDynamicFactor(), getFactor(), 1, "the factor", factor);
        !failed.succeeded())
      return failed;
  constexpr uint64_t most = 4096; // copies of a body: more are a mistake
  std::optional<uint64_t> trips = affine::getConstantTripCount(loop);
  if (getFull() && !trips)
    return refuse(*this, "full: the loop " + placeOf(loop) + " has no constant number of trips");
  const uint64_t copies = getFull() ? *trips : static_cast<uint64_t>(factor);
  if (copies > most)
    return refuse(*this, "makes " + Twine(copies) + " copies of a body; at most " + Twine(most) + " are made");
  Operation *around = loop->getParentOp();
  const bool whole = trips && copies >= *trips;
  if (trips && *trips == 0)
    return refuse(*this, "the loop " + placeOf(loop) + " has no trips");
  if (!whole && loop.getUpperBoundMap().getNumResults() != 1 && copies > 1)
    return refuse(*this, "by " + Twine(factor) + ": the loop " + placeOf(loop) +
                             " ends at the least of several numbers; unroll before it is cut into tiles, or by a "
                             "number that divides them");
  const std::string place = placeOf(loop);
  if (copies > 1 && failed(whole ? affine::loopUnrollFull(loop) : affine::loopUnrollByFactor(loop, copies)))
    return refuse(*this, "cannot unroll the loop " + place);
  if (copies == 1 && whole)
    (void)affine::promoteIfSingleIteration(loop);
  composeIndices(rewriter, around);
  // A loop whose trips all went into one is gone.
  SmallVector<Operation *> left;
  if (!whole && !(trips && *trips / copies == 1))
    left.push_back(loop);
  results.set(cast<OpResult>(getLeft()), left);
  return Failure::success();
}

void UnrollOp::getEffects(Effects &effects) { consumesAll(*this, effects); }

//===----------------------------------------------------------------------===//
// fuse_into
//===----------------------------------------------------------------------===//

/// Moves what stands between two loops before the first; names what cannot.
static std::string clearBetween(RewriterBase &rewriter, AffineForOp first, AffineForOp second) {
  llvm::SmallPtrSet<Operation *, 8> resting{first};
  SmallVector<Operation *> between;
  auto rests = [&](Operation *op) {
    return op
        ->walk([&](Operation *inner) {
          return llvm::any_of(
                     inner->getOperands(),
                     [&](Value value) { return value.getDefiningOp() && resting.contains(value.getDefiningOp()); })
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        })
        .wasInterrupted();
  };
  for (Operation *op = first->getNextNode(); op != second; op = op->getNextNode()) {
    auto interface = dyn_cast<MemoryEffectOpInterface>(op);
    const bool harmless = isMemoryEffectFree(op) || (interface && interface.onlyHasEffect<MemoryEffects::Allocate>());
    if (rests(op) || !harmless)
      return "'" + op->getName().getStringRef().str() + "' " + placeOf(op) + " stands between the loops";
    between.push_back(op);
  }
  if (rests(second))
    return "the second loop takes what the first one returns";
  for (Operation *op : between)
    rewriter.moveOpBefore(op, first);
  return "";
}

/// Makes one nest of two, the trips of the first before those of the second.
static AffineForOp fuse(RewriterBase &rewriter, ArrayRef<AffineForOp> first, ArrayRef<AffineForOp> second) {
  OpBuilder::InsertionGuard guard(rewriter);
  AffineForOp a = first.front(), b = second.front();
  rewriter.setInsertionPoint(b);
  SmallVector<Value> carried(a.getInits());
  llvm::append_range(carried, b.getInits());
  SmallVector<AffineForOp> made;
  for (size_t i = 0; i < first.size(); ++i) {
    AffineForOp one = first[i], other = second[i];
    auto loop = AffineForOp::create(rewriter, rewriter.getFusedLoc({one.getLoc(), other.getLoc()}), ValueRange(),
                                    one.getLowerBoundMap(), ValueRange(), one.getUpperBoundMap(), 1, carried);
    if (one->getDiscardableAttrDictionary() == other->getDiscardableAttrDictionary())
      loop->setDiscardableAttrs(one->getDiscardableAttrDictionary());
    rewriter.replaceAllUsesWith(one.getInductionVar(), loop.getInductionVar());
    rewriter.replaceAllUsesWith(other.getInductionVar(), loop.getInductionVar());
    if (!made.empty() && !carried.empty())
      affine::AffineYieldOp::create(rewriter, loop.getLoc(), loop.getResults());
    carried.assign(loop.getRegionIterArgs().begin(), loop.getRegionIterArgs().end());
    made.push_back(loop);
    rewriter.setInsertionPointToStart(loop.getBody());
  }
  Block *body = made.back().getBody();
  if (!body->empty())
    rewriter.eraseOp(&body->back());
  SmallVector<Value> yields;
  ArrayRef<Value> left(carried);
  for (AffineForOp loop : {first.back(), second.back()}) {
    Operation *yield = loop.getBody()->getTerminator();
    SmallVector<Value> arguments{made.back().getInductionVar()};
    llvm::append_range(arguments, left.take_front(loop.getNumResults()));
    left = left.drop_front(loop.getNumResults());
    SmallVector<Value> yielded(yield->getOperands());
    for (Value &value : yielded) // an argument that is handed on is replaced with its block
      if (auto argument = dyn_cast<BlockArgument>(value); argument && argument.getOwner() == loop.getBody())
        value = arguments[argument.getArgNumber()];
    rewriter.eraseOp(yield);
    rewriter.inlineBlockBefore(loop.getBody(), body, body->end(), arguments);
    llvm::append_range(yields, yielded);
  }
  rewriter.setInsertionPointToEnd(body);
  affine::AffineYieldOp::create(rewriter, made.back().getLoc(), yields);
  ResultRange results = made.front().getResults();
  rewriter.replaceOp(a, results.take_front(a.getNumResults()));
  rewriter.replaceOp(b, results.take_back(b.getNumResults()));
  return made.front();
}

Failure FuseIntoOp::apply(TransformRewriter &rewriter, TransformResults &results, TransformState &state) {
  AffineForOp roots[2];
  for (auto [handle, root] : llvm::zip_equal(getOperands(), roots))
    if (Failure failed = loopOf(*this, state, handle, root); !failed.succeeded())
      return failed;
  if (roots[0]->getBlock() != roots[1]->getBlock() || roots[0] == roots[1])
    return refuse(*this, "is of two loops that stand beside one another");
  if (!roots[0]->isBeforeInBlock(roots[1]))
    return refuse(*this, "has the loop " + placeOf(roots[0]) + " first, which comes second");
  const auto depth = static_cast<int64_t>(getDepth().value_or(1));
  if (depth < 1)
    return refuse(*this, "depth " + Twine(depth) + "; give 1 or more");
  SmallVector<AffineForOp> loops[2];
  for (int i : {0, 1})
    if (Failure failed =
            takeLoops(*this, rewriter, roots[i], depth > 1 ? "nest.perfect+nest.normalized" : kNeeds, depth, loops[i]);
        !failed.succeeded())
      return failed;
  for (auto [one, other] : llvm::zip_equal(loops[0], loops[1]))
    if (!one.hasConstantUpperBound() || !other.hasConstantUpperBound() ||
        one.getConstantUpperBound() != other.getConstantUpperBound())
      return refuse(*this, "is of loops with the same constant number of trips; those " + placeOf(one) + " and " +
                               placeOf(other) + " are not");
  if (std::string why = problemOfFusion(loops[0], loops[1]); !why.empty())
    return refuse(*this, "would change what the nest " + placeOf(roots[1]) + " computes: " + why, "schedule-illegal");
  if (std::string why = clearBetween(rewriter, loops[0][0], loops[1][0]); !why.empty())
    return refuse(*this, "cannot fuse the nests " + placeOf(roots[0]) + " and " + placeOf(roots[1]) + ": " + why,
                  "schedule-illegal");
  results.set(cast<OpResult>(getFused()), {fuse(rewriter, loops[0], loops[1]).getOperation()});
  return Failure::success();
}

void FuseIntoOp::getEffects(Effects &effects) { consumesAll(*this, effects); }

//===----------------------------------------------------------------------===//
// pad
//===----------------------------------------------------------------------===//

LogicalResult PadOp::verify() { return verifyCount(*this, getDynamicMultiple(), getMultiple()); }

/// Puts the body of a loop into an affine.if that holds in the first `trips` trips.
static void guardBody(RewriterBase &rewriter, AffineForOp loop, int64_t trips) {
  OpBuilder::InsertionGuard guard(rewriter);
  Block *body = loop.getBody();
  Operation *yield = body->getTerminator();
  AffineExpr left = getAffineConstantExpr(trips - 1, loop.getContext()) - getAffineDimExpr(0, loop.getContext());
  rewriter.setInsertionPointToStart(body);
  auto condition =
      affine::AffineIfOp::create(rewriter, loop.getLoc(), loop.getResultTypes(), IntegerSet::get(1, 0, left, false),
                                 ValueRange(loop.getInductionVar()), /*withElseRegion=*/loop.getNumResults() != 0);
  Block *then = condition.getThenBlock();
  if (!then->empty())
    rewriter.eraseOp(&then->back());
  SmallVector<Operation *> moved;
  for (Operation *op = condition->getNextNode(); op != yield; op = op->getNextNode())
    moved.push_back(op);
  for (Operation *op : moved)
    rewriter.moveOpBefore(op, then, then->end());
  rewriter.setInsertionPointToEnd(then);
  affine::AffineYieldOp::create(rewriter, loop.getLoc(), yield->getOperands());
  if (!loop.getNumResults())
    return;
  rewriter.setInsertionPointToEnd(condition.getElseBlock());
  affine::AffineYieldOp::create(rewriter, loop.getLoc(), loop.getRegionIterArgs());
  rewriter.modifyOpInPlace(yield, [&] { yield->setOperands(condition.getResults()); });
}

Failure PadOp::apply(TransformRewriter &rewriter, TransformResults &results, TransformState &state) {
  AffineForOp loop;
  if (Failure failed = loopOf(*this, state, getLoop(), loop); !failed.succeeded())
    return failed;
  int64_t multiple = 1;
  if (Failure failed = numberOf(*this, state, getDynamicMultiple(), getMultiple(), 1, "the multiple", multiple);
      !failed.succeeded())
    return failed;
  if (Failure failed = require(*this, rewriter, loop, kNeeds, 1); !failed.succeeded())
    return failed;
  if (!loop.hasConstantUpperBound())
    return refuse(*this, "is of a loop with a constant number of trips; that " + placeOf(loop) + " has none");
  const int64_t trips = loop.getConstantUpperBound(), upper = llvm::divideCeilSigned(trips, multiple) * multiple;
  if (upper != trips) {
    rewriter.modifyOpInPlace(loop, [&] { loop.setConstantUpperBound(upper); });
    guardBody(rewriter, loop, trips);
  }
  results.set(cast<OpResult>(getPadded()), {loop.getOperation()});
  return Failure::success();
}

void PadOp::getEffects(Effects &effects) { consumesAll(*this, effects); }
