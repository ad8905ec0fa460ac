//===- Expr.h - integer expressions over the dim table ----------*- C++ -*-===//
//
// Sizes, offsets, dims and work counts of a bundle are integers or small
// expressions over named dims (schemas/FORMAT.md, "Expressions"). Values are
// 64-bit signed; overflow and division by zero are errors of the bundle.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Support/Result.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dmxc::bundle {

/// Values of dims by name.
using DimValues = std::map<std::string, int64_t, std::less<>>;

/// An integer, the name of a dim, or an operation on two expressions. A plain
/// value type; not thread-safe to mutate, safe to read from many threads.
class Expr { // NOLINT(clang-analyzer-core.uninitialized.Assign): Dim::build, of a sum without terms, which there is not
public:
  enum class Kind { Int, Dim, Op };
  enum class Op { Add, Sub, Mul, FloorDiv, CeilDiv, Mod, Min, Max, Broadcast };
  /// Deeper nesting is refused when a bundle is read (a hostile file must not exhaust the stack). FORMAT.md's number,
  /// which the runtime's Expr.cpp has too.
  static constexpr unsigned maxDepth = 48;

  Expr(int64_t value = 0) : number(value) {}
  static Expr dim(std::string name);
  /// Folds when both sides are integers and the result is defined.
  static Expr binary(Op op, Expr lhs, Expr rhs);

  Kind kind() const { return what; }
  bool isInt() const { return what == Kind::Int; }
  /// The integer; only for Kind::Int.
  int64_t value() const { return number; }
  /// The dim's name; only for Kind::Dim.
  const std::string &name() const { return dimName; }
  Op op() const { return operation; }
  /// Two operands for Kind::Op, none otherwise.
  const std::vector<Expr> &operands() const { return args; }

  /// The value under `dims`. Fails with ErrorKind::Model on an unknown dim, an
  /// overflow of 64 bits, or a division or modulo by zero; with
  /// ErrorKind::Constraint where `dims` do not broadcast, which the bundle
  /// cannot help.
  Result<int64_t> evaluate(const DimValues &dims) const;
  /// The value when it needs no dim, else nothing.
  std::optional<int64_t> constant() const;
  /// Appends every dim name mentioned, in order of appearance.
  void collectDims(std::vector<std::string> &names) const;
  /// For people: "batch*49", "ceildiv(n,16)".
  std::string str() const;

  bool operator==(const Expr &other) const;

private:
  Kind what = Kind::Int;
  Op operation = Op::Add;
  int64_t number = 0;
  std::string dimName;
  std::vector<Expr> args;
};

/// The JSON name: "add", "floordiv", ...
std::string_view exprOpName(Expr::Op op);
std::optional<Expr::Op> exprOpFromName(std::string_view name);
/// One operation on two values; nothing on overflow, division by zero or
/// extents that do not broadcast (they must be equal or one of them 1).
/// floordiv rounds towards minus infinity, ceildiv towards plus infinity, mod
/// has the divisor's sign.
std::optional<int64_t> applyExprOp(Expr::Op op, int64_t lhs, int64_t rhs);

/// "2x3xbatch", "scalar" for rank 0.
std::string shapeString(const std::vector<Expr> &shape);

} // namespace dmxc::bundle
