//===- Activation.cpp - activation functions ------------------------------===//
#include "frontends/common/ops/Activation.h"
#include "../Differences.h"
#include "Elementwise.h"

#include "frontends/common/ops/Formulas.h"
#include "frontends/common/ops/Order.h"

#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {

Val oneHotOfMax(Emitter &e, const Val &x, int64_t axis) {
  if (x.extent(axis).is(0))
    return x;
  Val best = placeOfLargest(e, x, axis);
  Dims line(x.rank(), 1);
  line[axis] = x.extent(axis);
  return e.cast(e.compare(Compare::eq, e.iota(DType::I64, line, 0 + axis), best), x.dtype());
}

namespace {

void importLeakyRelu(NodeContext &c) { c.result(leakyRelu(c.e, c.operand(0), c.attrFloat("alpha", 0.01))); }
void importElu(NodeContext &c) { c.result(elu(c.e, c.operand(0), c.attrFloat("alpha", 1))); }
void importThresholdedRelu(NodeContext &c) { c.result(thresholdedRelu(c.e, c.operand(0), c.attrFloat("alpha", 1))); }
void importSoftplus(NodeContext &c) { c.result(softplus(c.e, c.operand(0))); }
void importSoftsign(NodeContext &c) { c.result(softsign(c.e, c.operand(0))); }
void importHardSigmoid(NodeContext &c) {
  c.result(hardSigmoid(c.e, c.operand(0), c.attrFloat("alpha", 0.2), c.attrFloat("beta", 0.5)));
}
void importHardSwish(NodeContext &c) {
  Val x = c.operand(0);
  c.result(c.e.mul(x, hardSigmoid(c.e, x, 1.0 / 6, 0.5)));
}
void importMish(NodeContext &c) { c.result(mish(c.e, c.operand(0))); }

void importSelu(NodeContext &c) {
  Val x = c.operand(0);
  // The defaults of version 1 had fewer digits.
  double alpha = c.attrFloat("alpha", c.since() == 1 ? 1.6732 : 1.67326319217681884765625);
  double gamma = c.attrFloat("gamma", c.since() == 1 ? 1.0507 : 1.05070102214813232421875);
  c.result(c.e.mul(elu(c.e, x, alpha), gamma));
}

void importCelu(NodeContext &c) {
  Val x = c.operand(0);
  double alpha = c.attrFloat("alpha", 1);
  c.requireAttr(alpha != 0, "alpha must not be 0");
  Val negative = c.e.mul(c.e.emit<Expm1Op>({c.e.div(x, c.e.scalarLike(x, alpha))}), alpha);
  Val zero = c.e.scalarLike(x, 0);
  c.result(c.e.add(c.e.max(zero, x), c.e.min(zero, negative)));
}

/// In f32 at least: what 1 + erf cancels is not there in f16.
Val gelu(Emitter &e, const Val &x) {
  Val wide = widened(e, x), share = e.add(e.emit<ErfOp>({e.mul(wide, std::sqrt(0.5))}), 1.0);
  return e.cast(e.mul(e.mul(wide, 0.5), share), x.dtype());
}

/// As gelu: 1 + tanh cancels too.
Val wideGeluTanh(Emitter &e, const Val &x) { return e.cast(geluTanh(e, widened(e, x)), x.dtype()); }

void importGelu(NodeContext &c) {
  Val x = c.operand(0);
  std::string mode = c.attrString("approximate", "none");
  c.requireAttr(mode == "none" || mode == "tanh", "approximate must be 'none' or 'tanh', not '" + mode + "'");
  if (mode == "tanh")
    return c.result(wideGeluTanh(c.e, x));
  c.result(gelu(c.e, x));
}

//--- com.microsoft: what ONNX Runtime's optimisers make of several nodes
/// The sum with the bias of com.microsoft, a number for each element of the last axis.
Val withBias(NodeContext &c) {
  Val x = c.operand(0), bias = c.operand(1);
  c.requireShape(x.rank() > 0 && bias.rank() == 1 && mayEqual(bias.extent(0), x.extent(-1)),
                 "the bias " + bias.describe() + " must be a vector as long as the last axis of " + x.describe());
  return c.e.add(x, bias);
}
void importBiasGelu(NodeContext &c) { c.result(gelu(c.e, withBias(c))); }

void importFastGelu(NodeContext &c) { c.result(wideGeluTanh(c.e, c.has(1) ? withBias(c) : c.operand(0))); }

void importSwishBy(NodeContext &c, double usual) {
  Val x = c.operand(0);
  double alpha = c.attrFloat("alpha", usual);
  c.result(alpha == 1 ? silu(c.e, x) : c.e.mul(x, sigmoid(c.e, c.e.mul(x, alpha))));
}
void importQuickGelu(NodeContext &c) { importSwishBy(c, 1.702F); }
void importSwish(NodeContext &c) { importSwishBy(c, 1); }

void importPRelu(NodeContext &c) {
  Val x = c.operand(0), slope = c.operand(1);
  // Before opset 7 the slope is one number or one a channel.
  if (c.since() < 7 && slope.numElements() > 1 && x.rank() > 1) {
    Shape shape(x.rank() - 1, 1);
    shape[0] = slope.numElements();
    slope = c.e.reshape(slope, shape);
  } else if (c.since() < 7 && slope.numElements() == 1) {
    slope = c.e.reshape(slope, {});
  }
  c.result(c.e.select(c.e.compare(Compare::lt, x, c.e.scalarLike(x, 0)), c.e.mul(x, slope), x));
}

void importShrink(NodeContext &c) {
  Val x = c.operand(0);
  double lambda = c.attrFloat("lambd", 0.5), bias = c.attrFloat("bias", 0);
  // Integers are compared and shifted as numbers, not as integers: lambd is
  // usually no whole number.
  Val y = isFloat(x.dtype()) ? x : c.e.cast(x, DType::F64);
  Val zero = c.e.scalarLike(y, 0);
  Val above =
      c.e.select(c.e.compare(Compare::gt, y, c.e.scalarLike(y, lambda)), c.e.sub(y, c.e.scalarLike(y, bias)), zero);
  Val below = c.e.compare(Compare::lt, y, c.e.scalarLike(y, -lambda));
  c.result(c.e.cast(c.e.select(below, c.e.add(y, bias), above), x.dtype()));
}

/// Before opset 13 these flatten the operand to two dims at `axis`.
Val flattened(NodeContext &c, int64_t &axis, Dims &original) {
  Val x = c.operand(0);
  original = x.dims();
  if (c.since() >= 13) {
    axis = c.normalizeAxis(c.attrInt("axis", -1), x.rank());
    return x;
  }
  axis = c.attrInt("axis", 1);
  c.requireAttr(axis >= -x.rank() && axis <= x.rank(),
                "axis " + std::to_string(axis) + " is outside the rank " + std::to_string(x.rank()));
  if (axis < 0)
    axis += x.rank();
  Dims flat{product(llvm::ArrayRef<Dim>(original).take_front(axis)),
            product(llvm::ArrayRef<Dim>(original).drop_front(axis))};
  if (axis + 1 < x.rank() && !product(llvm::ArrayRef<Dim>(original).drop_front(axis + 1)).is(1))
    c.noteDifference("softmax-before-13");
  axis = 1;
  return c.e.reshape(x, flat);
}

void importSoftmaxLike(NodeContext &c, bool log) {
  int64_t axis;
  Dims original;
  Val x = flattened(c, axis, original);
  c.result(c.e.reshape(c.e.softmax(x, axis, log), original));
}
void importSoftmax(NodeContext &c) { importSoftmaxLike(c, false); }
void importLogSoftmax(NodeContext &c) { importSoftmaxLike(c, true); }
void importHardmax(NodeContext &c) {
  int64_t axis;
  Dims original;
  Val x = flattened(c, axis, original);
  c.result(c.e.reshape(oneHotOfMax(c.e, x, axis), original));
}

} // namespace

