//===- Norm.cpp - normalisations and their gradients ----------------------===//
#include "Math.h"

#include "frontends/common/ops/Norm.h"

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

std::vector<int64_t> lastAxes(AtenContext &c, const Val &x) {
  int64_t count = static_cast<int64_t>(c.dims("normalized_shape").size());
  c.requireShape(count > 0 && count <= x.rank() &&
                     mayEqual(c.dims("normalized_shape"), llvm::ArrayRef<Dim>(x.dims()).take_back(count)),
                 "normalized_shape is not how the shape ends");
  return axesFrom(x.rank() - count, x.rank());
}

/// y * weight + bias where they are there; `shaped` brings them to y's rank.
template <typename Shaped> Val affine(AtenContext &c, Val y, Shaped shaped) {
  if (Val weight = c.optional("weight"))
    y = c.e.mul(y, shaped(c.cast(weight, y.dtype())));
  if (Val bias = c.optional("bias"))
    y = c.e.add(y, shaped(c.cast(bias, y.dtype())));
  return y;
}

//===--- Batch -----------------------------------------------------------------------===//

/// With statistics that are known: one factor and one offset a channel.
Val batchNormInference(AtenContext &c, const Val &x) {
  Val mean = c.tensor("running_mean"), variance = c.tensor("running_var");
  // Roundings of the factor would be errors that all elements of a channel share.
  if (mean.isConstant() && variance.isConstant()) {
    mean = c.cast(mean, DType::F64);
    variance = c.cast(variance, DType::F64);
  }
  Val factor = inverseDeviation(c.e, variance, c.number("eps"));
  if (Val weight = c.optional("weight"))
    factor = c.e.mul(c.cast(weight, factor.dtype()), factor);
  Val offset = negOf(c.e, c.e.mul(mean, factor));
  if (Val bias = c.optional("bias"))
    offset = c.e.add(c.cast(bias, offset.dtype()), offset);
  factor = perChannel(c.e, c.cast(factor, x.dtype()), x.rank());
  return c.e.add(c.e.mul(x, factor), perChannel(c.e, c.cast(offset, x.dtype()), x.rank()));
}
void requireChannels(AtenContext &c, const Val &x) { c.requireShape(x.rank() >= 2, "expected rank 2 or more"); }

/// With the batch's own statistics; running ones move towards them.
void batchNormTraining(AtenContext &c, bool functional) {
  Val given = c.tensor("input"), x = c.wide(given);
  double epsilon = c.number("eps"), momentum = c.number("momentum");
  auto [mean, centered, variance] = momentsOfChannels(c.e, x);
  Val scale = inverseDeviation(c.e, variance, epsilon);
  Val y = affine(c, c.e.mul(centered, perChannel(c.e, scale, x.rank())),
                 [&](const Val &v) { return perChannel(c.e, v, x.rank()); });
  c.result(0, c.cast(y, given.dtype()));
  c.result(1, mean);
  c.result(2, scale);
  if (!functional)
    return;
  Dim count = Dim::floorDiv(x.elements(), Dim::max(x.extent(1), 1));
  Val unbiased = c.e.mul(variance, c.e.div(c.cast(c.e.size(count), x.dtype()), c.cast(c.e.size(count - 1), x.dtype())));
  auto moved = [&](const char *name, const Val &now) {
    Val old = c.tensor(name);
    return c.e.add(c.e.mul(old, 1 - momentum), c.e.mul(c.cast(now, old.dtype()), momentum));
  };
  c.result(3, moved("running_mean", mean));
  c.result(4, moved("running_var", unbiased));
}

void importBatchNorm(AtenContext &c) {
  Val x = c.tensor("input");
  requireChannels(c, x);
  if (c.given("running_mean") && !c.flag("training", false))
    return c.result(batchNormInference(c, x));
  c.require(!c.given("running_mean") || !c.flag("training"),
            "it changes its running statistics in place; export the model in eval mode or run_decompositions()");
  batchNormTraining(c, false);
}
void importBatchNormNoTraining(AtenContext &c) {
  Val x = c.tensor("input");
  requireChannels(c, x);
  c.result(0, batchNormInference(c, x));
  for (size_t i : {1, 2}) // nothing is saved for a gradient
    c.result(i, c.e.splat(DType::F32, {0}, 0));
}
void importBatchNormStats(AtenContext &c) {
  requireChannels(c, c.tensor("input"));
  c.require(c.flag("training"), "without training it needs running statistics");
  batchNormTraining(c, false);
}
/// The form that gives the running statistics as results.
void importBatchNormFunctional(AtenContext &c) {
  Val x = c.tensor("input");
  requireChannels(c, x);
  if (c.flag("training"))
    return batchNormTraining(c, true);
  c.result(0, batchNormInference(c, x));
  for (size_t i : {1, 2})
    c.result(i, c.e.splat(DType::F32, {0}, 0));
  c.result(3, c.tensor("running_mean"));
  c.result(4, c.tensor("running_var"));
}
void importBatchNormLegit(AtenContext &c) {
  c.require(!c.flag("training"),
            "it changes its running statistics in place; save the program after run_decompositions()");
  importBatchNormNoTraining(c);
}
void importInstanceNorm(AtenContext &c) {
  Val x = c.tensor("input");
  c.requireShape(x.rank() >= 3, "expected rank 3 or more");
  if (!c.flag("use_input_stats"))
    return c.result(batchNormInference(c, x));
  Val y = normalize(c.e, Normalization::standard, x, axesFrom(2, x.rank()), c.number("eps"));
  c.result(affine(c, y, [&](const Val &v) { return perChannel(c.e, v, x.rank()); }));
}

