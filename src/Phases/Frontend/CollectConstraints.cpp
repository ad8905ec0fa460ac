//===- CollectConstraints.cpp - what symbolic dims must hold --------------===//
#include "dmxc/Dialect/DMIR/Constraints.h"
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

struct CollectConstraints : dmxc::impl::CollectConstraintsBase<CollectConstraints> {
  void runOnOperation() override {
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
