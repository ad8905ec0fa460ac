//===- PropagateSparsity.cpp - what is known of tensors, and demanded -----===//
#include "Facts.h"

#include "dmxc/Dialect/DLIR/DLIR.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Phases/Phases.h"
#include "dmxc/Phases/Sparsity.h"

namespace dmxc {
#define GEN_PASS_DEF_PROPAGATESPARSITY
#include "dmxc/Phases/Frontend/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;
using namespace dmxc::dmir;

namespace {

/// Ops whose results are said: constants, and what computes.
bool saysFacts(Operation *op) {
  return op->getNumResults() == 1 && isa<DMIRDialect>(op->getDialect()) && !isa<RegionOp>(op);
}
bool saysDemand(Operation *op) { return saysFacts(op) && !op->hasTrait<DataMovement>() && op->getNumOperands() > 0; }

struct PropagateSparsity : dmxc::impl::PropagateSparsityBase<PropagateSparsity> {
  void runOnOperation() override {
    auto module = getOperation()->getParentOfType<ModuleOp>();
    findFacts(getOperation(), kLeastSparse, module && module->hasAttr(kSparsityAttr));
  }
};

/// Whether, element by element, what one rule keeps another one keeps too; nothing where they are too many.
std::optional<bool> isWithinByElement(Value value, const Rule &inner, const Rule &outer) {
  constexpr int64_t most = 1 << 20;
  auto type = typeOf(value);
  std::optional<SmallVector<int64_t>> ofInner = symbolsOf(inner), ofOuter = symbolsOf(outer);
  if (!type.hasStaticShape() || type.getNumElements() > most || !ofInner || !ofOuter)
    return std::nullopt;
  SmallVector<int64_t> index(type.getRank(), 0);
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    int64_t rest = i;
    for (size_t axis = index.size(); axis-- > 0; rest /= type.getDimSize(axis))
      index[axis] = rest % type.getDimSize(axis);
    if (keeps(inner, index, *ofInner) && !keeps(outer, index, *ofOuter))
      return false;
  }
  return true;
}

/// Whether each index that a rule keeps another one keeps too, as far as that is seen.
bool isWithin(Operation *scope, Value value, const Rule &inner, const Rule &outer) {
  IndexFunctions space(scope, dimsOf(value));
  space.crossRegions();
  SmallVector<AffineExpr> index;
  for (int64_t axis = 0; axis < typeOf(value).getRank(); ++axis)
    index.push_back(getAffineDimExpr(axis, value.getContext()));
  SmallVector<Conditions> own = space.casesAt(inner, index), whole = space.casesAt(outer, index);
  if (llvm::all_of(own, [&](const Conditions &one) { return llvm::is_contained(whole, one); }))
    return true;
  std::optional<SmallVector<Conditions>> rest = space.outside(whole);
  bool follows =
      rest && llvm::all_of(own, [&](const Conditions &one) {
        return llvm::none_of(*rest, [&](const Conditions &other) { return space.both(one, other).has_value(); });
      });
  return follows || isWithinByElement(value, inner, outer).value_or(false);
}

std::string textOf(const Rule &rule) { return rule.cases.empty() ? "nowhere" : "where " + describe(rule); }

/// Holds what is said against what follows.
class FactCheck {
public:
  FactCheck(const sparsity::Knowledge &knowledge, const sparsity::Demands *demands, std::vector<FalseFact> &all)
      : knowledge(knowledge), demands(demands), all(all) {}

  void check(Operation *op) {
    if (!saysFacts(op) || !op->hasAttr(kSparsityAttr))
      return;
    Value result = op->getResult(0);
    if (std::optional<Known> said = knownOf(result))
      checkKnown(op, *said, knowledge.of(result));
    if (std::optional<Demand> said = demandOf(result); said && demands)
      checkDemand(op, *said, demands->of(result));
  }

private:
  void checkKnown(Operation *op, const Known &said, const std::optional<Known> &follows) {
    bool isSame = follows && follows->value == said.value;
    if ((isSame && isWithin(op, op->getResult(0), follows->keep, said.keep)) || (!follows && !demands))
      return; // a kernel has not all that it followed from: scalars are operands
    std::string is = "it is said to be " + number(said.value) + " but " + textOf(said.keep);
    all.push_back(
        {op, is + (follows ? "; what follows is that it is " + number(follows->value) + " but " + textOf(follows->keep)
                           : ", which does not follow from its operands")});
  }

