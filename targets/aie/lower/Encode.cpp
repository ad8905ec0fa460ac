//===- Encode.cpp - a device as an image's overlay and kernel -------------===//
#include "Lower.h"

#include "schemas/aie/Configure.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <set>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;
using namespace dmxc::aiex;

namespace {

/// Writes of registers that follow one another become one command.
std::vector<hw::CdoCommand> commandsOf(const std::vector<hw::RegisterWrite> &writes) {
  std::vector<hw::CdoCommand> out;
  for (const hw::RegisterWrite &write : writes) {
    bool whole = write.mask == UINT32_MAX;
    if (whole && !out.empty() && out.back().kind == hw::CdoCommand::Kind::BlockWrite &&
        out.back().address + 4 * out.back().data.size() == write.address) {
      out.back().data.push_back(write.value);
      continue;
    }
    hw::CdoCommand &command = out.emplace_back();
    command.kind = whole ? hw::CdoCommand::Kind::BlockWrite : hw::CdoCommand::Kind::MaskWrite;
    command.address = write.address;
    if (whole) {
      command.data = {write.value};
    } else {
      command.mask = write.mask;
      command.value = write.value;
    }
  }
  return out;
}

class Encoding {
public:
  explicit Encoding(DeviceOp device) : device(device), machine(device.table()), configuration(machine) {}

  LogicalResult configure(hw::Overlay &overlay);
  LogicalResult control(hw::KernelCode &kernel);

private:
  LogicalResult connect();
  LogicalResult channels(Operation &op);
  hw::Bd bdOf(DMABDOp bd, Block &block);
  LogicalResult add(Block &block, hw::KernelCode &kernel);
  LogicalResult add(Operation &op, hw::KernelCode &kernel);
  LogicalResult add(NpuDimWordOp op, hw::KernelCode &kernel);
  FailureOr<std::vector<uint32_t>> wordsOf(NpuBlockWriteOp op);

