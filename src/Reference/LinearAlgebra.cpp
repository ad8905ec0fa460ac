//===- LinearAlgebra.cpp - batched matrix product -------------------------===//
//
// Floats accumulate in f64 and round once; integers wrap.
//
//===----------------------------------------------------------------------===//
#include "Evaluator.h"
#include "Products.h"
#include "Strided.h"
#include "Types.h"

#include <algorithm>

namespace dmxc::reference {

namespace {

/// out (m x n) = a (m x k) * b (k x n). Rows of b are added to a row of accumulators, which vectorises; a band of four
/// rows of a shares each row of b.
template <typename T>
void multiply(T *out, const T *a, const T *b, int64_t m, int64_t n, int64_t k, std::vector<Accumulator<T>> &sums) {
  using A = Accumulator<T>;
  constexpr int64_t band = 4;
  for (int64_t row = 0; row < m; row += band) {
    int64_t rows = std::min(band, m - row);
    std::fill(sums.begin(), sums.end(), A{});
    for (int64_t i = 0; i < k; ++i)
      for (int64_t r = 0; r < rows; ++r) {
        A left = static_cast<A>(a[(row + r) * k + i]);
        const T *__restrict right = b + i * n;
        A *__restrict to = sums.data() + r * n;
        for (int64_t j = 0; j < n; ++j)
          to[j] = wrapAdd(to[j], wrapMul(left, static_cast<A>(right[j])));
      }
    for (int64_t i = 0; i < rows * n; ++i)
      out[row * n + i] = static_cast<T>(sums[i]);
  }
}

Outputs evaluateMatMul(const Call &call) {
  Tensor result = call.makeResult();
  const Shape &lhs = call.in[0].shape(), &rhs = call.in[1].shape(), &shape = result.shape();
  int64_t m = lhs[lhs.size() - 2], k = lhs.back(), n = rhs.back();
  auto batch = std::span(shape).first(shape.size() - 2);
  StridedLoop<3> loop(batch, {broadcastStrides(std::span(lhs).first(lhs.size() - 2), batch),
                              broadcastStrides(std::span(rhs).first(rhs.size() - 2), batch), stridesOf(batch)});
  if (result.numElements() == 0)
    return one(std::move(result));
  Tensor left = productOperand(call.in[0], result.dtype()), right = productOperand(call.in[1], result.dtype());
  withNumber(result.dtype(), [&]<typename T>(T) {
    std::vector<Accumulator<T>> sums(4 * n);
    loop.forEach([&](const std::array<int64_t, 3> &at) {
      multiply(result.as<T>() + at[2] * m * n, left.as<T>() + at[0] * m * k, right.as<T>() + at[1] * k * n, m, n, k,
               sums);
    });
  });
  return one(std::move(result));
}

Outputs evaluateGroupedMatMul(const Call &call) {
  Tensor result = call.makeResult();
  const Shape &rhs = call.in[1].shape();
  const int64_t m = result.shape()[0], k = rhs[1], n = rhs[2];
  const auto *ends = call.in[2].as<int64_t>();
  withNumber(result.dtype(), [&]<typename T>(T) {
    std::fill_n(result.as<T>(), m * n, T{});
    std::vector<Accumulator<T>> sums(4 * n);
    for (int64_t group = 0, first = 0; group < rhs[0]; ++group) {
      const int64_t last = std::min(ends[group], m);
      if (last <= first)
        continue;
      multiply(result.as<T>() + first * n, call.in[0].as<T>() + first * k, call.in[1].as<T>() + group * k * n,
               last - first, n, k, sums);
      first = last;
    }
  });
  return one(std::move(result));
}

} // namespace

void addLinearAlgebra(Table &table) {
  table["dmir.matmul"] = {evaluateMatMul};
  table["dmir.grouped_matmul"] = {evaluateGroupedMatMul};
}

} // namespace dmxc::reference
