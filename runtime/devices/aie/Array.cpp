//===- Array.cpp - tiles, time, and how a run ends ------------------------===//
#include "Array.h"

#include "schemas/aie/Border.h"

namespace dmxrt::aie {
namespace {

/// Longer than any wait of a sound program: what moves on and on without an end is a fault.
constexpr uint64_t kMostDrain = uint64_t(1) << 20, kMostCoreSteps = 1 << 20;
constexpr uint64_t kWait = uint64_t(1) << 22, kWaitOfAByte = 64;

uint32_t count(TileKind kind, hw::RegisterKind what, Direction direction = Direction::S2MM) {
  uint32_t index = 0;
  while (hw::offsetOf(kind, {what, index, 0, direction}))
    ++index;
  return index;
}

} // namespace

Array::Array(const hw::Machine &machine, const hw::Image &image, const hw::KernelCode &kernel, uint64_t seed,
             std::span<const std::shared_ptr<const hw::HostCode>> users)
    : machine(machine), image(image), kernel(kernel), users(users), random(seed), skewed(seed != 0) {
  makeTiles();
  auto threads = [this](uint16_t thread) { return nameOf(thread); };
  for (const hw::Argument &argument : kernel.arguments)
    ddr.push_back(
        std::make_unique<sim::CheckedMemory>(argument.name, static_cast<int64_t>(argument.ddrBytes()), threads));
  auto start = [&](Thread &thread) {
    thread.now.known = sim::VectorClock(threadCount);
    thread.now.known[thread.number] = 1;
  };
  start(controller);
  for (Channel &channel : channels)
    start(channel.thread);
  for (Core &core : cores)
    start(core.thread);
}

void Array::makeTiles() {
  using K = hw::RegisterKind;
  threadCount = 1; // the controller is 0
  auto threads = [this](uint16_t thread) { return nameOf(thread); };
  for (uint32_t column = 0; column < machine.columns; ++column)
    for (uint32_t row = 0; row < machine.rows; ++row) {
      TileKind kind = machine.kindOf(row);
      const hw::TileInfo &info = machine.tile(kind);
      TileState &state = tiles.emplace_back(TileState{{column, row}, kind});
      if (info.dataBytes)
        state.memory =
            std::make_unique<sim::CheckedMemory>(kind == TileKind::Core ? "L1" : "L2", info.dataBytes, threads);
      state.locks.resize(static_cast<size_t>(info.locks));
      state.bds.resize(static_cast<size_t>(info.bds) * hw::kBdWords[static_cast<size_t>(kind)]);
      state.masters.resize(count(kind, K::Master));
      state.slaves.resize(count(kind, K::Slave));
      state.rules.resize(4 * count(kind, K::Rule));
      state.firstChannel = static_cast<uint32_t>(channels.size());
      for (Direction direction : {Direction::S2MM, Direction::MM2S})
        for (uint32_t i = 0; i < info.channels; ++i)
          channels.push_back({state.tile, direction, i, {static_cast<uint16_t>(threadCount++), {}, 0}});
    }
  for (const hw::CoreProgram &program : image.overlays[kernel.overlay].programs) {
    find(program.tile)->core = static_cast<int32_t>(cores.size());
    cores.push_back({program.tile, &program, {static_cast<uint16_t>(threadCount++), {}, 0}});
  }
}

std::string Array::nameOf(uint16_t thread) const {
  if (thread == 0)
    return "the controller";
  if (thread <= channels.size()) {
    const Channel &channel = channels[thread - 1];
    return cat(hw::nameOf(channel.direction), " ", channel.number, " of tile ", hw::textOf(channel.tile));
  }
  return cat("core ", hw::textOf(cores[thread - 1 - channels.size()].tile));
}

void Array::fail(std::string_view name, const std::string &text) {
  if (fault.empty())
    fault = cat(name, ": ", text, ", at clock ", now);
}

TileState *Array::find(Tile tile) {
  return machine.has(tile) ? &tiles[size_t(tile.column) * machine.rows + tile.row] : nullptr;
}

std::byte *Array::host(size_t argument, bool write) {
  std::string why;
  const hw::Argument &of = kernel.arguments[argument];
  static std::byte nothing; // of a result without numbers
  // The host goes on when the controller has ended: what it reads is ordered behind that, and no more.
  std::byte *bytes = &nothing;
  auto take = [&](uint64_t first, uint64_t count) {
    int64_t width = hw::bytesOf(of.element), at = static_cast<int64_t>(first) * width;
    std::byte *run = !bytes ? nullptr
                            : ddr[argument]->access(at, static_cast<int64_t>(count) * width, write,
                                                    write ? sim::Actor() : controller.actor(), why);
    bytes = run ? run - at : nullptr;
  };
  if (write || kernel.most.empty())
    take(0, uint64_t(of.rows) * of.pitch);
  else
    hw::eachRun(of, take); // blocks behind the sizes of this dispatch are not there
  if (!bytes)
    fail(why.starts_with("race") ? "race" : "undefined-read",
         cat("the host cannot take '", kernel.arguments[argument].name, "': ", why));
  return bytes;
}

uint64_t Array::skew(uint32_t most) { return skewed ? random() % most : 0; }

void Array::mark(const Thread &thread, uint64_t start, uint64_t end, std::string name) {
  if (keepsTrace)
    intervals.push_back({start, end, thread.number, std::move(name)});
}

bool Array::step() {
  ddrWordsLeft = machine.ddrBytesPerClock / 4;
  bool others = stepController(), moved = false;
  if (!routed && fault.empty())
    trace();
  const size_t inside = active.size() - activeShims;
  for (size_t i = 0; i < active.size() && fault.empty(); ++i) // of shims another one is first each time: DDR is fair
    others |= step(channels[active[i < inside ? i : inside + (i + now) % activeShims]]);
  for (Core &core : cores)
    if (fault.empty())
      moved |= step(core);
  coreStepsAlone = others ? 0 : coreStepsAlone + moved;
  return others || moved;
}

/// The next clock at which something may happen; 0 where nothing will.
uint64_t Array::nextTime() const {
  uint64_t next = 0;
  auto at = [&](uint64_t time) {
    if (time > now && (next == 0 || time < next))
      next = time;
  };
  at(controlFreeAt);
  for (const Core &core : cores)
    if (core.enabled && !core.halted)
      at(core.freeAt);
  for (uint32_t number : active) {
    const Channel &channel = channels[number];
    at(channel.wakeAt);
    if (channel.in && !channel.in->words.empty())
      at(channel.in->words.front().first);
  }
  return next;
}

void Array::run() {
  configure();
  uint64_t doneAt = 0, longest = kWait;
  for (const hw::Argument &argument : kernel.arguments)
    longest += kWaitOfAByte * argument.ddrBytes();
  while (fault.empty()) {
    bool progress = step();
    bool done = op == kernel.control.size();
    doneAt = done && !doneAt ? now + 1 : doneAt;
    if (coreStepsAlone > kMostCoreSteps)
      fail("runaway", "a core runs on and waits for nothing");
    if (!done && now > controlMovedAt + longest)
      fail("runaway", cat("the controller waits since clock ", controlMovedAt, "; ", waits()));
    if (done && now > doneAt + kMostDrain)
      fail("runaway", "channels move on after the control stream has ended");
    uint64_t next = progress ? now + 1 : nextTime();
    if (next == 0)
      break;
    now = next;
  }
  if (fault.empty() && op < kernel.control.size())
    fail("deadlock", waits());
  if (fault.empty())
    checkRest();
}

/// What has ended leaves no words on the way and no BD half done.
void Array::checkRest() {
  for (const Path &path : paths)
    if (!path.words.empty())
      return fail("stream-leftover", cat(path.words.size(), " words from ", nameOf(channels[path.source].thread.number),
                                         " to ", nameOf(channels[path.sink].thread.number), " are taken by nobody"));
  for (const Channel &channel : channels) {
    bool begun = channel.running && channel.acquired && channel.left != channel.bd[hw::BdField::Length];
    if (begun)
      return fail("length-mismatch", cat(nameOf(channel.thread.number), " has ", channel.left, " words of BD ",
                                         channel.bdNumber, " left"));
  }
}

std::array<uint64_t, 3> Array::traffic(bool written) const {
  std::array<uint64_t, 3> bytes = {};
  auto add = [&](size_t at, const sim::CheckedMemory &memory) {
    bytes[at] += written ? memory.writtenBytes : memory.readBytes;
  };
  for (const auto &memory : ddr)
    add(0, *memory);
  for (const TileState &tile : tiles)
    if (tile.memory)
      add(tile.kind == TileKind::Memory ? 1 : 2, *tile.memory);
  return bytes;
}

} // namespace dmxrt::aie
