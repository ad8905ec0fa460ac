//===- Counting.h - how many elements there are, and where -----*- C++ -*-===//
#pragma once

#include "Order.h"

namespace dmxc::frontend {

/// Small helpers over an emitter, all i64.
class Counting {
public:
  explicit Counting(Emitter &e) : e(e) {}

  Val flat(const Val &x) { return e.reshape(x, {x.elements()}); }
  Val positions(Dim count) { return e.iota(DType::I64, {count}, 0); }
  Val runningCount(const Val &flags) { return cumulativeSum(e, e.cast(flags, DType::I64), 0); }
  /// `data` with `updates` at `indices`, along axis 0.
  Val scatter(const Val &data, const Val &indices, const Val &updates) {
    return scatterElements(e, data, indices, updates, 0, dmir::ScatterMode::replace);
  }
  /// The positions of the true elements of a bool vector, in order: a dim of its own.
  Val whereTrue(const Val &flags) {
    Dim all = flags.extent(0);
    Val ones = e.cast(flags, DType::I64);
    Dim count = e.dimsOf(e.reduce(dmir::Reduction::sum, ones, {0}, true), all)[0];
    // Each true element writes its position to the next place; the others share a place behind the last.
    Val place = e.select(flags, e.add(runningCount(flags), -1.0), e.size(count));
    Val found = scatter(e.splat(DType::I64, {count + 1}, 0), place, positions(all));
    return e.sliceAxis(found, 0, 0, count);
  }
  /// The elements of an axis in order, smallest first, and where they stood; equal ones stay in order.
  std::vector<Val> sorted(const Val &x, int64_t axis, bool largest = false) {
    return frontend::sorted(e, x, axis, x.extent(axis), largest);
  }
  Val divide(const Val &x, Dim by) { return e.div(x, e.size(Dim::max(by, 1))); }
  Val rest(const Val &x, Dim by) { return e.emit<dmir::ModOp>({x, e.size(Dim::max(by, 1))}); }
  /// Vectors as the rows (axis 0) or the columns (axis 1) of a matrix.
  Val stacked(llvm::ArrayRef<Val> vectors, int64_t axis) {
    std::vector<Val> lines;
    for (const Val &vector : vectors)
      lines.push_back(e.reshape(vector, axis ? Dims{vector.extent(0), 1} : Dims{1, vector.extent(0)}));
    return e.concat(lines, axis);
  }

  Emitter &e;
};

} // namespace dmxc::frontend
