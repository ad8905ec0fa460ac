//===- RowKernels.h - softmax and normalisation -----------------*- C++ -*-===//
#pragma once

#include "Rows.h"

namespace dmxc::cpu {

/// dmir.softmax and dmir.normalize with fused producers and an elementwise epilogue.
RowPlan planRowKernel(const RegionBody &body);
/// Scratch of one thread in bytes, for every level: a copy of the rows it works on.
Dim rowKernelScratch(const RegionBody &body, const RowPlan &plan);
void emitRowKernel(KernelBuilder &b, const RegionBody &body, const RowPlan &plan);

} // namespace dmxc::cpu
