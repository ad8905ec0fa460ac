//===- Reduce.cpp - reductions over axes and running sums -----------------===//
//
// Floats accumulate in f64, in row-major order of the operand, and round once: the result does not depend on how a
// target groups its partial sums. Integers accumulate modulo 2^64 and wrap once, so an integer mean is that of the
// exact sum. Bool reduces as integers do and is then made bool: sum and max are `or`; prod, mean and min are `and`.
//
//===----------------------------------------------------------------------===//
#include "Evaluator.h"
#include "Limits.h"
#include "Strided.h"
#include "Types.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

#include <cmath>

namespace dmxc::reference {

namespace {

/// out[o] = f(out[o], in[i]) for every operand element i; `strides` are those of the result over the operand.
template <typename T, typename A, typename F>
void accumulate(std::vector<A> &out, const Tensor &input, const Strides &strides, F f) {
  StridedLoop<1> loop(input.shape(), {strides});
  int64_t stride = loop.rowStride(0), length = loop.rowLength();
  const T *in = input.as<T>();
  loop.forEachRow([&](int64_t first, const std::array<int64_t, 1> &at) {
    const T *__restrict row = in + first;
    A *__restrict to = out.data() + at[0];
    if (stride == 0) {
      A value = *to;
      for (int64_t i = 0; i < length; ++i)
        value = f(value, static_cast<A>(row[i]));
      *to = value;
    } else {
      for (int64_t i = 0; i < length; ++i)
        to[i * stride] = f(to[i * stride], static_cast<A>(row[i]));
    }
  });
}

template <typename T, typename A>
void reduceInto(std::vector<A> &out, const Tensor &input, const Strides &strides, dmir::Reduction kind, int64_t count) {
  switch (kind) {
  case dmir::Reduction::max:
    return accumulate<T>(out, input, strides, [](A a, A b) { return maximum(a, b); });
  case dmir::Reduction::min:
    return accumulate<T>(out, input, strides, [](A a, A b) { return minimum(a, b); });
  case dmir::Reduction::prod:
    return accumulate<T>(out, input, strides, [](A a, A b) { return wrapMul(a, b); });
  case dmir::Reduction::sum:
    return accumulate<T>(out, input, strides, [](A a, A b) { return wrapAdd(a, b); });
  case dmir::Reduction::mean:
    accumulate<T>(out, input, strides, [](A a, A b) { return wrapAdd(a, b); });
    for (A &value : out)
      value = meanOf(value, count);
  }
}

/// What a reduction starts from, in the declared type's range.
template <typename A> A startOf(dmir::Reduction kind, DType type) {
  switch (kind) {
  case dmir::Reduction::max:
    return lowestOf<A>(type);
  case dmir::Reduction::min:
    return highestOf<A>(type);
  case dmir::Reduction::prod:
    return A{1};
  default:
    return A{};
  }
}

/// Strides of the result over the operand's axes (0 where reduced); `count` becomes the elements each result sums up.
Strides reducedStrides(const Shape &shape, llvm::ArrayRef<int64_t> axes, int64_t &count) {
  Shape kept = shape;
  count = 1;
  for (int64_t axis : axes) {
    count *= shape[axis];
    kept[axis] = 1;
  }
  return broadcastStrides(kept, shape);
}

Outputs evaluateReduce(const Call &call) {
  auto op = llvm::cast<dmir::ReduceOp>(call.op);
  Tensor result = call.makeResult();
  int64_t count;
  Strides strides = reducedStrides(call.in[0].shape(), op.getAxes(), count);
  bool isBool = result.dtype() == DType::Bool;
  withNumber(result.dtype(), [&]<typename T>(T) {
    using A = Accumulator<T>;
    std::vector<A> sums(result.numElements(), startOf<A>(op.getKind(), call.declaredType()));
    reduceInto<T>(sums, call.in[0], strides, op.getKind(), count);
    T *out = result.as<T>();
    for (size_t i = 0; i < sums.size(); ++i)
      out[i] = isBool ? static_cast<T>(sums[i] != A{}) : static_cast<T>(sums[i]);
  });
  return one(std::move(result));
}

Outputs evaluateCumSum(const Call &call) {
  auto op = llvm::cast<dmir::CumSumOp>(call.op);
  Tensor result = call.makeResult();
  const Shape &shape = result.shape();
  size_t axis = op.getAxis();
  int64_t dim = shape[axis], inner = elementCount(std::span(shape).subspan(axis + 1));
  int64_t outer = elementCount(std::span(shape).first(axis));
  bool reverse = op.getReverse(), exclusive = op.getExclusive();
  withNumber(result.dtype(), [&]<typename T>(T) {
    std::vector<Accumulator<T>> sums(inner);
    for (int64_t o = 0; o < outer; ++o) {
      std::fill(sums.begin(), sums.end(), Accumulator<T>{});
      for (int64_t step = 0; step < dim; ++step) {
        int64_t row = (o * dim + (reverse ? dim - 1 - step : step)) * inner;
        const T *in = call.in[0].as<T>() + row;
        T *out = result.as<T>() + row;
        for (int64_t i = 0; i < inner; ++i) {
          Accumulator<T> before = sums[i];
          sums[i] = wrapAdd(before, static_cast<Accumulator<T>>(in[i]));
          out[i] = static_cast<T>(exclusive ? before : sums[i]);
        }
      }
    }
  });
  return one(std::move(result));
}

} // namespace

void addReduce(Table &table) {
  table["dmir.reduce"] = {evaluateReduce};
  table["dmir.cumsum"] = {evaluateCumSum};
}

} // namespace dmxc::reference
