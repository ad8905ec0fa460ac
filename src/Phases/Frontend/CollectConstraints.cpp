//===- CollectConstraints.cpp - what symbolic dims must hold --------------===//
#include "dmxc/Dialect/DMIR/Constraints.h"
#include "dmxc/Dialect/DMIR/Lengths.h"
#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <set>

namespace dmxc {
#define GEN_PASS_DEF_COLLECTCONSTRAINTS
#include "dmxc/Phases/Frontend/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

/// An input dim that names a size which no run can know: it stands in expressions alone, of which none is solved.
LogicalResult sizesAreKnown(func::FuncOp main) {
  if (main.getSymName() != "main") // of others the caller's tensors decide
    return success();
  std::set<std::string> known;
  for (Type type : main.getArgumentTypes())
    for (Dim dim : dmir::dimsOf(type))
      if (std::optional<std::string> symbol = dim.symbolName())
        known.insert(*symbol);
  if (auto computed = main->getParentOfType<ModuleOp>()->getAttrOfType<ArrayAttr>(dmir::kComputedDimsAttr))
    for (Attribute pair : computed)
      known.insert(cast<StringAttr>(cast<ArrayAttr>(pair)[0]).getValue().str());
  for (unsigned i = 0; i < main.getNumArguments(); ++i)
    if (auto room = main.getArgAttrOfType<ArrayAttr>(i, dmir::kRoomAttr))
      if (std::optional<std::string> symbol = dmir::dimOfAttr(room[2]).symbolName())
        known.insert(*symbol);
  if (auto lengths = main->getAttrOfType<ArrayAttr>(dmir::kLengthsAttr))
    for (Attribute pair : lengths)
      known.insert(cast<StringAttr>(cast<ArrayAttr>(pair)[0]).getValue().str());
  for (BlockArgument argument : main.getArguments())
    for (Dim dim : dmir::dimsOf(argument.getType())) {
      std::string unknown;
      dim.forEachSymbol([&](std::string_view symbol) {
        if (std::string name(symbol); !known.count(name))
          unknown = name;
      });
      if (!unknown.empty())
        return emitError(argument.getLoc())
               << "input " << argument.getArgNumber() << " has the size '" << dim.str() << "', but no input has '"
               << unknown << "' itself, so that no run knows it; give this size a name of its own";
    }
  return success();
}

struct CollectConstraints : dmxc::impl::CollectConstraintsBase<CollectConstraints> {
  void runOnOperation() override {
    if (failed(sizesAreKnown(getOperation())))
      return signalPassFailure();
    // Many nodes ask for the same: the first one that does is named.
    std::set<std::tuple<int, std::string, std::string>> seen;
    SmallVector<Attribute> list;
    auto add = [&](const dmir::DimConstraint &constraint) {
      if (seen.insert({static_cast<int>(constraint.kind), constraint.lhs.str(), constraint.rhs.str()}).second)
        list.push_back(dmir::toAttr(&getContext(), constraint));
    };
    getOperation().walk([&](Operation *op) { dmir::collectConstraints(op, add); });
    if (auto assumed = getOperation()->getAttrOfType<ArrayAttr>(dmir::kAssumedAttr))
      for (Attribute attr : assumed)
        if (std::optional<dmir::DimConstraint> constraint = dmir::constraintOf(attr))
          add(*constraint);
    getOperation()->removeAttr(dmir::kAssumedAttr);
    if (list.empty())
      getOperation()->removeAttr(dmir::kConstraintsAttr);
    else
      getOperation()->setAttr(dmir::kConstraintsAttr, ArrayAttr::get(&getContext(), list));
  }
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createCollectConstraintsPass(const PhaseContext &) {
  return std::make_unique<CollectConstraints>();
}
} // namespace dmxc
