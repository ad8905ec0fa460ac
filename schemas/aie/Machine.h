//===- Machine.h - the array: kinds of tiles and their limits ---*- C++ -*-===//
//
// Every number of the machine that compiler, simulator and checks know. `figures` lists them with where each is from:
// `fact` (published), `derived` (by arithmetic from facts) or `assumption` (ours).
//
//===----------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dmx::aie {

enum class TileKind : uint8_t { Shim, Memory, Core };
inline constexpr size_t kTileKinds = 3;
/// Of a DMA channel: from a stream into memory, or out of it.
enum class Direction : uint8_t { S2MM, MM2S };

std::string_view nameOf(TileKind kind);
std::string_view nameOf(Direction direction);

/// Row 0 is the south.
struct Tile {
  uint32_t column = 0, row = 0;
  bool operator==(const Tile &) const = default;
  auto operator<=>(const Tile &) const = default;
};
/// "(2,1)"
std::string textOf(Tile tile);

/// What a tile of one kind has.
struct TileInfo {
  int64_t dataBytes = 0, programBytes = 0;
  int64_t locks = 0, bds = 0, channels = 0; ///< channels of each direction
  int64_t dims = 0;                         ///< of a BD, without its iteration
  int64_t largestWrap = 0, largestStep = 0; ///< of a BD's dim; steps in words
  int64_t largestLength = 0;                ///< of a BD, in words
};

struct Machine {
  std::string_view name;
  uint32_t generation = 0;                       ///< as control streams call it
  uint32_t columns = 0, rows = 0;                ///< of tiles
  uint32_t memoryRows = 0;                       ///< they follow row 0
  std::array<TileInfo, kTileKinds> tiles;        ///< by kind
  int64_t smallestLock = 0, largestLock = 0;     ///< values
  int64_t queueDepth = 0, largestRepeat = 0;     ///< tasks that wait at a channel, and how often one runs
  int64_t largestIteration = 0;                  ///< of a BD's iteration
  int64_t arbiters = 0, msels = 0, rules = 0;    ///< of a switch; rules of a slave port
  int64_t hopClocks = 0, hopWords = 0;           ///< of a switch: latency, buffer
  int64_t memoryBytesPerClock = 0;               ///< of a memory tile, each way
  int64_t shimBytesPerClock = 0;                 ///< of a shim, each way
  int64_t shimRunClocks = 0;                     ///< of a shim, for each run of words that it reads
  int64_t ddrBytesPerClock = 0;                  ///< of all shims together, both ways
  int64_t bf16Macs = 0, i32Macs = 0, i8Macs = 0; ///< of a core in a clock
  int64_t loadsPerClock = 0, storesPerClock = 0, accessBytes = 0; ///< of a core's vector unit
  int64_t loopClocks = 0, callClocks = 0;                         ///< a core's overheads
  int64_t controlClocks = 0;                                      ///< of the controller for a word of its stream
  int64_t instructionBytes = 0; ///< what an instruction of a core program is counted as
  double clockHz = 0;

  TileKind kindOf(uint32_t row) const {
    return row == 0 ? TileKind::Shim : row <= memoryRows ? TileKind::Memory : TileKind::Core;
  }
  bool has(Tile tile) const { return tile.column < columns && tile.row < rows; }
  const TileInfo &tile(TileKind kind) const { return tiles[static_cast<size_t>(kind)]; }
  /// Of a core in a clock, by the bytes of an operand's element.
  int64_t macs(int64_t bytes) const { return bytes == 1 ? i8Macs : bytes == 2 ? bf16Macs : i32Macs; }
  uint32_t coreRows() const { return rows - 1 - memoryRows; }
};

/// By name: npu1, its cuts npu1_1col to npu1_4col, and npu4; nullopt for others.
std::optional<Machine> machineOf(std::string_view name);
/// "npu1, npu1_1col, ..."
std::string machineNames();

enum class Mark : uint8_t { Fact, Derived, Assumption };
struct Figure {
  std::string_view name;
  double value;
  Mark mark;
  std::string_view source;
};
std::vector<Figure> figures(const Machine &machine);
std::string_view nameOf(Mark mark);

} // namespace dmx::aie
