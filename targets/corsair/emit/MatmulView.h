//===- MatmulView.h - operands of a product as strided matrices -*- C++ -*-===//
#pragma once

#include "DeviceTensor.h"

namespace dmxc::corsair {

/// Where one product reads and writes; strides in bytes.
struct MatmulOperands {
  Address a, b, out, st;
  int64_t aRow = 0, aColumn = 0; ///< along M and along K
  int64_t bRow = 0, bColumn = 0; ///< along K and along N
  int64_t outRow = 0;
  bool streamed = false; ///< B is packed in ST at `st`
};

struct BatchDim {
  int64_t extent, a, b, out;
};

/// M, N, K and the batch dims of a product; batch dims that walk on through the rows are part of M.
struct MatmulShape {
  MatmulShape(const DeviceTensor &a, const DeviceTensor &b, const DeviceTensor &out);
  /// With a B that is packed.
  MatmulShape(const DeviceTensor &a, const DeviceTensor &out);

  int64_t m, n, k;
  MatmulOperands operands;
  llvm::SmallVector<BatchDim> batch;

private:
  void joinBatch();
};

struct MatmulPlan;
/// Writes one product.
void emitProduct(StreamBuilder &stream, const MatmulPlan &plan, const MatmulOperands &operands);

/// The rows a packed constant is planned for: all leading dims of the result.
int64_t packedRows(llvm::ArrayRef<int64_t> resultShape);

} // namespace dmxc::corsair
