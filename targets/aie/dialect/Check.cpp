//===- Check.cpp - whether a text of an array is sound --------------------===//
#include "targets/aie/dialect/Aie.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/MapVector.h"

#include <set>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

namespace {

constexpr int64_t kHalfOfBds = 24; ///< even channels of a memory tile have the first ones, odd ones the rest

/// Checks what a device holds; the first thing that is wrong is an error at its op.
class Check {
public:
  explicit Check(DeviceOp device) : device(device), machine(device.table()) {}

  LogicalResult run() {
    for (Operation &op : device.getBody().getOps())
      for (Value operand : op.getOperands())
        if (operand.getType().isIndex() && !operand.getDefiningOp<TileOp>())
          return op.emitOpError("names no tile");
    for (auto tile : device.getBody().getOps<TileOp>())
      if (failed(check(tile)))
        return failure();
    for (auto lock : device.getBody().getOps<LockOp>())
      if (failed(check(lock)))
        return failure();
    if (failed(checkBuffers()))
      return failure();
    if (device->hasAttr(kFunction) && !functionOf(device))
      return device.emitOpError("has a '") << kFunction << "' that says of no function what cores have to know";
    for (Operation &op : device.getBody().getOps())
      if (isa<MemOp, MemTileDMAOp>(op) && failed(checkChannels(op)))
        return failure();
    auto sequences = device.getBody().getOps<RuntimeSequenceOp>();
    if (std::distance(sequences.begin(), sequences.end()) != 1)
      return device.emitOpError("has one aie.runtime_sequence, which says what its controller does");
    return success();
  }

private:
  LogicalResult check(TileOp op) {
    return tiles.insert(op.tile()).second ? success() : op.emitOpError("is there twice");
  }

  LogicalResult check(LockOp op) {
    hw::Tile tile = tileOf(op.getTile());
    if (static_cast<int32_t>(op.getInit()) < 0 || op.getInit() > machine.largestLock)
      return op.emitOpError("starts at ") << op.getInit() << ", a lock holds 0 to " << machine.largestLock;
    return locks.insert({tile, op.getLockID()}).second
               ? success()
               : op.emitOpError("is lock ") << op.getLockID() << " of tile " << hw::textOf(tile) << " a second time";
  }

  LogicalResult checkBuffers() {
    std::map<hw::Tile, std::map<int64_t, BufferOp>> places;
    std::set<StringRef> names;
    for (auto op : device.getBody().getOps<BufferOp>()) {
      hw::Tile tile = tileOf(op.getTile());
      int64_t first = op.getAddress(), bytes = op.bytes();
      if (bytes == 0)
        return op.emitOpError("has elements that the array does not move: bf16, f16, f32, i64, i32 and i8 are known");
      if (first % machine.accessBytes)
        return op.emitOpError("begins at ") << first << ", which is no multiple of " << machine.accessBytes;
      if (!names.insert(op.getSymName()).second)
        return op.emitOpError("has the name of another buffer");
      auto &there = places[tile];
      auto next = there.lower_bound(first);
      bool meets = next != there.end() && next->first < first + bytes;
      if (next != there.begin() && !meets)
        meets = std::prev(next)->first + std::prev(next)->second.bytes() > first;
      if (meets)
        return op.emitOpError("overlaps another buffer of tile ") << hw::textOf(tile);
      there[first] = op;
    }
    return success();
  }

  LogicalResult checkChannels(Operation &op) {
    hw::Tile tile = tileOf(op.getOperand(0));
    hw::TileKind kind = isa<MemOp>(op) ? hw::TileKind::Core : hw::TileKind::Memory;
    if (machine.kindOf(tile.row) != kind || !programs.insert(tile).second)
      return op.emitOpError("is the one DMA program of a ")
             << hw::nameOf(kind) << " tile, tile " << hw::textOf(tile) << " is none or has one";
    std::set<std::pair<hw::Direction, int64_t>> channels;
    std::set<int64_t> bds;
    for (Block &block : op.getRegion(0)) {
      if (auto start = dyn_cast<DMAStartOp>(block.getTerminator())) {
        if (!channels.insert({directionOf(start.getChannelDir()), start.getChannelIndex()}).second)
          return start.emitOpError("starts its channel a second time");
        if (failed(checkStart(start, kind)))
          return failure();
      }
      auto all = block.getOps<DMABDOp>();
      if (all.empty())
        continue;
      if (std::distance(all.begin(), all.end()) != 1)
        return (*std::next(all.begin())).emitOpError("is the second BD of its block");
      if (failed(checkBd(*all.begin(), block, tile)))
        return failure();
      if (!bds.insert((*all.begin()).getBdId()).second)
        return (*all.begin()).emitOpError("has the number ")
               << (*all.begin()).getBdId() << " of another BD of its tile";
    }
    return success();
  }

  LogicalResult checkStart(DMAStartOp start, hw::TileKind kind) {
    // The ring that it starts.
    std::set<Block *> seen;
    for (Block *at = start.getDest(); at && seen.insert(at).second;) {
      auto all = at->getOps<DMABDOp>();
      if (all.empty())
        return isa<EndOp>(at->getTerminator()) && seen.size() > 1
                   ? success()
                   : start.emitOpError("leads to a block that has no BD");
      DMABDOp bd = *all.begin();
      if (kind == hw::TileKind::Memory && bd.getBdId() < 2 * kHalfOfBds &&
          bd.getBdId() / kHalfOfBds != start.getChannelIndex() % 2)
        return bd.emitOpError("is number ")
               << bd.getBdId() << ", even channels of a memory tile have 0 to 23 and odd ones 24 to 47";
      auto next = dyn_cast<NextBDOp>(at->getTerminator());
      at = next ? next.getDest() : nullptr;
    }
    return success();
  }

