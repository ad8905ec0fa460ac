//===- Tiles.cpp - what is placed on the tiles of a device ----------------===//
#include "Tiles.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

static constexpr int64_t kBank = 16 << 10; ///< bytes of a core's memory that one access a clock reaches

static std::string nameAt(const std::string &name, hw::Tile at) {
  return name + "_" + std::to_string(at.column) + "_" + std::to_string(at.row);
}

Value Tiles::tile(hw::Tile at) {
  Value &value = uses[at].tile;
  if (!value)
    value = TileOp::create(builder, where, builder.getIndexType(), at.column, at.row);
  return value;
}

Value Tiles::buffer(hw::Tile at, const std::string &name, MemRefType type) {
  Value on = tile(at);
  int64_t &next = uses[at].bytes;
  auto op = BufferOp::create(builder, where, type, on, nameAt(name, at), static_cast<uint32_t>(next));
  next += llvm::alignTo(op.bytes(), static_cast<uint64_t>(machine.accessBytes));
  return op;
}

Value Tiles::lock(hw::Tile at, const std::string &name, int64_t value) {
  Value on = tile(at);
  return LockOp::create(builder, where, builder.getIndexType(), on, uses[at].locks++, static_cast<uint32_t>(value),
                        builder.getStringAttr(nameAt(name, at)));
}

Ring Tiles::ring(hw::Tile at, const std::string &name, MemRefType type, int64_t depth, bool bank) {
  Ring out;
  if (bank)
    uses[at].bytes = static_cast<int64_t>(llvm::alignTo(uses[at].bytes, kBank));
  for (int64_t i = 0; i < depth; ++i)
    out.buffers.push_back(buffer(at, name + std::to_string(i), type));
  out.empty = lock(at, name + "_empty", depth);
  out.full = lock(at, name + "_full", 0);
  return out;
}

uint32_t Tiles::channel(hw::Tile at, DMAChannelDir direction, ArrayRef<Ring> rings, BDDimLayoutArrayAttr walk) {
  Use &use = uses[at];
  bool in = direction == DMAChannelDir::S2MM;
  Channel &out = use.programs.emplace_back();
  out.direction = direction;
  out.number = use.channels[static_cast<size_t>(direction)]++;
  bool odd = machine.kindOf(at.row) == hw::TileKind::Memory && out.number % 2;
  for (size_t i = 0; i < rings.front().buffers.size(); ++i)
    for (const Ring &ring : rings)
      out.steps.push_back({ring.buffers[i], in ? ring.empty : ring.full, in ? ring.full : ring.empty, use.bds[odd]++});
  out.walk = walk;
  return out.number;
}

void Tiles::flow(hw::Tile from, uint32_t channel, hw::Tile to, uint32_t toChannel) {
  FlowOp::create(builder, where, tile(from), WireBundle::DMA, channel, tile(to), WireBundle::DMA, toChannel);
}

void Tiles::writeChannels() {
  for (const auto &[at, use] : uses)
    if (!use.programs.empty())
      write(at, use);
}

void Tiles::write(hw::Tile at, const Use &use) {
  OpBuilder::InsertionGuard guard(builder);
  Region *body = nullptr;
  if (machine.kindOf(at.row) == hw::TileKind::Memory)
    body = &MemTileDMAOp::create(builder, where, builder.getIndexType(), use.tile).getBody();
  else
    body = &MemOp::create(builder, where, builder.getIndexType(), use.tile).getBody();
  Block *start = &body->emplaceBlock();
  for (const Channel &channel : use.programs) {
    SmallVector<Block *> steps;
    for (size_t i = 0; i < channel.steps.size(); ++i)
      steps.push_back(&body->emplaceBlock());
    Block *next = &body->emplaceBlock();
    builder.setInsertionPointToEnd(start);
    DMAStartOp::create(builder, where, builder.getI1Type(), channel.direction, channel.number, steps[0], next);
    for (auto [i, step] : llvm::enumerate(channel.steps)) {
      builder.setInsertionPointToEnd(steps[i]);
      UseLockOp::create(builder, where, step.acquire, LockAction::AcquireGreaterEqual, 1);
      int64_t elements = cast<MemRefType>(step.buffer.getType()).getNumElements();
      DMABDOp::create(builder, where, step.buffer, 0, static_cast<uint32_t>(elements), channel.walk, step.bd);
      UseLockOp::create(builder, where, step.release, LockAction::Release, 1);
      NextBDOp::create(builder, where, steps[(i + 1) % steps.size()]);
    }
    start = next;
  }
  builder.setInsertionPointToEnd(start);
  EndOp::create(builder, where);
}
