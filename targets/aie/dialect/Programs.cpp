//===- Programs.cpp - what DLIR's programs of the array may say -----------===//
#include "targets/aie/dialect/Aie.h"

#include "dmxc/Dialect/DLIR/TaskSyntax.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

static dlir::UnitModel unitsOf(const hw::Machine &machine, hw::TileKind kind) {
  const hw::TileInfo &info = machine.tile(kind);
  dlir::UnitModel row;
  row.name = hw::nameOf(kind);
  for (hw::Direction direction : {hw::Direction::S2MM, hw::Direction::MM2S})
    row.engines.push_back({std::string(hw::nameOf(direction)), info.channels});
  if (kind == hw::TileKind::Core)
    row.engines.push_back({kComputeEngine.str(), 1});
  row.tokens = kind == hw::TileKind::Shim ? 0 : info.locks; // shims' tasks are ordered by the controller
  return row;
}

/// A memory that DMAs of tiles of this kind walk over.
static dlir::MemoryModel memoryOf(const hw::Machine &machine, hw::TileKind kind, StringRef name, int64_t size,
                                  int64_t units) {
  const hw::TileInfo &info = machine.tile(kind);
  dlir::MemoryModel row;
  row.name = name;
  row.size = size;
  row.units = units;
  row.alignment = machine.accessBytes;
  row.element = 4;
  row.descriptorDims = static_cast<unsigned>(kind == hw::TileKind::Shim ? info.dims : info.dims - 1); // and the unit
  row.largestStep = 4 * info.largestStep;
  row.padding = false;
  return row;
}

void aie::registerDevice(DialectRegistry &registry, const hw::Machine &machine) {
  int64_t columns = machine.columns;
  dlir::DeviceModel model;
  model.name = kDevice.str();
  model.memories = {
      memoryOf(machine, hw::TileKind::Shim, "DDR", int64_t(1) << 36, 1),
      memoryOf(machine, hw::TileKind::Memory, "L2", machine.tile(hw::TileKind::Memory).dataBytes, columns),
      memoryOf(machine, hw::TileKind::Core, "L1", machine.tile(hw::TileKind::Core).dataBytes,
               columns * machine.coreRows())};
  model.memories[0].moves = {{"L2"}, {"L1"}};
  model.memories[1].moves = {{"DDR"}, {"L2"}, {"L1"}};
  model.memories[2].moves = {{"DDR"}, {"L2"}, {"L1"}};
  model.units = {unitsOf(machine, hw::TileKind::Core), unitsOf(machine, hw::TileKind::Memory),
                 unitsOf(machine, hw::TileKind::Shim)};
  for (const dlir::MemoryModel &memory : model.memories)
    model.descriptorDims = std::max(model.descriptorDims, memory.descriptorDims);
  model.channels = model.arrays = model.fixedSlots = true;
  dlir::registerDevice<AIEDialect>(registry, std::move(model));
}

//===--- calls ------------------------------------------------------------------------===//

static constexpr StringLiteral kPlaces[] = {"", "?and", "?and"};
static constexpr dlir::TaskSyntax kSyntax{dlir::TaskSyntax::Text, "kernel", kPlaces, {}};
namespace dmxc::aie {
DMXC_TASK_SYNTAX(CallOp, kSyntax)
} // namespace dmxc::aie

LogicalResult aie::CallOp::verify() {
  if (failed(dlir::verifyTask(dlir::partsOf(*this))))
    return failure();
  std::optional<hw::KernelId> kernel = hw::kernelNamed(getKernel().str());
  if (!kernel)
    return emitOpError("C1: the cores' library has no '") << getKernel() << "'";
  if (size_t takes = hw::infoOf(*kernel).addresses.size() - hw::takesParameters(*kernel); takes != getBuffers().size())
    return emitOpError("C1: ") << getKernel() << " takes " << takes << " matrices, not " << getBuffers().size();
  auto begins = [](Attribute place) {
    AffineMap map = cast<AffineMapAttr>(place).getValue();
    return map.isSingleConstant() && map.getSingleConstantResult() == 0;
  };
  if (getDescriptor() || !llvm::all_of(getPlaces(), begins) ||
      llvm::any_of(getBuffers(), [](Value buffer) { return dlir::memoryOf(buffer) != "L1"; }))
    return emitOpError("C2: takes whole buffers of L1");
  return success();
}
