//===- Norm.cpp - normalisations ------------------------------------------===//
#include "Norm.h"
#include "../Differences.h"

#include "frontends/common/ops/Formulas.h"
#include "frontends/common/ops/Norm.h"

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

Val like(Emitter &e, const Val &value, const Val &x) { return e.cast(value, x.dtype()); }

/// Per-channel parameters; before opset 9 `spatial=0` made them one a position.
Val batchParameter(NodeContext &c, const Val &value, const Val &x) {
  bool spatial = c.since() >= 9 || c.attrInt("spatial", 1) != 0;
  if (!spatial && value.rank() == x.rank() - 1)
    return value;
  c.requireShape(x.rank() < 2 || mayEqual(value.elements(), x.extent(1)),
                 value.describe() + " must have one number for each of the channels of " + x.describe());
  return x.rank() < 2 ? c.e.reshape(value, {value.elements()}) : perChannel(c.e, value, x.rank());
}

void batchNormTraining(NodeContext &c, const Val &x, double epsilon) {
  double momentum = c.attrFloat("momentum", 0.9);
  auto [mean, centered, variance] = momentsOfChannels(c.e, x);
  Val deviation = c.e.emit<SqrtOp>({c.e.add(perChannel(c.e, variance, x.rank()), epsilon)});
  Val scaled = c.e.mul(c.e.div(centered, deviation), batchParameter(c, like(c.e, c.operand(1), x), x));
  c.result(0, c.e.add(scaled, batchParameter(c, like(c.e, c.operand(2), x), x)));
  auto running = [&](int operand, const Val &now) {
    Val old = c.operand(operand);
    return c.e.add(c.e.mul(old, momentum), c.e.mul(like(c.e, now, old), 1 - momentum));
  };
  c.result(1, running(3, mean));
  c.result(2, running(4, variance));
  if (c.wants(2))
    c.noteDifference("batchnorm-training-variance");
}

void importBatchNorm(NodeContext &c) {
  Val x = c.operand(0);
  double epsilon = c.attrFloat("epsilon", 1e-5);
  if (c.since() >= 14 && c.attrInt("training_mode", 0))
    return batchNormTraining(c, x, epsilon);
  Val scale = c.operand(1), bias = c.operand(2), mean = c.operand(3), variance = c.operand(4);
  // Roundings of the factor would be errors that all elements of a channel share, so constants are folded in f64.
  // Others in the type of the mean, which may be wider than the input's.
  bool folded = scale.isConstant() && bias.isConstant() && mean.isConstant() && variance.isConstant();
  DType wide = folded ? DType::F64 : mean.dtype();
  for (Val *parameter : {&scale, &bias, &mean, &variance})
    *parameter = c.e.cast(*parameter, wide);
  Val factor = c.e.div(scale, c.e.emit<SqrtOp>({c.e.add(variance, epsilon)}));
  Val offset = c.e.sub(bias, c.e.mul(mean, factor));
  factor = batchParameter(c, like(c.e, factor, x), x);
  offset = batchParameter(c, like(c.e, offset, x), x);
  c.result(c.e.add(c.e.mul(x, factor), offset));
}

void importInstanceNorm(NodeContext &c) {
  Val x = c.operand(0);
  c.requireShape(x.rank() >= 3, "expected rank 3 or more");
  Val y = normalize(c.e, Normalization::standard, x, axesFrom(2, x.rank()), c.attrFloat("epsilon", 1e-5));
  y = c.e.mul(y, batchParameter(c, c.operand(1), x));
  c.result(c.e.add(y, batchParameter(c, c.operand(2), x)));
}

void importLayerNorm(NodeContext &c) {
  Val x = c.operand(0);
  int64_t axis = c.normalizeAxis(c.attrInt("axis", -1), x.rank());
  std::vector<int64_t> axes = axesFrom(axis, x.rank());
  double epsilon = c.attrFloat("epsilon", 1e-5);
  Val y = c.e.mul(normalize(c.e, Normalization::standard, x, axes, epsilon), like(c.e, c.operand(1), x));
  if (c.has(2))
    y = c.e.add(y, like(c.e, c.operand(2), x));
  c.requireShape(mayEqual(y.dims(), x.dims()), "the scale or bias is larger than the input");
  y = c.e.expectDims(y, x.dims());
  c.result(0, y);
  if (!c.wants(1) && !c.wants(2))
    return;
  Val wide = c.attrInt("stash_type", 1) == 1 ? c.e.cast(x, DType::F32) : x;
  Moments moments = momentsOf(c.e, wide, axes);
  c.result(1, moments.mean);
  c.result(2, inverseDeviation(c.e, moments.variance, epsilon));
}

