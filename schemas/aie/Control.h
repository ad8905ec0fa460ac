//===- Control.h - what the array's controller runs, both ways --*- C++ -*-===//
//
// A control stream is a header and ops: writes of registers, patches of addresses by the arguments of a run, waits for
// tokens of finished tasks.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Registers.h"

namespace dmx::aie {

struct ControlOp {
  /// Numbers are the opcodes.
  enum class Kind : uint8_t {
    Write = 0,
    BlockWrite = 1,
    MaskWrite = 3,
    Preempt = 6,
    Load = 8,
    Sync = 0x80,
    Patch = 0x81
  };
  Kind kind = Kind::Write;
  uint64_t address = 0;         ///< of the register; Load: of the configuration; in its bytes
  uint32_t value = 0, mask = 0; ///< Write, MaskWrite; Load: number of the configuration; Preempt: its level
  std::vector<uint32_t> data;   ///< BlockWrite, never empty
  /// Sync: the first tile whose channel is waited for, columns x rows of them; BlockWrite: said beside the address,
  /// which has it too (0, 0 where it is not).
  Tile tile;
  uint32_t columns = 1, rows = 1;
  Direction direction = Direction::S2MM;
  uint32_t channel = 0;
  uint32_t argument = 0; ///< Patch
  uint64_t offset = 0;   ///< Patch: what is added to the argument's address; Load: bytes of the configuration
  bool operator==(const ControlOp &) const = default;
};
std::string_view nameOf(ControlOp::Kind kind);

ControlOp writeOp(uint32_t address, uint32_t value);
ControlOp blockWriteOp(uint32_t address, std::vector<uint32_t> data);
ControlOp maskWriteOp(uint32_t address, uint32_t value, uint32_t mask);
ControlOp syncOp(Tile tile, Direction direction, uint32_t channel);
ControlOp patchOp(uint32_t address, uint32_t argument, uint64_t offset);
/// The offset of a patch in the container whose streams lie in an instruction buffer: from argument 5 on it has a bit
/// more.
constexpr uint64_t containerOffset(uint32_t argument, uint64_t offset) {
  return argument < 5 ? offset : offset + 0x80000000u;
}

/// What a control stream says of the machine that it is for.
struct ControlHeader {
  uint32_t rows = 0, generation = 0, memoryRows = 0, columns = 0;
  bool operator==(const ControlHeader &) const = default;
};
ControlHeader headerOf(const Machine &machine);

/// The words of one op, and of a stream.
void append(std::vector<uint32_t> &words, const ControlOp &op);
std::vector<uint32_t> encode(const ControlHeader &header, std::span<const ControlOp> ops);
/// The ops of a stream; nullopt, and which op why, where it is not sound. What is decoded encodes to the same words.
std::optional<std::vector<ControlOp>> decodeControl(std::span<const uint32_t> words, ControlHeader &header,
                                                    std::string &error);
/// A line of text.
std::string textOf(const ControlOp &op);

} // namespace dmx::aie