//===--- Layer -----------------------------------------------------------------------===//

void importLayerNorm(AtenContext &c) {
  Val x = c.tensor("input");
  Val y = normalize(c.e, Normalization::standard, x, lastAxes(c, x), c.number("eps"));
  c.result(0, affine(c, y, [](const Val &v) { return v; }));
}
void importNativeLayerNorm(AtenContext &c) {
  importLayerNorm(c);
  Val x = c.wide(c.tensor("input"));
  Moments moments = momentsOf(c.e, x, lastAxes(c, x));
  c.result(1, moments.mean);
  c.result(2, inverseDeviation(c.e, moments.variance, c.number("eps")));
}
/// With `both` also what x is multiplied with.
template <bool both> void importRmsNorm(AtenContext &c) {
  Val x = c.tensor("input");
  const double epsilon = c.number("eps", x.dtype() == DType::F64 ? 2.220446049250313e-16 : 1.1920928955078125e-07);
  Val y = normalize(c.e, Normalization::rms, x, lastAxes(c, x), epsilon);
  c.result(0, affine(c, y, [](const Val &v) { return v; }));
  if (both)
    c.result(1, inverseDeviation(c.e, meanOver(c.e, square(c.e, c.wide(x)), lastAxes(c, x), true), epsilon));
}

/// dx = rstd * (gw - mean(gw) - xhat * mean(gw * xhat)) over the normalised axes.
Val gradientOfNormalized(AtenContext &c, const Val &gw, const Val &normalized, const Val &rstd,
                         const std::vector<int64_t> &axes) {
  Val first = meanOver(c.e, gw, axes, true), second = meanOver(c.e, c.e.mul(gw, normalized), axes, true);
  return c.e.mul(rstd, c.e.sub(c.e.sub(gw, first), c.e.mul(normalized, second)));
}
void importLayerNormBackward(AtenContext &c) {
  Val x = c.tensor("input"), g = c.tensor("grad_out"), rstd = c.tensor("rstd");
  std::vector<int64_t> axes = lastAxes(c, x);
  std::vector<double> mask = c.numbers("output_mask");
  c.require(mask.size() == 3, "output_mask must have three bools");
  Val normalized = c.e.mul(c.e.sub(x, c.tensor("mean")), rstd);
  Val weight = c.optional("weight"), gw = weight ? c.e.mul(g, weight) : g;
  if (mask[0] != 0)
    c.result(0, gradientOfNormalized(c, gw, normalized, rstd, axes));
  if (mask[1] != 0)
    c.result(1, sumTo(c.e, c.e.mul(g, normalized), c.dims("normalized_shape")));
  if (mask[2] != 0)
    c.result(2, sumTo(c.e, g, c.dims("normalized_shape")));
}

//===--- Group -----------------------------------------------------------------------===//

