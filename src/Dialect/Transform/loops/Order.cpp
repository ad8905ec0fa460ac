//===- Order.cpp - whether trips may come in another order ----------------===//
//
// Two accesses to one element, of which one writes, keep their order. Which pairs there are is a set of integers: the
// counters of both, within their bounds, at boxes that meet, the first before the second as the loops are and behind it
// as they are to be.
//
//===----------------------------------------------------------------------===//
#include "Order.h"
#include "Accesses.h"
#include "Nest.h"

#include "mlir/Analysis/FlatLinearValueConstraints.h"

using namespace mlir;
using namespace dmxc::transform;
using affine::AffineForOp;

namespace {

/// Counters of two accesses, and what is known of them. A variable is a position.
class Pairs {
public:
  /// False where something is not affine.
  bool add(const Access &a, const Access &b) {
    for (auto [side, access] : {std::pair(0, &a), {1, &b}})
      for (AffineForOp loop : access->loops)
        if (!addLoop(loop, side))
          return false;
    if (a.isWhole || b.isWhole || a.of != b.of)
      return true;
    for (unsigned dim = 0; dim < a.sizes.size(); ++dim) {
      std::optional<unsigned> begin = equal(expressionOf(a.map, dim, a.operands, 0)),
                              other = equal(expressionOf(b.map, dim, b.operands, 1));
      if (!begin || !other)
        return false;
      atLeast(*other, *begin, 1 - a.sizes[dim]); // other + size > begin, both ways
      atLeast(*begin, *other, 1 - b.sizes[dim]);
    }
    return true;
  }

  unsigned counter(AffineForOp loop, int side) { return counters[side].lookup(loop.getInductionVar()); }

  /// A variable that is an expression of the counters of one side, d0 that of the first loop.
  std::optional<unsigned> image(AffineExpr expr, ArrayRef<AffineForOp> loops, int side) {
    SmallVector<AffineExpr> dims;
    for (AffineForOp loop : loops)
      dims.push_back(getAffineDimExpr(counter(loop, side), expr.getContext()));
    return equal(expr.replaceDims(dims));
  }

  /// a - b >= least
  void atLeast(unsigned a, unsigned b, int64_t least) {
    SmallVector<int64_t> row(set.getNumCols(), 0);
    row[a] += 1, row[b] -= 1, row.back() = -least;
    set.addInequality(row);
  }
  void same(unsigned a, unsigned b) {
    SmallVector<int64_t> row(set.getNumCols(), 0);
    row[a] += 1, row[b] -= 1;
    set.addEquality(row);
  }

  bool areNone() const { return set.isIntegerEmpty(); }

private:
  unsigned append() { return set.appendVar(presburger::VarKind::SetDim); }

  unsigned variable(Value value, int side) {
    if (auto own = counters[side].find(value); own != counters[side].end())
      return own->second;
    auto [shared, isNew] = outside.try_emplace(value, 0);
    if (isNew) {
      shared->second = append();
      if (std::optional<int64_t> constant = getConstantIntValue(value))
        (void)set.addBound(presburger::BoundType::EQ, shared->second, *constant);
    }
    return shared->second;
  }

  AffineExpr expressionOf(AffineMap map, unsigned result, ArrayRef<Value> operands, int side) {
    SmallVector<AffineExpr> all;
    for (Value operand : operands)
      all.push_back(getAffineDimExpr(variable(operand, side), map.getContext()));
    ArrayRef<AffineExpr> known(all);
    return map.getResult(result).replaceDimsAndSymbols(known.take_front(map.getNumDims()),
                                                       known.drop_front(map.getNumDims()));
  }

  bool bound(presburger::BoundType type, unsigned at, AffineExpr expr) {
    return succeeded(set.addBound(type, at, AffineMap::get(set.getNumDimVars(), 0, expr)));
  }
  std::optional<unsigned> equal(AffineExpr expr) {
    const unsigned at = append();
    return bound(presburger::BoundType::EQ, at, expr) ? std::optional(at) : std::nullopt;
  }

  bool addLoop(AffineForOp loop, int side) {
    const unsigned at = append();
    AffineMap maps[] = {loop.getLowerBoundMap(), loop.getUpperBoundMap()};
    SmallVector<Value> operands[] = {llvm::to_vector(loop.getLowerBoundOperands()),
                                     llvm::to_vector(loop.getUpperBoundOperands())};
    for (int i : {0, 1}) {
      affine::fullyComposeAffineMapAndOperands(&maps[i], &operands[i]);
      for (unsigned result = 0; result < maps[i].getNumResults(); ++result)
        if (!bound(i ? presburger::BoundType::UB : presburger::BoundType::LB, at,
                   expressionOf(maps[i], result, operands[i], side)))
          return false;
    }
    counters[side][loop.getInductionVar()] = at;
    const int64_t step = loop.getStepAsInt();
    if (step == 1 || maps[0].getNumResults() != 1)
      return true; // more trips than there are, at worst
    AffineExpr trip = getAffineDimExpr(append(), loop.getContext());
    std::optional<unsigned> value = equal(expressionOf(maps[0], 0, operands[0], side) + trip * step);
    if (value)
      same(*value, at);
    return value.has_value();
  }

