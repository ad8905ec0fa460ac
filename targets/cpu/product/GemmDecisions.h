//===- GemmDecisions.h - what of a product's blocking is free ---*- C++ -*-===//
#pragma once

#include "Gemm.h"
#include "targets/cpu/Kernels.h"

namespace dmxc::cpu {

/// Most rows of a register tile whose sums, with a row of B and an element of A, stay in registers; code is written out
/// for each, so never very many.
int64_t mostGemmRows(const IsaLevel &isa, int64_t vectors);

/// What is free of a product's blocking on a level, given what is decided (may be null). Nothing where operands are
/// fours, blocks or groups of rows.
std::vector<Decision> gemmDecisions(const GemmSpec &spec, const IsaLevel &isa, mlir::DictionaryAttr decided);
/// The blocking with what is decided, as far as it is in the domains.
GemmTiles decidedGemmTiles(const GemmSpec &spec, const IsaLevel &isa, mlir::DictionaryAttr decided);

/// Of what writeTile wrote.
GemmTiles readGemmTiles(mlir::DictionaryAttr tiles, const GemmSpec &spec, const IsaLevel &isa);

/// A plan's tiles and what is free of them, work, grain and scratch, for a kernel that is one product.
void planGemm(KernelPlan &plan, const GemmSpec &spec, const Choice &choice,
              llvm::function_ref<Dim(const GemmTiles &)> workItems);

} // namespace dmxc::cpu
