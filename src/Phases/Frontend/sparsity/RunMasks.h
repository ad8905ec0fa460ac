//===- RunMasks.h - scores that a run's numbers leave out -------*- C++ -*-===//
#pragma once

#include "dmxc/Phases/Phases.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

namespace dmxc {

/// A score of any model drowns in what is less, as in -inf.
inline constexpr double kLowScore = -1e38;

/// Where padding or a whole mask of floats is added to an attention's scores: puts a dmir.mask with `low` before the
/// softmax, whose rule asks whether the number is above all that masks are made of.
void markLowScores(dmir::SoftmaxOp softmax, const PhaseContext &context);

} // namespace dmxc
