//===- AbacusDialect.cpp - the dialect, and the machine as DLIR's table ---===//
#include "Abacus.h"

#include "dmxc/Dialect/DLIR/TaskSyntax.h"
#include "targets/common/queues/QueueCode.h"

using namespace mlir;
using namespace dmxc;

#include "targets/abacus/AbacusOpsDialect.cpp.inc"
#define GET_OP_CLASSES
#include "targets/abacus/AbacusOps.cpp.inc"

void abacus::AbacusDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "targets/abacus/AbacusOps.cpp.inc"
      >();
}

static constexpr StringLiteral kPlaces[] = {"", "x", "to"};
static constexpr dlir::Clause kClauses[] = {{"accumulate", dlir::Clause::Map}};
static constexpr dlir::TaskSyntax kSyntax{dlir::TaskSyntax::None, "", kPlaces, kClauses};
namespace abacus {
DMXC_TASK_SYNTAX(MultiplyOp, kSyntax)
} // namespace abacus

LogicalResult abacus::MultiplyOp::verify() {
  if (failed(dlir::verifyTask(dlir::partsOf(*this))))
    return failure();
  if (getBuffers().size() != 3 || getDescriptor() ||
      llvm::any_of(getBuffers(), [](Value buffer) { return dlir::memoryOf(buffer) != "SRAM"; }))
    return emitOpError("C1: multiplies two tiles in SRAM into a third");
  return success();
}

void abacus::registerDevice(DialectRegistry &registry) {
  registry.insert<AbacusDialect>();
  dlir::DeviceModel model = queueModel(dmx::abacus::kMachine);
  model.memories[0].moves = {{"SRAM"}};
  model.memories[1].moves = {{"DRAM"}};
  model.memories[0].element = model.memories[1].element = sizeof(float);
  model.units = {{"abacus", {{"dma", 4}, {"multiplier", 1}}, 16}};
  model.descriptorDims = 1;
  model.largestCount = dmx::abacus::kTile;
  dlir::registerDevice<AbacusDialect>(registry, std::move(model));
}
