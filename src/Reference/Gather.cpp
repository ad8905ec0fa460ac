//===- Gather.cpp - ops that pick elements by index -----------------------===//
#include "Evaluator.h"
#include "Indices.h"
#include "Strided.h"
#include "Types.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

#include <algorithm>

namespace dmxc::reference {

Result<std::vector<int64_t>> readIndices(const Call &call, const Tensor &tensor, std::span<const int64_t> dims) {
  int64_t count = tensor.numElements(), width = static_cast<int64_t>(dims.size());
  std::vector<int64_t> indices(count);
  for (int64_t i = 0; i < count; ++i) {
    int64_t index = tensor.dtype() == DType::I32 ? tensor.as<int32_t>()[i] : tensor.as<int64_t>()[i];
    int64_t dim = dims[i % width];
    if (index < -dim || index >= dim)
      return call.error("index " + std::to_string(index) + " (element " + std::to_string(i) +
                        " of the indices) is out of range for a dim of " + std::to_string(dim));
    indices[i] = index < 0 ? index + dim : index;
  }
  return indices;
}

std::vector<int64_t> tupleOffsets(const std::vector<int64_t> &indices, std::span<const int64_t> strides) {
  if (strides.empty())
    return {};
  std::vector<int64_t> offsets(indices.size() / strides.size(), 0);
  for (size_t i = 0; i < indices.size(); ++i)
    offsets[i / strides.size()] += indices[i] * strides[i % strides.size()];
  return offsets;
}

namespace {

Outputs evaluateGather(const Call &call) {
  const Tensor &data = call.in[0];
  size_t axis = llvm::cast<dmir::GatherOp>(call.op).getAxis();
  Tensor result = call.makeResult();
  if (result.numElements() == 0)
    return one(std::move(result));
  int64_t dim = data.shape()[axis];
  Result<std::vector<int64_t>> indices = readIndices(call, call.in[1], std::span(&dim, 1));
  if (!indices)
    return indices.takeError();
  int64_t outer = elementCount(std::span(data.shape()).first(axis));
  int64_t inner = elementCount(std::span(data.shape()).subspan(axis + 1));
  withBits(result.dtype(), [&]<typename T>(T) {
    const T *in = data.as<T>();
    T *out = result.as<T>();
    for (int64_t i = 0; i < outer; ++i, in += dim * inner)
      for (int64_t index : *indices)
        out = std::copy_n(in + index * inner, inner, out);
  });
  return one(std::move(result));
}

Outputs evaluateGatherElements(const Call &call) {
  const Tensor &data = call.in[0], &indexTensor = call.in[1];
  size_t axis = llvm::cast<dmir::GatherElementsOp>(call.op).getAxis();
  Result<std::vector<int64_t>> indices = readIndices(call, indexTensor, std::span(&data.shape()[axis], 1));
  if (!indices)
    return indices.takeError();
  Tensor result = call.makeResult();
  Strides strides = stridesOf(data.shape());
  int64_t axisStride = strides[axis];
  strides[axis] = 0;
  withBits(result.dtype(), [&]<typename T>(T) {
    const T *in = data.as<T>();
    T *out = result.as<T>();
    const int64_t *index = indices->data();
    StridedLoop<1>(result.shape(), {strides}).forEach([&](const std::array<int64_t, 1> &at) {
      *out++ = in[at[0] + *index++ * axisStride];
    });
  });
  return one(std::move(result));
}

Outputs evaluateGatherND(const Call &call) {
  const Tensor &data = call.in[0], &indexTensor = call.in[1];
  size_t batchDims = llvm::cast<dmir::GatherNDOp>(call.op).getBatchDims();
  Tensor result = call.makeResult();
  if (result.numElements() == 0)
    return one(std::move(result));
  size_t width = indexTensor.shape().back();
  auto dims = std::span(data.shape()).subspan(batchDims, width);
  Result<std::vector<int64_t>> indices = readIndices(call, indexTensor, dims);
  if (!indices)
    return indices.takeError();
  Strides strides = stridesOf(data.shape());
  int64_t batches = elementCount(std::span(data.shape()).first(batchDims));
  int64_t batchSize = elementCount(std::span(data.shape()).subspan(batchDims));
  int64_t slice = elementCount(std::span(data.shape()).subspan(batchDims + width));
  int64_t slices = result.numElements() / slice;
  std::vector<int64_t> offsets = tupleOffsets(*indices, std::span(strides).subspan(batchDims, width));
  offsets.resize(slices, 0); // a tuple of no index picks the whole batch element
  withBits(result.dtype(), [&]<typename T>(T) {
    T *out = result.as<T>();
    for (int64_t i = 0; i < slices; ++i)
      out = std::copy_n(data.as<T>() + i / (slices / batches) * batchSize + offsets[i], slice, out);
  });
  return one(std::move(result));
}

} // namespace

void addGather(Table &table) {
  table["dmir.gather"] = {evaluateGather, Mode::Movement};
  table["dmir.gather_elements"] = {evaluateGatherElements, Mode::Movement};
  table["dmir.gather_nd"] = {evaluateGatherND, Mode::Movement};
}

} // namespace dmxc::reference
