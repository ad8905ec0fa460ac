//===- Bands.h - rows of scores, 64 after 64 --------------------*- C++ -*-===//
#pragma once

#include "Operands.h"
#include "SimdOp.h"

#include <vector>

namespace dmxc::corsair {

/// A tensor of two dims that a band reads or writes: where it is in the first band, and bytes from trip to trip.
struct BandTensor {
  DeviceTensor at;
  llvm::SmallVector<int64_t> batch; ///< of each loop over a batch
  int64_t band = 0;                 ///< of the loop over bands
  int strip = -1;                   ///< the strip that it is instead; -1: none
};

/// An op of the vector device on the rows of a band; the last one is the softmax.
struct BandUnit {
  hw::SimdFunction function;
  llvm::SmallVector<BandTensor, 3> inputs;
  int out = 0; ///< strip
  float imm0 = 0, imm1 = 0;
  /// Of functions that count columns from the row on (KernelWriter::masked): the index in the first band.
  std::optional<Address> index;
  int64_t indexBand = 0; ///< from band to band
  bool turned = false;
};

/// Scores = query x keys; units; result = weights x values, by bands of 64 rows.
struct BandedScores {
  llvm::SmallVector<int64_t> batch; ///< trips of the loops over a batch
  int64_t bands = 0;                ///< of a matrix in a quad
  int64_t columns = 0;              ///< of the scores
  Spread plan, weightedPlan;
  BandTensor query, keys, values, result;
  std::vector<BandUnit> units;
  int strips = 1;                              ///< 0 has the scores, the last unit's the weights
  hw::ElemKind weightKind = hw::ElemKind::F16; ///< or f32
  std::optional<int64_t> upper;                ///< the last column that counts for the first row of quad 0
  std::optional<int64_t> lower;                ///< and the first one, where a window moves with the rows
  int64_t rowQuad = 0;                         ///< columns further from quad to quad
  mlir::Operation *softmax = nullptr;

  /// Whether the other's bands are of the same keys and values.
  bool goesOnWith(const BandedScores &other) const;
};

} // namespace dmxc::corsair
