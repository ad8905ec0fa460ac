//===- Window.cpp - convolution and pooling -------------------------------===//
//
// A window op is a sum over taps (positions inside the window). For one tap, the outputs whose input element lies
// inside the tensor form a box, so padding costs no test an element. Floats accumulate in f64 and round once; integers
// wrap, and their averages truncate.
//
// A window that lies in the padding altogether has the maximum of an empty reduction, an average of NaN (0 for
// integers), and -1 for its arg_max_pool index. Of NaNs the first is the maximum.
//
//===----------------------------------------------------------------------===//
#include "Evaluator.h"
#include "Limits.h"
#include "Products.h"
#include "Strided.h"
#include "Types.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

#include <algorithm>

namespace dmxc::reference {

namespace {

using Dims = llvm::ArrayRef<int64_t>;

/// One position inside the window and the outputs that see an input element through it: `loop` walks them with the
/// offsets of the output (operand 0) and of the input (operand 1) in one plane.
struct Tap {
  StridedLoop<2> loop;
  int64_t outBase, inBase;
  int64_t position; ///< row-major index inside the window
};

/// Spatial extents of a window op.
struct Geometry {
  Shape in, out;
  Dims window, strides, dilations;
  std::vector<int64_t> low;
};

int64_t floorDivide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/// Outputs [first, last) along one axis whose input index through window position k is in [0, in).
std::pair<int64_t, int64_t> validOutputs(const Geometry &g, size_t axis, int64_t k) {
  int64_t shift = k * g.dilations[axis] - g.low[axis];
  int64_t first = std::max<int64_t>(0, -floorDivide(shift, g.strides[axis]));
  int64_t last = std::min(g.out[axis], floorDivide(g.in[axis] - 1 - shift, g.strides[axis]) + 1);
  return {first, std::max(first, last)};
}

/// For each axis, the window positions through which any output sees the input. A window may be far larger than what
/// it can ever see, so the others are dropped before axes are combined.
std::vector<std::vector<int64_t>> visiblePositions(const Geometry &g) {
  std::vector<std::vector<int64_t>> positions(g.in.size());
  for (size_t axis = 0; axis < g.in.size(); ++axis)
    for (int64_t k = 0; k < g.window[axis]; ++k)
      if (auto [first, last] = validOutputs(g, axis, k); first < last)
        positions[axis].push_back(k);
  return positions;
}

/// The taps in row-major order of the window; those that see nothing are left out.
std::vector<Tap> makeTaps(const Geometry &g) {
  size_t rank = g.in.size();
  Strides outStrides = stridesOf(g.out), inStrides = stridesOf(g.in), windowStrides = stridesOf(g.window), inSteps;
  for (size_t axis = 0; axis < rank; ++axis)
    inSteps.push_back(inStrides[axis] * g.strides[axis]);
  std::vector<std::vector<int64_t>> visible = visiblePositions(g);
  Shape counts;
  for (const std::vector<int64_t> &positions : visible)
    counts.push_back(static_cast<int64_t>(positions.size()));

  std::vector<Tap> taps;
  Strides index(rank, 0);
  for (int64_t i = 0, count = elementCount(counts); i < count; ++i) {
    Shape box(rank);
    int64_t outBase = 0, inBase = 0, position = 0;
    for (size_t axis = 0; axis < rank; ++axis) {
      int64_t k = visible[axis][index[axis]];
      auto [first, last] = validOutputs(g, axis, k);
      box[axis] = last - first;
      outBase += first * outStrides[axis];
      inBase += (first * g.strides[axis] + k * g.dilations[axis] - g.low[axis]) * inStrides[axis];
      position += k * windowStrides[axis];
    }
    taps.push_back({StridedLoop<2>(box, {outStrides, inSteps}), outBase, inBase, position});
    for (size_t axis = rank; axis-- > 0;) {
      if (++index[axis] < counts[axis])
        break;
      index[axis] = 0;
    }
  }
  return taps;
}

Shape spatial(const Shape &shape) { return Shape(shape.begin() + 2, shape.end()); }

/// sums[o] += weight * in[i] over the box of a tap.
template <typename T>
void accumulateTap(std::vector<Accumulator<T>> &sums, const T *in, Accumulator<T> weight, const Tap &tap) {
  using A = Accumulator<T>;
  int64_t outStride = tap.loop.rowStride(0), inStride = tap.loop.rowStride(1), length = tap.loop.rowLength();
  tap.loop.forEachRow([&](int64_t, const std::array<int64_t, 2> &at) {
    A *__restrict to = sums.data() + tap.outBase + at[0];
    const T *__restrict from = in + tap.inBase + at[1];
    if (outStride == 1 && inStride == 1)
      for (int64_t i = 0; i < length; ++i)
        to[i] = wrapAdd(to[i], wrapMul(weight, static_cast<A>(from[i])));
    else
      for (int64_t i = 0; i < length; ++i)
        to[i * outStride] = wrapAdd(to[i * outStride], wrapMul(weight, static_cast<A>(from[i * inStride])));
  });
}

template <typename T>
void convolve(const Tensor &input, const Tensor &weightTensor, Tensor &result, const Geometry &geometry,
              int64_t groups) {
  using A = Accumulator<T>;
  int64_t channels = weightTensor.shape()[1], outputs = weightTensor.shape()[0];
  int64_t inPlane = elementCount(geometry.in), outPlane = elementCount(geometry.out),
          window = elementCount(geometry.window);
  std::vector<Tap> taps = makeTaps(geometry);
  std::vector<A> sums(outPlane);
  T *out = result.as<T>();
  for (int64_t n = 0; n < result.shape()[0]; ++n)
    for (int64_t o = 0; o < outputs; ++o, out += outPlane) {
      std::fill(sums.begin(), sums.end(), A{});
      int64_t firstChannel = o / (outputs / groups) * channels;
      const T *in = input.as<T>() + (n * channels * groups + firstChannel) * inPlane;
      const T *weights = weightTensor.as<T>() + o * channels * window;
      for (int64_t c = 0; c < channels; ++c, in += inPlane, weights += window)
        for (const Tap &tap : taps)
          accumulateTap<T>(sums, in, static_cast<A>(weights[tap.position]), tap);
      for (int64_t i = 0; i < outPlane; ++i)
        out[i] = static_cast<T>(sums[i]);
    }
}

Outputs evaluateConv(const Call &call) {
  auto op = llvm::cast<dmir::ConvOp>(call.op);
  Tensor result = call.makeResult();
  if (result.numElements() == 0)
    return one(std::move(result));
  Shape window = spatial(call.in[1].shape());
  Geometry geometry{spatial(call.in[0].shape()), spatial(result.shape()), window, op.getStrides(),
                    op.getDilations(),           op.getLow().vec()};
  Tensor input = productOperand(call.in[0], result.dtype()), weights = productOperand(call.in[1], result.dtype());
  withNumber(result.dtype(), [&]<typename T>(T) { convolve<T>(input, weights, result, geometry, op.getGroups()); });
  return one(std::move(result));
}

//===--- Pooling ----------------------------------------------------------===//

template <typename Op> Geometry poolGeometry(const Call &call, Op op) {
  return {spatial(call.in[0].shape()), spatial(call.shape()), op.getWindow(), op.getStrides(),
          op.getDilations(),           op.getLow().vec()};
}

/// How many of the window positions start, start + dilation, .. of one output lie in [begin, end) of an axis.
int64_t positionsInside(int64_t start, int64_t dilation, int64_t window, int64_t begin, int64_t end) {
  int64_t first = std::max<int64_t>(0, -floorDivide(start - begin, dilation));
  int64_t last = std::min(window - 1, floorDivide(end - 1 - start, dilation));
  return std::max<int64_t>(0, last - first + 1);
}

/// What each output of an average pool divides by: a product over the axes.
std::vector<int64_t> windowCounts(dmir::PoolOp op, const Geometry &g) {
  std::vector<int64_t> counts{1};
  for (size_t axis = 0; axis < g.in.size(); ++axis) {
    bool padded = op.getCountPadding();
    int64_t begin = padded ? -g.low[axis] : 0;
    int64_t end = g.in[axis] + (padded ? op.getHigh()[axis] - op.getCeilExtra()[axis] : 0);
    std::vector<int64_t> products;
    for (int64_t outer : counts)
      for (int64_t x = 0; x < g.out[axis]; ++x)
        products.push_back(
            outer * positionsInside(x * g.strides[axis] - g.low[axis], g.dilations[axis], g.window[axis], begin, end));
    counts = std::move(products);
  }
  return counts;
}

template <typename T> void maxPlane(T *out, const T *in, const std::vector<Tap> &taps) {
  for (const Tap &tap : taps)
    tap.loop.forEach([&](const std::array<int64_t, 2> &at) {
      T &best = out[tap.outBase + at[0]];
      best = maximum(best, in[tap.inBase + at[1]]);
    });
}

Outputs evaluatePool(const Call &call) {
  auto op = llvm::cast<dmir::PoolOp>(call.op);
  Tensor result = call.makeResult();
  if (result.numElements() == 0)
    return one(std::move(result));
  Geometry geometry = poolGeometry(call, op);
  std::vector<Tap> taps = makeTaps(geometry);
  bool average = op.getKind() == dmir::Pooling::average;
  std::vector<int64_t> counts;
  if (average)
    counts = windowCounts(op, geometry);
  int64_t inPlane = elementCount(geometry.in), outPlane = elementCount(geometry.out);
  withNumber(result.dtype(), [&]<typename T>(T) {
    using A = Accumulator<T>;
    std::vector<A> sums(outPlane);
    T lowest = static_cast<T>(lowestOf<A>(call.declaredType()));
    for (int64_t plane = 0, planes = result.numElements() / outPlane; plane < planes; ++plane) {
      const T *in = call.in[0].as<T>() + plane * inPlane;
      T *out = result.as<T>() + plane * outPlane;
      if (op.getKind() == dmir::Pooling::max) {
        std::fill_n(out, outPlane, lowest);
        maxPlane(out, in, taps);
        continue;
      }
      std::fill(sums.begin(), sums.end(), A{});
      for (const Tap &tap : taps)
        accumulateTap<T>(sums, in, A{1}, tap);
      for (int64_t i = 0; i < outPlane; ++i)
        out[i] = static_cast<T>(average ? meanOf(sums[i], counts[i]) : sums[i]);
    }
  });
  return one(std::move(result));
}

/// A row-major offset in a plane as one with the first axis fastest.
int64_t columnMajorOffset(int64_t offset, const Shape &shape) {
  int64_t result = 0;
  int64_t stride = elementCount(shape);
  for (size_t axis = shape.size(); axis-- > 0;) {
    stride /= shape[axis];
    result += offset % shape[axis] * stride;
    offset /= shape[axis];
  }
  return result;
}

Outputs evaluateArgMaxPool(const Call &call) {
  auto op = llvm::cast<dmir::ArgMaxPoolOp>(call.op);
  Tensor result = call.makeResult();
  if (result.numElements() == 0)
    return one(std::move(result));
  Geometry geometry = poolGeometry(call, op);
  std::vector<Tap> taps = makeTaps(geometry);
  int64_t inPlane = elementCount(geometry.in), outPlane = elementCount(geometry.out);
  std::fill_n(result.as<int64_t>(), result.numElements(), -1);
  withNumber(call.in[0].dtype(), [&]<typename T>(T) {
    for (int64_t plane = 0, planes = result.numElements() / outPlane; plane < planes; ++plane) {
      const T *in = call.in[0].as<T>() + plane * inPlane;
      int64_t *out = result.as<int64_t>() + plane * outPlane;
      for (const Tap &tap : taps)
        tap.loop.forEach([&](const std::array<int64_t, 2> &at) {
          int64_t &best = out[tap.outBase + at[0]], from = tap.inBase + at[1];
          if (best < 0 || in[from] > in[best] || (isNaN(in[from]) && !isNaN(in[best])))
            best = from;
        });
      for (int64_t i = 0; i < outPlane; ++i)
        if (out[i] >= 0)
          out[i] = plane * inPlane + (op.getColumnMajor() ? columnMajorOffset(out[i], geometry.in) : out[i]);
    }
  });
  return one(std::move(result));
}

} // namespace

void addWindow(Table &table) {
  table["dmir.conv"] = {evaluateConv};
  table["dmir.pool"] = {evaluatePool};
  table["dmir.arg_max_pool"] = {evaluateArgMaxPool};
}

} // namespace dmxc::reference
