//===- Others.cpp - small operators of com.microsoft ----------------------===//
#include "Contrib.h"

#include "../OnnxOperators.h"
#include "../ops/Window.h"

#include "frontends/common/ops/Activation.h"
#include "frontends/common/ops/Formulas.h"
#include "frontends/common/ops/Order.h"

#include <limits>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

/// Longer ones are no language model's.
constexpr int64_t kMaxNGram = 1024;

//===--- Those that ONNX has too ---------------------------------------------===//

/// The results of an operator of ONNX' default domain as of `opset`.
std::vector<Val> asOnnx(NodeContext &c, const char *op, int64_t opset, std::vector<Val> operands,
                        const OperatorAttributes &attributes = {}, size_t results = 1) {
  return onnxOperators().import(c.e, op, std::move(operands), attributes, results, opset);
}

void importTrilu(NodeContext &c) {
  c.result(asOnnx(c, "Trilu", 14, {c.operand(0), c.optional(1)}, {{"upper", c.attrInt("upper", 1)}})[0]);
}

void importUnique(NodeContext &c) {
  c.requireShape(c.operand(0).rank() == 1, "expected a vector, not " + c.operand(0).describe());
  std::vector<Val> results = asOnnx(c, "Unique", 11, {c.operand(0)}, {{"sorted", int64_t(0)}}, 4);
  c.result(0, results[0]);
  c.result(1, results[2]);
  c.result(2, results[3]);
}

Val scalarOf(NodeContext &c, int i) {
  c.requireShape(mayEqual(c.operand(i).elements(), 1), "operand " + std::to_string(i) + " must be one number");
  return c.e.reshape(c.operand(i), {});
}

void importRange(NodeContext &c) {
  Val step = c.has(2) ? scalarOf(c, 2) : c.e.scalarLike(c.operand(0), 1);
  c.result(asOnnx(c, "Range", 11, {scalarOf(c, 0), scalarOf(c, 1), step})[0]);
}

void importPad(NodeContext &c) {
  Val x = c.operand(0), pads = c.e.reshape(c.operand(1), {c.operand(1).elements()});
  c.requireShape(mayEqual(pads.extent(0), 2 * x.rank()),
                 "the pads must be two numbers for each of the " + std::to_string(x.rank()) + " axes");
  Val value = c.has(2) ? scalarOf(c, 2) : Val();
  c.result(asOnnx(c, "Pad", 13, {x, pads, value}, {{"mode", c.attrString("mode", "constant")}})[0]);
}

void importGatherND(NodeContext &c) { c.result(asOnnx(c, "GatherND", 11, {c.operand(0), c.operand(1)})[0]); }

void importGridSample(NodeContext &c) {
  c.result(asOnnx(c, "GridSample", 16, {c.operand(0), c.operand(1)},
                  {{"align_corners", c.attrInt("align_corners", 0)},
                   {"mode", c.attrString("mode", "bilinear")},
                   {"padding_mode", c.attrString("padding_mode", "zeros")}})[0]);
}

void importExpandDims(NodeContext &c) {
  int64_t axis = c.normalizeAxis(c.constantInt(1, "axis"), c.operand(0).rank() + 1);
  c.result(unsqueeze(c.e, c.operand(0), axis));
}

void importTorchEmbedding(NodeContext &c) { c.result(c.e.gather(c.operand(0), c.operand(1), 0)); }
void importSampleOp(NodeContext &c) { c.result(c.operand(0)); }

void importRfft(NodeContext &c) {
  Val x = c.operand(0);
  c.requireAttr(c.attrInt("normalized", 0) == 0 && c.attrInt("onesided", 1) == 1 && c.attrInt("signal_ndim", 1) == 1,
                "normalized must be 0, onesided 1 and signal_ndim 1");
  c.requireShape(x.rank() > 0, "expected a signal");
  Dims dims = x.dims(); // between a batch of one and the one real part
  dims.insert(dims.begin(), 1);
  dims.push_back(1);
  Val y = asOnnx(c, "DFT", 17, {c.e.reshape(x, dims)}, {{"axis", x.rank()}, {"onesided", int64_t(1)}})[0];
  Dims result = y.dims();
  result.erase(result.begin());
  c.result(c.e.reshape(y, result));
}

