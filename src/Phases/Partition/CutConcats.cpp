//===- CutConcats.cpp - no more parts than a kernel is given --------------===//
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc {
#define GEN_PASS_DEF_CUTCONCATS
#include "dmxc/Phases/Partition/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

/// Parts of a concatenation that a kernel of the target can have beside its result and the sizes in both.
uint64_t mostParts(dmir::ConcatOp op, const TargetBackend &target) {
  dmir::SymbolSet symbols;
  dmir::collectSymbols(op, symbols);
  uint64_t others = symbols.size() + 1, most = target.mostArguments();
  return most > others + 2 ? most - others : 2;
}

/// The same from concatenations of neighbours: as few as can be, of equal numbers of parts.
void cut(dmir::ConcatOp op, uint64_t most) {
  OpBuilder builder(op);
  SmallVector<Value> parts(op.getInputs());
  while (parts.size() > most) {
    size_t groups = (parts.size() + most - 1) / most, each = (parts.size() + groups - 1) / groups;
    SmallVector<Value> joined;
    for (ArrayRef<Value> rest = parts; !rest.empty(); rest = rest.drop_front(std::min(each, rest.size()))) {
      ArrayRef<Value> some = rest.take_front(each);
      joined.push_back(some.size() == 1 ? some.front()
                                        : dmir::ConcatOp::create(builder, op.getLoc(), some, op.getAxis()).getResult());
    }
    parts = std::move(joined);
  }
  op.getInputsMutable().assign(parts);
}

struct CutConcats : dmxc::impl::CutConcatsBase<CutConcats> {
  explicit CutConcats(const PhaseContext &context) : context(context) {}

  void runOnOperation() override {
    for (auto op : llvm::make_early_inc_range(getOperation().getOps<dmir::ConcatOp>())) {
      const TargetBackend *target = context.responsible(op);
      if (!target || target->computesWholeGraphs())
        continue;
      if (uint64_t most = mostParts(op, *target); op.getInputs().size() > most)
        cut(op, most);
    }
  }

  const PhaseContext &context;
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createCutConcatsPass(const PhaseContext &context) {
  return std::make_unique<CutConcats>(context);
}
} // namespace dmxc
