//===- Activation.cpp - activation functions and their gradients ----------===//
#include "Math.h"

#include "frontends/common/ops/Activation.h"

#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

template <typename Formula> void activation(AtenContext &c, Formula formula) {
  Val x = c.tensor("self");
  c.require(isFloat(x.dtype()), "activation functions take floats, not " + std::string(dtypeName(x.dtype())));
  c.result(computeWide(c, x, formula));
}
/// A gradient: of grad_output and the value that the formula names.
template <typename Formula> void gradient(AtenContext &c, const char *name, Formula formula) {
  Val g = c.tensor("grad_output"), x = c.tensor(name);
  c.result(c.cast(formula(c.wide(g), c.wide(x)), x.dtype()));
}

bool isTanhGelu(AtenContext &c) {
  std::string mode = c.text("approximate");
  c.require(mode == "none" || mode == "tanh", "approximate must be 'none' or 'tanh', not '" + mode + "'");
  return mode == "tanh";
}
void importGelu(AtenContext &c) {
  bool tanh = isTanhGelu(c);
  activation(c, [&](const Val &x) { return tanh ? geluTanh(c.e, x) : c.e.mul(x, normalCdf(c.e, x)); });
}
void importGeluBackward(AtenContext &c) {
  bool tanh = isTanhGelu(c);
  gradient(c, "self", [&](const Val &g, const Val &x) {
    if (!tanh)
      return c.e.mul(g, c.e.add(normalCdf(c.e, x), c.e.mul(x, normalPdf(c.e, x))));
    Val t = tanhOf(c.e, geluInner(c.e, x));
    Val slope = c.e.mul(c.e.add(c.e.mul(square(c.e, x), 3 * kGeluCubic), 1.0), kGeluSlope);
    Val inner = c.e.mul(c.e.mul(x, 0.5), c.e.mul(c.e.sub(c.like(t, 1), square(c.e, t)), slope));
    return c.e.mul(g, c.e.add(c.e.mul(c.e.add(t, 1.0), 0.5), inner));
  });
}

void importSilu(AtenContext &c) {
  activation(c, [&](const Val &x) { return silu(c.e, x); });
}
void importSiluBackward(AtenContext &c) {
  gradient(c, "self", [&](const Val &g, const Val &x) {
    Val s = sigmoid(c.e, x);
    return c.e.mul(g, c.e.mul(s, c.e.add(c.e.mul(x, c.e.sub(c.like(s, 1), s)), 1.0)));
  });
}
void importMish(AtenContext &c) {
  activation(c, [&](const Val &x) { return mish(c.e, x); });
}
void importSoftplus(AtenContext &c) {
  double beta = c.number("beta"), threshold = c.number("threshold");
  activation(c, [&](const Val &x) {
    Val scaled = c.e.mul(x, beta);
    return c.e.select(c.e.compare(Compare::gt, scaled, c.like(x, threshold)), x,
                      c.e.div(softplus(c.e, scaled), c.like(x, beta)));
  });
}
void importLogSigmoid(AtenContext &c) {
  activation(c, [&](const Val &x) { return negOf(c.e, softplus(c.e, negOf(c.e, x))); });
}

void importElu(AtenContext &c) {
  double alpha = c.number("alpha"), scale = c.number("scale"), inner = c.number("input_scale");
  activation(c, [&](const Val &x) {
    Val negative = c.e.mul(c.e.emit<Expm1Op>({c.e.mul(x, inner)}), alpha * scale);
    return c.e.select(c.e.compare(Compare::gt, x, c.like(x, 0)), c.e.mul(x, scale), negative);
  });
}
void importSelu(AtenContext &c) {
  double alpha = 1.6732632423543772848170429916717, scale = 1.0507009873554804934193349852946;
  activation(c, [&](const Val &x) {
    return c.e.select(c.e.compare(Compare::gt, x, c.like(x, 0)), c.e.mul(x, scale),
                      c.e.mul(c.e.emit<Expm1Op>({x}), alpha * scale));
  });
}
void importCelu(AtenContext &c) {
  double alpha = c.number("alpha");
  activation(c, [&](const Val &x) {
    return c.e.select(c.e.compare(Compare::gt, x, c.like(x, 0)), x,
                      c.e.mul(c.e.emit<Expm1Op>({c.e.div(x, c.like(x, alpha))}), alpha));
  });
}
void importLeakyRelu(AtenContext &c) {
  double slope = c.number("negative_slope");
  activation(c,
             [&](const Val &x) { return c.e.select(c.e.compare(Compare::gt, x, c.like(x, 0)), x, c.e.mul(x, slope)); });
}
/// Of a model that is not trained: the slope is the mean of those it may have.
void importRandomLeakyRelu(AtenContext &c) {
  c.require(!c.flag("training"), "in training slopes are random numbers; export the model in eval mode");
  double slope = (c.number("lower") + c.number("upper")) / 2;
  c.result(0, called(c, "leaky_relu.default", {c.arg("self"), Arg::number(slope)}));
}
void importRandomLeakyReluNoise(AtenContext &c) {
  importRandomLeakyRelu(c);
  c.result(1, c.tensor("noise"));
}
void importLeakyReluBackward(AtenContext &c) {
  double slope = c.number("negative_slope");
  gradient(c, "self", [&](const Val &g, const Val &x) {
    return c.e.select(c.e.compare(Compare::gt, x, c.like(x, 0)), g, c.e.mul(g, slope));
  });
}
void importPrelu(AtenContext &c) {
  Val x = c.tensor("self"), weight = c.tensor("weight");
  if (weight.rank() <= 1 && !weight.elements().is(1) && x.rank() > 1) { // one number a channel, which is axis 1
    Dims shape(x.rank() - 1, 1);
    shape[0] = weight.elements();
    weight = c.e.reshape(weight, shape);
  } else if (weight.elements().is(1)) {
    weight = c.e.reshape(weight, {});
  }
  c.result(c.e.select(c.e.compare(Compare::gt, x, c.like(x, 0)), x, c.e.mul(weight, x)));
}

