//===- Accesses.h - what ops in loops touch ---------------------*- C++ -*-===//
#pragma once

#include "mlir/Dialect/Affine/IR/AffineOps.h"

#include <string>

namespace dmxc::transform {

/// What an op touches: a box of a memref, or of a tensor that a nest carries.
struct Access {
  mlir::Operation *op = nullptr;
  mlir::Value of, base; ///< as it is named, and the memory or the carried tensor
  bool writes = false;
  bool isWhole = false; ///< any of it
  mlir::AffineMap map;  ///< where the box begins
  mlir::SmallVector<mlir::Value> operands;
  mlir::SmallVector<int64_t> sizes;
  mlir::SmallVector<mlir::affine::AffineForOp> loops; ///< around the op, from the nest's root on
};

/// What the ops of a nest touch; `unknown` is the first op of which nobody knows it.
struct Accesses {
  explicit Accesses(mlir::affine::AffineForOp root);

  mlir::SmallVector<Access> all;
  mlir::Operation *unknown = nullptr;

private:
  void add(mlir::Operation *op);
  void addBox(mlir::Operation *op, mlir::Value of, bool writes, mlir::AffineMap map, mlir::ValueRange operands,
              mlir::ArrayRef<int64_t> sizes);
  void addWhole(mlir::Operation *op, mlir::Value of, bool writes);
  void addCarried(mlir::Value argument, mlir::Value yielded);
  void addSlice(mlir::OffsetSizeAndStrideOpInterface op, mlir::Value of, bool writes);

  mlir::affine::AffineForOp root;
};

/// The memory that a memref is a view of.
mlir::Value baseOf(mlir::Value memref);
/// Whether two of them may be the same memory.
bool mayBeSame(mlir::Value a, mlir::Value b);

} // namespace dmxc::transform