  DeviceOp device;
  hw::Machine machine;
  hw::Configuration configuration;
};

LogicalResult Encoding::connect() {
  auto ports = [](ConnectOp at) {
    return std::pair(portOf(at.getSourceBundle(), static_cast<int32_t>(at.getSourceChannel())),
                     portOf(at.getDestBundle(), static_cast<int32_t>(at.getDestChannel())));
  };
  for (auto box : device.getBody().getOps<SwitchboxOp>())
    for (auto at : box.getBody().getOps<ConnectOp>()) {
      auto [from, to] = ports(at);
      configuration.connect(tileOf(box.getTile()), from, to);
      if (!configuration.error().empty())
        return at.emitOpError() << configuration.error();
    }
  for (auto mux : device.getBody().getOps<ShimMuxOp>())
    for (auto at : mux.getBody().getOps<ConnectOp>()) {
      auto [from, to] = ports(at);
      bool in = from.bundle == hw::Bundle::Dma;
      if ((in ? to : from).bundle != hw::Bundle::North || (in ? from : to).bundle != hw::Bundle::Dma)
        return at.emitOpError("of a shim's multiplexer joins DMA and north");
      configuration.shimDma(tileOf(mux.getTile()), in ? hw::Direction::MM2S : hw::Direction::S2MM,
                            (in ? to : from).index);
      if (!configuration.error().empty())
        return at.emitOpError() << configuration.error();
    }
  return success();
}

/// Of a block that the device's verifier accepts.
hw::Bd Encoding::bdOf(DMABDOp op, Block &block) {
  using F = hw::BdField;
  auto buffer = bufferOf(op.getBuffer());
  hw::Tile tile = tileOf(buffer.getTile());
  hw::TileKind kind = machine.kindOf(tile.row);
  auto index = static_cast<size_t>(kind);
  SmallVector<int64_t> sizes, strides;
  walkOf(op, sizes, strides);
  hw::Bd bd;
  std::string error;
  int64_t bytes = elementBytes(buffer.getBuffer().getType());
  setWalk(bd, machine, kind, sizes, strides, bytes, error);
  bd[F::Base] = hw::kOwnMemory[index] +
                (static_cast<int64_t>(buffer.getAddress()) + static_cast<int64_t>(op.getOffset()) * bytes) / 4;
  for (auto use : block.getOps<UseLockOp>()) {
    int64_t lock = hw::kOwnLock[index] + static_cast<int64_t>(lockOf(use.getLock()).getLockID()),
            value = use.getValue();
    if (use.getAction() == LockAction::Release) {
      bd[F::ReleaseLock] = lock;
      bd[F::ReleaseValue] = value;
      continue;
    }
    bd[F::AcquireOn] = 1;
    bd[F::AcquireLock] = lock;
    bd[F::AcquireValue] = use.getAction() == LockAction::AcquireGreaterEqual ? -value : value;
  }
  return bd;
}

LogicalResult Encoding::channels(Operation &op) {
  hw::Tile tile = tileOf(op.getOperand(0));
  auto numberOf = [](Block *block) {
    auto bds = block->getOps<DMABDOp>();
    return bds.empty() ? std::nullopt : std::optional((*bds.begin()).getBdId());
  };
  for (Block &block : op.getRegion(0))
    for (auto op : block.getOps<DMABDOp>()) {
      hw::Bd bd = bdOf(op, block);
      auto next = dyn_cast<NextBDOp>(block.getTerminator());
      std::optional<uint32_t> number;
      if (next)
        number = numberOf(next.getDest());
      bd[hw::BdField::UseNext] = number.has_value();
      bd[hw::BdField::Next] = number.value_or(0);
      configuration.bd(tile, op.getBdId(), bd);
      if (!configuration.error().empty())
        return op.emitOpError() << configuration.error();
    }
  for (Block &block : op.getRegion(0))
    if (auto start = dyn_cast<DMAStartOp>(block.getTerminator()))
      configuration.start(tile, directionOf(start.getChannelDir()), start.getChannelIndex(),
                          {*numberOf(start.getDest()), 1, false});
  return success();
}

LogicalResult Encoding::configure(hw::Overlay &overlay) {
  auto flows = device.getBody().getOps<FlowOp>();
  if (!flows.empty())
    return (*flows.begin()).emitOpError("has no registers; aie-route makes circuits of it");
  for (auto lock : device.getBody().getOps<LockOp>())
    configuration.lock(tileOf(lock.getTile()), lock.getLockID(), lock.getInit());
  if (failed(connect()))
    return failure();
  for (Operation &op : device.getBody().getOps())
    if (isa<MemOp, MemTileDMAOp>(op) && failed(channels(op)))
      return failure();
  for (auto core : device.getBody().getOps<aie::CoreOp>()) {
    FailureOr<hw::CoreProgram> program = coreProgramOf(core);
    if (failed(program))
      return failure();
    overlay.programs.push_back(std::move(*program));
    configuration.coreControl(tileOf(core.getTile()), true, false);
  }
  if (!configuration.error().empty())
    return device.emitOpError() << configuration.error();
  overlay.initial = commandsOf(configuration.writes());
  return success();
}

FailureOr<std::vector<uint32_t>> Encoding::wordsOf(NpuBlockWriteOp op) {
  auto get = op.getData().getDefiningOp<memref::GetGlobalOp>();
  auto global =
      get ? dyn_cast_or_null<memref::GlobalOp>(SymbolTable::lookupSymbolIn(device, get.getNameAttr().getAttr()))
          : memref::GlobalOp();
  auto words = global ? dyn_cast_or_null<DenseIntElementsAttr>(global.getInitialValueAttr()) : DenseIntElementsAttr();
  if (!words || !words.getElementType().isInteger(32) || words.empty())
    return op.emitOpError("writes what is no constant of 32-bit words");
  std::vector<uint32_t> out;
  for (const APInt &word : words.getValues<APInt>())
    out.push_back(static_cast<uint32_t>(word.getZExtValue()));
  return out;
}

LogicalResult Encoding::add(NpuDimWordOp op, hw::KernelCode &kernel) {
  for (size_t i = kernel.control.size(); i-- > 0;) {
    const hw::ControlOp &written = kernel.control[i];
    bool isBlock = written.kind == hw::ControlOp::Kind::BlockWrite;
    size_t words = isBlock ? written.data.size() : written.kind == hw::ControlOp::Kind::Write;
    if (op.getAddress() < written.address || op.getAddress() >= written.address + 4 * words)
      continue;
    kernel.dimWords.push_back({static_cast<uint32_t>(i), static_cast<uint32_t>((op.getAddress() - written.address) / 4),
                               static_cast<uint32_t>(op.getDim()), static_cast<uint32_t>(op.getFactor())});
    return success();
  }
  return op.emitOpError("is about a register that nothing before it writes");
}

LogicalResult Encoding::add(Block &block, hw::KernelCode &kernel) {
  for (Operation &op : block) {
    auto first = static_cast<uint32_t>(kernel.control.size());
    auto when = dyn_cast<WhenOp>(op);
    if (failed(when ? add(when.getBody().front(), kernel) : add(op, kernel)))
      return failure();
    if (!when)
      continue;
    auto count = static_cast<uint32_t>(kernel.control.size()) - first;
    for (auto [dim, above] : llvm::zip(when.getDims(), when.getAbove()))
      kernel.guards.push_back({first, count, static_cast<uint32_t>(dim), static_cast<uint32_t>(above)});
  }
  return success();
}

LogicalResult Encoding::add(Operation &op, hw::KernelCode &kernel) {
  if (auto write = dyn_cast<NpuWrite32Op>(op)) {
    kernel.control.push_back(hw::writeOp(write.getAddress(), write.getValue()));
  } else if (auto write = dyn_cast<NpuMaskWrite32Op>(op)) {
    kernel.control.push_back(hw::maskWriteOp(write.getAddress(), write.getValue(), write.getMask()));
  } else if (auto write = dyn_cast<NpuBlockWriteOp>(op)) {
    FailureOr<std::vector<uint32_t>> words = wordsOf(write);
    if (failed(words))
      return failure();
    kernel.control.push_back(hw::blockWriteOp(write.getAddress(), std::move(*words)));
  } else if (auto patch = dyn_cast<NpuAddressPatchOp>(op)) {
    kernel.control.push_back(hw::patchOp(patch.getAddr(), patch.getArgIdx(), patch.getArgPlus()));
  } else if (auto sync = dyn_cast<NpuSyncOp>(op)) {
    hw::ControlOp wait = hw::syncOp({sync.getColumn(), sync.getRow()},
                                    sync.getDirection() ? hw::Direction::MM2S : hw::Direction::S2MM, sync.getChannel());
    for (uint32_t field : {sync.getColumn(), sync.getRow(), sync.getChannel(), sync.getColumnNum(), sync.getRowNum()})
      if (field > 255)
        return op.emitOpError("has a field of ") << field << ", which a byte does not hold";
    wait.columns = sync.getColumnNum();
    wait.rows = sync.getRowNum();
    kernel.control.push_back(wait);
  } else if (auto word = dyn_cast<NpuDimWordOp>(op)) {
    return add(word, kernel);
  } else if (!isa<memref::GetGlobalOp>(op)) {
    return op.emitOpError("is no op of the control stream; aie-control makes some of it");
  }
  return success();
}

LogicalResult Encoding::control(hw::KernelCode &kernel) {
  RuntimeSequenceOp sequence = device.sequence();
  for (unsigned i = 0; i < sequence.getBody().getNumArguments(); ++i)
    kernel.arguments.push_back(*argumentOf(sequence, i));
  kernel.most.assign(mostOf(device).begin(), mostOf(device).end());
  return add(sequence.getBody().front(), kernel);
}

/// "matmul_bf16_f32_4x4": what the cores multiply by, and how many there are.
std::string nameOf(const hw::Overlay &overlay) {
  std::string name = "cores";
  std::set<uint32_t> columns, rows;
  for (const hw::CoreProgram &program : overlay.programs) {
    columns.insert(program.tile.column);
    rows.insert(program.tile.row);
    for (const hw::Instruction &at : program.code)
      if (at.op == hw::CoreOp::Call && !hw::macKind(static_cast<hw::KernelId>(at.index)).empty())
        name = hw::infoOf(static_cast<hw::KernelId>(at.index)).name;
  }
  return name + "_" + std::to_string(rows.size()) + "x" + std::to_string(columns.size());
}

} // namespace

