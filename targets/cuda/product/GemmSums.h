//===- GemmSums.h - what follows a product, on its sums ---------*- C++ -*-===//
#pragma once

#include "Pipeline.h"
#include "SumWriter.h"

namespace dmxc::cuda {

/// Of a thread's sums of a row, as wgmma leaves them, those of columns side by side: the four lanes of a row deal them
/// out among each other, in blocks of eight columns of which `dealt` (a power of 2) change places.
llvm::SmallVector<mlir::Value> dealSums(CudaBuilder &b, llvm::SmallVector<mlir::Value> own, int64_t dealt,
                                        mlir::Value lane);
/// How sums lie then in a tile of `rows` and `columns`, `atOnce` of a row of which are evaluated together.
SumLayout dealtLayout(const RegionBody &body, const Contraction &product, int64_t rows, int64_t columns,
                      int64_t atOnce);
/// What is dealt of a layout; and where a lane's first column is then.
int64_t dealtOf(const SumLayout &layout);
mlir::Value firstColumnOf(CudaBuilder &b, const SumLayout &layout, mlir::Value lane);

/// Evaluates a region's results on the sums that a warpgroup's threads have in registers, and stores them.
class GemmSums {
public:
  using Value = mlir::Value;
  GemmSums(CudaBuilder &b, const RegionBody &body, const GemmProduct &product, const Pipeline &pipeline)
      : b(b), tile(pipeline.tile), layout(dealtLayout(body, product, tile.rows, tile.columns, pipeline.sumsAtOnce)),
        writer(b, body, product, layout) {}
  /// `sums`: this thread's of a tile whose rows for this warpgroup begin at `row`, its columns at `column`.
  void write(Value sums, Value item, Value row, Value column);

private:
  CudaBuilder &b;
  const GemmTile &tile;
  SumLayout layout;
  SumWriter writer;
};

} // namespace dmxc::cuda
