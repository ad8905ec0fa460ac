#!/usr/bin/env python3
"""Fits every polynomial of targets/common/math/VectorMath*.cpp and prints VectorMathCoefficients.h.

Method: Remez exchange on a fine Chebyshev grid at 60 digits (mpmath). Coefficients are rounded to
the working precision one at a time, lowest degree first, and the rest are fitted again after each
rounding, so that rounding a low coefficient is paid for by the higher ones. Each table is preceded
by the weighted error that was reached, in bits. Run: fit_vector_math.py > VectorMathCoefficients.h
Needs python3-mpmath. The output is deterministic.
"""
import struct
import sys

from mpmath import mp, mpf

mp.dps = 60


def to_f32(v):
    return mpf(struct.unpack("f", struct.pack("f", float(v)))[0])


def to_f64(v):
    return mpf(float(v))


def grid(lo, hi, count):
    """Chebyshev points: dense at the ends, where the error of a minimax fit peaks."""
    return [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * i / (count - 1)) for i in range(count)]


def solve(points, values, weights, degrees):
    """Coefficients and levelled error e: sum c_k x^k + (-1)^i e / w = f on the reference points."""
    n = len(degrees) + 1
    a = mp.matrix(n, n)
    b = mp.matrix(n, 1)
    for i in range(n):
        for j, d in enumerate(degrees):
            a[i, j] = points[i] ** d
        a[i, n - 1] = (-1) ** i / weights[i]
        b[i] = values[i]
    x = mp.lu_solve(a, b)
    return [x[i] for i in range(n - 1)], abs(x[n - 1])


def extrema(errors, count):
    """Indices of `count` alternating extrema of the error, the largest ones."""
    runs = []
    for i, e in enumerate(errors):
        if e == 0:
            continue
        if runs and (errors[runs[-1]] > 0) == (e > 0):
            if abs(e) > abs(errors[runs[-1]]):
                runs[-1] = i
        else:
            runs.append(i)
    while len(runs) > count:
        if len(runs) == count + 1 or abs(errors[runs[0]]) < abs(errors[runs[-1]]):
            runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
        else:
            runs.pop(-1)
    return runs


def remez(xs, fs, ws, degrees):
    n = len(degrees) + 1
    ref = [round((len(xs) - 1) * i / (n - 1)) for i in range(n)]
    best = None
    for _ in range(40):
        coeffs, level = solve([xs[i] for i in ref], [fs[i] for i in ref], [ws[i] for i in ref], degrees)
        errors = [(sum(c * x ** d for c, d in zip(coeffs, degrees)) - f) * w for x, f, w in zip(xs, fs, ws)]
        worst = max(abs(e) for e in errors)
        if best is None or worst < best[1]:
            best = (coeffs, worst)
        if level > 0 and worst / level < mpf("1.001"):
            break
        picked = extrema(errors, n)
        if len(picked) < n:
            break
        ref = picked
    return best


def fit(f, weight, lo, hi, terms, rounding):
    """Rounded coefficients of degree 0..terms-1 and the final worst weighted error."""
    xs = grid(mpf(lo), mpf(hi), 24 * terms + 1)
    fs = [f(x) for x in xs]
    ws = [weight(x) for x in xs]
    # A weight of zero (a removable singularity) would make the system singular.
    keep = [i for i, w in enumerate(ws) if w > mpf(10) ** -40]
    xs, fs, ws = ([a[i] for i in keep] for a in (xs, fs, ws))
    rest, fixed = list(fs), []
    for k in range(terms):
        coeffs, _ = remez(xs, rest, ws, list(range(k, terms)))
        c = rounding(coeffs[0])
        fixed.append(c)
        rest = [r - c * x ** k for r, x in zip(rest, xs)]
    return fixed, max(abs(r * w) for r, w in zip(rest, ws))


def emit(name, comment, f, weight, lo, hi, terms, rounding):
    coeffs, worst = fit(f, weight, lo, hi, terms, rounding)
    print(f"/// {comment}\n/// on [{mp.nstr(mpf(lo), 6)}, {mp.nstr(mpf(hi), 6)}]; weighted error 2^{mp.nstr(mp.log(worst, 2), 4)}.")
    print(f"inline constexpr double {name}[] = {{")
    for c in coeffs:
        print(f"    {float(c).hex()},")
    print("};\n")
    sys.stdout.flush()


def series(x, exact, taylor):
    """`exact` away from zero, the Taylor expression near it (60 digits absorb the cancellation above 1e-6)."""
    return taylor if abs(x) < mpf(10) ** -12 else exact


def fit_exp():
    h = mp.log(2) / 2 * mpf("1.0001")
    f = lambda r: series(r, (mp.expm1(r) - r) / r ** 2 if r else 0, mpf(1) / 2 + r / 6)
    w = lambda r: abs(r ** 2 / mp.expm1(r)) if r else mpf(0)
    emit("expF32", "(e^r - 1 - r) / r^2, error relative to e^r - 1,", f, w, -h, h, 5, to_f32)
    emit("expF64", "(e^r - 1 - r) / r^2, error relative to e^r - 1,", f, w, -h, h, 11, to_f64)


