//===- Pool.cpp - pools and their gradients -------------------------------===//
#include "Windows.h"

#include "frontends/common/ops/Order.h"

#include <algorithm>

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

Dim spatialSize(const Val &x) { return product(llvm::ArrayRef<Dim>(x.dims()).drop_front(2)); }

template <int axes> void importMaxPool(AtenContext &c) {
  auto [x, added] = withBatch(c, c.tensor("self"), axes);
  Window w = poolWindow(c, x, axes);
  c.result(0, withoutBatch(c.e, pool(c.e, Pooling::max, x, w, false), added));
}
template <int axes> void importMaxPoolIndices(AtenContext &c) {
  importMaxPool<axes>(c);
  auto [x, added] = withBatch(c, c.tensor("self"), axes);
  Window w = poolWindow(c, x, axes);
  Val flat = argMaxPool(c.e, x, w); // counts through the whole tensor, torch's through each channel
  c.result(1, withoutBatch(c.e, c.e.emit<ModOp>({flat, c.e.size(Dim::max(spatialSize(x), 1))}), added));
}

/// Each value where its index says, in its channel of `sizes`; zeros elsewhere.
Val placed(AtenContext &c, const Val &values, const Val &indices, const Dims &sizes, ScatterMode mode) {
  int64_t front = values.rank() - static_cast<int64_t>(sizes.size());
  c.requireShape(front >= 0 && mayEqual(indices.dims(), values.dims()), "the indices must have the values' shape");
  Dims result(llvm::ArrayRef<Dim>(values.dims()).take_front(front));
  Dim lines = product(result), count = product(llvm::ArrayRef<Dim>(values.dims()).drop_front(front));
  Val zeros = c.e.splat(values.dtype(), {lines, product(sizes)}, 0);
  Val at = c.e.reshape(c.cast(indices, DType::I64), {lines, count});
  Val all = scatterElements(c.e, zeros, at, c.e.reshape(values, {lines, count}), 1, mode);
  result.append(sizes.begin(), sizes.end());
  return c.e.reshape(all, result);
}

/// The gradient goes to where each maximum was.
template <int axes> void importMaxPoolBackward(AtenContext &c) {
  Val x = c.tensor("self"), g = c.tensor("grad_output");
  c.requireShape(x.rank() >= axes && g.rank() == x.rank(), "the gradient must have the input's rank");
  Dims sizes(llvm::ArrayRef<Dim>(x.dims()).take_back(axes));
  c.result(placed(c, g, c.tensor("indices"), sizes, ScatterMode::add));
}
template <int axes> void importMaxUnpool(AtenContext &c) {
  Val x = c.tensor("self");
  Dims sizes = c.dims("output_size");
  c.requireShape((x.rank() == axes + 1 || x.rank() == axes + 2) && sizes.size() == axes,
                 "expected channels of " + std::to_string(axes) + " axes and as many sizes");
  for (Dim size : sizes)
    c.requireShape(size.valueOr(1) > 0 && size.valueOr(1) < kMaxExtent, "a size of " + size.str());
  c.result(placed(c, x, c.tensor("indices"), sizes, ScatterMode::replace));
}

/// How many elements each window counts, as [1, 1, out..].
Val divisorOf(AtenContext &c, const Val &x, const Window &w) {
  if (c.given("divisor_override")) {
    c.require(c.integer("divisor_override") != 0, "the divisor is 0");
    return c.like(x, static_cast<double>(c.integer("divisor_override")));
  }
  Dims ones = x.dims(), low(x.rank(), 0), high(x.rank(), 0);
  ones[0] = ones[1] = 1;
  Val counted = c.e.splat(x.dtype(), ones, 1);
  Window plain = w;
  if (c.flag("count_include_pad")) {
    for (size_t i = 0; i < w.kernel.size(); ++i) {
      low[i + 2] = w.low[i];
      high[i + 2] = w.high[i] - w.ceilExtra[i];
      plain.low[i] = 0;
      plain.high[i] = w.ceilExtra[i];
    }
    counted = c.e.pad(counted, c.like(x, 1), low, high);
  }
  return pool(c.e, Pooling::sum, counted, plain, false);
}

