//===- ErrorFunctions.cpp - the error function's relatives ----------------===//
//
// The coefficients are those of the Cephes Mathematical Library (S. Moshier): ndtr.c, ndtri.c; the highest power first.
//
//===----------------------------------------------------------------------===//
#include "SpecialFunctions.h"

#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::frontend {

namespace {

Val quotient(Emitter &e, const Val &x, llvm::ArrayRef<double> above, llvm::ArrayRef<double> below) {
  return e.div(polynomial(e, x, above), polynomial(e, x, below));
}

/// exp(x * x) * erfc(x) for x >= 1.
Val scaledErfcFromOne(Emitter &e, const Val &x) {
  Val z = reciprocal(e, x);
  Val near = quotient(e, x,
                      {2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687,
                       4.86371970985681366614e1, 1.96520832956077098242e2, 5.26445194995477358631e2,
                       9.34528527171957607540e2, 1.02755188689515710272e3, 5.57535335369399327526e2},
                      {1.0, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2,
                       9.75708501743205489753e2, 1.82390916687909736289e3, 2.24633760818710981792e3,
                       1.65666309194161350182e3, 5.57535340817727675546e2});
  // In powers of 1 / x, which do not overflow.
  Val far = quotient(e, z,
                     {2.97886665372100240670, 7.40974269950448939160, 6.16021097993053585195, 5.01905042251180477414,
                      1.27536670759978104416, 5.64189583547755073984e-1},
                     {3.36907645100081516050, 9.60896809063285878198, 1.70814450747565897222e1,
                      1.20489539808096656605e1, 9.39603524938001434673, 2.26052863220117276590, 1.0});
  return e.select(e.compare(Compare::lt, x, e.scalarLike(x, 8)), near, e.mul(far, z));
}

Val complement(Emitter &e, const Val &x) { return e.sub(e.scalarLike(x, 1), e.emit<ErfOp>({x})); }

Val belowOne(Emitter &e, const Val &x) { return e.compare(Compare::lt, x, e.scalarLike(x, 1)); }

} // namespace

Val erfcOf(Emitter &e, const Val &x) {
  Val tail = e.mul(expOf(e, negOf(e, square(e, x))), scaledErfcFromOne(e, x));
  return e.select(belowOne(e, x), complement(e, x), tail);
}

Val scaledErfc(Emitter &e, const Val &x) {
  return e.select(belowOne(e, x), e.mul(expOf(e, square(e, x)), complement(e, x)), scaledErfcFromOne(e, x));
}

Val logNormalCdf(Emitter &e, const Val &x) {
  Val t = e.mul(x, -std::sqrt(0.5)); // the function is erfc(t) / 2
  Val far = e.sub(logOf(e, e.mul(scaledErfc(e, t), 0.5)), e.mul(square(e, x), 0.5));
  Val near = e.emit<Log1pOp>({e.mul(erfcOf(e, negOf(e, t)), -0.5)});
  return e.select(e.compare(Compare::lt, x, e.scalarLike(x, -1)), far, near);
}

Val normalQuantile(Emitter &e, const Val &p) {
  auto at = [&](double number) { return e.scalarLike(p, number); };
  Val upper = e.compare(Compare::gt, p, at(1 - std::exp(-2.0))), y = e.select(upper, e.sub(at(1), p), p);
  Val d = e.add(y, -0.5), d2 = square(e, d);
  Val fraction = quotient(
      e, d2, {-59.96335010141079, 98.00107541859997, -56.67628574690703, 13.931260938727968, -1.2391658386738125},
      {1.0, 1.9544885833814176, 4.676279128988815, 86.36024213908905, -225.46268785411937, 200.26021238006066,
       -82.03722561683334, 15.90562251262117, -1.1833162112133});
  Val middle = e.mul(e.add(d, e.mul(e.mul(d, d2), fraction)), std::sqrt(2 * M_PI));
  Val x = sqrtOf(e, e.mul(logOf(e, y), -2.0)), z = reciprocal(e, x);
  Val near = quotient(e, z,
                      {4.0554489230596245, 31.525109459989388, 57.16281922464213, 44.08050738932008, 14.684956192885803,
                       2.1866330685079025, -0.1402560791713545, -0.03504246268278482, -0.0008574567851546854},
                      {1.0, 15.779988325646675, 45.39076351288792, 41.3172038254672, 15.04253856929075,
                       2.504649462083094, -0.14218292285478779, -0.03808064076915783, -0.0009332594808954574});
  Val far =
      quotient(e, z,
               {3.2377489177694603, 6.915228890689842, 3.9388102529247444, 1.3330346081580755, 0.20148538954917908,
                0.012371663481782003, 0.00030158155350823543, 2.6580697468673755e-06, 6.239745391849833e-09},
               {1.0, 6.02427039364742, 3.6798356385616087, 1.3770209948908132, 0.21623699359449663,
                0.013420400608854318, 0.00032801446468212774, 2.8924786474538068e-06, 6.790194080099813e-09});
  Val correction = e.mul(z, e.select(e.compare(Compare::lt, x, at(8)), near, far));
  Val tail = e.sub(e.sub(x, e.mul(logOf(e, x), z)), correction);
  Val result = e.select(upper, tail, negOf(e, tail));
  result = e.select(e.compare(Compare::gt, y, at(std::exp(-2.0))), middle, result);
  result = e.select(e.compare(Compare::eq, p, at(0)), at(-INFINITY), result);
  return e.select(e.compare(Compare::eq, p, at(1)), at(INFINITY), result);
}

} // namespace dmxc::frontend
