//===- FewQueries.h - attention of few rows ---------------------*- C++ -*-===//
//
// What attention of few rows takes is the time in which keys and values come from memory. Warps, of several blocks that
// are a cluster, have keys in turn, 32 at a time, with the running greatest score, sum and result of each row; then
// what they have is combined, always in the same order. Neither scores nor repeats of keys are ever in memory.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "targets/cuda/product/Gemm.h"

#include "targets/common/attention/AttentionPattern.h"

namespace dmxc::cuda {

/// A block's rows, its warps, and the blocks that share the keys.
struct QueryTile {
  int64_t rows = 1, warps = 8, blocks = 1;

  static llvm::ArrayRef<kernels::TileField<QueryTile>> fields();
  int64_t threads() const { return warps * 32; }
};

/// An attention whose rows are few. Heads that share keys and values are a group, whose rows are counted together.
struct FewQueries {
  Attention attention;
  llvm::SmallVector<Dim> batch, resultBatch; ///< of the scores and of the result: as many items
  int64_t depth = 0, width = 0;              ///< terms of a score, columns of the result
  Dim rows, keys;                            ///< of an item
  int64_t share = 1;                         ///< items of a group
  Dim items = 1;

  /// Nothing where the kernel cannot compute it.
  static std::optional<FewQueries> of(mlir::Operation *result);
  /// Whether warps can compute it, and whether tensor cores can.
  bool fitsWarps() const { return lanesOf(depth) && lanesOf(width); }
  bool fitsCores() const { return depth <= 256 && width <= 256 && width % 8 == 0; }
  bool hasFewRows() const;
  /// The name of the default: "" where neither is.
  llvm::StringRef preferred() const;
  /// Whether it is expected to take no longer by tensor cores than as two products and the softmax between them.
  bool paysByCores(const hw::Machine &machine) const;

  Dim groups() const { return Dim::floorDiv(items, share); }
  Dim groupRows() const { return rows * share; }
  /// Lanes that have a key's terms, and a value's columns.
  static int64_t lanesOf(int64_t size);
  Dim blocks(const QueryTile &tile) const { return groups() * Dim::ceilDiv(groupRows(), tile.rows); }
  /// Floats that are told of each row: its greatest score, its sum, its result.
  int64_t told() const { return width + 2; }
  int64_t warpFloats(const QueryTile &tile) const { return tile.warps * tile.rows * told(); }
  int64_t blockFloats(const QueryTile &tile) const { return tile.blocks > 1 ? tile.blocks * tile.rows * told() : 0; }
  Launch launch(const QueryTile &tile) const;

  /// By tensor cores: slabs of 64 terms of scores, and of columns.
  int64_t slabs() const { return llvm::divideCeil(depth, dmx::cuda::kTileRowElements); }
  int64_t widthSlabs() const { return llvm::divideCeil(width, dmx::cuda::kTileRowElements); }

  /// The tile of the least clocks, but what is decided of its domains.
  QueryTile choose(const hw::Machine &machine, mlir::DictionaryAttr decided) const;
  std::vector<Decision> decisions(const hw::Machine &machine, mlir::DictionaryAttr decided) const;
  Result<QueryTile> read(const hw::Machine &machine, mlir::Attribute written, llvm::StringRef key) const;

private:
  QueryTile cheapest(const hw::Machine &machine, const kernels::DecidedFields<QueryTile> &decided) const;
  kernels::FreeTile<QueryTile> freeTile(const hw::Machine &machine, mlir::DictionaryAttr decided) const;
  int64_t mostRows() const;
  double coreClocks(const hw::Machine &machine) const;
  double plainClocks(const hw::Machine &machine) const;
};

/// Whether one is a kernel of tensor cores; `rounds`: operands are rounded to bf16.
bool isForCores(const FewQueries &few, const hw::Machine &machine, bool rounds);
/// An attention as one kernel, by warps or tensor cores: there is no other way, as its region has all of it.
Result<KernelPlan> planAttention(const RegionBody &body, const CudaRequest &request, const FewQueries &few);
/// What is free of it.
std::vector<Decision> attentionDecisions(const hw::Machine &machine, dmir::RegionOp region, const FewQueries &few,
                                         mlir::DictionaryAttr decided);
void emitFewQueries(CudaBuilder &b, const RegionBody &body, const FewQueries &attention, const QueryTile &tile);

} // namespace dmxc::cuda
