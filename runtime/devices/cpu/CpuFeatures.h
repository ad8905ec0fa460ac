//===- CpuFeatures.h - instruction-set features of this CPU -----*- C++ -*-===//
#pragma once

#include "runtime/bundle/Manifest.h"

#include <string_view>

namespace dmxrt {

/// Whether this CPU and its operating system support a feature, by LLVM's name
/// ("avx2", "sse4.2", "avx512vl"). An unknown name counts as unsupported.
bool cpuHasFeature(std::string_view name);
/// Whether this process may use AMX's tiles, whose registers Linux gives to those that ask. Asks once a process; for
/// processors that have them.
bool cpuLendsTiles();

/// What a choice rests on; tests choose for other machines.
struct CpuMachine {
  bool (*hasFeature)(std::string_view) = cpuHasFeature;
  bool (*lendsTiles)() = cpuLendsTiles;
};

/// The best of a bundle's "cpu" codes that this CPU can run: of the supported
/// ones the one that uses most features, or the one of level `isa` when given.
/// An error names the first missing feature and the remedy.
Result<const TargetCode *> selectCpuCode(std::span<const TargetCode> codes, std::string_view isa);
/// The same for a machine; `note` is set where it has what a code needs but may not use it: that code is passed over.
Result<const TargetCode *> selectCpuCode(std::span<const TargetCode> codes, std::string_view isa,
                                         const CpuMachine &machine, std::string &note);

/// Refuses code that says of itself that it is of a level which this machine lacks. "" and names of no level pass.
Status checkCpuLevel(std::string_view level, const CpuMachine &machine = {});

/// The highest level of the x86-64 psABI that this CPU has and none of the "cpu" codes uses; null when they use it.
const char *betterCpuLevel(std::span<const TargetCode> codes);

} // namespace dmxrt
