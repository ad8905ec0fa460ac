//===- MatmulView.cpp - operands of a product as strided matrices ---------===//

#include "MatmulView.h"

using namespace dmxc::corsair;

static int64_t batchStride(const DeviceTensor &tensor, size_t dim, size_t rank) {
  size_t missing = rank - tensor.rank();
  return dim < missing || tensor.shape[dim - missing] == 1 ? 0 : tensor.strides[dim - missing];
}

MatmulShape::MatmulShape(const DeviceTensor &a, const DeviceTensor &out)
    : m(out.shape[out.rank() - 2]), n(out.shape.back()), k(a.shape.back()) {
  operands.a = a.address;
  operands.aRow = a.strides[a.rank() - 2];
  operands.aColumn = a.strides.back();
  operands.aTiles = a.kind == hw::ElemKind::Bfp16R;
  operands.out = out.address;
  operands.outRow = out.strides[out.rank() - 2];
  for (size_t i = 0; i + 2 < out.rank(); ++i)
    if (out.shape[i] != 1)
      batch.push_back({out.shape[i], batchStride(a, i, out.rank()), 0, out.strides[i]});
  joinBatch();
}

MatmulShape::MatmulShape(const DeviceTensor &a, const DeviceTensor &b, const DeviceTensor &out, bool batched)
    : MatmulShape(a, out) {
  // Joined batch dims have no stride in B; start again where it has one.
  if (batched) {
    m = out.shape[out.rank() - 2];
    operands.aRow = a.strides[a.rank() - 2];
    operands.outRow = out.strides[out.rank() - 2];
    batch.clear();
    for (size_t i = 0; i + 2 < out.rank(); ++i)
      if (out.shape[i] != 1)
        batch.push_back({out.shape[i], batchStride(a, i, out.rank()), batchStride(b, i, out.rank()), out.strides[i]});
  }
  operands.b = b.address;
  operands.bRow = b.strides[b.rank() - 2];
  operands.bColumn = b.strides.back();
}

void MatmulShape::joinBatch() {
  while (!batch.empty()) {
    BatchDim last = batch.back();
    bool one = m == 1;
    if (!one && (last.a != m * operands.aRow || last.out != m * operands.outRow))
      return;
    if (one) {
      operands.aRow = last.a;
      operands.outRow = last.out;
    }
    m *= last.extent;
    batch.pop_back();
  }
}
