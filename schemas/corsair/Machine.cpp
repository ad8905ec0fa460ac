//===- Machine.cpp - reads and checks machine descriptions ----------------===//

#include "Machine.h"
#include "Crc32.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace dmx::corsair {
namespace {

/// What a description needs of JSON. The library's own values may allocate where they are destroyed, which ends a
/// program that is out of memory.
struct Value {
  struct Member;
  enum class Kind : uint8_t { Other, Object, Number, Text } kind = Kind::Other;
  double number = 0;
  std::string text;
  std::vector<Member> members; ///< of an Object

  const Value *find(std::string_view key) const;
};
struct Value::Member {
  std::string key;
  Value value;
};

const Value *Value::find(std::string_view key) const {
  auto at = std::find_if(members.begin(), members.end(), [&](const Member &member) { return member.key == key; });
  return at == members.end() ? nullptr : &at->value;
}

/// Builds values from the events of a text that is read; those in arrays are dropped.
class ValueBuilder : public nlohmann::json_sax<nlohmann::json> {
public:
  Value root;

  bool null() override { return set(Value::Kind::Other); }
  bool boolean(bool) override { return set(Value::Kind::Other); }
  bool number_integer(int64_t value) override { return set(Value::Kind::Number, static_cast<double>(value)); }
  bool number_unsigned(uint64_t value) override { return set(Value::Kind::Number, static_cast<double>(value)); }
  bool number_float(double value, const std::string &) override { return set(Value::Kind::Number, value); }
  bool string(std::string &value) override {
    set(Value::Kind::Text);
    if (!dropped)
      next->text = std::move(value);
    return true;
  }
  bool binary(nlohmann::json::binary_t &) override { return false; }
  bool key(std::string &value) override {
    if (dropped)
      return true;
    std::vector<Value::Member> &members = open.back()->members;
    next = const_cast<Value *>(open.back()->find(value)); // of members of the same name the last one counts
    if (!next)
      next = &members.emplace_back(Value::Member{std::move(value), {}}).value;
    return true;
  }
  bool start_object(size_t) override {
    set(Value::Kind::Object);
    if (dropped)
      ++dropped;
    else
      open.push_back(next);
    return true;
  }
  bool end_object() override { return end(); }
  bool start_array(size_t) override {
    set(Value::Kind::Other);
    ++dropped;
    return true;
  }
  bool end_array() override { return end(); }
  bool parse_error(size_t, const std::string &, const nlohmann::json::exception &) override { return false; }

private:
  std::vector<Value *> open; ///< objects
  Value *next = &root;       ///< what the next event is about
  int dropped = 0;           ///< containers within an array, and the array

  bool set(Value::Kind kind, double number = 0) {
    if (!dropped) {
      *next = Value();
      next->kind = kind;
      next->number = number;
    }
    return true;
  }
  bool end() {
    if (dropped)
      --dropped;
    else
      open.pop_back();
    return true;
  }
};

/// What the numbers of one card must come to; part of the description.
struct Totals {
  double int8 = 0, int4 = 0, int16 = 0, stRead = 0, ddr = 0, sram = 0, quads = 0;
};

/// Links whose figures are in physical units in the JSON text.
struct LinkUnits {
  double gigabytes = 0, nanoseconds = 0;
};

std::string text(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.6g", value);
  return buffer;
}

/// Reads one description. The first failure is kept; later reads do nothing.
class Reader {
public:
  Reader(const Value &root, std::string &error) : root(root), error(error) {}
  bool run(Machine &out);

private:
  const Value &root;
  std::string &error;
  size_t leaves = 0; ///< marked numbers read
  Totals totals;

