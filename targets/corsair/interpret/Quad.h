//===- Quad.h - one quad's buffers, and ops on them -------------*- C++ -*-===//
#pragma once

#include "Arrays.h"
#include "Indices.h"

#include "targets/corsair/dialect/AffineExt/AffineExt.h"
#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace dmxc::corsair::stages {

/// What one quad has in its memories while a kernel of buffers is evaluated. A grid of tiles is the elements that it is
/// a view of; a tile is a matrix of its own.
class Quad {
public:
  Quad(int64_t number, int64_t quads) : number(number), quads(quads) {}

  void set(mlir::Value value, View view) { views[value] = std::move(view); }
  void setIndex(mlir::Value value, int64_t index) { indices.set(value, index); }
  Result<View> viewOf(mlir::Operation *reader, mlir::Value value) const;
  /// An op that the quad computes by itself, loops with all that is in them.
  Status evaluate(mlir::Operation *op);
  Status evaluateBody(mlir::Block &body);

private:
  Status put(mlir::Operation *op, View view);
  Status carry(mlir::Operation *op, mlir::ValueRange from, mlir::ValueRange to);

  // memory
  Status lower(mlir::memref::AllocOp op);
  Status lower(mlir::memref::SubViewOp op);
  Status lower(mlir::memref::TransposeOp op);
  Status lower(mlir::memref::ReinterpretCastOp op);
  Status lower(affine_ext::TilesOp op);

  // tiles
  Result<View> tilesAt(mlir::Operation *op, mlir::Value grid, llvm::ArrayRef<int64_t> at,
                       llvm::ArrayRef<int64_t> counts) const;
  Result<View> numbersOf(mlir::Operation *op, mlir::Value tile) const;
  Status lower(mlir::affine::AffineForOp op);
  Status lower(mlir::affine::AffineIfOp op);
  Status lower(mlir::affine::AffineLoadOp op);
  Status lower(mlir::affine::AffineStoreOp op);
  Status lower(affine_ext::LoadOp op);
  Status lower(affine_ext::CastOp op);
  Status lower(affine_ext::MatMulOp op);
  Status lower(lldmir::MatMulOp op);
  Status lowerTile(lldmir::SimdOp op);
  Status functionOfTiles(lldmir::SimdOp op, dmx::corsair::ElemKind kind);

  // whole buffers
  Status lower(lldmir::SimdOp op);
  Status lower(lldmir::ReshapeOp op);
  Status lower(lldmir::ConvOp op);
  Status epilogue(lldmir::ConvOp op, const View &sums, const View &out);
  Status lower(lldmir::SumOp op);
  Status function(lldmir::SimdOp op, const View &out, llvm::ArrayRef<View> inputs);
  Status deviceFunction(lldmir::SimdOp op, const View &out, llvm::ArrayRef<View> inputs);
  Status lowerMask(lldmir::SimdOp op, const View &out, const View &input);
  /// The operands of an op that is dealt: of what the quad has all of, its part.
  Result<llvm::SmallVector<View>> dealt(mlir::Operation *op, mlir::ValueRange inputs, const View &out) const;

  const int64_t number, quads;
  llvm::DenseMap<mlir::Value, View> views;
  llvm::DenseMap<mlir::Value, Sums> sums; ///< tiles that have not left the arrays
  Indices indices;
};

} // namespace dmxc::corsair::stages
