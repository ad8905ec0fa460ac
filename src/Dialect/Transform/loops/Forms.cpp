//===- Forms.cpp - normal forms of loops ----------------------------------===//
#include "dmxc/Dialect/Transform/Forms.h"
#include "Nest.h"
#include "Order.h"

#include "mlir/Dialect/Affine/Analysis/LoopAnalysis.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::transform;
using affine::AffineForOp;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

namespace {

struct FormRow {
  const char *name;
  unsigned properties;
  const char *meaning, *fixer;
};

constexpr FormRow kForms[] = {
    {"nest.normalized", Normalized, "each loop goes from 0 by 1", "counters are computed from such ones"},
    {"nest.multi_trip", MultiTrip, "no loop has one trip", "loops of one trip become what they hold"},
    {"nest.hoisted", Hoisted, "nothing does the same in all trips of the nest", "that is moved before the nest"},
    {"nest.perfect", Hoisted | OneLoop, "nest.hoisted, and each loop but the innermost holds one loop alone",
     "what nothing but the inner loop needs is moved into it"},
    {"nest.canonical", Normalized | MultiTrip | Hoisted | OneLoop, "nest.perfect, nest.normalized and nest.multi_trip",
     "all of these"},
};

std::string plural(int count, const std::string &what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

} // namespace

/// The forms that a script defines where `from` stands.
static SmallVector<DefineFormOp> ownForms(Operation *from) {
  Operation *table = from ? SymbolTable::getNearestSymbolTable(from) : nullptr;
  return table ? llvm::to_vector(table->getRegion(0).front().getOps<DefineFormOp>()) : SmallVector<DefineFormOp>();
}

/// `open`: what is being looked up already, which a form that extends itself comes back to.
static Status addForm(Form &form, StringRef name, Operation *from, SmallVectorImpl<StringRef> &open) {
  std::vector<std::string> names;
  for (const FormRow &row : kForms) {
    names.push_back(row.name);
    if (name != row.name)
      continue;
    form.properties |= row.properties;
    return Status::ok();
  }
  if (llvm::is_contained(open, name))
    return modelError("the form '" + name.str() + "' extends itself");
  for (DefineFormOp define : ownForms(from)) {
    names.push_back(define.getSymName().str());
    if (define.getSymName() != name || llvm::is_contained(form.own, define))
      continue;
    open.push_back(name);
    for (StringRef base : llvm::split(define.getBase().value_or(""), '+'))
      if (Status added = base.empty() ? Status::ok() : addForm(form, base.trim(), from, open); !added)
        return added;
    open.pop_back();
    form.own.push_back(define);
    return Status::ok();
  }
  if (llvm::any_of(form.own, [&](DefineFormOp define) { return define.getSymName() == name; }))
    return Status::ok();
  return modelError("there is no form '" + name.str() + "'" + nearName(name, names) + "; there are " +
                    llvm::join(names, ", "));
}

Result<Form> dmxc::transform::findForm(StringRef name, Operation *from) {
  Form form;
  SmallVector<StringRef> parts;
  name.split(parts, '+');
  SmallVector<StringRef> open;
  for (StringRef part : parts)
    if (Status added = addForm(form, part.trim(), from, open); !added)
      return added.takeError();
  return form;
}

std::string dmxc::transform::describeForms() {
  std::string text;
  for (const FormRow &row : kForms) {
    text += std::string(row.name) + "\n  " + row.meaning + "\n  brought about: " + row.fixer + "\n";
    std::string implied;
    for (const FormRow &other : kForms)
      if (&other != &row && (row.properties & other.properties) == other.properties)
        implied += (implied.empty() ? "" : ", ") + std::string(other.name);
    if (!implied.empty())
      text += "  has also: " + implied + "\n";
  }
  return text + "Names with '+' between them are a form that has all of theirs. A script adds its own with "
                "transform.dmx.define_form.\n";
}

std::vector<std::pair<StringRef, StringRef>> dmxc::transform::forms() {
  std::vector<std::pair<StringRef, StringRef>> rows;
  for (const FormRow &row : kForms)
    rows.emplace_back(row.name, row.meaning);
  return rows;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// The loops that are asked about: as many as `depth`, of a chain, or all in the nest.
static SmallVector<AffineForOp> loopsOf(AffineForOp root, unsigned depth) {
  if (depth) {
    SmallVector<AffineForOp> loops = chainFrom(root);
    loops.truncate(std::min<size_t>(depth, loops.size()));
    return loops;
  }
  SmallVector<AffineForOp> loops;
  root.walk<WalkOrder::PreOrder>([&](AffineForOp loop) { loops.push_back(loop); });
  return loops;
}

static std::string named(Operation *op) { return "'" + op->getName().getStringRef().str() + "' " + placeOf(op); }

static bool isNormalized(AffineForOp loop) {
  return loop.hasConstantLowerBound() && loop.getConstantLowerBound() == 0 && loop.getStepAsInt() == 1;
}

static bool runsOnce(AffineForOp loop) { return affine::getConstantTripCount(loop) == std::optional<uint64_t>(1); }

/// Whether all loops around an op, up to the nest's root, run for certain.
static bool runsForCertain(Operation *op, AffineForOp root) {
  for (Operation *parent = op->getParentOp(); root->isAncestor(parent); parent = parent->getParentOp()) {
    auto loop = dyn_cast<AffineForOp>(parent);
    if (!loop || affine::getConstantTripCount(loop).value_or(0) == 0)
      return false;
  }
  return true;
}

/// Whether an op computes the same wherever it stands in a nest: it reads at most what the nest does not write.
static bool isMovable(Operation *op, AffineForOp root) {
  if (op->getNumRegions() || op->hasTrait<OpTrait::IsTerminator>())
    return false;
  auto load = dyn_cast<affine::AffineLoadOp>(op);
  return load ? !isWrittenIn(root, load.getMemref()) : isMemoryEffectFree(op);
}

static bool isHoistable(Operation *op, AffineForOp root) {
  auto isOutside = [&](Value value) {
    Operation *at = value.getParentBlock()->getParentOp();
    return !root->isAncestor(at);
  };
  return op != root && llvm::all_of(op->getOperands(), isOutside) && isMovable(op, root) &&
         (isa<affine::AffineLoadOp>(op) ? runsForCertain(op, root) : isSpeculatable(op));
}

static Operation *firstHoistable(AffineForOp root) {
  Operation *found = nullptr;
  root.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!isHoistable(op, root))
      return WalkResult::advance();
    found = op;
    return WalkResult::interrupt();
  });
  return found;
}

