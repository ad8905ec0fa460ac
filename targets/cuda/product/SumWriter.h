//===- SumWriter.h - what follows a product, on a thread's sums -*- C++ -*-===//
#pragma once

#include "targets/common/roots/Contraction.h"
#include "targets/common/roots/Loops.h"
#include "targets/cuda/code/CudaBuilder.h"

namespace dmxc::cuda {

/// How a thread's sums of a row lie in a block's tile: groups of columns side by side.
struct SumLayout {
  int64_t rows, columns; ///< of the tile
  int64_t neighbours;    ///< of a group
  int64_t apart;         ///< columns from a group to the next
  int64_t atOnce;        ///< sums that are evaluated before the first one is stored
  /// All of a group are there or none is, and where all tensors begin at multiples of 16 bytes it fills stores of as
  /// many.
  bool together;
};

/// Evaluates a region's results on sums that a thread has in registers, and stores them.
class SumWriter {
public:
  using Value = mlir::Value;
  SumWriter(CudaBuilder &b, const RegionBody &body, const Contraction &product, const SumLayout &layout);
  /// Columns that fill a store of each result, where rows of results may be stored so; else nothing.
  static std::optional<int64_t> columnsOfStore(const RegionBody &body, const Contraction &product);
  /// `sums`: this thread's of a row, whose first one is at `column`.
  void write(llvm::ArrayRef<Value> sums, Value item, Value row, Value column);

private:
  struct Column {
    Value at;
    Value isThere; ///< null: it is
  };
  void writeRun(llvm::ArrayRef<Value> sums, int64_t first, llvm::ArrayRef<Index> row, Value column, int64_t lanes);
  void writeTogether(llvm::ArrayRef<Value> sums, int64_t first, llvm::ArrayRef<Index> row, Value column);
  llvm::SmallVector<Value> evaluate(llvm::ArrayRef<Value> sums, llvm::ArrayRef<Index> index);
  void assumeAligned(llvm::ArrayRef<Index> index);
  Column columnOf(Value own, int64_t offset);

  CudaBuilder &b;
  const RegionBody &body;
  const Contraction &product;
  const SumLayout layout;
  ElementExpr e;
  ResultWriter writer;
  std::optional<unsigned> rowAxis;
  llvm::SmallVector<Value> pointers; ///< of all tensors
};

} // namespace dmxc::cuda
