//===- Selection.cpp - arg_reduce and top_k -------------------------------===//
//
// NaN: arg_reduce takes NaN for the extreme, as reduce does, so it points at the first (or last) NaN. top_k orders NaN
// above every number: first of the largest, last of the smallest. -0 equals +0 in both.
//
//===----------------------------------------------------------------------===//
#include "Evaluator.h"
#include "Types.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace dmxc::reference {

namespace {

/// The lines of a tensor along one axis: `outer` x `inner` lines of `dim` elements, `inner` apart.
struct Lines {
  int64_t outer, dim, inner;
  Lines(const Shape &shape, size_t axis)
      : outer(elementCount(std::span(shape).first(axis))), dim(shape[axis]),
        inner(elementCount(std::span(shape).subspan(axis + 1))) {}
};

/// True if `value` takes the place of `best` when it comes later.
template <typename T> bool beats(T value, T best, bool max, bool selectLast) {
  bool valueNaN = isNaN(value), bestNaN = isNaN(best);
  if (valueNaN || bestNaN)
    return valueNaN && (!bestNaN || selectLast);
  return (max ? value > best : value < best) || (selectLast && value == best);
}

Outputs evaluateArgReduce(const Call &call) {
  auto op = llvm::cast<dmir::ArgReduceOp>(call.op);
  bool max = op.getKind() == dmir::Extremum::max, selectLast = op.getSelectLast();
  Lines lines(call.in[0].shape(), op.getAxis());
  Tensor result = call.makeResult();
  if (lines.dim == 0 && result.numElements() > 0)
    return call.error("the axis is empty, so it has no largest or smallest element");
  withNumber(call.in[0].dtype(), [&]<typename T>(T) {
    int64_t *out = result.as<int64_t>();
    for (int64_t o = 0; o < lines.outer; ++o)
      for (int64_t i = 0; i < lines.inner; ++i) {
        const T *line = call.in[0].as<T>() + o * lines.dim * lines.inner + i;
        int64_t best = 0;
        for (int64_t k = 1; k < lines.dim; ++k)
          if (beats(line[k * lines.inner], line[best * lines.inner], max, selectLast))
            best = k;
        *out++ = best;
      }
  });
  return one(std::move(result));
}

/// A total order of numbers with NaN on top.
template <typename T> bool lessNaNLast(T a, T b) { return isNaN(b) ? !isNaN(a) : a < b; }

template <typename T>
void topKLines(const Call &call, const Lines &lines, int64_t k, bool largest, Tensor &values, Tensor &indices) {
  std::vector<int64_t> order(lines.dim);
  for (int64_t o = 0; o < lines.outer; ++o)
    for (int64_t i = 0; i < lines.inner; ++i) {
      const T *line = call.in[0].as<T>() + o * lines.dim * lines.inner + i;
      std::iota(order.begin(), order.end(), 0);
      std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int64_t a, int64_t b) {
        T x = line[a * lines.inner], y = line[b * lines.inner];
        if (largest ? lessNaNLast(y, x) : lessNaNLast(x, y))
          return true;
        return !(largest ? lessNaNLast(x, y) : lessNaNLast(y, x)) && a < b;
      });
      for (int64_t j = 0; j < k; ++j) {
        int64_t to = (o * k + j) * lines.inner + i;
        values.as<T>()[to] = line[order[j] * lines.inner];
        indices.as<int64_t>()[to] = order[j];
      }
    }
}

Outputs evaluateTopK(const Call &call) {
  auto op = llvm::cast<dmir::TopKOp>(call.op);
  std::vector<Tensor> results{call.makeResult(0), call.makeResult(1)};
  Lines lines(call.in[0].shape(), op.getAxis());
  withNumber(call.in[0].dtype(),
             [&]<typename T>(T) { topKLines<T>(call, lines, op.getK(), op.getLargest(), results[0], results[1]); });
  return results;
}

Outputs evaluateGreedySelect(const Call &call) {
  Tensor result = call.makeResult();
  int64_t rows = result.shape()[0], count = result.shape()[1], limit = call.in[2].asInt(0);
  for (int64_t b = 0; b < rows; ++b) {
    std::vector<int64_t> taken;
    for (int64_t i = 0; i < count && static_cast<int64_t>(taken.size()) < limit; ++i) {
      bool excluded = !call.in[0].asInt(b * count + i);
      for (int64_t j : taken)
        excluded = excluded || call.in[1].asInt((b * count + j) * count + i);
      if (excluded)
        continue;
      taken.push_back(i);
      result.setInt(b * count + i, 1);
    }
  }
  return one(std::move(result));
}

} // namespace

void addSelection(Table &table) {
  table["dmir.arg_reduce"] = {evaluateArgReduce};
  table["dmir.top_k"] = {evaluateTopK};
  table["dmir.greedy_select"] = {evaluateGreedySelect};
}

} // namespace dmxc::reference
