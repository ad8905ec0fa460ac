//===- Scatter.cpp - ops that write elements by index ---------------------===//
//
// Updates are applied in row-major order. Bool combines as integers do and is then made bool: add and max are `or`,
// mul and min are `and`.
//
//===----------------------------------------------------------------------===//
#include "Evaluator.h"
#include "Indices.h"
#include "Strided.h"
#include "Types.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

#include <cstring>

namespace dmxc::reference {

namespace {

/// Applies runs of `length` updates at each offset of the result.
template <typename T, typename F>
void applyRuns(T *out, const T *updates, std::span<const int64_t> offsets, int64_t length, F f) {
  for (int64_t offset : offsets)
    for (int64_t i = 0; i < length; ++i, ++updates)
      out[offset + i] = f(out[offset + i], *updates);
}

void scatter(Tensor &result, const Tensor &updates, dmir::ScatterMode mode, std::span<const int64_t> offsets,
             int64_t length) {
  bool isBool = result.dtype() == DType::Bool;
  withNumber(result.dtype(), [&]<typename T>(T) {
    T *out = result.as<T>();
    const T *in = updates.as<T>();
    switch (mode) {
    case dmir::ScatterMode::replace:
      return applyRuns(out, in, offsets, length, [](T, T b) { return b; });
    case dmir::ScatterMode::add:
      if (isBool)
        return applyRuns(out, in, offsets, length, [](T a, T b) { return maximum(a, b); });
      return applyRuns(out, in, offsets, length, [](T a, T b) { return wrapAdd(a, b); });
    case dmir::ScatterMode::mul:
      return applyRuns(out, in, offsets, length, [](T a, T b) { return wrapMul(a, b); });
    case dmir::ScatterMode::max:
      return applyRuns(out, in, offsets, length, [](T a, T b) { return maximum(a, b); });
    case dmir::ScatterMode::min:
      return applyRuns(out, in, offsets, length, [](T a, T b) { return minimum(a, b); });
    }
  });
}

Tensor copyOfData(const Call &call) {
  Tensor result = call.makeResult();
  std::memcpy(result.mutableData(), call.in[0].data(), result.byteSize());
  return result;
}

Outputs evaluateScatterElements(const Call &call) {
  auto op = llvm::cast<dmir::ScatterElementsOp>(call.op);
  size_t axis = op.getAxis();
  const Shape &dataShape = call.in[0].shape(), &shape = call.in[1].shape();
  for (size_t a = 0; a < shape.size(); ++a)
    if (a != axis && shape[a] > dataShape[a] && call.in[1].numElements() > 0)
      return call.error("the indices reach past the data on axis " + std::to_string(a) + ": their dim is " +
                        std::to_string(shape[a]) + ", that of the data " + std::to_string(dataShape[a]));
  Result<std::vector<int64_t>> indices = readIndices(call, call.in[1], std::span(&dataShape[axis], 1));
  if (!indices)
    return indices.takeError();
  Strides strides = stridesOf(dataShape);
  int64_t axisStride = strides[axis];
  strides[axis] = 0;
  int64_t *offset = indices->data();
  StridedLoop<1>(shape, {strides}).forEach([&](const std::array<int64_t, 1> &at) {
    *offset = at[0] + *offset * axisStride;
    ++offset;
  });
  Tensor result = copyOfData(call);
  scatter(result, call.in[2], op.getMode(), *indices, 1);
  return one(std::move(result));
}

Outputs evaluateScatterND(const Call &call) {
  auto op = llvm::cast<dmir::ScatterNDOp>(call.op);
  const Shape &dataShape = call.in[0].shape();
  Tensor result = copyOfData(call);
  if (call.in[2].numElements() == 0)
    return one(std::move(result));
  size_t width = call.in[1].shape().back();
  Result<std::vector<int64_t>> indices = readIndices(call, call.in[1], std::span(dataShape).first(width));
  if (!indices)
    return indices.takeError();
  Strides strides = stridesOf(dataShape);
  int64_t length = elementCount(std::span(dataShape).subspan(width));
  std::vector<int64_t> offsets = tupleOffsets(*indices, std::span(strides).first(width));
  offsets.resize(call.in[2].numElements() / length, 0); // a tuple of no index means the whole tensor
  scatter(result, call.in[2], op.getMode(), offsets, length);
  return one(std::move(result));
}

} // namespace

void addScatter(Table &table) {
  table["dmir.scatter_elements"] = {evaluateScatterElements};
  table["dmir.scatter_nd"] = {evaluateScatterND};
}

} // namespace dmxc::reference
