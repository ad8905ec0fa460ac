//===- QLinear.cpp - operators on bytes with scales and zero points -------===//
//
// They compute what their definitions say of the real numbers: the operands without their scales, the operator in f32,
// and the result quantised again.
//
//===----------------------------------------------------------------------===//
#include "Contrib.h"

#include "../ops/Quant.h"
#include "../ops/Window.h"

#include "frontends/common/ops/Activation.h"
#include "frontends/common/ops/Formulas.h"

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

/// x - zero in f32, which is exact: operand x, and its zero point two places behind.
Val centred(NodeContext &c, int x) {
  Val codes = c.e.cast(c.operand(x), DType::F32);
  if (!c.has(x + 2))
    return codes;
  return c.e.sub(codes, c.e.cast(scalarOperand(c, x + 2, "zero point"), DType::F32));
}

Val scaleAt(NodeContext &c, int i) { return scalarOperand(c, i, "scale"); }

/// The real numbers of operands x, scale, zero point.
Val realOf(NodeContext &c, int x) { return c.e.mul(centred(c, x), scaleAt(c, x + 1)); }

/// Real numbers as bytes of `type` by the operands scale, zero point.
Val bytesOf(NodeContext &c, const Val &real, int scale, DType type) {
  Val zero = c.has(scale + 1) ? scalarOperand(c, scale + 1, "result's zero point") : Val();
  if (zero && zero.dtype() != type)
    fail("op-dtype", "the result's zero point must be " + std::string(dtypeName(type)) + ", not " +
                         std::string(dtypeName(zero.dtype())));
  return saturated(c.e, c.e.div(real, scaleAt(c, scale)), zero, type);
}

void requantize(NodeContext &c, const Val &real, int scale) { c.result(bytesOf(c, real, scale, c.operand(0).dtype())); }

/// The same of what is linear in x: `exact` was made of x without its zero point and its scale, which round only here.
void rescale(NodeContext &c, const Val &exact, const Val &scaleOfExact, int scale) {
  Val zero = c.has(scale + 1) ? scalarOperand(c, scale + 1, "result's zero point") : Val();
  Val real = c.e.mul(exact, c.e.div(scaleOfExact, scaleAt(c, scale)));
  c.result(saturated(c.e, real, zero, c.operand(0).dtype()));
}

void importAdd(NodeContext &c) { requantize(c, c.e.add(realOf(c, 0), realOf(c, 3)), 6); }

void importMul(NodeContext &c) {
  rescale(c, c.e.mul(centred(c, 0), centred(c, 3)), c.e.mul(scaleAt(c, 1), scaleAt(c, 4)), 6);
}

void importSigmoid(NodeContext &c) { requantize(c, sigmoid(c.e, realOf(c, 0)), 3); }
void importLeakyRelu(NodeContext &c) { requantize(c, leakyRelu(c.e, realOf(c, 0), c.attrFloat("alpha", 0.01F)), 3); }

/// Over one axis, or before opset 13 over all axes from it on.
void importSoftmax(NodeContext &c) {
  Emitter &e = c.e;
  Val x = realOf(c, 0);
  int64_t axis = c.normalizeAxis(c.attrInt("axis", -1), x.rank());
  Dims dims = x.dims(), flat(llvm::ArrayRef<Dim>(dims).take_front(axis));
  flat.push_back(product(llvm::ArrayRef<Dim>(dims).drop_front(axis)));
  Val y = c.attrInt("opset") < 13 ? e.reshape(e.softmax(e.reshape(x, flat), axis), dims) : e.softmax(x, axis);
  requantize(c, y, 3);
}

//===--- Windows and reductions --------------------------------------------===//

/// What `compute` makes of x [n, c, spatial..], for an operand whose channels may be last.
template <typename Compute> Val withChannelsFirst(NodeContext &c, const Val &x, const Compute &compute) {
  if (!c.attrFlag("channels_last", false))
    return compute(x);
  return channelsLast(c.e, compute(channelsFirst(c.e, x)));
}

void importAveragePool(NodeContext &c) {
  Val means = withChannelsFirst(c, centred(c, 0), [&](const Val &x) {
    return pool(c.e, Pooling::average, x, windowOf(c, x.dims()), c.attrInt("count_include_pad", 0) != 0);
  });
  rescale(c, means, scaleAt(c, 1), 3);
}

void importGlobalAveragePool(NodeContext &c) {
  Val means = withChannelsFirst(c, centred(c, 0), [&](const Val &x) {
    c.requireShape(x.rank() >= 3, "expected rank 3 or more, not " + std::to_string(x.rank()));
    return meanOver(c.e, x, axesFrom(2, x.rank()), true);
  });
  rescale(c, means, scaleAt(c, 1), 3);
}

void importNhwcMaxPool(NodeContext &c) {
  Val x = channelsFirst(c.e, c.operand(0));
  c.result(channelsLast(c.e, pool(c.e, Pooling::max, x, windowOf(c, x.dims()))));
}

