//===- Queues.h - the queues of a graph, as far as they come ----*- C++ -*-===//
#pragma once

#include "Tasks.h"

#include "dmxc/Dialect/DLIR/QueueCode.h"

namespace dmxc::corsair::stages {

/// Runs a graph's queues in all its quads: each until it waits, in an order that its tokens and meetings allow, round
/// after round. `registers`: what replaces the values that the graph says. Fails at the op that is wrong, or waits for
/// ever.
Status runGraph(dlir::ScheduledGraphOp graph, Card &card, const llvm::DenseMap<uint64_t, int64_t> &registers);

} // namespace dmxc::corsair::stages
