//===- Pool.cpp - pools ---------------------------------------------------===//
#include "../Differences.h"
#include "Window.h"

#include "frontends/common/ops/Formulas.h"
#include "frontends/common/ops/Order.h"

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

bool anyAbove(const std::vector<int64_t> &values, int64_t least) {
  return llvm::any_of(values, [&](int64_t value) { return value > least; });
}

/// What readers of ONNX make of the same attributes.
void noteWindow(NodeContext &c, const Window &w) {
  if (c.attrString("auto_pad", "NOTSET") == "SAME_UPPER" && anyAbove(w.dilations, 1))
    c.noteDifference("pool-same-dilated");
}

void importMaxPool(NodeContext &c) {
  Val x = c.operand(0);
  Window w = windowOf(c, x.dims());
  noteWindow(c, w);
  if (c.attrString("auto_pad", "NOTSET") == "SAME_LOWER" && anyAbove(w.strides, 1))
    c.noteDifference("maxpool-same-lower");
  if (c.wants(1) && llvm::any_of(w.low, [](Dim pad) { return !pad.is(0); }))
    c.noteDifference("maxpool-padded-indices");
  c.result(0, pool(c.e, Pooling::max, x, w));
  if (!c.wants(1))
    return;
  c.result(1, argMaxPool(c.e, x, w, c.attrInt("storage_order", 0) != 0));
}

void importAveragePool(NodeContext &c) {
  Val x = c.operand(0);
  Window w = windowOf(c, x.dims());
  noteWindow(c, w);
  c.result(pool(c.e, Pooling::average, x, w, c.attrInt("count_include_pad", 0) != 0));
}

/// |x| ** p, and the p-th root of a sum of them.
Val power(Emitter &e, const Val &x, double p) {
  if (p == 1)
    return e.emit<AbsOp>({x});
  return p == 2 ? e.mul(x, x) : e.emit<PowOp>({e.emit<AbsOp>({x}), e.scalarLike(x, p)});
}
Val root(Emitter &e, const Val &x, double p) {
  if (p == 1)
    return x;
  return p == 2 ? e.emit<SqrtOp>({x}) : e.emit<PowOp>({x, e.scalarLike(x, 1 / p)});
}

/// The exponent: a float in version 1.
double exponentOf(NodeContext &c) {
  double p = c.since() == 1 ? c.attrFloat("p", 2) : static_cast<double>(c.attrInt("p", 2));
  c.requireAttr(p > 0, "p must be positive");
  return p;
}

void importLpPool(NodeContext &c) {
  Val x = c.operand(0);
  double p = exponentOf(c);
  Window w = windowOf(c, x.dims());
  if (llvm::any_of(w.ceilExtra, [](Dim extra) { return !extra.is(0); }))
    c.noteDifference("lppool-ceil");
  Val sum = pool(c.e, Pooling::sum, power(c.e, widened(c.e, x), p), w);
  c.result(c.e.cast(root(c.e, sum, p), x.dtype()));
}

std::vector<int64_t> spatialAxes(NodeContext &c, const Val &x) {
  c.requireShape(x.rank() >= 2, "expected rank 2 or more");
  std::vector<int64_t> axes;
  for (int64_t i = 2; i < x.rank(); ++i)
    axes.push_back(i);
  return axes;
}

template <Reduction kind> void global(NodeContext &c) {
  Val x = c.operand(0);
  c.result(c.e.reduce(kind, x, spatialAxes(c, x), true));
}

void importGlobalLpPool(NodeContext &c) {
  Val x = c.operand(0);
  double p = exponentOf(c);
  Val sum = c.e.reduce(Reduction::sum, power(c.e, widened(c.e, x), p), spatialAxes(c, x), true);
  c.result(c.e.cast(root(c.e, sum, p), x.dtype()));
}

void importMaxUnpool(NodeContext &c) {
  Val x = c.operand(0), indices = c.cast64(1);
  Window w = windowOf(c, x.dims());
  c.requireShape(mayEqual(indices.dims(), x.dims()), "the indices must have the input's shape");
  Dims inferred{x.extent(0), x.extent(1)};
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    inferred.push_back((x.extent(i + 2) - 1) * w.strides[i] + w.kernel[i] - w.low[i] - w.high[i]);
    c.requireShape(inferred.back().valueOr(0) >= 0, "the pads exceed the result");
  }
  if (c.has(2)) {
    Dims wanted = c.sizes(2, "output shape", c.declaredShape(), x.rank());
    c.requireShape(wanted.size() == inferred.size(), "the output shape has the wrong length");
    if (wanted != inferred)
      c.noteDifference("maxunpool-shape");
    if (c.isFromPytorch())
      inferred = wanted;
  }
  Dim count = elementsOf(c.e.typeOf(x.dtype(), inferred));
  Val zeros = c.e.splat(x.dtype(), {count}, 0);
  Val at = c.e.reshape(indices, {x.elements()});
  Val flat = scatterElements(c.e, zeros, at, c.e.reshape(x, {x.elements()}), 0, ScatterMode::replace);
  Val y = c.e.reshape(flat, inferred);
  if (c.has(2)) { // indices count in the inferred shape; a larger one is padded
                  // at the end
    Dims wanted = c.sizes(2, "output shape", c.declaredShape(), x.rank());
    c.requireShape(wanted.size() == inferred.size(), "the output shape has the wrong length");
    Dims low(wanted.size(), 0), high;
    for (size_t i = 0; i < wanted.size(); ++i) {
      high.push_back(wanted[i] - inferred[i]);
      c.requireShape(high.back().valueOr(0) >= 0, "the output shape is smaller than what the indices count in");
    }
    y = c.e.pad(y, c.e.scalarLike(y, 0), low, high);
  }
  c.result(y);
}

} // namespace

