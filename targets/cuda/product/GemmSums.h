//===- GemmSums.h - what follows a product, on its sums ---------*- C++ -*-===//
#pragma once

#include "Pipeline.h"

#include "targets/common/roots/Loops.h"
#include "targets/cuda/code/CudaBuilder.h"

namespace dmxc::cuda {

/// Evaluates a region's results on the sums that a warpgroup's threads have in registers, and stores them.
class GemmSums {
public:
  using Value = mlir::Value;
  GemmSums(CudaBuilder &b, const RegionBody &body, const GemmProduct &product, const Pipeline &pipeline);
  /// `sums`: this thread's of a tile whose rows for this warpgroup begin at `row`, its columns at `column`.
  void write(Value sums, Value item, Value row, Value column);

private:
  struct Column {
    Value at;
    Value isThere; ///< null: it is
  };
  void writeRow(Value sums, int64_t half, Value item, Value row, Value column);
  void writeRun(Value sums, int64_t half, int64_t first, llvm::ArrayRef<Index> row, Value column);
  Column columnOf(Value own, int64_t offset);

  CudaBuilder &b;
  const GemmProduct &product;
  const GemmTile &tile;
  int64_t atOnce; ///< columns
  ElementExpr e;
  ResultWriter writer;
  std::optional<unsigned> rowAxis;
};

} // namespace dmxc::cuda
