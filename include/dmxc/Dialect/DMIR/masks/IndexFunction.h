//===- IndexFunction.h - values as functions of their index -----*- C++ -*-===//
//
// Masks are written as tensors, but what they hold is a rule of the index. A value is read here as a list of pieces:
// where conditions on the index hold, it is a number, an affine integer expression of the index, or nothing that is
// known. Nothing is evaluated element by element but constants, once.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/masks/Sparsity.h"

#include "dmxc/Support/Tensor.h"

#include "llvm/ADT/DenseMap.h"

#include <functional>
#include <vector>

namespace dmxc::dmir {

/// What a value is in a piece: a number (bools are 0 and 1), an integer expression of the index and of sizes (of
/// integer types always, of floats that count exactly too), or unknown.
struct Leaf {
  enum Kind { Unknown, Number, Affine } kind = Unknown;
  double number = 0;
  mlir::AffineExpr affine;

  static Leaf of(double number) { return {Number, number, {}}; }
  static Leaf of(mlir::AffineExpr affine) { return {Affine, 0, affine}; }
  bool isNumber(double value) const { return kind == Number && number == value; }
  bool operator==(const Leaf &other) const;
};

struct Piece {
  Conditions where;
  Leaf leaf;
};
/// Disjoint, and together all indices.
using Pieces = std::vector<Piece>;

/// What a symbol of expressions stands for: a size, or the integer or bool that a tensor has for each matrix of the
/// space, or for each index of some axes (IndexFunctions::readVectors).
struct Symbol {
  Dim dim = 1;
  mlir::Value value; ///< null: the size
  /// Of each axis of the value: the space's axis that is its index, or nothing where it has one element.
  llvm::SmallVector<std::optional<unsigned>, 4> axes;
};

/// Reads values over one index space: that of a tensor's elements.
class IndexFunctions {
public:
  /// `extents` is the space; bounds of symbols come from the module around `scope`. `narrow`: floats are computed in
  /// f16, which saturates, whatever their types.
  IndexFunctions(mlir::Operation *scope, llvm::ArrayRef<Dim> extents, bool narrow = false);

  /// The pieces of a tensor of the space's dims.
  Pieces of(mlir::Value tensor);
  /// The pieces of a tensor that broadcasts to the space's dims.
  Pieces ofBroadcast(mlir::Value tensor);
  unsigned axes() const { return rank; }
  /// Those of `pieces` that meet the conditions.
  Pieces within(llvm::ArrayRef<Piece> pieces, const Conditions &conditions) const;
  /// The same pieces, without conditions that all indices meet, and without pieces that none meets.
  Pieces within(llvm::ArrayRef<Piece> pieces) const;
  /// From now on integers and bools of rows or of columns that nothing is known of are symbols, as ids of documents;
  /// and those of a caller's matrix.
  void readVectors() { vectors = true; }
  /// From now on values that are not read through are what facts of them say, zeros stay zeros in products with what is
  /// unknown and in functions that keep them, and values are followed across the edges of regions.
  using Facts = std::function<std::optional<Known>(mlir::Value)>;
  void believe(Facts source) {
    facts = std::move(source);
    crosses = true;
  }
  /// From now on zeros stay zeros in products with what is unknown.
  void takeZeros() { zeros = true; }
  /// Only the last of these. What holds of an index because the tensor has no more elements goes then, as it is said by
  /// nobody.
  void crossRegions() { crosses = true; }

  /// Rules at an index of this space, and of conditions on it; conditions on what tensors hold are left out of a rule,
  /// and there is none where a case keeps all.
  using Index = llvm::SmallVector<mlir::AffineExpr, 4>;
  llvm::SmallVector<Conditions> casesAt(const Rule &rule, llvm::ArrayRef<mlir::AffineExpr> index);
  std::optional<Rule> ruleOf(llvm::ArrayRef<Conditions> cases) const;
  /// Pieces of the same value that are apart by one condition as one.
  static void join(Pieces &pieces);
  /// Both, without what follows from the rest; nothing where they exclude each other.
  std::optional<Conditions> both(const Conditions &a, const Conditions &b) const;
  /// What holds where some number within its range in the place of a dim meets the conditions, or more; nothing where
  /// that takes too long.
  std::optional<Conditions> without(mlir::AffineDimExpr dim, const Conditions &conditions) const;
  /// What is in none of the cases, as cases that are apart; nothing where they are too many.
  std::optional<llvm::SmallVector<Conditions>> outside(llvm::ArrayRef<Conditions> cases) const;
  Interval range(mlir::AffineExpr expr) const;
  mlir::AffineExpr exprOf(Dim dim);

