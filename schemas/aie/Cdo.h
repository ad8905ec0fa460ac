//===- Cdo.h - the initial configuration as a CDO, both ways ----*- C++ -*-===//
//
// Configuration data objects are what the platform's loader runs before the first control stream. Addresses are those
// in the array.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Machine.h"

#include <span>

namespace dmx::aie {

struct CdoCommand {
  /// Numbers are those of the commands.
  enum class Kind : uint16_t { NoOp = 0x111, Write = 0x108, MaskWrite = 0x107, BlockWrite = 0x105, Poll = 0x106 };
  Kind kind = Kind::NoOp;
  uint64_t address = 0;
  uint32_t mask = 0, value = 0; ///< Poll: waits until the register has the value where the mask has bits
  uint32_t timeout = 0;         ///< Poll
  std::vector<uint32_t> data;   ///< BlockWrite; NoOp: what it carries
  bool operator==(const CdoCommand &) const = default;
};

std::vector<uint32_t> encodeCdo(std::span<const CdoCommand> commands);
/// nullopt, and which command why, where it is not sound.
std::optional<std::vector<CdoCommand>> decodeCdo(std::span<const uint32_t> words, std::string &error);

} // namespace dmx::aie
