//===- Formats.h - in which numbers nodes are computed ----------*- C++ -*-===//
#pragma once

#include "dmxc/Phases/Phases.h"

#include "mlir/IR/BuiltinOps.h"

namespace dmxc::driver {

/// A node's op whose numbers are not its tensors' own.
struct NodeFormats {
  std::string node, op; ///< "enc/MatMul_2", "matmul"
  OpFormats formats;
};

/// Of a module after partition, in its order.
std::vector<NodeFormats> nodeFormats(mlir::ModuleOp module, const PhaseContext &context);

/// --numerics: a table of them, "" where there are none.
std::string formatTable(llvm::ArrayRef<NodeFormats> all);

/// Keeps them in the module for the bundle.
void keepFormats(mlir::ModuleOp module, llvm::ArrayRef<NodeFormats> all);

/// What the bundle says of them: `debug/formats.json`; "" where none were kept.
std::string keptFormats(mlir::ModuleOp module);

} // namespace dmxc::driver
