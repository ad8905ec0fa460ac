//===- IndexRules.h - elementwise ops on pieces -----------------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/masks/IndexFunction.h"

namespace dmxc::dmir {

/// Adds a condition to others, whose expression has values in `range`; false where they exclude it.
bool addCondition(Conditions &conditions, const Condition &added, Interval range);

inline constexpr const char *kDims = "its dims do not broadcast to those of the scores";
inline constexpr unsigned kMostDims = 12; ///< of a space, and those that are added to it for a while

/// Elementwise ops of values that are read as pieces.
class ElementRules {
public:
  ElementRules(IndexFunctions &functions, mlir::Operation *op) : f(functions), op(op) {}

  /// Of the op whose operands have these pieces.
  Pieces apply(llvm::ArrayRef<Pieces> operands);
  Pieces select(const Pieces &condition, const Pieces &onTrue, const Pieces &onFalse);
  /// Of a number of a type: bools and floats are numbers, others expressions.
  static Leaf leafOf(double number, mlir::Type element);
  /// The expression where the element type has all values of it, else unknown.
  Leaf exactly(mlir::AffineExpr expr, mlir::Type element) const;

private:
  using Rule = llvm::function_ref<Pieces(const Leaf &, const Leaf &)>;
  Pieces product(const Pieces &a, const Pieces &b, Rule rule);
  std::optional<double> kept(double x) const;
  Pieces unary(const Leaf &x);
  Pieces binary(const Leaf &x, const Leaf &y);
  Pieces cast(const Leaf &x);
  Pieces compare(Compare kind, const Leaf &x, const Leaf &y);
  /// 1 where expr >= 0 (== 0), else 0.
  Pieces test(mlir::AffineExpr expr, bool isEq, bool negated);
  Pieces extremum(mlir::AffineExpr x, mlir::AffineExpr y, bool greatest);
  Leaf integers(mlir::AffineExpr x, mlir::AffineExpr y);
  Leaf floats(double x, double y);
  Leaf withUnknown(const Leaf &x, const Leaf &y);
  /// The leaf as an integer expression; null where it is none.
  mlir::AffineExpr integer(const Leaf &leaf) const;
  static Pieces one(Leaf leaf) { return {Piece{{}, leaf}}; }

  IndexFunctions &f;
  mlir::Operation *op;
};

} // namespace dmxc::dmir
