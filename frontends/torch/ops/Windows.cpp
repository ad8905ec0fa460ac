//===- Windows.cpp - geometry of convolutions and pools -------------------===//
#include "Windows.h"

#include <algorithm>

using namespace dmxc::dmir;

namespace dmxc::torchfe {

Batched withBatch(AtenContext &c, const Val &x, size_t spatial) {
  int64_t rank = static_cast<int64_t>(spatial);
  c.requireShape(x.rank() == rank + 2 || x.rank() == rank + 1, "expected rank " + std::to_string(rank + 1) + " or " +
                                                                   std::to_string(rank + 2) + ", not " +
                                                                   std::to_string(x.rank()));
  if (x.rank() == rank + 2)
    return {x, false};
  Dims dims = x.dims();
  dims.insert(dims.begin(), 1);
  return {c.e.reshape(x, dims), true};
}

Val withoutBatch(Emitter &e, const Val &y, bool added) {
  return added ? e.reshape(y, Dims(llvm::ArrayRef<Dim>(y.dims()).drop_front())) : y;
}

Dim windowsAlong(const Val &x, const Window &w, size_t i) {
  return windowExtent(x.extent(i + 2), w.kernel[i], w.strides[i], w.dilations[i], w.low[i], w.high[i]);
}

Window poolWindow(AtenContext &c, const Val &x, size_t spatial) {
  Window w;
  std::vector<int64_t> kernel = c.integers("kernel_size", spatial, 1), padding = c.integers("padding", spatial, 0);
  w.kernel = Dims(kernel);
  w.strides = c.dims("stride").empty() ? kernel : c.integers("stride", spatial, 1);
  w.dilations = c.given("dilation") ? c.integers("dilation", spatial, 1) : std::vector<int64_t>(spatial, 1);
  w.low = w.high = Dims(padding);
  w.ceilExtra = Dims(spatial, 0);
  requireKernel(w.kernel);
  requireEntries("stride", w.strides, 1);
  requireEntries("dilation", w.dilations, 1);
  requireEntries("padding", padding, 0);
  for (size_t i = 0; i < spatial; ++i) {
    c.require(2 * padding[i] <= kernel[i], "the padding is more than half of the kernel");
    if (!c.flag("ceil_mode"))
      continue;
    Dim room = x.extent(i + 2) + 2 * padding[i] - ((kernel[i] - 1) * w.dilations[i] + 1);
    w.ceilExtra[i] = ceilExtraOf(x.extent(i + 2), padding[i], room, w.strides[i]);
    w.high[i] += w.ceilExtra[i];
  }
  return w;
}

Val addWindows(AtenContext &c, const Val &columns, const Window &w, const Dims &sizes) {
  size_t axes = w.kernel.size();
  std::vector<int64_t> kernel = numbersOf(w.kernel);
  int64_t count = 1;
  for (int64_t size : kernel) {
    count *= size;
    c.requireShape(count <= 4096, "a kernel of more than 4096 positions");
  }
  Val total;
  for (int64_t k = 0; k < count; ++k) {
    // The windows' elements at one position of the kernel, as they lie in the padded result.
    Dims starts(columns.rank(), 0), part = columns.dims(), low(axes + 2, 0), high(axes + 2, 0);
    std::vector<int64_t> between(axes + 2, 0);
    int64_t rest = k;
    for (size_t i = axes; i-- > 0;) {
      int64_t at = rest % kernel[i];
      rest /= kernel[i];
      starts[i + 2] = at;
      part[i + 2] = 1;
      Dim out = columns.extent(i + 2 + axes), reach = (out - 1) * w.strides[i] + 1;
      low[i + 2] = at * w.dilations[i];
      high[i + 2] = Dim::max(0, sizes[i] + w.low[i] + w.high[i] - at * w.dilations[i] - reach);
      between[i + 2] = w.strides[i] - 1;
    }
    Val taken = c.e.slice(columns, starts, part, std::vector<int64_t>(columns.rank(), 1));
    Dims plain{columns.extent(0), columns.extent(1)};
    for (size_t i = 0; i < axes; ++i)
      plain.push_back(columns.extent(i + 2 + axes));
    Val spread = c.e.pad(c.e.reshape(taken, plain), c.e.scalar(columns.dtype(), 0), low, high, between);
    total = total ? c.e.add(total, spread) : spread;
  }
  Dims starts(axes + 2, 0), inner{columns.extent(0), columns.extent(1)};
  for (size_t i = 0; i < axes; ++i) {
    starts[i + 2] = w.low[i];
    inner.push_back(sizes[i]);
  }
  return c.e.slice(total, starts, inner, std::vector<int64_t>(axes + 2, 1));
}

} // namespace dmxc::torchfe