  LogicalResult checkBd(DMABDOp bd, Block &block, hw::Tile tile) {
    hw::TileKind kind = machine.kindOf(tile.row);
    BufferOp buffer = bd.getBuffer().getDefiningOp<BufferOp>();
    if (!buffer || tileOf(buffer.getTile()) != tile)
      return bd.emitOpError("moves a buffer that is not one of tile ") << hw::textOf(tile);
    std::string error;
    hw::Bd out;
    SmallVector<int64_t> sizes, strides;
    walkOf(bd, sizes, strides);
    int64_t elements = 1, last = bd.getOffset(), bytes = elementBytes(buffer.getBuffer().getType());
    for (auto [size, stride] : llvm::zip_equal(sizes, strides)) {
      if (size < 1 || stride < 0 || size > INT32_MAX || stride > INT32_MAX)
        return bd.emitOpError("has a dim of ") << size << " with a stride of " << stride;
      elements *= size;
      last += (size - 1) * stride;
    }
    if (elements != bd.getLen())
      return bd.emitOpError("moves ") << bd.getLen() << " elements, its dims have " << elements;
    if (bd.getOffset() < 0 || bd.getOffset() * bytes % 4 ||
        last >= cast<MemRefType>(buffer.getBuffer().getType()).getNumElements())
      return bd.emitOpError("goes from element ")
             << bd.getOffset() << " to " << last << " of " << buffer.getBuffer().getType();
    if (!setWalk(out, machine, kind, sizes, strides, bytes, error))
      return bd.emitOpError() << error;
    return checkLocks(bd, block, tile);
  }

  LogicalResult checkLocks(DMABDOp bd, Block &block, hw::Tile tile) {
    bool after = false;
    int acquires = 0, releases = 0;
    for (Operation &op : block.without_terminator()) {
      if (&op == bd.getOperation()) {
        after = true;
        continue;
      }
      auto use = dyn_cast<UseLockOp>(op);
      if (!use)
        return op.emitOpError("is not what a BD does");
      auto lock = use.getLock().getDefiningOp<LockOp>();
      if (!lock || tileOf(lock.getTile()) != tile)
        return use.emitOpError("is of a lock that tile ") << hw::textOf(tile) << " does not have";
      bool release = use.getAction() == LockAction::Release;
      if (release != after)
        return use.emitOpError("stands on the wrong side of its BD: taken before, given after");
      int64_t value = static_cast<int32_t>(use.getValue());
      if (++(release ? releases : acquires) > 1)
        return use.emitOpError("is one too many: a BD takes one lock and gives one");
      if (value < 1 || value > machine.largestLock)
        return use.emitOpError("has a value of ") << value;
    }
    return success();
  }

  DeviceOp device;
  hw::Machine machine;
  std::set<hw::Tile> tiles, programs;
  std::set<std::pair<hw::Tile, int64_t>> locks;
};

} // namespace

LogicalResult DeviceOp::verifyRegions() { return Check(*this).run(); }

//===--- what the machine has --------------------------------------------------------===//

static LogicalResult checkLimits(Operation &op, const hw::Machine &machine) {
  Region &region = op.getRegion(0);
  hw::TileKind kind = isa<MemOp>(op) ? hw::TileKind::Core : hw::TileKind::Memory;
  const hw::TileInfo &info = machine.tile(kind);
  for (auto start : region.getOps<DMAStartOp>())
    if (start.getChannelIndex() >= info.channels)
      return start.emitOpError("starts channel ") << start.getChannelIndex() << ", a " << hw::nameOf(kind)
                                                  << " tile has " << info.channels << " of each direction";
  for (auto bd : region.getOps<DMABDOp>())
    if (bd.getBdId() >= info.bds)
      return bd.emitOpError("is number ")
             << bd.getBdId() << ", a " << hw::nameOf(kind) << " tile has " << info.bds << " BDs";
  return success();
}

LogicalResult aie::checkLimits(DeviceOp device) {
  hw::Machine machine = device.table();
  for (auto op : device.getBody().getOps<TileOp>())
    if (!machine.has(op.tile()))
      return op.emitOpError("is ") << hw::textOf(op.tile()) << ", the machine " << machine.name << " has "
                                   << machine.columns << " columns of " << machine.rows << " tiles";
  for (auto op : device.getBody().getOps<LockOp>()) {
    hw::Tile tile = tileOf(op.getTile());
    if (int64_t count = machine.tile(machine.kindOf(tile.row)).locks; op.getLockID() >= count)
      return op.emitOpError("is number ")
             << op.getLockID() << " of tile " << hw::textOf(tile) << ", which has " << count << " locks";
  }
  for (auto op : device.getBody().getOps<BufferOp>()) {
    hw::Tile tile = tileOf(op.getTile());
    int64_t size = machine.tile(machine.kindOf(tile.row)).dataBytes, first = op.getAddress();
    if (first + op.bytes() > size)
      return op.emitOpError("takes ") << op.bytes() << " bytes from " << first << " on, tile " << hw::textOf(tile)
                                      << " has " << size << " bytes";
  }
  for (Operation &op : device.getBody().getOps())
    if (isa<MemOp, MemTileDMAOp>(op) && failed(::checkLimits(op, machine)))
      return failure();
  return success();
}
