//===- GemmDecisions.h - what of a product's blocking is free ---*- C++ -*-===//
#pragma once

#include "Gemm.h"

#include "dmxc/Target/Decision.h"

#include <vector>

namespace dmxc::cpu {

/// What is decided of a blocking; the rest follows.
struct GemmChoice {
  std::optional<int64_t> rows, vectors, kBlock;
  std::optional<bool> packA;
};

/// Of a strategy's dictionary of levels: {"x86-64-v3" = {rows = 6}}; `whole` has values for all levels. Either may be
/// null.
GemmChoice gemmChoiceOf(mlir::DictionaryAttr levels, llvm::StringRef level, mlir::DictionaryAttr whole = {});

/// Most rows of a register tile whose sums, with a row of B and an element of A, stay in registers; code is written out
/// for each, so never very many.
int64_t mostGemmRows(const IsaLevel &isa, int64_t vectors);

/// The blocking with what is decided, which is not checked; chooseGemmTiles where nothing is.
GemmTiles completeGemmTiles(const GemmSpec &spec, const IsaLevel &isa, const GemmChoice &choice);

/// What is free of a product's blocking on a level, given what is decided. Nothing where operands are fours, blocks or
/// groups of rows.
std::vector<Decision> gemmDecisions(const GemmSpec &spec, const IsaLevel &isa, const GemmChoice &choice);

/// What a strategy keeps of what is decided: by level, what differs from the level's own choice.
mlir::DictionaryAttr decidedTiles(const GemmSpec &spec, llvm::ArrayRef<IsaLevel> levels, mlir::DictionaryAttr decided);

} // namespace dmxc::cpu
