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

/// The grid of tiles that a buffer of one or two dims is, in the same memory: tiles of 64 or 64x64 elements.
mlir::MemRefType gridOf(mlir::MemRefType buffer);

} // namespace dmxc::affine_ext
