//===- CpuCount.h - how many CPUs this process may use ----------*- C++ -*-===//
#pragma once

#include <cstdint>
#include <vector>

namespace dmxrt {

/// CPUs of the calling thread's affinity mask, in ascending order.
std::vector<uint32_t> allowedCpus();

/// Allowed CPUs, lowered to what the cgroup's CPU quota (v2 or v1) pays for;
/// at least 1. More threads than that would be stopped in mid-run.
uint32_t defaultThreadCount();

} // namespace dmxrt