void importGroupNorm(NodeContext &c) {
  Val x = c.operand(0), scale = like(c.e, c.operand(1), x), bias = like(c.e, c.operand(2), x);
  int64_t groups = c.attrInt("num_groups");
  Dims original = x.dims();
  Val y = normalize(c.e, Normalization::standard, groupsOfChannels(c.e, x, groups), {2}, c.attrFloat("epsilon", 1e-5));
  Dim expected = c.since() == 18 ? Dim(groups) : x.extent(1); // 18: one scale a group, later one a channel
  c.requireShape(mayEqual(scale.elements(), expected) && mayEqual(bias.elements(), expected),
                 "scale and bias must have " + expected.str() + " numbers");
  if (c.since() == 18)
    y = c.e.add(c.e.mul(y, c.e.reshape(scale, {groups, 1})), c.e.reshape(bias, {groups, 1}));
  y = c.e.reshape(y, original);
  if (c.since() > 18)
    y = c.e.add(c.e.mul(y, perChannel(c.e, scale, x.rank())), perChannel(c.e, bias, x.rank()));
  c.result(y);
}

void importLpNormalization(NodeContext &c) {
  Val x = widened(c.e, c.operand(0));
  int64_t p = c.attrInt("p", 2), axis = c.normalizeAxis(c.attrInt("axis", -1), x.rank());
  c.requireAttr(p == 1 || p == 2, "p must be 1 or 2");
  if (p == 1)
    c.noteDifference("lpnormalization-one");
  Val norm = p == 1 ? c.e.reduce(Reduction::sum, c.e.emit<AbsOp>({x}), {axis}, true)
                    : c.e.emit<SqrtOp>({c.e.reduce(Reduction::sum, c.e.mul(x, x), {axis}, true)});
  Val zero = c.e.scalarLike(x, 0);
  Val y = c.e.select(c.e.compare(Compare::eq, norm, zero), zero, c.e.div(x, norm));
  c.result(c.e.cast(y, c.operand(0).dtype()));
}

void importLRN(NodeContext &c) {
  Val x = widened(c.e, c.operand(0));
  int64_t size = c.attrInt("size");
  c.requireShape(x.rank() >= 2 && size > 0 && size < 65536, "expected rank 2 or more and a positive size");
  if (size % 2 == 0)
    c.noteDifference("lrn-even");
  // The window runs over channels: they become the spatial axis of a pool.
  Dim rest = 1;
  for (int64_t i = 2; i < x.rank(); ++i)
    rest *= x.extent(i);
  Val squares = c.e.reshape(c.e.mul(x, x), {x.extent(0), 1, x.extent(1), rest});
  int64_t low = (size - 1) / 2, high = size - 1 - low;
  std::vector<int64_t> window{size, 1}, ones{1, 1}, lows{low, 0}, highs{high, 0}, zeros{0, 0};
  Val sum = c.e.emit<PoolOp>({squares}, {c.e.attr("kind", PoolingAttr::get(c.e.context(), Pooling::sum)),
                                         c.e.attr("window", window), c.e.attr("strides", ones),
                                         c.e.attr("dilations", ones), c.e.attr("low", lows), c.e.attr("high", highs),
                                         c.e.attr("ceilExtra", zeros), c.e.attr("countPadding", false)});
  double alpha = c.attrFloat("alpha", 0.0001), beta = c.attrFloat("beta", 0.75), bias = c.attrFloat("bias", 1);
  Val base = c.e.add(c.e.mul(c.e.reshape(sum, x.dims()), alpha / size), bias);
  Val y = c.e.div(x, c.e.emit<PowOp>({base, c.e.scalarLike(x, beta)}));
  c.result(c.e.cast(y, c.operand(0).dtype()));
}

void importMeanVariance(NodeContext &c) {
  Val x = widened(c.e, c.operand(0));
  std::vector<int64_t> axes = c.normalizeAxes(c.attrInts("axes", {0, 2, 3}), x.rank());
  Moments moments = momentsOf(c.e, x, axes);
  Val deviation = c.e.emit<SqrtOp>({moments.variance});
  c.result(c.e.cast(c.e.div(moments.centered, c.e.add(deviation, 1e-9)), c.operand(0).dtype()));
}

} // namespace

