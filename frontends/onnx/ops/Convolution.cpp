//===- Convolution.cpp - convolutions -------------------------------------===//
#include "LinearAlgebra.h"
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

void resolvePads(NodeContext &c, llvm::ArrayRef<Dim> spatial, Window &w) {
  std::string mode = c.attrString("auto_pad", "NOTSET");
  size_t axes = spatial.size();
  w.low = w.high = Dims(axes, 0);
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
    Dim out = Dim::ceilDiv(spatial[i], w.strides[i]), extent = (w.kernel[i] - 1) * w.dilations[i] + 1;
    Dim total = Dim::max(0, (out - 1) * w.strides[i] + extent - spatial[i]), half = Dim::floorDiv(total, 2);
    w.low[i] = mode == "SAME_UPPER" ? half : total - half;
    w.high[i] = total - w.low[i];
  }
}

/// ceil_mode as a larger `high`; a window that would start in the padding
/// behind the input does not count.
void resolveCeil(llvm::ArrayRef<Dim> spatial, Window &w) {
  for (size_t i = 0; i < spatial.size(); ++i) {
    Dim extent = (w.kernel[i] - 1) * w.dilations[i] + 1, room = spatial[i] + w.low[i] + w.high[i] - extent;
    if (room.valueOr(0) < 0)
      continue;
    // The windows there are when the last may overhang, but for one that starts at or behind spatial + low.
    Dim out = Dim::ceilDiv(room, w.strides[i]) + 1, starts = Dim::ceilDiv(spatial[i] + w.low[i], w.strides[i]);
    out = Dim::max(Dim::min(out, starts), out - 1);
    w.ceilExtra[i] = Dim::max(0, (out - 1) * w.strides[i] - room);
    w.high[i] += w.ceilExtra[i];
  }
}
} // namespace

Window windowOf(NodeContext &c, const Dims &shape, Dims kernel) {
  c.requireShape(shape.size() >= 3,
                 "expected rank 3 or more (batch, channels, spatial axes), not " + std::to_string(shape.size()));
  llvm::ArrayRef<Dim> spatial = llvm::ArrayRef<Dim>(shape).drop_front(2);
  for (Dim dim : spatial)
    c.requireShape(dim.valueOr(0) <= kMaxExtent, "a spatial dim is too large");
  Window w;
  w.kernel = kernel.empty() ? Dims(c.attrInts("kernel_shape", {})) : kernel;
  c.requireAttr(w.kernel.size() == spatial.size(), "'kernel_shape' has " + std::to_string(w.kernel.size()) +
                                                       " entries for " + std::to_string(spatial.size()) +
                                                       " spatial axes");
  if (std::optional<std::vector<int64_t>> given = c.attrInts("kernel_shape"); given && !kernel.empty()) {
    c.requireAttr(mayEqual(Dims(*given), kernel), "'kernel_shape' differs from the weights' shape");
    w.kernel = Dims(*given);
  }
  for (Dim size : w.kernel)
    c.requireAttr(size.valueOr(1) > 0 && size.valueOr(1) <= kMaxExtent, "the kernel has the size " + size.str());
  w.strides = perAxis(c, "strides", spatial.size(), 1, 1);
  w.dilations = perAxis(c, "dilations", spatial.size(), 1, 1);
  w.ceilExtra = Dims(spatial.size(), 0);
  resolvePads(c, spatial, w);
  if (c.attrInt("ceil_mode", 0))
    resolveCeil(spatial, w);
  return w;
}

llvm::SmallVector<mlir::NamedAttribute> windowAttributes(Emitter &e, const Window &window, bool ceilExtra) {
  Dims dynamic;
  llvm::SmallVector<mlir::NamedAttribute> attributes{
      e.attr("strides", window.strides), e.attr("dilations", window.dilations), e.attr("low", window.low, dynamic),
      e.attr("high", window.high, dynamic)};
  if (ceilExtra)
    attributes.push_back(e.attr("ceilExtra", window.ceilExtra, dynamic));
  e.addDims(attributes, dynamic);
  return attributes;
}

std::vector<int64_t> numbersOf(const Dims &dims) {
  std::vector<int64_t> numbers;
  for (Dim size : dims)
    numbers.push_back(*size.known());
  return numbers;
}

Val perChannel(Emitter &e, const Val &value, int64_t rank) {
  Dims shape(std::max<int64_t>(rank - 1, 1), 1);
  shape[0] = value.elements();
  return e.reshape(value, shape);
}

