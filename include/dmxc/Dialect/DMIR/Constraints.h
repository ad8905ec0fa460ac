//===- Constraints.h - what symbols must hold for an op to be valid -*- C++ -*-===//
//
// Verifiers check shapes as far as they are numbers. What is left for symbols (two operands of a matrix product have
// one k, a slice ends inside its operand) is a constraint, which the runtime checks when it knows the dims.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DMIR/Dims.h"

namespace dmxc::dmir {

/// A condition on dims.
struct DimConstraint {
  /// Broadcast: lhs and rhs are equal or one of them is 1. BroadcastTo: lhs is rhs or 1.
  enum class Kind { Equal, LessOrEqual, Broadcast, BroadcastTo };
  Kind kind;
  Dim lhs, rhs;
  std::string text; ///< what must hold, for the message: "'node': the inner dims of a matrix product are equal"
};

/// Calls `visit` with the conditions of an op that its types do not prove.
void collectConstraints(mlir::Operation *op, llvm::function_ref<void(const DimConstraint &)> visit);

/// Module: array of [name, #dmir.dims of one]: symbols that are computed from others. Long expressions get one, so that
/// those made of them stay short.
inline constexpr llvm::StringLiteral kComputedDimsAttr = "dmir.computed_dims";

/// Gather: its index is out of range where a node's operands break a rule; they are at fault, not an index.
inline constexpr llvm::StringLiteral kRequirementAttr = "dmir.requirement";

/// A function keeps its constraints as this attribute.
inline constexpr llvm::StringLiteral kConstraintsAttr = "dmir.constraints";
/// Those that dims were narrowed by: they must be checked although the ops do not ask for them any more.
inline constexpr llvm::StringLiteral kAssumedAttr = "dmir.assumed";
mlir::Attribute toAttr(mlir::MLIRContext *context, const DimConstraint &constraint);
/// nullopt where the attribute is not one that toAttr makes.
std::optional<DimConstraint> constraintOf(mlir::Attribute attr);

} // namespace dmxc::dmir
