//===- Groups.cpp - equal elements, and repeated ones ---------------------===//
#include "Groups.h"

#include "../Counting.h"
#include "../Formulas.h"

using namespace dmxc::dmir;

namespace dmxc::frontend {

namespace {

/// Rows in order, and which of them differ from the one before.
struct SortedRows {
  Val order, isNew;
};

Val previous(Counting &n, const Val &rows) {
  Emitter &e = n.e;
  return e.gather(rows, e.max(e.add(n.positions(rows.extent(0)), -1.0), e.size(0)), 0);
}

/// One column: sorted as numbers.
SortedRows sortNumbers(Counting &n, const Val &numbers) {
  Emitter &e = n.e;
  std::vector<Val> sorted = n.sorted(numbers, 0);
  Val differs = e.compare(Compare::ne, sorted[0], previous(n, sorted[0]));
  return {sorted[1], either(e, e.compare(Compare::eq, n.positions(numbers.extent(0)), e.size(0)), differs)};
}

/// Several columns: each row's place is the number of rows that come before it, compared at the first column in which
/// they differ.
SortedRows sortRows(Counting &n, const Val &rows) {
  Emitter &e = n.e;
  Dim count = rows.extent(0), width = rows.extent(1);
  Val a = e.reshape(rows, {count, 1, width}), b = e.reshape(rows, {1, count, width});
  Val differs = e.cast(e.compare(Compare::ne, a, b), DType::I32);
  Val column = argExtremum(e, Extremum::max, differs, 2, /*keep=*/true);
  auto at = [&](const Val &value) {
    return e.reshape(gatherElements(e, e.broadcast(value, {count, count, width}), column, 2), {count, count});
  };
  Val x = at(a), y = at(b), row = e.iota(DType::I64, {count, 1}, 0), other = e.iota(DType::I64, {1, count}, 1);
  Val equal = e.compare(Compare::eq, x, y), earlier = e.compare(Compare::lt, row, other);
  // before[i][j]: row i comes before row j; equal ones stay in order.
  Val before = either(e, e.compare(Compare::lt, x, y), both(e, equal, earlier));
  Val place = e.reduce(Reduction::sum, e.cast(before, DType::I64), {0}, false);
  Val order = n.scatter(e.splat(DType::I64, {count}, 0), place, n.positions(count));
  Val twin = e.reduce(Reduction::max, e.cast(both(e, equal, earlier), DType::I32), {0}, false);
  return {order, e.compare(Compare::eq, e.gather(twin, order, 0), e.scalar(DType::I32, 0))};
}

/// `order` is null where the rows are in order already.
Groups groupsOf(Counting &n, const Val &isNew, const Val &order) {
  Emitter &e = n.e;
  Dim total = isNew.extent(0);
  Val start = n.whereTrue(isNew), group = e.add(n.runningCount(isNew), -1.0);
  Val after = e.sliceAxis(e.concat({start, e.sizes({total})}, 0), 0, 1, start.extent(0)), counts = e.sub(after, start);
  if (!order)
    return {start, group, counts};
  return {e.gather(order, start, 0), n.scatter(e.splat(DType::I64, {total}, 0), order, group), counts};
}

} // namespace

Groups equalRows(Emitter &e, const Val &x, int64_t axis) {
  Counting n(e);
  if (x.rank() == 1) {
    SortedRows sorted = sortNumbers(n, x);
    return groupsOf(n, sorted.isNew, sorted.order);
  }
  Val moved = moveAxis(e, x, axis, 0);
  Dim count = x.extent(axis), width = product(llvm::ArrayRef<Dim>(moved.dims()).drop_front());
  SortedRows sorted = sortRows(n, e.reshape(moved, {count, width}));
  return groupsOf(n, sorted.isNew, sorted.order);
}

Groups runsOfRows(Emitter &e, const Val &x, int64_t axis) {
  Counting n(e);
  Val moved = moveAxis(e, x, axis, 0);
  Val differs = e.cast(e.compare(Compare::ne, moved, previous(n, moved)), DType::I32);
  Val differ = e.reduce(Reduction::max, differs, axesFrom(1, x.rank()), false);
  Val first = e.compare(Compare::eq, n.positions(x.extent(axis)), e.size(0));
  return groupsOf(n, either(e, first, e.compare(Compare::eq, differ, e.intScalar(DType::I32, 1))), Val());
}

Val repeated(Emitter &e, const Val &counts, Dim total) {
  Counting n(e);
  Dim count = counts.extent(0), rest = Dim::max(count - 1, 0);
  // Ones where each but the first begins; their running sum counts them.
  Val begin = e.sliceAxis(cumulativeSum(e, counts, 0), 0, 0, rest);
  Val marks = scatterElements(e, e.splat(DType::I64, {total + 1}, 0), begin, e.splat(DType::I64, {rest}, 1), 0,
                              ScatterMode::add);
  return e.sliceAxis(cumulativeSum(e, marks, 0), 0, 0, total);
}

} // namespace dmxc::frontend
