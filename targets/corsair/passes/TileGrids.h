//===- TileGrids.h - buffers of a kernel and their tiles --------*- C++ -*-===//
#pragma once

#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

namespace dmxc {

/// Tiles of 64 that hold so many elements.
inline int64_t tilesOf(int64_t size) { return (size + 63) / 64; }

/// The type of the buffer that an argument of a kernel's function becomes: numbers, or a grid of tiles, of a quad's
/// share where it is dealt. Fails, at the function, where its attributes do not say which.
mlir::FailureOr<mlir::MemRefType> argumentBuffer(mlir::func::FuncOp function, mlir::BlockArgument argument);

/// Indices of tiles from offsets of elements, over `operands`, which are those that `mapping` has. Fails, at `op`, for
/// offsets within a tile.
mlir::FailureOr<mlir::AffineMap> tileMap(mlir::Operation *op, llvm::ArrayRef<mlir::OpFoldResult> offsets,
                                         const mlir::IRMapping &mapping, llvm::SmallVector<mlir::Value> &operands);

/// Where 64 numbers of a vector lie: a tile of the part of a quad, which begins at `part` of its number.
struct VectorPlace {
  mlir::Value quad; ///< null where the vector is whole
  mlir::AffineMap part, tile;
  int64_t lastPart = 0; ///< where the part of the last quad begins
  mlir::SmallVector<mlir::Value> operands;
};
mlir::FailureOr<VectorPlace> placeInVector(mlir::Operation *op, mlir::OpFoldResult offset,
                                           const mlir::IRMapping &mapping);

/// Where the tiles of part q begin, where the part begins at q times its size: each part has tiles of its own.
mlir::FailureOr<mlir::OpFoldResult> partIndex(mlir::OpBuilder &builder, mlir::Operation *op, mlir::OpFoldResult offset,
                                              int64_t size, const mlir::IRMapping &mapping);

} // namespace dmxc
