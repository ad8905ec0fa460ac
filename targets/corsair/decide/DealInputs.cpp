//===- DealInputs.cpp - what each quad fetches of what the host brings ----===//
//
// Where all that a quad reads of an input is one part, it fetches that part and no other: DDR brings each byte to one
// chiplet instead of to all.
//
//===----------------------------------------------------------------------===//

#include "Decide.h"
#include "Ops.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

namespace {

/// Asks of an input, and of views of it, whether a part is enough.
struct Readers {
  const Distribution &deal;
  const hw::Machine &machine;
  llvm::function_ref<bool(Value)> isConstant;

  bool needNoMore(Value value, Split part) const {
    return llvm::all_of(value.getUsers(), [&](Operation *op) {
      if (op->hasTrait<OpTrait::IsTerminator>())
        return false; // it goes back as it came
      if (makesNothing(op))
        return true;
      if (!isView(op))
        return readsPart(op, value, part, deal, machine, isConstant);
      std::optional<Split> viewed = viewedSplit(op, part, deal.quads);
      return viewed && needNoMore(op->getResult(0), *viewed);
    });
  }
};

/// Views have what their operand has.
void setViews(Value value, Split part, Distribution &deal) {
  deal.of[value] = part;
  for (Operation *op : value.getUsers())
    if (isView(op) && !makesNothing(op))
      if (std::optional<Split> viewed = viewedSplit(op, part, deal.quads))
        setViews(op->getResult(0), *viewed, deal);
}

} // namespace

void dmxc::corsair::dealInputs(Block *body, Distribution &deal, const hw::Machine &machine, const ArgumentKinds &kinds,
                               DictionaryAttr given) {
  const Readers readers{deal, machine, kinds.isConstant};
  for (BlockArgument argument : body->getArguments()) {
    if (deal.quads < 2 || !kinds.isInput(argument) || llvm::all_of(argument.getUsers(), makesNothing) ||
        (given && given.contains(std::to_string(argument.getArgNumber()))))
      continue;
    for (auto [dim, extent] : llvm::enumerate(shapeOf(argument))) {
      const Split part{static_cast<int>(dim), extent / deal.quads};
      if (extent == 0 || extent % deal.quads || !readers.needNoMore(argument, part))
        continue;
      setViews(argument, part, deal);
      break;
    }
  }
}
