//===- Registers.h - where registers are, and words of single ones *- C++ -*-===//
//
// One table a kind of tile says at which offsets its registers lie; both ways read it. Words of queues, switches and
// the shim's multiplexers are structs with `encode` and `decode`, which refuses bits that no field has.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Bd.h"

namespace dmx::aie {

/// Registers by what they hold.
enum class RegisterKind : uint8_t {
  Data,        ///< word `index` of the data memory
  Program,     ///< word `index` of the program memory
  Bd,          ///< word `word` of BD `index`
  Lock,        ///< value of lock `index`
  Queue,       ///< start queue of channel `index` of `direction`
  CoreControl, ///< enables (1), resets (2) the core
  Master,      ///< what leaves the switch by port `index`
  Slave,       ///< what enters it by port `index`
  Rule,        ///< rule `word` for packets of slave `index`
  ShimMux,     ///< who sends to the switch's south ports
  ShimDemux,   ///< who receives from them
};
std::string_view nameOf(RegisterKind kind);

struct Register {
  RegisterKind kind = RegisterKind::Data;
  uint32_t index = 0, word = 0;
  Direction direction = Direction::S2MM;
  bool operator==(const Register &) const = default;
};

/// The offset of a register in its tile; nullopt where tiles of that kind do not have it.
std::optional<uint32_t> offsetOf(TileKind kind, const Register &what);
/// The register at an offset; nullopt where none is known, or between two.
std::optional<Register> registerAt(TileKind kind, uint32_t offset);

/// Of registers and memories in the array.
constexpr uint32_t addressOf(Tile tile, uint32_t offset) { return tile.column << 25 | tile.row << 20 | offset; }
constexpr Tile tileOf(uint32_t address) { return {address >> 25, address >> 20 & 31}; }
constexpr uint32_t offsetIn(uint32_t address) { return address & 0xfffff; }

/// A task for a DMA channel.
struct QueueWord {
  uint32_t bd = 0;    ///< the first one
  uint32_t times = 1; ///< 1 to 256
  bool token = false; ///< the controller is told when it is done
  bool operator==(const QueueWord &) const = default;
};
uint32_t encode(const QueueWord &word);
bool decode(uint32_t bits, QueueWord &word);

/// The value of a lock.
constexpr uint32_t encodeLock(int64_t value) { return static_cast<uint32_t>(value) & 127; }
constexpr bool decodeLock(uint32_t bits, int64_t &value) {
  value = static_cast<int64_t>(bits & 63) - (bits & 64);
  return bits < 128;
}

//--- switches ------------------------------------------------------------------
/// Where a stream enters or leaves a switch.
enum class Bundle : uint8_t { Core, Dma, Ctrl, Fifo, South, West, North, East };
std::string_view nameOf(Bundle bundle);
struct Port {
  Bundle bundle = Bundle::Core;
  uint32_t index = 0;
  bool operator==(const Port &) const = default;
  auto operator<=>(const Port &) const = default;
};
/// "SOUTH 3"
std::string textOf(Port port);
/// Into a switch through slaves, out of it through masters.
enum class Side : uint8_t { Slave, Master };

/// How many ports of a bundle a switch has, and the number that registers give one of them.
uint32_t portCount(TileKind kind, Side side, Bundle bundle);
std::optional<uint32_t> numberOf(TileKind kind, Side side, Port port);
std::optional<Port> portAt(TileKind kind, Side side, uint32_t number);
/// nullptr if a stream that enters by `from` may leave by `to`, else why not.
const char *refuses(TileKind kind, Port from, Port to);

struct MasterWord {
  bool enabled = false, packets = false;
  uint32_t slave = 0;              ///< of a circuit
  bool dropHeader = false;         ///< of packets, as what follows
  uint32_t msels = 0, arbiter = 0; ///< a mask of the arbiter's selections; the arbiter
  bool operator==(const MasterWord &) const = default;
};
struct SlaveWord {
  bool enabled = false, packets = false;
  bool operator==(const SlaveWord &) const = default;
};
struct RuleWord {
  bool enabled = false;
  uint32_t id = 0, mask = 0, msel = 0, arbiter = 0; ///< ids are compared where the mask has bits
  bool operator==(const RuleWord &) const = default;
};
uint32_t encode(const MasterWord &word);
uint32_t encode(const SlaveWord &word);
uint32_t encode(const RuleWord &word);
bool decode(uint32_t bits, MasterWord &word);
bool decode(uint32_t bits, SlaveWord &word);
bool decode(uint32_t bits, RuleWord &word);

/// The first word of a packet: where it is from.
struct PacketHeader {
  uint32_t id = 0, type = 0;
  Tile source;
  bool operator==(const PacketHeader &) const = default;
};
uint32_t encode(const PacketHeader &header);
/// False where the parity is wrong.
bool decode(uint32_t bits, PacketHeader &header);

//--- the shim's multiplexers -----------------------------------------------------
/// The lowest of the two bits by which the DMA (1) has a south port of the shim's switch; nullopt for ports that it
/// cannot have. Of the multiplexer, where streams enter the switch, and of the demultiplexer.
std::optional<uint32_t> muxBit(uint32_t south);
std::optional<uint32_t> demuxBit(uint32_t south);
/// The south port of the shim's switch by which a channel's stream enters (MM2S) or leaves it.
uint32_t shimPort(Direction direction, uint32_t channel);

} // namespace dmx::aie
