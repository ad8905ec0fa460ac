//===- BulkOps.cpp - instructions of bulk copies ------------------------------===//

#include "Block.h"
#include "Decoder.h"
#include "Lanes.h"
#include "clock/Recorder.h"

namespace dmxrt::cuda {
namespace {

uint32_t firstOf(uint32_t lanes) { return static_cast<uint32_t>(std::countr_zero(lanes)); }

/// The tensor map at a generic address; null: there is none.
const TensorMap *mapAt(const Warp &w, uint64_t address) {
  uint64_t index = (address - kMapWindow) / dmx::cuda::kMapBytes;
  bool fits = address >= kMapWindow && address % dmx::cuda::kMapBytes == 0 && index < w.block->launch.maps.size();
  return fits ? &w.block->launch.maps[index] : nullptr;
}

bool start(Warp &w, uint32_t lane, BulkCopy copy) {
  copy.warp = w.number;
  copy.thread = w.firstThread + lane;
  copy.owner = w.memory->byBlock ? w.owner : copy.thread;
  if (Recorder *recorder = w.block->launch.recorder)
    recorder->bulk(w, copy);
  std::string problem = w.block->bulk.start(std::move(copy), w.block->knows[w.number], nextRandom(w.block->random));
  return problem.empty() || w.fail(lane, std::move(problem));
}

// Sources of a tensor's copy: shared memory, the map, the mbarrier where it loads, coordinates.
bool copyTensor(Warp &w, const Op &op) {
  bool stores = op.immediate != 0;
  uint32_t first = stores ? 2 : 3;
  for (uint32_t left = w.active; left; left &= left - 1) {
    uint32_t lane = firstOf(left);
    auto value = [&](uint32_t source) { return w.slots[op.source[source]][lane]; };
    const TensorMap *map = mapAt(w, value(1));
    if (!map)
      return w.fail(lane, "map-invalid: its tensor map is none of the launch's");
    if (map->rank != op.sources - first)
      return w.fail(lane, cat("map-invalid: it has ", op.sources - first, " coordinates, and its tensor map ",
                              map->rank, " axes"));
    BulkCopy copy;
    copy.stores = stores;
    copy.map = *map;
    copy.line = op.line;
    copy.shared = Block::ofShared(value(0) + static_cast<uint64_t>(op.offset));
    if (!stores)
      copy.barrier = Block::ofShared(value(2) + static_cast<uint64_t>(op.offset2));
    for (uint32_t i = 0; i < map->rank; ++i)
      copy.at[i] = static_cast<int32_t>(value(first + i));
    if (!start(w, lane, std::move(copy)))
      return false;
  }
  return true;
}

// Sources of a plain copy: shared memory, global memory, bytes, the mbarrier where it loads.
bool copyPlain(Warp &w, const Op &op) {
  bool stores = op.immediate != 0;
  for (uint32_t left = w.active; left; left &= left - 1) {
    uint32_t lane = firstOf(left);
    auto value = [&](uint32_t source) { return w.slots[op.source[source]][lane]; };
    uint64_t bytes = value(2), global = value(1);
    if (bytes == 0 || bytes % 16 || bytes > (1 << 20) || global % 16)
      return w.fail(lane, cat("tma-align: a bulk copy of ", bytes, " bytes, from or to an address that is ",
                              global % 16, " behind a multiple of 16"));
    BulkCopy copy;
    copy.stores = stores;
    copy.isPlain = true;
    copy.line = op.line;
    copy.shared = Block::ofShared(value(0) + static_cast<uint64_t>(op.offset));
    if (!stores)
      copy.barrier = Block::ofShared(value(3) + static_cast<uint64_t>(op.offset2));
    copy.map.rank = 2;
    copy.map.base = global;
    copy.map.sizes[0] = copy.map.box[0] = 16;
    copy.map.sizes[1] = copy.map.box[1] = static_cast<uint32_t>(bytes / 16);
    copy.map.strides[1] = 16;
    copy.map.steps[0] = copy.map.steps[1] = 1;
    if (!start(w, lane, std::move(copy)))
      return false;
  }
  return true;
}

bool commitStores(Warp &w, const Op &) {
  for (uint32_t left = w.active; left; left &= left - 1)
    w.block->bulk.commit(w.firstThread + firstOf(left));
  return true;
}

enum : uint32_t { OnlyRead = 1u << 31 };

bool waitForStores(Warp &w, const Op &op) {
  for (uint32_t left = w.active; left; left &= left - 1)
    if (!w.block->bulk.wait(w.firstThread + firstOf(left), op.immediate & ~OnlyRead, op.immediate & OnlyRead)) {
      w.wait = {Wait::Stores, 0, 0};
      return true;
    }
  uint32_t &seen = w.block->knows[w.number].seen[w.block->actors.ofStores(w.number)];
  seen = std::max(seen, w.block->bulk.readUpTo(w.number));
  return true;
}

bool prefetchMap(Warp &w, const Op &op) {
  uint32_t lane = firstOf(w.active);
  return mapAt(w, w.slots[op.source[0]][lane]) || w.fail(lane, "map-invalid: its tensor map is none of the launch's");
}

/// [map, {coordinates}]: the map as a source, and its coordinates.
bool takeMap(Decoder &d, Op &op, const PtxOperand &from) {
  if (from.kind != PtxOperand::Address || from.parts.size() != 2 || from.bits)
    return d.refuseForm();
  return d.source(op, from.parts[0], {'b', 64});
}
bool takeCoordinates(Decoder &d, Op &op, const PtxOperand &from, size_t axes) {
  const std::vector<PtxOperand> &all = from.parts[1].parts;
  if (all.size() != axes)
    return d.refuse("a copy of a tensor of ", axes, " axes has ", all.size(), " coordinates");
  for (const PtxOperand &each : all)
    if (!d.source(op, each, {'s', 32}))
      return false;
  return true;
}

/// What may stand at the end, and its operand that is not looked at.
bool takeHint(Decoder &d, size_t operands) {
  bool hints = d.take("L2::cache_hint");
  return d.hasOperands(operands + hints);
}

bool decodeTensor(Decoder &d, Op &op) {
  static constexpr std::string_view names[] = {"1d", "2d", "3d", "4d", "5d"};
  std::string_view name = d.takeWord();
  size_t axes = 0;
  for (size_t i = 0; i < std::size(names); ++i)
    if (names[i] == name)
      axes = i + 1;
  op.step = copyTensor;
  if (axes && d.take("global")) {
    op.immediate = 1;
    if (!d.take("shared::cta"))
      return false;
    d.take("tile");
    return d.take("bulk_group") && takeHint(d, 2) && d.sharedAddress(op, d.operand(1), op.offset) &&
           takeMap(d, op, d.operand(0)) && takeCoordinates(d, op, d.operand(0), axes);
  }
  if (!axes || !d.takeAny({"shared::cluster", "shared::cta"}) || !d.take("global"))
    return false;
  d.take("tile");
  return d.take("mbarrier::complete_tx::bytes") && takeHint(d, 3) && d.sharedAddress(op, d.operand(0), op.offset) &&
         takeMap(d, op, d.operand(1)) && d.sharedAddress(op, d.operand(2), op.offset2) &&
         takeCoordinates(d, op, d.operand(1), axes);
}

/// A global address without an offset.
bool takeGlobal(Decoder &d, Op &op, const PtxOperand &from) {
  return from.kind == PtxOperand::Address && from.parts.size() == 1 && from.bits == 0
             ? d.source(op, from.parts[0], {'b', 64})
             : d.refuseForm();
}

bool decodePlain(Decoder &d, Op &op) {
  op.step = copyPlain;
  if (d.take("global")) {
    op.immediate = 1;
    return d.take("shared::cta") && d.take("bulk_group") && takeHint(d, 3) &&
           d.sharedAddress(op, d.operand(1), op.offset) && takeGlobal(d, op, d.operand(0)) &&
           d.source(op, 2, {'u', 32});
  }
  return d.takeAny({"shared::cluster", "shared::cta"}) && d.take("global") && d.take("mbarrier::complete_tx::bytes") &&
         takeHint(d, 4) && d.sharedAddress(op, d.operand(0), op.offset) && takeGlobal(d, op, d.operand(1)) &&
         d.source(op, 2, {'u', 32}) && d.sharedAddress(op, d.operand(3), op.offset2);
}

} // namespace

bool decodeBulk(Decoder &d, std::string_view root, Op &op) {
  if (root == "prefetch") {
    d.take("param");
    op.step = prefetchMap;
    d.talk();
    return d.take("tensormap") && d.hasOperands(1) && d.address(op, d.operand(0), false) &&
           (op.offset == 0 || d.refuseForm());
  }
  if (root != "cp" || !d.take("async") || !d.take("bulk"))
    return false;
  d.talk();
  if (d.take("commit_group")) {
    op.step = commitStores;
    return d.hasOperands(0);
  }
  if (d.take("wait_group")) {
    bool onlyRead = d.take("read");
    uint64_t left = 0;
    op.step = waitForStores;
    if (!d.hasOperands(1) || !d.number(0, 1 << 16, left))
      return false;
    op.immediate = static_cast<uint32_t>(left) | (onlyRead ? OnlyRead : 0);
    return true;
  }
  return d.take("tensor") ? decodeTensor(d, op) : decodePlain(d, op);
}

} // namespace dmxrt::cuda