std::vector<OpRows> poolOps() {
  using namespace types;
  return {
      {"MaxPool", {1}, ".>1", importMaxPool, "auto_pad,kernel_shape,pads,strides", {Float}},
      {"MaxPool", {8}, ".>2", importMaxPool, "auto_pad,kernel_shape,pads,storage_order,strides", {Float}},
      {"MaxPool",
       {10, 11, 12, 22},
       ".>2",
       importMaxPool,
       "auto_pad,ceil_mode,dilations,kernel_shape,pads,storage_order,strides",
       {Float | Byte}},
      {"AveragePool", {1}, ".>1", importAveragePool, "auto_pad,kernel_shape,pads,strides", {Float}},
      {"AveragePool", {7}, ".>1", importAveragePool, "auto_pad,count_include_pad,kernel_shape,pads,strides", {Float}},
      {"AveragePool",
       {10, 11},
       ".>1",
       importAveragePool,
       "auto_pad,ceil_mode,count_include_pad,kernel_shape,pads,strides",
       {Float}},
      {"AveragePool",
       {19, 22},
       ".>1",
       importAveragePool,
       "auto_pad,ceil_mode,count_include_pad,dilations,kernel_shape,pads,"
       "strides",
       {Float}},
      {"LpPool", {1}, ".>1", importLpPool, "auto_pad,kernel_shape,p=float,pads,strides", {Float}},
      {"LpPool", {2, 11}, ".>1", importLpPool, "auto_pad,kernel_shape,p,pads,strides", {Float}},
      {"LpPool", {18, 22}, ".>1", importLpPool, "auto_pad,ceil_mode,dilations,kernel_shape,p,pads,strides", {Float}},
      {"GlobalAveragePool", {1, 22}, ".>1", global<Reduction::mean>, "", {Float}},
      {"GlobalMaxPool", {1, 22}, ".>1", global<Reduction::max>, "", {Float}},
      {"GlobalLpPool", {1}, ".>1", importGlobalLpPool, "p=float", {Float}},
      {"GlobalLpPool", {2, 22}, ".>1", importGlobalLpPool, "p", {Float}},
      {"MaxUnpool", {9, 11, 22}, ".TT>1", importMaxUnpool, "kernel_shape,pads,strides", {Float, Index}},
  };
}

std::vector<Difference> poolDifferences() {
  return {
      {"pool-same-dilated", "MaxPool, AveragePool", "auto_pad SAME_UPPER and dilations", "one result for each stride",
       "as many results as without dilations, or fewer", "", "one result for each stride",
       "what the definition says of auto_pad", "", true},
      {"maxpool-same-lower", "MaxPool", "auto_pad SAME_LOWER and strides", "windows that are moved",
       "one result for each stride", "", "one result for each stride", "what the definition says of auto_pad", "",
       true},
      {"maxpool-padded-indices", "MaxPool", "the second result, with pads", "places counted wrong",
       "places in the input", "places in the input", "places in the input", "places outside of the input are of no use",
       "", true},
      {"maxpool-nan", "MaxPool", "NaN behind a number", "the largest number", "the largest number", "NaN", "NaN",
       "as Max"},
      {"maxpool-nan-index", "MaxPool", "the second result of a window with two NaN",
       "of the first number, or of a NaN that comes first", "of the first number, or of a NaN that comes first",
       "of the last NaN", "of the first NaN", "as ArgMax"},
      {"globalmaxpool-nan", "GlobalMaxPool", "NaN behind a number", "NaN", "the largest number", "NaN", "NaN",
       "as ReduceMax"},
      {"lppool-negative", "LpPool", "negative numbers and an odd p", "of absolute values", "of absolute values",
       "of the numbers", "of absolute values", "torch's exporters write lp_pool in other operators"},
      {"lppool-ceil", "LpPool", "ceil_mode with a last window that overhangs", "scaled up to a whole window",
       "of what the window has", "scaled up to a whole window", "of what the window has",
       "it is a norm of the window's elements", "", true},
      {"maxunpool-shape", "MaxUnpool", "an output shape larger than what the windows cover",
       "indices count in what the windows cover", "indices count in the output", "indices count in the output",
       "indices count in what the windows cover",
       "an official case of ONNX has it so; files of PyTorch mean what torch does", "indices count in the output",
       true},
      {"lppool-half", "LpPool", "f16 whose powers are beyond its range", "infinity", "the norm", "infinity", "the norm",
       "powers are taken in f32"},
  };
}

} // namespace dmxc::onnxfe