template <int axes> void importAveragePool(AtenContext &c) {
  auto [x, added] = withBatch(c, c.tensor("self"), axes);
  Window w = poolWindow(c, x, axes);
  if (c.given("divisor_override"))
    return c.result(withoutBatch(c.e, c.e.div(pool(c.e, Pooling::sum, x, w, false), divisorOf(c, x, w)), added));
  c.result(withoutBatch(c.e, pool(c.e, Pooling::average, x, w, c.flag("count_include_pad")), added));
}
template <int axes> void importAveragePoolBackward(AtenContext &c) {
  auto [x, added] = withBatch(c, c.tensor("self"), axes);
  auto [g, unused] = withBatch(c, c.tensor("grad_output"), axes);
  Window w = poolWindow(c, x, axes);
  Val share = c.e.div(g, divisorOf(c, x, w));
  // The same share for each position of a window.
  Dims split{g.extent(0), g.extent(1)}, wide = split, sizes(llvm::ArrayRef<Dim>(x.dims()).drop_front(2));
  for (size_t i = 0; i < axes; ++i) {
    split.push_back(1);
    wide.push_back(w.kernel[i]);
  }
  for (size_t i = 0; i < axes; ++i) {
    split.push_back(g.extent(i + 2));
    wide.push_back(g.extent(i + 2));
  }
  c.result(withoutBatch(c.e, addWindows(c, c.e.broadcast(c.e.reshape(share, split), wide), w, sizes), added));
}

//===--- Adaptive pools ---------------------------------------------------------------===//

/// [out, in]: what each result of an axis takes of each element, 1 or the average's share.
Val shares(AtenContext &c, DType type, int64_t in, int64_t out) {
  c.requireShape(in > 0 && out > 0 && in <= 65536 && out <= 65536 && in * out <= int64_t(1) << 26,
                 "an adaptive pool of too large an axis");
  std::vector<double> numbers(in * out, 0);
  for (int64_t i = 0; i < out; ++i) {
    int64_t start = i * in / out, end = ((i + 1) * in + out - 1) / out;
    for (int64_t k = start; k < end; ++k)
      numbers[i * in + k] = 1.0 / static_cast<double>(end - start);
  }
  return c.e.floats(type, {out, in}, numbers);
}
/// x with an axis multiplied by a matrix [out, in].
Val alongAxis(Emitter &e, const Val &x, int64_t axis, const Val &matrix) {
  std::vector<int64_t> order = axesFrom(0, x.rank());
  std::swap(order[axis], order.back());
  Val moved = e.transpose(x, order);
  Dims dims = moved.dims();
  Val flat = e.reshape(moved, {product(llvm::ArrayRef<Dim>(dims).drop_back()), dims.back()});
  dims.back() = matrix.extent(0);
  return e.transpose(e.reshape(e.matmul(flat, e.transposeLast(matrix)), dims), order);
}

template <int axes> void importAdaptiveAverage(AtenContext &c) {
  Val x = c.tensor("self");
  auto [batched, added] = withBatch(c, x, axes);
  Dims size = c.dims("output_size");
  if (size.size() == 1)
    size = Dims(axes, size[0]);
  c.require(size.size() == axes, "output_size has the wrong length");
  if (llvm::all_of(size, [](Dim s) { return s.is(1); }))
    return c.result(meanOver(c.e, x, axesFrom(x.rank() - axes, x.rank()), true));
  Window w;
  bool even = true;
  for (size_t i = 0; i < axes; ++i) {
    int64_t in = batched.dim(i + 2), out = size[i].is(-1) ? in : size[i].valueOr(0);
    c.require(out > 0, "output_size must be positive numbers");
    size[i] = out;
    even &= in % out == 0;
    w.kernel.push_back(std::max<int64_t>(in / out, 1));
    w.strides.push_back(std::max<int64_t>(in / out, 1));
  }
  w.dilations.assign(axes, 1);
  w.low = w.high = w.ceilExtra = Dims(axes, 0);
  if (even)
    return c.result(withoutBatch(c.e, pool(c.e, Pooling::average, batched, w, false), added));
  Val y = c.wide(batched);
  for (size_t i = 0; i < axes; ++i)
    y = alongAxis(c.e, y, i + 2, shares(c, y.dtype(), batched.dim(i + 2), *size[i].known()));
  c.result(withoutBatch(c.e, c.cast(y, x.dtype()), added));
}
void importAdaptiveAverageBackward(AtenContext &c) {
  Val x = c.tensor("self"), g = c.wide(c.tensor("grad_output"));
  c.requireShape(x.rank() >= 2 && g.rank() == x.rank(), "the gradient must have the input's rank");
  for (int64_t axis = x.rank() - 2; axis < x.rank(); ++axis)
    g = alongAxis(c.e, g, axis, c.e.transposeLast(shares(c, g.dtype(), x.dim(axis), g.dim(axis))));
  c.result(c.cast(g, x.dtype()));
}

