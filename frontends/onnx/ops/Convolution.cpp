//===- Convolution.cpp - convolutions -------------------------------------===//
#include "Window.h"

#include <algorithm>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {

namespace {
/// Far beyond any image; keeps the arithmetic below from overflowing.
constexpr int64_t kMaxExtent = int64_t(1) << 30;

std::vector<int64_t> perAxis(NodeContext &c, const char *name, size_t axes, int64_t otherwise, int64_t least) {
  std::vector<int64_t> values = c.attrInts(name, std::vector<int64_t>(axes, otherwise));
  c.requireAttr(values.size() == axes, std::string("'") + name + "' has " + std::to_string(values.size()) +
                                           " entries for " + std::to_string(axes) + " spatial axes");
  for (int64_t value : values)
    c.requireAttr(value >= least && value <= kMaxExtent,
                  std::string("'") + name + "' has the entry " + std::to_string(value));
  return values;
}

void resolvePads(NodeContext &c, llvm::ArrayRef<int64_t> spatial, Window &w) {
  std::string mode = c.attrString("auto_pad", "NOTSET");
  size_t axes = spatial.size();
  w.low.assign(axes, 0);
  w.high.assign(axes, 0);
  if (mode == "NOTSET" || mode.empty()) {
    std::vector<int64_t> pads = c.attrInts("pads", std::vector<int64_t>(2 * axes, 0));
    c.requireAttr(pads.size() == 2 * axes, "'pads' has " + std::to_string(pads.size()) + " entries for " +
                                               std::to_string(axes) + " spatial axes");
    for (int64_t pad : pads)
      c.requireAttr(std::abs(pad) <= kMaxExtent, "'pads' has the entry " + std::to_string(pad));
    std::copy_n(pads.begin(), axes, w.low.begin());
    std::copy_n(pads.begin() + axes, axes, w.high.begin());
    return;
  }
  if (mode == "VALID")
    return;
  c.requireAttr(mode == "SAME_UPPER" || mode == "SAME_LOWER", "auto_pad '" + mode + "' is unknown");
  for (size_t i = 0; i < axes; ++i) {
    int64_t out = (spatial[i] + w.strides[i] - 1) / w.strides[i];
    int64_t total =
        std::max<int64_t>(0, (out - 1) * w.strides[i] + w.dilations[i] * (w.kernel[i] - 1) + 1 - spatial[i]);
    w.low[i] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    w.high[i] = total - w.low[i];
  }
}

/// ceil_mode as a larger `high`; a window that would start in the padding
/// behind the input does not count.
void resolveCeil(llvm::ArrayRef<int64_t> spatial, Window &w) {
  for (size_t i = 0; i < spatial.size(); ++i) {
    int64_t extent = w.dilations[i] * (w.kernel[i] - 1) + 1, room = spatial[i] + w.low[i] + w.high[i] - extent;
    if (room < 0)
      continue;
    int64_t out = (room + w.strides[i] - 1) / w.strides[i] + 1;
    if ((out - 1) * w.strides[i] >= spatial[i] + w.low[i])
      --out;
    w.ceilExtra[i] = std::max<int64_t>(0, (out - 1) * w.strides[i] - room);
    w.high[i] += w.ceilExtra[i];
  }
}
} // namespace

