//===- SpecialFunctions.h - functions beyond the elementary -----*- C++ -*-===//
#pragma once

#include "../Formulas.h"

namespace dmxc::frontend {

// Of f32 and f64, each computed to its own accuracy.

// Gamma.cpp
/// ln |gamma(x)|; infinite at 0, -1, -2 ..
Val logGamma(Emitter &e, const Val &x);
/// The derivative of ln gamma; NaN at -1, -2 .., infinite at 0.
Val digamma(Emitter &e, const Val &x);
/// The sum of (q + k) ** -s for k from 0; s is 2 or more, q positive.
Val hurwitzZeta(Emitter &e, double s, const Val &q);
/// The order's derivative of digamma, of an order from 1 to kMaxPolygamma.
Val polygamma(Emitter &e, int64_t order, const Val &x);
inline constexpr int64_t kMaxPolygamma = 20;

// ErrorFunctions.cpp
/// 1 - erf(x), also where that is tiny.
Val erfcOf(Emitter &e, const Val &x);
/// exp(x * x) * erfc(x).
Val scaledErfc(Emitter &e, const Val &x);
/// ln of the normal distribution's cumulative function.
Val logNormalCdf(Emitter &e, const Val &x);
/// Where the normal distribution's cumulative function is p.
Val normalQuantile(Emitter &e, const Val &p);

// Bessel.cpp
/// Modified Bessel functions of the first kind; `scaled` by exp(-|x|).
Val besselI0(Emitter &e, const Val &x, bool scaled);
Val besselI1(Emitter &e, const Val &x, bool scaled);
/// Bessel functions of the first kind.
Val besselJ0(Emitter &e, const Val &x);
Val besselJ1(Emitter &e, const Val &x);

} // namespace dmxc::frontend
