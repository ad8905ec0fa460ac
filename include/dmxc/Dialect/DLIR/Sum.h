//===- Sum.h - numbers that a device's program computes ---------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DLIR/Device.h"

namespace dmxc::dlir {

/// base + sum of scale * index: what an instruction can take of an affine expression.
struct Sum {
  int64_t base = 0;
  llvm::SmallVector<std::pair<mlir::Value, int64_t>, 2> terms;

  Sum(int64_t base = 0) : base(base) {}
  Sum(mlir::Value index) { terms.push_back({index, 1}); }
  Sum operator+(const Sum &other) const;
  Sum operator*(int64_t scale) const;
};

/// What a result of a task's map is; nullopt where it is no such sum, or one beyond 64 bits.
std::optional<Sum> sumOf(mlir::AffineMap map, mlir::ValueRange indices, unsigned result = 0);

/// How many loops are around the one whose counter an index is; nullopt for indices that are none.
std::optional<unsigned> loopDepth(mlir::Value index);

} // namespace dmxc::dlir