//===--- Formulas -------------------------------------------------------------===//

void importCDist(NodeContext &c) {
  Emitter &e = c.e;
  Val a = c.operand(0), b = c.operand(1);
  std::string metric = c.attrString("metric", "sqeuclidean");
  c.requireAttr(metric == "sqeuclidean" || metric == "euclidean",
                "the metric '" + metric + "' is not supported; sqeuclidean and euclidean are");
  c.requireShape(a.rank() == 2 && b.rank() == 2 && mayEqual(a.extent(1), b.extent(1)),
                 "expected matrices with the same number of columns");
  Val sum = sumOver(e, square(e, e.sub(unsqueeze(e, a, 1), unsqueeze(e, b, 0))), {2}, false);
  c.result(metric == "euclidean" ? sqrtOf(e, sum) : sum);
}

void importIsAllFinite(NodeContext &c) {
  Emitter &e = c.e;
  const bool onlyInf = c.attrInt("isinf_only", 0) != 0, onlyNaN = c.attrInt("isnan_only", 0) != 0;
  c.requireAttr(!onlyInf || !onlyNaN, "isinf_only and isnan_only exclude each other");
  Val count = e.intScalar(DType::I64, 0);
  for (int i = 0; i < c.numOperands(); ++i) {
    Val x = e.reshape(c.operand(i), {c.operand(i).elements()});
    Val wrong = onlyNaN ? isNaN(e, x) : e.emit<IsInfOp>({x});
    if (!onlyInf && !onlyNaN)
      wrong = either(e, wrong, isNaN(e, x));
    count = e.add(count, sumOver(e, e.cast(wrong, DType::I64), {0}, false));
  }
  c.result(e.compare(Compare::eq, count, e.intScalar(DType::I64, 0)));
}

/// As z * sigmoid(z) with each step rounded to the type.
void importScaledSiLU(NodeContext &c) {
  Emitter &e = c.e;
  Val x = c.operand(0);
  Val scale = c.has(1) ? e.cast(scalarOf(c, 1), DType::F32) : e.scalar(DType::F32, c.attrFloat("alpha", 1));
  Val z = e.cast(e.mul(e.cast(x, DType::F32), scale), x.dtype());
  Val share = e.cast(sigmoid(e, e.cast(z, DType::F32)), x.dtype());
  c.result(e.mul(z, share));
}

void importSwiGLU(NodeContext &c) {
  Emitter &e = c.e;
  Val gate = c.operand(0), up = c.optional(1);
  const DType type = gate.dtype();
  if (!up) {
    c.requireShape(gate.rank() > 0 && gate.extent(-1).valueOr(0) % 2 == 0,
                   "the last axis of " + gate.describe() + " must hold two halves, the gate and what it opens");
    const Dim half = Dim::floorDiv(gate.extent(-1), 2);
    up = e.sliceAxis(gate, gate.rank() - 1, half, half);
    gate = e.sliceAxis(gate, gate.rank() - 1, 0, half);
  }
  c.requireShape(mayEqual(gate.dims(), up.dims()), "gate and up must have one shape");
  gate = e.cast(gate, DType::F32);
  up = e.cast(up, DType::F32);
  if (double limit = c.attrFloat("limit", 0); limit > 0) {
    gate = e.min(gate, e.scalarLike(gate, limit));
    up = e.max(e.min(up, e.scalarLike(up, limit)), e.scalarLike(up, -limit));
  }
  Val open = e.mul(gate, sigmoid(e, e.mul(gate, c.attrFloat("activation_alpha", 1))));
  if (c.attrInt("round_activation", 0))
    open = e.cast(e.cast(open, type), DType::F32);
  if (double beta = c.attrFloat("activation_beta", 0); beta != 0)
    up = e.add(up, beta);
  c.result(e.cast(e.mul(open, up), type));
}