Val grouped(AtenContext &c, const Val &x, int64_t groups) {
  c.requireShape(x.rank() >= 2 && groups > 0 && x.extent(1).valueOr(0) % groups == 0,
                 "the channels do not divide into groups");
  return c.e.reshape(x, {x.extent(0), groups, Dim::floorDiv(x.elements(), Dim::max(x.extent(0) * groups, 1))});
}
void importGroupNorm(AtenContext &c, const char *name) {
  Val x = c.tensor("input");
  Val y = normalize(c.e, Normalization::standard, grouped(c, x, c.integer(name)), {2}, c.number("eps"));
  c.result(0, affine(c, c.e.reshape(y, x.dims()), [&](const Val &v) { return perChannel(c.e, v, x.rank()); }));
}
void importGroupNormPlain(AtenContext &c) { importGroupNorm(c, "num_groups"); }
void importNativeGroupNorm(AtenContext &c) {
  importGroupNorm(c, "group");
  Val x = c.wide(grouped(c, c.tensor("input"), c.integer("group")));
  Val mean = meanOver(c.e, x, {2}, true);
  Val variance = meanOver(c.e, square(c.e, c.e.sub(x, mean)), {2}, false);
  c.result(1, c.e.reshape(mean, {x.extent(0), x.extent(1)}));
  c.result(2, inverseDeviation(c.e, variance, c.number("eps")));
}
void importGroupNormBackward(AtenContext &c) {
  Val x = c.tensor("input"), g = c.tensor("grad_out");
  int64_t groups = c.integer("group");
  std::vector<double> mask = c.numbers("output_mask");
  c.require(mask.size() == 3, "output_mask must have three bools");
  Val flat = grouped(c, x, groups);
  Dims statistic{x.extent(0), groups, 1};
  Val rstd = c.e.reshape(c.tensor("rstd"), statistic);
  Val normalized = c.e.mul(c.e.sub(flat, c.e.reshape(c.tensor("mean"), statistic)), rstd);
  Val weight = c.optional("weight"), gw = weight ? c.e.mul(g, perChannel(c.e, weight, x.rank())) : g;
  if (mask[0] != 0)
    c.result(0, c.e.reshape(gradientOfNormalized(c, c.e.reshape(gw, flat.dims()), normalized, rstd, {2}), x.dims()));
  std::vector<int64_t> axes = axesBesideChannels(x.rank());
  if (mask[1] != 0)
    c.result(1, sumOver(c.e, c.e.mul(g, c.e.reshape(normalized, x.dims())), axes, false));
  if (mask[2] != 0)
    c.result(2, sumOver(c.e, g, axes, false));
}

//===--- Weights ---------------------------------------------------------------------------===//

/// v * g / |v|, where |v| is of each slice along the axis; of all of v for -1. And |v|.
void importWeightNormInterface(AtenContext &c) {
  Val given = c.tensor("v"), v = c.wide(given);
  std::vector<int64_t> axes = axesFrom(0, v.rank());
  if (c.integer("dim") != -1)
    axes.erase(axes.begin() + c.axis("dim", v.rank()));
  Val squares = c.e.reduce(Reduction::sum, c.e.mul(v, v), axes, true);
  Val norm = c.e.emit<SqrtOp>({squares});
  c.result(0, c.cast(c.e.mul(v, c.e.div(c.wide(c.tensor("g")), norm)), given.dtype()));
  c.result(1, norm);
}

} // namespace

std::vector<AtenRow> normOps() {
#define BATCH "Tensor input, Tensor? weight, Tensor? bias, "
  return {
      {"_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor", importWeightNormInterface},
      {"_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)", importWeightNormInterface},
      {"batch_norm(" BATCH "Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, bool "
       "cudnn_enabled) -> Tensor",
       importBatchNorm},
      {"_native_batch_norm_legit_no_training(" BATCH
       "Tensor running_mean, Tensor running_var, float momentum, float eps) "
       "-> (Tensor, Tensor, Tensor)",
       importBatchNormNoTraining},
      {"_native_batch_norm_legit(" BATCH
       "Tensor running_mean, Tensor running_var, bool training, float momentum, float "
       "eps) -> (Tensor, Tensor, Tensor)",
       importBatchNormLegit, "training=False"},
      {"_native_batch_norm_legit.no_stats(" BATCH
       "bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
       importBatchNormStats},
      {"_native_batch_norm_legit_functional(" BATCH "Tensor running_mean, Tensor running_var, bool training, float "
       "momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)",
       importBatchNormFunctional},
      {"instance_norm(" BATCH
       "Tensor? running_mean, Tensor? running_var, bool use_input_stats, float momentum, float eps, "
       "bool cudnn_enabled) -> Tensor",
       importInstanceNorm},
      {"layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
       "bool "
       "cudnn_enable=True) -> Tensor",
       importLayerNorm},
      {"native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> "
       "(Tensor, "
       "Tensor, Tensor)",
       importNativeLayerNorm},
      {"native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, "
       "Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
       importLayerNormBackward},
      {"rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
       importRmsNorm<false>},
      {"_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)",
       importRmsNorm<true>},
      {"group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool "
       "cudnn_enabled=True) -> Tensor",
       importGroupNormPlain},
      {"native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float "
       "eps) -> (Tensor, Tensor, Tensor)",
       importNativeGroupNorm},
      {"native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, "
       "SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
       importGroupNormBackward},
  };
#undef BATCH
}

} // namespace dmxc::torchfe
