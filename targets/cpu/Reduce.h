//===- Reduce.h - reductions over axes --------------------------*- C++ -*-===//
//
// dmir.reduce, dmir.arg_reduce and dmir.cumsum with fused producers and an elementwise epilogue.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Rows.h"

namespace dmxc::cpu {

RowPlan planReduce(const RegionBody &body);
void emitReduce(KernelBuilder &b, const RegionBody &body, const RowPlan &plan);

} // namespace dmxc::cpu
