//===- AffineExt.h - tiles as elements of memrefs ---------------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/DMIR.h"

#include "mlir/IR/AffineMap.h"

#include "targets/corsair/dialect/AffineExt/AffineExtDialect.h.inc"
#define GET_TYPEDEF_CLASSES
#include "targets/corsair/dialect/AffineExt/AffineExtTypes.h.inc"
#define GET_OP_CLASSES
#include "targets/corsair/dialect/AffineExt/AffineExtOps.h.inc"

namespace dmxc::affine_ext {

/// The tiles a tensor is cut into: over the last two dimensions 64x64, 64x128 (R) or 128x64 (C) where a matrix tile of
/// the block format is 128 deep; 64 of a vector; one element of a scalar.
VecExtType tileOf(mlir::RankedTensorType tensor);
/// The memref of tiles of a static tensor: memref<8x8x!affine_ext.vec_ext<64x64xf16>> for 512x512. Ragged edges are
/// whole tiles. Of C block_fp the tiles are stored with the last two dimensions of the grid exchanged, so that those
/// of a column are neighbours.
mlir::MemRefType tiledMemRef(mlir::RankedTensorType tensor);
/// The grid of tiles that a buffer of one or two dims is, in the same memory: tiles of 64 or 64x64 elements.
mlir::MemRefType gridOf(mlir::MemRefType buffer);

} // namespace dmxc::affine_ext
