//===- PlacementSizes.h - what dims are assumed to be -----------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/Model.h"

#include "llvm/ADT/StringMap.h"

namespace dmxc::driver {

/// Values of dims where symbols of inputs have given ones.
class ModelSizes {
public:
  using Given = std::function<std::optional<int64_t>(llvm::StringRef symbol)>;
  ModelSizes(mlir::ModuleOp module, Given given);
  std::optional<int64_t> of(Dim dim) const;
  /// The symbols that one is computed from; itself where it is not.
  llvm::SmallVector<std::string> inputsOf(llvm::StringRef symbol) const;

private:
  mlir::ModuleOp module;
  Given given;
  llvm::StringMap<Dim> computed;
};

/// Ops that cost something: no constants, no terminators.
bool isComputed(mlir::Operation &op);

} // namespace dmxc::driver
