//===- Convolution.cpp - convolutions -------------------------------------===//
#include "../Differences.h"
#include "LinearAlgebra.h"
#include "Window.h"

#include <algorithm>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {

namespace {
std::vector<int64_t> perAxis(NodeContext &c, const char *name, size_t axes, int64_t otherwise, int64_t least) {
  std::vector<int64_t> values = c.attrInts(name, std::vector<int64_t>(axes, otherwise));
  c.requireAttr(values.size() == axes, std::string("'") + name + "' has " + std::to_string(values.size()) +
                                           " entries for " + std::to_string(axes) + " spatial axes");
  requireEntries(name, values, least);
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
    requireEntries("pads", pads, -kMaxExtent);
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

/// ceil_mode as a larger `high`.
void resolveCeil(llvm::ArrayRef<Dim> spatial, Window &w) {
  for (size_t i = 0; i < spatial.size(); ++i) {
    Dim extent = (w.kernel[i] - 1) * w.dilations[i] + 1, room = spatial[i] + w.low[i] + w.high[i] - extent;
    if (room.valueOr(0) < 0)
      continue;
    w.ceilExtra[i] = ceilExtraOf(spatial[i], w.low[i], room, w.strides[i]);
    w.high[i] += w.ceilExtra[i];
  }
}
} // namespace

Window windowOf(NodeContext &c, const Dims &shape, const Dims &kernel) {
  c.requireShape(shape.size() >= 3,
                 "expected rank 3 or more (batch, channels, spatial axes), not " + std::to_string(shape.size()));
  llvm::ArrayRef<Dim> spatial = llvm::ArrayRef<Dim>(shape).drop_front(2);
  requireSpatial(spatial);
  Window w;
  w.kernel = kernel.empty() ? Dims(c.attrInts("kernel_shape", {})) : kernel;
  c.requireAttr(w.kernel.size() == spatial.size(), "'kernel_shape' has " + std::to_string(w.kernel.size()) +
                                                       " entries for " + std::to_string(spatial.size()) +
                                                       " spatial axes");
  if (std::optional<std::vector<int64_t>> given = c.attrInts("kernel_shape"); given && !kernel.empty()) {
    c.requireAttr(mayEqual(Dims(*given), kernel), "'kernel_shape' differs from the weights' shape");
    w.kernel = Dims(*given);
  }
  requireKernel(w.kernel);
  w.strides = perAxis(c, "strides", spatial.size(), 1, 1);
  w.dilations = perAxis(c, "dilations", spatial.size(), 1, 1);
  w.ceilExtra = Dims(spatial.size(), 0);
  resolvePads(c, spatial, w);
  if (c.attrInt("ceil_mode", 0))
    resolveCeil(spatial, w);
  return w;
}

namespace {

Dims kernelOf(NodeContext &c, const Val &x, const Val &weights) {
  c.requireShape(x.rank() >= 3 && weights.rank() == x.rank(),
                 "input and weights must have one rank of 3 or more, not " + std::to_string(x.rank()) + " and " +
                     std::to_string(weights.rank()));
  return Dims(llvm::ArrayRef<Dim>(weights.dims()).drop_front(2));
}

} // namespace

Val convolution(NodeContext &c, const Val &x, const Val &weights, const Val &bias) {
  Window window = windowOf(c, x.dims(), kernelOf(c, x, weights));
  return convolve(c.e, x, weights, bias, window, c.attrInt("group", 1));
}

namespace {

void importConv(NodeContext &c) { c.result(convolution(c, c.operand(0), c.operand(1), c.optional(2))); }

void importConvInteger(NodeContext &c) {
  Val x = widenedBytes(c.e, c.operand(0)), weights = widenedBytes(c.e, c.operand(1));
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
  c.result(convolution(c, x, weights, Val()));
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

} // namespace

Val transposedConvolution(NodeContext &c, const Val &x, const Val &weights, const Val &bias, const Dims &pads) {
  Window w = windowOf(c, x.dims(), kernelOf(c, x, weights));
  size_t axes = w.kernel.size();
  std::vector<int64_t> extra = perAxis(c, "output_padding", axes, 0, 0);
  resolveTransposedPads(c, llvm::ArrayRef<Dim>(x.dims()).drop_front(2), extra, w);
  for (size_t i = 0; i < axes && !pads.empty(); ++i) {
    w.low[i] = pads[i];
    w.high[i] = pads[axes + i];
  }
  return convolveTransposed(c.e, x, weights, bias, w, extra, c.attrInt("group", 1));
}

namespace {

void importConvTranspose(NodeContext &c) {
  c.result(transposedConvolution(c, c.operand(0), c.operand(1), c.optional(2)));
}

} // namespace

std::vector<OpRows> convolutionOps() {
  using namespace types;
  const char *attributes = "auto_pad,dilations,group,kernel_shape,pads,strides";
  return {
      {"Conv", {1, 11, 22}, "TTT>1", importConv, attributes, {Float}},
      {"ConvInteger", {10}, "TUTU>1", importConvInteger, attributes, {Byte}},
      {"ConvTranspose",
       {1, 11, 22},
       "TTT>1",
       importConvTranspose,
       "auto_pad,dilations,group,kernel_shape,output_padding,output_shape,pads,"
       "strides",
       {Float}},
  };
}

std::vector<Difference> convolutionDifferences() {
  return {
      {"convtranspose-same-shape", "ConvTranspose",
       "auto_pad SAME_UPPER and an output_shape larger than the result without pads", "zeros before the result",
       "zeros behind the result", "", "zeros behind the result", "as SAME_UPPER pads"},
  };
}

} // namespace dmxc::onnxfe
