//===- Sparsity.h - what masks leave out ------------------------*- C++ -*-===//
#pragma once

#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>
#include <vector>

namespace dmxc::driver {

/// A softmax over masked scores, in a module after partition.
struct AttentionSparsity {
  bool byRule = false;  ///< its mask is a rule; else:
  bool unknown = false; ///< it is a tensor
  bool skips = false;   ///< the kernel does not look at what the rule leaves out
  /// Of all batch items and heads; nothing where sizes are open.
  std::optional<int64_t> scores, kept;
};

std::vector<AttentionSparsity> sparsityOf(mlir::ModuleOp module);
/// "masks: 12 of 12 masked attentions by rule, 50.4 % of their scores kept, masked keys skipped in 12"; "" where
/// nothing is masked.
std::string summaryOf(const std::vector<AttentionSparsity> &all);

} // namespace dmxc::driver
