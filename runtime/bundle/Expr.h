//===- Expr.h - size expressions --------------------------------*- C++ -*-===//
#pragma once

#include "Json.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace dmxrt {

/// Index of an expression in its ExprPool.
using ExprId = uint32_t;

/// All expressions of one graph: integers, dims, and operations on earlier
/// expressions. 64-bit signed; overflow and division by zero are errors of the bundle,
/// extents that do not broadcast are errors of the inputs.
class ExprPool {
public:
  using DimNames = std::map<std::string, uint32_t, std::less<>>;

  /// Reads `42`, `"batch"` or `["mul", a, b]`; records an error in the document.
  ExprId parse(JsonCursor cursor, const DimNames &dims);
  ExprId constant(int64_t value);
  /// Reads the expression of dmx_kernel.h's words that begins at `at` and moves `at` past it; false when there is none
  /// over `dimCount` dims.
  bool read(std::span<const int64_t> words, size_t &at, uint32_t dimCount, ExprId &id, int depth = 0);

  /// Value for the dims' values, which must cover every dim parsed.
  Result<int64_t> evaluate(ExprId id, std::span<const int64_t> dims) const;
  /// The expression as people write it: "batch * 49".
  std::string text(ExprId id, std::span<const std::string> dimNames) const;

  struct Range {
    int64_t min, max;
  };
  /// Bounds that hold for all dims within theirs; saturates at 64 bits.
  Range range(ExprId id, std::span<const Range> dims) const;

  /// The value when the expression is a plain integer.
  bool isConstant(ExprId id, int64_t &value) const;
  /// Calls `each(dim)` for every dim mentioned.
  template <typename Each> void forEachDim(ExprId id, Each each) const {
    const Node &node = nodes[id];
    if (node.op == Op::Dim)
      each(static_cast<uint32_t>(node.value));
    else if (node.op != Op::Const)
      forEachDim(node.lhs, each), forEachDim(node.rhs, each);
  }
  /// The dim when the expression is just one.
  bool isDim(ExprId id, uint32_t &dim) const;

private:
  enum class Op : uint8_t { Const, Dim, Add, Sub, Mul, FloorDiv, CeilDiv, Mod, Min, Max, Broadcast };
  struct Node {
    Op op;
    int64_t value;   // Const: the value; Dim: its index
    ExprId lhs, rhs; // operations; always smaller than the node's own id
  };
  std::vector<Node> nodes;

  ExprId parseAt(JsonCursor cursor, const DimNames &dims, int depth);
  ExprId add(Node node);
  static bool apply(Op op, int64_t a, int64_t b, int64_t &value);
  static Range broadcastRange(Range a, Range b);
};

} // namespace dmxrt
