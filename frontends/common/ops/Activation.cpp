//===- Activation.cpp - activation functions ------------------------------===//
#include "Activation.h"
#include "Formulas.h"

using namespace dmxc::dmir;

namespace dmxc::frontend {

Val softplus(Emitter &e, const Val &x) {
  Val tail = e.emit<Log1pOp>({expOf(e, negOf(e, absOf(e, x)))});
  Val line = e.emit<ReluOp>({x});
  return e.add(line, tail);
}

Val softsign(Emitter &e, const Val &x) { return e.div(x, e.add(absOf(e, x), 1.0)); }

Val silu(Emitter &e, const Val &x) { return e.mul(x, sigmoid(e, x)); }
Val mish(Emitter &e, const Val &x) { return e.mul(x, tanhOf(e, softplus(e, x))); }

Val geluInner(Emitter &e, const Val &x) {
  Val cube = e.mul(square(e, x), x);
  return e.mul(e.add(x, e.mul(cube, kGeluCubic)), kGeluSlope);
}

Val geluTanh(Emitter &e, const Val &x) {
  Val share = e.add(tanhOf(e, geluInner(e, x)), 1.0);
  return e.mul(e.mul(x, 0.5), share);
}

Val hardSigmoid(Emitter &e, const Val &x, double alpha, double beta) {
  Val line = e.add(e.mul(x, alpha), beta);
  return e.max(e.scalarLike(x, 0), e.min(e.scalarLike(x, 1), line));
}

Val leakyRelu(Emitter &e, const Val &x, double alpha) {
  return e.select(e.compare(Compare::lt, x, e.scalarLike(x, 0)), e.mul(x, alpha), x);
}

Val elu(Emitter &e, const Val &x, double alpha) {
  return e.select(e.compare(Compare::lt, x, e.scalarLike(x, 0)), e.mul(e.emit<Expm1Op>({x}), alpha), x);
}

Val thresholdedRelu(Emitter &e, const Val &x, double alpha) {
  return e.select(e.compare(Compare::gt, x, e.scalarLike(x, alpha)), x, e.scalarLike(x, 0));
}

Val activationByName(Emitter &e, const std::string &name, const Val &x, double alpha, double beta) {
  if (name == "Relu")
    return e.emit<ReluOp>({x});
  if (name == "Tanh")
    return e.emit<TanhOp>({x});
  if (name == "Sigmoid")
    return e.emit<SigmoidOp>({x});
  if (name == "Affine")
    return e.add(e.mul(x, alpha), beta);
  if (name == "LeakyRelu")
    return leakyRelu(e, x, alpha);
  if (name == "ThresholdedRelu")
    return thresholdedRelu(e, x, alpha);
  if (name == "ScaledTanh")
    return e.mul(e.emit<TanhOp>({e.mul(x, beta)}), alpha);
  if (name == "HardSigmoid")
    return hardSigmoid(e, x, alpha, beta);
  if (name == "Elu")
    return elu(e, x, alpha);
  if (name == "Softsign")
    return softsign(e, x);
  if (name == "Softplus")
    return softplus(e, x);
  fail("op-attribute", "the activation '" + name + "' is unknown");
}

} // namespace dmxc::frontend
