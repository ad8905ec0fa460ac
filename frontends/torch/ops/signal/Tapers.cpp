//===- Tapers.cpp - windows of signals ------------------------------------===//
//
// The formulas are those of numpy's reference (numpy.hanning, hamming, blackman, bartlett, kaiser). Lengths are numbers
// of the program, so that windows are constants.
//
//===----------------------------------------------------------------------===//
#include "../Math.h"

#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

/// The numbers formula(i, last) for i in [0, last]; a periodic window is one longer, of which the last is left out.
template <typename Formula> void window(AtenContext &c, Formula formula) {
  const int64_t length = c.integer("window_length"), last = c.flag("periodic", true) ? length : length - 1;
  c.require(length >= 0 && length <= int64_t(1) << 26, "window_length must be 0 to 2^26");
  const DType type = c.type("dtype", DType::F32);
  c.require(isFloat(type), "a window has floats");
  std::vector<double> values(length, 1);
  for (int64_t i = 0; i < length && length > 1; ++i)
    values[i] = formula(static_cast<double>(i), static_cast<double>(last));
  c.result(c.e.floats(type, {length}, values));
}

void importHann(AtenContext &c) {
  window(c, [](double i, double last) { return 0.5 - 0.5 * std::cos(2 * M_PI * i / last); });
}
void importHamming(AtenContext &c) {
  const double alpha = c.number("alpha", 0.54), beta = c.number("beta", 0.46);
  window(c, [&](double i, double last) { return alpha - beta * std::cos(2 * M_PI * i / last); });
}
void importBlackman(AtenContext &c) {
  window(c, [](double i, double last) {
    return 0.42 - 0.5 * std::cos(2 * M_PI * i / last) + 0.08 * std::cos(4 * M_PI * i / last);
  });
}
void importBartlett(AtenContext &c) {
  window(c, [](double i, double last) { return 1 - std::abs(2 * i / last - 1); });
}

/// The modified Bessel function I0 by its power series (Abramowitz & Stegun 9.6.12), times exp(-x).
double scaledBessel0(double x) {
  double term = std::exp(-x), sum = term;
  for (int k = 1; term > 0 && k < 10000; ++k) {
    term *= (x / 2 / k) * (x / 2 / k);
    sum += term;
  }
  return sum;
}
void importKaiser(AtenContext &c) {
  const double beta = std::abs(c.number("beta", 12));
  c.require(beta <= 700, "beta must be at most 700");
  window(c, [&](double i, double last) {
    double at = 2 * i / last - 1, inner = beta * std::sqrt(std::max(1 - at * at, 0.0));
    return scaledBessel0(inner) / scaledBessel0(beta) * std::exp(inner - beta);
  });
}

} // namespace

std::vector<AtenRow> taperOps() {
#define OPTIONS                                                                                                        \
  ", *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor"
#define BOTH(name, import)                                                                                             \
  {name "(int window_length" OPTIONS, import}, { name ".periodic(int window_length, bool periodic" OPTIONS, import }
  return {
      BOTH("hann_window", importHann),
      BOTH("hamming_window", importHamming),
      {"hamming_window.periodic_alpha(int window_length, bool periodic, float alpha" OPTIONS, importHamming},
      {"hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float beta" OPTIONS,
       importHamming},
      BOTH("blackman_window", importBlackman),
      BOTH("bartlett_window", importBartlett),
      BOTH("kaiser_window", importKaiser),
      {"kaiser_window.beta(int window_length, bool periodic, float beta" OPTIONS, importKaiser},
  };
#undef BOTH
#undef OPTIONS
}

} // namespace dmxc::torchfe
