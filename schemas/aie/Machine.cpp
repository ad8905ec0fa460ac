//===- Machine.cpp - the machines, and where their numbers are from -------===//
#include "Machine.h"

namespace dmx::aie {
namespace {

constexpr TileInfo kShim{0, 0, 16, 16, 2, 3, 1023, 1 << 20, INT64_C(0xffffffff)};
constexpr TileInfo kMemory{512 << 10, 0, 64, 48, 6, 4, 1023, 1 << 17, (1 << 17) - 1};
constexpr TileInfo kCore{64 << 10, 16 << 10, 16, 16, 2, 3, 255, 1 << 13, (1 << 14) - 1};

Machine npu1(std::string_view name, uint32_t columns) {
  Machine machine;
  machine.name = name;
  machine.generation = 3;
  machine.columns = columns;
  machine.rows = 6;
  machine.memoryRows = 1;
  machine.tiles = {kShim, kMemory, kCore};
  machine.smallestLock = -64;
  machine.largestLock = 63;
  machine.queueDepth = 4;
  machine.largestRepeat = 256;
  machine.largestIteration = 64;
  machine.arbiters = 6;
  machine.msels = 4;
  machine.rules = 4;
  machine.hopClocks = 4;
  machine.hopWords = 8;
  machine.memoryBytesPerClock = 30;
  machine.shimBytesPerClock = 16;
  machine.shimRunClocks = 5;
  machine.ddrBytesPerClock = 48;
  machine.bf16Macs = 128;
  machine.i32Macs = 16;
  machine.i8Macs = 256;
  machine.loadsPerClock = 2;
  machine.storesPerClock = 1;
  machine.accessBytes = 32;
  machine.loopClocks = 4;
  machine.callClocks = 40;
  machine.controlClocks = 1;
  machine.instructionBytes = 16;
  machine.clockHz = 1e9;
  return machine;
}

/// The register layouts and tiles of npu1, more columns and faster cores.
Machine npu4() {
  Machine machine = npu1("npu4", 8);
  machine.generation = 4;
  machine.bf16Macs = 512;
  machine.i8Macs = 512;
  return machine;
}

constexpr std::pair<std::string_view, uint32_t> kCuts[] = {
    {"npu1", 4}, {"npu1_1col", 1}, {"npu1_2col", 2}, {"npu1_3col", 3}, {"npu1_4col", 4}};

constexpr std::string_view kDriver = "aie-rt register database", kManual = "AM020", kTarget = "mlir-aie target model";

void addTile(std::vector<Figure> &out, const TileInfo &tile, const std::array<std::string_view, 9> &names) {
  const int64_t values[] = {tile.dataBytes, tile.programBytes, tile.locks,       tile.bds,          tile.channels,
                            tile.dims,      tile.largestWrap,  tile.largestStep, tile.largestLength};
  for (size_t i = 0; i < names.size(); ++i)
    if (!names[i].empty())
      out.push_back({names[i], static_cast<double>(values[i]), Mark::Fact, kDriver});
}

} // namespace

std::string_view nameOf(TileKind kind) {
  static constexpr std::string_view names[] = {"shim", "memory", "core"};
  return names[static_cast<size_t>(kind)];
}
std::string_view nameOf(Direction direction) { return direction == Direction::S2MM ? "S2MM" : "MM2S"; }
std::string_view nameOf(Mark mark) {
  static constexpr std::string_view names[] = {"fact", "derived", "assumption"};
  return names[static_cast<size_t>(mark)];
}
std::string textOf(Tile tile) { return "(" + std::to_string(tile.column) + "," + std::to_string(tile.row) + ")"; }

std::optional<Machine> machineOf(std::string_view name) {
  for (auto [cut, columns] : kCuts)
    if (cut == name)
      return npu1(cut, columns);
  return name == "npu4" ? std::optional(npu4()) : std::nullopt;
}

std::string machineNames() {
  std::string names;
  for (auto [cut, columns] : kCuts)
    names += std::string(cut) + ", ";
  return names + "npu4";
}

std::vector<Figure> figures(const Machine &m) {
  auto number = [](auto value) { return static_cast<double>(value); };
  bool second = m.generation == 4;
  std::vector<Figure> out = {{"columns", number(m.columns), Mark::Fact, kTarget},
                             {"rows", number(m.rows), Mark::Fact, kTarget},
                             {"memory_rows", number(m.memoryRows), Mark::Fact, kTarget},
                             {"generation", number(m.generation), Mark::Fact, kTarget}};
  addTile(out, m.tile(TileKind::Core),
          {"core.data_bytes", "core.program_bytes", "core.locks", "core.bds", "core.channels", "core.dims",
           "core.largest_wrap", "core.largest_step", "core.largest_length"});
  addTile(out, m.tile(TileKind::Memory),
          {"memory.data_bytes", "", "memory.locks", "memory.bds", "memory.channels", "memory.dims",
           "memory.largest_wrap", "memory.largest_step", "memory.largest_length"});
  addTile(out, m.tile(TileKind::Shim),
          {"", "", "shim.locks", "shim.bds", "shim.channels", "shim.dims", "shim.largest_wrap", "shim.largest_step",
           "shim.largest_length"});
  const Figure rest[] = {
      {"lock.smallest", number(m.smallestLock), Mark::Fact, kDriver},
      {"lock.largest", number(m.largestLock), Mark::Fact, kDriver},
      {"queue.depth", number(m.queueDepth), Mark::Fact, kDriver},
      {"queue.largest_repeat", number(m.largestRepeat), Mark::Fact, kDriver},
      {"bd.largest_iteration", number(m.largestIteration), Mark::Fact, kDriver},
      {"switch.arbiters", number(m.arbiters), Mark::Fact, kDriver},
      {"switch.msels", number(m.msels), Mark::Fact, kDriver},
      {"switch.rules", number(m.rules), Mark::Fact, kDriver},
      {"switch.hop_clocks", number(m.hopClocks), Mark::Fact, kManual},
      {"switch.hop_words", number(m.hopWords), Mark::Fact, kManual},
      {"memory.bytes_per_clock", number(m.memoryBytesPerClock), Mark::Derived, "AM020: 30 GB/s each way at 1 GHz"},
      {"shim.bytes_per_clock", number(m.shimBytesPerClock), Mark::Fact, kManual},
      {"shim.run_clocks", number(m.shimRunClocks), Mark::Assumption, "fitted to public logs of mlir-aie's whole_array"},
      {"ddr.bytes_per_clock", number(m.ddrBytesPerClock), Mark::Assumption, "both ways together"},
      {"core.bf16_macs", number(m.bf16Macs), Mark::Derived, "matrix steps of iree-amd-aie"},
      {"core.i8_macs", number(m.i8Macs), Mark::Derived, "matrix steps of iree-amd-aie"},
      {"core.i32_macs", number(m.i32Macs), Mark::Assumption, "products of 32 bits by parts of 16"},
      {"core.loads_per_clock", number(m.loadsPerClock), Mark::Fact, kManual},
      {"core.stores_per_clock", number(m.storesPerClock), Mark::Fact, kManual},
      {"core.access_bytes", number(m.accessBytes), Mark::Fact, kManual},
      {"core.loop_clocks", number(m.loopClocks), Mark::Assumption, "an entry of a kernel's loop"},
      {"core.call_clocks", number(m.callClocks), Mark::Assumption, "a call of a kernel"},
      {"control.word_clocks", number(m.controlClocks), Mark::Assumption, "of the controller"},
      {"core.instruction_bytes", number(m.instructionBytes), Mark::Assumption, "of a core program"},
      {"clock_hz", m.clockHz, second ? Mark::Assumption : Mark::Fact, second ? "as npu1" : kManual},
  };
  out.insert(out.end(), std::begin(rest), std::end(rest));
  return out;
}

} // namespace dmx::aie