  /// What the symbols of expressions stand for.
  llvm::ArrayRef<Symbol> symbols() const { return symbolList; }
  /// What kept the last unknown value from being read, with its node: "'attn/Cast' (dmir.cast): it reads the input
  /// 'm'"; "" where nothing did.
  std::string unreadable() const;
  /// Whether a constant was read as two values with a run in each row.
  bool readRuns() const { return runsOfConstants; }

private:
  friend class ElementRules;

  Pieces at(mlir::Value tensor, const Index &index);
  Pieces read(mlir::Value tensor, const Index &index);
  Pieces readMovement(mlir::Operation *op, const Index &index);
  Pieces readConstant(mlir::Value tensor, const Index &index);
  Pieces readSlice(SliceOp op, const Index &index);
  Pieces readReshape(ReshapeOp op, const Index &index);
  Pieces readConcat(ConcatOp op, const Index &index);
  Pieces readPad(PadOp op, const Index &index);
  Pieces readGather(GatherOp op, const Index &index);
  Pieces readGreatest(ReduceOp op, const Index &index);
  Pieces readScatter(ScatterNDOp op, const Index &index);
  std::optional<Index> tuplesOf(ScatterNDOp op, unsigned first);
  bool reaches(const Conditions &conditions, mlir::AffineDimExpr axis, Dim extent) const;
  std::optional<Index> broadcastIndex(const Index &index, llvm::ArrayRef<Dim> own, llvm::ArrayRef<Dim> whole) const;

  /// `why`: a clause about the op, which keeps its value from being read.
  Pieces unknown(mlir::Operation *op, const std::string &why);
  std::optional<Pieces> asSymbol(mlir::Value tensor, const Index &index, bool isUnknown);
  std::optional<Symbol> symbolOf(mlir::Value tensor, const Index &index, bool isUnknown) const;
  Interval valuesOf(mlir::Value tensor) const;
  unsigned readsValues(const Leaf &leaf) const;
  mlir::AffineExpr number(int64_t value) const { return mlir::getAffineConstantExpr(value, context); }
  /// Adds a condition; false where the others, or the extents, exclude it.
  bool add(Conditions &conditions, const Condition &added) const;
  /// `inside` where the rule keeps an index, `outside` elsewhere.
  Pieces chosen(const Rule &rule, const Index &index, Leaf inside, Leaf outside, mlir::Operation *op);
  Pieces readMask(MaskOp op, const Index &index);
  Pieces limited(Pieces pieces, mlir::Operation *op);

  mlir::Operation *scope, *cause = nullptr, *reader = nullptr;
  std::string reason;
  bool runsOfConstants = false, crosses = false, vectors = false, zeros = false;
  Facts facts;
  const bool narrow;
  mlir::MLIRContext *context;
  llvm::SmallVector<Dim> extents;
  llvm::SmallVector<mlir::AffineExpr> lasts; ///< of each axis of the space, its last index
  llvm::SmallVector<Symbol> symbolList;
  size_t rank;
  llvm::SmallVector<Interval> dimRanges, symbolRanges;
  llvm::DenseMap<std::pair<mlir::Value, mlir::AffineMap>, Pieces> memo;
  unsigned depth = 0, steps = 0;
};

/// Whether a value is cheap arithmetic of its index and of few constants, as slope * (j - i), which is computed faster
/// than it is read where it is large. `tree`: the ops that an index makes differ.
bool isOfIndex(mlir::Value value, llvm::DenseSet<mlir::Operation *> &tree);

/// The index of a reshape's operand for one of its result, and with both exchanged the other way; nothing where axes of
/// open sizes are joined or split. `size` says one as an expression.
std::optional<llvm::SmallVector<mlir::AffineExpr, 4>> reshapedIndex(llvm::ArrayRef<Dim> from, llvm::ArrayRef<Dim> to,
                                                                    llvm::ArrayRef<mlir::AffineExpr> index);

/// The pieces of a matrix of two values, each of whose rows has one run of one of them between ends that are fixed or
/// move by 1 a row; nothing for others. Every element is looked at. `row` and `column` are its index.
std::optional<Pieces> readTwoValues(const Tensor &tensor, int64_t rows, int64_t columns, mlir::AffineExpr row,
                                    mlir::AffineExpr column);
/// Why a matrix has no such pieces.
std::string whyNoRuns(const Tensor &tensor, int64_t rows, int64_t columns);

/// The pieces of a vector that repeats a run of integers that grow by 1, as positions in chunks, or, `isInt` false, two
/// values, one of them in one run of each period. Every element is looked at. `place` is its index.
std::optional<Pieces> readPeriodic(const Tensor &vector, bool isInt, mlir::AffineExpr place);

} // namespace dmxc::dmir