/// The axes of an attribute; all where it names none.
std::vector<int64_t> axesOf(NodeContext &c, const Val &x) {
  std::vector<int64_t> axes = c.normalizeAxes(c.attrInts("axes", {}), x.rank());
  return axes.empty() ? axesFrom(0, x.rank()) : axes;
}

void importReduceMean(NodeContext &c) {
  Val x = centred(c, 0);
  rescale(c, meanOver(c.e, x, axesOf(c, x), c.attrInt("keepdims", 1) != 0), scaleAt(c, 1), 3);
}

void importReduceSumInteger(NodeContext &c) {
  Val x = c.operand(0);
  DType type = x.dtype() == DType::U8 ? DType::U32 : DType::I32;
  c.result(sumOver(c.e, c.e.cast(x, type), axesOf(c, x), c.attrInt("keepdims", 1) != 0));
}

//===--- Several operands ---------------------------------------------------===//

void requireBytes(NodeContext &c, int i) {
  if (dtypeBits(c.operand(i).dtype()) != 8)
    fail("op-dtype",
         "operand " + std::to_string(i) + " is " + std::string(dtypeName(c.operand(i).dtype())) + "; accepted: u8 i8");
}

void importConcat(NodeContext &c) {
  c.requireShape(c.numOperands() >= 5 && (c.numOperands() - 2) % 3 == 0,
                 "expected the result's scale and zero point, then a tensor, its scale and its zero point for each " +
                     std::string("part, not ") + std::to_string(c.numOperands()) + " operands");
  std::vector<Val> parts;
  requireBytes(c, 1);
  for (int i = 2; i < c.numOperands(); i += 3) {
    requireBytes(c, i);
    requireBytes(c, i + 2);
    parts.push_back(realOf(c, i));
    c.requireShape(parts.back().rank() == parts.front().rank(), "the parts must have one rank");
  }
  Val joined = c.e.concat(parts, c.normalizeAxis(c.attrInt("axis"), parts.front().rank()));
  c.result(bytesOf(c, joined, 0, c.operand(1).dtype()));
}

void importWhere(NodeContext &c) {
  Val chosen = c.e.select(c.operand(0), realOf(c, 1), realOf(c, 4));
  c.result(bytesOf(c, chosen, 7, c.operand(1).dtype()));
}

/// (a - its zero point) * (b - its zero point) as i32.
void importMulInteger(NodeContext &c) {
  Emitter &e = c.e;
  auto factor = [&](int i) {
    Val x = e.cast(c.operand(i), DType::I32);
    return c.has(i + 1) ? e.sub(x, e.cast(scalarOperand(c, i + 1, "zero point"), DType::I32)) : x;
  };
  c.result(e.mul(factor(0), factor(2)));
}

} // namespace

std::vector<OpRows> contribQLinearOps() {
  using namespace types;
  constexpr TypeSet F32 = bitOf(DType::F32);
  const std::vector<TypeSet> unary = {Byte, F32, Byte, F32, Byte}, any = {Byte | F32};
  const std::vector<TypeSet> binary = {Byte, F32, Byte, Byte, F32, Byte, F32, Byte};
  const char *window = "auto_pad,ceil_mode,channels_last,count_include_pad,kernel_shape,pads,strides";
  return {
      {"QLinearAdd", {1}, "T.TT.T.T>1", importAdd, "", binary, "", kMicrosoft},
      {"QLinearMul", {1}, "T.TT.T.T>1", importMul, "", binary, "", kMicrosoft},
      {"MulInteger", {1}, "TTTT>1", importMulInteger, "", {Byte}, "", kMicrosoft},
      {"QLinearSigmoid", {1}, "T.T.T>1", importSigmoid, "", unary, "", kMicrosoft},
      {"QLinearLeakyRelu", {1}, "T.T.T>1", importLeakyRelu, "alpha", unary, "", kMicrosoft},
      {"QLinearSoftmax", {1}, "T.T.T>1", importSoftmax, "axis,opset", unary, "", kMicrosoft},
      {"QLinearAveragePool", {1}, "T.T.T>1", importAveragePool, window, unary, "", kMicrosoft},
      {"QLinearGlobalAveragePool", {1}, "T.T.T>1", importGlobalAveragePool, "channels_last", unary, "", kMicrosoft},
      {"NhwcMaxPool",
       {1},
       ".>1",
       importNhwcMaxPool,
       "auto_pad,ceil_mode,dilations,kernel_shape,pads,strides",
       {Byte},
       "",
       kMicrosoft},
      {"QLinearReduceMean", {1}, "T.T.T>1", importReduceMean, "axes,keepdims", unary, "", kMicrosoft},
      {"ReduceSumInteger", {1}, ".>1", importReduceSumInteger, "axes,keepdims", {Byte}, "", kMicrosoft},
      {"QLinearConcat", {1}, "...*>1", importConcat, "axis", any, "", kMicrosoft},
      {"QLinearWhere",
       {1},
       ".TUTTUTUT>1",
       importWhere,
       "",
       {Bool, Byte, F32, Byte, Byte, F32, Byte, F32, Byte},
       "",
       kMicrosoft},
  };
}

} // namespace dmxc::onnxfe
