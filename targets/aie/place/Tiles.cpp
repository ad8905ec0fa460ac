//===- Tiles.cpp - what is placed on the tiles of a device ----------------===//
#include "Tiles.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

static std::string nameAt(const std::string &name, hw::Tile at) {
  return name + "_" + std::to_string(at.column) + "_" + std::to_string(at.row);
}

Value Tiles::tile(hw::Tile at) {
  Value &value = uses[at].tile;
  if (!value)
    value = TileOp::create(builder, where, builder.getIndexType(), at.column, at.row);
  return value;
}

Value Tiles::buffer(hw::Tile at, const std::string &name, MemRefType type, int64_t address) {
  Value on = tile(at), &value = uses[at].named[name];
  if (!value)
    value = BufferOp::create(builder, where, type, on, nameAt(name, at), static_cast<uint32_t>(address));
  return value;
}

Value Tiles::lock(hw::Tile at, const std::string &name, uint32_t number, int64_t value) {
  Value on = tile(at), &made = uses[at].named[name];
  if (!made)
    made = LockOp::create(builder, where, builder.getIndexType(), on, number, static_cast<uint32_t>(value),
                          builder.getStringAttr(nameAt(name, at)));
  return made;
}

bool Tiles::channel(hw::Tile at, DMAChannelDir direction, uint32_t number, std::vector<Step> steps, size_t again) {
  Use &use = uses[at];
  Channel &out = use.programs.emplace_back(Channel{direction, number, std::move(steps), again, {}});
  bool isMemory = machine.kindOf(at.row) == hw::TileKind::Memory, odd = isMemory && number % 2;
  for (size_t i = 0; i < out.steps.size(); ++i)
    out.bds.push_back(use.bds[odd]++);
  return use.bds[odd] <= (isMemory && !odd ? kOddBds : machine.tile(machine.kindOf(at.row)).bds);
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
    SmallVector<Block *> blocks;
    for (size_t i = 0; i < channel.steps.size(); ++i)
      blocks.push_back(&body->emplaceBlock());
    Block *next = &body->emplaceBlock();
    builder.setInsertionPointToEnd(start);
    DMAStartOp::create(builder, where, builder.getI1Type(), channel.direction, channel.number, blocks[0], next);
    for (auto [i, step] : llvm::enumerate(channel.steps)) {
      builder.setInsertionPointToEnd(blocks[i]);
      if (step.acquire)
        UseLockOp::create(builder, where, step.acquire, LockAction::AcquireGreaterEqual,
                          static_cast<uint32_t>(step.times));
      DMABDOp::create(builder, where, step.buffer, static_cast<uint32_t>(step.offset),
                      static_cast<uint32_t>(step.length), step.walk, channel.bds[i]);
      if (step.release)
        UseLockOp::create(builder, where, step.release, LockAction::Release, static_cast<uint32_t>(step.times));
      NextBDOp::create(builder, where, blocks[i + 1 < blocks.size() ? i + 1 : channel.again]);
    }
    start = next;
  }
  builder.setInsertionPointToEnd(start);
  EndOp::create(builder, where);
}
