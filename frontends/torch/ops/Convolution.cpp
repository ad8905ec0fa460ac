//===- Convolution.cpp - convolutions and their gradients -----------------===//
#include "Windows.h"

#include <algorithm>

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

Window windowOf(AtenContext &c, const Val &weights) {
  size_t axes = weights.rank() - 2;
  Window w;
  w.kernel = Dims(llvm::ArrayRef<Dim>(weights.dims()).drop_front(2));
  w.strides = c.integers("stride", axes, 1);
  w.dilations = c.integers("dilation", axes, 1);
  w.low = Dims(axes, 0);
  if (c.arg("padding").kind == Arg::Kind::Int)
    w.low = Dims(c.integers("padding", axes, 0));
  w.high = w.low;
  w.ceilExtra = Dims(axes, 0);
  requireKernel(w.kernel);
  requireEntries("stride", w.strides, 1);
  requireEntries("dilation", w.dilations, 1);
  requireEntries("padding", numbersOf(w.low), 0);
  return w;
}

/// "same" and "valid".
void resolveNamedPadding(AtenContext &c, Window &w) {
  std::string mode = c.text("padding");
  c.require(mode == "same" || mode == "valid", "the padding '" + mode + "' is unknown");
  for (size_t i = 0; mode == "same" && i < w.kernel.size(); ++i) {
    c.require(w.strides[i] == 1, "the padding 'same' needs strides of 1");
    Dim total = (w.kernel[i] - 1) * w.dilations[i];
    w.low[i] = Dim::floorDiv(total, 2);
    w.high[i] = total - w.low[i];
  }
}

Val transposed(AtenContext &c, const Val &x, const Val &weights, const Val &bias, const Window &w,
               const std::vector<int64_t> &extra, int64_t groups) {
  requireSpatial(llvm::ArrayRef<Dim>(x.dims()).drop_front(2));
  requireEntries("padding", numbersOf(w.high), -kMaxExtent);
  requireEntries("output_padding", extra, 0);
  return convolveTransposed(c.e, x, weights, bias, w, extra, groups);
}

void convolve(AtenContext &c, bool isTransposed) {
  Val weights = c.tensor("weight"), bias = c.optional("bias");
  c.requireShape(weights.rank() >= 3, "the weights need a spatial axis");
  size_t axes = weights.rank() - 2;
  auto [x, added] = withBatch(c, c.tensor("input"), axes);
  Window w = windowOf(c, weights);
  if (c.arg("padding").kind == Arg::Kind::String)
    resolveNamedPadding(c, w);
  Val y = isTransposed ? transposed(c, x, weights, bias, w, c.integers("output_padding", axes, 0), c.integer("groups"))
                       : frontend::convolve(c.e, x, weights, bias, w, c.integer("groups"));
  c.result(withoutBatch(c.e, y, added));
}
void importConvolution(AtenContext &c) { convolve(c, c.flag("transposed")); }
void importConv(AtenContext &c) { convolve(c, false); }
void importConvTransposed(AtenContext &c) { convolve(c, true); }

//===--- Gradients --------------------------------------------------------------------===//

/// By the input: the transposed convolution of the gradient; strides leave positions at the end that no window reached.
Val gradientOfInput(AtenContext &c, const Val &g, const Val &x, const Val &weights, const Window &w, int64_t groups) {
  std::vector<int64_t> extra;
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    Dim reached = (g.extent(i + 2) - 1) * w.strides[i] - w.low[i] - w.high[i] + (w.kernel[i] - 1) * w.dilations[i] + 1;
    std::optional<int64_t> rest = (x.extent(i + 2) - reached).known();
    c.requireShape(rest && *rest >= 0, "the gradient's shape does not fit the input's");
    extra.push_back(*rest);
  }
  return transposed(c, g, weights, Val(), w, extra, groups);
}

/// By the weights: input and gradient convolved over the batch, one group after the other.
Val gradientOfWeights(AtenContext &c, const Val &g, const Val &x, const Val &weights, const Window &w, int64_t groups) {
  auto swapped = [&](const Val &v, int64_t group) { // [n, c, ..] -> [c of the group, n, ..]
    Dim size = Dim::floorDiv(v.extent(1), groups);
    std::vector<int64_t> order = axesFrom(0, v.rank());
    std::swap(order[0], order[1]);
    return c.e.transpose(c.e.sliceAxis(v, 1, size * group, size), order);
  };
  Window inner = w;
  inner.kernel = Dims(llvm::ArrayRef<Dim>(g.dims()).drop_front(2));
  std::swap(inner.strides, inner.dilations);
  std::vector<Val> parts;
  for (int64_t group = 0; group < groups; ++group) {
    Val y = frontend::convolve(c.e, swapped(x, group), swapped(g, group), Val(), inner, 1); // [c/g, o/g, k.. or more]
    Dims sizes = y.dims();
    for (size_t i = 0; i < w.kernel.size(); ++i)
      sizes[i + 2] = w.kernel[i];
    y = c.e.slice(y, Dims(y.rank(), 0), sizes, std::vector<int64_t>(y.rank(), 1));
    std::vector<int64_t> order = axesFrom(0, y.rank());
    std::swap(order[0], order[1]);
    parts.push_back(c.e.transpose(y, order));
  }
  return c.e.expectDims(c.e.concat(parts, 0), weights.dims());
}

