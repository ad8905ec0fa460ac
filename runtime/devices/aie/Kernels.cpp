//===- Kernels.cpp - bodies of the cores' library -------------------------===//
//
// Plain loops with the numerics of schemas/aie/NUMERICS.md: products of bf16 are exact in f32, sums go up in k.
//
//===----------------------------------------------------------------------===//
#include "Array.h"

#include "schemas/aie/Border.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>

namespace dmxrt::aie {
namespace {

float numberOf(uint16_t bf16) { return std::bit_cast<float>(uint32_t(bf16) << 16); }
/// Integers wrap.
uint32_t numberOf(uint32_t word) { return word; }
uint32_t numberOf(int8_t byte) { return static_cast<uint32_t>(int32_t(byte)); }
uint32_t numberOf(uint8_t byte) { return byte; }

/// Sums of one result step over all steps along k, which lie one after the other in a and a row of b apart.
template <const hw::MatrixStep &step, typename In, typename Out, typename Right>
void resultStep(const In *a, const Right *b, int64_t depth, int64_t rowOfB, Out *c) {
  Out sums[step.m][step.n];
  std::memcpy(sums, c, sizeof sums);
  for (int64_t at = 0; at < depth; ++at, a += step.m * step.k, b += rowOfB) {
    Out right[step.k * step.n];
    for (int64_t i = 0; i < step.k * step.n; ++i)
      right[i] = numberOf(b[i]);
    for (int64_t k = 0; k < step.k; ++k)
      for (int64_t i = 0; i < step.m; ++i) {
        Out left = numberOf(a[i * step.k + k]);
        for (int64_t j = 0; j < step.n; ++j)
          sums[i][j] += left * right[k * step.n + j];
      }
  }
  std::memcpy(c, sums, sizeof sums);
}

template <const hw::MatrixStep &step, typename In, typename Out, typename Right = In>
void matmul(const hw::Call &call, const std::byte *first, const std::byte *second, std::byte *result) {
  int64_t rows = call.scalars[0] / step.m, depth = call.scalars[1] / step.k, columns = call.scalars[2] / step.n;
  auto *a = reinterpret_cast<const In *>(first);
  auto *b = reinterpret_cast<const Right *>(second);
  auto *c = reinterpret_cast<Out *>(result);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      resultStep<step, In, Out, Right>(a + i * depth * step.m * step.k, b + j * step.k * step.n, depth,
                                       columns * step.k * step.n, c + (i * columns + j) * step.m * step.n);
}

template <const hw::MatrixStep &step, typename T>
void bias(const hw::Call &call, const std::byte *steps, std::byte *result) {
  int64_t rows = call.scalars[0] / step.m, columns = call.scalars[1] / step.n;
  auto *c = reinterpret_cast<T *>(result);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      T add[step.n];
      std::memcpy(add, steps + j * hw::kBiasStepBytes, sizeof add);
      for (int64_t row = 0; row < step.m; ++row)
        for (int64_t column = 0; column < step.n; ++column)
          *c++ += add[column];
    }
}

/// r lies as an operand of bf16 of 2 m x n does, whose rows 2 i and 2 i + 1 are the bytes of row i.
void residual(const hw::Call &call, const std::byte *r, std::byte *result) {
  constexpr hw::MatrixStep of = hw::kStepBf16;
  int64_t rows = call.scalars[0], columns = call.scalars[1];
  auto *c = reinterpret_cast<float *>(result);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      int64_t row = 2 * i + 2 * j / columns, column = 2 * j % columns; // of bf16
      int64_t step = row / of.k * (columns / of.n) + column / of.n;
      int64_t at = (step * of.k + row % of.k) * of.n + column % of.n;
      float number = 0;
      std::memcpy(&number, r + 2 * at, sizeof number);
      c[((i / of.m * (columns / of.n) + j / of.n) * of.m + i % of.m) * of.n + j % of.n] += number;
    }
}

/// max(x, 0); a NaN stays one.
template <typename T> void relu(const hw::Call &call, std::byte *result) {
  auto *c = reinterpret_cast<T *>(result);
  for (int64_t i = 0; i < call.scalars[0]; ++i)
    c[i] = c[i] < T(0) ? T(0) : c[i];
}

