//===- Activation.h - activation functions ----------------------*- C++ -*-===//
#pragma once

#include "../Emitter.h"

#include <string>

namespace dmxc::frontend {

/// ln(1 + exp(x)) without overflow.
Val softplus(Emitter &e, const Val &x);
/// x / (1 + |x|).
Val softsign(Emitter &e, const Val &x);
/// x * sigmoid(x).
Val silu(Emitter &e, const Val &x);
/// x * tanh(softplus(x)).
Val mish(Emitter &e, const Val &x);
/// Of GELU's approximation: the root of 2 / pi, and what weighs the cube.
inline constexpr double kGeluSlope = 0.79788456080286535588, kGeluCubic = 0.044715;
/// What the tanh of GELU's approximation takes, and that approximation.
Val geluInner(Emitter &e, const Val &x);
Val geluTanh(Emitter &e, const Val &x);
/// max(0, min(1, alpha * x + beta)).
Val hardSigmoid(Emitter &e, const Val &x, double alpha, double beta);
Val leakyRelu(Emitter &e, const Val &x, double alpha);
Val elu(Emitter &e, const Val &x, double alpha);
/// x where it is greater than alpha, else 0.
Val thresholdedRelu(Emitter &e, const Val &x, double alpha);

/// One activation function of a recurrent layer by its name ("Relu", "HardSigmoid", ...); fails on unknown names.
Val activationByName(Emitter &e, const std::string &name, const Val &x, double alpha, double beta);

} // namespace dmxc::frontend
