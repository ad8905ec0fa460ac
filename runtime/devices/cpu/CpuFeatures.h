//===- CpuFeatures.h - instruction-set features of this CPU -----*- C++ -*-===//
#pragma once

#include "runtime/bundle/Manifest.h"

#include <string_view>

namespace dmxrt {

/// Whether this CPU and its operating system support a feature, by LLVM's name
/// ("avx2", "sse4.2", "avx512vl"). An unknown name counts as unsupported.
bool cpuHasFeature(std::string_view name);

/// The best of a bundle's "cpu" codes that this CPU can run: of the supported
/// ones the one that uses most features, or the one of level `isa` when given.
/// An error names the first missing feature and the remedy.
Result<const TargetCode *> selectCpuCode(std::span<const TargetCode> codes, std::string_view isa);

/// The highest level of the x86-64 psABI that this CPU has and none of the "cpu" codes uses; null when they use it.
const char *betterCpuLevel(std::span<const TargetCode> codes);

} // namespace dmxrt
