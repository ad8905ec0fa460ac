//===- VectorMathCoefficients.h - fitted polynomials ------------*- C++ -*-===//
// Printed by tools/scripts/fit_vector_math.py; do not edit. Lowest degree first; the f32 tables
// hold values that are exact in f32.
//===----------------------------------------------------------------------===//
#pragma once

namespace dmxc::kernels::coefficients {

/// (e^r - 1 - r) / r^2, error relative to e^r - 1,
/// on [-0.346608, 0.346608]; weighted error 2^-26.09.
inline constexpr double expF32[] = {
    0x1.fffffe0000000p-2, 0x1.5554aa0000000p-3, 0x1.55579a0000000p-5, 0x1.122c6a0000000p-7, 0x1.6aba2e0000000p-10,
};

/// (e^r - 1 - r) / r^2, error relative to e^r - 1,
/// on [-0.346608, 0.346608]; weighted error 2^-61.05.
inline constexpr double expF64[] = {
    0x1.0000000000000p-1,  0x1.5555555555559p-3,  0x1.5555555555559p-5,  0x1.111111110f6f5p-7,
    0x1.6c16c16c1619ap-10, 0x1.a01a01af981c4p-13, 0x1.a01a019f5fb9ep-16, 0x1.71ddf94a9972bp-19,
    0x1.27e4fad9a7cf4p-22, 0x1.af5d05896579ep-26, 0x1.1f2e1c560c711p-29,
};

/// (cosh(r) - 1) / z with z = r^2, absolute error,
/// on [0.0, 0.000469286]; weighted error 2^-29.24.
inline constexpr double expTableEvenF32[] = {
    0x1.0002200000000p-1,
};

/// (sinh(r) - r) / r^3 with z = r^2, absolute error,
/// on [0.0, 0.000469286]; weighted error 2^-37.48.
inline constexpr double expTableOddF32[] = {
    0x1.55571e0000000p-3,
};

/// (log(1+f) - f + f^2/2) / f^3, error relative to log(1+f),
/// on [-0.292893, 0.414214]; weighted error 2^-27.16.
inline constexpr double logF32[] = {
    0x1.5555540000000p-2, -0x1.0002280000000p-2, 0x1.99a0380000000p-3, -0x1.5472260000000p-3,
    0x1.22d5900000000p-3, -0x1.0d80c60000000p-3, 0x1.0574e40000000p-3, -0x1.39066a0000000p-4,
};

/// (2 atanh(s) / s - 2) / z with z = s^2, error relative to 2,
/// on [0.0, 0.0294402]; weighted error 2^-59.49.
inline constexpr double logF64[] = {
    0x1.5555555555592p-1, 0x1.999999997ff02p-2, 0x1.24924941e3855p-2, 0x1.c71c5211f1ef8p-3,
    0x1.74663d83d25b8p-3, 0x1.39a1d76bcd27ep-3, 0x1.2f047c56867a7p-3,
};

/// (2 atanh(s) / s - 2 - 2z/3) / z^2 with z = s^2, error relative to 2,
/// on [0.0, 0.0294402]; weighted error 2^-66.29.
inline constexpr double powLogF64[] = {
    0x1.9999999999b30p-2, 0x1.2492492457d5ap-2, 0x1.c71c722d67a0cp-3, 0x1.745ce9e296800p-3,
    0x1.3b1eec3d35401p-3, 0x1.0f7fe3cf9ad77p-3, 0x1.0e42ec53e3644p-3,
};

/// (sin(r) - r) / r^3 with z = r^2, error relative to r,
/// on [0.0, 0.616912]; weighted error 2^-63.26.
inline constexpr double sinF64[] = {
    -0x1.5555555555555p-3,  0x1.1111111111067p-7,  -0x1.a01a019ffdba6p-13, 0x1.71de3a32a9d94p-19,
    -0x1.ae642ad6f8c6dp-26, 0x1.6108b480e448ep-33, -0x1.9f716357e2854p-41,
};

/// (cos(r) - 1 + z/2) / z^2 with z = r^2, absolute error,
/// on [0.0, 0.616912]; weighted error 2^-64.19.
inline constexpr double cosF64[] = {
    0x1.555555555554cp-5,   -0x1.6c16c16c1521ep-10, 0x1.a01a019cbf3a8p-16,
    -0x1.27e4f812920fap-22, 0x1.1ee9f1360f7a3p-29,  -0x1.8fb120a1b0cf3p-37,
};

/// (atan(x) - x) / x^3 with z = x^2, error relative to x,
/// on [0.0, 0.17159]; weighted error 2^-59.47.
inline constexpr double atanF64[] = {
    -0x1.555555555553dp-2, 0x1.9999999995898p-3, -0x1.24924922aef30p-3, 0x1.c71c70e6bdfb1p-4,
    -0x1.745cf8f070266p-4, 0x1.3b111a79d746ep-4, -0x1.10ebc72946091p-4, 0x1.df101799fa00ep-5,
    -0x1.9cd616df2dac0p-5, 0x1.37dd7ca4360d8p-5, -0x1.257a021a8cf95p-6,
};

/// (asin(x) - x) / x^3 with z = x^2, error relative to x,
/// on [0.0, 0.25]; weighted error 2^-55.87.
inline constexpr double asinF64[] = {
    0x1.5555555555387p-3, 0x1.333333336f893p-4, 0x1.6db6db41d30c8p-5,  0x1.f1c72c6da4001p-6,
    0x1.6e89ef7098984p-6, 0x1.1c6c2858f612ep-6, 0x1.c6f870e25b686p-7,  0x1.8ee4ffc610e6fp-7,
    0x1.aab0875ea5d01p-8, 0x1.40b419a519fafp-6, -0x1.0af865d2dc217p-6, 0x1.05cf980229750p-5,
};

/// (tanh(x) - x) / x^3 with z = x^2, error relative to tanh(x),
/// on [0.0, 0.3025]; weighted error 2^-29.72.
inline constexpr double tanhSmallF32[] = {
    -0x1.55554a0000000p-2, 0x1.110cf00000000p-3, -0x1.b91f280000000p-5, 0x1.58edc60000000p-6, -0x1.99688e0000000p-8,
};

/// erf(x) / x - 1 with z = x^2, error relative to erf(x) / x,
/// on [0.0, 1.17079]; weighted error 2^-27.98.
inline constexpr double erfSmallF32[] = {
    0x1.06eba80000000p-3, -0x1.8127360000000p-2,  0x1.ce2b1e0000000p-4,  -0x1.b7d6580000000p-6,
    0x1.52ecbe0000000p-8, -0x1.9bf4e00000000p-11, 0x1.33c88c0000000p-14,
};

/// erf(x) / x - 1 with z = x^2, error relative to erf(x) / x,
/// on [0.0, 1.0]; weighted error 2^-56.33.
inline constexpr double erfSmallF64[] = {
    0x1.06eba8214db69p-3,  -0x1.812746b037a25p-2,  0x1.ce2f21a0458cep-4,  -0x1.b82ce3135473dp-6,
    0x1.565bcd2c4eee8p-8,  -0x1.c02db92e752f7p-11, 0x1.f9a3b8af19a20p-14, -0x1.f4dce30c3c641p-17,
    0x1.ba6845bd37004p-20, -0x1.6389351a38f09p-23, 0x1.12f46afdd2a83p-26, -0x1.c39429be2e1abp-30,
    0x1.39f9a1c8acbafp-33,
};

/// erfc(u + 1.08203125)^(1/8), error that of its 8th power,
/// on [0.0, 2.91797]; weighted error 2^-28.44.
inline constexpr double erfLargeF32[] = {
    0x1.8b2f2e0000000p-1, -0x1.12775c0000000p-2,  -0x1.24dc2a0000000p-5, 0x1.3ed79a0000000p-6,
    0x1.1954c00000000p-9, -0x1.72c6d60000000p-10, 0x1.8e3cc20000000p-14, 0x1.a8cb4a0000000p-17,
};

/// erfc(a) e^(a^2) with t = (a - 3) / (a + 3), error that of erfc(a),
/// on [-0.5, 0.333333]; weighted error 2^-64.93.
inline constexpr double erfLargeF64[] = {
    0x1.6e9827d229d28p-3,   -0x1.4e102b9cf8541p-2,  0x1.f6ff204106ff7p-3,  -0x1.336ffbeed8ad6p-3,
    0x1.258b13b421878p-4,   -0x1.8fa58ea3fdbc6p-6,  0x1.17c8256088d6ap-8,  0x1.7309050b4c3e2p-11,
    -0x1.3932f36afce43p-11, 0x1.716af6145fc0ap-15,  0x1.fefc6f9e9a76dp-15, -0x1.3406bfb7c1524p-16,
    -0x1.dfc99cfb37db9p-17, -0x1.293b4b9ba1ca0p-19,
};

} // namespace dmxc::kernels::coefficients
