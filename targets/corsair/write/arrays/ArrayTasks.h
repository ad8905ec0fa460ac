//===- ArrayTasks.h - what the queues do for a product on the arrays ---*- C++ -*-===//
//
// The tasks of Product.cpp one by one: rows to IB, weights to WB, sums of blocks along K in OB, and rows between DDR
// and GM.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "../Drain.h"

namespace dmxc::corsair {

class ArrayTasks {
protected:
  ArrayTasks(Program &program, const ArrayUnits &units, const Spread &plan, const Segments &segments,
             const MatmulOperands &operands)
      : program(program), plan(plan), segments(segments), at(operands), units(units) {}

  /// Rows in each slice of a mask; alternate bands use alternate halves of buffers.
  struct Band {
    int mask;
    int64_t rows;
    int half;
  };
  /// `tiles` in each slice of a mask. Those that no share stores are zeros times something.
  struct Round {
    int mask;
    int64_t tiles;
    llvm::SmallVector<Share, 2> shares;
  };

  /// Brings all rows that come ahead, by the queue of the vector device: a band, and then as many as there are before,
  /// for each move has a latency of its own.
  void bringAhead() const;
  /// Runs `body` when a band has come, and has what it makes of it leave.
  void crossing(const Band &rows, llvm::function_ref<void()> body) const;
  /// Runs `body` with the rows in IB, unless they come in segments or from an image.
  void withLoaded(const Band &rows, llvm::function_ref<void()> body) const;
  bool loadsOnce() const { return !at.conv && segments.size() == 1; }

  /// A round's tiles to WB: one a core.
  void loadWeights(const Round &columns, int half) const;
  /// Takes half of OB and puts the bias into all rows. The load queue alone takes it, for products with a bias and
  /// without, so that it comes to them in their order.
  void prepareSums(int mask, int64_t tiles, int64_t rows, int half) const;
  /// Rows of A, blocks of 64 along K, quantised into half of IB.
  void loadRows(int mask, int64_t rows, llvm::ArrayRef<Addition> segment, int half) const;
  /// Rows of tiles, from row `first` of each on: exponents, then mantissas, which follow each other where it is 0.
  void loadTiles(int mask, int64_t rows, llvm::ArrayRef<Addition> segment, int half, int64_t first) const;
  void multiply(int mask, int64_t rows, int64_t row, int64_t count, size_t segment, int ibHalf, int obHalf,
                int wbHalf) const;

  Program &program;
  Spread plan;
  const Segments &segments;
  MatmulOperands at;
  const ArrayUnits units;
  bool stationary = false; ///< weights stay, while rows pass

private:
  /// Whether rows come by the queue of the vector device, which has nothing else to do, before those that leave.
  bool comesAhead() const { return at.arrives.buffer >= 0 && !at.epilogue; }
  /// So many rows, from a distance on.
  void bring(Queue queue, int64_t first, int64_t rows) const;
  /// Of all slices.
  int64_t rowsOf(const Band &rows) const;

  /// Which rows of a tile, and how many tiles of columns.
  struct Extent {
    int mask;
    int64_t rows, row, tiles;
  };
  void add(const Addition &addition, const Extent &extent, bool isFirst, int64_t ib, int obHalf, int64_t wb) const;
  void readRows(const QueueWriter &array, TaskWriter &product, const Addition &addition, int64_t row, int64_t ib) const;
  void readImage(const QueueWriter &array, TaskWriter &product, int64_t row) const;
};

} // namespace dmxc::corsair
