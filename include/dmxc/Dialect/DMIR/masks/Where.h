//===- Where.h - rules about the index of a tensor --------------*- C++ -*-===//
//
// The rule of a dmir.mask is kept as integer sets over the index and symbols: what follows reads, makes and evaluates
// them. Nothing here is as large as the tensor.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DMIR/DMIR.h"

#include "mlir/IR/IntegerSet.h"

#define GET_OP_CLASSES
#include "dmxc/Dialect/DMIR/MaskOps.h.inc"

namespace dmxc::dmir {

/// A number that an operand brings for each index that it differs along.
struct RuleValue {
  std::string name;  ///< as people read it
  std::string after; ///< what is said behind its index: " > -1e+38"
  bool isBool = false;
  bool ofRows = false, ofColumns = false; ///< whether it differs along the last two axes
};

/// Tiles of the last two axes, row of tiles by row, by their number from the left, ascending.
struct TileLists {
  int64_t rows = 0, columns = 0; ///< of a tile
  mlir::ArrayAttr lists;         ///< null: no tile is left out
  explicit operator bool() const { return static_cast<bool>(lists); }
  llvm::ArrayRef<int64_t> of(int64_t rowOfTiles) const {
    return mlir::cast<mlir::DenseI64ArrayAttr>(lists[rowOfTiles]).asArrayRef();
  }
  bool has(int64_t row, int64_t column) const { return llvm::binary_search(of(row / rows), column / columns); }
};

/// An "or" of cases, each an "and" of conditions on an index of `rank` numbers; symbols stand for `dims`, and after
/// them for values that operands bring. What `tiles` leave out is not kept whatever the cases say.
struct Rule {
  unsigned rank = 0;
  llvm::SmallVector<Dim> dims;
  llvm::SmallVector<RuleValue> values;
  llvm::SmallVector<mlir::IntegerSet> cases;
  TileLists tiles;
  unsigned symbols() const { return dims.size() + values.size(); }
};
/// What greater values of operands count as.
inline constexpr int64_t kMostValue = int64_t(1) << 40;
Rule ruleOf(MaskOp op);

/// expr >= 0, or expr == 0.
struct Condition {
  mlir::AffineExpr expr;
  bool isEq = false;
  bool operator==(const Condition &) const = default;
};
/// An "and" of conditions.
using Conditions = llvm::SmallVector<Condition, 2>;

/// Inclusive bounds. Arithmetic on them saturates.
struct Interval {
  int64_t min, max;
};

/// factor * atom, where the atom is a dim, a symbol, or a division of some expression.
struct AffineTerm {
  int64_t factor;
  mlir::AffineExpr atom;
};
/// The terms of an expression, each atom once, in a fixed order; the number is added to `constant`.
llvm::SmallVector<AffineTerm> termsOf(mlir::AffineExpr expr, int64_t &constant);

/// The same sum, with its terms in order, and without those that go.
mlir::AffineExpr inOrder(mlir::AffineExpr expr);

/// A case that keeps all.
mlir::IntegerSet wholeCase(unsigned rank, unsigned symbols, mlir::MLIRContext *context);
/// The conditions as a case of a rule, terms in order.
mlir::IntegerSet caseOf(unsigned rank, unsigned symbols, const Conditions &conditions);
Conditions conditionsOf(mlir::IntegerSet set);
/// The constraint of the op that an expression breaks; "" for good ones.
std::string faultOf(mlir::AffineExpr expr);

/// Values that an expression may have; symbols and dims lie in their intervals.
Interval rangeOf(mlir::AffineExpr expr, llvm::ArrayRef<Interval> dims, llvm::ArrayRef<Interval> symbols);

/// Whether the rule keeps an index.
bool keeps(const Rule &rule, llvm::ArrayRef<int64_t> index, llvm::ArrayRef<int64_t> symbols);
/// What a box of indices has of kept ones. `Mixed` may also be said where that is not seen.
enum class TileKind { Empty, Full, Mixed };
TileKind classifyTiles(const TileLists &tiles, Interval rows, Interval columns); ///< by the lists alone
TileKind classify(const Rule &rule, llvm::ArrayRef<Interval> box, llvm::ArrayRef<int64_t> symbols);
/// How many of `columns` columns a row keeps; `row` has all indices but the last.
int64_t keptInRow(const Rule &rule, llvm::ArrayRef<int64_t> row, int64_t columns, llvm::ArrayRef<int64_t> symbols);

/// The rule as people read it, "j <= i + past".
std::string describe(const Rule &rule);

} // namespace dmxc::dmir
