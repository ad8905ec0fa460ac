//===- CpuCount.h - how many CPUs this process may use ----------*- C++ -*-===//
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dmxrt {

/// CPUs of the calling thread's affinity mask, in ascending order.
std::vector<uint32_t> allowedCpus();

/// CPUs that the CPU quotas of this process's cgroup and its parents pay for, 0 when there is none.
/// `selfCgroup` is the text of /proc/self/cgroup, `mount` where the hierarchies are
/// mounted: version 2 there itself, version 1 in its folder cpu.
double cgroupCpus(const std::string &selfCgroup, const std::string &mount);

/// Allowed CPUs, lowered to what the cgroup's quota pays for, rounded down (a thread that gets half
/// a CPU delays all others); at least 1. More threads would be stopped in mid-run.
uint32_t defaultThreadCount();

} // namespace dmxrt
