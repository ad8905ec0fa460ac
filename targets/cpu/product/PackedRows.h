//===- PackedRows.h - rows of constants that products keep packed -*- C++ -*-===//
//
// The table of an embedding is often the right operand of the last product too. Rows that are gathered are then read
// from the panels that the product's operand is packed in, so that a bundle, and a session, has the weights once. A row
// lies in pieces of `unit` columns, 16 units apart.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "targets/cpu/Kernels.h"

namespace dmxc::cpu {

/// Adds to a region's plan the packed forms of constants whose rows it gathers and that all other readers have packed.
void readPackedRows(dmir::RegionOp region, WeightFormat weights, KernelPlan &plan);
/// The operands in panels of a strategy, and their units: of gathered rows, and of products' operands.
llvm::SmallVector<std::pair<unsigned, int64_t>> panelsOf(mlir::DictionaryAttr strategy);

} // namespace dmxc::cpu
