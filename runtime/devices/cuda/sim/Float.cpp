//===- Float.cpp - floating point ---------------------------------------------===//
//
// Rounded to nearest, subnormals kept, as the kernels ask for it; other forms are not known. A NaN that f32 arithmetic
// gives is the hardware's one.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include "Half.h"
#include "Lanes.h"

#include <cmath>

namespace dmxrt::cuda {
namespace {

float canonical(float x) { return x == x ? x : fromBits<float>(0x7fffffff); }
double canonical(double x) { return x; }

struct Add {
  template <typename T> static T of(T a, T b) { return canonical(a + b); }
};
struct Sub {
  template <typename T> static T of(T a, T b) { return canonical(a - b); }
};
struct Mul {
  template <typename T> static T of(T a, T b) { return canonical(a * b); }
};
struct Div {
  template <typename T> static T of(T a, T b) { return canonical(a / b); }
};
struct Rcp {
  template <typename T> static T of(T a) { return canonical(T(1) / a); }
};
struct Sqrt {
  template <typename T> static T of(T a) { return canonical(std::sqrt(a)); }
};
struct Fma {
  template <typename T> static T of(T a, T b, T c) { return canonical(std::fma(a, b, c)); }
};
struct Neg {
  template <typename T> static T of(T a) { return -a; }
};
struct Abs {
  template <typename T> static T of(T a) { return std::fabs(a); }
};
struct CopySign { ///< the sign of the first
  template <typename T> static T of(T a, T b) { return std::copysign(b, a); }
};
/// Of a number and a NaN the number; +0 above -0.
template <bool Max> struct Extreme {
  template <typename T> static T of(T a, T b) {
    if (a != a)
      return canonical(b);
    if (b != b)
      return a;
    if (a == b)
      return std::signbit(a) == Max ? b : a;
    return (a < b) == Max ? b : a;
  }
};
template <bool Max> struct ExtremeNan {
  template <typename T> static T of(T a, T b) { return a != a || b != b ? canonical(a + b) : Extreme<Max>::of(a, b); }
};

/// Of f16: sums and products of two are exact in f64, so they are rounded once.
template <typename F> struct OfHalves {
  static uint16_t of(uint16_t a) { return roundToHalf(F::of(widenHalf(a))); }
  static uint16_t of(uint16_t a, uint16_t b) { return roundToHalf(F::of(widenHalf(a), widenHalf(b))); }
};

template <typename F, bool Halves = true> Step pick1(PtxType t) {
  if constexpr (Halves)
    if (t.bits == 16)
      return step1<OfHalves<F>, uint16_t>;
  return t.bits == 32 ? Step(step1<F, float>) : t.bits == 64 ? Step(step1<F, double>) : nullptr;
}
template <typename F, bool Halves = true> Step pick2(PtxType t) {
  if constexpr (Halves)
    if (t.bits == 16)
      return step2<OfHalves<F>, uint16_t>;
  return t.bits == 32 ? Step(step2<F, float>) : t.bits == 64 ? Step(step2<F, double>) : nullptr;
}

#if defined(__x86_64__) && defined(__clang__)
/// With the instruction, where the processor has it: a call a lane is most of a product's time.
__attribute__((target("avx2,fma"))) bool fusedF32(Warp &w, const Op &op) {
  auto &to = w.slots[op.result[0]], &a = w.slots[op.source[0]], &b = w.slots[op.source[1]], &c = w.slots[op.source[2]];
  auto one = [&](uint32_t i) __attribute__((target("avx2,fma"))) {
    to[i] = toBits(canonical(__builtin_fmaf(fromBits<float>(a[i]), fromBits<float>(b[i]), fromBits<float>(c[i]))));
  };
  if (w.active == kAllLanes)
    for (uint32_t i = 0; i < kLanes; ++i)
      one(i);
  else
    for (uint32_t left = w.active; left; left &= left - 1)
      one(static_cast<uint32_t>(std::countr_zero(left)));
  return wrote(w, op.result[0]);
}
Step fmaStep(PtxType t) {
  static const bool has = __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2");
  return t.bits == 64   ? Step(step3<Fma, double>)
         : t.bits != 32 ? nullptr
         : has          ? Step(fusedF32)
                        : Step(step3<Fma, float>);
}
#else
Step fmaStep(PtxType t) {
  return t.bits == 64 ? Step(step3<Fma, double>) : t.bits == 32 ? Step(step3<Fma, float>) : nullptr;
}
#endif

/// The step of a root, and its number of operands; .rn is asked for where there is a rounding.
Step pick(Decoder &d, std::string_view root, PtxType &t, size_t &count) {
  bool rounds = root == "add" || root == "sub" || root == "mul" || root == "div" || root == "rcp" || root == "sqrt" ||
                root == "fma";
  if (rounds && !d.take("rn"))
    return nullptr;
  bool nan = (root == "min" || root == "max") && d.take("NaN");
  t = d.takeType();
  if (t.kind != 'f')
    return nullptr;
  count = root == "fma" ? 3 : root == "rcp" || root == "sqrt" || root == "neg" || root == "abs" ? 1 : 2;
  return root == "add"        ? pick2<Add>(t)
         : root == "sub"      ? pick2<Sub>(t)
         : root == "mul"      ? pick2<Mul>(t)
         : root == "div"      ? pick2<Div, false>(t)
         : root == "rcp"      ? pick1<Rcp, false>(t)
         : root == "sqrt"     ? pick1<Sqrt, false>(t)
         : root == "fma"      ? fmaStep(t)
         : root == "neg"      ? pick1<Neg>(t)
         : root == "abs"      ? pick1<Abs>(t)
         : root == "copysign" ? pick2<CopySign, false>(t)
         : root == "min"      ? (nan ? pick2<ExtremeNan<false>>(t) : pick2<Extreme<false>>(t))
         : root == "max"      ? (nan ? pick2<ExtremeNan<true>>(t) : pick2<Extreme<true>>(t))
                              : nullptr;
}

} // namespace

bool decodeFloat(Decoder &d, std::string_view root, Op &op) {
  PtxType t;
  size_t count = 0;
  op.step = pick(d, root, t, count);
  if (!op.step || !d.hasOperands(count + 1) || !d.result(op, 0, t))
    return false;
  for (size_t i = 1; i <= count; ++i)
    if (!d.source(op, i, t))
      return false;
  return true;
}

} // namespace dmxrt::cuda
