//===- PackedRows.h - rows of constants that products keep packed -*- C++ -*-===//
//
// The table of an embedding is often the right operand of the last product too. Rows that are gathered are then read
// from the panels that the product's operand is packed in, so that a bundle, and a session, has the weights once. A row
// lies in pieces of `unit` columns, 16 units apart. Where the product's weights are rounded, so are the rows.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "targets/cpu/Kernels.h"

namespace dmxc::cpu {

/// Adds to a region's plan the packed forms of constants whose rows it gathers and that all other readers have packed.
void readPackedRows(dmir::RegionOp region, WeightFormat weights, KernelPlan &plan);
/// The operands in panels of a strategy: of gathered rows, and of products' operands.
llvm::SmallVector<std::pair<unsigned, kernels::Panels>> panelsOf(mlir::DictionaryAttr strategy);
/// What the rows of a constant that an op gathers are kept as in panels of a strategy: "bf16", "s8"; "" where they are
/// as the model has them, or op gathers none.
std::string roundedRowsOf(mlir::Operation *op, mlir::DictionaryAttr strategy);

} // namespace dmxc::cpu