LogicalResult aie::encode(DeviceOp device, hw::Image &image) {
  if (failed(checkLimits(device)))
    return failure();
  std::string machine(device.table().name);
  if (!image.machine.empty() && image.machine != machine)
    return device.emitOpError("is for ") << machine << ", another one of the module for " << image.machine;
  image.machine = machine;
  Encoding encoding(device);
  hw::Overlay overlay;
  hw::KernelCode kernel;
  kernel.name = device.getSymName().str();
  if (failed(encoding.configure(overlay)) || failed(encoding.control(kernel)))
    return failure();
  if (device->hasAttr(kFunction)) {
    FailureOr<uint32_t> function = addFunction(device, image);
    if (failed(function))
      return failure();
    for (hw::CoreProgram &program : overlay.programs)
      for (hw::Instruction &at : program.code)
        if (at.op == hw::CoreOp::CallUser)
          at.value = static_cast<int32_t>(*function);
  }
  auto same = [&](const hw::Overlay &other) {
    return other.initial == overlay.initial && other.programs == overlay.programs;
  };
  auto found = llvm::find_if(image.overlays, same);
  kernel.overlay = static_cast<uint32_t>(found - image.overlays.begin());
  if (found == image.overlays.end()) {
    overlay.name = nameOf(overlay);
    size_t others = llvm::count_if(
        image.overlays, [&](const hw::Overlay &other) { return StringRef(other.name).starts_with(overlay.name); });
    if (others)
      overlay.name += "_" + std::to_string(others);
    image.overlays.push_back(std::move(overlay));
  }
  image.kernels.push_back(std::move(kernel));
  return success();
}
