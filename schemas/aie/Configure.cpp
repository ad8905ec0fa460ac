//===- Configure.cpp - what is configured becomes register writes ---------===//
#include "Configure.h"

namespace dmx::aie {

void Configuration::fail(Tile tile, const std::string &why) {
  if (firstError.empty())
    firstError = "tile " + textOf(tile) + ": " + why;
}

std::optional<uint32_t> Configuration::find(Tile tile, const Register &what) {
  if (!machine.has(tile)) {
    fail(tile, "the machine " + std::string(machine.name) + " has " + std::to_string(machine.columns) + " columns of " +
                   std::to_string(machine.rows) + " tiles");
    return std::nullopt;
  }
  std::optional<uint32_t> offset = offsetOf(machine.kindOf(tile.row), what);
  if (!offset) {
    fail(tile, "a " + std::string(nameOf(machine.kindOf(tile.row))) + " tile has no " + std::string(nameOf(what.kind)) +
                   " " + std::to_string(what.index));
    return std::nullopt;
  }
  return addressOf(tile, *offset);
}

void Configuration::write(Tile tile, const Register &what, uint32_t value) {
  std::optional<uint32_t> address = find(tile, what);
  if (address && firstError.empty())
    all.push_back({*address, value});
}

void Configuration::lock(Tile tile, uint32_t lock, int64_t value) {
  if (value < machine.smallestLock || value > machine.largestLock)
    return fail(tile, "lock " + std::to_string(lock) + " starts at " + std::to_string(value) + ", its values are " +
                          std::to_string(machine.smallestLock) + " to " + std::to_string(machine.largestLock));
  write(tile, {RegisterKind::Lock, lock}, encodeLock(value));
}

void Configuration::bd(Tile tile, uint32_t number, const Bd &bd) {
  std::string why;
  std::vector<uint32_t> words = encode(machine.kindOf(tile.row), bd, why);
  if (words.empty())
    return fail(tile, "BD " + std::to_string(number) + ": " + why);
  for (uint32_t i = 0; i < words.size(); ++i)
    write(tile, {RegisterKind::Bd, number, i}, words[i]);
}

void Configuration::start(Tile tile, Direction direction, uint32_t channel, const QueueWord &task) {
  if (task.times < 1 || task.times > machine.largestRepeat)
    return fail(tile, "a task of channel " + std::to_string(channel) + " runs " + std::to_string(task.times) +
                          " times, the most are " + std::to_string(machine.largestRepeat));
  write(tile, {RegisterKind::Queue, channel, 0, direction}, encode(task));
}

void Configuration::writePort(Tile tile, Side side, Port port, RegisterKind kind, uint32_t word, uint32_t value) {
  std::optional<uint32_t> number = numberOf(machine.kindOf(tile.row), side, port);
  if (!number)
    return fail(tile,
                "its switch has no port " + textOf(port) + (side == Side::Slave ? " to enter by" : " to leave by"));
  write(tile, {kind, *number, word}, value);
}

void Configuration::connect(Tile tile, Port from, Port to) {
  TileKind kind = machine.kindOf(tile.row);
  if (const char *why = refuses(kind, from, to))
    return fail(tile, "cannot connect " + textOf(from) + " to " + textOf(to) + ": " + why);
  MasterWord master;
  master.enabled = true;
  master.slave = *numberOf(kind, Side::Slave, from);
  writePort(tile, Side::Master, to, RegisterKind::Master, 0, encode(master));
  writePort(tile, Side::Slave, from, RegisterKind::Slave, 0, encode(SlaveWord{true, false}));
}

void Configuration::master(Tile tile, Port to, const MasterWord &word) {
  writePort(tile, Side::Master, to, RegisterKind::Master, 0, encode(word));
}

void Configuration::rule(Tile tile, Port from, uint32_t number, const RuleWord &word) {
  writePort(tile, Side::Slave, from, RegisterKind::Slave, 0, encode(SlaveWord{true, true}));
  writePort(tile, Side::Slave, from, RegisterKind::Rule, number, encode(word));
}

void Configuration::shimDma(Tile tile, Direction direction, uint32_t south) {
  bool in = direction == Direction::MM2S;
  std::optional<uint32_t> bit = in ? muxBit(south) : demuxBit(south);
  std::optional<uint32_t> address = find(tile, {in ? RegisterKind::ShimMux : RegisterKind::ShimDemux});
  if (!bit)
    return fail(tile, "the shim's DMA cannot have port SOUTH " + std::to_string(south));
  if (address && firstError.empty())
    all.push_back({*address, 1u << *bit, 3u << *bit});
}

void Configuration::coreControl(Tile tile, bool enable, bool reset) {
  write(tile, {RegisterKind::CoreControl}, uint32_t(enable) | uint32_t(reset) << 1);
}

void Configuration::data(Tile tile, uint32_t word, uint32_t value) { write(tile, {RegisterKind::Data, word}, value); }

} // namespace dmx::aie
