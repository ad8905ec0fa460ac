//===- Shares.h - what a quad has of a value that is dealt ------*- C++ -*-===//
//
// In loops over quads offsets count from where the whole value begins. A quad has its share alone, and no other.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

#include <optional>

namespace dmxc {

/// The dim along which a loop over quads puts what each makes; nothing where it does not follow from the quad.
std::optional<int64_t> dimOfQuads(mlir::tensor::InsertSliceOp insert);

/// Elements of a share, and of a piece of it.
struct Piece {
  int64_t share, size;
};
/// The offset of a piece from where the quad's share begins, in the new code that `mapping` has: without quad * share.
/// Fails, at `op`, where the piece is not in the quad's own share.
mlir::FailureOr<mlir::OpFoldResult> inShare(mlir::OpBuilder &builder, mlir::Operation *op, mlir::OpFoldResult offset,
                                            Piece piece, const mlir::IRMapping &mapping);

} // namespace dmxc
