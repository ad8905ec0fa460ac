//===- Groups.h - equal elements, and repeated ones -------------*- C++ -*-===//
#pragma once

#include "../../Emitter.h"

namespace dmxc::frontend {

/// Equal elements as one group each, all i64: where the first of each stands, each element's group, and how many there
/// are.
struct Groups {
  Val first, inverse, counts;
};
/// Of slices along an axis, the groups in the slices' order.
Groups equalRows(Emitter &e, const Val &x, int64_t axis);
/// Of slices that follow one another.
Groups runsOfRows(Emitter &e, const Val &x, int64_t axis);
/// The number of each element as often as `counts` (i64, a vector) has it, of which there are `total` in all.
Val repeated(Emitter &e, const Val &counts, Dim total);

} // namespace dmxc::frontend
