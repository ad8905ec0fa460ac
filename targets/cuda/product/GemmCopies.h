//===- GemmCopies.h - tiles of operands to shared memory --------*- C++ -*-===//
#pragma once

#include "Pipeline.h"
#include "convolution/TapCopies.h"
#include "convolution/WindowTerms.h"

#include "targets/cuda/code/Asynchronous.h"

namespace dmxc::cuda {

/// Copies by a tensor map what a tile has of an operand from a row and a term on: 64 terms of `rows` rows of a batch
/// item.
void copyByMap(CudaBuilder &b, const GemmProduct &product, const GemmOperand &operand, mlir::Value map, int64_t rows,
               mlir::Value to, mlir::Value barrier, mlir::Value row, mlir::Value k, mlir::Value item);

/// What the warpgroup that copies does for one slot: tensor maps bring what they can read; the rest its threads load
/// and store where a map would put it.
class GemmCopies {
public:
  using Value = mlir::Value;
  /// Where a step's terms begin in both operands.
  struct From {
    Value row, column, k, item;
    Value rightK; ///< of packed steps each begins at 0
  };
  GemmCopies(CudaBuilder &b, const GemmProduct &product, const Pipeline &pipeline)
      : b(b), async(b), product(product), pipeline(pipeline), tile(pipeline.tile) {
    if (pipeline.termTable)
      table.emplace(b, *product.right.windows, product.k, tile.sharedBytes());
    if (product.copiesTaps())
      taps.emplace(b, product, pipeline);
  }
  /// What fills slots looks up, by all threads of the block before they meet.
  void prepare() {
    if (table)
      table->fill(tile.threads());
  }

  /// Whether all threads of the warpgroup take part, else the first one is enough.
  bool byThreads() const { return !product.left.byThreads.empty() || !product.right.byThreads.empty(); }
  /// Arrivals that fill a slot.
  int64_t arrivals() const { return (mapBytes() ? 1 : 0) + (byThreads() ? 4 : 0); }
  /// What all steps of a tile share.
  void enter(Value column, Value item) {
    if (taps)
      taps->enter(column, placeOf(product.right, item));
  }
  bool loadsAhead() const { return taps.has_value(); }
  /// What threads load for the tile's first step, and, of what goes on from step to step, for the group behind it,
  /// before the step waits for its slot. Nothing where they do not load ahead.
  llvm::SmallVector<Value> begin(Value k) { return taps ? taps->load(k, 0) : llvm::SmallVector<Value>(); }
  llvm::SmallVector<Value> ahead(Value k, Value nextK);
  /// Fills a slot, whose tiles lie at these offsets in shared memory, and arrives at its barrier. What is loaded of the
  /// step's first groups; gives that of the next one's first.
  llvm::SmallVector<Value> fill(const From &from, Value left, Value right, Value barrier,
                                llvm::ArrayRef<llvm::SmallVector<Value>> loaded, Value nextK);
  /// Whether this is the first thread of the warpgroup.
  Value isFirst();

private:
  int64_t mapBytes() const;
  llvm::SmallVector<Value> fillTaps(Value k, Value to, llvm::ArrayRef<llvm::SmallVector<Value>> loaded, Value nextK);
  /// Elements before a batch item of an operand.
  Value placeOf(const GemmOperand &operand, Value item);
  void byThread(const GemmOperand &operand, int64_t rows, int64_t pairs, Value to, Value row, Value k, Value item);
  /// Two terms of a row of a tile.
  struct Pair {
    Value row, term;
  };
  Pair pairAt(const GemmOperand &operand, int64_t rows, Value number);
  void moveTerms(const GemmOperand &operand, int64_t rows, int64_t pairs, Value source, Value to, Value number,
                 Value row, Value k);

  CudaBuilder &b;
  Asynchronous async;
  const GemmProduct &product;
  const Pipeline &pipeline;
  const GemmTile &tile;
  std::optional<TermTable> table; ///< of windows
  std::optional<TapCopies> taps;  ///< where they are copied tap by tap
};

} // namespace dmxc::cuda
