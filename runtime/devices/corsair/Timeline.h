//===- Timeline.h - when a quad's engines are free --------------*- C++ -*-===//
//
// The cost formulas of ISA.md section 11. Times are clocks since the start of a
// program. Engines and memory ports are reserved in the order in which the
// quad's instructions are processed, which is that of their issue times.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Shadow.h"
#include "schemas/corsair/Machine.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dmxrt::corsair {

enum class Engine : uint8_t { DdrIn, DdrOut, ToIb, ToWb, FromOb, OtherDma, Dimc, Simd, Dre, Cpu };
constexpr int kEngines = 10;
constexpr std::string_view nameOf(Engine engine) {
  constexpr std::string_view kNames[] = {"DMA DDR in", "DMA DDR out", "DMA to IB", "DMA to WB", "DMA from OB",
                                         "DMA other",  "DIMC",        "SIMD",      "DRE",       "CPU"};
  return kNames[static_cast<int>(engine)];
}

constexpr int kMaxSlices = 8;

/// What was moved and computed: of a task, a quad or a run.
struct Usage {
  std::array<uint64_t, isa::kMemories> readBytes{}, writtenBytes{};
  uint64_t nocBytes = 0, d2dBytes = 0;
  uint64_t macs16 = 0, macs8 = 0, macs4 = 0, simdOps = 0;
  /// Clocks per engine and slice (engines of the quad: slice 0); over quads, their sum.
  std::array<std::array<uint64_t, kMaxSlices>, kEngines> busy{};
  uint64_t instructions = 0;
  uint64_t saturated = 0;                  ///< results that f16 could not hold
  uint64_t first = ~uint64_t(0), last = 0; ///< clocks

  void add(const Usage &other);
};

/// Picojoules by component.
struct Energy {
  double memories[isa::kMemories] = {}, links = 0, macs = 0, simd = 0, leakage = 0;
  double total() const;
};
/// `chiplets` in use for `clocks`.
Energy energyOf(const Usage &usage, const isa::Machine &machine, int chiplets, uint64_t clocks);

/// An interval of an engine for the trace.
struct TraceEvent {
  uint64_t start, end;
  Engine engine;
  uint8_t instance;
  uint32_t stream, position, mark;
};

struct Interval {
  uint64_t start = 0, end = 0;
};

/// Reservations of one quad.
class Timeline {
public:
  /// `ddrUsers`: quads of the chiplet that share its DDR.
  Timeline(const isa::Machine &machine, int ddrUsers);

  /// A port or engine and for how long it is taken.
  struct Demand {
    uint64_t *freeAt;
    uint64_t clocks;
  };
  /// Something whose data phase needs all `demands` at once: it begins `setup`
  /// after the instruction and lasts as long as the longest demand, at least `clocks`;
  /// the instruction ends `latency` later. The channel is taken until the data are through.
  Interval transfer(std::span<uint64_t> channels, uint64_t issue, uint64_t setup, std::span<const Demand> demands,
                    uint64_t clocks, uint64_t latency);

  // Ports and engines: the clock they are free at.
  using PerSlice = std::array<uint64_t, kMaxSlices>;
  uint64_t ddr = 0, gmRead = 0, gmWrite = 0, cpu = 0, link = 0;
  PerSlice stRead{}, stWrite{}, ibWrite{}, obRead{}, obWrite{}, simdWrite{}, dreWrite{}, wbWrite{}, dimc{}, simd{},
      dre{};
  /// Channels by engine; DMA engines only.
  std::array<std::vector<uint64_t>, kEngines> channels;

  double ddrRate = 0; ///< bytes a clock, this quad's share
};

inline uint64_t ceilClocks(double clocks) { return static_cast<uint64_t>(std::ceil(clocks - 1e-9)); }

} // namespace dmxrt::corsair
