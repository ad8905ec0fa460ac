//===- Control.cpp - the runtime sequence to ops of the control stream ----===//
#include "Lower.h"

#include "schemas/aie/Configure.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;
using namespace dmxc::aiex;

namespace {

constexpr int64_t kBurst = 2; ///< of shims' BDs

class ControlLowering {
public:
  explicit ControlLowering(DeviceOp device)
      : device(device), sequence(device.sequence()), machine(device.table()), builder(device.getContext()) {}

  LogicalResult run();

private:
  LogicalResult lower(Block &block);
  LogicalResult lower(NpuDmaMemcpyNdOp op);
  LogicalResult lower(NpuDmaWaitOp op);
  LogicalResult lower(NpuWriteRTPOp op);
  LogicalResult lower(SetLockOp op);
  FailureOr<ShimDMAAllocationOp> channelOf(Operation *op, FlatSymbolRefAttr name);
  FailureOr<int64_t> offsetOf(NpuDmaMemcpyNdOp op);
  Value wordsOf(const std::vector<uint32_t> &words);
  uint32_t address(hw::Tile tile, const hw::Register &what) {
    return hw::addressOf(tile, *hw::offsetOf(machine.kindOf(tile.row), what));
  }
  void write(Operation *at, uint32_t address, uint32_t value) {
    NpuWrite32Op::create(builder, at->getLoc(), address, value);
  }
  /// The word that was written there is a size of the dispatch times a factor, which gives at most so much.
  LogicalResult byDim(Operation *at, uint32_t address, uint64_t dim, int64_t factor, int64_t most);

