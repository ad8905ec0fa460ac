//===- TaskDims.h - sizes that a dispatch gives its kernel ------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/DMIR.h"

namespace dmxc::dlir {

/// Of what a target's stages make of a kernel (`#dmir.dims`): the sizes that a dispatch gives it, which the runtime
/// computes from the symbols of a run. `dim_registers` of a dlir.device_program are theirs.
inline constexpr llvm::StringLiteral kTaskDims = "dlir.dims";
inline llvm::ArrayRef<Dim> taskDims(mlir::Operation *kernel) {
  auto dims = kernel->getAttrOfType<dmir::DimsAttr>(kTaskDims);
  return dims ? dims.getDims() : llvm::ArrayRef<Dim>();
}

} // namespace dmxc::dlir
