//===- CudaDialect.cpp - rules of the ops by themselves -----------------------===//
#include "Cuda.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::cuda;

#include "targets/cuda/dialect/CudaOpsDialect.cpp.inc"
#define GET_OP_CLASSES
#include "targets/cuda/dialect/CudaOps.cpp.inc"

void CudaDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "targets/cuda/dialect/CudaOps.cpp.inc"
      >();
}

//===--- the machine ----------------------------------------------------------------===//

const hw::Machine &CudaDialect::getMachine() const { return machine ? *machine : hw::builtinMachine(); }
void CudaDialect::setMachine(const hw::Machine &given) { machine = std::make_shared<const hw::Machine>(given); }

const hw::Machine &dmxc::cuda::machineOf(MLIRContext *context) {
  return context->getOrLoadDialect<CudaDialect>()->getMachine();
}

namespace {
/// Brings the machine to the dialect.
struct MachineExtension : DialectExtension<MachineExtension, CudaDialect> {
  explicit MachineExtension(hw::Machine machine) : machine(std::move(machine)) {}
  void apply(MLIRContext *, CudaDialect *dialect) const override { dialect->setMachine(machine); }

  hw::Machine machine;
};
} // namespace

void dmxc::cuda::registerMachine(DialectRegistry &registry, const hw::Machine &machine) {
  dlir::DeviceModel model;
  model.name = kDeviceName.str();
  model.memories = {{kSharedMemory.str(), machine.mostShared, machine.multiprocessors}};
  model.units = {{kBlockUnit.str(), {{kCopyEngine.str()}, {kMultiplyEngine.str()}}, 2}}; // the barriers of one ring
  dlir::registerDevice<CudaDialect>(registry, std::move(model));
  registry.insert<CudaDialect>();
  registry.addExtension(TypeID::get<MachineExtension>(), std::make_unique<MachineExtension>(machine));
}

//===--- rules ----------------------------------------------------------------------===//

LogicalResult CopyOp::verify() {
  if (getSide() != "left" && getSide() != "right")
    return emitOpError() << "copies '" << getSide() << "'; a product has the operands left and right";
  if (getSizes().has_value() == getPairs().has_value())
    return emitOpError() << "of the " << getSide() << " operand is by a map or by threads, one of both";
  return success();
}

LogicalResult PipelineOp::verifyRegions() {
  llvm::StringSet<> roles;
  for (Operation &op : getBody().front())
    if (auto role = dyn_cast<RoleOp>(op); role && !roles.insert(role.getName()).second)
      return op.emitOpError() << "C1: another one has the name '" << role.getName() << "'";
    else if (!role && !isa<dlir::DeviceProgramOp>(op))
      return op.emitOpError("C1: does not stand in a cuda.pipeline");
  auto programs = getBody().getOps<dlir::DeviceProgramOp>();
  if (!llvm::hasSingleElement(programs))
    return emitOpError("C1: holds ") << std::distance(programs.begin(), programs.end())
                                     << " programs; it has one, a dlir.device_program";
  return success();
}
