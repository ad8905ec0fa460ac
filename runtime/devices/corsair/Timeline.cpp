//===- Timeline.cpp - when a quad's engines are free ----------------------===//

#include "Timeline.h"

#include <algorithm>

namespace dmxrt::corsair {

void Usage::add(const Usage &other) {
  for (int i = 0; i < isa::kMemories; ++i) {
    readBytes[i] += other.readBytes[i];
    writtenBytes[i] += other.writtenBytes[i];
  }
  for (int i = 0; i < kEngines; ++i)
    for (int slice = 0; slice < kMaxSlices; ++slice)
      busy[i][slice] += other.busy[i][slice];
  nocBytes += other.nocBytes;
  d2dBytes += other.d2dBytes;
  macs16 += other.macs16;
  macs8 += other.macs8;
  macs4 += other.macs4;
  simdOps += other.simdOps;
  instructions += other.instructions;
  saturated += other.saturated;
  first = std::min(first, other.first);
  last = std::max(last, other.last);
}

double Energy::total() const {
  double sum = links + macs + simd + leakage;
  for (double memory : memories)
    sum += memory;
  return sum;
}

Energy energyOf(const Usage &usage, const isa::Machine &machine, int chiplets, uint64_t clocks) {
  Energy out;
  for (int i = 0; i < isa::kMemories; ++i)
    out.memories[i] = static_cast<double>(usage.readBytes[i] + usage.writtenBytes[i]) * machine.memories[i].picojoules;
  out.links = static_cast<double>(usage.nocBytes) * machine.noc.picojoules +
              static_cast<double>(usage.d2dBytes) * machine.d2d.picojoules;
  out.macs =
      (static_cast<double>(usage.macs16) * machine.macInt16Fj + static_cast<double>(usage.macs8) * machine.macInt8Fj +
       static_cast<double>(usage.macs4) * machine.macInt4Fj) *
      1e-3;
  out.simd = static_cast<double>(usage.simdOps) * machine.simdPicojoules;
  out.leakage = machine.staticWattsPerChiplet * chiplets * static_cast<double>(clocks) / machine.clockHz * 1e12;
  return out;
}

Timeline::Timeline(const isa::Machine &machine, int ddrUsers) {
  auto set = [this](Engine engine, int count) {
    channels[static_cast<int>(engine)].assign(static_cast<size_t>(count), 0);
  };
  // DDR -> GM and DDR -> ST have channels of their own; their sum serves both here.
  set(Engine::DdrIn, machine.ddrToGm + machine.ddrToSt);
  set(Engine::DdrOut, machine.gmToDdr);
  set(Engine::ToIb, machine.gmToIb);
  set(Engine::ToWb, machine.stToWb * machine.slices);
  set(Engine::FromOb, machine.obToGm);
  set(Engine::OtherDma, machine.gmToIb);
  ddrRate = machine.memory(Memory::DDR).read / std::max(ddrUsers, 1);
}

Interval Timeline::transfer(std::span<uint64_t> pool, uint64_t issue, uint64_t setup, std::span<const Demand> demands,
                            uint64_t clocks, uint64_t latency) {
  uint64_t *channel = pool.empty() ? nullptr : &*std::min_element(pool.begin(), pool.end());
  uint64_t start = channel ? std::max(issue, *channel) : issue;
  uint64_t data = start + setup;
  for (const Demand &demand : demands) {
    data = std::max(data, *demand.freeAt);
    clocks = std::max(clocks, demand.clocks);
  }
  for (const Demand &demand : demands)
    *demand.freeAt = data + demand.clocks;
  if (channel)
    *channel = data + clocks;
  return {start, data + clocks + latency};
}

} // namespace dmxrt::corsair
