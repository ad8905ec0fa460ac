//===- Sort.h - order along an axis -----------------------------*- C++ -*-===//
#pragma once

#include "../AtenContext.h"

namespace dmxc::torchfe {

/// The first `count` elements of an axis in order and where they stood; equal ones stay in order.
std::vector<Val> sorted(Emitter &e, const Val &x, int64_t axis, Dim count, bool largest);
/// Where the first extreme element of an axis stands.
Val argExtremum(Emitter &e, dmir::Extremum kind, const Val &x, int64_t axis, bool keep);
/// The running sum along an axis.
Val cumulativeSum(Emitter &e, const Val &x, int64_t axis);

} // namespace dmxc::torchfe
