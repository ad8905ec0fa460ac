//===- Bessel.cpp - Bessel functions of orders 0 and 1 --------------------===//
//
// The coefficients are those of the Cephes Mathematical Library (S. Moshier): i0.c, i1.c, j0.c, j1.c.
//
//===----------------------------------------------------------------------===//
#include "SpecialFunctions.h"

#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::frontend {

namespace {

//===--- Modified -------------------------------------------------------------------===//

// Chebyshev coefficients, the highest first: of exp(-x) I0(x) and exp(-x) I1(x) / x up to 8, of those times sqrt(x)
// (the second without the division) from there on.
constexpr double kI0Near[] = {
    -4.4153416464793395e-18, 3.3307945188222384e-17, -2.431279846547955e-16, 1.715391285555133e-15,
    -1.1685332877993451e-14, 7.676185498604936e-14,  -4.856446783111929e-13, 2.95505266312964e-12,
    -1.726826291441556e-11,  9.675809035373237e-11,  -5.189795601635263e-10, 2.6598237246823866e-09,
    -1.300025009986248e-08,  6.046995022541919e-08,  -2.670793853940612e-07, 1.1173875391201037e-06,
    -4.4167383584587505e-06, 1.6448448070728896e-05, -5.754195010082104e-05, 0.00018850288509584165,
    -0.0005763755745385824,  0.0016394756169413357,  -0.004324309995050576,  0.010546460394594998,
    -0.02373741480589947,    0.04930528423967071,    -0.09490109704804764,   0.17162090152220877,
    -0.3046826723431984,     0.6767952744094761};
constexpr double kI0Far[] = {
    -7.233180487874754e-18,  -4.830504485944182e-18,  4.46562142029676e-17,    3.461222867697461e-17,
    -2.8276239805165836e-16, -3.425485619677219e-16,  1.7725601330565263e-15,  3.8116806693526224e-15,
    -9.554846698828307e-15,  -4.150569347287222e-14,  1.54008621752141e-14,    3.8527783827421426e-13,
    7.180124451383666e-13,   -1.7941785315068062e-12, -1.3215811840447713e-11, -3.1499165279632416e-11,
    1.1889147107846439e-11,  4.94060238822497e-10,    3.3962320257083865e-09,  2.266668990498178e-08,
    2.0489185894690638e-07,  2.8913705208347567e-06,  6.889758346916825e-05,   0.0033691164782556943,
    0.8044904110141088};
constexpr double kI1Near[] = {
    2.7779141127610464e-18, -2.111421214358166e-17,  1.5536319577362005e-16, -1.1055969477353862e-15,
    7.600684294735408e-15,  -5.042185504727912e-14,  3.223793365945575e-13,  -1.9839743977649436e-12,
    1.1736186298890901e-11, -6.663489723502027e-11,  3.625590281552117e-10,  -1.8872497517228294e-09,
    9.381537386495773e-09,  -4.445059128796328e-08,  2.0032947535521353e-07, -8.568720264695455e-07,
    3.4702513081376785e-06, -1.3273163656039436e-05, 4.781565107550054e-05,  -0.00016176081582589674,
    0.0005122859561685758,  -0.0015135724506312532,  0.004156422944312888,   -0.010564084894626197,
    0.024726449030626516,   -0.05294598120809499,    0.1026436586898471,     -0.17641651835783406,
    0.25258718644363365};
constexpr double kI1Far[] = {
    7.517296310842105e-18,   4.414348323071708e-18,  -4.6503053684893586e-17, -3.209525921993424e-17,
    2.96262899764595e-16,    3.3082023109209285e-16, -1.8803547755107825e-15, -3.8144030724370075e-15,
    1.0420276984128802e-14,  4.272440016711951e-14,  -2.1015418427726643e-14, -4.0835511110921974e-13,
    -7.198551776245908e-13,  2.0356285441470896e-12, 1.4125807436613782e-11,  3.2526035830154884e-11,
    -1.8974958123505413e-11, -5.589743462196584e-10, -3.835380385964237e-09,  -2.6314688468895196e-08,
    -2.512236237870209e-07,  -3.882564808877691e-06, -0.00011058893876262371, -0.009761097491361469,
    0.7785762350182801};

/// The Chebyshev series at y / 2 by Clenshaw's recurrence, without the terms that do not show in y's type.
Val chebyshev(Emitter &e, const Val &y, llvm::ArrayRef<double> coefficients) {
  const double least = y.dtype() == DType::F64 ? 0 : 1e-9;
  while (std::abs(coefficients.front()) < least)
    coefficients = coefficients.drop_front();
  Val sum = e.scalarLike(y, coefficients[0]), before = e.scalarLike(y, 0), last;
  for (double coefficient : coefficients.drop_front()) {
    last = before;
    before = sum;
    sum = e.add(e.sub(e.mul(y, before), last), coefficient);
  }
  return e.mul(e.sub(sum, last), 0.5);
}

/// exp(-x) times the function of x >= 0.
Val scaledBesselI(Emitter &e, const Val &x, const Val &factor, llvm::ArrayRef<double> near,
                  llvm::ArrayRef<double> far) {
  Val y = e.add(e.mul(x, 0.5), -2.0), inverted = e.add(e.div(e.scalarLike(x, 32), x), -2.0);
  Val low = chebyshev(e, y, near), high = e.div(chebyshev(e, inverted, far), sqrtOf(e, x));
  return e.select(e.compare(Compare::le, x, e.scalarLike(x, 8)), factor ? e.mul(low, factor) : low, high);
}

//===--- Of the first kind ----------------------------------------------------------===//

/// Numerators and denominators, the highest power first: of the amplitudes p and q from 5 on, of the quotient below
/// that.
struct BesselTable {
  std::vector<double> pp, pq, qp, qq, rp, rq;
};

const BesselTable &tableJ0() {
  static const BesselTable table{{0.0007969367292973471, 0.08283523921074408, 1.239533716464143, 5.447250030587687,
                                  8.74716500199817, 5.303240382353949, 1.0},
                                 {0.0009244088105588637, 0.08562884743544745, 1.2535274390105895, 5.470977403304171,
                                  8.761908832370695, 5.306052882353947, 1.0},
                                 {-0.011366383889846916, -1.2825271867050931, -19.553954425773597, -93.20601521237683,
                                  -177.68116798048806, -147.07750515495118, -51.41053267665993, -6.050143506007285},
                                 {1, 64.3178256118178, 856.4300259769806, 3882.4018360540163, 7240.467741956525,
                                  5930.727011873169, 2062.0933166032783, 242.0057402402914},
                                 {-4794432209.782018, 1956174919465.5657, -249248344360967.72, 9708622510473064.0},
                                 {1, 499.563147152651, 173785.4016763747, 48440965.83399621, 11185553704.535683,
                                  2112775201154.892, 310518229857422.56, 3.1812195594320496e+16,
                                  1.7108629408104315e+18}};
  return table;
}
const BesselTable &tableJ1() {
  static const BesselTable table{{0.0007621256162081731, 0.07313970569409176, 1.1271960812968493, 5.112079511468076,
                                  8.424045901417724, 5.214515986823615, 1.0},
                                 {0.0005713231280725487, 0.06884559087544954, 1.105142326340617, 5.073863861286015,
                                  8.399855543276042, 5.209828486823619, 1.0},
                                 {0.05108625947501766, 4.982138729512334, 75.82382841325453, 366.7796093601508,
                                  710.8563049989261, 597.4896124006136, 211.68875710057213, 25.207020585802372},
                                 {1, 74.23732770356752, 1056.4488603826283, 4986.410583376536, 9562.318924047562,
                                  7997.041604473507, 2826.1927851763908, 336.0936078106983},
                                 {-899971225.7055594, 452228297998.19403, -72749424522181.83, 3682957328638529.0},
                                 {1, 620.8364781180543, 256987.25675774884, 83514679.14319493, 22151159547.97925,
                                  4749141220799.914, 784369607876235.9, 8.952223361846274e+16, 5.322786203326801e+18}};
  return table;
}

/// From 5 on: waves whose amplitude and phase change slowly.
Val besselWaves(Emitter &e, const Val &x, const BesselTable &t, double phase) {
  Val w = e.div(e.scalarLike(x, 5), x), z = square(e, w), angle = e.add(x, -phase);
  Val p = e.div(polynomial(e, z, t.pp), polynomial(e, z, t.pq));
  Val q = e.div(polynomial(e, z, t.qp), polynomial(e, z, t.qq));
  Val wave = e.sub(e.mul(p, e.emit<CosOp>({angle})), e.mul(e.mul(w, q), e.emit<SinOp>({angle})));
  return e.div(e.mul(wave, std::sqrt(2 / M_PI)), sqrtOf(e, x));
}

/// The quotient below 5, times the factors of two zeros, whose squares these are.
Val besselNearZero(Emitter &e, const Val &x, const BesselTable &t, double first, double second) {
  Val z = square(e, x), quotient = e.div(polynomial(e, z, t.rp), polynomial(e, z, t.rq));
  return e.mul(e.mul(quotient, e.add(z, -first)), e.add(z, -second));
}

} // namespace

