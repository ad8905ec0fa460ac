//===- GemmDecisions.h - what of a product's blocking is free ---*- C++ -*-===//
#pragma once

#include "Gemm.h"
#include "targets/cpu/Kernels.h"

namespace dmxc::cpu {

/// Most rows of a register tile whose sums, with a row of B and an element of A, stay in registers; code is written out
/// for each, so never very many.
int64_t mostGemmRows(const IsaLevel &isa, int64_t vectors);

/// Of what writeTile wrote.
GemmTiles readGemmTiles(mlir::DictionaryAttr tiles, const GemmKernel &spec, const IsaLevel &isa);

/// A plan's tiles and what is free of them, work, grain and scratch, for a kernel that is one product.
void planGemm(KernelPlan &plan, const GemmKernel &spec, const Choice &choice);

} // namespace dmxc::cpu