/// The nearest bf16 of each.
void round(const hw::Call &call, std::byte *result) {
  auto *c = reinterpret_cast<float *>(result);
  for (int64_t i = 0; i < call.scalars[0]; ++i)
    c[i] = numberOf(hw::toBf16(std::bit_cast<uint32_t>(c[i])));
}

/// A NaN stays one.
float clipped(float x, float low, float high) { return x < low ? low : x > high ? high : x; }

/// In f64, rounded once. `r`: of what is added.
float stepped(float x, const hw::Step &step, float r) {
  auto wide = static_cast<double>(x);
  switch (step.kind) {
  case hw::StepKind::Relu:
    return x < 0 ? 0 : x;
  case hw::StepKind::Add:
    return x + step.a;
  case hw::StepKind::Multiply:
    return x * step.a;
  case hw::StepKind::Divide:
    return x / step.a;
  case hw::StepKind::Clip:
    return clipped(x, step.a, step.b);
  case hw::StepKind::Sigmoid:
    return static_cast<float>(1 / (1 + std::exp(-wide)));
  case hw::StepKind::Silu:
    return static_cast<float>(wide / (1 + std::exp(-wide)));
  case hw::StepKind::Tanh:
    return static_cast<float>(std::tanh(wide));
  case hw::StepKind::Gelu:
    return static_cast<float>(wide * std::erfc(-wide * std::numbers::sqrt2 / 2) / 2);
  case hw::StepKind::GeluTanh: {
    double slope = std::sqrt(2 * std::numbers::inv_pi); // of x (1 + tanh(y)) / 2 = x / (1 + exp(-2 y))
    return static_cast<float>(wide / (1 + std::exp(-2 * slope * (wide + 0.044715 * wide * wide * wide))));
  }
  case hw::StepKind::RoundBf16:
    return numberOf(hw::toBf16(std::bit_cast<uint32_t>(x)));
  case hw::StepKind::Round:
    return std::nearbyint(x);
  case hw::StepKind::QuantiseI8:
    return clipped(std::nearbyint(x / step.b) + step.a, -128, 127);
  case hw::StepKind::QuantiseUi8:
    return clipped(std::nearbyint(x / step.b) + step.a, 0, 255);
  case hw::StepKind::Dequantise:
    return (x - step.a) * step.b;
  case hw::StepKind::AddBytes:
    return x + (r - step.a) * step.b;
  case hw::StepKind::None:
  case hw::StepKind::Count:
    break;
  }
  return x;
}

using Steps = std::array<hw::Step, hw::kMostSteps>;
Steps stepsOf(const std::byte *parameters) {
  Steps steps;
  std::memcpy(steps.data(), parameters + 4 * hw::kFirstStepWord, sizeof steps);
  return steps;
}
float stepped(float x, const Steps &steps, float r = 0) {
  for (const hw::Step &step : steps)
    if (step.kind != hw::StepKind::None)
      x = stepped(x, step, r);
  return x;
}

void steps(const hw::Call &call, const std::byte *parameters, std::byte *result) {
  auto *c = reinterpret_cast<float *>(result);
  Steps all = stepsOf(parameters);
  for (int64_t i = 0; i < call.scalars[0]; ++i)
    c[i] = stepped(c[i], all);
}

void toFloats(const hw::Call &call, std::byte *result) {
  for (int64_t i = 0; i < call.scalars[0]; ++i, result += 4) {
    int32_t sum = 0;
    std::memcpy(&sum, result, sizeof sum);
    auto number = static_cast<float>(sum);
    std::memcpy(result, &number, sizeof number);
  }
}

/// Sums of bytes become f32, each rounded once, times the factor of their column, which lies as a bias does.
void scale(const hw::Call &call, const std::byte *scales, std::byte *result) {
  constexpr hw::MatrixStep of = hw::kStepI8;
  hw::Call all = call;
  all.scalars[0] = call.scalars[0] * call.scalars[1];
  toFloats(all, result);
  auto *c = reinterpret_cast<float *>(result);
  int64_t columns = call.scalars[1] / of.n;
  for (int64_t step = 0; step < call.scalars[0] / of.m * columns; ++step) {
    float factors[of.n];
    std::memcpy(factors, scales + step % columns * hw::kBiasStepBytes, sizeof factors);
    for (int64_t i = 0; i < of.m * of.n; ++i)
      *c++ *= factors[i % of.n];
  }
}