std::vector<OpRows> activationOps() {
  constexpr const char *microsoft = "com.microsoft";
  using namespace types;
  return {
      {"LeakyRelu", {1, 6, 16}, ".>1", importLeakyRelu, "alpha", {Float}},
      {"Elu", {1, 6, 22}, ".>1", importElu, "alpha", {Float}},
      {"Selu", {1, 6, 22}, ".>1", importSelu, "alpha,gamma", {Float}},
      {"Celu", {12}, ".>1", importCelu, "alpha", {Float}},
      {"ThresholdedRelu", {10, 22}, ".>1", importThresholdedRelu, "alpha", {Float}},
      {"HardSigmoid", {1, 6, 22}, ".>1", importHardSigmoid, "alpha,beta", {Float}},
      {"HardSwish", {14, 22}, ".>1", importHardSwish, "", {Float}},
      {"Softplus", {1, 22}, ".>1", importSoftplus, "", {Float}},
      {"Softsign", {1, 22}, ".>1", importSoftsign, "", {Float}},
      {"Mish", {18, 22}, ".>1", importMish, "", {Float}},
      {"Gelu", {20}, ".>1", importGelu, "approximate", {Float}},
      {"Gelu", {1}, ".>1", importGelu, "", {Float}, "", microsoft},
      {"BiasGelu", {1}, "TT>1", importBiasGelu, "", {Float}, "", microsoft},
      {"FastGelu", {1}, "TT>1", importFastGelu, "", {Float}, "", microsoft},
      {"QuickGelu", {1}, ".>1", importQuickGelu, "alpha", {Float}, "", microsoft},
      {"Swish", {24}, ".>1", importSwish, "alpha", {Float}},
      {"PRelu", {1, 6, 7, 9, 16}, "TT>1", importPRelu, "", {Number}},
      {"Shrink", {9}, ".>1", importShrink, "bias,lambd", {Number}},
      {"Softmax", {1, 11, 13}, ".>1", importSoftmax, "axis", {Float}},
      {"LogSoftmax", {1, 11, 13}, ".>1", importLogSoftmax, "axis", {Float}},
      {"Hardmax", {1, 11, 13}, ".>1", importHardmax, "axis", {Float}},
  };
}

std::vector<Difference> activationDifferences() {
  return {
      {"softmax-before-13", "Softmax, LogSoftmax, Hardmax", "before opset 13, an axis that is not the last",
       "over that axis", "over that axis and those behind it", "", "over that axis and those behind it",
       "the definition of those opsets; the reference has only the newest", "", true},
      {"hardmax-nan", "Hardmax", "a row with NaN behind a number", "1 at the NaN", "1 at the largest number", "",
       "1 at the NaN", "as ArgMax"},
      {"gelu-half", "Gelu", "negative f16", "rounded behind each step", "computed in f32", "computed in f32",
       "computed in f32", "what 1 + erf cancels is not there in f16"},
      {"shrink-nan", "Shrink", "NaN", "0", "0", "NaN", "0",
       "torch's exporters write hardshrink and softshrink in other operators"},
      {"thresholdedrelu-nan", "ThresholdedRelu", "NaN", "0", "0", "NaN", "0",
       "torch's exporters write threshold in other operators"},
  };
}

} // namespace dmxc::onnxfe
