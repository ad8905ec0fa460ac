//===- TileForms.h - values of loops over tiles -----------------*- C++ -*-===//
#pragma once

#include "mlir/Dialect/Affine/IR/AffineOps.h"

#include <cstdint>
#include <optional>

namespace dmxc {

enum class TileForm : uint8_t { Number, Activations, Weights, Bias, Sum };

/// As what a tile of this type takes part in a product; nothing for other types.
std::optional<TileForm> formOf(mlir::Type type);

/// An index; sums and products wrap, what is divided by no positive number is -1.
int64_t evaluate(mlir::AffineExpr expr, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> symbols);

/// Whether operands are in a set, by `evaluate`.
bool holds(mlir::IntegerSet set, llvm::ArrayRef<int64_t> operands);

/// Whether it is a tile that all trips of the nest behind it read, moved before that (nest.hoisted): a part of the
/// nest, with nothing but such loads between.
bool isOfNestBehind(mlir::affine::AffineLoadOp load);
/// All of a nest, in their order.
mlir::SmallVector<mlir::affine::AffineLoadOp> loadsBefore(mlir::affine::AffineForOp nest);

} // namespace dmxc
