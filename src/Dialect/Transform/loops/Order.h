//===- Order.h - whether trips may come in another order --------*- C++ -*-===//
#pragma once

#include "mlir/Dialect/Affine/IR/AffineOps.h"

#include <string>

namespace dmxc::transform {

/// Why perfectly nested loops may not run their trips in the order of `order`, expressions of their counters (d0 is
/// that of the outermost): the two ops that would come in another order on the same element; "" where they may. Exact
/// where all indices and bounds are affine; arguments and allocations are taken to be memory of their own.
std::string problemOfOrder(mlir::ArrayRef<mlir::affine::AffineForOp> loops, mlir::ArrayRef<mlir::AffineExpr> order);

/// The same where each trip of the first loops is to be followed by the trip of the second ones with its number.
std::string problemOfFusion(mlir::ArrayRef<mlir::affine::AffineForOp> first,
                            mlir::ArrayRef<mlir::affine::AffineForOp> second);

/// Whether an op in a nest may write to what a memref is of.
bool isWrittenIn(mlir::Operation *root, mlir::Value memref);

} // namespace dmxc::transform
