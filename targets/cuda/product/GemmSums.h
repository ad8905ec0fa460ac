//===- GemmSums.h - what follows a product, on its sums ---------*- C++ -*-===//
#pragma once

#include "Pipeline.h"
#include "SumWriter.h"

namespace dmxc::cuda {

/// Evaluates a region's results on the sums that a warpgroup's threads have in registers, and stores them.
class GemmSums {
public:
  using Value = mlir::Value;
  GemmSums(CudaBuilder &b, const RegionBody &body, const GemmProduct &product, const Pipeline &pipeline)
      : b(b), tile(pipeline.tile), layout(layoutOf(body, product, pipeline)), writer(b, body, product, layout) {}
  /// `sums`: this thread's of a tile whose rows for this warpgroup begin at `row`, its columns at `column`.
  void write(Value sums, Value item, Value row, Value column);

private:
  static SumLayout layoutOf(const RegionBody &body, const GemmProduct &product, const Pipeline &pipeline);
  /// Blocks of eight columns that lanes deal out among each other.
  int64_t dealt() const { return layout.neighbours / 2; }
  llvm::SmallVector<Value> deal(Value sums, int64_t half, Value lane);

  CudaBuilder &b;
  const GemmTile &tile;
  SumLayout layout;
  SumWriter writer;
};

} // namespace dmxc::cuda