Val convolve(Emitter &e, Val x, const Val &weights, const Val &bias, const Window &window, int64_t groups) {
  Window w = window;
  for (size_t i = 0; i < w.low.size(); ++i) {
    // Only pads given as numbers are negative.
    int64_t front = std::max<int64_t>(-w.low[i].valueOr(0), 0), back = std::max<int64_t>(-w.high[i].valueOr(0), 0);
    if (!front && !back)
      continue;
    if (front + back > x.extent(i + 2).valueOr(INT64_MAX))
      fail("op-shape", "negative pads cut off more than the input has");
    x = e.sliceAxis(x, i + 2, front, x.extent(i + 2) - front - back);
    if (front)
      w.low[i] = 0;
    if (back)
      w.high[i] = 0;
  }
  llvm::SmallVector<mlir::NamedAttribute> attributes = windowAttributes(e, w);
  attributes.push_back(e.attr("groups", groups));
  Val y = e.emit<ConvOp>({x, weights}, attributes);
  return bias ? withBias(e, y, bias) : y;
}

Val withBias(Emitter &e, const Val &y, const Val &bias) {
  if (bias.rank() != 1 || !mayEqual(bias.extent(0), y.extent(1)))
    fail("op-shape", "the bias " + bias.describe() + " must have one number for each of the " + y.extent(1).str() +
                         " output channels");
  return e.add(y, perChannel(e, bias, y.rank()));
}

namespace {

Dims kernelOf(NodeContext &c, const Val &x, const Val &weights) {
  c.requireShape(x.rank() >= 3 && weights.rank() == x.rank(),
                 "input and weights must have one rank of 3 or more, not " + std::to_string(x.rank()) + " and " +
                     std::to_string(weights.rank()));
  return Dims(llvm::ArrayRef<Dim>(weights.dims()).drop_front(2));
}

void importConv(NodeContext &c) {
  Val x = c.operand(0), weights = c.operand(1);
  Window window = windowOf(c, x.dims(), kernelOf(c, x, weights));
  c.result(convolve(c.e, x, weights, c.optional(2), window, c.attrInt("group", 1)));
}

void importConvInteger(NodeContext &c) {
  Val x = widenedBytes(c.e, c.operand(0)), weights = widenedBytes(c.e, c.operand(1));
  Window window = windowOf(c, x.dims(), kernelOf(c, x, weights));
  if (Val zero = c.optional(2)) {
    c.requireShape(mayEqual(zero.elements(), 1), "the input's zero point must be one number");
    x = c.e.sub(x, c.e.reshape(c.e.cast(zero, DType::I32), {}));
  }
  if (Val zero = c.optional(3)) {
    zero = c.e.cast(zero, DType::I32);
    Dims shape(weights.rank(), 1);
    shape[0] = zero.elements();
    weights = c.e.sub(weights, c.e.reshape(zero, shape));
  }
  c.result(convolve(c.e, x, weights, Val(), window, c.attrInt("group", 1)));
}

/// Pads of a transposed convolution when output_shape or SAME asks for an
/// extent.
void resolveTransposedPads(NodeContext &c, llvm::ArrayRef<Dim> spatial, const std::vector<int64_t> &extra, Window &w) {
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
    Dim target = wanted ? Dim((*wanted)[i]) : spatial[i] * w.strides[i];
    c.requireAttr(target.valueOr(0) >= 0 && target.valueOr(0) <= kMaxExtent,
                  "'output_shape' has the entry " + target.str());
    Dim total = (spatial[i] - 1) * w.strides[i] + extra[i] + (w.kernel[i] - 1) * w.dilations[i] + 1 - target;
    // Where the result is longer than the windows reach, zeros stand at the end.
    Dim shared = Dim::max(total, 0), half = Dim::floorDiv(shared, 2);
    w.low[i] = mode == "SAME_UPPER" ? half : shared - half;
    w.high[i] = total - w.low[i];
  }
}

/// Whether a transposed convolution is computed phase by phase.
bool hasPhases(const Window &w) {
  bool numbers = llvm::all_of(w.kernel, [](Dim size) { return size.isStatic(); }) &&
                 llvm::all_of(w.low, [](Dim low) { return low.valueOr(-1) >= 0; });
  bool dense = llvm::all_of(w.dilations, [](int64_t dilation) { return dilation == 1; });
  return numbers && dense && llvm::any_of(w.strides, [](int64_t stride) { return stride > 1; });
}

