//===- Ops.h - which ops the device computes --------------------*- C++ -*-===//
#pragma once

#include "Distribution.h"

#include "schemas/corsair/SimdFunctions.h"
#include "schemas/corsair/simd/SimdJob.h"

#include "dmxc/Target/TargetBackend.h"

namespace dmxc::corsair {

/// nullopt if a team of so many quads (0: of as many as the machine has) computes the op (with its types and shapes),
/// else why not: a full clause.
std::optional<std::string> refusal(mlir::Operation *op, const hw::Machine &machine, int team);

/// The device's kind of an element type; nullopt for those it has none of. Floats are f16.
std::optional<hw::ElemKind> deviceKind(mlir::Type element);

/// The formats in which an op of a region is computed.
OpFormats formatsOf(mlir::Operation *op);

/// The vector device's function for an elementwise op; nullopt when it has none.
std::optional<hw::SimdFunction> elementwiseFunction(mlir::Operation *op);
/// The vector device's function for rows, its axes and its number; nullopt for other ops.
struct RowsOp {
  hw::SimdFunction function;
  llvm::SmallVector<int64_t> axes;
  float imm0 = 0;
};
std::optional<RowsOp> rowsOp(mlir::Operation *op);

/// A window over the last one or two dims of images; a missing dim is one row. The other numbers are one a spatial dim.
hw::Window windowOf(llvm::ArrayRef<int64_t> image, llvm::ArrayRef<int64_t> result, llvm::ArrayRef<int64_t> kernel,
                    llvm::ArrayRef<int64_t> strides, llvm::ArrayRef<int64_t> dilations, llvm::ArrayRef<int64_t> low);

} // namespace dmxc::corsair