/// Whether loops hold one loop alone; `depth` of them are to be one chain.
static Finding lacksOneLoop(AffineForOp root, unsigned depth) {
  for (AffineForOp loop : loopsOf(root, depth ? depth - 1 : 0)) {
    if (depth == 1)
      break;
    auto inner = llvm::to_vector(loop.getBody()->getOps<AffineForOp>());
    if (inner.size() > 1)
      return {inner[1], named(inner[1]) + " is a second loop in one"};
    if (inner.empty())
      continue;
    Operation *beside = besideLoop(loop, inner[0]);
    if (beside && beside == loop.getBody()->getTerminator())
      return {loop, named(loop) + " carries a value that it does not hand on as it is"};
    if (beside)
      return {beside, named(beside) + " stands beside a loop"};
  }
  return {};
}

Finding dmxc::transform::lacking(AffineForOp root, unsigned properties, unsigned depth) {
  for (AffineForOp loop : loopsOf(root, depth)) {
    if ((properties & Normalized) && !isNormalized(loop))
      return {loop, named(loop) + " does not go from 0 by 1"};
    if ((properties & MultiTrip) && runsOnce(loop))
      return {loop, named(loop) + " has one trip"};
  }
  if (properties & Hoisted)
    if (Operation *op = firstHoistable(root))
      return {op, named(op) + " does the same in all trips"};
  return properties & OneLoop ? lacksOneLoop(root, depth) : Finding();
}

