//===- Normalize.cpp - softmax and normalisation over axes ----------------===//
//
// Computed in f64 throughout and rounded once.
//
//===----------------------------------------------------------------------===//
#include "Evaluator.h"
#include "Strided.h"
#include "Types.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

#include <cmath>
#include <limits>

namespace dmxc::reference {

namespace {

template <typename T> void softmaxLine(const T *in, T *out, int64_t dim, int64_t stride, bool logarithm) {
  double highest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t i = 0; i < dim; ++i)
    highest = maximum(highest, static_cast<double>(in[i * stride]));
  for (int64_t i = 0; i < dim; ++i)
    sum += std::exp(in[i * stride] - highest);
  for (int64_t i = 0; i < dim; ++i) {
    double shifted = in[i * stride] - highest;
    out[i * stride] = static_cast<T>(logarithm ? shifted - std::log(sum) : std::exp(shifted) / sum);
  }
}

Outputs evaluateSoftmax(const Call &call) {
  auto op = llvm::cast<dmir::SoftmaxOp>(call.op);
  Tensor result = call.makeResult();
  const Shape &shape = result.shape();
  size_t axis = op.getAxis();
  int64_t dim = shape[axis], inner = elementCount(std::span(shape).subspan(axis + 1));
  int64_t outer = elementCount(std::span(shape).first(axis));
  withFloat(result.dtype(), [&]<typename T>(T) {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        int64_t at = o * dim * inner + i;
        softmaxLine(call.in[0].as<T>() + at, result.as<T>() + at, dim, inner, op.getLog());
      }
  });
  return one(std::move(result));
}

/// Calls f(i, g) for each element i of the operand and the group g of elements it is normalised with.
template <typename F> void forEachInGroup(const Shape &shape, const Strides &groupStrides, F f) {
  StridedLoop<1> loop(shape, {groupStrides});
  loop.forEachRow([&](int64_t first, const std::array<int64_t, 1> &at) {
    for (int64_t i = 0; i < loop.rowLength(); ++i)
      f(first + i, at[0] + i * loop.rowStride(0));
  });
}

template <typename T>
void normalize(const Tensor &input, Tensor &result, const Strides &strides, int64_t groups, int64_t count,
               bool standard, double epsilon) {
  const T *in = input.as<T>();
  T *out = result.as<T>();
  std::vector<double> mean(groups, 0.0), square(groups, 0.0);
  if (standard) {
    forEachInGroup(input.shape(), strides, [&](int64_t i, int64_t g) { mean[g] += in[i]; });
    for (double &value : mean)
      value /= static_cast<double>(count);
  }
  forEachInGroup(input.shape(), strides,
                 [&](int64_t i, int64_t g) { square[g] += (in[i] - mean[g]) * (in[i] - mean[g]); });
  for (double &value : square)
    value = std::sqrt(value / static_cast<double>(count) + epsilon);
  forEachInGroup(input.shape(), strides,
                 [&](int64_t i, int64_t g) { out[i] = static_cast<T>((in[i] - mean[g]) / square[g]); });
}

Outputs evaluateNormalize(const Call &call) {
  auto op = llvm::cast<dmir::NormalizeOp>(call.op);
  Tensor result = call.makeResult();
  if (result.numElements() == 0)
    return one(std::move(result));
  Shape kept = result.shape();
  for (int64_t axis : op.getAxes())
    kept[axis] = 1;
  int64_t groups = elementCount(kept), count = result.numElements() / groups;
  Strides strides = broadcastStrides(kept, result.shape());
  withFloat(result.dtype(), [&]<typename T>(T) {
    normalize<T>(call.in[0], result, strides, groups, count, op.getKind() == dmir::Normalization::standard,
                 op.getEpsilon().convertToDouble());
  });
  return one(std::move(result));
}

} // namespace

void addNormalize(Table &table) {
  table["dmir.softmax"] = {evaluateSoftmax};
  table["dmir.normalize"] = {evaluateNormalize};
}

} // namespace dmxc::reference