  FlatLinearConstraints set;
  llvm::DenseMap<Value, unsigned> counters[2], outside;
};

std::string nameOf(const Access &access) {
  return "'" + access.op->getName().getStringRef().str() + "' " + placeOf(access.op);
}

std::string unknownOp(Operation *op) {
  return "nobody knows what '" + op->getName().getStringRef().str() + "' " + placeOf(op) + " touches";
}

/// Whether some trip with `a` comes before one with `b`, and is to come behind it.
bool isReversed(const Access &a, const Access &b, ArrayRef<AffineForOp> loops, ArrayRef<AffineExpr> order) {
  Pairs pairs;
  if (!pairs.add(a, b))
    return true;
  SmallVector<std::pair<unsigned, unsigned>> images;
  for (AffineExpr expr : order) {
    std::optional<unsigned> first = pairs.image(expr, loops, 0), second = pairs.image(expr, loops, 1);
    if (!first || !second)
      return true;
    images.emplace_back(*first, *second);
  }
  for (size_t now = 0; now < loops.size(); ++now) {
    Pairs before = pairs;
    for (size_t i = 0; i < now; ++i)
      before.same(before.counter(loops[i], 0), before.counter(loops[i], 1));
    before.atLeast(before.counter(loops[now], 1), before.counter(loops[now], 0), 1);
    for (size_t then = 0; then < images.size(); ++then) {
      Pairs behind = before;
      for (size_t i = 0; i < then; ++i)
        behind.same(images[i].first, images[i].second);
      behind.atLeast(images[then].first, images[then].second, 1);
      if (!behind.areNone())
        return true;
    }
  }
  return false;
}

bool mayMeet(const Access &a, const Access &b) {
  return (a.writes || b.writes) && (a.base == b.base || mayBeSame(a.base, b.base));
}

} // namespace

std::string dmxc::transform::problemOfOrder(ArrayRef<AffineForOp> loops, ArrayRef<AffineExpr> order) {
  const Accesses accesses(loops.front());
  if (accesses.unknown)
    return unknownOp(accesses.unknown);
  for (const Access &a : accesses.all)
    for (const Access &b : accesses.all)
      if (mayMeet(a, b) && isReversed(a, b, loops, order))
        return nameOf(a) + " comes before " + nameOf(b) + " on the same element, and would come behind it";
  return "";
}

std::string dmxc::transform::problemOfFusion(ArrayRef<AffineForOp> first, ArrayRef<AffineForOp> second) {
  const Accesses before(first.front()), behind(second.front());
  for (Operation *unknown : {before.unknown, behind.unknown})
    if (unknown)
      return unknownOp(unknown);
  for (const Access &a : before.all)
    for (const Access &b : behind.all) {
      if (!mayMeet(a, b))
        continue;
      Pairs pairs;
      bool meets = !pairs.add(a, b);
      for (size_t then = 0; then < first.size() && !meets; ++then) {
        Pairs later = pairs; // the first's trip behind the second's
        for (size_t i = 0; i < then; ++i)
          later.same(later.counter(first[i], 0), later.counter(second[i], 1));
        later.atLeast(later.counter(first[then], 0), later.counter(second[then], 1), 1);
        meets = !later.areNone();
      }
      if (meets)
        return nameOf(b) + " needs what " + nameOf(a) + " does in a later trip";
    }
  return "";
}

bool dmxc::transform::isWrittenIn(Operation *root, Value memref) {
  const Value base = baseOf(memref);
  return root
      ->walk([&](Operation *op) {
        if (op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() || isMemoryEffectFree(op))
          return WalkResult::advance();
        auto interface = dyn_cast<MemoryEffectOpInterface>(op);
        SmallVector<MemoryEffects::EffectInstance> effects;
        if (interface)
          interface.getEffects(effects);
        const bool writes = !interface || llvm::any_of(effects, [&](const MemoryEffects::EffectInstance &effect) {
          if (isa<MemoryEffects::Read, MemoryEffects::Allocate>(effect.getEffect()))
            return false;
          return !effect.getValue() || mayBeSame(baseOf(effect.getValue()), base);
        });
        return writes ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}
