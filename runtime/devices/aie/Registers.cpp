//===- Registers.cpp - what writes of registers do ------------------------===//
#include "Array.h"

#include <cstring>

namespace dmxrt::aie {

using K = hw::RegisterKind;

void Array::configure() {
  const hw::Overlay &overlay = image.overlays[kernel.overlay];
  configurationWords = hw::encodeCdo(overlay.initial).size();
  for (const hw::CdoCommand &command : overlay.initial) {
    auto address = static_cast<uint32_t>(command.address);
    using Kind = hw::CdoCommand::Kind;
    if (command.kind == Kind::Write)
      write(address, command.value, UINT32_MAX);
    if (command.kind == Kind::MaskWrite)
      write(address, command.value, command.mask);
    if (command.kind == Kind::BlockWrite)
      for (size_t i = 0; i < command.data.size(); ++i)
        write(address + static_cast<uint32_t>(4 * i), command.data[i], UINT32_MAX);
  }
}

void Array::write(uint32_t address, uint32_t value, uint32_t mask) {
  TileState *tile = find(hw::tileOf(address));
  std::optional<hw::Register> at;
  if (tile)
    at = hw::registerAt(tile->kind, hw::offsetIn(address));
  if (!at)
    return fail("unknown-register", cat("a write to ", address));
  auto change = [&](uint32_t &word) { word = (word & ~mask) | (value & mask); };
  switch (at->kind) {
  case K::Data: {
    std::string why;
    if (std::byte *there = tile->memory->access(int64_t(4) * at->index, 4, true, controller.actor(), why)) {
      uint32_t word = 0;
      std::memcpy(&word, there, 4);
      change(word);
      std::memcpy(there, &word, 4);
      return;
    }
    return fail("race", why);
  }
  case K::Bd:
    return writeBd(*tile, *at, value, mask);
  case K::Lock:
    return writeLock(*tile, at->index, value);
  case K::Queue:
    return push(*tile, *at, value);
  case K::CoreControl:
    if (tile->core >= 0) {
      Core &core = cores[static_cast<size_t>(tile->core)];
      core.thread.now.join(controller.now);
      core.enabled = (value & 3) == 1;
      controller.advance();
    } else if (value & 1) {
      fail("program-memory", cat("core ", hw::textOf(tile->tile), " is enabled and has no program"));
    }
    return;
  case K::ShimMux:
  case K::ShimDemux:
    change(at->kind == K::ShimMux ? tile->mux : tile->demux);
    break;
  case K::Master:
    change(tile->masters[at->index]);
    break;
  case K::Slave:
    change(tile->slaves[at->index]);
    break;
  case K::Rule:
    change(tile->rules[size_t(4) * at->index + at->word]);
    break;
  case K::Program:
    return fail("program-memory", cat("a write to the program memory of core ", hw::textOf(tile->tile)));
  }
  routed = false;
}

void Array::writeBd(TileState &tile, const hw::Register &at, uint32_t value, uint32_t mask) {
  uint32_t channelCount = 2 * static_cast<uint32_t>(machine.tile(tile.kind).channels);
  for (uint32_t i = 0; i < channelCount; ++i)
    if (const Channel &each = channels[tile.firstChannel + i]; each.running && each.bdNumber == at.index)
      return fail("bd-rewritten-while-running", cat("BD ", at.index, " of tile ", hw::textOf(tile.tile), " is what ",
                                                    nameOf(each.thread.number), " runs"));
  uint32_t &word = tile.bds[at.index * hw::kBdWords[static_cast<size_t>(tile.kind)] + at.word];
  word = (word & ~mask) | (value & mask);
}

void Array::writeLock(TileState &tile, uint32_t lock, uint32_t value) {
  int64_t number = 0;
  if (!hw::decodeLock(value, number))
    return fail("lock-overflow", cat("lock ", lock, " of tile ", hw::textOf(tile.tile), " is set to ", value));
  tile.locks[lock].set(number, controller.now);
  controller.advance();
}

void Array::push(TileState &tile, const hw::Register &at, uint32_t value) {
  Channel &to = channel(tile, at.direction, at.index);
  hw::QueueWord task;
  const hw::TileInfo &info = machine.tile(tile.kind);
  if (!hw::decode(value, task) || task.bd >= info.bds)
    return fail("bd-invalid",
                cat(nameOf(to.thread.number), " is started with ", value, "; there are ", info.bds, " BDs"));
  if (static_cast<int64_t>(to.waiting.size()) >= machine.queueDepth)
    return fail("queue-overflow", cat(nameOf(to.thread.number), " is started with BD ", task.bd, ", and ",
                                      machine.queueDepth, " tasks wait there"));
  if (std::find(active.begin(), active.end(), to.thread.number - 1u) == active.end()) {
    bool isShim = tile.kind == TileKind::Shim;
    active.insert(active.end() - (isShim ? 0 : static_cast<ptrdiff_t>(activeShims)), to.thread.number - 1u);
    activeShims += isShim;
  }
  to.waiting.push_back({task, controller.now});
  controller.advance();
}

} // namespace dmxrt::aie
