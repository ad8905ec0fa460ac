//===- CorsairTarget.cpp - the Corsair target's answers to the phases -----===//

#include "emit/Constants.h"
#include "emit/KernelLowering.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Target/TargetBackend.h"

#include <list>

using namespace mlir;
using namespace dmxc;
namespace hw = dmx::corsair;

namespace {

class CorsairTarget : public TargetBackend {
public:
  explicit CorsairTarget(hw::Machine machine) : machine(std::move(machine)) {}

  StringRef name() const override { return "corsair"; }
  std::optional<std::string> refuses(Operation *op) const override { return corsair::refusal(op, machine); }
  bool computesWholeGraphs() const override { return true; }
  bool fusesProducer(Operation *, OpOperand &, Operation *) const override { return false; }
  bool fusesConsumer(Operation *, Value, Operation *) const override { return false; }
  Result<DictionaryAttr> chooseStrategy(dmir::RegionOp region) const override;
  Status pack(DictionaryAttr form, const Tensor &constant, std::span<std::byte> out) const override {
    return corsair::packConstant(form, constant, out);
  }
  Result<std::vector<CodeEntry>> emit(ArrayRef<dlir::KernelOp> kernels) const override;
  std::string describe() const override { return machine.source; }

private:
  hw::Machine machine;
};

Result<DictionaryAttr> CorsairTarget::chooseStrategy(dmir::RegionOp region) const {
  Builder b(region.getContext());
  NamedAttrList list;
  list.set(strategy::kAlgorithm, b.getStringAttr("dmx-isa"));
  list.set(strategy::kWork, b.getI64IntegerAttr(1));
  list.set(strategy::kGrain, b.getI64IntegerAttr(1));
  list.set(strategy::kScratch, b.getI64IntegerAttr(0));
  list.set(strategy::kFlops, b.getI64IntegerAttr(0));
  list.set(strategy::kBytes, b.getI64IntegerAttr(0));
  list.set(strategy::kOwnsConstants, b.getUnitAttr());
  auto constant = [&](unsigned operand) { return dmir::isConstant(region.getInputs()[operand]); };
  DictionaryAttr packed = corsair::packedForms(region.getBlock(), machine, constant);
  if (!packed.empty())
    list.set(strategy::kPacked, packed);
  return list.getDictionary(region.getContext());
}

Result<std::vector<CodeEntry>> CorsairTarget::emit(ArrayRef<dlir::KernelOp> kernels) const {
  hw::Image image;
  image.machine = machine;
  std::list<corsair::KernelLowering> lowered;
  corsair::MemoryUse permanent{};
  for (dlir::KernelOp kernel : kernels) {
    auto packed = kernel.getStrategy().getAs<DictionaryAttr>(strategy::kPacked);
    corsair::KernelLowering &lowering = lowered.emplace_back(machine, image);
    if (Status s = lowering.lower(kernel.getBlock(), kernel.getSymName(), packed ? packed : DictionaryAttr()); !s)
      return s.takeError();
    lowering.placePermanent(permanent);
  }
  for (corsair::KernelLowering &lowering : lowered)
    if (Status s = lowering.finish(permanent); !s)
      return s.takeError();
  if (hw::MaybeError wrong = hw::verify(image))
    return Error{ErrorKind::Internal, "the program for the device is not valid: " + *wrong};
  std::vector<uint8_t> bytes = hw::write(image);
  CodeEntry entry{"code/corsair/" + machine.name + "/kernels.dmxisa", machine.name, {}, {bytes.begin(), bytes.end()}};
  return std::vector<CodeEntry>{std::move(entry)};
}

} // namespace

namespace dmxc {
Result<std::unique_ptr<TargetBackend>> createCorsairTarget(const TargetOptions &options) {
  if (!options.levels.empty())
    return usageError("the corsair target has one built-in machine; leave out ':" + options.levels.front() + "'");
  return std::unique_ptr<TargetBackend>(new CorsairTarget(hw::builtinMachine()));
}
} // namespace dmxc
