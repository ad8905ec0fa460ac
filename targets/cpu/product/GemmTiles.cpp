//===- GemmTiles.cpp - blocking of matrix multiplication -----------------===//

#include "Gemm.h"
#include "GemmDecisions.h"
#include "GemmTile.h"

#include "dmxc/Target/DecisionsMade.h"

#include <algorithm>
#include <numeric>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

namespace {

constexpr int64_t minItems = 16;      ///< enough for a few threads to share
constexpr int64_t nominalDepth = 128; ///< k in the cost of an item, when it is not known

/// Vectors of a GEMV-like tile: enough independent sums to hide the latency of
/// an fma.
int64_t skinnyVectors(const IsaLevel &isa, int64_t rows, int64_t n, int64_t lanes) {
  int64_t budget = isa.vectorRegisters >= 32 ? 16 : 8;
  int64_t vectors = std::max<int64_t>(2, budget / (2 * rows));
  if (isa.vectorRegisters >= 32)
    vectors = rows <= 2 ? 4 : 2;
  while (vectors > 1 && (vectors / 2) * lanes >= n)
    vectors /= 2;
  return vectors;
}

void preferredRows(GemmTiles &t, const GemmKernel &spec, const IsaLevel &isa) {
  TileShape most = largestTile(isa, spec.accType, spec.fours);
  if (spec.skinny()) {
    t.rows = std::max<int64_t>(1, std::min(spec.rows(), most.rows));
    const int64_t columns = spec.columns() < 0 ? 1 << 20 : spec.columns();
    t.vectors = spec.sumsColumns() ? 1 : skinnyVectors(isa, t.rows, columns, t.lanes);
    // One row reads a B as it lies: the more of a row of B at a time, the better the hardware foresees what comes.
    if (spec.readsB() && spec.rows() == 1 && !spec.sumsColumns())
      t.vectors = std::max(t.vectors, std::min<int64_t>(8, columns / t.lanes));
    // Bytes come faster in more streams; of four bits there would be no registers for what eight columns unpack.
    const int64_t eight = 8 * t.lanes;
    if (spec.blocks && spec.blocks->bits == 8 && spec.rows() == 1 && isa.vectorRegisters >= 32 &&
        columns >= minItems * eight)
      t.vectors = 8;
    return;
  }
  t.rows = spec.rows() < 0 ? most.rows : ceilDivInt(spec.rows(), ceilDivInt(spec.rows(), most.rows));
  if (spec.columns() < 0) // one lane has no mask for a tile that n ends in
    most.vectors = t.lanes == 1 ? 1 : most.vectors;
  t.vectors =
      spec.columns() < 0 ? most.vectors : std::clamp<int64_t>(ceilDivInt(spec.columns(), t.lanes), 1, most.vectors);
}

void chooseRows(GemmTiles &t, const GemmKernel &spec, const IsaLevel &isa, const DecidedFields<GemmTiles> &decided) {
  if (spec.micro) {
    t.rows = spec.micro->rows();
    t.vectors = spec.micro->columns() / t.lanes;
    return;
  }
  preferredRows(t, spec, isa);
  if (spec.runs) // a tile takes a group, or a part of one
    t.vectors = std::min(t.vectors, spec.runs->columns / t.lanes);
  int64_t vectors = decided[&GemmTiles::vectors].value_or(t.vectors);
  if (vectors != t.vectors) {
    t.vectors = vectors;
    t.rows = std::min(t.rows, mostGemmRows(isa, t.vectors));
    if (spec.rows() > 0) // tiles of about as many rows
      t.rows = ceilDivInt(spec.rows(), ceilDivInt(spec.rows(), t.rows));
  }
  t.rows = decided[&GemmTiles::rows].value_or(t.rows);
}

/// Register tiles of a work item's rows, whose copy of A, rows of `rowBytes`, stays in a cache.
int64_t tilesOfBlock(const GemmTiles &t, const GemmKernel &spec, const IsaLevel &isa, int64_t rowBytes) {
  int64_t tiles = spec.rows() < 0 ? 16 : std::max<int64_t>(1, ceilDivInt(spec.rows(), t.rows));
  // A panel that has to be unpacked is so once for four times as many, and one that is copied for as many rows, as each
  // copy of a great B comes from beyond this core's caches; more would leave threads too few blocks.
  constexpr int64_t copyRows = 256;
  const int64_t near = isa.caches.block / (rowBytes * t.rows), far = 4 * isa.caches.block / (rowBytes * t.rows);
  int64_t most = spec.blocks                      ? far
                 : spec.copiesB() && !spec.nested ? std::max(near, std::min(far, ceilDivInt(copyRows, t.rows)))
                                                  : near;
  most = std::max<int64_t>(1, most);
  int64_t blocks = ceilDivInt(tiles, most);
  std::optional<int64_t> batch = spec.batch.known();
  if (!spec.nested && spec.rows() >= 0 && spec.columns() >= 0 && batch) {
    int64_t others = std::max<int64_t>(1, *batch * ceilDivInt(spec.columns(), t.columns()));
    blocks = std::min(tiles, std::max(blocks, ceilDivInt(minItems, others)));
  }
  return ceilDivInt(tiles, blocks);
}

constexpr int64_t mostStreamChains = 4; ///< of one row

/// What passes over k are multiples of: whole words, and whole blocks where these are short.
int64_t depthOfBlocks(const GemmBlocks &blocks, int64_t depth, int64_t unroll) {
  constexpr int64_t mostBlock = 256;
  const bool isShort = blocks.block < depth && blocks.block <= mostBlock;
  return isShort ? std::lcm(blocks.block, unroll) : std::max(unroll, blocks.perWord());
}

/// Eight registers: two by two sums and the operands of each, or one by four where the rows fill one tile. Tiles of
/// rows are equally high.
GemmTiles chooseTilesInRegisters(GemmTiles t, const GemmKernel &spec, const IsaLevel &isa) {
  constexpr int64_t height = 16;
  int64_t tiles = spec.rows() < 0 ? 2 : std::max<int64_t>(1, ceilDivInt(spec.rows(), height));
  int64_t down = std::min<int64_t>(tiles, 2);
  t.rows = down * (spec.rows() < 0 ? height : std::max<int64_t>(1, ceilDivInt(spec.rows(), tiles)));
  t.vectors = std::clamp<int64_t>(spec.columns() < 0 ? 4 : ceilDivInt(spec.columns(), t.lanes), 1, down == 1 ? 4 : 2);
  t.kBlock = spec.depth();
  t.packA = true;
  t.tilesPerBlock = tilesOfBlock(t, spec, isa, 4 * spec.panelRows());
  return t;
}

/// Sums of integers and those of floats are in registers together.
TileShape byteTile(const IsaLevel &isa) {
  if (isa.vectorRegisters >= 32)
    return isa.hasVnni ? TileShape{6, 2} : TileShape{4, 2};
  return {2, 2};
}

/// Of rows that are rounded to scratch once for all columns.
GemmTiles chooseByteTiles(GemmTiles t, const GemmKernel &spec, const IsaLevel &isa) {
  const TileShape most = byteTile(isa);
  t.rows =
      spec.rows() < 0 ? most.rows : std::max<int64_t>(1, ceilDivInt(spec.rows(), ceilDivInt(spec.rows(), most.rows)));
  t.vectors = spec.rows() >= 0 && t.rows <= 2 && isa.vectorRegisters >= 32 ? 4 : most.vectors;
  while (t.vectors > 1 && t.vectors / 2 * t.lanes >= spec.columns())
    t.vectors /= 2;
  t.kBlock = spec.depth();
  t.packA = true;
  t.tilesPerBlock = tilesOfBlock(t, spec, isa, ByteRows(spec).bytes);
  return t;
}

} // namespace