Val besselI0(Emitter &e, const Val &x, bool scaled) {
  Val y = absOf(e, x), value = scaledBesselI(e, y, Val(), kI0Near, kI0Far);
  return scaled ? value : e.mul(value, expOf(e, y));
}

Val besselI1(Emitter &e, const Val &x, bool scaled) {
  Val y = absOf(e, x), value = scaledBesselI(e, y, y, kI1Near, kI1Far);
  value = scaled ? value : e.mul(value, expOf(e, y));
  return e.select(e.compare(Compare::lt, x, e.scalarLike(x, 0)), negOf(e, value), value);
}

Val besselJ0(Emitter &e, const Val &x) {
  Val y = absOf(e, x), near = besselNearZero(e, y, tableJ0(), 5.78318596294678452118, 30.4712623436620863991);
  return e.select(e.compare(Compare::le, y, e.scalarLike(x, 5)), near, besselWaves(e, y, tableJ0(), M_PI / 4));
}

Val besselJ1(Emitter &e, const Val &x) {
  Val y = absOf(e, x), near = besselNearZero(e, y, tableJ1(), 14.6819706421238932572, 49.2184563216946036703);
  Val value = e.select(e.compare(Compare::le, y, e.scalarLike(x, 5)), e.mul(near, y),
                       besselWaves(e, y, tableJ1(), 3 * M_PI / 4));
  return e.select(e.compare(Compare::lt, x, e.scalarLike(x, 0)), negOf(e, value), value);
}

} // namespace dmxc::frontend
