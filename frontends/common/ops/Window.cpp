//===- Window.cpp - windows of convolutions and pools ---------------------===//
#include "Window.h"
#include "Require.h"

using namespace dmxc::dmir;

namespace dmxc::frontend {

void requireSpatial(llvm::ArrayRef<Dim> spatial) {
  for (Dim dim : spatial)
    requireShape(dim.valueOr(0) <= kMaxExtent, "a spatial dim is too large");
}

void requireKernel(const Dims &kernel) {
  for (Dim size : kernel)
    requireAttr(size.valueOr(1) > 0 && size.valueOr(1) <= kMaxExtent, "the kernel has the size " + size.str());
}

void requireEntries(const char *name, llvm::ArrayRef<int64_t> values, int64_t least) {
  for (int64_t value : values)
    requireAttr(value >= least && value <= kMaxExtent,
                std::string("'") + name + "' has the entry " + std::to_string(value));
}

Dim ceilExtraOf(Dim spatial, Dim low, Dim room, int64_t stride) {
  // The windows there are when the last may overhang, but for one that starts at or behind spatial + low.
  Dim out = Dim::ceilDiv(room, stride) + 1, starts = Dim::ceilDiv(spatial + low, stride);
  out = Dim::max(Dim::min(out, starts), out - 1);
  return Dim::max(0, (out - 1) * stride - room);
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

Val pool(Emitter &e, Pooling kind, const Val &x, const Window &w, bool countPadding) {
  llvm::SmallVector<mlir::NamedAttribute> attributes = windowAttributes(e, w, /*ceilExtra=*/true);
  attributes.push_back(e.attr("kind", PoolingAttr::get(e.context(), kind)));
  attributes.push_back(e.attr("window", numbersOf(w.kernel)));
  attributes.push_back(e.attr("countPadding", countPadding));
  return e.emit<PoolOp>({x}, attributes);
}

Val argMaxPool(Emitter &e, const Val &x, const Window &w, bool columnMajor) {
  llvm::SmallVector<mlir::NamedAttribute> attributes = windowAttributes(e, w);
  attributes.push_back(e.attr("window", numbersOf(w.kernel)));
  attributes.push_back(e.attr("columnMajor", columnMajor));
  return e.emit<ArgMaxPoolOp>({x}, attributes);
}

} // namespace dmxc::frontend