void importHardtanh(AtenContext &c) {
  Val x = c.tensor("self");
  c.result(c.e.min(c.e.max(x, c.like(x, c.number("min_val"))), c.like(x, c.number("max_val"))));
}
void importHardtanhBackward(AtenContext &c) {
  gradient(c, "self", [&](const Val &g, const Val &x) {
    Val outside = either(c.e, c.e.compare(Compare::le, x, c.like(x, c.number("min_val"))),
                         c.e.compare(Compare::ge, x, c.like(x, c.number("max_val"))));
    return c.e.select(outside, c.like(g, 0), g);
  });
}
Val relu6(Emitter &e, const Val &x) { return e.min(e.max(x, e.scalarLike(x, 0)), e.scalarLike(x, 6)); }
void importRelu6(AtenContext &c) {
  Val x = c.tensor("self");
  c.result(relu6(c.e, x));
}
void importHardsigmoid(AtenContext &c) {
  activation(c, [&](const Val &x) { return c.e.div(relu6(c.e, c.e.add(x, 3.0)), c.like(x, 6)); });
}
void importHardswish(AtenContext &c) {
  activation(c, [&](const Val &x) { return c.e.div(c.e.mul(x, relu6(c.e, c.e.add(x, 3.0))), c.like(x, 6)); });
}
void importThreshold(AtenContext &c) {
  Val x = c.tensor("self");
  c.result(c.e.select(c.e.compare(Compare::le, x, c.like(x, c.number("threshold"))), c.like(x, c.number("value")), x));
}
void importThresholdBackward(AtenContext &c) {
  gradient(c, "self", [&](const Val &g, const Val &x) {
    return c.e.select(c.e.compare(Compare::le, x, c.like(x, c.number("threshold"))), c.like(g, 0), g);
  });
}
void importSoftshrink(AtenContext &c) {
  double lambda = c.number("lambd");
  activation(c, [&](const Val &x) {
    Val zero = c.like(x, 0);
    return c.e.select(c.e.compare(Compare::gt, x, c.like(x, lambda)), c.e.add(x, -lambda),
                      c.e.select(c.e.compare(Compare::lt, x, c.like(x, -lambda)), c.e.add(x, lambda), zero));
  });
}
void importHardshrink(AtenContext &c) {
  double lambda = c.number("lambd");
  activation(c, [&](const Val &x) {
    return c.e.select(c.e.compare(Compare::le, absOf(c.e, x), c.like(x, lambda)), c.like(x, 0), x);
  });
}
void importSoftsign(AtenContext &c) {
  activation(c, [&](const Val &x) { return softsign(c.e, x); });
}
void importTanhshrink(AtenContext &c) {
  activation(c, [&](const Val &x) { return c.e.sub(x, tanhOf(c.e, x)); });
}
void importGlu(AtenContext &c) {
  Val x = c.tensor("self");
  int64_t axis = c.axis("dim", x.rank());
  c.requireShape(x.rank() > 0 && x.extent(axis).valueOr(0) % 2 == 0, "the axis must divide into two halves");
  Dim half = Dim::floorDiv(x.extent(axis), 2);
  Val gate = c.wide(c.e.sliceAxis(x, axis, half, half));
  c.result(c.cast(c.e.mul(c.wide(c.e.sliceAxis(x, axis, 0, half)), sigmoid(c.e, gate)), x.dtype()));
}

void importSigmoidBackward(AtenContext &c) {
  gradient(c, "output", [&](const Val &g, const Val &y) { return c.e.mul(g, c.e.mul(y, c.e.sub(c.like(y, 1), y))); });
}
void importTanhBackward(AtenContext &c) {
  gradient(c, "output", [&](const Val &g, const Val &y) { return c.e.mul(g, c.e.sub(c.like(y, 1), square(c.e, y))); });
}

