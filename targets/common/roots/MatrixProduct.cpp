//===- MatrixProduct.cpp - a dmir.matmul as products of matrices --------------===//

#include "MatrixProduct.h"

#include "dmxc/Dialect/DMIR/Dims.h"

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

MatrixProduct::MatrixProduct(dmir::MatMulOp matmul, bool throughCasts) : op(matmul) {
  SmallVector<Dim> result = dmir::dimsOf(op.getResult());
  element = elementOf(op.getResult());
  lhsElement = elementOf(op.getLhs());
  rhsElement = elementOf(op.getRhs());
  size_t rank = result.size();
  m = result[rank - 2];
  n = result[rank - 1];
  // Both operands have k, which a run checks: constant weights tell it where an exporter left the other one open.
  Dim inner = dmir::dimsOf(op.getRhs())[op.getRhs().getType().getRank() - 2];
  k = inner.isStatic() ? inner : dmir::dimsOf(op.getLhs()).back();
  batchDims.assign(result.begin(), result.end() - 2);
  batch = dmir::product(batchDims);
  lhs = stridedView(op.getLhs(), {}, throughCasts);
  rhs = stridedView(op.getRhs(), {}, throughCasts);
  if (lhs) {
    lhsBatch = batchStrides(*lhs, op.getLhs());
    lhsRow = lhs->strides[lhs->strides.size() - 2];
  }
  if (rhs)
    rhsBatch = batchStrides(*rhs, op.getRhs());
}

SmallVector<Dim> MatrixProduct::batchStrides(const StridedView &view, Value operand) {
  SmallVector<Dim> strides(batchDims.size(), 0), shape = dmir::dimsOf(operand);
  size_t missing = batchDims.size() + 2 - shape.size();
  for (size_t axis = 0; axis + 2 < shape.size(); ++axis) {
    unclear |= !shape[axis].isStatic() && !(shape[axis] == batchDims[axis + missing]);
    if (!shape[axis].is(1))
      strides[axis + missing] = view.strides[axis];
  }
  return strides;
}

bool MatrixProduct::joinsRows() const {
  if (batch.is(0) || m.is(0) || llvm::any_of(rhsBatch, [](Dim s) { return !s.is(0); }))
    return false;
  Dim stride = lhsRow, extent = m;
  for (size_t axis = batchDims.size(); axis-- > 0;) {
    if (batchDims[axis].is(1))
      continue;
    if (extent.is(1))
      stride = lhsBatch[axis];
    else if (!(lhsBatch[axis] == stride * extent))
      return false;
    extent *= batchDims[axis];
  }
  return true;
}

void MatrixProduct::joinRows() {
  joined = joinsRows();
  if (!joined)
    return;
  // Rows of one element may have any stride.
  if (m.is(1))
    for (size_t axis = batchDims.size(); axis-- > 0;)
      if (!batchDims[axis].is(1)) {
        lhsRow = lhsBatch[axis];
        break;
      }
  m *= batch;
  batch = 1;
}

Indices MatrixProduct::rowIndex(ElementExpr &e, std::optional<unsigned> rowAxis, Value item, Value row) const {
  Indices index(batchDims.size() + 1, e.at(0));
  if (joined && rowAxis) {
    index[*rowAxis] = e.at(row);
    return index;
  }
  Index rest = e.at(item);
  if (joined) {
    Dim rows = dmir::dimOf(op.getResult(), batchDims.size());
    std::tie(rest, index.back()) = e.divRem(e.at(row), rows.is(0) ? Dim(1) : rows);
  } else {
    index.back() = e.at(row);
  }
  for (size_t axis = batchDims.size(); axis-- > 0;) {
    if (axis == 0)
      index[axis] = rest;
    else
      std::tie(rest, index[axis]) = e.divRem(rest, batchDims[axis].is(0) ? Dim(1) : batchDims[axis]);
  }
  return index;
}