/// The maximum of windows that may overlap and differ in size, and where in its channel it stands. The elements of all
/// windows are gathered; a shorter window has its last one again.
template <int axes> void importAdaptiveMax(AtenContext &c) {
  Emitter &e = c.e;
  auto [x, added] = withBatch(c, c.tensor("self"), axes);
  std::vector<int64_t> size = c.integers("output_size", axes, 1), order{0, 1};
  Val y = x, flat = e.intScalar(DType::I64, 0);
  Dims out{x.extent(0), x.extent(1)};
  int64_t taps = 1;
  for (int64_t i = 0; i < axes; ++i) {
    int64_t in = x.dim(i + 2), count = size[i], longest = 1;
    c.require(count > 0, "output_size must be positive numbers");
    c.requireShape(in > 0 && in <= 65536 && count <= 65536, "an adaptive pool of too large an axis");
    auto start = [&](int64_t k) { return k * in / count; };
    auto end = [&](int64_t k) { return ((k + 1) * in + count - 1) / count; };
    for (int64_t k = 0; k < count; ++k)
      longest = std::max(longest, end(k) - start(k));
    c.requireShape((taps *= longest) <= 1 << 20, "windows of an adaptive pool that are too large");
    std::vector<int64_t> at;
    for (int64_t k = 0; k < count; ++k)
      for (int64_t tap = 0; tap < longest; ++tap)
        at.push_back(std::min(start(k) + tap, end(k) - 1));
    Val positions = e.reshape(e.ints(at), {count, longest});
    y = e.gather(y, positions, 2 + 2 * i);
    Dims place(2 * axes, 1);
    place[i] = count;
    place[axes + i] = longest;
    flat = e.add(e.mul(flat, e.intScalar(DType::I64, in)), e.reshape(positions, place));
    out.push_back(count);
  }
  for (int64_t i = 0; i < 2 * axes; ++i) // [n, c, out.., taps..] of [n, c, out, taps, ..]
    order.push_back(2 + (i < axes ? 2 * i : 2 * (i - axes) + 1));
  Dims all = out;
  all.push_back(taps);
  Dims table(llvm::ArrayRef<Dim>(all).drop_front(2));
  y = e.reshape(e.transpose(y, order), all);
  Val first = argExtremum(e, Extremum::max, y, axes + 2, true);
  Val where = e.broadcast(e.reshape(flat, table), all);
  auto picked = [&](const Val &from) {
    Val one = e.emit<GatherElementsOp>({from, first}, {e.attr("axis", int64_t(axes + 2))});
    return withoutBatch(e, e.reshape(one, out), added);
  };
  c.result(0, picked(y));
  c.result(1, picked(where));
}

} // namespace

std::vector<AtenRow> poolOps() {
#define WINDOW(n) "Tensor self, int[" #n "] kernel_size, int[" #n "] stride=[], int[" #n "] padding=0"
#define GRAD(n) "Tensor grad_output, Tensor self, int[" #n "] kernel_size, int[" #n "] stride, int[" #n "] padding"
#define MAX(n) WINDOW(n) ", int[" #n "] dilation=1, bool ceil_mode=False"
  return {
      {"max_pool1d(" MAX(1) ") -> Tensor", importMaxPool<1>},
      {"max_pool2d(" MAX(2) ") -> Tensor", importMaxPool<2>},
      {"max_pool3d(" MAX(3) ") -> Tensor", importMaxPool<3>},
      {"max_pool1d_with_indices(" MAX(1) ") -> (Tensor, Tensor)", importMaxPoolIndices<1>},
      {"max_pool2d_with_indices(" MAX(2) ") -> (Tensor, Tensor)", importMaxPoolIndices<2>},
      {"max_pool3d_with_indices(" MAX(3) ") -> (Tensor, Tensor)", importMaxPoolIndices<3>},
      {"max_pool2d_with_indices_backward(" GRAD(2) ", int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor",
       importMaxPoolBackward<2>},
      {"max_pool3d_with_indices_backward(" GRAD(3) ", int[3] dilation, bool ceil_mode, Tensor indices) -> Tensor",
       importMaxPoolBackward<3>},
      {"max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor", importMaxUnpool<2>},
      {"max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor",
       importMaxUnpool<3>},
      {"avg_pool1d(" WINDOW(1) ", bool ceil_mode=False, bool count_include_pad=True) -> Tensor", importAveragePool<1>},
      {"avg_pool2d(" WINDOW(
           2) ", bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
       importAveragePool<2>},
      {"avg_pool3d(" WINDOW(
           3) ", bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
       importAveragePool<3>},
      {"avg_pool2d_backward(" GRAD(2) ", bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
       importAveragePoolBackward<2>},
      {"avg_pool3d_backward(" GRAD(3) ", bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
       importAveragePoolBackward<3>},
      {"adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor", importAdaptiveAverage<1>},
      {"adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor", importAdaptiveAverage<2>},
      {"adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor", importAdaptiveAverage<3>},
      {"_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor", importAdaptiveAverage<2>},
      {"_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor", importAdaptiveAverage<3>},
      {"adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)", importAdaptiveMax<1>},
      {"adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)", importAdaptiveMax<2>},
      {"adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)", importAdaptiveMax<3>},
      {"_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor", importAdaptiveAverageBackward},
  };
#undef MAX
#undef GRAD
#undef WINDOW
}

} // namespace dmxc::torchfe
