//===- Fused.cpp - what ONNX Runtime's optimisers make of several nodes ---===//
#include "Contrib.h"

#include "../ops/LinearAlgebra.h"
#include "../ops/Window.h"

#include "frontends/common/ops/Activation.h"
#include "frontends/common/ops/Formulas.h"
#include "frontends/common/ops/Product.h"

using namespace dmxc::dmir;

namespace dmxc::onnxfe {

namespace {

/// What an activation takes beside x, in the order that the fused operators give them.
struct Parameters {
  std::optional<double> alpha, beta, gamma;
};

Val celu(Emitter &e, const Val &x, double alpha) {
  Val zero = e.scalarLike(x, 0), bent = e.mul(e.emit<Expm1Op>({e.mul(x, 1 / alpha)}), alpha);
  return e.select(e.compare(Compare::lt, x, zero), bent, x);
}

/// An activation by its ONNX name, with what that operator does where a parameter is not given.
Val activated(Emitter &e, const std::string &name, const Val &x, const Parameters &p) {
  if (name.empty())
    return x;
  if (name == "Silu")
    return silu(e, x);
  if (name == "HardSwish")
    return e.mul(x, hardSigmoid(e, x, 1.0F / 6, 0.5));
  if (name == "Celu")
    return celu(e, x, p.alpha.value_or(1));
  if (name == "Selu")
    return e.mul(elu(e, x, p.alpha.value_or(1.67326319217681884765625)), p.gamma.value_or(1.05070102214813232421875));
  double alpha = name == "LeakyRelu" ? 0.01F : name == "HardSigmoid" ? 0.2F : 1;
  return activationByName(e, name, x, p.alpha.value_or(alpha), p.beta.value_or(name == "HardSigmoid" ? 0.5 : 0));
}

std::optional<double> optionalFloat(NodeContext &c, const char *name) {
  return c.hasAttr(name) ? std::optional(c.attrFloat(name, 0)) : std::nullopt;
}
Parameters parametersOf(NodeContext &c) {
  return {optionalFloat(c, "activation_alpha"), optionalFloat(c, "activation_beta"),
          optionalFloat(c, "activation_gamma")};
}

//===--- Matrix products ---------------------------------------------------===//

/// A matrix operand as the product takes it. `batch`: its first axis belongs before the last one. Vectors stay.
Val matrixOf(NodeContext &c, int i, const char *turned, const char *batch) {
  Val x = c.operand(i);
  if (x.rank() < 2)
    return x;
  if (c.attrInt(batch, 0))
    x = moveAxis(c.e, x, 0, x.rank() - 2);
  return c.attrInt(turned, 0) ? c.e.transposeLast(x) : x;
}

// With a factor, what is narrower than f32 is multiplied in f32: scores that overflow their type only before the factor
// are numbers in ONNX Runtime.
Val fusedMatMul(NodeContext &c) {
  Emitter &e = c.e;
  Val a = matrixOf(c, 0, "transA", "transBatchA"), b = matrixOf(c, 1, "transB", "transBatchB");
  const double alpha = c.attrFloat("alpha", 1);
  if (alpha == 1)
    return numpyMatMul(e, a, b);
  const DType type = a.dtype(), wide = type == DType::F64 ? type : DType::F32;
  return e.cast(e.mul(numpyMatMul(e, e.cast(a, wide), e.cast(b, wide)), alpha), type);
}

void importFusedMatMul(NodeContext &c) { c.result(fusedMatMul(c)); }

void importFusedMatMulActivation(NodeContext &c) {
  Val y = fusedMatMul(c);
  std::string name = c.attrString("activation");
  if (name == "Softmax" || name == "LogSoftmax") {
    int64_t axis = c.normalizeAxis(c.attrInt("activation_axis", -1), y.rank());
    return c.result(c.e.softmax(y, axis, name == "LogSoftmax"));
  }
  c.result(activated(c.e, name, y, parametersOf(c)));
}

void importFusedGemm(NodeContext &c) {
  c.result(activated(c.e, c.attrString("activation", ""), gemm(c), parametersOf(c)));
}

/// gelu(A B + bias).
void importGemmFastGelu(NodeContext &c) {
  Val y = numpyMatMul(c.e, c.operand(0), c.operand(1));
  c.result(geluTanh(c.e, c.has(2) ? c.e.add(y, c.operand(2)) : y));
}

//===--- Convolutions -------------------------------------------------------===//

Val activatedByList(NodeContext &c, const Val &y) {
  std::string name = c.attrString("activation", "");
  std::vector<double> list = c.attrFloats("activation_params").value_or(std::vector<double>());
  size_t count = name == "Clip" || name == "HardSigmoid" ? 2 : name == "LeakyRelu" ? 1 : 0;
  c.requireAttr(count == 0 || list.size() == count, "the activation '" + name + "' takes " + std::to_string(count) +
                                                        " activation_params, not " + std::to_string(list.size()));
  Emitter &e = c.e;
  if (name == "Clip")
    return e.min(e.max(y, e.scalarLike(y, list[0])), e.scalarLike(y, list[1]));
  Parameters p;
  if (count > 0)
    p.alpha = list[0];
  if (count > 1)
    p.beta = list[1];
  return activated(e, name, y, p);
}

/// activation(conv(x) + bias + z).
Val fusedConv(NodeContext &c, const Val &x, const Val &z) {
  Val y = convolution(c, x, c.operand(1), c.optional(2));
  if (z) {
    c.requireShape(mayEqual(z.dims(), y.dims()),
                   "what is added, " + z.describe() + ", must have the result's shape " + dimsString(y.dims()));
    y = c.e.add(y, z);
  }
  return activatedByList(c, y);
}

void importFusedConv(NodeContext &c) { c.result(fusedConv(c, c.operand(0), c.optional(3))); }

void importNhwcConv(NodeContext &c) {
  Val z = c.has(3) ? channelsFirst(c.e, c.operand(3)) : Val();
  c.result(channelsLast(c.e, fusedConv(c, channelsFirst(c.e, c.operand(0)), z)));
}

//===--- Sums ----------------------------------------------------------------===//

void importBiasAdd(NodeContext &c) {
  Val x = c.operand(0), bias = c.operand(1), skip = c.operand(2);
  c.requireShape(x.rank() == 3 && mayEqual(skip.dims(), x.dims()), "X and skip must be of one shape [N, S, C]");
  c.requireShape(bias.rank() == 1 && mayEqual(bias.extent(0), x.extent(-1)),
                 "the bias " + bias.describe() + " must have one number for each of the " + x.extent(-1).str() +
                     " channels");
  c.result(c.e.add(c.e.add(x, bias), skip));
}

/// Fails where the node would draw random numbers.
void requireInference(NodeContext &c, int i) {
  Tensor mode = c.has(i) ? c.constantOperand(i, "training_mode") : Tensor(DType::Bool, {});
  c.requireShape(mode.numElements() == 1, "the training_mode must be one value");
  if (c.has(i) && mode.asInt(0) != 0)
    fail("op-unsupported", "training is not supported; export the model in its evaluation mode");
}

/// What evaluation does: nothing is dropped.
void importDropout(NodeContext &c, const Val &y, int training) {
  requireInference(c, training);
  c.result(0, y);
}

void importBiasDropout(NodeContext &c) {
  Emitter &e = c.e;
  Val x = c.operand(0), y = e.expectDims(e.add(x, c.operand(1)), x.dims());
  if (c.has(2))
    y = e.expectDims(e.add(y, c.operand(2)), x.dims());
  importDropout(c, y, 4);
  if (c.wants(1))
    c.result(1, e.splat(DType::Bool, x.dims(), 1));
}

void importBitmaskDropout(NodeContext &c) { importDropout(c, c.operand(0), 2); }
void importBitmaskBiasDropout(NodeContext &c) {
  if (c.wants(1))
    fail("op-unsupported", "the mask of bits is for training only; leave it out of the model's outputs");
  importBiasDropout(c);
}

/// softmax(x + bias) over all axes from `axis` on.
void importBiasSoftmax(NodeContext &c) {
  Emitter &e = c.e;
  Val x = c.operand(0);
  (void)c.attrInt("is_inner_broadcast"); // the shapes say which axes the bias lacks
  Val sum = e.expectDims(e.add(x, c.operand(1)), x.dims());
  int64_t axis = c.normalizeAxis(c.attrInt("axis", 1), x.rank());
  Dims dims = x.dims(), flat(llvm::ArrayRef<Dim>(dims).take_front(axis));
  flat.push_back(product(llvm::ArrayRef<Dim>(dims).drop_front(axis)));
  c.result(e.reshape(e.softmax(e.reshape(sum, flat), axis), dims));
}

} // namespace

std::vector<OpRows> contribFusedOps() {
  using namespace types;
  const char *conv = "activation,activation_params,auto_pad,dilations,group,kernel_shape,pads,strides";
  return {
      {"FusedMatMul",
       {1},
       "TT>1",
       importFusedMatMul,
       "alpha,transA,transB,transBatchA,transBatchB",
       {Float},
       "",
       kMicrosoft},
      {"TransposeMatMul", {1}, "TT>1", importFusedMatMul, "alpha,transA,transB", {Float}, "", kMicrosoft},
      {"FusedMatMulActivation",
       {1},
       "TT>1",
       importFusedMatMulActivation,
       "activation,activation_alpha=float,activation_axis,activation_beta=float,activation_gamma,alpha,transA,transB,"
       "transBatchA,transBatchB",
       {Float},
       "",
       kMicrosoft},
      {"FusedGemm",
       {1},
       "TTT>1",
       importFusedGemm,
       "activation,activation_alpha=float,activation_beta=float,activation_gamma,alpha,beta,transA,transB",
       {Number},
       "",
       kMicrosoft},
      {"GemmFastGelu", {1}, "TTT>1", importGemmFastGelu, "", {Float}, "", kMicrosoft},
      {"FusedConv", {1}, "TTTT>1", importFusedConv, conv, {Float}, "", kMicrosoft},
      {"NhwcConv",
       {1},
       "TTT>1",
       importNhwcConv,
       "auto_pad,dilations,group,kernel_shape,pads,strides",
       {Float},
       "",
       kMicrosoft},
      {"NhwcFusedConv", {1}, "TTTT>1", importNhwcConv, conv, {Float}, "", kMicrosoft},
      {"BiasAdd", {1}, "TTT>1", importBiasAdd, "", {Float}, "", kMicrosoft},
      {"BiasDropout",
       {1},
       "TTT..>2",
       importBiasDropout,
       "seed",
       {Float, Float, Float, Float, Bool},
       "evaluation",
       kMicrosoft},
      {"BitmaskDropout",
       {1},
       "...>2",
       importBitmaskDropout,
       "seed",
       {Float, Float, Bool},
       "evaluation, no mask",
       kMicrosoft},
      {"BitmaskBiasDropout",
       {1},
       "TTT..>2",
       importBitmaskBiasDropout,
       "seed",
       {Float, Float, Float, Float, Bool},
       "evaluation, no mask",
       kMicrosoft},
      {"BiasSoftmax", {1}, "TT>1", importBiasSoftmax, "axis,is_inner_broadcast", {Float}, "", kMicrosoft},
  };
}

} // namespace dmxc::onnxfe
