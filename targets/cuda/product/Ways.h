//===- Ways.h - in which ways a product can be computed ---------*- C++ -*-===//
#pragma once

#include "FewRows.h"
#include "TileProduct.h"
#include "convolution/PatchProduct.h"

namespace dmxc::cuda {

/// The names of the ways.
llvm::StringRef specialisedOf(mlir::Operation *product);
llvm::StringRef plainOf(mlir::Operation *product);
/// A kernel's pipeline; null where it has none.
PipelineOp pipelineOf(mlir::Block *kernel);
/// A block and the product in it.
RegionBody bodyOf(mlir::Block *block);

/// The ways in which a product can be computed.
struct Ways {
  const hw::Machine &machine;
  const GemmProduct *specialised = nullptr; ///< by tensor cores
  const FewRows *few = nullptr;
  const TileProduct *tiled = nullptr;
  const PatchProduct *patched = nullptr;

  Ways(const hw::Machine &machine, const GemmProduct &product, const std::optional<FewRows> &few,
       const std::shared_ptr<const TileProduct> &tiled, const std::shared_ptr<const PatchProduct> &patched)
      : machine(machine), specialised(product.refusal().empty() ? &product : nullptr), few(few ? &*few : nullptr),
        tiled(tiled.get()), patched(patched.get()) {}
  /// The name of the one that is asked for, or where none is of the default.
  llvm::StringRef chosen(mlir::Operation *op, mlir::DictionaryAttr decided) const;
};

} // namespace dmxc::cuda