//===----------------------------------------------------------------------===//
// Fixers
//===----------------------------------------------------------------------===//

namespace {

/// Brings properties about, one after the other; counts what it does.
class Fixer {
public:
  Fixer(RewriterBase &rewriter, AffineForOp root, unsigned depth) : root(root), rewriter(rewriter), depth(depth) {}

  void promote() {
    for (AffineForOp loop : loopsOf(root, depth)) {
      if (!runsOnce(loop))
        continue;
      if (loop == root)
        root = onlyLoopIn(root);
      promoteLoop(loop);
      ++promoted;
      if (!root)
        return;
    }
  }

  void normalize() {
    for (AffineForOp loop : loopsOf(root, depth))
      if (!isNormalized(loop) && succeeded(affine::normalizeAffineFor(loop)))
        ++normalized;
    composeIndices(rewriter, root);
  }

  void hoist() {
    while (Operation *op = firstHoistable(root)) {
      rewriter.moveOpBefore(op, root);
      ++hoisted;
    }
  }

  void sink() {
    for (AffineForOp loop = root, inner; (inner = onlyLoopIn(loop)); loop = inner)
      for (Operation *op = inner->getPrevNode(); op;) {
        Operation *before = op->getPrevNode();
        const bool isNeededInside =
            llvm::all_of(op->getUsers(), [&](Operation *user) { return inner->isProperAncestor(user); });
        if (isNeededInside && isMovable(op, root)) {
          rewriter.moveOpBefore(op, inner.getBody(), inner.getBody()->begin());
          ++sunk;
        }
        op = before;
      }
  }

  std::string did() const {
    std::string text;
    for (auto [count, what, how] : {std::tuple(promoted, "loop", "of one trip taken away"),
                                    {normalized, "loop", "made to go from 0 by 1"},
                                    {hoisted, "op", "moved before the nest"},
                                    {sunk, "op", "moved into the inner loop"}})
      if (count)
        text += (text.empty() ? "" : ", ") + plural(count, what) + " " + how;
    return text;
  }

  AffineForOp root;

private:
  /// A loop of one trip becomes what it holds.
  void promoteLoop(AffineForOp loop) {
    rewriter.setInsertionPoint(loop);
    Value counter =
        affine::AffineApplyOp::create(rewriter, loop.getLoc(), loop.getLowerBoundMap(), loop.getLowerBoundOperands());
    SmallVector<Value> arguments{counter};
    llvm::append_range(arguments, loop.getInits());
    Operation *yield = loop.getBody()->getTerminator();
    SmallVector<Value> results;
    for (Value value : yield->getOperands()) {
      auto *carried = llvm::find(loop.getRegionIterArgs(), value);
      const size_t number = std::distance(loop.getRegionIterArgs().begin(), carried);
      results.push_back(number < loop.getNumResults() ? loop.getInits()[number] : value);
    }
    rewriter.eraseOp(yield);
    rewriter.inlineBlockBefore(loop.getBody(), loop, arguments);
    rewriter.replaceOp(loop, results);
  }

  RewriterBase &rewriter;
  const unsigned depth;
  int promoted = 0, normalized = 0, hoisted = 0, sunk = 0;
};

constexpr int kMostRounds = 4;

} // namespace

Reached dmxc::transform::bringAbout(RewriterBase &rewriter, AffineForOp root, unsigned properties, unsigned depth) {
  OpBuilder::InsertionGuard guard(rewriter);
  Fixer fixer(rewriter, root, depth);
  Finding left = lacking(root, properties, depth);
  for (int round = 0; left.at && round < kMostRounds; ++round) {
    if (properties & MultiTrip)
      fixer.promote();
    if (!fixer.root)
      return {fixer.root, fixer.did(), {nullptr, "no loop is left of the nest"}};
    if (properties & Normalized)
      fixer.normalize();
    if (properties & Hoisted)
      fixer.hoist();
    if (properties & OneLoop)
      fixer.sink();
    left = lacking(fixer.root, properties, depth);
  }
  return {fixer.root, fixer.did(), left};
}
