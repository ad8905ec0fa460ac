//===- Machine.cpp - reads and checks descriptions of GPUs ----------------===//

#include "Machine.h"

#include "schemas/cuda/Layouts.h"
#include "schemas/cuda/Limits.h"
#include "schemas/machines/Description.h"

namespace dmx::cuda {

/// Two slots of the largest tile and their barriers: every tile has a choice of slots.
static constexpr int kFewestShared = 2 * ((128 + 256) * static_cast<int>(kTileRowBytes) + 16);

std::optional<Machine> parseMachine(std::string_view json, std::string &error) {
  Description figures(json);
  Machine out;
  out.name = figures.name();
  out.clockHz = figures.number("clock_hz", 1e6, 1e11);
  out.multiprocessors = figures.integer("multiprocessors", 1, 1024);
  // What the capability fixes may be less, for kernels that leave room, never more.
  out.registers = figures.integer("multiprocessor.registers", 49152, kRegisters);
  out.multiplicationsPerClock = figures.number("multiprocessor.multiplications_per_clock", 1, 1e6);
  out.cacheBytesPerClock = figures.number("multiprocessor.cache_bytes_per_clock", 0.001, 1e6);
  out.mostThreads = figures.integer("block.threads", 384, kMostThreads);
  out.mostShared = figures.integer("block.shared_bytes", kFewestShared, kMostShared);
  out.mostRegisters = figures.integer("thread.registers", 128, kMostRegisters);
  out.registerStep = figures.integer("thread.register_step", kRegisterStep, kRegisterStep);
  out.fewestRegisters = figures.integer("thread.fewest_registers", kFewestRegisters, 64);
  out.parameterBytes = figures.integer("kernel.parameter_bytes", 1024, kMostParameterBytes);
  out.startClocks = figures.number("product.start_clocks", 0, 1e9);
  out.clocksFor128Sums = figures.number("product.clocks_for_128_sums", 0, 1e9);
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
