//===- Kernels.cpp - the table of the cores' library ----------------------===//
#include "Kernels.h"

#include <algorithm>

namespace dmx::aie {
namespace {

constexpr int64_t kAccumulatorsM = 2, kAccumulatorsN = 4; ///< matrix steps whose sums are kept in registers
constexpr int64_t kMostOfADim = 4096;                     ///< no memory of a tile holds more

const std::array<KernelInfo, static_cast<size_t>(KernelId::Count)> &table() {
  static const std::array<KernelInfo, static_cast<size_t>(KernelId::Count)> all = {
      {{"zero_f32", {"c"}, {"count"}, 256}, {"matmul_bf16_f32", {"a", "b", "c"}, {"m", "k", "n"}, 2048}}};
  return all;
}

bool isProduct(const Call &call) { return call.kernel == KernelId::MatmulBf16F32; }

} // namespace

const KernelInfo &infoOf(KernelId kernel) { return table()[static_cast<size_t>(kernel)]; }

std::optional<KernelId> kernelNamed(std::string_view name) {
  for (size_t i = 0; i < table().size(); ++i)
    if (table()[i].name == name)
      return static_cast<KernelId>(i);
  return std::nullopt;
}

std::vector<Touch> touches(const Call &call, std::string &error) {
  const auto [m, k, n, rest0, rest1, rest2, rest3, rest4] = call.scalars;
  if (!isProduct(call)) {
    if (m <= 0 || m > kMostOfADim * kMostOfADim || m % 8) {
      error = "zero_f32 clears a multiple of 8 numbers, not " + std::to_string(m);
      return {};
    }
    return {{0, 4 * m, false, true}};
  }
  constexpr int64_t unitM = kStepM * kAccumulatorsM, unitN = kStepN * kAccumulatorsN;
  bool fits = std::min({m, k, n}) > 0 && std::max({m, k, n}) <= kMostOfADim;
  if (!fits || m % unitM || k % kStepK || n % unitN) {
    error = "matmul_bf16_f32 multiplies whole blocks of 8 x 8 by 8 x 16, not " + std::to_string(m) + " x " +
            std::to_string(k) + " by " + std::to_string(k) + " x " + std::to_string(n);
    return {};
  }
  return {{0, 2 * m * k, true, false}, {1, 2 * k * n, true, false}, {2, 4 * m * n, true, true}};
}

int64_t macsOf(const Call &call) { return isProduct(call) ? call.scalars[0] * call.scalars[1] * call.scalars[2] : 0; }

int64_t clocksOf(const Machine &machine, const Call &call) {
  if (!isProduct(call))
    return machine.callClocks + machine.loopClocks +
           4 * call.scalars[0] / (machine.storesPerClock * machine.accessBytes);
  auto [m, k, n, rest0, rest1, rest2, rest3, rest4] = call.scalars;
  // The inner body goes one step along k: it loads 2 steps of a and 4 of b, and multiplies each with each.
  int64_t stepClocks = std::max<int64_t>(1, kStepM * kStepN * kStepK / machine.bf16Macs);
  int64_t macs = kAccumulatorsM * kAccumulatorsN * stepClocks;
  int64_t bytes = 2 * kStepK * (kAccumulatorsM * kStepM + kAccumulatorsN * kStepN);
  int64_t perClock = machine.loadsPerClock * machine.accessBytes;
  int64_t body = std::max(macs, (bytes + perClock - 1) / perClock);
  int64_t blocks = m / (kStepM * kAccumulatorsM) * (n / (kStepN * kAccumulatorsN));
  return machine.callClocks + blocks * (machine.loopClocks + k / kStepK * body);
}

} // namespace dmx::aie
