//===- GemmPack.cpp - the panel16 form of a constant matrix --------------===//

#include "Gemm.h"
#include "GemmTile.h"

#include "dmxc/Support/ElementAt.h"

#include <cassert>
#include <cstring>

using namespace dmxc::cpu;

int64_t dmxc::cpu::panel16Bytes(int64_t k, int64_t n, int64_t elementBytes) {
  return (n + 15) / 16 * 16 * k * elementBytes;
}

template <typename T>
static void packPanels(const std::byte *src, int64_t k, int64_t n, int64_t strideK, int64_t strideN, T *dst) {
  // Blocks of 64 rows keep the lines of a transposed source in the cache while
  // all sixteen columns read from them.
  constexpr int64_t block = 64;
  for (int64_t n0 = 0; n0 < n; n0 += 16, dst += 16 * k) {
    int64_t width = std::min<int64_t>(16, n - n0);
    if (width < 16)
      std::memset(dst, 0, 16 * k * sizeof(T));
    for (int64_t k0 = 0; k0 < k; k0 += block)
      for (int64_t j = 0; j < width; ++j) {
        int64_t column = (n0 + j) * strideN;
        for (int64_t i = k0; i < std::min(k, k0 + block); ++i)
          dst[i * 16 + j] = dmxc::elementAt<T>(src, column + i * strideK);
      }
  }
}

void dmxc::cpu::packFours16(const std::byte *src, int64_t k, int64_t n, int64_t strideK, int64_t strideN,
                            std::span<std::byte> dst) {
  assert(static_cast<int64_t>(dst.size()) >= panel16Bytes(foursOf(k), n, 4));
  std::memset(dst.data(), 0, panel16Bytes(foursOf(k), n, 4));
  for (int64_t col = 0; col < n; ++col) {
    std::byte *to = dst.data() + (col / 16 * foursOf(k) * 16 + col % 16) * 4;
    for (int64_t row = 0; row < k; ++row)
      to[row / 4 * 64 + row % 4] = src[row * strideK + col * strideN];
  }
}

TileDepth::TileDepth(int64_t rows) {
  constexpr int64_t most = 16;
  count = std::max<int64_t>(1, ceilDivInt(rows, most));
  steps = ceilDivInt(rows, count);
  again = steps * count - rows;
}

int64_t dmxc::cpu::pairsOf(int64_t k) {
  TileDepth depth(ceilDivInt(k, 2));
  return depth.steps * depth.count;
}

void dmxc::cpu::packPairs16(const std::byte *src, int64_t k, int64_t n, int64_t strideK, int64_t strideN,
                            std::span<std::byte> dst) {
  int64_t pairs = pairsOf(k);
  assert(static_cast<int64_t>(dst.size()) >= panel16Bytes(pairs, n, 4));
  std::memset(dst.data(), 0, panel16Bytes(pairs, n, 4));
  constexpr int64_t block = 64; // as in packPanels
  auto *to = reinterpret_cast<uint16_t *>(dst.data());
  for (int64_t n0 = 0; n0 < n; n0 += 16, to += 32 * pairs)
    for (int64_t k0 = 0; k0 < k; k0 += block)
      for (int64_t col = n0; col < std::min(n, n0 + 16); ++col)
        for (int64_t row = k0; row < std::min(k, k0 + block); ++row)
          to[row / 2 * 32 + (col - n0) * 2 + row % 2] = elementAt<uint16_t>(src, row * strideK + col * strideN);
}

void dmxc::cpu::packPanel16(const std::byte *src, int64_t k, int64_t n, int64_t strideK, int64_t strideN,
                            int64_t elementBytes, std::span<std::byte> dst) {
  assert(static_cast<int64_t>(dst.size()) >= panel16Bytes(k, n, elementBytes));
  auto run = [&](auto tag) {
    using T = decltype(tag);
    packPanels(src, k, n, strideK, strideN, reinterpret_cast<T *>(dst.data()));
  };
  switch (elementBytes) {
  case 1:
    return run(uint8_t());
  case 2:
    return run(uint16_t());
  case 4:
    return run(uint32_t());
  case 8:
    return run(uint64_t());
  default:
    llvm_unreachable("element size");
  }
}