//===--- Softmax ------------------------------------------------------------------===//

template <bool log> void importSoftmax(AtenContext &c) {
  Val x = c.tensor("self");
  DType type = c.type("dtype", x.dtype());
  if (c.arg("half_to_float").numbers.size() == 1 && c.flag("half_to_float"))
    type = DType::F32;
  if (!isFloat(type))
    type = DType::F32;
  x = c.cast(x, type);
  if (x.rank() == 0) // one element: its share is 1
    return c.result(c.e.reshape(c.e.softmax(c.e.reshape(x, {1}), 0, log), {}));
  c.result(c.e.softmax(x, c.axis("dim", x.rank()), log));
}

/// Rows of nothing but minus infinity, masked as a whole, are zeros.
void importSafeSoftmax(AtenContext &c) {
  Val x = c.tensor("self");
  x = c.cast(c.asFloat(x), c.type("dtype", c.asFloat(x).dtype()));
  int64_t axis = c.axis("dim", x.rank());
  Val highest = c.e.reduce(Reduction::max, x, {axis}, true);
  Val masked = c.e.compare(Compare::eq, highest, c.like(x, -INFINITY));
  c.result(c.e.select(masked, c.like(x, 0), c.e.softmax(x, axis)));
}

template <bool log> void importSoftmaxBackward(AtenContext &c) {
  Val g = c.wide(c.tensor("grad_output")), y = c.wide(c.tensor("output"));
  int64_t axis = c.axis("dim", y.rank());
  Val result;
  if (log) {
    result = c.e.sub(g, c.e.mul(expOf(c.e, y), sumOver(c.e, g, {axis}, true)));
  } else {
    Val product = c.e.mul(g, y);
    result = c.e.sub(product, c.e.mul(y, sumOver(c.e, product, {axis}, true)));
  }
  c.result(c.cast(result, c.type("input_dtype", c.tensor("output").dtype())));
}

} // namespace

std::vector<AtenRow> activationOps() {
  return {
      {"gelu(Tensor self, *, str approximate=\"none\") -> Tensor", importGelu},
      {"gelu_backward(Tensor grad_output, Tensor self, *, str approximate=\"none\") -> Tensor", importGeluBackward},
      {"silu(Tensor self) -> Tensor", importSilu},
      {"silu_backward(Tensor grad_output, Tensor self) -> Tensor", importSiluBackward},
      {"mish(Tensor self) -> Tensor", importMish},
      {"softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", importSoftplus},
      {"log_sigmoid(Tensor self) -> Tensor", importLogSigmoid},
      {"log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)", importLogSigmoid,
       "the buffer is not computed"},
      {"elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor", importElu},
      {"selu(Tensor self) -> Tensor", importSelu},
      {"celu(Tensor self, Scalar alpha=1.0) -> Tensor", importCelu},
      {"leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", importLeakyRelu},
      {"leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor",
       importLeakyReluBackward},
      {"rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? "
       "generator=None) -> Tensor",
       importRandomLeakyRelu, "in eval mode"},
      {"rrelu_with_noise_functional(Tensor self, Tensor noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, "
       "bool training=False, Generator? generator=None) -> (Tensor, Tensor noise_out)",
       importRandomLeakyReluNoise, "in eval mode"},
      {"prelu(Tensor self, Tensor weight) -> Tensor", importPrelu},
      {"_prelu_kernel(Tensor self, Tensor weight) -> Tensor", importPrelu},
      {"hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor", importHardtanh},
      {"hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
       importHardtanhBackward},
      {"relu6(Tensor self) -> Tensor", importRelu6},
      {"hardsigmoid(Tensor self) -> Tensor", importHardsigmoid},
      {"hardswish(Tensor self) -> Tensor", importHardswish},
      {"threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", importThreshold},
      {"threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor", importThresholdBackward},
      {"softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", importSoftshrink},
      {"hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", importHardshrink},
      {"softsign(Tensor self) -> Tensor", importSoftsign},
      {"tanhshrink(Tensor self) -> Tensor", importTanhshrink},
      {"glu(Tensor self, int dim=-1) -> Tensor", importGlu},
      {"sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor", importSigmoidBackward},
      {"tanh_backward(Tensor grad_output, Tensor output) -> Tensor", importTanhBackward},
      {"_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", importSoftmax<false>},
      {"_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", importSoftmax<true>},
      {"_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", importSafeSoftmax},
      {"special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", importSoftmax<false>},
      {"special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", importSoftmax<true>},
      {"softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", importSoftmax<false>},
      {"log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", importSoftmax<true>},
      {"_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
       importSoftmaxBackward<false>},
      {"_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
       importSoftmaxBackward<true>},
  };
}

} // namespace dmxc::torchfe
