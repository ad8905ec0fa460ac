//===- Order.cpp - order along an axis ------------------------------------===//
#include "Order.h"

#include "Formulas.h"

#include <limits>

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

Val placeOfLargest(Emitter &e, const Val &x, int64_t axis) {
  Val rows = x;
  if (!x.extent(axis).isStatic()) { // of none in a run there is no largest; one below all others is not taken
    Dims low(x.rank(), 0), high(x.rank(), 0);
    high[axis] = 1;
    rows = e.pad(x, e.scalarLike(x, -std::numeric_limits<double>::infinity()), low, high);
  }
  return argExtremum(e, Extremum::max, rows, axis, /*keep=*/true);
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

/// By doubling: after step s each element holds what the last 2s make. How many steps there are, a run may decide.
std::vector<Val> running(Emitter &e, std::vector<Val> values, int64_t axis, const Combine &combine) {
  const Dim count = values.front().extent(axis);
  Dims line(values.front().rank(), 1);
  line[axis] = count;
  auto doubled = [&](llvm::ArrayRef<Val> later, const Val &step) {
    Val from = e.sub(e.iota(DType::I64, {count}, 0), step), none = e.intScalar(DType::I64, 0);
    Val inside = e.reshape(e.compare(Compare::ge, from, none), line);
    std::vector<Val> earlier, result;
    for (const Val &value : later)
      earlier.push_back(e.gather(value, e.max(from, none), axis));
    for (auto [whole, value] : llvm::zip_equal(combine(earlier, later), later))
      result.push_back(e.select(inside, whole, value));
    return result;
  };
  if (count.isStatic()) {
    for (int64_t step = 1; step < *count.known(); step *= 2)
      values = doubled(values, e.intScalar(DType::I64, step));
    return values;
  }
  auto body = [&](const Val &, const Val &, llvm::ArrayRef<Val> carried) {
    std::vector<Val> next = doubled(carried.drop_back(), carried.back());
    for (auto [value, before] : llvm::zip_equal(next, carried.drop_back()))
      value = e.expectDims(value, before.dims());
    next.push_back(e.add(carried.back(), carried.back()));
    next.insert(next.begin(), e.compare(Compare::lt, next.back(), e.size(count)));
    return next;
  };
  Val first = e.intScalar(DType::I64, 1), some = e.compare(Compare::lt, first, e.size(count));
  values.push_back(first);
  values = e.loop(Val(), some, values, body);
  values.pop_back();
  return values;
}

std::vector<Val> runningExtremum(Emitter &e, Extremum kind, const Val &x, int64_t axis) {
  Dims line(x.rank(), 1);
  line[axis] = x.extent(axis);
  Val places = e.broadcast(e.iota(DType::I64, line, axis), x.dims());
  return running(e, {x, places}, axis, [&](llvm::ArrayRef<Val> earlier, llvm::ArrayRef<Val> later) {
    const Val &a = earlier[0], &b = later[0];
    Val keep = e.compare(kind == Extremum::max ? Compare::gt : Compare::lt, a, b);
    if (isFloat(x.dtype()))
      keep = both(e, notOf(e, isNaN(e, b)), either(e, keep, isNaN(e, a)));
    return std::vector<Val>{e.select(keep, a, b), e.select(keep, earlier[1], later[1])};
  });
}

Val gatherElements(Emitter &e, const Val &data, const Val &indices, int64_t axis) {
  return e.emit<GatherElementsOp>({data, indices}, {e.attr("axis", axis)});
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
