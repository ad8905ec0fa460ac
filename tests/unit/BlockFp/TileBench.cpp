//===- TileBench.cpp - rates of the Corsair numerics ----------------------===//
//
// Run by hand: BlockFpTileBench [seconds per line]. One thread.
//
//===----------------------------------------------------------------------===//
#include "TestSupport.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>

using namespace dmx::blockfp;
using namespace dmx::blockfp::test;

namespace {

double secondsPerLine = 0.5;

/// Calls of `work` per second: the best of 100 short rounds, for on a busy
/// machine most of them are interrupted.
template <typename Work> double rateOf(const Work &work) {
  using Clock = std::chrono::steady_clock;
  double best = 0;
  work();
  for (int round = 0; round < 100; ++round) {
    int calls = 0;
    double elapsed = 0;
    auto start = Clock::now();
    do {
      work();
      ++calls;
      elapsed = std::chrono::duration<double>(Clock::now() - start).count();
    } while (elapsed < secondsPerLine / 100);
    best = std::max(best, calls / elapsed);
  }
  return best;
}

void benchMatmul(const char *format, int rows, int tiles) {
  std::mt19937_64 random(1);
  int depth = std::string(format).starts_with("BFP12") ? 128 : 64;
  int64_t k = int64_t(depth) * tiles;
  std::vector<float> values = randomMatrix(random, 64 * k);
  Packed a = pack(format, Orientation::Row, values, 64, k);
  Packed w = pack(format, Orientation::Column, values, k, 64);
  std::vector<const std::byte *> aTiles, wTiles;
  for (int t = 0; t < tiles; ++t) {
    aTiles.push_back(a.tile(0, t));
    wTiles.push_back(w.tile(0, t));
  }
  TileProduct product{a.layout.tile, w.layout.tile, rows};
  std::vector<float> ob(64 * 64);
  std::printf("%-9s %2d rows x %2d tiles", format, rows, tiles);
  for (int level = 0; level < kSimdLevels; ++level) {
    if (!isSupported(static_cast<SimdLevel>(level)))
      continue;
    TileMatmul unit(static_cast<SimdLevel>(level));
    double rate = rateOf([&] { (void)unit.run(product, aTiles, wTiles, ob.data()); });
    std::printf("  %s %6.1f", nameOf(static_cast<SimdLevel>(level)), rate * rows * 64 * k * 1e-9);
  }
  std::printf("  GMAC/s\n");
}

void benchPack(const char *format, Orientation orientation, Rounding rounding) {
  std::mt19937_64 random(1);
  constexpr int64_t kSize = 512;
  std::vector<float> values = randomMatrix(random, kSize * kSize);
  Packed packed = pack(format, orientation, values, kSize, kSize);
  double packs =
      rateOf([&] { (void)quantizeTensor(packed.layout, {values.data(), kSize}, {rounding, {}}, packed.bytes.data()); });
  double unpacks = rateOf([&] { dequantizeTensor(packed.layout, packed.bytes.data(), values.data(), kSize); });
  std::printf("%-12s %c %-10s  pack %7.1f  unpack %7.1f  M elements/s\n", format,
              orientation == Orientation::Row ? 'R' : 'C', rounding == Rounding::Nearest ? "nearest" : "stochastic",
              packs * kSize * kSize * 1e-6, unpacks * kSize * kSize * 1e-6);
}

} // namespace

int main(int argc, char **argv) {
  if (argc > 1)
    secondsPerLine = std::atof(argv[1]);
  for (int rows : {64, 16, 8, 4, 1})
    benchMatmul("BFP16_64", rows, 8);
  benchMatmul("BFP16_64", 64, 1);
  benchMatmul("BFP16_64", 64, 16);
  for (const char *format : {"BFP16_16", "BFP12_128", "BFP12_64", "BFP24_64"})
    benchMatmul(format, 64, 8);
  for (const char *format : {"BFP16_64", "BFP12_128", "BFP24_64", "SBFP12_16"})
    for (Orientation orientation : {Orientation::Row, Orientation::Column})
      benchPack(format, orientation, Rounding::Nearest);
  benchPack("BFP16_64", Orientation::Row, Rounding::Stochastic);
}
