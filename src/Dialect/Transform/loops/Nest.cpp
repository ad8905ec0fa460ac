//===- Nest.cpp - loops in one another ------------------------------------===//
#include "Nest.h"

#include "dmxc/Dialect/Transform/Transform.h"

#include "mlir/Dialect/Affine/Analysis/LoopAnalysis.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace dmxc::transform;
using affine::AffineForOp;

bool dmxc::transform::isDealt(Operation *op) {
  return llvm::any_of(op->getDiscardableAttrs(), [](NamedAttribute attr) {
    Dialect *dialect = attr.getNameDialect();
    return dialect && isa<UnitAttr>(attr.getValue());
  });
}

bool dmxc::transform::isNest(Operation *op) {
  if (!isa<AffineForOp, scf::ForOp>(op) || isDealt(op))
    return false;
  for (Operation *parent = op->getParentOp(); parent; parent = parent->getParentOp())
    if (isa<AffineForOp, scf::ForOp>(parent) && !isDealt(parent))
      return false;
  return true;
}

SmallVector<AffineForOp> dmxc::transform::nestsIn(Operation *op) {
  if (auto loop = dyn_cast<AffineForOp>(op); loop && !isDealt(loop))
    return {loop};
  SmallVector<AffineForOp> nests;
  op->walk<WalkOrder::PreOrder>([&](AffineForOp loop) {
    if (isDealt(loop))
      return WalkResult::advance();
    nests.push_back(loop);
    return WalkResult::skip();
  });
  return nests;
}

std::string dmxc::transform::placeOf(Operation *op) {
  if (std::string node = dmir::nodeName(op->getLoc()); !node.empty())
    return "'" + node + "'";
  if (auto line = dyn_cast<FileLineColLoc>(op->getLoc()))
    return "at " + line.getFilename().str() + ":" + std::to_string(line.getLine()) + ":" +
           std::to_string(line.getColumn());
  return "'" + op->getName().getStringRef().str() + "'";
}

//===----------------------------------------------------------------------===//
// Perfect nests
//===----------------------------------------------------------------------===//

AffineForOp dmxc::transform::onlyLoopIn(AffineForOp outer) {
  auto loops = outer.getBody()->getOps<AffineForOp>();
  return llvm::hasSingleElement(loops) ? *loops.begin() : AffineForOp();
}

SmallVector<AffineForOp> dmxc::transform::chainFrom(AffineForOp root) {
  SmallVector<AffineForOp> loops;
  for (AffineForOp loop = root; loop; loop = onlyLoopIn(loop))
    loops.push_back(loop);
  return loops;
}

Operation *dmxc::transform::besideLoop(AffineForOp outer, AffineForOp inner) {
  Operation *yield = outer.getBody()->getTerminator(), *beside = nullptr;
  for (Operation &op : *outer.getBody()) {
    if (&op == inner || &op == yield)
      continue;
    if (!isMemoryEffectFree(&op) && !isa<affine::AffineReadOpInterface>(op))
      return &op; // which is why those before it cannot be moved
    beside = beside ? beside : &op;
  }
  if (beside)
    return beside;
  const bool handsOn =
      llvm::equal(inner.getInits(), outer.getRegionIterArgs()) && llvm::equal(yield->getOperands(), inner.getResults());
  const bool shared = llvm::any_of(outer.getRegionIterArgs(), [](Value value) { return !value.hasOneUse(); });
  return handsOn && !shared ? nullptr : yield;
}

//===----------------------------------------------------------------------===//
// Nests that are made anew
//===----------------------------------------------------------------------===//

std::string dmxc::transform::problemOf(ArrayRef<AffineForOp> loops, ArrayRef<LoopPlan> plan) {
  for (auto [at, each] : llvm::enumerate(plan)) {
    AffineForOp loop = loops[each.of];
    SmallVector<Value> operands(loop.getLowerBoundOperands());
    llvm::append_range(operands, loop.getUpperBoundOperands());
    if (each.part == LoopPlan::Part::Tiles && loop.getLowerBoundMap().getNumResults() != 1)
      return "loop " + std::to_string(each.of) + " begins at the largest of several numbers";
    for (Value operand : operands)
      for (unsigned number = 0; number < loops.size(); ++number) {
        AffineForOp other = loops[number];
        Operation *op = operand.getDefiningOp();
        const bool rests = operand == other.getInductionVar() || (op && other->isProperAncestor(op));
        const bool isKnown = llvm::any_of(plan.take_front(at), [&](const LoopPlan &before) {
          return before.of == number && before.part != LoopPlan::Part::Tiles;
        });
        if (rests && !isKnown)
          return "the bounds of loop " + std::to_string(each.of) + " rest on loop " + std::to_string(number);
      }
  }
  return "";
}

