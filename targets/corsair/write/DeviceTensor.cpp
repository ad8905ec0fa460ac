//===- DeviceTensor.cpp - where a tensor lies on a quad -------------------===//

#include "DeviceTensor.h"

#include "llvm/ADT/STLExtras.h"

#include <numeric>

using namespace dmxc::corsair;
using llvm::ArrayRef;
using llvm::SmallVector;

int64_t DeviceTensor::elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
}

DeviceTensor DeviceTensor::dense(hw::ElemKind kind, ArrayRef<int64_t> shape, ArrayRef<unsigned> order) {
  return {kind, SmallVector<int64_t>(shape), denseStrides(shape, order, hw::elementBytes(kind)), {}};
}

DeviceTensor DeviceTensor::local(Split by) const {
  DeviceTensor result = *this;
  if (!by)
    return result;
  result.shape[by.dim] = by.part;
  result.address = address.plusQuad(by.part * strides[by.dim]);
  return result;
}

SmallVector<unsigned> DeviceTensor::order() const {
  SmallVector<unsigned> dims(rank());
  std::iota(dims.begin(), dims.end(), 0);
  // A dim of one element may stand anywhere: it goes with its neighbour.
  auto key = [&](unsigned dim) {
    for (unsigned i = dim; i < rank(); ++i)
      if (shape[i] != 1)
        return std::abs(strides[i]);
    return int64_t(0);
  };
  llvm::stable_sort(dims, [&](unsigned a, unsigned b) { return key(a) > key(b); });
  return dims;
}

bool DeviceTensor::isDense() const {
  SmallVector<int64_t> dense = denseStrides(shape, order(), elementSize());
  for (size_t i = 0; i < rank(); ++i)
    if (shape[i] > 1 && dense[i] != strides[i])
      return false;
  return true;
}

std::pair<DeviceTensor, DeviceTensor> DeviceTensor::halves(int dim) const {
  DeviceTensor first = *this, second = *this;
  first.shape[dim] = second.shape[dim] = shape[dim] / 2;
  second.address = address.plus(shape[dim] / 2 * strides[dim]);
  return {first, second};
}

std::pair<DeviceTensor, DeviceTensor> DeviceTensor::folded(Split by) const {
  DeviceTensor first = *this, second = *this;
  const int64_t part = by.part / 2, bytes = part * strides[by.dim];
  first.shape[by.dim] = second.shape[by.dim] = part;
  first.address = address.plusQuad(bytes);
  second.address = address.plus(shape[by.dim] * strides[by.dim] - bytes).plusQuad(-bytes);
  return {first, second};
}

bool DeviceTensor::isRowMajor() const { return isDense() && order() == rowMajor(rank()); }

bool DeviceTensor::liesAs(const DeviceTensor &other) const {
  return shape == other.shape && llvm::all_of(llvm::seq(rank()), [&](size_t dim) {
           return shape[dim] == 1 || strides[dim] == other.strides[dim];
         });
}

SmallVector<int64_t> dmxc::corsair::denseStrides(ArrayRef<int64_t> shape, ArrayRef<unsigned> order,
                                                 int64_t elementSize) {
  SmallVector<int64_t> strides(shape.size());
  int64_t stride = elementSize;
  for (unsigned dim : llvm::reverse(order)) {
    strides[dim] = stride;
    stride *= std::max<int64_t>(shape[dim], 1);
  }
  return strides;
}

DeviceTensor DeviceTensor::transposed(ArrayRef<int64_t> permutation) const {
  DeviceTensor result = *this;
  for (auto [dim, from] : llvm::enumerate(permutation))
    result.shape[dim] = shape[from], result.strides[dim] = strides[from];
  return result;
}

DeviceTensor DeviceTensor::broadcast(ArrayRef<int64_t> to) const {
  DeviceTensor result{kind, SmallVector<int64_t>(to), SmallVector<int64_t>(to.size(), 0), address};
  const size_t missing = to.size() - rank();
  for (size_t i = 0; i < rank(); ++i)
    if (shape[i] == to[i + missing])
      result.strides[i + missing] = strides[i];
  return result;
}

size_t DeviceTensor::dimsOfWalk(ArrayRef<int64_t> axes) const {
  size_t dims = 0;
  std::optional<unsigned> outer;
  for (unsigned dim : order()) {
    if (!llvm::is_contained(axes, dim) || shape[dim] == 1)
      continue;
    dims += !outer || strides[*outer] != strides[dim] * shape[dim];
    outer = dim;
  }
  return dims;
}

std::optional<DeviceTensor> DeviceTensor::reshaped(ArrayRef<int64_t> to) const {
  DeviceTensor result{kind, SmallVector<int64_t>(to), SmallVector<int64_t>(to.size(), 0), address};
  if (elements() == 0)
    return result;
  size_t i = 0, j = 0;
  while (i < rank() && j < to.size()) {
    size_t iEnd = i + 1, jEnd = j + 1;
    int64_t left = shape[i], right = to[j];
    while (left != right)
      if (left < right)
        left *= shape[iEnd++];
      else
        right *= to[jEnd++];
    // The dims i..iEnd become j..jEnd: they must be one run with one stride.
    int64_t stride = 0, extent = 1;
    for (size_t k = iEnd; k-- > i;) {
      if (shape[k] == 1)
        continue;
      if (extent == 1)
        stride = strides[k];
      else if (strides[k] != stride * extent)
        return std::nullopt;
      extent *= shape[k];
    }
    for (size_t k = jEnd; k-- > j; stride *= to[k])
      result.strides[k] = stride;
    i = iEnd;
    j = jEnd;
  }
  return result;
}

SmallVector<CopyDim> dmxc::corsair::copyDims(const DeviceTensor &from, const DeviceTensor &to) {
  SmallVector<CopyDim> dims;
  for (unsigned dim : from.order())
    if (from.shape[dim] != 1)
      dims.push_back({from.shape[dim], from.strides[dim], to.strides[dim]});
  dims.push_back({from.elementSize(), 1, 1});
  for (size_t i = dims.size() - 1; i-- > 0;)
    if (dims[i].from == dims[i + 1].from * dims[i + 1].extent && dims[i].to == dims[i + 1].to * dims[i + 1].extent) {
      dims[i + 1].extent *= dims[i].extent;
      dims.erase(dims.begin() + i);
    }
  return dims;
}

void dmxc::corsair::addDims(DmaSpec &spec, ArrayRef<CopyDim> dims) {
  for (const CopyDim &dim : dims)
    spec.dims.push_back({dim.extent, dim.from, dim.to});
}

hw::Piece dmxc::corsair::wholePiece(const DeviceTensor &tensor, ArrayRef<unsigned> order) {
  hw::Piece piece;
  for (unsigned dim : order) {
    piece.begin.push_back(0);
    piece.extent.push_back(tensor.shape[dim]);
    piece.strides.push_back(tensor.strides[dim]);
  }
  return piece;
}

SmallVector<unsigned> dmxc::corsair::rowMajor(size_t rank) {
  SmallVector<unsigned> order(rank);
  std::iota(order.begin(), order.end(), 0);
  return order;
}
