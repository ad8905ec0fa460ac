//===- Binary.cpp - elementwise ops of two operands, and select -----------===//
#include "Evaluator.h"
#include "Strided.h"
#include "Types.h"

#include "dmxc/Dialect/DMIR/masks/Where.h"

#include <cmath>

namespace dmxc::reference {

namespace {

/// One row. The common strides are spelled out so that the compiler vectorises them.
template <typename In, typename Out, typename F>
void mapRow(Out *__restrict out, const In *__restrict a, int64_t aStride, const In *__restrict b, int64_t bStride,
            int64_t count, F f) {
  if (aStride == 1 && bStride == 1) {
    for (int64_t i = 0; i < count; ++i)
      out[i] = static_cast<Out>(f(a[i], b[i]));
  } else if (aStride == 1 && bStride == 0) {
    In right = *b;
    for (int64_t i = 0; i < count; ++i)
      out[i] = static_cast<Out>(f(a[i], right));
  } else if (aStride == 0 && bStride == 1) {
    In left = *a;
    for (int64_t i = 0; i < count; ++i)
      out[i] = static_cast<Out>(f(left, b[i]));
  } else {
    for (int64_t i = 0; i < count; ++i)
      out[i] = static_cast<Out>(f(a[i * aStride], b[i * bStride]));
  }
}

template <typename In, typename Out, typename F> Tensor map(const Call &call, F f) {
  Tensor result = call.makeResult();
  const Shape &space = result.shape();
  StridedLoop<2> loop(space,
                      {broadcastStrides(call.in[0].shape(), space), broadcastStrides(call.in[1].shape(), space)});
  const In *a = call.in[0].as<In>(), *b = call.in[1].as<In>();
  Out *out = result.as<Out>();
  loop.forEachRow([&](int64_t first, const std::array<int64_t, 2> &at) {
    mapRow(out + first, a + at[0], loop.rowStride(0), b + at[1], loop.rowStride(1), loop.rowLength(), f);
  });
  return result;
}

template <auto f> Outputs numberOp(const Call &call) {
  return one(withNumber(call.in[0].dtype(), [&]<typename T>(T) { return map<T, T>(call, f); }));
}

template <auto f> Outputs intOp(const Call &call) {
  return one(withInt(call.in[0].dtype(), [&]<typename T>(T) { return map<T, T>(call, f); }));
}

/// Division and its remainders: an integer divisor of 0 is found before the loop, which then needs no exit.
template <auto f> Outputs divisionOp(const Call &call) {
  const Tensor &divisor = call.in[1];
  bool zero = withNumber(divisor.dtype(), [&]<typename T>(T) {
    if constexpr (std::integral<T>)
      return std::find(divisor.as<T>(), divisor.as<T>() + divisor.numElements(), T{}) !=
             divisor.as<T>() + divisor.numElements();
    return false;
  });
  if (zero && elementCount(call.shape()) > 0)
    return call.error("integer division by zero");
  return numberOp<f>(call);
}

/// The smallest integer divided by -1 overflows, which traps on x86: -1 is handled as a negation, that wraps.
template <typename T> bool isMinusOne(T x) { return std::is_signed_v<T> && x == static_cast<T>(-1); }

constexpr auto divide = []<typename T>(T a, T b) {
  if constexpr (std::integral<T>)
    return isMinusOne(b) ? wrapSub(T{}, a) : static_cast<T>(a / b);
  else
    return a / b;
};

constexpr auto truncatedRemainder = []<typename T>(T a, T b) {
  if constexpr (std::integral<T>)
    return isMinusOne(b) ? T{} : static_cast<T>(a % b);
  else
    return std::fmod(a, b);
};

/// Python's %: the exact remainder of fmod, moved to the divisor's sign. A zero takes the divisor's sign too.
constexpr auto flooredRemainder = []<typename T>(T a, T b) {
  T rest = truncatedRemainder(a, b);
  if (rest != T{})
    return (rest < T{}) != (b < T{}) ? wrapAdd(rest, b) : rest;
  if constexpr (std::floating_point<T>)
    return std::copysign(T{}, b);
  return T{};
};

constexpr auto power = []<typename T>(T a, T b) {
  if constexpr (std::floating_point<T>) {
    return static_cast<T>(std::pow(static_cast<double>(a), static_cast<double>(b)));
  } else {
    if (b < T{})
      return isMinusOne(a) ? (b % 2 ? a : T{1}) : static_cast<T>(a == T{1});
    T result = 1, square = a;
    for (std::make_unsigned_t<T> rest = b; rest; rest >>= 1) {
      if (rest & 1)
        result = wrapMul(result, square);
      square = wrapMul(square, square);
    }
    return result;
  }
};

/// Shift counts are read as unsigned: a negative one shifts everything out, as any that reaches the width.
template <typename T> bool shiftsOut(T count) { return static_cast<std::make_unsigned_t<T>>(count) >= sizeof(T) * 8; }
constexpr auto shiftLeft = []<typename T>(T a, T b) {
  return shiftsOut(b) ? T{} : static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) << b);
};
constexpr auto shiftRight = []<typename T>(T a, T b) {
  return shiftsOut(b) ? static_cast<T>(a < T{} ? -1 : 0) : static_cast<T>(a >> b);
};

template <auto f> Tensor compareWith(const Call &call) {
  return withNumber(call.in[0].dtype(), [&]<typename T>(T) { return map<T, uint8_t>(call, f); });
}

