//===- Append.h - rows put into a tensor that has room for them -*- C++ -*-===//
#pragma once

#include "targets/common/roots/Plans.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

namespace dmxc::kernels {

/// concat(whole[.. at], rows, whole[at + n ..]) along an axis: `whole`, of which n rows are others.
struct Append {
  dmir::ConcatOp concat;
  mlir::Value whole, rows;
  uint64_t axis;
  Dim at;
};

/// The append whose result an op gives.
std::optional<Append> matchAppend(mlir::Operation *op);
/// The append that a region is, with what makes its rows: where `whole` is a state with a length, or a strategy says
/// so.
std::optional<Append> appendOf(const RegionBody &body, const PlanRequest &request);
/// Its plan: the result may have the buffer of `whole`, and is written in the rows' places alone then.
KernelPlan planAppend(const RegionBody &body, const Append &append, const PlanRequest &request);

} // namespace dmxc::kernels
