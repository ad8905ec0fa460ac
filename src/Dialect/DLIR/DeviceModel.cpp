//===- DeviceModel.cpp - what targets tell DLIR of their devices ----------===//
#include "dmxc/Dialect/DLIR/Device.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace dmxc::dlir;

/// The row of a table with a name; null if there is none.
template <typename Row> static const Row *rowOf(const std::vector<Row> &rows, StringRef name) {
  auto row = llvm::find_if(rows, [&](const Row &r) { return r.name == name; });
  return row == rows.end() ? nullptr : &*row;
}
template <typename Row> static std::string namesOf(const std::vector<Row> &rows) {
  return llvm::join(llvm::map_range(rows, [](const Row &r) { return r.name; }), ", ");
}

const MemoryModel::Move *MemoryModel::moveTo(StringRef memory) const {
  auto move = llvm::find_if(moves, [&](const Move &m) { return m.to == memory; });
  return move == moves.end() ? nullptr : &*move;
}

const UnitModel::Engine *UnitModel::engine(StringRef engine) const { return rowOf(engines, engine); }
std::string UnitModel::engineNames() const { return namesOf(engines); }

const MemoryModel *DeviceModel::memory(StringRef memory) const { return rowOf(memories, memory); }
const UnitModel *DeviceModel::unit(StringRef unit) const { return rowOf(units, unit); }
std::string DeviceModel::memoryNames() const { return namesOf(memories); }
std::string DeviceModel::unitNames() const { return namesOf(units); }

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

StringRef dmxc::dlir::memoryOf(Value buffer) {
  auto ring = buffer.getDefiningOp<RingOp>();
  return ring ? ring.getKind() : buffer.getDefiningOp<MemoryOp>().getKind();
}

SmallVector<Value> dmxc::dlir::buffersAt(ValueRange buffers, std::initializer_list<unsigned> numbers) {
  SmallVector<Value> found;
  for (unsigned number : numbers)
    if (number < buffers.size())
      found.push_back(buffers[number]);
  return found;
}
