//===- Order.h - order along an axis ----------------------------*- C++ -*-===//
#pragma once

#include "../Emitter.h"

#include <functional>

namespace dmxc::frontend {

/// The first `count` elements of an axis in order and where they stood; equal ones stay in order.
std::vector<Val> sorted(Emitter &e, const Val &x, int64_t axis, Dim count, bool largest);
/// Where an extreme element of an axis stands: the first, or the last of them.
Val argExtremum(Emitter &e, dmir::Extremum kind, const Val &x, int64_t axis, bool keep, bool last = false);
/// [.., 1, ..]: where the largest element of an axis stands that may have none; the first of them.
Val placeOfLargest(Emitter &e, const Val &x, int64_t axis);
/// The running sum along an axis: `exclusive` without the element itself, `reverse` from the end.
Val cumulativeSum(Emitter &e, const Val &x, int64_t axis, bool exclusive = false, bool reverse = false);
/// The running product in the same way.
Val cumulativeProduct(Emitter &e, Val x, int64_t axis, bool exclusive = false, bool reverse = false);
/// Of values at one place and at another behind it, what stands for both; it must be associative.
using Combine = std::function<std::vector<Val>(llvm::ArrayRef<Val> earlier, llvm::ArrayRef<Val> later)>;
/// What each element of an axis makes with those before it. The values have equal dims.
std::vector<Val> running(Emitter &e, std::vector<Val> values, int64_t axis, const Combine &combine);
/// The extreme element up to each one and where it stands, of equal ones the last; a NaN exceeds all.
std::vector<Val> runningExtremum(Emitter &e, dmir::Extremum kind, const Val &x, int64_t axis);
/// `data` with `updates` at `indices` of the axis.
Val scatterElements(Emitter &e, const Val &data, const Val &indices, const Val &updates, int64_t axis,
                    dmir::ScatterMode mode);
/// An element of an axis for each index.
Val gatherElements(Emitter &e, const Val &data, const Val &indices, int64_t axis);
/// `data` with `updates` where the rows of `indices` point.
Val scatterND(Emitter &e, const Val &data, const Val &indices, const Val &updates, dmir::ScatterMode mode);

} // namespace dmxc::frontend
