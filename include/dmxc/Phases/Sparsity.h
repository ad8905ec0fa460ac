//===- Sparsity.h - facts of sparsity in texts ------------------*- C++ -*-===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <string>
#include <vector>

namespace dmxc {

/// Constants and results of fewer elements are not looked at: what they leave out pays for nothing.
inline constexpr int64_t kLeastSparse = 4096;

/// Gives the ops of a function the facts that follow, and no others; none where that is switched `off`.
void findFacts(mlir::func::FuncOp function, int64_t least = kLeastSparse, bool off = false);

/// What an op's `dmir.sparsity` says and what its operands and users do not imply.
struct FalseFact {
  mlir::Operation *op;
  std::string what; ///< a clause about it
};
/// Of a module's functions, and of its kernels that multiply matrices, each derived anew; of a kernel's operands what
/// it says itself is taken as given, and what nothing follows of is not false. `keepsOps`: whether kernels of a device
/// hold the ops that regions had.
std::vector<FalseFact> falseFacts(mlir::ModuleOp module, llvm::function_ref<bool(llvm::StringRef device)> keepsOps);

} // namespace dmxc
