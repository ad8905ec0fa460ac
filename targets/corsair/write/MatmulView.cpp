//===- MatmulView.cpp - operands of a product as strided matrices ---------===//

#include "MatmulView.h"

using namespace dmxc::corsair;

static int64_t batchStride(const DeviceTensor &tensor, size_t dim, size_t rank) {
  size_t missing = rank - tensor.rank();
  return dim < missing || tensor.shape[dim - missing] == 1 ? 0 : tensor.strides[dim - missing];
}

MatmulShape::MatmulShape(const DeviceTensor &a, const DeviceTensor &b, const DeviceTensor &out)
    : m(out.shape[out.rank() - 2]), n(out.shape.back()), k(a.shape.back()) {
  operands.a = a.address;
  operands.aRow = a.strides[a.rank() - 2];
  operands.aColumn = a.strides.back();
  operands.aTiles = a.kind == hw::ElemKind::Bfp16R;
  operands.aKind = a.kind;
  operands.b = b.address;
  operands.bRow = b.strides[b.rank() - 2];
  operands.bColumn = b.strides.back();
  operands.out = out.address;
  operands.outRow = out.strides[out.rank() - 2];
  for (size_t i = 0; i + 2 < out.rank(); ++i)
    if (out.shape[i] != 1)
      batch.push_back({out.shape[i], batchStride(a, i, out.rank()), batchStride(b, i, out.rank()), out.strides[i]});
}

MatmulShape::MatmulShape(const DeviceTensor &a, const DeviceTensor &out)
    : MatmulShape(a, DeviceTensor{a.kind, {1, 1}, {0, 0}, {}}, out) {
  joinBatch();
}

void MatmulShape::joinBatch() {
  ProductRows rows{m, operands.aRow, operands.outRow};
  rows.join(batch);
  m = rows.count, operands.aRow = rows.a, operands.outRow = rows.out;
}

ProductDims MatmulShape::dims() const {
  ProductDims dims;
  dims.n = n, dims.k = k, dims.kChunks = (k + 63) / 64;
  setRows(dims, {m, operands.aRow, operands.outRow}, batch);
  return dims;
}
