//===- Product.cpp - matrix products --------------------------------------===//
#include "Product.h"

namespace dmxc::frontend {

Val numpyMatMul(Emitter &e, Val a, Val b) {
  bool row = a.rank() == 1, column = b.rank() == 1;
  if (a.rank() == 0 || b.rank() == 0)
    fail("op-rank", "a scalar is no matrix");
  if (row)
    a = e.reshape(a, {1, a.extent(0)});
  if (column)
    b = e.reshape(b, {b.extent(0), 1});
  Val product = e.matmul(a, b);
  if (!row && !column)
    return product;
  Dims shape = product.dims();
  if (column)
    shape.pop_back();
  if (row)
    shape.erase(shape.end() - (column ? 1 : 2));
  return e.reshape(product, shape);
}

Val groupedProduct(Emitter &e, const Val &rows, const Val &weights, const Val &ends) {
  if (rows.dtype() != weights.dtype() || !isFloat(rows.dtype()))
    fail("op-dtype",
         "grouped rows and matrices must be floats of one type, not " + rows.describe() + " and " + weights.describe());
  return e.emit<dmir::GroupedMatMulOp>({rows, weights, e.cast(ends, DType::I64)});
}

} // namespace dmxc::frontend
