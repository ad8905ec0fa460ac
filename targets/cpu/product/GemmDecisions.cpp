//===- GemmDecisions.cpp - what of a product's blocking is free ----------===//

#include "GemmDecisions.h"
#include "GemmTile.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

namespace {

/// Depths of a pass: powers of two and all of k, multiples of what an iteration takes.
std::set<int64_t> depthsOf(const GemmKernel &spec, const GemmTiles &tiles) {
  std::set<int64_t> depths;
  bool oneRead = spec.skinny() && !spec.copiesB(); // B is read once, whole
  if (!oneRead && spec.depth() > 0) {
    int64_t whole = ceilDivInt(spec.depth(), tiles.unroll) * tiles.unroll;
    for (int64_t depth = 64; depth < whole && depth <= 4096; depth *= 2)
      depths.insert(depth);
    if (whole <= 4096)
      depths.insert(whole);
  }
  return depths;
}

/// Those with which as many rows as are decided fit registers.
std::set<int64_t> vectorsOf(const GemmKernel &spec, const IsaLevel &isa, const GemmTiles &tiles,
                            std::optional<int64_t> rows) {
  std::set<int64_t> counts;
  const int64_t largest = spec.readsB() ? 8 : 4;
  int64_t most = spec.columns() < 0 ? largest : std::min<int64_t>(largest, ceilDivInt(spec.columns(), tiles.lanes));
  for (int64_t vectors = 1; vectors <= most; ++vectors)
    if (spec.fitsColumns(vectors * tiles.lanes) && rows.value_or(1) <= mostGemmRows(isa, vectors))
      counts.insert(vectors);
  return counts;
}

/// Up to `most`; rows of a known number are shared out evenly.
std::set<int64_t> rowsOf(const GemmKernel &spec, int64_t most) {
  std::set<int64_t> all;
  for (int64_t rows = 1; rows <= most; ++rows)
    all.insert(rows);
  return spec.rows() < 0 ? all : evenParts(spec.rows(), most);
}

/// Nothing is free where operands are fours, blocks or groups of rows.
FreeTile<GemmTiles> freeTile(const GemmKernel &spec, const IsaLevel &isa, DictionaryAttr decided) {
  FreeTile<GemmTiles> free(isa.name, spec.accType.getContext(), decided);
  if (spec.fours || spec.at(isa).unit != GemmKernel::Unit::Floats || spec.blocks || spec.grouped || spec.nested ||
      spec.rows() == 0 || spec.columns() == 0 || spec.depth() == 0)
    return free;
  auto tile = [&] { return chooseGemmTiles(spec, isa, free.decided()); };
  GemmTiles own = tile();
  if (spec.at(isa).micro) { // its tile, and A as it reads it
    free.add(&GemmTiles::kBlock, depthsOf(spec, own), own.kBlock);
    return free;
  }
  free.add(&GemmTiles::vectors, vectorsOf(spec, isa, own, numberIn(decided, "rows")), own.vectors);
  GemmTiles wide = tile();
  free.add(&GemmTiles::rows, rowsOf(spec, std::max(mostGemmRows(isa, wide.vectors), wide.rows)), wide.rows);
  GemmTiles tall = tile();
  free.add(&GemmTiles::kBlock, depthsOf(spec, tall), tall.kBlock);
  if (!spec.skinny() && spec.depth() > 0)
    free.add(&GemmTiles::packA, tall.packA);
  return free;
}

} // namespace

ArrayRef<TileField<GemmTiles>> GemmTiles::fields() {
  static const TileField<GemmTiles> all[] = {
      {"rows", &GemmTiles::rows, "rows of a register tile", Effect::Order},
      {"vectors", &GemmTiles::vectors, "vectors of a register tile", Effect::Order},
      {"k_block", &GemmTiles::kBlock, "depth of a pass over k", Effect::Order},
      {"pack_a", &GemmTiles::packA, "a block of A is copied before it is read"},
      {"tiles_per_block", &GemmTiles::tilesPerBlock},
      {"prefetch", &GemmTiles::prefetch},
      {"prefetch_rest", &GemmTiles::prefetchRest}};
  return all;
}

GemmTiles dmxc::cpu::readGemmTiles(DictionaryAttr tiles, const GemmKernel &spec, const IsaLevel &isa) {
  GemmTiles level;
  level.lanes = isa.lanes(spec.accType.getIntOrFloatBitWidth());
  return readTile(tiles, level);
}

void dmxc::cpu::planGemm(KernelPlan &plan, const GemmKernel &spec, const Choice &choice) {
  auto tiles = planTiles<GemmTiles>(plan, spec, choice.decided, spec.accType.getContext(), freeTile, chooseGemmTiles);
  if (!choice.chooses())
    return choice.readSizes(plan);
  GemmTiles nominal = tiles(choice.level());
  plan.work = gemmWorkItems(spec, nominal);
  plan.grain = gemmGrain(spec, nominal);
  plan.scratch =
      choice.mostBytes([&](const IsaLevel &level) { return gemmScratchBytes(spec.at(level), tiles(level)); });
}
