//===- Machine.cpp - reads and checks machine descriptions ----------------===//

#include "Machine.h"
#include "Crc32.h"

#include "schemas/machines/Description.h"

#include <vector>

namespace dmx::corsair {
namespace {

/// What the numbers of one card must come to; part of the description.
struct Totals {
  double int8 = 0, int4 = 0, int16 = 0, stRead = 0, ddr = 0, sram = 0, quads = 0;
};

class Reader {
public:
  explicit Reader(std::string_view json) : figures(json) {}
  /// The first failure; "" where there is none.
  const std::string &run(Machine &out);

private:
  Description figures;
  Totals totals;

  double number(const std::string &path, double min, double max) { return figures.number(path, min, max); }
  int integer(const std::string &path, int min, int max) { return figures.integer(path, min, max); }
  void memory(Memory which, MemoryInfo::Scope scope, Machine &out);
  LinkInfo link(const char *name, double clockHz);
  void readCompute(Machine &out);
  void readRest(Machine &out);
  void checkTotals(const Machine &out);
};

void Reader::memory(Memory which, MemoryInfo::Scope scope, Machine &out) {
  std::string path = "memories." + std::string(nameOf(which)) + ".";
  MemoryInfo &info = out.memories[static_cast<int>(which)];
  info.scope = scope;
  info.size = static_cast<uint64_t>(number(path + "size", 64, 0x1p40));
  if (info.size % 64)
    figures.fail("'" + path + "size' is not a multiple of 64");
  info.read = number(path + "read", 0.001, 1e9);
  info.write = number(path + "write", 0.001, 1e9);
  info.latency = number(path + "latency", 0, 1e9);
  info.picojoules = number(path + "picojoules", 0, 1e9);
}

LinkInfo Reader::link(const char *name, double clockHz) {
  std::string path = std::string("links.") + name + ".";
  LinkInfo info;
  info.bytesPerClock = number(path + "gigabytes_per_second", 0.001, 1e9) * 1e9 / clockHz;
  info.latency = number(path + "latency_ns", 0, 1e9) * clockHz / 1e9;
  info.picojoules = number(path + "picojoules", 0, 1e9);
  return info;
}

void Reader::readCompute(Machine &out) {
  out.clockHz = number("clock_hz", 1e6, 1e11);
  out.cards = integer("topology.cards", 1, 1);
  out.packages = integer("topology.packages", 1, 32);
  out.chiplets = integer("topology.chiplets", 1, 32);
  out.quads = integer("topology.quads", 1, 32);
  out.slices = integer("topology.slices", 1, 8);
  out.cores = integer("topology.cores", 1, 16);
  if (out.packages * out.chiplets * out.quads > 32)
    figures.fail("topology.packages * topology.chiplets * topology.quads is above 32, the width of quad masks");
  out.rowClocks16 = number("dimc.row_clocks_int16", 0.1, 1e6);
  out.rowClocks8 = number("dimc.row_clocks_int8", 0.1, 1e6);
  out.rowClocks4 = number("dimc.row_clocks_int4", 0.1, 1e6);
  out.fillLatency = number("dimc.fill_latency", 0, 1e6);
  out.maxPprMode = integer("dimc.max_ppr_mode", 0, 6);
  out.pprLevelLatency = number("dimc.ppr_level_latency", 0, 1e6);
  using S = MemoryInfo::Scope;
  memory(Memory::DDR, S::Chiplet, out);
  memory(Memory::GM, S::Quad, out);
  for (Memory which : {Memory::ST, Memory::OB, Memory::IB, Memory::DRE, Memory::SIMD})
    memory(which, S::Slice, out);
  memory(Memory::WB, S::Core, out);
  out.lanes = integer("simd.lanes", 1, 4096);
  out.opsPerClock = number("simd.ops_per_clock", 0.001, 1e6);
  out.simdOverhead = number("simd.overhead", 0, 1e6);
  out.expClocks = number("simd.exp_clocks", 0.001, 1e6);
  out.recipClocks = number("simd.recip_clocks", 0.001, 1e6);
  out.rsqrtClocks = number("simd.rsqrt_clocks", 0.001, 1e6);
  out.simdPicojoules = number("simd.picojoules", 0, 1e9);
}

void Reader::readRest(Machine &out) {
  out.noc.bytesPerClock = number("links.noc.bytes_per_clock", 0.001, 1e9);
  out.noc.latency = number("links.noc.latency", 0, 1e9);
  out.noc.picojoules = number("links.noc.picojoules", 0, 1e9);
  out.d2d = link("d2d", out.clockHz);
  out.bridge = link("bridge", out.clockHz);
  out.pcie = link("pcie", out.clockHz);
  out.jetstream = link("jetstream", out.clockHz);
  out.macInt8Fj = number("energy.mac_int8_fj", 0, 1e9);
  out.macInt4Fj = number("energy.mac_int4_fj", 0, 1e9);
  out.macInt16Fj = number("energy.mac_int16_fj", 0, 1e9);
  out.staticWattsPerChiplet = number("energy.static_watts_per_chiplet", 0, 1e6);
  out.queuesPerQuad = integer("dispatch.queues_per_quad", 1, 4);
  out.issueClocks = number("dispatch.issue_clocks", 0, 1e6);
  out.barrierClocks = number("dispatch.barrier_clocks", 0, 1e6);
  out.loopClocks = number("dispatch.loop_clocks", 0, 1e6);
  out.mailboxClocks = number("dispatch.mailbox_clocks", 0, 1e6);
  out.cpuCallClocks = number("dispatch.cpu_call_clocks", 0, 1e6);
  out.dmaSetup = number("dma.setup_clocks", 0, 1e6);
  out.ddrToGm = integer("dma.ddr_to_gm", 1, 64);
  out.ddrToSt = integer("dma.ddr_to_st", 1, 64);
  out.gmToIb = integer("dma.gm_to_ib", 1, 64);
  out.stToWb = integer("dma.st_to_wb", 1, 64);
  out.obToGm = integer("dma.ob_to_gm", 1, 64);
  out.gmToDdr = integer("dma.gm_to_ddr", 1, 64);
  totals.int8 = number("totals.int8_ops_per_second", 1, 1e20);
  totals.int4 = number("totals.int4_ops_per_second", 1, 1e20);
  totals.int16 = number("totals.int16_ops_per_second", 1, 1e20);
  totals.stRead = number("totals.st_read_bytes_per_second", 1, 1e20);
  totals.ddr = number("totals.ddr_bytes_per_second", 1, 1e20);
  totals.sram = number("totals.sram_bytes", 1, 1e20);
  totals.quads = number("totals.quads", 1, 32);
}

void Reader::checkTotals(const Machine &out) {
  double cores = double(out.quadCount()) * out.slices * out.cores;
  auto ops = [&](double macs, double clocks) { return 2 * cores * macs / clocks * out.clockHz; };
  figures.total("quads", out.quadCount(), totals.quads, "topology.packages, topology.chiplets and topology.quads");
  figures.total("int8_ops_per_second", ops(64 * 64, out.rowClocks8), totals.int8,
                "clock_hz, topology.slices, topology.cores and dimc.row_clocks_int8");
  figures.total("int4_ops_per_second", ops(128 * 64, out.rowClocks4), totals.int4,
                "clock_hz, topology and dimc.row_clocks_int4");
  figures.total("int16_ops_per_second", ops(64 * 64, out.rowClocks16), totals.int16,
                "clock_hz, topology and dimc.row_clocks_int16");
  figures.total("st_read_bytes_per_second", out.stReadBandwidth(), totals.stRead,
                "clock_hz, topology and memories.ST.read");
  figures.total("ddr_bytes_per_second", out.ddrBandwidth(), totals.ddr, "clock_hz, topology and memories.DDR.read");
  figures.total("sram_bytes", static_cast<double>(out.sramBytes()), totals.sram,
                "topology, memories.GM.size and memories.ST.size");
}

const std::string &Reader::run(Machine &out) {
  out.name = figures.name();
  readCompute(out);
  readRest(out);
  figures.checkAllKnown();
  checkTotals(out);
  return figures.error();
}

} // namespace

int Machine::unitCount(Memory which) const {
  switch (memory(which).scope) {
  case MemoryInfo::Scope::Chiplet:
    return chipletCount();
  case MemoryInfo::Scope::Quad:
    return quadCount();
  case MemoryInfo::Scope::Slice:
    return quadCount() * slices;
  case MemoryInfo::Scope::Core:
    return quadCount() * slices * cores;
  }
  return 0;
}

double Machine::peakInt8() const { return 2.0 * unitCount(Memory::WB) * 64 * 64 / rowClocks8 * clockHz; }
double Machine::stReadBandwidth() const { return unitCount(Memory::ST) * memory(Memory::ST).read * clockHz; }
double Machine::ddrBandwidth() const { return unitCount(Memory::DDR) * memory(Memory::DDR).read * clockHz; }
uint64_t Machine::sramBytes() const {
  return uint64_t(unitCount(Memory::GM)) * memory(Memory::GM).size +
         uint64_t(unitCount(Memory::ST)) * memory(Memory::ST).size;
}

uint32_t Machine::fingerprint() const {
  // Blanks between tokens do not matter; nothing else is normalised.
  std::vector<uint8_t> canonical;
  bool quoted = false;
  for (size_t i = 0; i < source.size(); ++i) {
    char c = source[i];
    if (c == '"' && (i == 0 || source[i - 1] != '\\'))
      quoted = !quoted;
    if (quoted || !(c == ' ' || c == '\n' || c == '\t' || c == '\r'))
      canonical.push_back(static_cast<uint8_t>(c));
  }
  return crc32(canonical);
}

std::optional<Machine> parseMachine(std::string_view json, std::string &error) {
  Machine out;
  error = Reader(json).run(out);
  if (!error.empty())
    return std::nullopt;
  out.source = json;
  return out;
}

double clocksOf(SimdFunction function, const Machine &machine) {
  using F = SimdFunction;
  switch (function) {
  case F::Exp:
  case F::Log:
  case F::Sin:
  case F::Cos:
  case F::Softplus:
    return machine.expClocks;
  case F::Tanh:
  case F::Sigmoid:
  case F::Silu:
  case F::Erf:
  case F::Gelu:
  case F::GeluTanh:
  case F::Elu:
  case F::Pow:
    return machine.expClocks + machine.recipClocks;
  case F::Div:
  case F::Mod:
  case F::Reciprocal:
    return machine.recipClocks;
  case F::Sqrt:
  case F::Rsqrt:
    return machine.rsqrtClocks;
  case F::Softmax:
  case F::LogSoftmax: // maximum, subtraction, exponential, sum, scaling
    return machine.expClocks + 4;
  case F::LayerNorm: // sum, difference, square, sum, scale, gain, bias
    return 6;
  case F::RmsNorm:
    return 4;
  case F::Rope:
  case F::RopeInterleaved:
    return 3;
  default:
    return 1;
  }
}

} // namespace dmx::corsair
