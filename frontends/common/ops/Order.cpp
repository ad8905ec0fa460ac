//===- Order.cpp - order along an axis ------------------------------------===//
#include "Order.h"

using namespace dmxc::dmir;

namespace dmxc::frontend {

std::vector<Val> sorted(Emitter &e, const Val &x, int64_t axis, Dim count, bool largest) {
  Dims k{count}, dynamic;
  llvm::SmallVector<mlir::NamedAttribute> attributes{e.attr("k", splitDims(k, dynamic).front()), e.attr("axis", axis),
                                                     e.attr("largest", largest)};
  e.addDims(attributes, dynamic);
  return e.emitAll<TopKOp>({x}, attributes);
}

Val argExtremum(Emitter &e, Extremum kind, const Val &x, int64_t axis, bool keep, bool last) {
  return e.emit<ArgReduceOp>({x}, {e.attr("kind", ExtremumAttr::get(e.context(), kind)), e.attr("axis", axis),
                                   e.attr("keepDims", keep), e.attr("selectLast", last)});
}

Val cumulativeSum(Emitter &e, const Val &x, int64_t axis, bool exclusive, bool reverse) {
  return e.emit<CumSumOp>({x}, {e.attr("axis", axis), e.attr("exclusive", exclusive), e.attr("reverse", reverse)});
}

/// Running product along an axis of any size: each element is the product over a row of its own, with ones where an
/// element does not count.
static Val productOfRows(Emitter &e, const Val &x, int64_t axis, bool exclusive, bool reverse) {
  Dims row = x.dims(), mask(x.rank() + 1, 1);
  mask[axis] = mask[axis + 1] = row[axis];
  row.insert(row.begin() + axis, 1);
  Val element = e.iota(DType::I64, mask, axis), factor = e.iota(DType::I64, mask, axis + 1);
  Compare kind = reverse ? exclusive ? Compare::gt : Compare::ge : exclusive ? Compare::lt : Compare::le;
  Val rows = e.select(e.compare(kind, factor, element), e.reshape(x, row), e.scalarLike(x, 1));
  return e.reduce(Reduction::prod, rows, {axis + 1}, false);
}

/// By doubling: after step s each element holds the product of the last 2s.
Val cumulativeProduct(Emitter &e, Val x, int64_t axis, bool exclusive, bool reverse) {
  if (!x.extent(axis).isStatic())
    return productOfRows(e, x, axis, exclusive, reverse);
  int64_t dim = x.dim(axis);
  auto shifted = [&](const Val &v, int64_t by) { // ones come in
    Dims low(x.rank(), 0), high(x.rank(), 0);
    (reverse ? high : low)[axis] = by;
    return e.pad(e.sliceAxis(v, axis, reverse ? by : 0, dim - by), e.scalarLike(x, 1), low, high);
  };
  if (exclusive && dim > 0)
    x = shifted(x, 1);
  for (int64_t step = 1; step < dim; step *= 2)
    x = e.mul(x, shifted(x, step));
  return x;
}

Val scatterElements(Emitter &e, const Val &data, const Val &indices, const Val &updates, int64_t axis,
                    ScatterMode mode) {
  return e.emit<ScatterElementsOp>({data, indices, updates},
                                   {e.attr("axis", axis), e.attr("mode", ScatterModeAttr::get(e.context(), mode))});
}

Val scatterND(Emitter &e, const Val &data, const Val &indices, const Val &updates, ScatterMode mode) {
  return e.emit<ScatterNDOp>({data, indices, updates}, {e.attr("mode", ScatterModeAttr::get(e.context(), mode))});
}

} // namespace dmxc::frontend
