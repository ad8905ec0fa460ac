//===- RowKernels.cpp - bodies of the kernels of rows ---------------------===//
//
// Every operation is one of f32, rounded once, in the order of schemas/aie/NUMERICS.md.
//
//===----------------------------------------------------------------------===//
#include "Array.h"

#include "schemas/aie/RowKernels.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace dmxrt::aie {
namespace {

using Lanes = std::array<float, hw::kRowLanes>;

float joined(Lanes lanes) {
  for (size_t half = lanes.size() / 2; half > 0; half /= 2)
    for (size_t i = 0; i < half; ++i)
      lanes[i] += lanes[i + half];
  return lanes[0];
}

/// The sum of what `term` makes of each number.
template <typename Term> float sumOf(const float *row, int64_t columns, Term term) {
  Lanes lanes = {};
  for (int64_t j = 0; j < columns; ++j)
    lanes[static_cast<size_t>(j % hw::kRowLanes)] += term(row[j]);
  return joined(lanes);
}

float expOf(float x) {
  if (!(x >= hw::kLeastExponent))
    return std::isnan(x) ? x : 0;
  float n = std::nearbyint(x * hw::kLog2E), r = x - n * hw::kLn2High;
  r = r - n * hw::kLn2Low;
  float factorial = 1, sum = 0;
  for (int64_t term = 2; term <= hw::kExpTerms; ++term)
    factorial *= static_cast<float>(term);
  sum = 1 / factorial;
  for (int64_t term = hw::kExpTerms; term > 0; --term) {
    factorial /= static_cast<float>(term);
    sum = sum * r + 1 / factorial;
  }
  return sum * std::bit_cast<float>(static_cast<uint32_t>(static_cast<int32_t>(n) + 127) << 23);
}

void softmax(float *row, int64_t columns) {
  float most = row[0];
  for (int64_t j = 1; j < columns; ++j)
    most = row[j] > most ? row[j] : most;
  for (int64_t j = 0; j < columns; ++j)
    row[j] = expOf(row[j] - most);
  float inverse = 1 / sumOf(row, columns, [](float x) { return x; });
  for (int64_t j = 0; j < columns; ++j)
    row[j] *= inverse;
}

void normalize(float *row, int64_t columns, float epsilon, bool centred) {
  auto count = static_cast<float>(columns);
  float mean = centred ? sumOf(row, columns, [](float x) { return x; }) / count : 0;
  float squares = sumOf(row, columns, [&](float x) { return (x - mean) * (x - mean); });
  float inverse = 1 / std::sqrt(squares / count + epsilon);
  for (int64_t j = 0; j < columns; ++j)
    row[j] = (row[j] - mean) * inverse;
}

/// c = what `join` makes of it and x, a number each or the same row for all.
template <typename Join> void combine(const float *x, int64_t rows, int64_t columns, bool isRow, float *c, Join join) {
  for (int64_t i = 0; i < rows; ++i, c += columns, x += isRow ? 0 : columns)
    for (int64_t j = 0; j < columns; ++j)
      c[j] = join(c[j], x[j]);
}

} // namespace

void computeRows(const hw::Call &call, std::byte *const *touched) {
  using Id = hw::KernelId;
  bool isRow = hw::takesMatrix(call.kernel);
  int64_t rows = isRow ? call.scalars[0] : 1, columns = call.scalars[isRow];
  auto *c = reinterpret_cast<float *>(touched[1]);
  auto *x = reinterpret_cast<const float *>(touched[0]);
  auto join = [&](auto what) { combine(x, rows, columns, isRow, c, what); };
  auto each = [&](auto what) {
    uint32_t words[2] = {};
    std::memcpy(words, touched[0], sizeof words);
    auto count = std::min<int64_t>(words[hw::kColumnsWord], columns); // a text's parameter may be anything
    for (int64_t i = 0; i < rows && count > 0; ++i)
      what(c + i * columns, count, std::bit_cast<float>(words[hw::kEpsilonWord]));
  };
  switch (call.kernel) {
  case Id::CopyF32:
    return join([](float, float from) { return from; });
  case Id::AddF32:
  case Id::AddRowF32:
    return join([](float one, float other) { return one + other; });
  case Id::SubtractF32:
  case Id::SubtractRowF32:
    return join([](float one, float other) { return one - other; });
  case Id::SubtractFromF32:
  case Id::SubtractFromRowF32:
    return join([](float one, float other) { return other - one; });
  case Id::MultiplyF32:
  case Id::MultiplyRowF32:
    return join([](float one, float other) { return one * other; });
  case Id::DivideF32:
  case Id::DivideRowF32:
    return join([](float one, float other) { return one / other; });
  case Id::DivideIntoF32:
  case Id::DivideIntoRowF32:
    return join([](float one, float other) { return other / one; });
  case Id::SoftmaxF32:
    return each([](float *row, int64_t count, float) { softmax(row, count); });
  case Id::LayerNormF32:
    return each([](float *row, int64_t count, float epsilon) { normalize(row, count, epsilon, true); });
  case Id::RmsNormF32:
    return each([](float *row, int64_t count, float epsilon) { normalize(row, count, epsilon, false); });
  default:
    return;
  }
}

} // namespace dmxrt::aie
