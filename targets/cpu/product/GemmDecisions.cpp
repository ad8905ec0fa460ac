//===- GemmDecisions.cpp - what of a product's blocking is free ----------===//

#include "GemmDecisions.h"
#include "GemmTile.h"

#include "targets/cpu/TileDecisions.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

namespace {

constexpr StringLiteral kRows = "rows", kVectors = "vectors", kDepth = "k_block", kPackA = "pack_a",
                        kTilesPerBlock = "tiles_per_block", kPrefetch = "prefetch", kPrefetchRest = "prefetch_rest";

/// Depths of a pass: powers of two and all of k, multiples of what an iteration takes.
std::set<int64_t> depthsOf(const GemmSpec &spec, const GemmTiles &tiles) {
  std::set<int64_t> depths;
  bool oneRead = spec.skinny() && !spec.copiesB(); // B is read once, whole
  if (!oneRead && spec.k > 0) {
    int64_t whole = ceilDivInt(spec.k, tiles.unroll) * tiles.unroll;
    for (int64_t depth = 64; depth < whole && depth <= 4096; depth *= 2)
      depths.insert(depth);
    if (whole <= 4096)
      depths.insert(whole);
  }
  return depths;
}

/// Those with which as many rows as are decided fit registers.
std::set<int64_t> vectorsOf(const GemmSpec &spec, const IsaLevel &isa, const GemmTiles &tiles,
                            std::optional<int64_t> rows) {
  std::set<int64_t> counts;
  int64_t most = spec.n < 0 ? 4 : std::min<int64_t>(4, ceilDivInt(spec.n, tiles.lanes));
  for (int64_t vectors = 1; vectors <= most; ++vectors)
    if (fitsPanels(vectors * tiles.lanes) && rows.value_or(1) <= mostGemmRows(isa, vectors))
      counts.insert(vectors);
  return counts;
}

/// Up to `most`; rows of a known number are shared out evenly.
std::set<int64_t> rowsOf(const GemmSpec &spec, int64_t most) {
  std::set<int64_t> all;
  for (int64_t rows = 1; rows <= most; ++rows)
    all.insert(rows);
  return spec.m < 0 ? all : evenParts(spec.m, most);
}

} // namespace

static GemmChoice choiceOf(DictionaryAttr decided) {
  return {numberIn(decided, kRows), numberIn(decided, kVectors), numberIn(decided, kDepth), flagIn(decided, kPackA)};
}

std::vector<Decision> dmxc::cpu::gemmDecisions(const GemmSpec &spec, const IsaLevel &isa, DictionaryAttr decided) {
  FreeTiles free(isa, spec.accType.getContext(), decided);
  GemmChoice choice;
  if (spec.fours || spec.at(isa).unit != GemmSpec::Unit::Floats || spec.blocks || spec.grouped || spec.nested ||
      spec.m == 0 || spec.n == 0 || spec.k == 0)
    return {};
  GemmTiles own = completeGemmTiles(spec, isa, {});
  choice.vectors = free.number(kVectors, vectorsOf(spec, isa, own, numberIn(decided, kRows)), own.vectors,
                               Effect::Order, "vectors of a register tile");
  GemmTiles wide = completeGemmTiles(spec, isa, choice);
  int64_t rows = std::max(mostGemmRows(isa, wide.vectors), wide.rows);
  choice.rows = free.number(kRows, rowsOf(spec, rows), wide.rows, Effect::Order, "rows of a register tile");
  GemmTiles tile = completeGemmTiles(spec, isa, choice);
  free.number(kDepth, depthsOf(spec, tile), tile.kBlock, Effect::Order, "depth of a pass over k");
  if (!spec.skinny() && spec.k > 0)
    free.flag(kPackA, tile.packA, Effect::Bits, "a block of A is copied before it is read");
  return free.take();
}

GemmTiles dmxc::cpu::decidedGemmTiles(const GemmSpec &spec, const IsaLevel &isa, DictionaryAttr decided) {
  return completeGemmTiles(spec, isa, choiceOf(ofDomains(gemmDecisions(spec, isa, decided), decided)));
}

/// What a strategy keeps of tiles; the rest follows from the level.
static void eachGemmField(auto &tiles, auto &&visit) {
  visit(kRows, tiles.rows);
  visit(kVectors, tiles.vectors);
  visit(kDepth, tiles.kBlock);
  visit(kTilesPerBlock, tiles.tilesPerBlock);
  visit(kPackA, tiles.packA);
  visit(kPrefetch, tiles.prefetch);
  visit(kPrefetchRest, tiles.prefetchRest);
}

DictionaryAttr dmxc::cpu::writeTiles(const GemmTiles &tiles, MLIRContext *context) {
  TileWriter writer(context);
  eachGemmField(tiles, writer);
  return writer.take();
}

GemmTiles dmxc::cpu::readGemmTiles(DictionaryAttr tiles, const GemmSpec &spec, const IsaLevel &isa) {
  GemmTiles t;
  t.lanes = isa.lanes(spec.accType.getIntOrFloatBitWidth());
  eachGemmField(t, TileReader(tiles));
  return t;
}

void dmxc::cpu::planGemm(KernelPlan &plan, const GemmSpec &spec, const Choice &choice,
                         llvm::function_ref<Dim(const GemmTiles &)> workItems) {
  const Decided &decided = choice.decided;
  auto tilesAt = [](const GemmSpec &spec, const IsaLevel &isa, DictionaryAttr own) {
    return writeTiles(decidedGemmTiles(spec, isa, own), spec.accType.getContext());
  };
  planTiles<GemmSpec>(plan, spec, decided, tilesAt, gemmDecisions);
  if (!choice.chooses())
    return choice.readSizes(plan);
  GemmTiles nominal = decidedGemmTiles(spec, choice.level(), decided.at(choice.level()));
  plan.work = workItems(nominal);
  plan.grain = gemmGrain(spec, nominal);
  plan.scratch = choice.mostBytes([&](const IsaLevel &level) {
    return gemmScratchBytes(spec.at(level), decidedGemmTiles(spec, level, decided.at(level)));
  });
}
