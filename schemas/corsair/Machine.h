//===- Machine.h - a parametric Corsair-class machine -----------*- C++ -*-===//
//
// Every number of the machine model, read from JSON (corsair-like.json), where
// each has a mark: `fact` (published), `derived` (by arithmetic from facts) or
// `assumption` (ours). Nothing else in compiler or simulator knows a number of
// the chip.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Isa.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dmx::corsair {

/// A memory's figures. Rates are bytes a clock of one unit of its scope.
struct MemoryInfo {
  enum class Scope : uint8_t { Chiplet, Quad, Slice, Core };
  Scope scope = Scope::Quad;
  uint64_t size = 0;          ///< bytes of one unit
  double read = 0, write = 0; ///< bytes a clock
  double latency = 0;         ///< clocks
  double picojoules = 0;      ///< per byte, read or written
};

struct LinkInfo {
  double bytesPerClock = 0;
  double latency = 0;    ///< clocks
  double picojoules = 0; ///< per byte
};

struct Machine {
  std::string name;
  double clockHz = 0;
  int cards = 1, packages = 0, chiplets = 0, quads = 0, slices = 0, cores = 0; ///< each per parent
  // DIMC: clocks of one activation row against one tile, per operand class
  double rowClocks16 = 0, rowClocks8 = 0, rowClocks4 = 0;
  double fillLatency = 0; ///< clocks from the last row in to its partials out
  int maxPprMode = 0;
  double pprLevelLatency = 0;
  std::array<MemoryInfo, kMemories> memories;
  // SIMD device of a slice
  int lanes = 0;
  double opsPerClock = 1, simdOverhead = 8;
  double expClocks = 4, recipClocks = 2, rsqrtClocks = 2;
  double simdPicojoules = 0; ///< per lane and operation
  LinkInfo noc, d2d, bridge, pcie, jetstream;
  double macInt8Fj = 0, macInt4Fj = 0, macInt16Fj = 0, staticWattsPerChiplet = 0;
  // dispatch
  int queuesPerQuad = 0;
  double issueClocks = 0, barrierClocks = 0, loopClocks = 0, mailboxClocks = 0, cpuCallClocks = 0;
  // DMA
  double dmaSetup = 0;
  int ddrToGm = 0, ddrToSt = 0, gmToIb = 0, stToWb = 0, obToGm = 0, gmToDdr = 0; ///< channels of a quad
  std::string source;                                                            ///< the JSON text it was read from

  int quadsPerChiplet() const { return quads; }
  int chipletCount() const { return cards * packages * chiplets; }
  int quadCount() const { return chipletCount() * quads; }
  int slicesPerQuad() const { return slices; }
  int coresPerSlice() const { return cores; }
  const MemoryInfo &memory(Memory which) const { return memories[static_cast<int>(which)]; }
  /// Units of a memory in the card.
  int unitCount(Memory which) const;
  // Totals of one card.
  double peakInt8() const;        ///< operations (2 a MAC) a second
  double stReadBandwidth() const; ///< bytes a second
  double ddrBandwidth() const;    ///< bytes a second
  uint64_t sramBytes() const;     ///< GM and ST
  /// CRC-32 of the JSON text without its blanks; images carry it.
  uint32_t fingerprint() const;
};

/// Clocks that a lane of the vector device spends on one element.
double clocksOf(SimdFunction function, const Machine &machine);

/// Reads and checks a description. The error names the knob: missing, of the
/// wrong type, out of range, without a mark, or the total that it misses and
/// the knobs the total is made of.
std::optional<Machine> parseMachine(std::string_view json, std::string &error);
/// corsair-like.json, built in.
std::string_view builtinMachineJson();
const Machine &builtinMachine();

} // namespace dmx::corsair