namespace {

/// The bounds of a new loop.
struct Bounds {
  AffineMap lower, upper;
  SmallVector<Value> lowerOperands, upperOperands;
  int64_t step = 1;
};

Bounds boundsOf(AffineForOp loop, const LoopPlan &plan, Value tile, const IRMapping &mapping) {
  Bounds bounds{loop.getLowerBoundMap(), loop.getUpperBoundMap(), {}, {}, loop.getStepAsInt()};
  for (Value operand : loop.getLowerBoundOperands())
    bounds.lowerOperands.push_back(mapping.lookupOrDefault(operand));
  for (Value operand : loop.getUpperBoundOperands())
    bounds.upperOperands.push_back(mapping.lookupOrDefault(operand));
  const int64_t reach = bounds.step * plan.size;
  if (plan.part == LoopPlan::Part::Tiles)
    bounds.step = reach;
  if (plan.part != LoopPlan::Part::Points)
    return bounds;
  MLIRContext *context = loop.getContext();
  AffineExpr begin = getAffineDimExpr(0, context);
  bounds.lower = AffineMap::get(1, 0, begin);
  bounds.lowerOperands = {tile};
  std::optional<uint64_t> trips = affine::getConstantTripCount(loop);
  if (trips && *trips % plan.size == 0) {
    bounds.upper = AffineMap::get(1, 0, begin + reach);
    bounds.upperOperands = {tile};
    return bounds;
  }
  // The last tile is shorter: the least of its end and the loop's.
  SmallVector<AffineExpr> ends{begin + reach};
  for (AffineExpr end : bounds.upper.getResults())
    ends.push_back(end.shiftDims(bounds.upper.getNumDims(), 1));
  bounds.upper = AffineMap::get(bounds.upper.getNumDims() + 1, bounds.upper.getNumSymbols(), ends, context);
  bounds.upperOperands.insert(bounds.upperOperands.begin(), tile);
  return bounds;
}

} // namespace

SmallVector<AffineForOp> dmxc::transform::rebuild(RewriterBase &rewriter, ArrayRef<AffineForOp> loops,
                                                  ArrayRef<LoopPlan> plan) {
  OpBuilder::InsertionGuard guard(rewriter);
  AffineForOp root = loops.front(), innermost = loops.back();
  rewriter.setInsertionPoint(root);
  SmallVector<AffineForOp> made;
  SmallVector<Value> carried(root.getInits());
  SmallVector<Value> tiles(loops.size());
  IRMapping mapping;
  for (const LoopPlan &each : plan) {
    AffineForOp old = loops[each.of];
    Bounds bounds = boundsOf(old, each, tiles[each.of], mapping);
    auto loop = AffineForOp::create(rewriter, old.getLoc(), bounds.lowerOperands, bounds.lower, bounds.upperOperands,
                                    bounds.upper, bounds.step, carried);
    loop.getInductionVar().setLoc(old.getInductionVar().getLoc());
    if (each.part == LoopPlan::Part::Tiles)
      tiles[each.of] = loop.getInductionVar();
    else
      mapping.map(old.getInductionVar(), loop.getInductionVar());
    if (each.part != LoopPlan::Part::Tiles)
      loop->setDiscardableAttrs(old->getDiscardableAttrDictionary());
    if (!made.empty() && !carried.empty())
      affine::AffineYieldOp::create(rewriter, old.getLoc(), loop.getResults());
    carried.assign(loop.getRegionIterArgs().begin(), loop.getRegionIterArgs().end());
    made.push_back(loop);
    rewriter.setInsertionPointToStart(loop.getBody());
  }
  Block *body = made.back().getBody();
  if (!body->empty())
    rewriter.eraseOp(&body->back()); // the terminator of a loop that carries nothing; the old one comes with its body
  for (AffineForOp old : loops.drop_back())
    rewriter.replaceAllUsesWith(old.getInductionVar(), mapping.lookup(old.getInductionVar()));
  SmallVector<Value> arguments{mapping.lookup(innermost.getInductionVar())};
  llvm::append_range(arguments, carried);
  rewriter.inlineBlockBefore(innermost.getBody(), body, body->end(), arguments);
  rewriter.replaceOp(root, made.front().getResults());
  return made;
}

void dmxc::transform::composeIndices(RewriterBase &rewriter, Operation *root) {
  MLIRContext *context = root->getContext();
  RewritePatternSet patterns(context);
  affine::AffineApplyOp::getCanonicalizationPatterns(patterns, context);
  affine::AffineLoadOp::getCanonicalizationPatterns(patterns, context);
  affine::AffineStoreOp::getCanonicalizationPatterns(patterns, context);
  SmallVector<Operation *> ops;
  root->walk([&](Operation *op) {
    if (isa<affine::AffineApplyOp, affine::AffineLoadOp, affine::AffineStoreOp>(op))
      ops.push_back(op);
  });
  GreedyRewriteConfig config;
  if (auto *listener = dyn_cast_if_present<RewriterBase::Listener>(rewriter.getListener()))
    config.setListener(listener);
  config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
  (void)applyOpPatternsGreedily(ops, std::move(patterns), config); // what cannot be composed stays as it is
}
