//===- ClockReport.cpp - launches of a session, in clocks ---------------------===//

#include "ClockReport.h"

#include <algorithm>
#include <cmath>

namespace dmxrt::cuda {

static uint64_t whole(double clocks) { return static_cast<uint64_t>(std::llround(clocks)); }

/// Multiply-adds of a multiprocessor in a clock, with the launch's mix.
static double peakMacs(const LaunchCounts &counts, const Machine &machine) {
  double tensor = machine.multiplicationsPerClock;
  double clocks = static_cast<double>(counts.macs16) / tensor + static_cast<double>(counts.macsTf32) / (tensor / 2) +
                  static_cast<double>(counts.macsF32) / (kSchedulers * kLanes);
  double macs = static_cast<double>(counts.macs16 + counts.macsTf32 + counts.macsF32);
  return clocks > 0 ? macs / clocks : kSchedulers * kLanes;
}

/// Multiply-adds of tensor cores that the model does not ask for: what fills up tiles.
static uint64_t padded(const LaunchFigures &figures) {
  uint64_t done = figures.counts.macs16 + figures.counts.macsTf32, asked = figures.modelMacs.value_or(done);
  return done - std::min(done, asked);
}

void write(sim::ReportWriter &out, const Machine &machine, const LaunchFigures &figures) {
  const LaunchCounts &counts = figures.counts;
  out.kernel(figures.kernel, 0, 0, 0);
  std::vector<sim::Count> units = {{"multiprocessors", figures.multiprocessors},
                                   {"blocks", figures.blocks},
                                   {"threads_a_block", figures.threads},
                                   {"blocks_at_a_time", figures.occupancy.blocks},
                                   {"waves", figures.waves},
                                   {"registers", figures.occupancy.registers},
                                   {"issues", counts.issues},
                                   {"memory_requests", counts.requests},
                                   {"sectors_read", counts.sectorsRead},
                                   {"sectors_written", counts.sectorsWritten},
                                   {"bytes_asked", counts.bytesRead + counts.bytesWritten},
                                   {"shared_requests", counts.sharedRequests},
                                   {"shared_wavefronts", counts.wavefronts},
                                   {"bank_conflicts", counts.wavefronts - counts.leastWavefronts},
                                   {"tma_bytes_read", counts.bulkRead},
                                   {"tma_bytes_written", counts.bulkWritten},
                                   {"wgmma", counts.wgmma}};
  if (figures.modelMacs)
    units.push_back({"model_macs", *figures.modelMacs});
  const sim::Count macs[] = {{"f16", counts.macs16}, {"tf32", counts.macsTf32}, {"f32", counts.macsF32}};
  double clocks = std::max(figures.clocks, 1.0), done = 0;
  for (const sim::Count &each : macs)
    done += static_cast<double>(each.number);
  double peak = peakMacs(counts, machine) * machine.multiprocessors, filling = static_cast<double>(padded(figures));
  uint64_t asked = counts.bytesRead + counts.bytesWritten,
           moved = (counts.sectorsRead + counts.sectorsWritten) * kSectorBytes;
  const sim::Share shares[] = {
      {"mac_peak_share", done / (peak * clocks)},
      {"padded_peak_share", filling / (peak * clocks)},
      {"coalescing", moved ? std::min(1.0, static_cast<double>(asked) / static_cast<double>(moved)) : 1},
      {"occupancy", static_cast<double>(figures.occupancy.blocks) * figures.threads / machine.clock.threads}};
  std::vector<sim::Share> busy;
  for (const EngineShare &each : sharesOf(figures))
    busy.push_back({each.name, std::min(each.share, 1.0)});
  const uint64_t read[] = {figures.dramRead, (counts.sectorsRead + counts.bulkSectorsRead) * kSectorBytes,
                           counts.wavefronts * kLineBytes},
                 written[] = {figures.dramWritten, (counts.sectorsWritten + counts.bulkSectorsWritten) * kSectorBytes,
                              counts.bulkRead};
  out.program("main", {whole(figures.clocks),
                       figures.clocks / machine.clockHz,
                       units,
                       figures.bound,
                       shares,
                       {read, written, {}, macs, 0, counts.instructions},
                       busy,
                       {},
                       2 * peak * machine.clockHz,
                       2 * (done - filling)});
  double rate = dmx::cuda::memoryBytesPerClock(machine) * machine.clockHz,
         l2 = dmx::cuda::l2BytesPerClock(machine) * machine.clockHz;
  out.roof({"DRAM", 1, rate, rate, rate, true});
  out.roof({"L2", 1, l2, l2, l2, true});
}

void write(sim::Trace &out, const Machine &machine, const LaunchFigures &figures, double from) {
  double microseconds = 1e6 / machine.clockHz;
  out.process(0, "launches");
  out.row(0, 0, "kernels");
  out.begin(0, 0, from * microseconds, figures.clocks * microseconds, figures.kernel);
  out.argument("bound", figures.bound);
  out.argument("blocks", figures.blocks);
  out.finish();
  out.process(1, "a multiprocessor: what its warps wait for");
  for (const WarpStretch &each : figures.waits) {
    uint32_t row = 64 * each.block + each.warp;
    out.row(1, row, cat("block ", each.block, ", warp ", each.warp));
    out.begin(1, row, (from + machine.clock.launchClocks + each.begin) * microseconds,
              (each.end - each.begin) * microseconds, cat("line ", each.line));
    out.argument("kernel", figures.kernel);
    out.finish();
  }
}

} // namespace dmxrt::cuda
