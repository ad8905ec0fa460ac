//===- Answers.h - what a target of kernels says to the phases --*- C++ -*-===//
//
// The answers of TargetBackend that follow from a table of kernels: which ops are computed, which are fused, what is
// recorded of a region. A target passes the questions on; what only a row knows is asked of it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "KernelTable.h"

#include <optional>
#include <string>

namespace dmxc::kernels {

class Answers {
public:
  /// `target` is its name, for sentences.
  Answers(llvm::StringRef target, const KernelTable &table) : target(target), table(table) {}

  std::optional<std::string> refuses(mlir::Operation *op) const;
  bool fusesProducer(mlir::Operation *root, mlir::OpOperand &use, mlir::Operation *producer) const;
  bool yieldsProducer(mlir::Operation *root, mlir::Operation *producer) const;
  bool fusesConsumer(mlir::Operation *root, mlir::Value result, mlir::Operation *consumer) const;
  /// The strategy of a region that is computed as planned.
  mlir::DictionaryAttr strategyOf(dmir::RegionOp region, const KernelPlan &plan) const;

private:
  llvm::StringRef target;
  const KernelTable &table;
};

} // namespace dmxc::kernels
