//===- CpuTarget.h - the x86-64 CPU target ----------------------*- C++ -*-===//
#pragma once

#include "dmxc/Target/TargetBackend.h"

namespace dmxc {

/// The CPU target. Levels: x86-64-v2, x86-64-v3 (the default), x86-64-v4, host; several give one code
/// entry each. Fails on unknown levels with the known ones named.
Result<std::unique_ptr<TargetBackend>> createCpuTarget(const TargetOptions &options);

} // namespace dmxc