/// x + y * gate; with gate weights, the gate is the sigmoid of a product that is rounded at each step.
void importGatedAdd(NodeContext &c) {
  Emitter &e = c.e;
  Val x = c.operand(0), y = c.operand(1), gate = c.operand(2);
  c.requireShape(mayEqual(x.dims(), y.dims()), "X and Y must have one shape");
  if (c.has(3)) {
    Val sum = e.matmul(e.cast(gate, DType::F32), e.cast(c.operand(3), DType::F32));
    gate = e.cast(sigmoid(e, e.cast(e.cast(sum, x.dtype()), DType::F32)), x.dtype());
  }
  Dims dims = x.dims();
  if (!dims.empty())
    dims.back() = 1;
  c.requireShape(mayEqual(gate.dims(), dims), "the gate " + gate.describe() + " must have one number for each row");
  c.result(e.add(x, e.mul(y, gate)));
}

/// Pairs of the last axis as complex numbers: a b, or a times the conjugate of b.
void importComplexMulOf(NodeContext &c, bool conjugate) {
  Emitter &e = c.e;
  Val a = c.operand(0), b = c.operand(1);
  auto part = [&](const Val &x, int64_t i) {
    c.requireShape(x.rank() > 0 && mayEqual(x.extent(-1), 2), x.describe() + " must have pairs in its last axis");
    return e.sliceAxis(x, x.rank() - 1, i, 1);
  };
  Val real = e.mul(part(a, 0), part(b, 0)), cross = e.mul(part(a, 1), part(b, 1));
  Val left = e.mul(part(a, 1), part(b, 0)), right = e.mul(part(a, 0), part(b, 1));
  real = conjugate ? e.add(real, cross) : e.sub(real, cross);
  Val imaginary = conjugate ? e.sub(left, right) : e.add(left, right);
  c.result(e.concat({real, imaginary}, real.rank() - 1));
}
void importComplexMul(NodeContext &c) { importComplexMulOf(c, false); }
void importComplexMulConj(NodeContext &c) { importComplexMulOf(c, true); }

/// Scores [batch, words] where words that would repeat n of the ids [batch, length] in a row are -inf. Before the ids
/// stand n that are no words, so that short sequences have windows too.
void importNGramRepeatBlock(NodeContext &c) {
  Emitter &e = c.e;
  Val ids = c.operand(0), scores = c.operand(1);
  const int64_t n = c.attrInt("ngram_size");
  c.requireAttr(n > 0 && n <= kMaxNGram,
                "ngram_size must be 1 to " + std::to_string(kMaxNGram) + ", not " + std::to_string(n));
  c.requireShape(ids.rank() == 2 && scores.rank() == 2 && mayEqual(ids.extent(0), scores.extent(0)),
                 "expected ids [batch, length] and scores [batch, words]");
  const Dim length = ids.extent(1) + n, windows = ids.extent(1) + 1;
  Val nothing = e.intScalar(ids.dtype(), -1);
  Val all = e.pad(ids, nothing, {Dim(0), Dim(n)}, {Dim(0), Dim(0)});
  Val next = e.sliceAxis(all, 1, n - 1, windows);
  Val repeats = e.compare(Compare::ge, next, e.scalarLike(next, 0));
  for (int64_t i = 0; i + 1 < n; ++i) {
    Val last = e.sliceAxis(all, 1, length - (n - 1) + i, 1);
    repeats = both(e, repeats, e.compare(Compare::eq, e.sliceAxis(all, 1, i, windows), last));
  }
  Val none = e.splat(DType::I32, scores.dims(), 0);
  Val count = scatterElements(e, none, whereOrZero(e, repeats, next), e.cast(repeats, DType::I32), 1, ScatterMode::add);
  Val blocked = e.compare(Compare::gt, count, e.scalarLike(count, 0));
  c.result(e.select(blocked, e.scalarLike(scores, -std::numeric_limits<double>::infinity()), scores));
}

