//===- TileForms.h - values of loops over tiles -----------------*- C++ -*-===//
#pragma once

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Types.h"

#include <cstdint>
#include <optional>

namespace dmxc {

enum class TileForm : uint8_t { Number, Activations, Weights, Bias, Sum };

/// As what a tile of this type takes part in a product; nothing for other types.
std::optional<TileForm> formOf(mlir::Type type);

/// An index; sums and products wrap, what is divided by no positive number is -1.
int64_t evaluate(mlir::AffineExpr expr, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> symbols);

} // namespace dmxc
