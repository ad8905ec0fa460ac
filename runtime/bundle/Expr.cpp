//===- Expr.cpp - size expressions ----------------------------------------===//

#include "Expr.h"

#include "dmx/dmx_kernel.h"

#include <algorithm>
#include <array>

namespace dmxrt {
namespace {

/// FORMAT.md's limit, which the bundle library's Expr.h has too; bounds the recursions below.
constexpr int kMaxDepth = 48;

/// In the order of ExprPool::Op from Add on.
constexpr std::array<std::string_view, 9> kOpNames = {"add", "sub", "mul", "floordiv", "ceildiv",
                                                      "mod", "min", "max", "broadcast"};
constexpr std::array<std::string_view, 9> kOpSigns = {" + ", " - ", " * ", " // ", " ceildiv ", " % ", "", "", ""};

int64_t saturate(__int128 value) { return static_cast<int64_t>(std::clamp<__int128>(value, INT64_MIN, INT64_MAX)); }

__int128 floorDiv(__int128 a, __int128 b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

} // namespace

ExprId ExprPool::add(Node node) {
  nodes.push_back(node);
  return static_cast<ExprId>(nodes.size() - 1);
}

ExprId ExprPool::constant(int64_t value) { return add({Op::Const, value, 0, 0}); }

ExprId ExprPool::parse(JsonCursor cursor, const DimNames &dims) { return parseAt(cursor, dims, 0); }

ExprId ExprPool::parseAt(JsonCursor cursor, const DimNames &dims, int depth) {
  if (!cursor.present())
    return constant(0);
  if (cursor.isInteger())
    return constant(cursor.integer(INT64_MIN, INT64_MAX));
  if (cursor.isString()) {
    std::string name = cursor.string();
    auto it = dims.find(name);
    if (it != dims.end())
      return add({Op::Dim, it->second, 0, 0});
    cursor.fail(cat("dim '", name, "' is not in the table of dims (or comes later there)"));
    return constant(0);
  }
  if (depth >= kMaxDepth) {
    cursor.fail("the expression nests too deeply");
    return constant(0);
  }
  if (!cursor.isArray() || cursor.size() != 3) {
    cursor.fail("an expression is an integer, the name of a dim, or [op, a, b]");
    return constant(0);
  }
  std::string_view opName = cursor.at(0).text();
  auto op = std::find(kOpNames.begin(), kOpNames.end(), opName);
  if (op == kOpNames.end()) {
    cursor.fail(cat("unknown operation '", opName, "' in an expression"));
    return constant(0);
  }
  ExprId lhs = parseAt(cursor.at(1), dims, depth + 1);
  ExprId rhs = parseAt(cursor.at(2), dims, depth + 1);
  return add({static_cast<Op>(int(Op::Add) + (op - kOpNames.begin())), 0, lhs, rhs});
}

bool ExprPool::read(std::span<const int64_t> words, size_t &at, uint32_t dimCount, ExprId &id, int depth) {
  if (at >= words.size() || depth > kMaxDepth)
    return false;
  int64_t word = words[at++];
  if (word == DMX_WORD_NUMBER || word == DMX_WORD_DIM) {
    if (at >= words.size() || (word == DMX_WORD_DIM && (words[at] < 0 || words[at] >= dimCount)))
      return false;
    id = add({word == DMX_WORD_DIM ? Op::Dim : Op::Const, words[at++], 0, 0});
    return true;
  }
  ExprId lhs = 0, rhs = 0;
  if (word < DMX_WORD_ADD || word > DMX_WORD_BROADCAST || !read(words, at, dimCount, lhs, depth + 1) ||
      !read(words, at, dimCount, rhs, depth + 1))
    return false;
  id = add({static_cast<Op>(int64_t(Op::Add) + (word - DMX_WORD_ADD)), 0, lhs, rhs});
  return true;
}

bool ExprPool::apply(Op op, int64_t a, int64_t b, int64_t &value) {
  switch (op) {
  case Op::Add:
    return !__builtin_add_overflow(a, b, &value);
  case Op::Sub:
    return !__builtin_sub_overflow(a, b, &value);
  case Op::Mul:
    return !__builtin_mul_overflow(a, b, &value);
  case Op::FloorDiv:
  case Op::CeilDiv:
  case Op::Mod: {
    if (b == 0)
      return false;
    __int128 floor = floorDiv(a, b);
    __int128 result = op == Op::FloorDiv  ? floor
                      : op == Op::CeilDiv ? -floorDiv(-static_cast<__int128>(a), b)
                                          : a - floor * b;
    value = static_cast<int64_t>(result);
    return value == result;
  }
  case Op::Min:
    value = std::min(a, b);
    return true;
  case Op::Max:
    value = std::max(a, b);
    return true;
  case Op::Broadcast:
    value = a == 1 ? b : a;
    return a == b || a == 1 || b == 1;
  default:
    return false;
  }
}

Result<int64_t> ExprPool::evaluate(ExprId id, std::span<const int64_t> dims) const {
  const Node &node = nodes[id];
  if (node.op == Op::Const)
    return node.value;
  if (node.op == Op::Dim)
    return dims[static_cast<size_t>(node.value)];
  auto lhs = evaluate(node.lhs, dims);
  if (!lhs)
    return lhs;
  auto rhs = evaluate(node.rhs, dims);
  if (!rhs)
    return rhs;
  int64_t value;
  if (apply(node.op, *lhs, *rhs, value))
    return value;
  if (node.op == Op::Broadcast)
    return fail(DMX_STATUS_INVALID_ARGUMENT, "cannot broadcast ", *lhs, " and ", *rhs);
  return fail(DMX_STATUS_INVALID_ARGUMENT,
              "an expression divides by zero or leaves 64 bits: ", kOpNames[size_t(node.op) - size_t(Op::Add)], " of ",
              *lhs, " and ", *rhs);
}

std::string ExprPool::text(ExprId id, std::span<const std::string> dimNames) const {
  const Node &node = nodes[id];
  if (node.op == Op::Const)
    return std::to_string(node.value);
  if (node.op == Op::Dim)
    return dimNames[static_cast<size_t>(node.value)];
  std::string lhs = text(node.lhs, dimNames), rhs = text(node.rhs, dimNames);
  size_t index = size_t(node.op) - size_t(Op::Add);
  if (node.op >= Op::Min)
    return cat(kOpNames[index], "(", lhs, ", ", rhs, ")");
  auto wrap = [this](ExprId operand, const std::string &operandText) {
    Op op = nodes[operand].op;
    bool atom = op == Op::Const || op == Op::Dim || op >= Op::Min;
    return atom ? operandText : cat("(", operandText, ")");
  };
  return cat(wrap(node.lhs, lhs), kOpSigns[index], wrap(node.rhs, rhs));
}

/// Where an operand cannot be 1, the other is equal to it or 1.
ExprPool::Range ExprPool::broadcastRange(Range a, Range b) {
  bool oneA = a.min <= 1 && a.max >= 1, oneB = b.min <= 1 && b.max >= 1;
  if (oneA && oneB)
    return {std::min(a.min, b.min), std::max(a.max, b.max)};
  if (oneA || oneB)
    return oneA ? b : a;
  int64_t min = std::max(a.min, b.min);
  return {min, std::max(min, std::min(a.max, b.max))}; // apart from each other, no value is right
}

ExprPool::Range ExprPool::range(ExprId id, std::span<const Range> dims) const {
  const Node &node = nodes[id];
  if (node.op == Op::Const)
    return {node.value, node.value};
  if (node.op == Op::Dim)
    return dims[static_cast<size_t>(node.value)];
  Range a = range(node.lhs, dims), b = range(node.rhs, dims);
  auto hull = [&](auto compute) {
    __int128 corners[4] = {compute(a.min, b.min), compute(a.min, b.max), compute(a.max, b.min), compute(a.max, b.max)};
    auto [low, high] = std::minmax_element(corners, corners + 4);
    return Range{saturate(*low), saturate(*high)};
  };
  switch (node.op) {
  case Op::Add:
    return {saturate(__int128(a.min) + b.min), saturate(__int128(a.max) + b.max)};
  case Op::Sub:
    return {saturate(__int128(a.min) - b.max), saturate(__int128(a.max) - b.min)};
  case Op::Mul:
    return hull([](int64_t x, int64_t y) { return __int128(x) * y; });
  case Op::FloorDiv:
  case Op::CeilDiv:
    if (b.min <= 0)
      return {INT64_MIN, INT64_MAX}; // divisors are positive in practice
    return node.op == Op::FloorDiv ? hull([](int64_t x, int64_t y) { return floorDiv(x, y); })
                                   : hull([](int64_t x, int64_t y) { return -floorDiv(-__int128(x), y); });
  case Op::Mod:
    return b.min > 0 ? Range{0, b.max - 1} : Range{INT64_MIN, INT64_MAX};
  case Op::Min:
    return {std::min(a.min, b.min), std::min(a.max, b.max)};
  case Op::Broadcast:
    return broadcastRange(a, b);
  default:
    return {std::max(a.min, b.min), std::max(a.max, b.max)};
  }
}

bool ExprPool::isConstant(ExprId id, int64_t &value) const {
  value = nodes[id].value;
  return nodes[id].op == Op::Const;
}

bool ExprPool::isDim(ExprId id, uint32_t &dim) const {
  dim = static_cast<uint32_t>(nodes[id].value);
  return nodes[id].op == Op::Dim;
}

} // namespace dmxrt
