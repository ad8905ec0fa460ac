//===- Gamma.cpp - the gamma function's logarithm and derivatives ---------===//
//
// Stirling's series and its derivatives (Abramowitz and Stegun 6.1.41, 6.3.18, 23.2) hold from 8 on; below that the
// recurrence leads there, and below 0 the reflection.
//
//===----------------------------------------------------------------------===//
#include "SpecialFunctions.h"

#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::frontend {

namespace {

constexpr int kShift = 8; ///< how far the recurrence leads

/// B2, B4, ..
constexpr double kBernoulli[] = {1.0 / 6,       -1.0 / 30,       1.0 / 42,       -1.0 / 30,
                                 5.0 / 66,      -691.0 / 2730,   7.0 / 6,        -3617.0 / 510,
                                 43867.0 / 798, -174611.0 / 330, 854513.0 / 138, -236364091.0 / 2730};

/// The sum of coefficient(k) * B2k * z ** (k - 1) for k from 1 to `terms`.
template <typename Coefficient> Val bernoulliSeries(Emitter &e, const Val &z, int terms, Coefficient coefficient) {
  std::vector<double> numbers;
  for (int k = terms; k >= 1; --k)
    numbers.push_back(kBernoulli[k - 1] * coefficient(k));
  return polynomial(e, z, numbers);
}

/// Terms of Stirling's series that count from 8 on.
int stirlingTerms(const Val &x) { return x.dtype() == DType::F64 ? 10 : 4; }

/// Of x >= 0.
Val logGammaFromZero(Emitter &e, const Val &x) {
  Val low = e.compare(Compare::lt, x, e.scalarLike(x, kShift)), s = e.select(low, e.add(x, kShift), x);
  Val rising = x;
  for (int i = 1; i < kShift; ++i)
    rising = e.mul(rising, e.add(x, i));
  // Beside s ** 8 the rising product is near 1 with this factor: little is lost where terms cancel, near 1 and 2.
  constexpr double kFactor = 4096;
  Val ratio = e.mul(e.div(rising, square(e, square(e, square(e, s)))), kFactor);
  const double constant = std::log(2 * M_PI) / 2 - 0.5;
  Val less = e.sub(e.scalarLike(x, constant - kShift + std::log(kFactor)), logOf(e, ratio));
  Val z = reciprocal(e, s);
  Val series =
      e.mul(z, bernoulliSeries(e, square(e, z), stirlingTerms(x), [](int k) { return 1.0 / (2 * k * (2 * k - 1)); }));
  Val main = e.mul(e.add(x, -0.5), e.add(logOf(e, s), -1.0));
  return e.add(e.add(main, e.select(low, less, e.scalarLike(x, constant))), series);
}

/// Of x that is no pole below 0.
Val digammaFromZero(Emitter &e, const Val &x) {
  Val low = e.compare(Compare::lt, x, e.scalarLike(x, kShift)), s = e.select(low, e.add(x, kShift), x);
  Val below = reciprocal(e, x);
  for (int i = 1; i < kShift; ++i)
    below = e.add(below, reciprocal(e, e.add(x, i)));
  Val z = reciprocal(e, s), squared = square(e, z);
  Val series = e.mul(squared, bernoulliSeries(e, squared, stirlingTerms(x), [](int k) { return 1.0 / (2 * k); }));
  Val high = e.sub(logOf(e, s), e.add(e.mul(z, 0.5), series));
  return e.select(low, e.sub(high, below), high);
}

/// pi times what x has beyond the nearest integer.
Val piTimesRest(Emitter &e, const Val &x) { return e.mul(e.sub(x, e.emit<RoundOp>({x})), M_PI); }

/// x = 0, -1, ..
Val isPole(Emitter &e, const Val &x) {
  return both(e, e.compare(Compare::le, x, e.scalarLike(x, 0)), e.compare(Compare::eq, x, e.emit<FloorOp>({x})));
}

/// x, of negative numbers 1 - x.
std::pair<Val, Val> reflected(Emitter &e, const Val &x) {
  Val negative = e.compare(Compare::lt, x, e.scalarLike(x, 0));
  return {negative, e.select(negative, e.sub(e.scalarLike(x, 1), x), x)};
}

/// The numbers P with P(cot(x)) the order's derivative of cot(x), from the highest power on.
std::vector<double> cotangentDerivative(int64_t order) {
  std::vector<double> p{0, 1}; // from the lowest power on
  for (int64_t i = 0; i < order; ++i) {
    std::vector<double> next(p.size() + 1, 0);
    for (size_t k = 1; k < p.size(); ++k) {
      next[k - 1] -= static_cast<double>(k) * p[k];
      next[k + 1] -= static_cast<double>(k) * p[k];
    }
    p = std::move(next);
  }
  return {p.rbegin(), p.rend()};
}

} // namespace

Val logGamma(Emitter &e, const Val &x) {
  auto [negative, y] = reflected(e, x);
  Val positive = logGammaFromZero(e, y), sine = absOf(e, e.emit<SinOp>({piTimesRest(e, x)}));
  Val below = e.sub(logOf(e, e.div(e.scalarLike(x, M_PI), sine)), positive);
  return e.select(isPole(e, x), e.scalarLike(x, INFINITY), e.select(negative, below, positive));
}

Val digamma(Emitter &e, const Val &x) {
  auto [negative, y] = reflected(e, x);
  Val positive = digammaFromZero(e, y);
  Val below = e.sub(positive, e.div(e.scalarLike(x, M_PI), e.emit<TanOp>({piTimesRest(e, x)})));
  below = e.select(isPole(e, x), e.scalarLike(x, NAN), below);
  return e.select(negative, below, positive);
}

/// Ten terms, for the others the Euler-Maclaurin formula (Abramowitz and Stegun 23.1.30).
Val hurwitzZeta(Emitter &e, double s, const Val &q) {
  auto power = [&](const Val &x, double p) { return e.emit<PowOp>({x, e.scalarLike(x, p)}); };
  constexpr int kTerms = 9;
  Val total = power(q, -s);
  for (int i = 1; i < kTerms; ++i)
    total = e.add(total, power(e.add(q, i), -s));
  Val a = e.add(q, kTerms), z = reciprocal(e, a), integral = power(a, 1 - s), next = e.mul(integral, z);
  const int terms = q.dtype() == DType::F64 ? 12 : 8;
  Val series = bernoulliSeries(e, square(e, z), terms, [&](int k) {
    double factor = s / 2; // s (s + 1) .. (s + 2k - 2) / (2k)!
    for (int i = 1; i <= 2 * k - 2; ++i)
      factor *= (s + i) / (i + 2);
    return factor;
  });
  total = e.add(total, e.mul(integral, 1 / (s - 1)));
  return e.add(total, e.mul(next, e.add(e.mul(series, z), 0.5)));
}

Val polygamma(Emitter &e, int64_t order, const Val &x) {
  const double sign = order % 2 ? 1 : -1, n = static_cast<double>(order);
  auto [negative, y] = reflected(e, x);
  Val positive = e.mul(hurwitzZeta(e, n + 1, y), sign * std::tgamma(n + 1));
  Val cotangent = reciprocal(e, e.emit<TanOp>({piTimesRest(e, x)}));
  Val turned = e.mul(polynomial(e, cotangent, cotangentDerivative(order)), std::pow(M_PI, n + 1));
  Val below = e.sub(e.mul(positive, -sign), turned);
  return e.select(isPole(e, x), e.scalarLike(x, sign * INFINITY), e.select(negative, below, positive));
}

} // namespace dmxc::frontend