/// Windows of `size` along an axis, `step` apart, as a new last axis.
void importUnfoldTensor(NodeContext &c) {
  Emitter &e = c.e;
  Val x = c.operand(0);
  const int64_t axis = c.normalizeAxis(c.attrInt("dim", -1), x.rank()), size = c.attrInt("size"),
                step = c.attrInt("step", 1);
  c.requireAttr(size > 0 && step > 0 && size <= kMaxExtent && step <= kMaxExtent, "size and step must be positive");
  c.requireShape(x.extent(axis).valueOr(size) >= size, "the axis is shorter than a window");
  const Dim count = Dim::floorDiv(x.extent(axis) - size, step) + 1;
  Val first = e.mul(e.iota(DType::I64, {count, 1}, 0), e.intScalar(DType::I64, step));
  Val windows = e.gather(x, e.add(first, e.iota(DType::I64, {1, size}, 1)), axis);
  c.result(moveAxis(e, windows, axis + 1, windows.rank() - 1));
}

//===--- Layers ----------------------------------------------------------------===//

void importConvTransposeWithDynamicPads(NodeContext &c) {
  Val x = c.operand(0), weights = c.operand(1);
  const int64_t axes = std::max<int64_t>(x.rank() - 2, 0);
  Dims pads;
  if (c.has(2)) {
    pads = c.sizes(2, "pads", std::nullopt, 2 * axes);
    c.requireShape(static_cast<int64_t>(pads.size()) == 2 * axes,
                   "the pads must be two numbers for each of the " + std::to_string(axes) + " spatial axes");
    for (Dim pad : pads)
      c.requireShape(pad.valueOr(0) >= -kMaxExtent && pad.valueOr(0) <= kMaxExtent, "a pad is out of range");
  }
  c.result(transposedConvolution(c, x, weights, c.optional(3), pads));
}

/// Weights [directions, n, gates] of bytes as numbers, [directions, gates, n] as ONNX has them.
Val recurrentWeights(NodeContext &c, int weights, int scale) {
  Emitter &e = c.e;
  Val codes = c.operand(weights);
  c.requireShape(codes.rank() == 3, "the weights " + codes.describe() + " must be of rank 3");
  auto spread = [&](int i) {
    Val x = e.cast(c.operand(i), DType::F32);
    c.requireShape((x.rank() == 1 || (x.rank() == 2 && mayEqual(x.extent(1), codes.extent(2)))) &&
                       mayEqual(x.extent(0), codes.extent(0)),
                   "operand " + std::to_string(i) + " must have one number for each direction, or for each of its " +
                       codes.extent(2).str() + " columns");
    return e.reshape(x, {codes.extent(0), 1, x.rank() == 1 ? Dim(1) : codes.extent(2)});
  };
  return e.transposeLast(e.mul(e.sub(e.cast(codes, DType::F32), spread(scale + 1)), spread(scale)));
}

/// The numbers of a run stay f32, where ONNX Runtime makes bytes of them at each step.
void importDynamicQuantizeLSTM(NodeContext &c) {
  OperatorAttributes attributes;
  for (const char *name : {"activation_alpha", "activation_beta"})
    if (std::optional<std::vector<double>> list = c.attrFloats(name))
      attributes[name] = *list;
  if (std::optional<std::vector<std::string>> names = c.attrStrings("activations"))
    attributes["activations"] = *names;
  if (c.hasAttr("clip"))
    attributes["clip"] = c.attrFloat("clip", 0);
  for (const char *name : {"hidden_size", "input_forget"})
    if (c.hasAttr(name))
      attributes[name] = c.attrInt(name);
  attributes["direction"] = c.attrString("direction", "forward");
  std::vector<Val> operands{c.operand(0), recurrentWeights(c, 1, 8), recurrentWeights(c, 2, 10)};
  for (int i = 3; i < 8; ++i)
    operands.push_back(c.optional(i));
  std::vector<Val> results = asOnnx(c, "LSTM", 14, operands, attributes, 3);
  for (int i = 0; i < 3; ++i)
    c.result(i, results[i]);
}

} // namespace