Window windowOf(NodeContext &c, llvm::ArrayRef<int64_t> shape, std::vector<int64_t> kernel) {
  c.requireShape(shape.size() >= 3,
                 "expected rank 3 or more (batch, channels, spatial axes), not " + std::to_string(shape.size()));
  llvm::ArrayRef<int64_t> spatial = shape.drop_front(2);
  for (int64_t dim : spatial)
    c.requireShape(dim <= kMaxExtent, "a spatial dim is too large");
  Window w;
  w.kernel = kernel.empty() ? c.attrInts("kernel_shape", {}) : kernel;
  c.requireAttr(w.kernel.size() == spatial.size(), "'kernel_shape' has " + std::to_string(w.kernel.size()) +
                                                       " entries for " + std::to_string(spatial.size()) +
                                                       " spatial axes");
  if (std::optional<std::vector<int64_t>> given = c.attrInts("kernel_shape"); given && !kernel.empty())
    c.requireAttr(*given == kernel, "'kernel_shape' differs from the weights' shape");
  for (int64_t size : w.kernel)
    c.requireAttr(size > 0 && size <= kMaxExtent, "the kernel has the size " + std::to_string(size));
  w.strides = perAxis(c, "strides", spatial.size(), 1, 1);
  w.dilations = perAxis(c, "dilations", spatial.size(), 1, 1);
  w.ceilExtra.assign(spatial.size(), 0);
  resolvePads(c, spatial, w);
  if (c.attrInt("ceil_mode", 0))
    resolveCeil(spatial, w);
  return w;
}

Val perChannel(Emitter &e, const Val &value, int64_t rank) {
  Shape shape(std::max<int64_t>(rank - 1, 1), 1);
  shape[0] = value.numElements();
  return e.reshape(value, shape);
}

Val convolve(Emitter &e, Val x, const Val &weights, const Val &bias, const Window &window, int64_t groups) {
  std::vector<int64_t> low = window.low, high = window.high;
  for (size_t i = 0; i < low.size(); ++i) {
    int64_t front = std::max<int64_t>(-low[i], 0), back = std::max<int64_t>(-high[i], 0);
    if (!front && !back)
      continue;
    if (front + back > x.dim(i + 2))
      fail("op-shape", "negative pads cut off more than the input has");
    x = e.sliceAxis(x, i + 2, front, x.dim(i + 2) - front - back);
    low[i] = std::max<int64_t>(low[i], 0);
    high[i] = std::max<int64_t>(high[i], 0);
  }
  Val y = e.emit<ConvOp>({x, weights}, {e.attr("strides", window.strides), e.attr("dilations", window.dilations),
                                        e.attr("low", low), e.attr("high", high), e.attr("groups", groups)});
  if (!bias)
    return y;
  if (bias.rank() != 1 || bias.dim(0) != y.dim(1))
    fail("op-shape", "the bias " + bias.describe() + " must have one number for each of the " +
                         std::to_string(y.dim(1)) + " output channels");
  return e.add(y, perChannel(e, bias, y.rank()));
}

