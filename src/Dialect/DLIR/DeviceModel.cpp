//===- DeviceModel.cpp - what targets tell DLIR of their devices ----------===//
#include "dmxc/Dialect/DLIR/Device.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace dmxc::dlir;

const MemoryModel::Move *MemoryModel::moveTo(StringRef memory) const {
  auto move = llvm::find_if(moves, [&](const Move &m) { return m.to == memory; });
  return move == moves.end() ? nullptr : &*move;
}

const MemoryModel *DeviceModel::memory(StringRef memory) const {
  auto row = llvm::find_if(memories, [&](const MemoryModel &m) { return m.name == memory; });
  return row == memories.end() ? nullptr : &*row;
}

const UnitModel::Engine *UnitModel::engine(StringRef engine) const {
  auto row = llvm::find_if(engines, [&](const Engine &e) { return e.name == engine; });
  return row == engines.end() ? nullptr : &*row;
}

const UnitModel *DeviceModel::unit(StringRef unit) const {
  auto row = llvm::find_if(units, [&](const UnitModel &u) { return u.name == unit; });
  return row == units.end() ? nullptr : &*row;
}

std::string DeviceModel::memoryNames() const {
  return llvm::join(llvm::map_range(memories, [](const MemoryModel &m) { return m.name; }), ", ");
}

std::string DeviceModel::unitNames() const {
  return llvm::join(llvm::map_range(units, [](const UnitModel &u) { return u.name; }), ", ");
}

const DeviceModel *DLIRDialect::findDevice(StringRef name) const {
  auto at = llvm::find_if(devices, [&](const auto &model) { return model->name == name; });
  return at == devices.end() ? nullptr : at->get();
}

void DLIRDialect::addDevice(DeviceModel model) {
  auto at = llvm::find_if(devices, [&](const auto &known) { return known->name == model.name; });
  auto shared = std::make_shared<const DeviceModel>(std::move(model));
  if (at == devices.end())
    devices.push_back(std::move(shared));
  else
    *at = std::move(shared);
}

const DeviceModel *dmxc::dlir::modelOf(Operation *op) {
  auto program = dyn_cast<DeviceProgramOp>(op);
  if (!program)
    program = op->getParentOfType<DeviceProgramOp>();
  auto *dialect = op->getContext()->getLoadedDialect<DLIRDialect>();
  return program && dialect ? dialect->findDevice(program.getDevice()) : nullptr;
}

StringRef dmxc::dlir::memoryOf(Value buffer) { return buffer.getDefiningOp<MemoryOp>().getKind(); }

SmallVector<Value> dmxc::dlir::buffersAt(ValueRange buffers, std::initializer_list<unsigned> numbers) {
  SmallVector<Value> found;
  for (unsigned number : numbers)
    if (number < buffers.size())
      found.push_back(buffers[number]);
  return found;
}
