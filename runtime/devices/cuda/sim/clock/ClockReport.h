//===- ClockReport.h - launches of a session, in clocks ---------*- C++ -*-===//
#pragma once

#include "Estimate.h"

#include "runtime/devices/common/Report.h"
#include "runtime/devices/common/Trace.h"

namespace dmxrt::cuda {

/// Memories as a report calls them.
inline constexpr std::string_view kClockMemories[] = {"DRAM", "L2", "shared"};

void write(sim::ReportWriter &out, const Machine &machine, const LaunchFigures &figures);
/// A launch that begins at a clock of the run: one row for launches, one for each warp that was played and what it
/// waited for.
void write(sim::Trace &out, const Machine &machine, const LaunchFigures &figures, double from);

} // namespace dmxrt::cuda
