//===- Elementwise.h - helpers the elementwise families share ---*- C++ -*-===//
#pragma once

#include "../NodeContext.h"

#include <utility>

namespace dmxc::onnxfe {

/// The first two operands with the broadcast rules of the row's version applied
/// (before opset 7: `axis` and `broadcast`).
std::pair<Val, Val> broadcastOperands(NodeContext &c);

/// 0/1 values of `type` at the first maximum along the axis.
Val oneHotOfMax(Emitter &e, const Val &x, int64_t axis);

} // namespace dmxc::onnxfe
