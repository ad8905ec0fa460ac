//===- Cost.h - what a mapping costs ----------------------------*- C++ -*-===//
#pragma once

#include "Mapping.h"

namespace dmxc::aie {

/// Clocks of a run, by the machine's figures: the slowest of cores, streams, DDR and the controller for each block of
/// results, the fill of the first and the drain of the last, all with what whole blocks add.
int64_t clocksOf(const hw::Machine &machine, const Mapping &mapping);

} // namespace dmxc::aie