void importConvolutionBackward(AtenContext &c) {
  Val g = c.tensor("grad_output"), x = c.tensor("input"), weights = c.tensor("weight");
  c.requireShape(x.rank() >= 3 && g.rank() == x.rank() && weights.rank() == x.rank(), "expected one rank of 3 or more");
  c.require(!c.flag("transposed"), "the gradient of a transposed convolution is not known here");
  std::vector<double> mask = c.numbers("output_mask");
  c.require(mask.size() == 3, "output_mask must have three bools");
  int64_t groups = c.integer("groups");
  c.require(groups > 0 && groups <= 4096, "there must be 1 to 4096 groups");
  Window w = windowOf(c, weights);
  if (mask[0] != 0)
    c.result(0, gradientOfInput(c, g, x, weights, w, groups));
  if (mask[1] != 0)
    c.result(1, gradientOfWeights(c, g, x, weights, w, groups));
  std::vector<int64_t> axes = axesFrom(1, g.rank());
  axes[0] = 0;
  for (size_t i = 1; i < axes.size(); ++i)
    axes[i] = i + 1;
  if (mask[2] != 0)
    c.result(2, sumOver(c.e, g, axes, false));
}

/// Columns [n, c * kernel, out] added up to an image.
void importCol2im(AtenContext &c) {
  Val x = c.tensor("self");
  bool added = x.rank() == 2;
  if (added)
    x = c.e.reshape(x, {1, x.extent(0), x.extent(1)});
  c.requireShape(x.rank() == 3, "expected rank 2 or 3");
  Window w;
  w.kernel = Dims(c.integers("kernel_size", 2, 1));
  w.strides = c.integers("stride", 2, 1);
  w.dilations = c.integers("dilation", 2, 1);
  w.low = w.high = Dims(c.integers("padding", 2, 0));
  requireKernel(w.kernel);
  requireEntries("stride", w.strides, 1);
  requireEntries("dilation", w.dilations, 1);
  requireEntries("padding", numbersOf(w.low), 0);
  Dims sizes = c.dims("output_size");
  c.requireShape(sizes.size() == 2, "output_size must have two numbers");
  Dims split{x.extent(0), Dim::floorDiv(x.extent(1), w.kernel[0] * w.kernel[1]), w.kernel[0], w.kernel[1]};
  for (size_t i = 0; i < 2; ++i)
    split.push_back(windowExtent(sizes[i], w.kernel[i], w.strides[i], w.dilations[i], w.low[i], w.high[i]));
  c.result(withoutBatch(c.e, addWindows(c, c.e.reshape(x, split), w, sizes), added));
}

} // namespace

std::vector<AtenRow> convolutionOps() {
#define CONV(n, more)                                                                                                  \
  "Tensor input, Tensor weight, Tensor? bias=None, int[" #n "] stride=1, " more "int[" #n "] dilation=1"
  return {
      {"convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, SymInt[] padding, int[] dilation, bool "
       "transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
       importConvolution},
      {"conv1d(" CONV(1, "SymInt[1] padding=0, ") ", SymInt groups=1) -> Tensor", importConv},
      {"conv2d(" CONV(2, "SymInt[2] padding=0, ") ", SymInt groups=1) -> Tensor", importConv},
      {"conv3d(" CONV(3, "SymInt[3] padding=0, ") ", SymInt groups=1) -> Tensor", importConv},
      {"_convolution_mode(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, str padding, SymInt[] dilation, "
       "SymInt groups) -> Tensor",
       importConv},
      {"conv1d.padding(" CONV(1, "str padding=\"valid\", ") ", SymInt groups=1) -> Tensor", importConv},
      {"conv2d.padding(" CONV(2, "str padding=\"valid\", ") ", SymInt groups=1) -> Tensor", importConv},
      {"conv3d.padding(" CONV(3, "str padding=\"valid\", ") ", SymInt groups=1) -> Tensor", importConv},
      {"conv_transpose1d(" CONV(1, "SymInt[1] padding=0, SymInt[1] output_padding=0, SymInt groups=1, ") ") -> Tensor",
       importConvTransposed},
      {"conv_transpose2d.input(" CONV(
           2, "SymInt[2] padding=0, SymInt[2] output_padding=0, SymInt groups=1, ") ") -> Tensor",
       importConvTransposed},
      {"conv_transpose3d.input(" CONV(
           3, "SymInt[3] padding=0, SymInt[3] output_padding=0, SymInt groups=1, ") ") -> Tensor",
       importConvTransposed},
      {"convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, int[] stride, "
       "SymInt[] "
       "padding, int[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> "
       "(Tensor, "
       "Tensor, Tensor)",
       importConvolutionBackward, "transposed=False"},
      {"col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) "
       "-> "
       "Tensor",
       importCol2im},
  };
#undef CONV
}

} // namespace dmxc::torchfe