  bool fail(std::string message) {
    if (error.empty())
      error = "machine description: " + std::move(message);
    return false;
  }
  const Value *find(std::string_view path) const;
  double number(const std::string &path, double min, double max);
  int integer(const std::string &path, int min, int max);
  void memory(Memory which, MemoryInfo::Scope scope, Machine &out);
  LinkInfo link(const char *name, double clockHz);
  void readCompute(Machine &out);
  void readRest(Machine &out);
  size_t countLeaves(const Value &value) const;
  void check(const char *total, double got, double wanted, const char *knobs);
  void checkTotals(const Machine &out);
};

const Value *Reader::find(std::string_view path) const {
  const Value *at = &root;
  for (size_t begin = 0; at && begin <= path.size();) {
    size_t end = std::min(path.find('.', begin), path.size());
    at = at->find(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return at;
}

double Reader::number(const std::string &path, double min, double max) {
  const Value *leaf = find(path);
  if (!leaf)
    return fail("'" + path + "' is missing"), min;
  const Value *figure = leaf->find("value"), *mark = leaf->find("mark");
  if (!figure || figure->kind != Value::Kind::Number)
    return fail("'" + path + "' is not {\"value\": number, \"mark\": ...}"), min;
  if (!mark || (mark->text != "fact" && mark->text != "derived" && mark->text != "assumption"))
    return fail("'" + path + "' has no mark fact, derived or assumption"), min;
  double value = figure->number;
  if (!(value >= min && value <= max))
    return fail("'" + path + "' is " + text(value) + ", allowed are " + text(min) + " to " + text(max)), min;
  ++leaves;
  return value;
}

int Reader::integer(const std::string &path, int min, int max) {
  double value = number(path, min, max);
  if (value != std::floor(value))
    fail("'" + path + "' is " + text(value) + ", not an integer");
  return static_cast<int>(value);
}

void Reader::memory(Memory which, MemoryInfo::Scope scope, Machine &out) {
  std::string path = "memories." + std::string(nameOf(which)) + ".";
  MemoryInfo &info = out.memories[static_cast<int>(which)];
  info.scope = scope;
  info.size = static_cast<uint64_t>(number(path + "size", 64, 0x1p40));
  if (info.size % 64)
    fail("'" + path + "size' is not a multiple of 64");
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
    fail("topology.packages * topology.chiplets * topology.quads is above 32, the width of quad masks");
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

size_t Reader::countLeaves(const Value &value) const {
  if (value.find("value"))
    return 1;
  size_t count = 0;
  for (const Value::Member &member : value.members)
    count += countLeaves(member.value);
  return count;
}

void Reader::check(const char *total, double got, double wanted, const char *knobs) {
  if (std::abs(got - wanted) > 1e-3 * wanted)
    fail(std::string("'totals.") + total + "' is " + text(wanted) + ", but the numbers come to " + text(got) +
         "; it is made of " + knobs);
}

void Reader::checkTotals(const Machine &out) {
  double cores = double(out.quadCount()) * out.slices * out.cores;
  auto ops = [&](double macs, double clocks) { return 2 * cores * macs / clocks * out.clockHz; };
  check("quads", out.quadCount(), totals.quads, "topology.packages, topology.chiplets and topology.quads");
  check("int8_ops_per_second", ops(64 * 64, out.rowClocks8), totals.int8,
        "clock_hz, topology.slices, topology.cores and dimc.row_clocks_int8");
  check("int4_ops_per_second", ops(128 * 64, out.rowClocks4), totals.int4,
        "clock_hz, topology and dimc.row_clocks_int4");
  check("int16_ops_per_second", ops(64 * 64, out.rowClocks16), totals.int16,
        "clock_hz, topology and dimc.row_clocks_int16");
  check("st_read_bytes_per_second", out.stReadBandwidth(), totals.stRead, "clock_hz, topology and memories.ST.read");
  check("ddr_bytes_per_second", out.ddrBandwidth(), totals.ddr, "clock_hz, topology and memories.DDR.read");
  check("sram_bytes", static_cast<double>(out.sramBytes()), totals.sram,
        "topology, memories.GM.size and memories.ST.size");
}

bool Reader::run(Machine &out) {
  if (root.kind != Value::Kind::Object)
    return fail("not a JSON object");
  const Value *name = root.find("name");
  if (!name || name->text.empty())
    return fail("'name' is missing");
  out.name = name->text;
  readCompute(out);
  readRest(out);
  // A misspelt knob would silently leave the right one at its value.
  if (error.empty() && countLeaves(root) != leaves)
    fail("it has " + std::to_string(countLeaves(root)) + " numbers, but only " + std::to_string(leaves) + " are known");
  if (error.empty())
    checkTotals(out);
  return error.empty();
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

namespace {
/// Nesting beyond any description's would only exhaust the stack.
bool isDeep(std::string_view json) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < json.size(); ++i) {
    char c = json[i];
    i += quoted && c == '\\';
    quoted ^= c == '"';
    depth += quoted ? 0 : (c == '{' || c == '[') - (c == '}' || c == ']');
    if (depth > 32)
      return true;
  }
  return false;
}
} // namespace

std::optional<Machine> parseMachine(std::string_view json, std::string &error) {
  error.clear();
  if (isDeep(json)) {
    error = "machine description: nested too deeply";
    return std::nullopt;
  }
  ValueBuilder values;
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &values)) {
    error = "machine description: not valid JSON";
    return std::nullopt;
  }
  Machine out;
  if (!Reader(values.root, error).run(out))
    return std::nullopt;
  out.source = json;
  return out;
}

} // namespace dmx::corsair