std::vector<OpRows> contribOtherOps() {
  using namespace types;
  constexpr TypeSet Single = bitOf(DType::F16) | bitOf(DType::F32) | bitOf(DType::F64), F32 = bitOf(DType::F32);
  constexpr TypeSet I64 = bitOf(DType::I64), I32 = bitOf(DType::I32);
  const char *lstm = "activation_alpha,activation_beta,activations,clip,direction,hidden_size,input_forget";
  return {
      {"Trilu", {1}, "..>1", importTrilu, "upper", {Number | Bool, I64}, "", kMicrosoft},
      {"Unique", {1}, ".>3", importUnique, "", {Number}, "", kMicrosoft},
      {"Range",
       {1},
       "TTT>1",
       importRange,
       "",
       {Number},
       "the operands must be known at compile time or up to symbolic dims",
       kMicrosoft},
      {"Pad", {1}, "T.T>1", importPad, "mode", {Single, I64, Single}, "", kMicrosoft},
      {"GatherND", {1}, "..>1", importGatherND, "", {Any, Index}, "", kMicrosoft},
      {"GridSample", {1}, "TT>1", importGridSample, "align_corners,mode,padding_mode", {Float}, "", kMicrosoft},
      {"ExpandDims", {1}, "..>1", importExpandDims, "", {Any, I32}, "the axis is known at compile time", kMicrosoft},
      {"TorchEmbedding", {1}, "....>1", importTorchEmbedding, "", {Number, I64, I64, Bool}, "", kMicrosoft},
      {"SampleOp", {1}, ".>1", importSampleOp, "", {Number}, "", kMicrosoft},
      {"Rfft", {1}, ".>1", importRfft, "normalized,onesided,signal_ndim", {Single}, "signal_ndim 1", kMicrosoft},
      {"CDist", {1}, "TT>1", importCDist, "metric", {F32 | bitOf(DType::F64)}, "sqeuclidean and euclidean", kMicrosoft},
      {"IsAllFinite", {1}, "T*>1", importIsAllFinite, "isinf_only,isnan_only", {Float}, "", kMicrosoft},
      {"ScaledSiLU", {1}, "..>1", importScaledSiLU, "alpha", {kContribFloat}, "", kMicrosoft},
      {"SwiGLU",
       {1},
       "TT>1",
       importSwiGLU,
       "activation_alpha=float,activation_beta=float,limit,round_activation",
       {kContribFloat},
       "",
       kMicrosoft},
      {"GatedAdd", {1}, "TTTT>1", importGatedAdd, "", {kContribFloat}, "", kMicrosoft},
      {"ComplexMul", {1}, "TT>1", importComplexMul, "", {Single}, "", kMicrosoft},
      {"ComplexMulConj", {1}, "TT>1", importComplexMulConj, "", {Single}, "", kMicrosoft},
      {"NGramRepeatBlock", {1}, "..>1", importNGramRepeatBlock, "ngram_size", {I64, F32}, "", kMicrosoft},
      {"UnfoldTensor", {1}, ".>1", importUnfoldTensor, "dim,size,step", {Any}, "", kMicrosoft},
      {"ConvTransposeWithDynamicPads",
       {1},
       "TT.T>1",
       importConvTransposeWithDynamicPads,
       "auto_pad,dilations,group,kernel_shape,output_padding,strides",
       {Single, Single, I64, Single},
       "",
       kMicrosoft},
      {"DynamicQuantizeLSTM",
       {1},
       "TUUT.TTTTUTU>3",
       importDynamicQuantizeLSTM,
       lstm,
       {F32, Byte, Byte, F32, I32, F32, F32, F32, F32, Byte, F32, Byte},
       "the numbers of a run stay f32",
       kMicrosoft},
  };
}

} // namespace dmxc::onnxfe
