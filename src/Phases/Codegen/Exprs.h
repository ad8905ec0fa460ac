//===- Exprs.h - sizes as bundles write them --------------------*- C++ -*-===//
#pragma once

#include "dmxc/Bundle/Graph.h"
#include "dmxc/Dialect/DMIR/Constraints.h"

#include "mlir/IR/Types.h"

namespace dmxc {

bundle::Expr exprOf(Dim dim);
std::vector<bundle::Expr> exprShape(mlir::Type type);
/// A condition of DMIR: that dims broadcast is that they have a broadcast.
bundle::ConstraintDesc constraintDesc(const dmir::DimConstraint &constraint);

} // namespace dmxc
