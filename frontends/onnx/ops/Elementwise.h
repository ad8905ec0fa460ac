//===- Elementwise.h - helpers the elementwise families share ---*- C++ -*-===//
#pragma once

#include "../NodeContext.h"

#include <utility>

namespace dmxc::onnxfe {

/// The first two operands with the broadcast rules of the row's version applied
/// (before opset 7: `axis` and `broadcast`).
std::pair<Val, Val> broadcastOperands(NodeContext &c);

/// ln(1 + exp(x)) without overflow.
Val softplus(Emitter &e, const Val &x);
/// max(0, min(1, alpha * x + beta)).
Val hardSigmoid(Emitter &e, const Val &x, double alpha, double beta);
/// 0/1 values of `type` at the first maximum along the axis.
Val oneHotOfMax(Emitter &e, const Val &x, int64_t axis);
/// One activation function of the recurrent operators by name ("Relu",
/// "HardSigmoid", ...); fails on unknown names.
Val activationByName(Emitter &e, const std::string &name, const Val &x, double alpha, double beta);

} // namespace dmxc::onnxfe
