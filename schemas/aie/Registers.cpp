//===- Registers.cpp - offsets of registers, fields of single words -------===//
#include "Registers.h"

#include <bit>

namespace dmx::aie {
namespace {

/// `count` of a kind from an offset on, each of `words` words.
struct Row {
  RegisterKind kind;
  uint32_t base, count, stride, words = 1, wordStride = 4;
  Direction direction = Direction::S2MM;
};
using K = RegisterKind;

constexpr Row kCoreRows[] = {
    {K::Data, 0, 0x4000, 4},         {K::Bd, 0x1D000, 16, 0x20, 6},
    {K::Queue, 0x1DE04, 2, 8},       {K::Queue, 0x1DE14, 2, 8, 1, 4, Direction::MM2S},
    {K::Lock, 0x1F000, 16, 0x10},    {K::Program, 0x20000, 0x1000, 4},
    {K::CoreControl, 0x32000, 1, 4}, {K::Master, 0x3F000, 23, 4},
    {K::Slave, 0x3F100, 25, 4},      {K::Rule, 0x3F200, 25, 0x10, 4},
};
constexpr Row kMemoryRows[] = {
    {K::Data, 0, 0x20000, 4},        {K::Bd, 0xA0000, 48, 0x20, 8},
    {K::Queue, 0xA0604, 6, 8},       {K::Queue, 0xA0634, 6, 8, 1, 4, Direction::MM2S},
    {K::Master, 0xB0000, 17, 4},     {K::Slave, 0xB0100, 18, 4},
    {K::Rule, 0xB0200, 18, 0x10, 4}, {K::Lock, 0xC0000, 64, 0x10},
};
constexpr Row kShimRows[] = {
    {K::Lock, 0x14000, 16, 0x10},    {K::Bd, 0x1D000, 16, 0x20, 8},
    {K::Queue, 0x1D204, 2, 8},       {K::Queue, 0x1D214, 2, 8, 1, 4, Direction::MM2S},
    {K::ShimMux, 0x1F000, 1, 4},     {K::ShimDemux, 0x1F004, 1, 4},
    {K::Master, 0x3F000, 22, 4},     {K::Slave, 0x3F100, 23, 4},
    {K::Rule, 0x3F200, 23, 0x10, 4},
};

std::span<const Row> rowsOf(TileKind kind) {
  return kind == TileKind::Core     ? std::span<const Row>(kCoreRows)
         : kind == TileKind::Memory ? std::span<const Row>(kMemoryRows)
                                    : std::span<const Row>(kShimRows);
}

/// A bundle's ports of one side: the first one's number, how many.
struct Ports {
  Bundle bundle;
  uint32_t first, count;
};
using B = Bundle;
constexpr Ports kCoreMasters[] = {{B::Core, 0, 1},  {B::Dma, 1, 2},  {B::Ctrl, 3, 1},   {B::Fifo, 4, 1},
                                  {B::South, 5, 4}, {B::West, 9, 4}, {B::North, 13, 6}, {B::East, 19, 4}};
constexpr Ports kCoreSlaves[] = {{B::Core, 0, 1},  {B::Dma, 1, 2},   {B::Ctrl, 3, 1},   {B::Fifo, 4, 1},
                                 {B::South, 5, 6}, {B::West, 11, 4}, {B::North, 15, 4}, {B::East, 19, 4}};
constexpr Ports kMemoryMasters[] = {{B::Dma, 0, 6}, {B::Ctrl, 6, 1}, {B::South, 7, 4}, {B::North, 11, 6}};
constexpr Ports kMemorySlaves[] = {{B::Dma, 0, 6}, {B::Ctrl, 6, 1}, {B::South, 7, 6}, {B::North, 13, 4}};
constexpr Ports kShimMasters[] = {{B::Ctrl, 0, 1}, {B::Fifo, 1, 1},   {B::South, 2, 6},
                                  {B::West, 8, 4}, {B::North, 12, 6}, {B::East, 18, 4}};
constexpr Ports kShimSlaves[] = {{B::Ctrl, 0, 1},  {B::Fifo, 1, 1},   {B::South, 2, 8},
                                 {B::West, 10, 4}, {B::North, 14, 4}, {B::East, 18, 4}};

std::span<const Ports> portsOf(TileKind kind, Side side) {
  bool master = side == Side::Master;
  if (kind == TileKind::Core)
    return master ? std::span<const Ports>(kCoreMasters) : std::span<const Ports>(kCoreSlaves);
  if (kind == TileKind::Memory)
    return master ? std::span<const Ports>(kMemoryMasters) : std::span<const Ports>(kMemorySlaves);
  return master ? std::span<const Ports>(kShimMasters) : std::span<const Ports>(kShimSlaves);
}

bool isSide(Bundle bundle) { return bundle >= Bundle::South; }

} // namespace

std::string_view nameOf(RegisterKind kind) {
  static constexpr std::string_view names[] = {
      "data memory",      "program memory",    "BD", "lock", "start queue", "core control", "master", "slave", "rule",
      "shim multiplexer", "shim demultiplexer"};
  return names[static_cast<size_t>(kind)];
}

std::optional<uint32_t> offsetOf(TileKind kind, const Register &what) {
  for (const Row &row : rowsOf(kind))
    if (row.kind == what.kind && row.direction == what.direction && what.index < row.count && what.word < row.words)
      return row.base + what.index * row.stride + what.word * row.wordStride;
  return std::nullopt;
}

std::optional<Register> registerAt(TileKind kind, uint32_t offset) {
  for (const Row &row : rowsOf(kind)) {
    if (offset < row.base || offset >= row.base + row.count * row.stride)
      continue;
    uint32_t index = (offset - row.base) / row.stride, inside = (offset - row.base) % row.stride;
    if (inside % row.wordStride == 0 && inside / row.wordStride < row.words)
      return Register{row.kind, index, inside / row.wordStride, row.direction};
  }
  return std::nullopt;
}

uint32_t encode(const QueueWord &word) { return word.bd | (word.times - 1) << 16 | uint32_t(word.token) << 31; }
bool decode(uint32_t bits, QueueWord &word) {
  word = {bits & 63, (bits >> 16 & 255) + 1, bits >> 31 != 0};
  return encode(word) == bits;
}

std::string_view nameOf(Bundle bundle) {
  static constexpr std::string_view names[] = {"CORE", "DMA", "CTRL", "FIFO", "SOUTH", "WEST", "NORTH", "EAST"};
  return names[static_cast<size_t>(bundle)];
}
std::string textOf(Port port) { return std::string(nameOf(port.bundle)) + " " + std::to_string(port.index); }

uint32_t portCount(TileKind kind, Side side, Bundle bundle) {
  for (const Ports &ports : portsOf(kind, side))
    if (ports.bundle == bundle)
      return ports.count;
  return 0;
}

std::optional<uint32_t> numberOf(TileKind kind, Side side, Port port) {
  for (const Ports &ports : portsOf(kind, side))
    if (ports.bundle == port.bundle && port.index < ports.count)
      return ports.first + port.index;
  return std::nullopt;
}

std::optional<Port> portAt(TileKind kind, Side side, uint32_t number) {
  for (const Ports &ports : portsOf(kind, side))
    if (number >= ports.first && number < ports.first + ports.count)
      return Port{ports.bundle, number - ports.first};
  return std::nullopt;
}

const char *refuses(TileKind kind, Port from, Port to) {
  if (!numberOf(kind, Side::Slave, from))
    return "there is no such port into the switch";
  if (!numberOf(kind, Side::Master, to))
    return "there is no such port out of the switch";
  bool through = isSide(from.bundle) && isSide(to.bundle);
  if (kind == TileKind::Memory) {
    if (through && from.index != to.index)
      return "a memory tile's switch passes streams on with their number";
    if (from.bundle == Bundle::Dma && to.bundle == Bundle::Dma && from.index != to.index)
      return "a memory tile's switch joins DMA channels of one number";
  }
  if (through && from.bundle == to.bundle && from.index != to.index)
    return "a stream goes back to the side that it is from with its number";
  return nullptr;
}

uint32_t encode(const MasterWord &word) {
  if (!word.enabled)
    return 0;
  return word.packets ? 3u << 30 | uint32_t(word.dropHeader) << 7 | word.msels << 3 | word.arbiter
                      : 1u << 31 | word.slave;
}
bool decode(uint32_t bits, MasterWord &word) {
  word = {};
  word.enabled = bits >> 31;
  word.packets = bits >> 30 & 1;
  if (word.packets) {
    word.dropHeader = bits >> 7 & 1;
    word.msels = bits >> 3 & 15;
    word.arbiter = bits & 7;
  } else {
    word.slave = word.enabled ? bits & 31 : 0;
  }
  return encode(word) == bits;
}

uint32_t encode(const SlaveWord &word) { return word.enabled ? (word.packets ? 3u << 30 : 1u << 31) : 0; }
bool decode(uint32_t bits, SlaveWord &word) {
  word = {(bits >> 31) != 0, (bits >> 30 & 1) != 0};
  return encode(word) == bits;
}

uint32_t encode(const RuleWord &word) {
  return word.id << 24 | word.mask << 16 | uint32_t(word.enabled) << 8 | word.msel << 4 | word.arbiter;
}
bool decode(uint32_t bits, RuleWord &word) {
  word = {(bits >> 8 & 1) != 0, bits >> 24 & 31, bits >> 16 & 31, bits >> 4 & 3, bits & 7};
  return encode(word) == bits;
}

uint32_t encode(const PacketHeader &header) {
  uint32_t bits = header.id | header.type << 12 | header.source.row << 16 | header.source.column << 21;
  return bits | uint32_t(std::popcount(bits) % 2 == 0) << 31;
}
bool decode(uint32_t bits, PacketHeader &header) {
  header = {bits & 31, bits >> 12 & 7, {bits >> 21 & 127, bits >> 16 & 31}};
  return encode(header) == bits;
}

std::optional<uint32_t> muxBit(uint32_t south) {
  switch (south) {
  case 2:
    return 8;
  case 3:
    return 10;
  case 6:
    return 12;
  case 7:
    return 14;
  default:
    return std::nullopt;
  }
}
std::optional<uint32_t> demuxBit(uint32_t south) {
  return south >= 2 && south <= 5 ? std::optional(2 * south) : std::nullopt;
}
uint32_t shimPort(Direction direction, uint32_t channel) {
  return direction == Direction::MM2S ? 3 + 4 * channel : 2 + channel;
}

} // namespace dmx::aie
