//===- Pipeline.h - how a product's kernel is made --------------*- C++ -*-===//
#pragma once

#include "GemmProduct.h"

#include "targets/cuda/dialect/Cuda.h"

namespace dmxc::cuda {

/// What a cuda.pipeline says, besides which operands threads copy: the product's operands have that.
struct Pipeline {
  GemmTile tile;
  /// Rows of tiles that are computed together, so that what the second cache has is read again.
  int64_t raster = kRaster;
  /// Steps whose products run on while the next ones are started.
  int64_t behind = 1;
  /// Columns of a tile that are evaluated before they are stored; a quarter of them is a thread's.
  int64_t sumsAtOnce = 64;
  /// Pairs of terms that a thread loads before it stores the first one.
  int64_t leftPairs = 8, rightPairs = 8;
  /// Of each thread of the warpgroup that copies, and of those that multiply. 0: what the launch gives them.
  int64_t copierRegisters = 0, multiplierRegisters = 0;

  /// Bytes of a table of the windows' terms behind the barriers, where there is room for one.
  int64_t termTable = 0;

  Pipeline() = default;
  /// The one of a tile where nothing else is said.
  Pipeline(const GemmProduct &product, const GemmTile &tile, const hw::Machine &machine);

  /// Whether warpgroups give registers to each other.
  bool movesRegisters() const { return multiplierRegisters != 0; }
  Launch launch(const GemmProduct &product, const hw::Machine &machine) const;
  void placeTable(const GemmProduct &product, const hw::Machine &machine);
};

/// Writes it before the product.
PipelineOp writePipeline(mlir::OpBuilder &b, const GemmProduct &product, const Pipeline &pipeline);
/// Reads it for the product that it stands before; operands that threads are to copy become such ones. Fails by the op
/// where it is not one that the machine, the product and the emitter have.
Result<Pipeline> readPipeline(PipelineOp text, GemmProduct &product, const hw::Machine &machine);

} // namespace dmxc::cuda