ProductTypes::ProductTypes(Type left, Type right, Type result)
    : aUnsigned(isUnsignedElement(left)), bUnsigned(isUnsignedElement(right)) {
  MLIRContext *context = result.getContext();
  bool isInt = isa<IntegerType>(result);
  auto memory = [&](Type type) { return isInt ? Type(IntegerType::get(context, type.getIntOrFloatBitWidth())) : type; };
  aType = memory(left), bType = memory(right);
  if (isInt)
    accType = IntegerType::get(context, result.getIntOrFloatBitWidth() == 64 ? 64 : 32);
  else
    accType = result.isF64() ? Type(Float64Type::get(context)) : Type(Float32Type::get(context));
}

int64_t GemmKernel::panelRows() const {
  if (blocks)
    return ceilDivInt(depth(), blocks->perWord());
  if (runPairs && dots())
    return depth();
  return pairs || runPairs ? pairsOf(dots() ? 2 * depth() : depth()) : depth();
}

bool GemmKernel::streams(const GemmTiles &t) const {
  return readsB() && rows() == 1 && !sumsColumns() && (columns() < 0 || columns() > t.columns());
}

int64_t GemmKernel::streamColumns(const GemmTiles &t) const {
  constexpr int64_t most = 2048;
  const int64_t all = columns() < 0 ? most : std::min(most, columns());
  return ceilDivInt(all, t.columns()) * t.columns();
}

