//===- Estimate.cpp - what a launch takes, in clocks --------------------------===//

#include "Estimate.h"
#include "runtime/devices/cuda/sim/SharedMemory.h"

#include <algorithm>
#include <cmath>

namespace dmxrt::cuda {
namespace {

uint32_t multiprocessorsOf(const Machine &machine) { return static_cast<uint32_t>(machine.multiprocessors); }
uint64_t divideUp(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

/// Counts of blocks that were run, for all of the grid.
LaunchCounts ofGrid(const LaunchCounts &run, uint64_t blocks) {
  LaunchCounts out = run;
  if (run.blocks == 0 || run.blocks == blocks)
    return out;
  for (uint64_t *each :
       {&out.instructions, &out.issues, &out.requests, &out.sectorsRead, &out.sectorsWritten, &out.bytesRead,
        &out.bytesWritten, &out.sharedRequests, &out.wavefronts, &out.leastWavefronts, &out.bulkRead, &out.bulkWritten,
        &out.bulkSectorsRead, &out.bulkSectorsWritten, &out.wgmma, &out.macs16, &out.macsTf32, &out.macsF32})
    *each = static_cast<uint64_t>(
        std::llround(static_cast<double>(*each) / static_cast<double>(run.blocks) * static_cast<double>(blocks)));
  out.blocks = blocks;
  return out;
}

/// What was touched once is fetched once: what blocks share, and what a block reads again, is in the second cache. Of a
/// grid of which some blocks were run, as many times their sectors, but no more than a region has.
void setDram(LaunchFigures &out, const Recorder &recorder, uint64_t ran) {
  double scale = ran ? static_cast<double>(out.blocks) / static_cast<double>(ran) : 1;
  auto all = [&](uint64_t sectors, uint64_t most) {
    return std::min(static_cast<uint64_t>(std::llround(static_cast<double>(sectors) * scale)), most) * kSectorBytes;
  };
  for (const Recorder::Footprint &each : recorder.footprints()) {
    out.dramRead += all(each.readSectors, each.sectors);
    out.dramWritten += all(each.writtenSectors, each.sectors);
  }
}

/// How many blocks are played: four times those that are there at once, and the others go on as these do.
constexpr uint64_t kRounds = 4;

double played(Multiprocessor &multiprocessor, uint64_t blocks, uint64_t atATime) {
  uint64_t count = std::min(blocks, kRounds * atATime);
  double end = multiprocessor.play(count, atATime);
  if (count == blocks || multiprocessor.ends.size() < count) // then some wait for what was not recorded
    return end;
  double first = multiprocessor.ends[atATime - 1];
  return end + (end - first) / static_cast<double>(count - atATime) * static_cast<double>(blocks - count);
}

std::string_view boundOf(const LaunchFigures &figures, const Machine &machine, double memoryClocks) {
  if (memoryClocks > 0.5 * figures.clocks)
    return "DRAM";
  std::vector<EngineShare> shares = sharesOf(figures);
  auto most = std::max_element(shares.begin(), shares.end(), [](auto &a, auto &b) { return a.share < b.share; });
  if (most->share > 0.5)
    return most->name;
  if (figures.playClocks < machine.clock.launchClocks)
    return "launch";
  return figures.multiprocessors < multiprocessorsOf(machine) / 2 ? "few blocks" : "latency";
}

} // namespace

std::vector<EngineShare> sharesOf(const LaunchFigures &figures) {
  double clocks = std::max(figures.playClocks, 1.0), four = kSchedulers * clocks;
  std::vector<EngineShare> out{{"issue", figures.busy.issue / four}};
  for (Unit unit : {Unit::Float, Unit::Integer, Unit::Double, Unit::Special, Unit::Tensor})
    out.push_back({nameOf(unit), figures.busy.units[static_cast<size_t>(unit)] / four});
  out.push_back({"shared memory", figures.busy.shared / clocks});
  out.push_back({"L2", figures.busy.l2 / clocks});
  out.push_back({"DRAM", figures.busy.dram / clocks});
  return out;
}

/// What several multiprocessors ask for comes once: each has its share of the rates, as often as others share with it.
static SharedRates ratesOf(const LaunchFigures &figures, const std::vector<BlockTrace> &traces,
                           const Machine &machine) {
  double users = figures.multiprocessors, asked = 0;
  for (const BlockTrace &trace : traces) {
    std::unordered_set<uint64_t> own(trace.sectors.begin(), trace.sectors.end());
    asked += static_cast<double>(own.size()) / static_cast<double>(traces.size());
  }
  double once = std::max(1.0, static_cast<double>(figures.dramRead + figures.dramWritten) / kSectorBytes),
         sharing = asked * figures.blocks / once;
  return dmx::cuda::ratesOf(machine, users, sharing);
}

LaunchFigures estimate(const Launch &launch, const Recorder &recorder, const Machine &machine, bool keepWaits) {
  LaunchFigures out;
  const Program &program = *launch.program;
  out.blocks = launch.blocks;
  out.threads = launch.threads;
  out.multiprocessors = std::min(launch.blocks, multiprocessorsOf(machine));
  uint64_t shared = program.sharedBegin - kSharedBegin + launch.shared;
  out.occupancy = occupancyOf(program, launch.threads, shared, machine);
  uint64_t each = divideUp(launch.blocks, multiprocessorsOf(machine)),
           atATime = std::min<uint64_t>(out.occupancy.blocks, each);
  out.waves = divideUp(each, out.occupancy.blocks);
  out.counts = ofGrid(recorder.counts(), launch.blocks);
  setDram(out, recorder, recorder.counts().blocks);
  if (const std::vector<BlockTrace> &traces = recorder.traces(); !traces.empty()) {
    auto all = static_cast<uint64_t>(machine.clock.cacheBytes),
         taken = atATime * (shared + static_cast<uint64_t>(machine.clock.reservedShared));
    Multiprocessor multiprocessor(program, traces, machine, ratesOf(out, traces, machine), all - std::min(all, taken));
    multiprocessor.waits = keepWaits ? &out.waits : nullptr;
    out.playClocks = played(multiprocessor, each, atATime);
    out.busy = multiprocessor.busy;
    out.busy.scale(static_cast<double>(each) / static_cast<double>(std::min(each, kRounds * atATime)));
  } else { // blocks too long to be kept: at the least what the schedulers issue
    out.busy.issue = static_cast<double>(out.counts.issues) / out.multiprocessors;
    out.playClocks = out.busy.issue / kSchedulers;
  }
  double memory = static_cast<double>(out.dramRead + out.dramWritten) / memoryBytesPerClock(machine);
  out.playClocks = std::max(out.playClocks, memory);
  out.clocks = out.playClocks + machine.clock.launchClocks;
  out.bound = boundOf(out, machine, memory);
  return out;
}

} // namespace dmxrt::cuda