namespace {

std::vector<int64_t> kernelOf(NodeContext &c, const Val &x, const Val &weights) {
  c.requireShape(x.rank() >= 3 && weights.rank() == x.rank(),
                 "input and weights must have one rank of 3 or more, not " + std::to_string(x.rank()) + " and " +
                     std::to_string(weights.rank()));
  return std::vector<int64_t>(weights.shape().begin() + 2, weights.shape().end());
}

void importConv(NodeContext &c) {
  Val x = c.operand(0), weights = c.operand(1);
  Window window = windowOf(c, x.shape(), kernelOf(c, x, weights));
  c.result(convolve(c.e, x, weights, c.optional(2), window, c.attrInt("group", 1)));
}

void importConvInteger(NodeContext &c) {
  Val x = c.e.cast(c.operand(0), DType::I32), weights = c.e.cast(c.operand(1), DType::I32);
  Window window = windowOf(c, x.shape(), kernelOf(c, x, weights));
  if (Val zero = c.optional(2)) {
    c.requireShape(zero.numElements() == 1, "the input's zero point must be one number");
    x = c.e.sub(x, c.e.reshape(c.e.cast(zero, DType::I32), {}));
  }
  if (Val zero = c.optional(3)) {
    zero = c.e.cast(zero, DType::I32);
    Shape shape(weights.rank(), 1);
    shape[0] = zero.numElements();
    weights = c.e.sub(weights, c.e.reshape(zero, shape));
  }
  c.result(convolve(c.e, x, weights, Val(), window, c.attrInt("group", 1)));
}

/// Pads of a transposed convolution when output_shape or SAME asks for an
/// extent.
void resolveTransposedPads(NodeContext &c, llvm::ArrayRef<int64_t> spatial, const std::vector<int64_t> &extra,
                           Window &w) {
  std::string mode = c.attrString("auto_pad", "NOTSET");
  std::optional<std::vector<int64_t>> wanted = c.attrInts("output_shape");
  bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  if (!wanted && !same)
    return;
  // Some exporters write the whole shape instead of the spatial part.
  if (wanted && wanted->size() == spatial.size() + 2)
    wanted->erase(wanted->begin(), wanted->begin() + 2);
  c.requireAttr(!wanted || wanted->size() == spatial.size(), "'output_shape' has the wrong length");
  for (size_t i = 0; i < spatial.size(); ++i) {
    int64_t target = wanted ? (*wanted)[i] : spatial[i] * w.strides[i];
    c.requireAttr(target >= 0 && target <= kMaxExtent, "'output_shape' has the entry " + std::to_string(target));
    int64_t total = w.strides[i] * (spatial[i] - 1) + extra[i] + w.dilations[i] * (w.kernel[i] - 1) + 1 - target;
    if (total < 0) // the result is longer than the windows reach: zeros at the end
      w.low[i] = 0;
    else
      w.low[i] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    w.high[i] = total - w.low[i];
  }
}

/// A convolution of the input with zeros between its elements and the flipped
/// weights.
void importConvTranspose(NodeContext &c) {
  Val x = c.operand(0), weights = c.operand(1);
  Window w = windowOf(c, x.shape(), kernelOf(c, x, weights));
  size_t axes = w.kernel.size();
  std::vector<int64_t> extra = perAxis(c, "output_padding", axes, 0, 0);
  resolveTransposedPads(c, x.shape().drop_front(2), extra, w);
  int64_t groups = c.attrInt("group", 1), in = x.dim(1), out = weights.dim(1);
  c.requireShape(groups > 0 && weights.dim(0) == in && in % groups == 0,
                 "the weights must have the " + std::to_string(in) +
                     " input channels as dim 0, divisible by the groups");

  Shape interior(x.rank(), 0), none(x.rank(), 0);
  for (size_t i = 0; i < axes; ++i)
    interior[i + 2] = w.strides[i] - 1;
  x = c.e.pad(x, c.e.scalarLike(x, 0), none, none, interior);

  // [C, O/g, k..] -> [g, C/g, O/g, k..] -> [g, O/g, C/g, k..] -> [O, C/g, k..],
  // then flipped.
  Shape split{groups, in / groups, out}, joined{groups * out, in / groups};
  std::vector<int64_t> swap{0, 2, 1};
  Shape starts(weights.rank(), 0), steps(weights.rank(), 1);
  for (size_t i = 0; i < axes; ++i) {
    split.push_back(w.kernel[i]);
    joined.push_back(w.kernel[i]);
    swap.push_back(i + 3);
    starts[i + 2] = w.kernel[i] - 1;
    steps[i + 2] = -1;
  }
  weights = c.e.slice(c.e.reshape(c.e.transpose(c.e.reshape(weights, split), swap), joined), starts, joined, steps);

  for (size_t i = 0; i < axes; ++i) {
    int64_t reach = w.dilations[i] * (w.kernel[i] - 1);
    w.low[i] = reach - w.low[i];
    w.high[i] = reach - w.high[i] + extra[i];
    w.strides[i] = 1;
  }
  c.result(convolve(c.e, x, weights, c.optional(2), w, groups));
}

} // namespace

std::vector<OpRows> convolutionOps() {
  using namespace types;
  const char *attributes = "auto_pad,dilations,group,kernel_shape,pads,strides";
  return {
      {"Conv", {1, 11, 22}, importConv, attributes, {Float}},
      {"ConvInteger", {10}, importConvInteger, attributes, {Byte}},
      {"ConvTranspose",
       {1, 11, 22},
       importConvTranspose,
       "auto_pad,dilations,group,kernel_shape,output_padding,output_shape,pads,"
       "strides",
       {Float}},
  };
}

} // namespace dmxc::onnxfe
