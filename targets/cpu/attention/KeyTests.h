//===- KeyTests.h - what a rule keeps, asked in a run -----------*- C++ -*-===//
//
// A rule may have values that a run brings: ids of rows and keys, padding, a whole mask. Of the rows of a block and of
// some keys their least and greatest numbers say whether a key is kept by some row, or all are by all.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "targets/common/element/ElementExpr.h"
#include "targets/cpu/code/CpuBuilder.h"

#include "dmxc/Dialect/DMIR/masks/Where.h"

namespace dmxc::cpu {

/// Whether a rule has values that differ from key to key.
bool differsAlongKeys(const dmir::Rule &rule);

class KeyTests {
public:
  using Bounds = std::pair<mlir::Value, mlir::Value>; ///< inclusive

  /// Of rows [row, row + rows) of a matrix; `batch` are the indices before them. A rule of no mask has no values.
  KeyTests(CpuBuilder &b, kernels::ElementExpr &e, dmir::MaskOp mask, dmir::Rule rule,
           llvm::ArrayRef<kernels::Index> batch, mlir::Value row, mlir::Value rows);

  /// Of all indices but the last.
  llvm::ArrayRef<Bounds> rows() const { return rowBounds; }
  /// Of what the rule's symbols stand for, whatever the key.
  llvm::ArrayRef<Bounds> symbols() const { return symbolBounds; }
  /// i1s: whether the rule may keep some of keys [from, to), and whether it keeps all.
  std::pair<mlir::Value, mlir::Value> ask(mlir::Value from, mlir::Value to);

private:
  Bounds boundsOf(mlir::Value value, const dmir::RuleValue &how, mlir::Value from, mlir::Value to);

  CpuBuilder &b;
  kernels::ElementExpr &e;
  dmir::MaskOp mask;
  dmir::Rule rule;
  kernels::Indices batch;
  llvm::SmallVector<Bounds> rowBounds, symbolBounds;
};

} // namespace dmxc::cpu
