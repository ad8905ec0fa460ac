//===- ConvPack.cpp - the packed form of convolution weights -------------===//

#include "ConvPlan.h"
#include "targets/cpu/product/GemmTile.h"

#include "dmxc/Support/ElementAt.h"

#include <cassert>
#include <cstring>

using namespace dmxc::cpu;

int64_t dmxc::cpu::packedConvWeightBytes(const ConvKernel &spec) {
  int64_t bytes = spec.bType.getIntOrFloatBitWidth() / 8;
  return (spec.oc + 15) / 16 * spec.groupIc() * spec.taps() * 16 * bytes;
}

template <typename T>
static void pack(const ConvKernel &spec, const std::byte *src, const std::array<int64_t, 5> &strides, T *dst) {
  int64_t block = weightBlock(spec), channels = spec.groupIc();
  auto one = [&](int64_t oc, int64_t ic, int64_t d, int64_t h, int64_t w) {
    int64_t at = oc * strides[0] + ic * strides[1] + d * strides[2] + h * strides[3] + w * strides[4];
    int64_t lanes = std::min<int64_t>(16, spec.oc - oc);
    for (int64_t lane = 0; lane < 16; ++lane)
      *dst++ = lane < lanes ? dmxc::elementAt<T>(src, at + lane * strides[0]) : T(0);
  };
  for (int64_t oc = 0; oc < spec.oc; oc += 16)
    for (int64_t ic0 = 0; ic0 < channels; ic0 += block)
      for (int64_t d = 0; d < spec.kernel[0]; ++d)
        for (int64_t h = 0; h < spec.kernel[1]; ++h)
          for (int64_t w = 0; w < spec.kernel[2]; ++w)
            for (int64_t i = ic0; i < std::min(channels, ic0 + block); ++i)
              one(oc, i, d, h, w);
}

void dmxc::cpu::packConvGroups(const ConvKernel &spec, int64_t channels, const std::byte *src,
                               std::array<int64_t, 5> strides, std::span<std::byte> dst) {
  const int64_t each = spec.pairs ? 2 : 4, bytes = 4 / each;
  assert((spec.fours || spec.pairs) && ceilDivInt(channels, each) == spec.groupIc());
  // The weights as [oc][groups][d][h][w] fours or pairs, in the strides' order of taps.
  std::vector<std::array<std::byte, 4>> joined(spec.oc * spec.groupIc() * spec.taps());
  auto *to = joined.data();
  for (int64_t oc = 0; oc < spec.oc; ++oc)
    for (int64_t group = 0; group < spec.groupIc(); ++group)
      for (int64_t d = 0; d < spec.kernel[0]; ++d)
        for (int64_t h = 0; h < spec.kernel[1]; ++h)
          for (int64_t w = 0; w < spec.kernel[2]; ++w, ++to)
            for (int64_t i = 0; i < std::min<int64_t>(each, channels - group * each); ++i) {
              int64_t at =
                  oc * strides[0] + (group * each + i) * strides[1] + d * strides[2] + h * strides[3] + w * strides[4];
              std::memcpy(to->data() + i * bytes, src + at * bytes, bytes);
            }
  int64_t row = spec.kernel[2], plane = row * spec.kernel[1];
  packConvWeights(spec, joined.data()->data(), {spec.groupIc() * spec.taps(), spec.taps(), plane, row, 1}, dst);
}

void dmxc::cpu::packConvWeights(const ConvKernel &spec, const std::byte *src, std::array<int64_t, 5> strides,
                                std::span<std::byte> dst) {
  assert(static_cast<int64_t>(dst.size()) >= packedConvWeightBytes(spec));
  auto run = [&](auto tag) {
    using T = decltype(tag);
    pack(spec, src, strides, reinterpret_cast<T *>(dst.data()));
  };
  switch (spec.bType.getIntOrFloatBitWidth()) {
  case 8:
    return run(uint8_t());
  case 16:
    return run(uint16_t());
  case 32:
    return run(uint32_t());
  case 64:
    return run(uint64_t());
  default:
    llvm_unreachable("element size");
  }
}
