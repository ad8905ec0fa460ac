//===- Machine.cpp - reads and checks descriptions of GPUs ----------------===//

#include "Machine.h"

#include "schemas/cuda/Layouts.h"
#include "schemas/cuda/Limits.h"
#include "schemas/machines/Description.h"

namespace dmx::cuda {

/// Two slots of the largest tile and their barriers: every tile has a choice of slots.
static constexpr int kFewestShared = 2 * ((128 + 256) * static_cast<int>(kTileRowBytes) + 16);

static Machine::Clock readClock(Description &figures) {
  Machine::Clock out;
  out.threads = figures.integer("multiprocessor.threads", 1024, 1 << 20);
  out.blocks = figures.integer("multiprocessor.blocks", 1, 1024);
  out.sharedBytes = figures.integer("multiprocessor.shared_bytes", kFewestShared, 1 << 24);
  out.reservedShared = figures.integer("block.reserved_shared_bytes", 0, 1 << 20);
  out.cacheBytes = figures.integer("multiprocessor.cache_bytes", 0, 1 << 28);
  out.sharedBytesPerClock = figures.number("multiprocessor.shared_bytes_per_clock", 1, 1e6);
  out.l2BytesPerClock = figures.number("multiprocessor.l2_bytes_per_clock", 0.001, 1e6);
  out.l2BytesPerSecond = figures.number("memory.l2_bytes_per_second", 1e9, 1e18);
  out.mergedRequests = figures.number("memory.merged_requests", 1, 1024);
  out.memoryBytesPerSecond = figures.number("memory.bytes_per_second", 1e9, 1e18);
  out.memoryShare = figures.number("memory.share_in_a_row", 0.01, 1);
  out.cacheLatency = figures.number("latency.cache_clocks", 0, 1e6);
  out.sharedLatency = figures.number("latency.shared_clocks", 0, 1e6);
  out.l2Latency = figures.number("latency.l2_clocks", 0, 1e6);
  out.memoryLatency = figures.number("latency.memory_clocks", 0, 1e6);
  out.bulkLatency = figures.number("latency.bulk_copy_clocks", 0, 1e6);
  out.barrierLatency = figures.number("latency.barrier_clocks", 0, 1e6);
  out.clusterLatency = figures.number("latency.cluster_clocks", 0, 1e6);
  out.productLatency = figures.number("latency.product_clocks", 0, 1e6);
  out.launchClocks = figures.number("kernel.launch_clocks", 0, 1e9);
  return out;
}

std::optional<Machine> parseMachine(std::string_view json, std::string &error) {
  Description figures(json);
  Machine out;
  out.name = figures.name();
  out.clockHz = figures.number("clock_hz", 1e6, 1e11);
  out.multiprocessors = figures.integer("multiprocessors", 1, 1024);
  // What the capability fixes may be less, for kernels that leave room, never more.
  out.registers = figures.integer("multiprocessor.registers", 49152, kRegisters);
  out.multiplicationsPerClock = figures.number("multiprocessor.multiplications_per_clock", 1, 1e6);
  out.mostThreads = figures.integer("block.threads", 384, kMostThreads);
  out.mostShared = figures.integer("block.shared_bytes", kFewestShared, kMostShared);
  out.mostCluster = figures.integer("block.cluster", 1, kMostCluster);
  out.mostRegisters = figures.integer("thread.registers", 128, kMostRegisters);
  out.registerStep = figures.integer("thread.register_step", kRegisterStep, kRegisterStep);
  out.fewestRegisters = figures.integer("thread.fewest_registers", kFewestRegisters, 64);
  out.parameterBytes = figures.integer("kernel.parameter_bytes", 1024, kMostParameterBytes);
  out.clocksFor128Sums = figures.number("product.clocks_for_128_sums", 0, 1e9);
  out.clock = readClock(figures);
  const double flops = figures.number("totals.flops_per_second", 1, 1e20);
  figures.checkAllKnown();
  figures.total("flops_per_second", 2 * out.multiplicationsPerClock * out.multiprocessors * out.clockHz, flops,
                "clock_hz, multiprocessors and multiprocessor.multiplications_per_clock");
  error = figures.error();
  if (!error.empty())
    return std::nullopt;
  out.source = json;
  return out;
}

} // namespace dmx::cuda
