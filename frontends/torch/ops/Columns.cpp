//===- Columns.cpp - windows as columns of a matrix, and back -------------===//
#include "Windows.h"

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

/// The windows that the arguments of im2col and col2im name; `sizes` are those of the image.
Window columnWindow(AtenContext &c, const Dims &sizes) {
  Window w;
  w.kernel = Dims(c.integers("kernel_size", 2, 1));
  w.strides = c.integers("stride", 2, 1);
  w.dilations = c.integers("dilation", 2, 1);
  std::vector<int64_t> padding = c.integers("padding", 2, 0);
  w.low = w.high = Dims(padding);
  w.ceilExtra = Dims(2, 0);
  requireKernel(w.kernel);
  requireEntries("stride", w.strides, 1);
  requireEntries("dilation", w.dilations, 1);
  requireEntries("padding", padding, 0);
  for (size_t i = 0; i < 2; ++i) {
    Dim reach = (w.kernel[i] - 1) * w.dilations[i] + 1, room = sizes[i] + 2 * padding[i] - reach;
    c.requireShape(room.valueOr(0) >= 0, "a window of " + reach.str() + " does not fit into the padded axis of " +
                                             (sizes[i] + 2 * padding[i]).str());
  }
  return w;
}

/// [n, c, h, w] as [n, c * kh * kw, windows].
void importIm2col(AtenContext &c) {
  auto [x, added] = withBatch(c, c.tensor("self"), 2);
  Emitter &e = c.e;
  Window w = columnWindow(c, {x.extent(2), x.extent(3)});
  Dims out{windowsAlong(x, w, 0), windowsAlong(x, w, 1)};
  Val y = e.pad(x, e.scalar(x.dtype(), 0), {0, 0, w.low[0], w.low[1]}, {0, 0, w.high[0], w.high[1]});
  // The positions of all windows along an axis, gathered: [n, c, kh, oh, kw, ow].
  for (int64_t i = 0; i < 2; ++i) {
    Val tap = e.mul(e.iota(DType::I64, {w.kernel[i], 1}, 0), e.intScalar(DType::I64, w.dilations[i]));
    Val start = e.mul(e.iota(DType::I64, {1, out[i]}, 1), e.intScalar(DType::I64, w.strides[i]));
    y = e.gather(y, e.add(tap, start), 2 + 2 * i);
  }
  y = e.transpose(y, {0, 1, 2, 4, 3, 5});
  y = e.reshape(y, {x.extent(0), x.extent(1) * w.kernel[0] * w.kernel[1], out[0] * out[1]});
  c.result(withoutBatch(e, y, added));
}

/// The sum of columns at the places where they were taken from.
void importCol2im(AtenContext &c) {
  Val given = c.tensor("self");
  Emitter &e = c.e;
  c.requireShape(given.rank() == 3 || given.rank() == 2, "expected [n, c * kernel, windows], or that without n");
  bool added = given.rank() == 2;
  Val x = added ? unsqueeze(e, given, 0) : given;
  Dims sizes = c.dims("output_size");
  if (sizes.size() == 1)
    sizes.push_back(sizes[0]);
  c.require(sizes.size() == 2, "output_size has two numbers");
  Window w = columnWindow(c, sizes);
  Dims out;
  for (size_t i = 0; i < 2; ++i)
    out.push_back(
        Dim::floorDiv(sizes[i] + w.low[i] + w.high[i] - (w.kernel[i] - 1) * w.dilations[i] - 1, w.strides[i]) + 1);
  std::optional<Dim> channels = Dim::divideExactly(x.extent(1), w.kernel[0] * w.kernel[1]);
  c.requireShape(channels.has_value() && mayEqual(x.extent(2), out[0] * out[1]),
                 "columns of " + x.describe() + " are not those of this image and these windows");
  Val columns = e.reshape(x, {x.extent(0), *channels, w.kernel[0], w.kernel[1], out[0], out[1]});
  c.result(withoutBatch(e, addWindows(c, columns, w, sizes), added));
}

} // namespace

std::vector<AtenRow> columnOps() {
#define WINDOW "int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor"
  return {
      {"im2col(Tensor self, " WINDOW, importIm2col},
      {"col2im(Tensor self, SymInt[2] output_size, " WINDOW, importCol2im},
  };
#undef WINDOW
}

} // namespace dmxc::torchfe