Outputs evaluateCompare(const Call &call) {
  switch (llvm::cast<dmir::CompareOp>(call.op).getKind()) {
  case dmir::Compare::eq:
    return one(compareWith<[](auto a, auto b) { return a == b; }>(call));
  case dmir::Compare::ne:
    return one(compareWith<[](auto a, auto b) { return a != b; }>(call));
  case dmir::Compare::lt:
    return one(compareWith<[](auto a, auto b) { return a < b; }>(call));
  case dmir::Compare::le:
    return one(compareWith<[](auto a, auto b) { return a <= b; }>(call));
  case dmir::Compare::gt:
    return one(compareWith<[](auto a, auto b) { return (a > b); }>(call));
  case dmir::Compare::ge:
    return one(compareWith<[](auto a, auto b) { return a >= b; }>(call));
  }
  llvm_unreachable("not a comparison");
}

Outputs evaluateSelect(const Call &call) {
  Tensor result = call.makeResult();
  const Shape &space = result.shape();
  StridedLoop<3> loop(space, {broadcastStrides(call.in[0].shape(), space), broadcastStrides(call.in[1].shape(), space),
                              broadcastStrides(call.in[2].shape(), space)});
  withBits(result.dtype(), [&]<typename T>(T) {
    const uint8_t *condition = call.in[0].as<uint8_t>();
    const T *onTrue = call.in[1].as<T>(), *onFalse = call.in[2].as<T>();
    T *out = result.as<T>();
    int64_t c = loop.rowStride(0), t = loop.rowStride(1), f = loop.rowStride(2);
    loop.forEachRow([&](int64_t first, const std::array<int64_t, 3> &at) {
      for (int64_t i = 0; i < loop.rowLength(); ++i)
        out[first + i] = condition[at[0] + i * c] ? onTrue[at[1] + i * t] : onFalse[at[2] + i * f];
    });
  });
  return one(std::move(result));
}

/// The element of a tensor that broadcasts to the index' space.
int64_t valueAt(const Tensor &tensor, llvm::ArrayRef<int64_t> index) {
  int64_t at = 0;
  size_t missing = index.size() - tensor.shape().size();
  for (size_t axis = 0; axis < tensor.shape().size(); ++axis)
    at = at * tensor.shape()[axis] + (tensor.shape()[axis] == 1 ? 0 : index[missing + axis]);
  return tensor.asInt(at);
}

/// A select whose condition is a rule.
Outputs evaluateMask(const Call &call) {
  auto op = llvm::cast<dmir::MaskOp>(call.op);
  if (op.getLow())
    return one(call.in[0]);
  Tensor result = call.makeResult();
  const Shape &space = result.shape();
  std::vector<int64_t> symbols;
  dmir::Rule rule = dmir::ruleOf(op);
  for (Dim dim : rule.dims) {
    if (!dim.isStatic())
      return call.error("the rule's sizes are known at run time only");
    symbols.push_back(*dim.known());
  }
  size_t dims = symbols.size();
  symbols.resize(rule.symbols());
  double fill = llvm::cast<mlir::FloatAttr>(op.getFill()).getValueAsDouble();
  std::vector<int64_t> index(space.size(), 0);
  for (int64_t at = 0; at < result.numElements(); ++at) {
    for (size_t value = 1; value < call.in.size(); ++value)
      symbols[dims + value - 1] = std::clamp(valueAt(call.in[value], index), -dmir::kMostValue, dmir::kMostValue);
    const double score = call.in[0].asDouble(at), other = op.getAdds() ? score + fill : fill;
    result.setDouble(at, dmir::keeps(rule, index, symbols) ? score : other);
    for (size_t axis = space.size(); axis-- > 0 && ++index[axis] == space[axis];)
      index[axis] = 0;
  }
  return one(std::move(result));
}

} // namespace

void addBinary(Table &table) {
  table["dmir.add"] = {numberOp<[](auto a, auto b) { return wrapAdd(a, b); }>};
  table["dmir.sub"] = {numberOp<[](auto a, auto b) { return wrapSub(a, b); }>};
  table["dmir.mul"] = {numberOp<[](auto a, auto b) { return wrapMul(a, b); }>};
  table["dmir.max"] = {numberOp<[](auto a, auto b) { return maximum(a, b); }>};
  table["dmir.min"] = {numberOp<[](auto a, auto b) { return minimum(a, b); }>};
  table["dmir.div"] = {divisionOp<divide>};
  table["dmir.mod"] = {divisionOp<flooredRemainder>};
  table["dmir.fmod"] = {divisionOp<truncatedRemainder>};
  table["dmir.pow"] = {numberOp<power>};
  // Bools are bytes of 0 or 1, so bitwise is logical for them.
  table["dmir.and"] = {intOp<[](auto a, auto b) { return a & b; }>};
  table["dmir.or"] = {intOp<[](auto a, auto b) { return a | b; }>};
  table["dmir.xor"] = {intOp<[](auto a, auto b) { return a ^ b; }>};
  table["dmir.shl"] = {intOp<shiftLeft>};
  table["dmir.shr"] = {intOp<shiftRight>};
  table["dmir.compare"] = {evaluateCompare};
  table["dmir.select"] = {evaluateSelect, Mode::Movement};
  table["dmir.mask"] = {evaluateMask};
}

} // namespace dmxc::reference
