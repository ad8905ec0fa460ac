//===- Rows.h - walking the rows that an op reduces -------------*- C++ -*-===//
//
// Reductions, softmax and normalisation all run over rows: the elements of their operand that share a
// position on the kept axes. Lanes lie along a row (partial results are combined at its end) or
// across rows (each lane has a row of its own).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Loops.h"

#include "dmxc/Dialect/DMIR/masks/Where.h"

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
  Team team;             ///< that shares a row; its members lie along the lane group
  bool inBlocks = false; ///< rows beside each other are folded together, line by line: see RowBlocks.cpp
  bool rereads = false;  ///< what of a row is its operand is read from there by each pass, not from a copy
  bool copies = true;    ///< whether a copy of the row is kept in scratch; else elements are computed again

  /// Independent partial results of a row that lanes lie across.
  static constexpr int64_t kChains = 8;
  /// Makes blocks of rows where that pays.
  void chooseBlocks(const RegionBody &body);
  /// Scratch for their partial results, which have at most 64 bits.
  Dim blockBytes() const;

  bool lanesAcross() const { return !groups.empty() && !reduced[laneGroup]; }
  /// The name of the root's kernel.
  std::string algorithm(const RegionBody &body) const;
  /// The group of the rows beside each other that a team has at a time, the last one that is kept.
  bool hasColumns() const { return team.columns > 1; }
  /// Elements of a copy of the rows that one step works on, for every level: see RowWalker's slots.
  Dim slots() const;
  /// Of them those of a run along the lane group.
  Dim slotsOfRun() const;
};

/// A size as a float or a vector of floats.
mlir::Value sizeAsFloat(KernelBuilder &b, Dim size, mlir::Type type);

/// Plans rows of the root's first operand along `axes`, which results lack when `dropsAxes`.
/// `passes`: how often a row's elements are computed. `teams`: several threads may share a row.
RowPlan planRows(const RegionBody &body, const Processor &processor, llvm::ArrayRef<int64_t> axes, bool dropsAxes,
                 bool lanesMayReduce, double passes = 1, bool teams = true);
/// The key of a strategy that has the team of its rows.
inline constexpr llvm::StringLiteral kTeam = "team";
/// The plan of a kernel that walks such rows, with `copyBytes` of scratch for each of its slots.
KernelPlan planOfRows(const RegionBody &body, const Processor &processor, RowPlan &rows, int64_t copyBytes = 0);

/// What a member has at a time of the elements that are dealt out to a team: positions a team's size apart, in rounds
/// of the team that begin with number `round`. The last ones not all members have.
struct Dealt {
  llvm::SmallVector<mlir::Value> positions;
  mlir::Value round;
  bool isLast = false;
};
/// Runs `body` for a member's elements of `size`, up to `most` at a time, with carried values.
llvm::SmallVector<mlir::Value>
dealOut(KernelBuilder &b, Dim size, int64_t members, int64_t most, mlir::ValueRange init,
        llvm::function_ref<llvm::SmallVector<mlir::Value>(const Dealt &, mlir::ValueRange)> body);

/// Whether rows can be walked by the ranges that a mask keeps of them: lanes lie along the last axis, which is all that
/// is reduced, of a row by one thread.
bool hasRanges(const RowPlan &plan, dmir::MaskOp mask);

/// Emits the walks. `at` holds the current position on every group.
class RowWalker {
public:
  using Value = mlir::Value;
  RowWalker(KernelBuilder &b, const RegionBody &body, const RowPlan &plan);

  /// For every row (or every `lanes` rows, of which the mask says how many there are): body().
  void rows(llvm::function_ref<void()> body);

  /// Combines element(slot) over the current row; one result a lane across rows, else a scalar.
  /// `start(type)` is the neutral element. `slot` numbers the elements of a row without gaps between
  /// lanes: an element offset into a copy of the row. `reads`: element() asks for the operand's value, so that members
  /// of a team load several before they do anything with one. `isMost`: it is the largest i64 without a sign.
  Value fold(mlir::Type scalar, llvm::function_ref<Value(mlir::Type)> start,
             llvm::function_ref<Value(Value, Value)> combine, llvm::function_ref<Value(Value slot)> element,
             bool reads = true, bool isMost = false);
  /// `fold` for all rows of a plan in blocks: finish(result) is where a result is written.
  void foldBlocks(mlir::Type scalar, llvm::function_ref<Value(mlir::Type)> start,
                  llvm::function_ref<Value(Value, Value)> combine, llvm::function_ref<Value()> element,
                  llvm::function_ref<void(Value)> finish);
  /// Runs body(slot) for all elements of the current row.
  void each(llvm::function_ref<void(Value slot)> body);
  /// Of the current row visits from now on, by `fold` and `each`, what a mask keeps some of and a little more; what it
  /// keeps all of is not asked about.
  void narrow(dmir::MaskOp mask);
  /// Runs body() for the vectors of elements that `each` does not visit.
  void eachLeftOut(llvm::function_ref<void()> body);
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
  Value inside; ///< i1: the thread has a row of its own, and does not help with a neighbour's; null: it does

private:
  using Carried = llvm::SmallVector<Value>;
  /// With several chains `init` has one value a chain, and the body gets those of the innermost loop in turn.
  Carried outerLoops(mlir::ValueRange init, llvm::function_ref<Carried(Value outerSlot, mlir::ValueRange)> body,
                     int64_t chains = 1);
  using Combiner = llvm::function_ref<Value(Value acc, Value element)>;
  int64_t chains() const;
  static Value combineChains(llvm::SmallVector<Value> acc, llvm::function_ref<Value(Value, Value)> combine);
  Carried alongOfTeam(mlir::ValueRange carried, int64_t unroll,
                      llvm::function_ref<Value(Value position, Value slot)> elementAt, Combiner combine, bool reads);
  Carried along(Value outerSlot, mlir::ValueRange carried, int64_t unroll,
                llvm::function_ref<Value(Value slot)> element, Combiner combine, bool reads);
  /// What is visited of a row's whole vectors, [first, last), and of that what the mask keeps all of.
  struct Range {
    dmir::MaskOp mask;
    Value first, last, firstFull, lastFull;
  };
  Carried inRange(Value end, bool reads, mlir::ValueRange init,
                  llvm::function_ref<Carried(Value from, Value to, mlir::ValueRange)> walk);
  std::optional<Range> range;
  llvm::SmallVector<unsigned> outer; ///< reduced groups that are loops
  unsigned narrowest = 8;
};

} // namespace dmxc::kernels
