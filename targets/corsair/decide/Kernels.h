//===- Kernels.h - what partition decided for a kernel ----------*- C++ -*-===//
#pragma once

#include "Distribution.h"

#include "dmxc/Dialect/DLIR/DLIR.h"

namespace dmxc::corsair {

/// Keys of the strategy.
inline constexpr llvm::StringLiteral kQuadsKey = "quads";   ///< of the team
inline constexpr llvm::StringLiteral kStatesKey = "states"; ///< pairs of argument and result that stay on the device
inline constexpr llvm::StringLiteral kDealsKey = "deals";   ///< of arguments: see Distribution::inputDeals

/// What partition decided for a kernel. Fails, by node and key, where text has something else that the machine cannot
/// do.
Result<Distribution> distributionOf(dlir::KernelOp kernel, const hw::Machine &machine);
/// The form in which a kernel wants a constant; null for what is none.
mlir::DictionaryAttr packedForm(dlir::KernelOp kernel, mlir::BlockArgument argument);

/// In which order the dims of an input lie: channels last for what convolutions read.
llvm::SmallVector<unsigned> preferredOrder(mlir::Value value, size_t rank);
/// Nothing but rows of a constant are read: they are fetched from DDR, where the table may be larger than GM.
bool isTable(mlir::BlockArgument argument);

} // namespace dmxc::corsair
