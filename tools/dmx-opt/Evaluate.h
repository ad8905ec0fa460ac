//===- Evaluate.h - what a text means, for dmx-opt --------------*- C++ -*-===//
#pragma once

#include "dmxc/Phases/Phases.h"

namespace dmxc {

/// Registers dmxc-evaluate, which evaluates the module's entry point on random inputs, a line an output on stderr;
/// kernels as the targets of `context` evaluate theirs. The context must outlive the passes.
void registerEvaluatePass(const PhaseContext &context);

} // namespace dmxc