  DeviceOp device;
  RuntimeSequenceOp sequence;
  hw::Machine machine;
  OpBuilder builder;
  std::map<std::vector<uint32_t>, Value> globals;
  llvm::StringMap<BufferOp> buffers;
};

FailureOr<ShimDMAAllocationOp> ControlLowering::channelOf(Operation *op, FlatSymbolRefAttr name) {
  auto channel = dyn_cast_or_null<ShimDMAAllocationOp>(SymbolTable::lookupSymbolIn(device, name.getAttr()));
  if (!channel)
    return op->emitOpError("names '") << name.getValue() << "', which is no aie.shim_dma_allocation of the device";
  hw::Tile tile = tileOf(channel.getTile());
  if (machine.kindOf(tile.row) != hw::TileKind::Shim || static_cast<int32_t>(channel.getChannelIndex()) < 0 ||
      channel.getChannelIndex() >= machine.tile(hw::TileKind::Shim).channels)
    return channel.emitOpError("is no channel of a shim");
  return channel;
}

/// A global with the words, as a value of the sequence.
Value ControlLowering::wordsOf(const std::vector<uint32_t> &words) {
  Value &value = globals[words];
  if (value)
    return value;
  OpBuilder::InsertionGuard guard(builder);
  auto type = MemRefType::get({static_cast<int64_t>(words.size())}, builder.getI32Type());
  std::string name;
  for (size_t i = globals.size() - 1; name.empty() || SymbolTable::lookupSymbolIn(device, name); ++i)
    name = "blockwrite_data_" + std::to_string(i);
  builder.setInsertionPoint(sequence);
  SmallVector<int32_t> bits(words.begin(), words.end());
  memref::GlobalOp::create(
      builder, device.getLoc(), name, builder.getStringAttr("private"), type,
      DenseIntElementsAttr::get(RankedTensorType::get(type.getShape(), builder.getI32Type()), bits),
      /*constant=*/true, IntegerAttr());
  builder.setInsertionPointToStart(&sequence.getBody().front());
  return value = memref::GetGlobalOp::create(builder, device.getLoc(), type, name);
}

/// In bytes; what is walked lies in the matrix.
FailureOr<int64_t> ControlLowering::offsetOf(NpuDmaMemcpyNdOp op) {
  int64_t offset = 0, last = 0, elements = cast<MemRefType>(op.getMemref().getType()).getNumElements();
  for (auto [at, size, stride] : llvm::zip_equal(op.getStaticOffsets(), op.getStaticSizes(), op.getStaticStrides())) {
    if (stride < 0 || stride > INT32_MAX || size > INT32_MAX || at > INT64_MAX / 4)
      return op.emitOpError("has a dim of ") << size << " with a stride of " << stride;
    int64_t product = 0;
    if (llvm::MulOverflow(at, stride, product) || llvm::AddOverflow(offset, product, offset) ||
        llvm::AddOverflow(last, (size - 1) * stride, last))
      return op.emitOpError("begins behind the end of its matrix");
  }
  if (offset >= elements || last >= elements - offset)
    return op.emitOpError("goes from element ") << offset << " over " << last << " of " << op.getMemref().getType();
  offset *= elementBytes(op.getMemref().getType());
  if (offset % 4)
    return op.emitOpError("begins ") << offset << " bytes behind its matrix, which is no whole word";
  return offset;
}

LogicalResult ControlLowering::byDim(Operation *at, uint32_t address, uint64_t dim, int64_t factor, int64_t most) {
  ArrayRef<int64_t> all = mostOf(device);
  if (dim >= all.size() || factor < 1 || factor > INT32_MAX || factor * all[dim] != most)
    return at->emitOpError("takes size ") << dim << ", of which its number is no multiple or another one than the most";
  NpuDimWordOp::create(builder, at->getLoc(), address, static_cast<int64_t>(dim), factor);
  return success();
}

/// Of a task whose size a dispatch brings: words of its BD for one of that size; 0 where it is none.
static int64_t wordsOfOne(NpuDmaMemcpyNdOp op, int64_t length) {
  ArrayRef<int64_t> sizes = op.getStaticSizes();
  const auto *outer = llvm::find_if(sizes.drop_front(), [](int64_t size) { return size != 1; });
  int64_t outermost = outer == sizes.end() ? 1 : *outer, factor = static_cast<int64_t>(op.getFactor().value_or(1));
  return factor > 0 && sizes[0] == 1 && outermost % factor == 0 ? length / outermost * factor : 0;
}

LogicalResult ControlLowering::lower(NpuDmaMemcpyNdOp op) {
  FailureOr<ShimDMAAllocationOp> channel = channelOf(op, op.getMetadataAttr());
  auto argument = dyn_cast<BlockArgument>(op.getMemref());
  if (!argument || elementBytes(argument.getType()) == 0)
    return op.emitOpError("moves no matrix of the sequence");
  FailureOr<int64_t> offset = offsetOf(op);
  if (failed(channel) || failed(offset))
    return failure();
  int64_t id = static_cast<int64_t>(op.getId()), times = op.getStaticSizes()[0];
  if (id < 0 || id >= machine.tile(hw::TileKind::Shim).bds)
    return op.emitOpError("has BD ") << id << " of " << machine.tile(hw::TileKind::Shim).bds;
  if (times > machine.largestRepeat)
    return op.emitOpError("runs ") << times << " times, the most are " << machine.largestRepeat;
  hw::Bd bd;
  std::string error;
  if (!setWalk(bd, machine, hw::TileKind::Shim, op.getStaticSizes().drop_front(), op.getStaticStrides().drop_front(),
               elementBytes(argument.getType()), error))
    return op.emitOpError() << error;
  if (!setIteration(bd, machine, times, op.getStaticStrides()[0] * elementBytes(argument.getType()), error))
    return op.emitOpError() << error;
  bd[hw::BdField::Burst] = kBurst;
  std::vector<uint32_t> words = hw::encode(hw::TileKind::Shim, bd, error);
  if (words.empty())
    return op.emitOpError() << error;
  hw::Tile tile = tileOf(channel->getTile());
  auto number = static_cast<uint32_t>(id);
  uint32_t index = channel->getChannelIndex();
  NpuBlockWriteOp::create(builder, op.getLoc(), wordsOf(words), address(tile, {hw::RegisterKind::Bd, number}));
  if (op.getDim() && failed(byDim(op, address(tile, {hw::RegisterKind::Bd, number}), *op.getDim(),
                                  wordsOfOne(op, bd[hw::BdField::Length]), bd[hw::BdField::Length])))
    return failure();
  NpuAddressPatchOp::create(builder, op.getLoc(), address(tile, {hw::RegisterKind::Bd, number, 1}),
                            argument.getArgNumber(), *offset);
  write(op, address(tile, {hw::RegisterKind::Queue, index, 0, directionOf(channel->getChannelDir())}),
        hw::encode(hw::QueueWord{number, static_cast<uint32_t>(times), op.getIssueToken()}));
  return success();
}

LogicalResult ControlLowering::lower(NpuDmaWaitOp op) {
  FailureOr<ShimDMAAllocationOp> channel = channelOf(op, op.getSymbolAttr());
  if (failed(channel))
    return failure();
  hw::Tile tile = tileOf(channel->getTile());
  NpuSyncOp::create(builder, op.getLoc(), tile.column, tile.row,
                    static_cast<uint32_t>(directionOf(channel->getChannelDir())), channel->getChannelIndex(), 1, 1);
  return success();
}

LogicalResult ControlLowering::lower(NpuWriteRTPOp op) {
  BufferOp buffer = buffers.lookup(op.getBuffer());
  if (!buffer)
    return op.emitOpError("names '") << op.getBuffer() << "', which is no buffer of the device";
  int64_t byte = int64_t(4) * op.getIndex();
  if (byte + 4 > buffer.bytes())
    return op.emitOpError("writes word ") << op.getIndex() << " of " << buffer.bytes() / 4;
  hw::Tile tile = tileOf(buffer.getTile());
  auto word = static_cast<uint32_t>((static_cast<int64_t>(buffer.getAddress()) + byte) / 4);
  if (!hw::offsetOf(machine.kindOf(tile.row), {hw::RegisterKind::Data, word}))
    return op.emitOpError("writes a word that the controller does not reach");
  uint32_t there = address(tile, {hw::RegisterKind::Data, word});
  write(op, there, op.getValue());
  return op.getDim() ? byDim(op, there, *op.getDim(), 1, op.getValue()) : success();
}

LogicalResult ControlLowering::lower(SetLockOp op) {
  auto lock = op.getLock().getDefiningOp<LockOp>();
  int64_t value = static_cast<int32_t>(op.getValue());
  if (!lock || value < machine.smallestLock || value > machine.largestLock)
    return op.emitOpError("sets no lock, or one to ") << value;
  write(op, address(tileOf(lock.getTile()), {hw::RegisterKind::Lock, lock.getLockID()}), hw::encodeLock(value));
  return success();
}

LogicalResult ControlLowering::lower(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    builder.setInsertionPoint(&op);
    LogicalResult done = success();
    if (auto when = dyn_cast<WhenOp>(op)) {
      if (failed(lower(when.getBody().front())))
        return failure();
      continue;
    }
    if (auto task = dyn_cast<NpuDmaMemcpyNdOp>(op))
      done = lower(task);
    else if (auto wait = dyn_cast<NpuDmaWaitOp>(op))
      done = lower(wait);
    else if (auto parameter = dyn_cast<NpuWriteRTPOp>(op))
      done = lower(parameter);
    else if (auto lock = dyn_cast<SetLockOp>(op))
      done = lower(lock);
    else
      continue;
    if (failed(done))
      return failure();
    op.erase();
  }
  return success();
}

LogicalResult ControlLowering::run() {
  for (auto buffer : device.getBody().getOps<BufferOp>())
    buffers[buffer.getSymName()] = buffer;
  if (failed(lower(sequence.getBody().front())))
    return failure();
  // What no task names is no part of the text that follows.
  for (auto channel : llvm::make_early_inc_range(device.getBody().getOps<ShimDMAAllocationOp>()))
    channel.erase();
  return success();
}

} // namespace

LogicalResult aie::lowerControl(DeviceOp device) { return ControlLowering(device).run(); }
