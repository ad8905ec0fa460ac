//===- Columns.h - the columns that a rule keeps of a block of rows -*- C++ -*-===//
//
// One computation for numbers, and for values of a kernel that is being emitted.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DMIR/masks/Where.h"

#include <functional>
#include <utility>

namespace dmxc::dmir {

/// Outside [first, last) no row of the block keeps a column, in [firstFull, lastFull) all rows keep all.
template <typename T> struct ColumnRange {
  T first, last, firstFull, lastFull;
};

/// Arithmetic that ranges are computed with. Divisors are positive, and divisions round towards minus infinity.
template <typename T> struct Integers {
  std::function<T(int64_t)> number;
  std::function<T(T, T)> add, min, max;
  std::function<T(T, int64_t)> mul, floorDiv;
  std::function<T(T less, T than, T then, T otherwise)> ifLess;
};

template <typename T> class Columns {
public:
  using Bounds = std::pair<T, T>; ///< inclusive

  /// `rows`: bounds of all indices but the last, which has `columns` values. `symbols`: those of what they stand for,
  /// whatever index of these has it.
  Columns(const Integers<T> &n, llvm::ArrayRef<Bounds> rows, llvm::ArrayRef<Bounds> symbols, T columns)
      : n(n), rows(rows), symbols(symbols), columns(columns) {}

  ColumnRange<T> of(const Rule &rule) const {
    std::optional<ColumnRange<T>> all;
    for (mlir::IntegerSet set : rule.cases) {
      ColumnRange<T> one = ofCase(set);
      all = all ? join(*all, one) : one;
    }
    return *all;
  }

  /// 1 or 0: whether it keeps some of a box, which may also be said where it keeps none, and all of it, which may not.
  /// `rows` are the bounds of all indices here.
  Bounds whether(const Rule &rule) const {
    T none = n.number(0), one = n.number(1), some = none, all = none;
    for (mlir::IntegerSet set : rule.cases) {
      T someOfCase = one, allOfCase = one;
      for (const Condition &condition : conditionsOf(set)) {
        auto [low, high] = boundsOf(condition.expr);
        someOfCase = n.ifLess(high, none, none, someOfCase), allOfCase = n.ifLess(low, none, none, allOfCase);
        if (condition.isEq)
          someOfCase = n.ifLess(none, low, none, someOfCase), allOfCase = n.ifLess(none, high, none, allOfCase);
      }
      some = n.max(some, someOfCase), all = n.max(all, allOfCase);
    }
    return {some, all};
  }

private:
  ColumnRange<T> ofCase(mlir::IntegerSet set) const {
    ColumnRange<T> range{n.number(0), columns, n.number(0), columns};
    for (const Condition &condition : conditionsOf(set)) {
      narrow(range, condition.expr);
      if (condition.isEq)
        narrow(range, -condition.expr);
    }
    range.last = n.max(range.first, range.last);
    range.lastFull = n.max(range.firstFull, range.lastFull);
    return range;
  }

  /// The hull of what is kept; of what is full the longer one.
  ColumnRange<T> join(const ColumnRange<T> &a, const ColumnRange<T> &b) const {
    auto orElse = [&](const ColumnRange<T> &x, T value, T other) { return n.ifLess(x.first, x.last, value, other); };
    T first = n.min(orElse(a, a.first, columns), orElse(b, b.first, columns));
    T last = n.max(orElse(a, a.last, n.number(0)), orElse(b, b.last, n.number(0)));
    T ofA = n.add(a.lastFull, n.mul(a.firstFull, -1)), ofB = n.add(b.lastFull, n.mul(b.firstFull, -1));
    return {n.min(first, last), last, n.ifLess(ofA, ofB, b.firstFull, a.firstFull),
            n.ifLess(ofA, ofB, b.lastFull, a.lastFull)};
  }

  /// expr >= 0. A column may be in the range where some value of the rest allows it, and is full where all do.
  void narrow(ColumnRange<T> &range, mlir::AffineExpr expr) const {
    int64_t constant = 0, factor = 0, divisor = 1;
    T low = n.number(0), high = low;
    for (const AffineTerm &term : termsOf(expr, constant)) {
      if (!term.atom.isFunctionOfDim(rows.size())) {
        addTo(low, high, boundsOf(term.atom), term.factor);
        continue;
      }
      std::optional<int64_t> by = divisorOf(term.atom);
      if (!by || factor) { // nothing is known of it
        range.lastFull = n.number(0);
        return;
      }
      factor = term.factor, divisor = *by;
    }
    low = n.add(low, n.number(constant)), high = n.add(high, n.number(constant));
    if (factor == 0) {
      auto none = [&](T value) { return n.ifLess(value, n.number(0), n.number(0), columns); };
      range.last = n.min(range.last, none(high)), range.lastFull = n.min(range.lastFull, none(low));
    } else if (factor < 0) {
      auto end = [&](T rest) { return n.mul(n.add(divide(rest, -factor), n.number(1)), divisor); };
      range.last = n.min(range.last, end(high)), range.lastFull = n.min(range.lastFull, end(low));
    } else {
      auto begin = [&](T rest) { return n.mul(divide(rest, factor), -divisor); };
      range.first = n.max(range.first, begin(high)), range.firstFull = n.max(range.firstFull, begin(low));
    }
  }

  /// Of the last index or its quotient by a number; nothing for other expressions of it.
  std::optional<int64_t> divisorOf(mlir::AffineExpr atom) const {
    auto isLast = [&](mlir::AffineExpr expr) {
      auto dim = mlir::dyn_cast<mlir::AffineDimExpr>(expr);
      return dim && dim.getPosition() == rows.size();
    };
    if (isLast(atom))
      return 1;
    auto quotient = mlir::dyn_cast<mlir::AffineBinaryOpExpr>(atom);
    if (!quotient || quotient.getKind() != mlir::AffineExprKind::FloorDiv || !isLast(quotient.getLHS()))
      return std::nullopt;
    return mlir::cast<mlir::AffineConstantExpr>(quotient.getRHS()).getValue();
  }

  T divide(T value, int64_t by) const { return by == 1 ? value : n.floorDiv(value, by); }

  void addTo(T &low, T &high, Bounds bounds, int64_t factor) const {
    if (factor < 0)
      std::swap(bounds.first, bounds.second);
    auto scaled = [&](T value) { return factor == 1 ? value : n.mul(value, factor); };
    low = n.add(low, scaled(bounds.first)), high = n.add(high, scaled(bounds.second));
  }

  Bounds boundsOf(mlir::AffineExpr expr) const {
    if (auto dim = mlir::dyn_cast<mlir::AffineDimExpr>(expr))
      return rows[dim.getPosition()];
    if (auto symbol = mlir::dyn_cast<mlir::AffineSymbolExpr>(expr))
      return symbols[symbol.getPosition()];
    auto binary = mlir::dyn_cast<mlir::AffineBinaryOpExpr>(expr);
    if (binary && binary.getKind() == mlir::AffineExprKind::Mod) {
      int64_t by = mlir::cast<mlir::AffineConstantExpr>(binary.getRHS()).getValue();
      Bounds inner = boundsOf(binary.getLHS());
      T low = divide(inner.first, by), high = divide(inner.second, by), base = n.mul(low, -by); // of one period, or all
      return {n.ifLess(low, high, n.number(0), n.add(inner.first, base)),
              n.ifLess(low, high, n.number(by - 1), n.add(inner.second, base))};
    }
    if (binary && binary.getKind() == mlir::AffineExprKind::FloorDiv) {
      int64_t by = mlir::cast<mlir::AffineConstantExpr>(binary.getRHS()).getValue();
      Bounds inner = boundsOf(binary.getLHS());
      return {divide(inner.first, by), divide(inner.second, by)};
    }
    int64_t constant = 0;
    T low = n.number(0), high = low;
    for (const AffineTerm &term : termsOf(expr, constant))
      addTo(low, high, boundsOf(term.atom), term.factor);
    return {n.add(low, n.number(constant)), n.add(high, n.number(constant))};
  }

  const Integers<T> &n;
  llvm::ArrayRef<Bounds> rows, symbols;
  T columns;
};

/// Bounds of numbers that are what they are.
template <typename T> llvm::SmallVector<std::pair<T, T>> pointsOf(llvm::ArrayRef<T> numbers) {
  llvm::SmallVector<std::pair<T, T>> points;
  for (T number : numbers)
    points.emplace_back(number, number);
  return points;
}

/// The arithmetic of numbers.
const Integers<int64_t> &plainIntegers();

} // namespace dmxc::dmir
