//===- VectorMathCases.cpp - references and inputs of the math tests
//----------===//

#include "VectorMathCases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace dmxc::cpu::test {

namespace {

struct UnaryReference {
  std::string_view name;
  long double (*fn)(long double);
};

long double sigmoid(long double x) { return 1 / (1 + expl(-x)); }
long double silu(long double x) { return x * sigmoid(x); }

const UnaryReference unaryReferences[] = {{"acos", acosl},
                                          {"acosh", acoshl},
                                          {"asin", asinl},
                                          {"asinh", asinhl},
                                          {"atan", atanl},
                                          {"atanh", atanhl},
                                          {"cos", cosl},
                                          {"cosh", coshl},
                                          {"erf", erfl},
                                          {"exp", expl},
                                          {"exp2", exp2l},
                                          {"expm1", expm1l},
                                          {"log", logl},
                                          {"log1p", log1pl},
                                          {"log2", log2l},
                                          {"round_half_away", roundl},
                                          {"sin", sinl},
                                          {"sinh", sinhl},
                                          {"round_half_even", nearbyintl},
                                          {"sigmoid", sigmoid},
                                          {"silu", silu},
                                          {"tan", tanl},
                                          {"tanh", tanhl}};

} // namespace

long double referenceUnary(std::string_view name, long double x) {
  for (const UnaryReference &row : unaryReferences)
    if (row.name == name)
      return row.fn(x);
  ADD_FAILURE() << "no reference for " << name;
  return NAN;
}

long double referenceBinary(std::string_view name, long double x, long double y) {
  if (name == "pow") // glibc's powl is wrong for infinite x and y = -2^63; double's pow is not
    return std::isinf(x) || x == 0 ? std::pow(double(x), double(y)) : powl(x, y);
  if (name == "fmod")
    return fmodl(x, y);
  if (name == "atan2")
    return atan2l(x, y);
  ADD_FAILURE() << "no reference for " << name;
  return NAN;
}

template <typename T> double ulpDistance(T got, long double exact) {
  using Limits = std::numeric_limits<T>;
  constexpr double wrong = std::numeric_limits<double>::infinity();
  if (std::isnan(exact) || std::isnan(got))
    return std::isnan(exact) && std::isnan(got) ? 0 : wrong;
  if (got == 0 || exact == 0)
    if (std::signbit(got) != std::signbit(exact))
      return wrong;
  long double past = ldexpl(1, Limits::max_exponent);
  auto finite = [&](long double v) { return std::isinf(v) ? copysignl(past, v) : v; };
  // Past the largest float everything that rounds to infinity is the same.
  if (fabsl(exact) >= past && std::isinf(got) && std::signbit(got) == std::signbit(exact))
    return 0;
  int exponent = 0;
  frexpl(finite(exact), &exponent);
  exponent = std::min(std::max(exponent, Limits::min_exponent), int(Limits::max_exponent));
  return fabsl(finite(got) - finite(exact)) / ldexpl(1, exponent - Limits::digits);
}
template double ulpDistance(float, long double);
template double ulpDistance(double, long double);

template <typename T> std::vector<T> specialValues() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> base = {0,
                         Limits::denorm_min(),
                         Limits::min(),
                         Limits::epsilon(),
                         Limits::max(),
                         T(0.25),
                         T(0.3535),
                         T(0.5),
                         T(0.625),
                         T(M_SQRT1_2),
                         T(0.75),
                         1,
                         T(M_SQRT2),
                         T(1.5),
                         2,
                         T(2.5),
                         3,
                         T(3.5),
                         T(3.84),
                         4,
                         5,
                         T(5.95),
                         6,
                         9,
                         10,
                         16,
                         18,
                         20,
                         22,
                         23,
                         24,
                         31,
                         T(M_PI_4),
                         T(M_PI_2),
                         T(M_PI),
                         T(M_LN2),
                         T(M_LN2 / 2),
                         T(0.41421356),
                         T(2.41421356),
                         T(88.722839),
                         T(88.8),
                         T(89.4),
                         T(103.9),
                         104,
                         T(127.5),
                         128,
                         149,
                         150,
                         T(709.782712893384),
                         T(710.4758600739439),
                         T(745.1),
                         746,
                         1022,
                         1023,
                         1024,
                         1074,
                         1075,
                         T(0x1p20),
                         T(0x1p23),
                         T(0x1p24),
                         T(0x1p28),
                         T(0x1p31),
                         T(0x1p52),
                         T(0x1p53),
                         T(0x1p63),
                         T(1e6),
                         T(1e10),
                         T(1e22),
                         T(1e30),
                         T(6381956970095103.0 * 0x1p60)};
  std::vector<T> out;
  for (T v : base)
    for (T n : {v, std::nextafter(v, T(INFINITY)), std::nextafter(v, T(-INFINITY))})
      if (std::isfinite(n))
        out.insert(out.end(), {n, -n});
  out.insert(out.end(), {T(INFINITY), T(-INFINITY), T(NAN), -T(NAN)});
  return out;
}
template std::vector<float> specialValues();
template std::vector<double> specialValues();

template <typename T> std::vector<T> sampleValues(size_t count) {
  std::mt19937_64 random(17);
  std::vector<T> out;
  auto uniform = [&](double low, double high) {
    std::uniform_real_distribution<double> values(low, high);
    for (size_t i = 0; i < count; ++i)
      out.push_back(T(values(random)));
  };
  for (size_t i = 0; i < count; ++i) {
    uint64_t pattern = random();
    T value;
    std::memcpy(&value, &pattern, sizeof value);
    out.push_back(value);
  }
  for (double range : {0.01, 0.5, 1.0, 4.0, 30.0, 800.0, 1e6})
    uniform(-range, range);
  uniform(0.5, 1.5);
  uniform(0.99, 1.01);
  // Near the zeros of sin and cos, where the reduction cancels most.
  for (size_t i = 0; i < count; ++i) {
    T multiple = T((random() % 2000000) * (M_PI / 2));
    out.push_back(random() % 2 ? multiple : -multiple);
  }
  return out;
}
template std::vector<float> sampleValues(size_t);
template std::vector<double> sampleValues(size_t);

TestKernel makeMathKernel(const VectorMathFunction &fn, const IsaLevel &isa, unsigned bits, int64_t lanes) {
  unsigned operands = fn.binary ? 2 : 1;
  int64_t step = lanes ? lanes : isa.lanes(bits);
  std::string name = fn.name.str() + std::to_string(bits);
  return makeKernel(name, isa, operands + 1, 0, [&](KernelBuilder &b) {
    mlir::Type element = bits == 32 ? mlir::Type(b.getF32Type()) : mlir::Type(b.getF64Type());
    VectorMath math(b, isa);
    b.forLoop(b.begin(), b.end(), b.idx(step), [&](mlir::Value i) {
      mlir::Value x = b.load(element, b.buffer(0), i, step);
      mlir::Value r = fn.binary ? (math.*fn.binary)(x, b.load(element, b.buffer(1), i, step)) : (math.*fn.unary)(x);
      b.store(r, b.buffer(operands), i);
    });
  });
}

} // namespace dmxc::cpu::test