  void checkDemand(Operation *op, const Demand &said, const std::optional<Demand> &follows) {
    Rule whole;
    whole.rank = typeOf(op->getResult(0)).getRank();
    whole.cases.push_back(IntegerSet::get(whole.rank, 0, getAffineConstantExpr(0, op->getContext()), {false}));
    if (isWithin(op, op->getResult(0), follows ? follows->keep : whole, said.keep))
      return;
    all.push_back({op, "it is said to be demanded " + textOf(said.keep) + "; its users demand it " +
                           (follows ? textOf(follows->keep) : "as a whole")});
  }

  static std::string number(double value) {
    std::string text;
    llvm::raw_string_ostream(text) << value;
    return text;
  }

  const sparsity::Knowledge &knowledge;
  const sparsity::Demands *demands;
  std::vector<FalseFact> &all;
};

} // namespace

namespace dmxc {

void findFacts(func::FuncOp function, int64_t least, bool off) {
  function.walk([](Operation *op) { op->removeAttr(kSparsityAttr); });
  if (off || function.isExternal())
    return;
  sparsity::Knowledge knowledge(least);
  sparsity::Demands demands;
  knowledge.read(function.getBody().front());
  demands.read(function);
  function.walk([&](Operation *op) {
    if (!saysFacts(op))
      return;
    Value result = op->getResult(0);
    NamedAttrList facts;
    if (std::optional<Known> known = knowledge.of(result))
      facts.set(kKnownKey, attrOf(*known, elementOf(result)));
    auto type = typeOf(result);
    bool isLarge = !type.hasStaticShape() || type.getNumElements() >= least;
    if (std::optional<Demand> demand = saysDemand(op) && isLarge ? demands.of(result) : std::nullopt)
      facts.set(kDemandedKey, attrOf(*demand, op->getContext()));
    if (!facts.empty())
      op->setAttr(kSparsityAttr, facts.getDictionary(op->getContext()));
  });
}

std::vector<FalseFact> falseFacts(ModuleOp module, llvm::function_ref<bool(StringRef device)> keepsOps) {
  std::vector<FalseFact> all;
  auto says = [](Operation *whole) {
    return whole
        ->walk(
            [](Operation *op) { return op->hasAttr(kSparsityAttr) ? WalkResult::interrupt() : WalkResult::advance(); })
        .wasInterrupted();
  };
  for (Operation &op : *module.getBody()) {
    if (!says(&op))
      continue;
    sparsity::Knowledge knowledge(/*least=*/1);
    sparsity::Demands demands;
    if (auto function = dyn_cast<func::FuncOp>(op); function && !function.isExternal()) {
      knowledge.read(function.getBody().front());
      demands.read(function);
      FactCheck check(knowledge, &demands, all);
      function.walk([&](Operation *inner) { check.check(inner); });
    } else if (auto kernel = dyn_cast<dlir::KernelOp>(op);
               kernel && keepsOps(kernel.getDevice()) && !kernel.getBlock()->getOps<MatMulOp>().empty()) {
      for (BlockArgument argument : kernel.getBlock()->getArguments())
        if (std::optional<Known> known = knownOf(argument))
          knowledge.assume(argument, *known);
      knowledge.read(*kernel.getBlock());
      FactCheck check(knowledge, nullptr, all);
      for (Operation &inner : *kernel.getBlock())
        check.check(&inner);
    }
  }
  return all;
}

std::unique_ptr<Pass> createPropagateSparsityPass(const PhaseContext &) {
  return std::make_unique<PropagateSparsity>();
}

} // namespace dmxc
