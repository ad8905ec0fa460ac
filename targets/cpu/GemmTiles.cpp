//===- GemmTiles.cpp - blocking of matrix multiplication ----------------------===//

#include "Gemm.h"
#include "GemmTile.h"

#include <algorithm>

using namespace dmxc::cpu;

namespace {

// Figures of the caches that the blocking aims at; chosen for the smallest of today's x86 cores
// (32 KiB L1, 512 KiB to 1 MiB L2), and only a matter of speed.
constexpr int64_t panelBytes = 64 << 10; ///< of B, read once a register tile
constexpr int64_t blockBytes = 512 << 10; ///< of A, read once a group of columns
constexpr int64_t minItems = 16;          ///< enough for a few threads to share

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Vectors of a GEMV-like tile: enough independent sums to hide the latency of an fma.
int64_t skinnyVectors(const IsaLevel &isa, int64_t rows, int64_t n, int64_t lanes) {
  int64_t budget = isa.vectorRegisters >= 32 ? 16 : 8;
  int64_t vectors = std::max<int64_t>(2, budget / (2 * rows));
  if (isa.vectorRegisters >= 32)
    vectors = rows <= 2 ? 4 : 2;
  while (vectors > 1 && (vectors / 2) * lanes >= n)
    vectors /= 2;
  return vectors;
}

void chooseRows(GemmTiles &t, const GemmSpec &spec, const IsaLevel &isa) {
  TileShape most = largestTile(isa, spec.accType);
  if (spec.m >= 0 && spec.m <= 4) {
    t.rows = std::max<int64_t>(1, std::min(spec.m, most.rows));
    t.vectors = skinnyVectors(isa, t.rows, spec.n < 0 ? 1 << 20 : spec.n, t.lanes);
    return;
  }
  t.rows = spec.m < 0 ? most.rows : ceilDiv(spec.m, ceilDiv(spec.m, most.rows));
  t.vectors = spec.n < 0 ? most.vectors
                         : std::clamp<int64_t>(ceilDiv(spec.n, t.lanes), 1, most.vectors);
}

} // namespace

GemmTiles dmxc::cpu::chooseGemmTiles(const GemmSpec &spec, const IsaLevel &isa) {
  GemmTiles t;
  int64_t bytes = spec.accType.getIntOrFloatBitWidth() / 8;
  t.lanes = isa.lanes(8 * bytes);
  chooseRows(t, spec, isa);
  int64_t depth = spec.k < 0 ? 1024 : std::max<int64_t>(spec.k, 1);
  bool skinny = spec.m >= 0 && spec.m <= 4;
  if (skinny && spec.packedB && spec.k >= 0) {
    t.kBlock = depth; // B is read once: nothing to keep in a cache
  } else {
    int64_t most = std::max<int64_t>(64, panelBytes / (t.columns() * bytes));
    t.kBlock = ceilDiv(ceilDiv(depth, ceilDiv(depth, most)), t.unroll) * t.unroll;
  }
  int64_t tiles = spec.m < 0 ? 16 : std::max<int64_t>(1, ceilDiv(spec.m, t.rows));
  int64_t most = std::max<int64_t>(1, blockBytes / (depth * bytes * t.rows));
  int64_t blocks = ceilDiv(tiles, most);
  if (spec.m >= 0 && spec.n >= 0 && spec.batch >= 0) {
    int64_t others = std::max<int64_t>(1, spec.batch * ceilDiv(spec.n, t.columns()));
    blocks = std::min(tiles, std::max(blocks, ceilDiv(minItems, others)));
  }
  t.tilesPerBlock = ceilDiv(tiles, blocks);
  t.prefetch = spec.packedB && !skinny;
  return t;
}

int64_t dmxc::cpu::gemmWorkItems(const GemmSpec &spec, const GemmTiles &t) {
  if (spec.batch == 0 || spec.m == 0 || spec.n == 0)
    return 0;
  int64_t blocks = ceilDiv(ceilDiv(spec.m, t.rows), t.tilesPerBlock);
  return spec.batch * blocks * ceilDiv(spec.n, t.columns());
}

int64_t dmxc::cpu::gemmScratchBytes(const GemmSpec &spec, const GemmTiles &t) {
  int64_t rowBytes = t.columns() * spec.accType.getIntOrFloatBitWidth() / 8;
  bool onePass = spec.k >= 0 && spec.k <= t.kBlock;
  int64_t bytes = spec.packedB ? 0 : t.kBlock * rowBytes;
  if (!onePass)
    bytes += t.rows * t.tilesPerBlock * rowBytes;
  else if (spec.heavyEpilogue)
    bytes += t.rows * rowBytes;
  return ceilDiv(bytes, 64) * 64;
}
