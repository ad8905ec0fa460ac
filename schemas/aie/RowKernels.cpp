//===- RowKernels.cpp - kernels of rows of f32 ----------------------------===//
#include "RowKernels.h"

#include <algorithm>

namespace dmx::aie {
namespace {

constexpr int64_t kMostNumbers = 1 << 14; ///< of a buffer: no memory of a core holds more

// Slots of the vector unit for kRowLanes numbers. A product of f32 is made of products of bf16 parts.
constexpr int64_t kProduct = 6;     ///< assumed: the three largest parts of each, without the smallest products
constexpr int64_t kReciprocal = 24; ///< assumed: an estimate and two steps, each of two products
constexpr int64_t kJoin = 2 * 4;    ///< of lanes by halves: a shuffle and an operation for each
constexpr int64_t kExp = 1 + 3 * (kProduct + 1) + kExpTerms * (kProduct + 1) + 1; ///< x - max, n, r, terms, 2^n

bool takesRow(KernelId kernel) { return takesMatrix(kernel) && kernel < KernelId::SoftmaxF32; }

/// Slots for kRowLanes numbers without loads and stores, and for a row.
std::pair<int64_t, int64_t> slotsOf(KernelId kernel) {
  switch (kernel) {
  case KernelId::MultiplyF32:
  case KernelId::MultiplyRowF32:
    return {kProduct, 0};
  case KernelId::DivideF32:
  case KernelId::DivideIntoF32:
  case KernelId::DivideRowF32:
  case KernelId::DivideIntoRowF32:
    return {kReciprocal + kProduct, 0};
  case KernelId::SoftmaxF32: // maximum; exp and sum; product
    return {1 + kExp + 1 + kProduct, 2 * kJoin + kReciprocal};
  case KernelId::LayerNormF32: // sum; difference, square and sum; difference and product
    return {1 + 1 + kProduct + 1 + 1 + kProduct, 2 * kJoin + 2 * kReciprocal};
  case KernelId::RmsNormF32:
    return {kProduct + 1 + kProduct, kJoin + 2 * kReciprocal};
  default:
    return {1, 0};
  }
}

} // namespace

std::vector<Touch> touchesOfRows(const Call &call, std::string &error) {
  int64_t m = takesMatrix(call.kernel) ? call.scalars[0] : 1, n = call.scalars[takesMatrix(call.kernel)];
  if (m < 1 || n < 1 || m > kMostNumbers || n > kMostNumbers || n % kRowUnit) {
    error = std::string(infoOf(call.kernel).name) + " takes rows of a multiple of 8 numbers, not " + std::to_string(m) +
            " of " + std::to_string(n);
    return {};
  }
  int64_t other = takesParameters(call.kernel) ? kParameterWords : takesRow(call.kernel) ? n : m * n;
  return {{0, 4 * other, true, false}, {1, 4 * m * n, call.kernel != KernelId::CopyF32, true}};
}

int64_t clocksOfRows(const Machine &machine, const Call &call) {
  int64_t m = takesMatrix(call.kernel) ? call.scalars[0] : 1, n = call.scalars[takesMatrix(call.kernel)];
  auto [slots, ofRow] = slotsOf(call.kernel);
  int64_t stores = 4 * kRowLanes / (machine.storesPerClock * machine.accessBytes); // loads are beside them
  int64_t loops = call.kernel == KernelId::RmsNormF32 ? 2 : takesMatrix(call.kernel) && !takesRow(call.kernel) ? 3 : 1;
  return m * (loops * machine.loopClocks + ofRow + (n + kRowLanes - 1) / kRowLanes * std::max(slots, stores));
}

} // namespace dmx::aie