/// Every stride-th tap makes results of one phase: a convolution of the input as it is, with channels for each phase,
/// which then take turns. `weights` [O, C/g, k..] are flipped; `out`: the result's spatial dims.
Val convolvePhases(Emitter &e, const Val &x, Val weights, const Window &w, const Dims &out, int64_t groups) {
  size_t axes = w.kernel.size();
  Window inner = w;
  inner.strides.assign(axes, 1);
  Dims front(axes + 2, 0), none(axes + 2, 0), split{weights.extent(0), weights.extent(1)}, starts{0, 0};
  Dims phased{x.extent(0), weights.extent(0)}, joined = phased, first(axes + 2, 0), cut = phased;
  std::vector<int64_t> steps{1, 1}, gather{0}, turns{0, 1};
  for (size_t i = 0; i < axes; ++i) {
    int64_t stride = w.strides[i], size = *w.kernel[i].known(), taps = (size + stride - 1) / stride;
    Dim count = Dim::ceilDiv(w.low[i] + out[i], stride);
    front[i + 2] = taps * stride - size;
    split.append({taps, stride});
    starts.append({0, stride - 1});
    steps.insert(steps.end(), {1, -1});
    gather.push_back(3 + 2 * i);
    phased.push_back(stride);
    joined.push_back(count * stride);
    turns.insert(turns.end(), {static_cast<int64_t>(2 + axes + i), static_cast<int64_t>(2 + i)});
    inner.kernel[i] = taps;
    inner.low[i] = taps - 1;
    inner.high[i] = count - x.extent(i + 2);
    first[i + 2] = w.low[i];
    cut.push_back(out[i]);
  }
  gather.push_back(1);
  Dims panel{weights.extent(0), weights.extent(1)};
  for (size_t i = 0; i < axes; ++i) {
    gather.push_back(2 + 2 * i);
    panel[0] = panel[0] * w.strides[i];
    panel.push_back(inner.kernel[i]);
    phased.push_back(Dim::ceilDiv(w.low[i] + out[i], w.strides[i]));
  }
  weights = e.reshape(e.pad(weights, e.scalarLike(weights, 0), front, none), split);
  weights = e.reshape(e.transpose(e.slice(weights, starts, split, steps), gather), panel);
  Val y = e.reshape(convolve(e, x, weights, Val(), inner, groups), phased);
  y = e.reshape(e.transpose(y, turns), joined);
  return e.slice(y, first, cut, std::vector<int64_t>(axes + 2, 1));
}

/// A convolution with the flipped weights: of the phases, or of the input with zeros between its elements.
void importConvTranspose(NodeContext &c) {
  Val x = c.operand(0), weights = c.operand(1);
  Window w = windowOf(c, x.dims(), kernelOf(c, x, weights));
  size_t axes = w.kernel.size();
  std::vector<int64_t> extra = perAxis(c, "output_padding", axes, 0, 0);
  resolveTransposedPads(c, llvm::ArrayRef<Dim>(x.dims()).drop_front(2), extra, w);
  int64_t groups = c.attrInt("group", 1);
  Dim in = x.extent(1), out = weights.extent(1);
  c.requireShape(groups > 0 && mayEqual(weights.extent(0), in) && in.valueOr(0) % groups == 0,
                 "the weights must have the " + in.str() + " input channels as dim 0, divisible by the groups");

  // [C, O/g, k..] -> [g, C/g, O/g, k..] -> [g, O/g, C/g, k..] -> [O, C/g, k..],
  // then flipped.
  Dims split{groups, Dim::floorDiv(weights.extent(0), groups), out}, joined{out * groups, split[1]};
  std::vector<int64_t> swap{0, 2, 1};
  Dims starts(weights.rank(), 0);
  Shape steps(weights.rank(), 1);
  for (size_t i = 0; i < axes; ++i) {
    split.push_back(w.kernel[i]);
    joined.push_back(w.kernel[i]);
    swap.push_back(i + 3);
    starts[i + 2] = w.kernel[i] - 1;
    steps[i + 2] = -1;
  }
  weights = c.e.slice(c.e.reshape(c.e.transpose(c.e.reshape(weights, split), swap), joined), starts, joined, steps);

  if (hasPhases(w)) {
    Dims out;
    for (size_t i = 0; i < axes; ++i)
      out.push_back((x.extent(i + 2) - 1) * w.strides[i] + w.kernel[i] - w.low[i] - w.high[i] + extra[i]);
    Val y = convolvePhases(c.e, x, weights, w, out, groups);
    return c.result(c.has(2) ? withBias(c.e, y, c.operand(2)) : y);
  }
  Shape interior(x.rank(), 0);
  Dims none(x.rank(), 0);
  for (size_t i = 0; i < axes; ++i) {
    interior[i + 2] = w.strides[i] - 1;
    Dim reach = (w.kernel[i] - 1) * w.dilations[i];
    w.low[i] = reach - w.low[i];
    w.high[i] = reach - w.high[i] + extra[i];
    w.strides[i] = 1;
  }
  x = c.e.pad(x, c.e.scalarLike(x, 0), none, none, interior);
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