TileDepth GemmKernel::tileDepth() const { return TileDepth(panelRows()); }

Units GemmKernel::usedUnits() const {
  bool fits = (pairs && adjacentA) || runPairs;
  return {units.dots && fits, units.tiles && (fits || fours) && !skinny()};
}

/// Operands of a run in pairs: tiles cut a known k evenly, and what is open is multiplied in vectors where there are
/// tiles. A's numbers are wide where they are multiplied as floats.
static GemmKernel ofRun(GemmKernel own, const IsaLevel &isa, Units used) {
  const bool tiles = isa.hasTiles && used.tiles;
  if (tiles && own.depth() > 0) {
    own.unit = GemmKernel::Unit::Tiles;
  } else if (tiles || (isa.hasDots && used.dots)) {
    own.unit = GemmKernel::Unit::Dots;
    if (own.k.isStatic())
      own.k = ceilDivInt(own.depth(), 2);
  }
  own.aType = own.copiesPairs() ? Type(BFloat16Type::get(own.accType.getContext())) : own.accType;
  return own;
}

ByteRows::ByteRows(const GemmKernel &spec) : blocks(ceilDivInt(spec.depth(), spec.blocks->block)) {
  scales = blocks * spec.blocks->block * (spec.bytePairs ? 2 : 1);
  starts = scales + 4 * blocks;
  bytes = (ceilDivInt(starts + 4 * blocks, 64) | 1) * 64; // rows that are read together share no sets of a cache
}

GemmKernel GemmKernel::at(const IsaLevel &isa) const {
  GemmKernel own = *this;
  own.bytePairs = bytes && !isa.hasVnni;
  Units used = usedUnits();
  if (micro && !micro->bodyAt(isa))
    own.micro.reset();
  if (unit != Unit::Floats)
    return own;
  if (runPairs)
    return ofRun(own, isa, used);
  if (isa.hasTiles && used.tiles) {
    own.unit = Unit::Tiles;
  } else if (isa.hasDots && used.dots) {
    own.unit = Unit::Dots;
    own.halfLast = depth() % 2 != 0;
    own.k = ceilDivInt(depth(), 2);
  }
  return own;
}

int64_t dmxc::cpu::mostGemmRows(const IsaLevel &isa, int64_t vectors) {
  constexpr int64_t most = 16;
  return std::clamp<int64_t>((static_cast<int64_t>(isa.vectorRegisters) - 1 - vectors) / vectors, 1, most);
}

GemmTiles dmxc::cpu::chooseGemmTiles(const GemmKernel &given, const IsaLevel &isa,
                                     const DecidedFields<GemmTiles> &decided) {
  DecisionsMade::check("a blocking");
  GemmKernel spec = given.at(isa);
  GemmTiles t;
  int64_t bytes = spec.accType.getIntOrFloatBitWidth() / 8;
  t.lanes = isa.lanes(8 * bytes);
  if (spec.tiles())
    return chooseTilesInRegisters(t, spec, isa);
  if (spec.bytes)
    return chooseByteTiles(t, spec, isa);
  chooseRows(t, spec, isa, decided);
  int64_t depth = spec.depth() < 0 ? 1024 : std::max<int64_t>(spec.depth(), 1);
  bool skinny = spec.skinny();
  if (skinny && !spec.copiesB() && spec.depth() >= 0) {
    t.kBlock = depth; // B is read once: nothing to keep in a cache
  } else {
    // What is unpacked is written anyway: passes over it cost more than a place further off.
    int64_t tall = isa.caches.tallPanel * (spec.blocks ? 2 : 1),
            panelBytes = t.rows >= 10 ? tall : isa.caches.flatPanel;
    int64_t most = std::max<int64_t>(64, panelBytes / (t.columns() * bytes));
    int64_t multiple = spec.blocks ? depthOfBlocks(*spec.blocks, depth, t.unroll) : t.unroll;
    t.kBlock = ceilDivInt(ceilDivInt(depth, ceilDivInt(depth, most)), multiple) * multiple;
  }
  t.kBlock = decided[&GemmTiles::kBlock].value_or(t.kBlock);
  t.tilesPerBlock = tilesOfBlock(t, spec, isa, depth * bytes);
  // Of few rows, elements of a byte go by too fast for the hardware's prefetching, which starts anew on every page;
  // wide ones wait for memory whatever is done.
  int64_t bits = spec.rightBits();
  t.prefetch = spec.packedB && !spec.blocks && !spec.runs && (!skinny || bits <= 8);
  t.prefetchRest = t.prefetch && bits < 8 * bytes;
  // The copy pays when several groups of columns read it. Where these are wide it takes as long as what it saves.
  constexpr int64_t wide = 32;
  t.packA = !skinny && !spec.grouped && spec.keptDepth() > 0 &&
            (spec.columns() < 0 || spec.columns() >= 4 * t.columns()) && !(t.columns() >= wide && spec.readsRows());
  // The copy completes the last fours and pairs.
  if (spec.depth() > 0)
    t.packA |= spec.partialLast() || spec.micro;
  t.packA &= !spec.copiesPairs(); // rows in scratch share no set
  t.packA = decided[&GemmTiles::packA].value_or(t.packA);
  return t;
}

