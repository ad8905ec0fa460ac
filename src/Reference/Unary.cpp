//===- Unary.cpp - elementwise ops of one operand -------------------------===//
#include "Evaluator.h"
#include "Types.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace dmxc::reference {

namespace {

using Wide = long double;

template <typename In, typename Out, typename F> Tensor map(const Call &call, F f) {
  Tensor result = call.makeResult();
  const In *__restrict in = call.in[0].as<In>();
  Out *__restrict out = result.as<Out>();
  for (int64_t i = 0, count = result.numElements(); i < count; ++i)
    out[i] = static_cast<Out>(f(in[i]));
  return result;
}

/// Float ops: `f` is a function of doubles, so that an f32 result is the double result rounded once. (For +, -, *, /
/// and sqrt that is the same as f32 arithmetic.)
template <auto f> Outputs floatOp(const Call &call) {
  return one(withFloat(call.in[0].dtype(),
                       [&]<typename T>(T) { return map<T, T>(call, [](T x) { return f(static_cast<double>(x)); }); }));
}

/// Ops of all number types; `f` takes and returns the element's own type.
template <auto f> Outputs numberOp(const Call &call) {
  return one(withNumber(call.in[0].dtype(), [&]<typename T>(T) { return map<T, T>(call, f); }));
}

template <auto f> Outputs testOp(const Call &call) {
  return one(withFloat(call.in[0].dtype(), [&]<typename T>(T) { return map<T, uint8_t>(call, f); }));
}

Outputs evaluateNot(const Call &call) {
  if (call.in[0].dtype() == DType::Bool)
    return one(map<uint8_t, uint8_t>(call, [](uint8_t x) { return x == 0; }));
  return one(withInt(call.in[0].dtype(), [&]<typename T>(T) { return map<T, T>(call, [](T x) { return ~x; }); }));
}

constexpr auto negate = []<typename T>(T x) {
  if constexpr (std::floating_point<T>)
    return -x;
  else
    return wrapSub(T{}, x);
};

constexpr auto absolute = []<typename T>(T x) {
  if constexpr (std::floating_point<T>)
    return std::fabs(x);
  else
    return x < T{} ? wrapSub(T{}, x) : x;
};

constexpr auto signOf = []<typename T>(T x) {
  if constexpr (std::floating_point<T>)
    if (isNaN(x))
      return x;
  return static_cast<T>((x > T{}) - (x < T{}));
};

constexpr auto relu = []<typename T>(T x) { return maximum(x, T{}); };

} // namespace

void addUnary(Table &table) {
  table["dmir.neg"] = {numberOp<negate>};
  table["dmir.abs"] = {numberOp<absolute>};
  table["dmir.sign"] = {numberOp<signOf>};
  table["dmir.relu"] = {numberOp<relu>};
  table["dmir.not"] = {evaluateNot};
  table["dmir.is_nan"] = {testOp<[](auto x) { return isNaN(x); }>};
  table["dmir.is_inf"] = {testOp<[](auto x) { return std::isinf(x); }>};

  table["dmir.ceil"] = {floatOp<[](double x) { return std::ceil(x); }>};
  table["dmir.floor"] = {floatOp<[](double x) { return std::floor(x); }>};
  // The default rounding mode, which nothing here changes, is to nearest even.
  table["dmir.round"] = {floatOp<[](double x) { return std::nearbyint(x); }>};
  table["dmir.sqrt"] = {floatOp<[](double x) { return std::sqrt(x); }>};
  table["dmir.reciprocal"] = {floatOp<[](double x) { return 1.0 / x; }>};
  table["dmir.exp"] = {floatOp<[](double x) { return std::exp(x); }>};
  table["dmir.log"] = {floatOp<[](double x) { return std::log(x); }>};
  table["dmir.log2"] = {floatOp<[](double x) { return std::log2(x); }>};
  table["dmir.log1p"] = {floatOp<[](double x) { return std::log1p(x); }>};
  table["dmir.expm1"] = {floatOp<[](double x) { return std::expm1(x); }>};
  table["dmir.sin"] = {floatOp<[](double x) { return std::sin(x); }>};
  table["dmir.cos"] = {floatOp<[](double x) { return std::cos(x); }>};
  table["dmir.tan"] = {floatOp<[](double x) { return std::tan(x); }>};
  table["dmir.asin"] = {floatOp<[](double x) { return std::asin(x); }>};
  table["dmir.acos"] = {floatOp<[](double x) { return std::acos(x); }>};
  table["dmir.atan"] = {floatOp<[](double x) { return std::atan(x); }>};
  table["dmir.sinh"] = {floatOp<[](double x) { return std::sinh(x); }>};
  table["dmir.cosh"] = {floatOp<[](double x) { return std::cosh(x); }>};
  table["dmir.tanh"] = {floatOp<[](double x) { return std::tanh(x); }>};
  table["dmir.asinh"] = {floatOp<[](double x) { return std::asinh(x); }>};
  table["dmir.acosh"] = {floatOp<[](double x) { return std::acosh(x); }>};
  table["dmir.atanh"] = {floatOp<[](double x) { return std::atanh(x); }>};
  table["dmir.erf"] = {floatOp<[](double x) { return std::erf(x); }>};
  // Of several steps, in long double: one rounding in the end.
  table["dmir.silu"] = {floatOp<[](double x) { return static_cast<double>(x / (1 + expl(-Wide(x)))); }>};
  table["dmir.gelu"] = {
      floatOp<[](double x) { return static_cast<double>(x * erfcl(-x / std::numbers::sqrt2_v<Wide>) / 2); }>};
  table["dmir.gelu_tanh"] = {floatOp<[](double value) {
    const Wide x = value, slope = 2 * sqrtl(2 * std::numbers::inv_pi_v<Wide>); // (1 + tanh u) / 2 is sigmoid(2 u)
    return static_cast<double>(x / (1 + expl(-slope * (x + 0.044715L * x * x * x))));
  }>};
  table["dmir.hard_swish"] = {
      floatOp<[](double x) { return static_cast<double>(x * std::clamp<Wide>(Wide(x) + 3, 0, 6) / 6); }>};
  table["dmir.softplus"] = {
      floatOp<[](double x) { return static_cast<double>(std::max<Wide>(x, 0) + log1pl(expl(-fabsl(x)))); }>};
  table["dmir.rsqrt"] = {floatOp<[](double x) { return static_cast<double>(1 / sqrtl(x)); }>};
  table["dmir.sigmoid"] = {floatOp<[](double x) { return 1.0 / (1.0 + std::exp(-x)); }>};
}

} // namespace dmxc::reference
