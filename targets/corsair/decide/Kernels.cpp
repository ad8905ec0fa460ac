//===- Kernels.cpp - what partition decided for a kernel ------------------===//

#include "Kernels.h"
#include "../write/DeviceTensor.h"
#include "Constants.h"
#include "Spread.h"

#include "dmxc/Target/TargetBackend.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

DictionaryAttr dmxc::corsair::packedForm(dlir::KernelOp kernel, BlockArgument argument) {
  auto packed = kernel.getStrategy().getAs<DictionaryAttr>(strategy::kPacked);
  return packed ? packed.getAs<DictionaryAttr>(std::to_string(argument.getArgNumber())) : DictionaryAttr();
}

Result<Distribution> dmxc::corsair::distributionOf(dlir::KernelOp kernel, const hw::Machine &machine) {
  auto quads = kernel.getStrategy().getAs<IntegerAttr>(kQuadsKey);
  if (quads && (quads.getInt() < 1 || quads.getInt() > machine.quadCount()))
    return modelError("kernel '" + kernel.getSymName().str() + "': '" + kQuadsKey.str() + "' is " +
                      std::to_string(quads.getInt()) + ", the machine has " + std::to_string(machine.quadCount()));
  Result<Distribution> deal =
      Distribution::read(kernel.getBlock(), quads ? static_cast<int>(quads.getInt()) : 1,
                         kernel.getStrategy().getAs<DictionaryAttr>(kDealsKey),
                         [&](BlockArgument argument) { return static_cast<bool>(packedForm(kernel, argument)); });
  if (!deal)
    return deal;
  for (Operation &op : kernel.getBlock()->without_terminator())
    if (auto plan = op.getAttrOfType<lldmir::PlanAttr>(lldmir::kPlanAttr); plan && isProduct(&op))
      if (std::optional<std::string> why = unfit(productOf(&op, *deal), plan, machine))
        return modelError("node '" + dmir::nodeName(&op) + "': '" + lldmir::kPlanAttr.str() + "' cannot be: " + *why);
  auto constant = [&](unsigned number) {
    return static_cast<bool>(packedForm(kernel, kernel.getBlock()->getArgument(number)));
  };
  const DictionaryAttr wanted = packedForms(kernel.getBlock(), *deal, constant);
  for (NamedAttribute form : wanted)
    if (kernel.getStrategy().getAs<DictionaryAttr>(strategy::kPacked).get(form.getName()) != form.getValue())
      return modelError("kernel '" + kernel.getSymName().str() + "': the form of its argument " + form.getName().str() +
                        " in '" + strategy::kPacked.str() + "' is not that of its reader's plan and deal");
  return deal;
}

SmallVector<unsigned> dmxc::corsair::preferredOrder(Value value, size_t rank) {
  bool image = rank == 4 && llvm::any_of(value.getUsers(), [&](Operation *user) {
                 return isa<dmir::ConvOp, dmir::PoolOp>(user) && user->getOperand(0) == value;
               });
  return image ? SmallVector<unsigned>{0, 2, 3, 1} : rowMajor(rank);
}

bool dmxc::corsair::isTable(BlockArgument argument) {
  return llvm::all_of(argument.getUses(), [](OpOperand &use) {
    auto gather = dyn_cast<dmir::GatherOp>(use.getOwner());
    return gather && gather.getData() == use.get() && gather.getIndices() != use.get();
  });
}