Dim dmxc::cpu::gemmWorkItems(const GemmKernel &spec, const GemmTiles &t) {
  Dim groups = spec.batch * Dim::ceilDiv(spec.n, t.columns());
  if (spec.grouped)
    return groups;
  return groups * (spec.m.isStatic() ? Dim::ceilDiv(Dim::ceilDiv(spec.m, t.rows), t.tilesPerBlock)
                                     : Dim::ceilDiv(spec.m, t.rowsPerBlock()));
}

int64_t dmxc::cpu::gemmGrain(const GemmKernel &spec, const GemmTiles &t) {
  // About 4 us on a fast core, which does 100 operations a nanosecond, or reads 60 bytes of weights that serve few
  // rows.
  double depth = spec.depth() < 0 ? nominalDepth : std::max<int64_t>(spec.keptDepth(), 1),
         flops = 2.0 * t.rowsPerBlock() * t.columns() * depth;
  // Unpacking costs as much as reading twice as many bits.
  double bits = spec.blocks ? 2 * spec.blocks->bits : spec.rightBits();
  double bytes = depth * t.columns() * bits / 8;
  int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(4000 / std::max(flops / 100, bytes / 60)));
  // Enough groups to pay for a copy of A.
  int64_t groups = spec.columns() < 0 ? 1 : std::max<int64_t>(1, ceilDivInt(spec.columns(), t.columns()));
  return t.packA && !(spec.bytes && spec.skinny()) ? std::max(grain, std::min<int64_t>(groups, 8)) : grain;
}

int64_t dmxc::cpu::packedABytes(const GemmKernel &spec, const GemmTiles &t) {
  if (!t.packA)
    return 0;
  if (spec.tiles())
    return t.rowsPerBlock() * spec.tileDepth().count * kTileRowBytes;
  if (spec.bytes)
    return t.rowsPerBlock() * ByteRows(spec).bytes;
  // The last vector stored may overhang by a vector.
  int64_t elements = t.rowsPerBlock() * spec.depth() + t.lanes;
  return ceilDivInt(elements * spec.accType.getIntOrFloatBitWidth() / 8, 64) * 64;
}

int64_t dmxc::cpu::gemmScratchBytes(const GemmKernel &spec, const GemmTiles &t) {
  int64_t rowBytes = t.columns() * spec.accType.getIntOrFloatBitWidth() / 8;
  bool onePass = spec.depth() >= 0 && spec.depth() <= t.kBlock;
  int64_t bytes = packedABytes(spec, t) + (spec.copiesB() ? t.kBlock * rowBytes : 0);
  if (spec.streams(t)) // of two sums a chain
    bytes += 2 * mostStreamChains * spec.streamColumns(t) * spec.accType.getIntOrFloatBitWidth() / 8;
  else if (!onePass)
    bytes += t.rows * t.tilesPerBlock * rowBytes;
  else if (spec.sumsInScratch())
    bytes += t.rows * rowBytes;
  return ceilDivInt(bytes, 64) * 64;
}