float narrowed(float x, float) { return x; }
uint16_t narrowed(float x, uint16_t) { return dmx::aie::toBf16(std::bit_cast<uint32_t>(x)); }
/// An integer that a byte holds, with a sign or without; of a NaN 0.
uint8_t narrowed(float x, uint8_t) {
  return std::isnan(x) ? 0 : static_cast<uint8_t>(static_cast<int64_t>(clipped(x, -128, 255)));
}

template <typename T>
void narrow(const hw::Call &call, const std::byte *parameters, const std::byte *sums, std::byte *result) {
  auto *c = reinterpret_cast<const float *>(sums);
  auto *y = reinterpret_cast<T *>(result);
  Steps all = stepsOf(parameters);
  for (int64_t i = 0; i < call.scalars[0]; ++i)
    y[i] = narrowed(stepped(c[i], all), T());
}

/// r lies as an operand b of bytes does.
void addNarrow(const hw::Call &call, std::byte *const *touched) {
  constexpr hw::MatrixStep of = hw::kStepI8;
  int64_t rows = call.scalars[0], columns = call.scalars[1];
  auto *c = reinterpret_cast<const float *>(touched[2]);
  auto *y = reinterpret_cast<uint8_t *>(touched[3]);
  Steps all = stepsOf(touched[0]);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      int64_t right = ((i / of.k * (columns / of.n) + j / of.n) * of.k + i % of.k) * of.n + j % of.n;
      int64_t sum = ((i / of.m * (columns / of.n) + j / of.n) * of.m + i % of.m) * of.n + j % of.n;
      auto r = static_cast<float>(touched[1][right]);
      y[sum] = narrowed(stepped(c[sum], all, r), uint8_t());
    }
}

} // namespace

void compute(const hw::Call &call, std::byte *const *touched) {
  switch (call.kernel) {
  case hw::KernelId::ZeroF32:
  case hw::KernelId::ZeroI32:
    std::memset(touched[0], 0, static_cast<size_t>(4 * call.scalars[0]));
    return;
  case hw::KernelId::MatmulBf16F32:
    return matmul<hw::kStepBf16, uint16_t, float>(call, touched[0], touched[1], touched[2]);
  case hw::KernelId::MatmulI32:
    return matmul<hw::kStepI32, uint32_t, uint32_t>(call, touched[0], touched[1], touched[2]);
  case hw::KernelId::MatmulI8I32:
    return matmul<hw::kStepI8, int8_t, uint32_t>(call, touched[0], touched[1], touched[2]);
  case hw::KernelId::MatmulUi8I32:
    return matmul<hw::kStepI8, uint8_t, uint32_t, int8_t>(call, touched[0], touched[1], touched[2]);
  case hw::KernelId::BiasF32:
    return bias<hw::kStepBf16, float>(call, touched[0], touched[1]);
  case hw::KernelId::BiasI32:
    return bias<hw::kStepI32, uint32_t>(call, touched[0], touched[1]);
  case hw::KernelId::BiasI8I32:
    return bias<hw::kStepI8, uint32_t>(call, touched[0], touched[1]);
  case hw::KernelId::ReluF32:
    return relu<float>(call, touched[0]);
  case hw::KernelId::ReluI32:
    return relu<int32_t>(call, touched[0]);
  case hw::KernelId::StepsF32:
    return steps(call, touched[0], touched[1]);
  case hw::KernelId::ResidualF32:
    return residual(call, touched[0], touched[1]);
  case hw::KernelId::RoundBf16:
    return round(call, touched[0]);
  case hw::KernelId::FloatI32:
    return toFloats(call, touched[0]);
  case hw::KernelId::ScaleI32:
    return scale(call, touched[0], touched[1]);
  case hw::KernelId::NarrowF32:
    return narrow<float>(call, touched[0], touched[1], touched[2]);
  case hw::KernelId::NarrowBf16:
    return narrow<uint16_t>(call, touched[0], touched[1], touched[2]);
  case hw::KernelId::NarrowI8:
    return narrow<uint8_t>(call, touched[0], touched[1], touched[2]);
  case hw::KernelId::AddNarrowI8:
    return addNarrow(call, touched);
  default:
    return computeRows(call, touched);
  }
}

} // namespace dmxrt::aie
