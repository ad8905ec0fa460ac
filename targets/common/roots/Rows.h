//===- Rows.h - walking the rows that an op reduces -------------*- C++ -*-===//
//
// Reductions, softmax and normalisation all run over rows: the elements of their operand that share a
// position on the kept axes. Lanes lie along a row (partial results are combined at its end) or
// across rows (each lane has a row of its own).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Loops.h"

namespace dmxc::kernels {

/// How rows are walked; depends on the region alone, not on the ISA level.
struct RowPlan {
  mlir::Value input;                   ///< the root's operand
  llvm::SmallVector<AxisGroup> groups; ///< of its axes; kept and reduced ones do not join
  llvm::SmallVector<bool> reduced;     ///< a group
  unsigned laneGroup = 0;              ///< kept: lanes across rows; reduced: lanes along rows
  llvm::SmallVector<unsigned> kept;    ///< kept groups, in loop order (the lane group last)
  Dim count = 1;                       ///< elements of a row
  WorkPlan work;
  int64_t team = 1;   ///< threads that share a row, lanes along it
  bool copies = true; ///< whether a copy of the row is kept in scratch; else elements are computed again

  bool lanesAcross() const { return !groups.empty() && !reduced[laneGroup]; }
  /// The name of the root's kernel.
  std::string algorithm(const RegionBody &body) const;
  /// Elements of a copy of the rows that one step works on, for every level: see RowWalker's slots.
  Dim slots() const;
};

/// A size as a float or a vector of floats.
mlir::Value sizeAsFloat(KernelBuilder &b, Dim size, mlir::Type type);

/// Plans rows of the root's first operand along `axes`, which results lack when `dropsAxes`.
/// `passes`: how often a row's elements are computed. `teams`: several threads may share a row.
RowPlan planRows(const RegionBody &body, const Processor &processor, llvm::ArrayRef<int64_t> axes, bool dropsAxes,
                 bool lanesMayReduce, double passes = 1, bool teams = true);
/// The plan of a kernel that walks such rows, with `copyBytes` of scratch for each of its slots.
KernelPlan planOfRows(const RegionBody &body, const Processor &processor, RowPlan &rows, int64_t copyBytes = 0);

/// Emits the walks. `at` holds the current position on every group.
class RowWalker {
public:
  using Value = mlir::Value;
  RowWalker(KernelBuilder &b, const RegionBody &body, const RowPlan &plan);

  /// For every row (or every `lanes` rows, of which the mask says how many there are): body().
  void rows(llvm::function_ref<void()> body);

  /// Combines element(slot) over the current row; one result a lane across rows, else a scalar.
  /// `start(type)` is the neutral element. `slot` numbers the elements of a row without gaps between
  /// lanes: an element offset into a copy of the row.
  Value fold(mlir::Type scalar, llvm::function_ref<Value(mlir::Type)> start,
             llvm::function_ref<Value(Value, Value)> combine, llvm::function_ref<Value(Value slot)> element);
  /// Runs body(slot) for all elements of the current row.
  void each(llvm::function_ref<void(Value slot)> body);
  /// Values carried through the elements that a thread has, in order, and combined with those of its team.
  llvm::SmallVector<Value> ofTeam(mlir::ValueRange init,
                                  llvm::function_ref<llvm::SmallVector<Value>(Value position, mlir::ValueRange)> body,
                                  KernelBuilder::Combine combine);
  /// The same with values carried from element to element, in order, lanes across rows only.
  llvm::SmallVector<Value> inOrder(mlir::ValueRange init,
                                   llvm::function_ref<llvm::SmallVector<Value>(mlir::ValueRange)> body);

  /// The operand's computed value at the current position.
  Value element() { return e.evaluateWide(plan.input, operandIndex()); }
  Indices operandIndex();
  /// Index of the current row, or with `whole` of the current element, in the root's result.
  Indices resultIndex(bool whole);
  /// Evaluates and stores the results where the root's result `i` is `value`.
  void write(Value value, bool whole);

  KernelBuilder &b;
  const RegionBody &body;
  const RowPlan &plan;
  ElementExpr e;
  ResultWriter writer;
  llvm::SmallVector<Index> at;
  int64_t lanes = 1;

private:
  using Carried = llvm::SmallVector<Value>;
  /// With several chains `init` has one value a chain, and the body gets those of the innermost loop in turn.
  Carried outerLoops(mlir::ValueRange init, llvm::function_ref<Carried(Value outerSlot, mlir::ValueRange)> body,
                     int64_t chains = 1);
  Carried alongOfTeam(mlir::ValueRange carried, int64_t unroll,
                      llvm::function_ref<Value(Value position, Value acc)> stepAt);
  Carried along(Value outerSlot, mlir::ValueRange carried, int64_t unroll,
                llvm::function_ref<Value(Value slot, Value acc)> step);
  llvm::SmallVector<unsigned> outer; ///< reduced groups that are loops
  unsigned narrowest = 8;
};

} // namespace dmxc::kernels
