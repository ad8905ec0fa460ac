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

} // namespace dmxc::frontend
