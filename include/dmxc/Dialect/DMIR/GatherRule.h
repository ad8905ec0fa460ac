//===- GatherRule.h - constant indices that follow from their place -*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/DMIR.h"

#include "mlir/IR/IRMapping.h"

#include <optional>

namespace dmxc::dmir {

/// The i-th index of a line is first + (i / run) * step.
struct GatherRule {
  int64_t first, step, run;
  int64_t at(int64_t i) const { return first + i / run * step; }
};
/// The rule of a constant line of two indices or more, if it has one, and the axis is known and has all of them.
std::optional<GatherRule> gatherRuleOf(GatherOp gather);
/// Whether a constant is used as such a line.
bool isRuledIndex(const mlir::OpOperand &use);
/// A copy of a constant whose numbers stand in the text itself, so that kernels of the same numbers are one.
void cloneInText(mlir::OpBuilder &builder, mlir::Operation *constant, mlir::IRMapping &mapping);

} // namespace dmxc::dmir