def fit_exp_table():
    # Even and odd terms apart: about a centre no number of points alternates between both.
    z1 = (mp.log(2) / 32 * mpf("1.0001")) ** 2
    even = lambda z: series(z, (mp.cosh(mp.sqrt(z)) - 1) / z if z else 0, mpf(1) / 2 + z / 24)
    odd = lambda z: series(z, (mp.sinh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z if z else 0, mpf(1) / 6 + z / 120)
    emit("expTableEvenF32", "(cosh(r) - 1) / z with z = r^2, absolute error,", even, lambda z: z, 0, z1, 1, to_f32)
    emit("expTableOddF32", "(sinh(r) - r) / r^3 with z = r^2, absolute error,", odd, lambda z: z ** 1.5, 0, z1, 1, to_f32)


def fit_log():
    lo, hi = mp.sqrt(mpf(1) / 2) - 1, mp.sqrt(2) - 1
    f = lambda t: series(t, (mp.log1p(t) - t + t * t / 2) / t ** 3 if t else 0, mpf(1) / 3 - t / 4)
    w = lambda t: abs(t ** 3 / mp.log1p(t)) if t else mpf(0)
    emit("logF32", "(log(1+f) - f + f^2/2) / f^3, error relative to log(1+f),", f, w, lo, hi, 8, to_f32)
    z1 = (hi / (2 + hi)) ** 2 * mpf("1.0001")
    at = lambda z: 2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z)
    emit("logF64", "(2 atanh(s) / s - 2) / z with z = s^2, error relative to 2,",
         lambda z: series(z, (at(z) - 2) / z if z else 0, mpf(2) / 3 + z * 2 / 5), lambda z: z / 2, 0, z1, 7, to_f64)
    emit("powLogF64", "(2 atanh(s) / s - 2 - 2z/3) / z^2 with z = s^2, error relative to 2,",
         lambda z: series(z, (at(z) - 2 - z * 2 / 3) / z ** 2 if z else 0, mpf(2) / 5 + z * 2 / 7),
         lambda z: z ** 2 / 2, 0, z1, 7, to_f64)


def fit_trig():
    z1 = (mp.pi / 4) ** 2 * mpf("1.0001")
    emit("sinF64", "(sin(r) - r) / r^3 with z = r^2, error relative to r,",
         lambda z: series(z, (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z if z else 0, -mpf(1) / 6 + z / 120),
         lambda z: z, 0, z1, 7, to_f64)
    emit("cosF64", "(cos(r) - 1 + z/2) / z^2 with z = r^2, absolute error,",
         lambda z: series(z, (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z ** 2 if z else 0, mpf(1) / 24 - z / 720),
         lambda z: z ** 2, 0, z1, 6, to_f64)
    z1 = mp.tan(mp.pi / 8) ** 2 * mpf("1.0001")
    emit("atanF64", "(atan(x) - x) / x^3 with z = x^2, error relative to x,",
         lambda z: series(z, (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z if z else 0, -mpf(1) / 3 + z / 5),
         lambda z: z, 0, z1, 11, to_f64)
    emit("asinF64", "(asin(x) - x) / x^3 with z = x^2, error relative to x,",
         lambda z: series(z, (mp.asin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z if z else 0, mpf(1) / 6 + z * 3 / 40),
         lambda z: z, 0, "0.25", 12, to_f64)


def fit_tanh():
    small = lambda z: series(z, (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z if z else 0, -mpf(1) / 3 + z * 2 / 15)
    emit("tanhSmallF32", "(tanh(x) - x) / x^3 with z = x^2, error relative to tanh(x),", small,
         lambda z: z / (1 + z * small(z)), 0, mpf("0.55") ** 2, 5, to_f32)


def fit_erf():
    small = lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1 if z > mpf(10) ** -30 else 2 / mp.sqrt(mp.pi) - 1
    rel = lambda z: 1 / (small(z) + 1)
    # Of the multiples of 1/1024 near 1 the one where the 8th root of erfc is closest to a float:
    # there the polynomial starts almost without error, where erfc weighs most in erf.
    split = mpf("1.08203125")
    emit("erfSmallF32", "erf(x) / x - 1 with z = x^2, error relative to erf(x) / x,", small, rel, 0, split ** 2, 7, to_f32)
    emit("erfSmallF64", "erf(x) / x - 1 with z = x^2, error relative to erf(x) / x,", small, rel, 0, 1, 13, to_f64)
    root = lambda u: mp.erfc(u + split) ** (mpf(1) / 8)
    emit("erfLargeF32", "erfc(u + 1.08203125)^(1/8), error that of its 8th power,", root,
         lambda u: 8 * root(u) ** 7, 0, 4 - split, 8, to_f32)
    at = lambda t: 3 * (1 + t) / (1 - t)
    emit("erfLargeF64", "erfc(a) e^(a^2) with t = (a - 3) / (a + 3), error that of erfc(a),",
         lambda t: mp.erfc(at(t)) * mp.exp(at(t) ** 2), lambda t: mp.exp(-at(t) ** 2),
         "-0.5", mpf(1) / 3, 14, to_f64)


if __name__ == "__main__":
    print("//===- VectorMathCoefficients.h - fitted polynomials ------------*- C++ -*-===//")
    print("// Printed by tools/scripts/fit_vector_math.py; do not edit. Lowest degree first; the f32 tables")
    print("// hold values that are exact in f32.")
    print("//===----------------------------------------------------------------------===//")
    print("#pragma once\n\nnamespace dmxc::kernels::coefficients {\n")
    fit_exp()
    fit_exp_table()
    fit_log()
    fit_trig()
    fit_tanh()
    fit_erf()
    print("} // namespace dmxc::kernels::coefficients")
