//===- Special.cpp - functions beyond the elementary ----------------------===//
#include "../Math.h"

#include "frontends/common/ops/special/SpecialFunctions.h"

#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

/// A function of floats; integers become f32.
template <Val (*function)(Emitter &, const Val &)> void importFunction(AtenContext &c) {
  c.result(computeWide(c, c.asFloat(c.tensor("self")), [&](const Val &x) { return function(c.e, x); }));
}
template <Val (*function)(Emitter &, const Val &, bool), bool scaled> void importScaled(AtenContext &c) {
  c.result(computeWide(c, c.asFloat(c.tensor("self")), [&](const Val &x) { return function(c.e, x, scaled); }));
}

Val preciseNormalCdf(Emitter &e, const Val &x) { return e.mul(erfcOf(e, e.mul(x, -std::sqrt(0.5))), 0.5); }

/// sin(pi x) / (pi x).
Val sinc(Emitter &e, const Val &x) {
  Val angle = e.mul(x, M_PI), zero = e.compare(Compare::eq, x, e.scalarLike(x, 0));
  return e.select(zero, e.scalarLike(x, 1), e.div(e.emit<SinOp>({angle}), angle));
}

/// -x ln(x), which ends at 0 and is -inf below.
Val entropy(Emitter &e, const Val &x) {
  Val zero = e.scalarLike(x, 0), inside = negOf(e, e.mul(x, logOf(e, x)));
  Val below = e.select(e.compare(Compare::lt, x, zero), e.scalarLike(x, -INFINITY), inside);
  return e.select(e.compare(Compare::eq, x, zero), zero, below);
}

void importPolygamma(AtenContext &c) {
  int64_t order = c.integer("n");
  c.require(order >= 0 && order <= kMaxPolygamma,
            "the order " + std::to_string(order) + " is not in [0, " + std::to_string(kMaxPolygamma) + "]");
  c.result(computeWide(c, c.asFloat(c.tensor("self")),
                       [&](const Val &x) { return order == 0 ? digamma(c.e, x) : polygamma(c.e, order, x); }));
}

/// The sum of ln gamma at x, x - 1/2, .. of p terms.
void importMultiGamma(AtenContext &c) {
  int64_t p = c.integer("p");
  c.require(p >= 1 && p <= 64, "p is " + std::to_string(p) + ", but must lie in [1, 64]");
  c.result(computeWide(c, c.asFloat(c.tensor("self")), [&](const Val &x) {
    Val all = unsqueeze(c.e, x, x.rank()), line = alongAxis(c.e, c.e.iota(x.dtype(), {p}, 0), x.rank(), x.rank() + 1);
    Val sum = sumOver(c.e, logGamma(c.e, c.e.sub(all, c.e.mul(line, 0.5))), {x.rank()}, false);
    return c.e.add(sum, static_cast<double>(p * (p - 1)) / 4 * std::log(M_PI));
  }));
}

} // namespace

std::vector<AtenRow> specialOps() {
  return {
      {"lgamma(Tensor self) -> Tensor", importFunction<logGamma>},
      {"digamma(Tensor self) -> Tensor", importFunction<digamma>},
      {"polygamma(int n, Tensor self) -> Tensor", importPolygamma, "orders up to 20"},
      {"mvlgamma(Tensor self, int p) -> Tensor", importMultiGamma},
      {"special_erfcx(Tensor self) -> Tensor", importFunction<scaledErfc>},
      {"special_ndtr(Tensor self) -> Tensor", importFunction<preciseNormalCdf>},
      {"special_log_ndtr(Tensor self) -> Tensor", importFunction<logNormalCdf>},
      {"special_ndtri(Tensor self) -> Tensor", importFunction<normalQuantile>},
      {"i0(Tensor self) -> Tensor", importScaled<besselI0, false>},
      {"special_i0e(Tensor self) -> Tensor", importScaled<besselI0, true>},
      {"special_i1(Tensor self) -> Tensor", importScaled<besselI1, false>},
      {"special_i1e(Tensor self) -> Tensor", importScaled<besselI1, true>},
      {"special_bessel_j0(Tensor self) -> Tensor", importFunction<besselJ0>},
      {"special_bessel_j1(Tensor self) -> Tensor", importFunction<besselJ1>},
      {"sinc(Tensor self) -> Tensor", importFunction<sinc>},
      {"special_entr(Tensor self) -> Tensor", importFunction<entropy>},
  };
}

} // namespace dmxc::torchfe
