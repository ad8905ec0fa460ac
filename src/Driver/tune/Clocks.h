//===- Clocks.h - what a device's simulator counted -------------*- C++ -*-===//
#pragma once

#include "dmxc/Support/Result.h"

namespace dmxc::driver {

/// Clocks of the last run of all kernels in a device's report.
Result<int64_t> clocksOf(const std::string &report);

} // namespace dmxc::driver
