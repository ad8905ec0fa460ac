//===- CorsairDialect.cpp - the dialect, and the machine as DLIR's table --===//
#include "targets/corsair/dialect/Corsair/Corsair.h"

using namespace mlir;
using namespace dmxc;
namespace hw = dmx::corsair;

#include "targets/corsair/dialect/Corsair/CorsairDialect.cpp.inc"

void corsair::engine::CorsairDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "targets/corsair/dialect/Corsair/CorsairOps.cpp.inc"
      >();
}

LogicalResult corsair::engine::CorsairDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  auto number = dyn_cast<IntegerAttr>(attribute.getValue());
  if (attribute.getName() == kRepeatedMacs && (!number || !number.getType().isInteger(64) || number.getInt() < 1))
    return op->emitOpError("says by '") << kRepeatedMacs
                                        << "' how many multiply-adds are repeated: an i64 from 1 on, not "
                                        << attribute.getValue();
  return success();
}

hw::Memory corsair::memoryOf(dlir::MemoryOp memory) {
  for (int kind = 0; kind < hw::kMemories; ++kind)
    if (auto known = static_cast<hw::Memory>(kind); memory.getKind() == StringRef(hw::nameOf(known)))
      return known;
  llvm_unreachable("a verified program names memories of the machine");
}

hw::Memory corsair::memoryOf(Value buffer) { return memoryOf(buffer.getDefiningOp<dlir::MemoryOp>()); }

static constexpr StringLiteral kUserLine = "corsair.user_line";

Location corsair::userLocation(Location node, StringRef file, unsigned line) {
  MLIRContext *context = node.getContext();
  return FusedLoc::get({node, FileLineColLoc::get(context, file, line, 0)}, StringAttr::get(context, kUserLine),
                       context);
}

std::string corsair::userPlace(Location location) {
  auto fused = dyn_cast<FusedLoc>(location);
  auto mark = fused ? dyn_cast_or_null<StringAttr>(fused.getMetadata()) : StringAttr();
  if (!mark || mark.getValue() != kUserLine)
    return "";
  for (Location part : fused.getLocations())
    if (auto place = dyn_cast<FileLineColLoc>(part))
      return place.getFilename().str() + ":" + std::to_string(place.getLine());
  return "";
}

/// The moves from a memory; those into GM by which queues of other quads are reached start in DDR and GM.
static std::vector<dlir::MemoryModel::Move> movesFrom(hw::Memory source) {
  std::vector<dlir::MemoryModel::Move> moves;
  for (int kind = 0; kind < hw::kMemories; ++kind)
    if (auto target = static_cast<hw::Memory>(kind); hw::isLegalMove(source, target))
      moves.push_back({std::string(hw::nameOf(target)),
                       target == hw::Memory::GM && (source == hw::Memory::DDR || source == hw::Memory::GM)});
  return moves;
}

dlir::DeviceModel corsair::deviceModel(const hw::Machine &machine) {
  dlir::DeviceModel model;
  model.name = "corsair";
  for (int kind = 0; kind < hw::kMemories; ++kind) {
    auto memory = static_cast<hw::Memory>(kind);
    dlir::MemoryModel &row = model.memories.emplace_back();
    row.name = hw::nameOf(memory);
    row.size = static_cast<int64_t>(machine.memory(memory).size);
    row.units = machine.unitCount(memory);
    row.subunits = machine.memory(memory).scope == hw::MemoryInfo::Scope::Core;
    row.moves = movesFrom(memory);
  }
  model.units = {{kUnit.str(), {{kEngine.str(), machine.queuesPerQuad}}, hw::kTokens}};
  model.scopes = {"queues", "quad", "chiplet", "card"}; // as hw::Scope counts them
  model.descriptorDims = 4;
  model.largestCount = hw::findConfigKey(hw::ConfigKey::N0)->max;
  model.largestStep = hw::findConfigKey(hw::ConfigKey::S0)->max;
  return model;
}

void corsair::registerDevice(DialectRegistry &registry, const hw::Machine &machine) {
  registry.insert<engine::CorsairDialect>();
  dlir::registerDevice<engine::CorsairDialect>(registry, deviceModel(machine));
}