void importRMSNorm(NodeContext &c) {
  Val x = c.operand(0), scale = c.operand(1); // the result has its type
  std::vector<int64_t> axes = axesFrom(c.normalizeAxis(c.attrInt("axis", -1), x.rank()), x.rank());
  double epsilon = c.attrFloat("epsilon", 1e-5);
  if (scale.dtype() == DType::F32 || scale.dtype() == DType::F64)
    x = like(c.e, x, scale);
  Val y = c.e.mul(like(c.e, normalize(c.e, Normalization::rms, x, axes, epsilon), scale), scale);
  c.requireShape(mayEqual(y.dims(), x.dims()), "the scale is larger than the input");
  c.result(0, c.e.expectDims(y, x.dims()));
  if (!c.wants(1))
    return;
  Val wide = c.operand(0).dtype() == DType::F64 ? c.operand(0) : c.e.cast(c.operand(0), DType::F32);
  c.result(1, inverseDeviation(c.e, meanOver(c.e, square(c.e, wide), axes, true), epsilon));
}

std::vector<OpRows> normOps() {
  using namespace types;
  return {
      {"BatchNormalization",
       {1, 6},
       "TTTTT>5",
       importBatchNorm,
       "epsilon,is_test,momentum,spatial",
       {Float},
       "as in inference"},
      {"BatchNormalization", {7}, "TTTTT>5", importBatchNorm, "epsilon,momentum,spatial", {Float}},
      {"BatchNormalization", {9}, "TTTTT>5", importBatchNorm, "epsilon,momentum", {Float}},
      {"BatchNormalization", {14}, "TTTUU>3", importBatchNorm, "epsilon,momentum,training_mode", {Float}},
      {"BatchNormalization", {15}, ".TTUU>3", importBatchNorm, "epsilon,momentum,training_mode", {Float}},
      {"InstanceNormalization", {1, 6, 22}, "TTT>1", importInstanceNorm, "epsilon", {Float}},
      {"LayerNormalization",
       {1},
       ".TT>3",
       importLayerNorm,
       "axis,epsilon,stash_type",
       {Float},
       "before 17 as ONNX Runtime's optimiser writes it"},
      {"LayerNormalization", {17}, "TTT>3", importLayerNorm, "axis,epsilon,stash_type", {Float}},
      {"RMSNormalization", {23}, "..>1", importRMSNorm, "axis,epsilon,stash_type", {Float}},
      {"GroupNormalization", {18}, "TTT>1", importGroupNorm, "epsilon,num_groups", {Float}},
      {"GroupNormalization", {21}, "TTT>1", importGroupNorm, "epsilon,num_groups,stash_type", {Float}},
      {"LpNormalization", {1, 22}, ".>1", importLpNormalization, "axis,p", {Float}},
      {"LRN", {1, 13}, ".>1", importLRN, "alpha,beta,bias,size", {Float}},
      {"MeanVarianceNormalization", {9, 13}, ".>1", importMeanVariance, "axes", {Float}},
  };
}

std::vector<Difference> normDifferences() {
  return {
      {"lrn-even", "LRN", "an even size", "one channel more behind than before", "fails",
       "one channel more before than behind", "one channel more behind than before",
       "the definition says so; torch's exporters write it in other operators", "", true},
      {"lrn-few-images", "LRN", "fewer images than channels", "only as many channels as images are normalised",
       "all channels are", "all channels are", "all channels are", "a mistake of the reference"},
      {"layernorm-half", "LayerNormalization, InstanceNormalization", "f16 whose squares are beyond its range", "0",
       "normalised in f32", "normalised in f32", "normalised in f32", "the definition's stash_type"},
      {"batchnorm-training-variance", "BatchNormalization", "training_mode with the running variance", "divided by n",
       "divided by n", "divided by n - 1", "divided by n",
       "the definition says so; what was exported for inference has none", "", true},
      {"lpnormalization-one", "LpNormalization", "p = 1 with negative numbers", "by the sum of the numbers",
       "by the sum of absolute values", "by the sum of absolute values", "by the sum of absolute values",
       "a norm is one of absolute values", "", true},
      {"lpnormalization-half", "LpNormalization", "f16 whose squares are beyond its range", "0", "normalised in f32",
       "normalised in f32", "normalised in f32", "squares are taken in f32"},
      {"meanvariance-constant", "MeanVarianceNormalization", "equal numbers", "0", "NaN", "", "0",
       "the definition adds 1e-9 to the deviation"},
  };
}

} // namespace dmxc::onnxfe
