//===- ConvDecisions.cpp - what of a convolution's blocking is free -----------===//

#include "ConvDecisions.h"
#include "ConvPlan.h"

#include "targets/cpu/TileDecisions.h"
#include "targets/cpu/product/GemmTile.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

namespace {

constexpr StringLiteral kRows = "rows", kVectors = "vectors", kUnroll = "unroll", kTilesPerItem = "tiles_per_item",
                        kPasses = "passes", kPrefetch = "prefetch", kSums = "sums", kBlockTiles = "block_tiles";
constexpr int64_t kMostScratch = 4 << 20; ///< that a decision may ask for

/// Vectors of output channels: whole panels or parts of one, no more than there are channels, and of a group alone.
std::set<int64_t> vectorsOf(int64_t lanes, int64_t channels, int64_t groups) {
  std::set<int64_t> counts;
  for (int64_t vectors = 1; vectors <= std::min<int64_t>(4, ceilDivInt(channels, lanes)); ++vectors)
    if (fitsPanels(vectors * lanes) && (groups == 1 || channels % (vectors * lanes) == 0))
      counts.insert(vectors);
  return counts;
}

/// Input channels of an iteration: powers of two up to those that are adjacent. `preferred` may go beyond all of them,
/// which is the same as the last.
std::set<int64_t> unrollsOf(const ConvSpec &spec, int64_t preferred) {
  int64_t adjacent = spec.taps() == 1 ? spec.blockElements() : weightBlock(spec);
  int64_t channels = std::min(adjacent, spec.groupIc());
  std::set<int64_t> values{preferred};
  for (int64_t unroll = 1; unroll <= 16 && unroll < channels; unroll *= 2)
    values.insert(unroll);
  if (preferred < channels)
    values.insert(16);
  return values;
}

ConvChoice convChoiceOf(DictionaryAttr decided) {
  ConvChoice choice{numberIn(decided, kRows), numberIn(decided, kVectors), numberIn(decided, kUnroll),
                    numberIn(decided, kTilesPerItem)};
  choice.passes = flagIn(decided, kPasses);
  choice.prefetch = flagIn(decided, kPrefetch);
  return choice;
}

WinogradChoice winogradChoiceOf(DictionaryAttr decided) {
  return {numberIn(decided, kRows), numberIn(decided, kVectors), numberIn(decided, kBlockTiles)};
}

} // namespace

//===----------------------------------------------------------------------===//
// Direct sums
//===----------------------------------------------------------------------===//

std::vector<Decision> dmxc::cpu::convDecisions(const ConvSpec &original, const IsaLevel &isa, DictionaryAttr decided) {
  ConvSpec spec = normalized(original);
  if (spec.fours || spec.n == 0 || spec.ic == 0 || spec.oc == 0 || spec.outPositions() == 0)
    return {};
  FreeTiles free(isa, spec.accType.getContext(), decided);
  auto with = [&](ConvChoice part) { return completeConvTiles(original, isa, part); };
  ConvTiles own = with({});
  bool isBroadcast = own.mode == ConvMode::Broadcast;
  ConvChoice choice;
  choice.rows = free.number(kRows, evenParts(spec.out[2], std::min<int64_t>(own.sums, 16)), own.rows, Effect::Order,
                            "pixels of a register tile");
  ConvTiles rows = with(choice);
  if (isBroadcast) {
    std::set<int64_t> counts = vectorsOf(own.lanes, spec.groups == 1 ? spec.oc : spec.groupOc(), spec.groups);
    choice.vectors =
        free.number(kVectors, counts, rows.vectors, Effect::Order, "vectors of output channels of a register tile");
    free.number(kUnroll, unrollsOf(spec, own.unroll), own.unroll, Effect::Bits, "input channels of an iteration");
  }
  ConvTiles tile = with(choice);
  bool fits = spec.outPositions() * tile.columns() * spec.accType.getIntOrFloatBitWidth() / 8 <= kMostScratch;
  if (fits && canPass(spec, own.mode))
    choice.passes = free.flag(kPasses, tile.passes, Effect::Order, "16 input channels at a time go over a whole image");
  ConvTiles pass = with(choice);
  if (!pass.passes)
    free.number(kTilesPerItem, evenParts(tilesOfRow(spec, pass.rows), 64), pass.tilesPerItem, Effect::Bits,
                "register tiles of a row in a work item");
  // Else there is nothing that comes next, or parts of tiles are narrower than panels.
  bool ahead = pass.vectorsAtOnce(pass.rows) * pass.lanes >= 16 && spec.oc > pass.columns();
  if (isBroadcast && ahead)
    free.flag(kPrefetch, pass.prefetch, Effect::Bits, "the next channels' weights are fetched meanwhile");
  return free.take();
}

ConvTiles dmxc::cpu::decidedConvTiles(const ConvSpec &spec, const IsaLevel &isa, DictionaryAttr decided) {
  return completeConvTiles(spec, isa, convChoiceOf(ofDomains(convDecisions(spec, isa, decided), decided)));
}

/// What a strategy keeps of tiles; the rest follows from the level.
static void eachConvField(auto &tiles, auto &&visit) {
  visit(kRows, tiles.rows);
  visit(kVectors, tiles.vectors);
  visit(kSums, tiles.sums);
  visit(kUnroll, tiles.unroll);
  visit(kTilesPerItem, tiles.tilesPerItem);
  visit(kPasses, tiles.passes);
  visit(kPrefetch, tiles.prefetch);
}

DictionaryAttr dmxc::cpu::writeTiles(const ConvTiles &tiles, MLIRContext *context) {
  TileWriter writer(context);
  eachConvField(tiles, writer);
  return writer.take();
}

ConvTiles dmxc::cpu::readConvTiles(DictionaryAttr tiles, const ConvSpec &spec, const IsaLevel &isa) {
  ConvTiles t;
  t.mode = convMode(normalized(spec));
  t.lanes = isa.lanes(spec.accType.getIntOrFloatBitWidth());
  eachConvField(t, TileReader(tiles));
  return t;
}

void dmxc::cpu::planDirectConv(KernelPlan &plan, const ConvSpec &spec, const Choice &choice, int64_t otherScratch) {
  const Decided &decided = choice.decided;
  auto chosen = [spec, decided](const IsaLevel &isa) { return decidedConvTiles(spec, isa, decided.at(isa)); };
  auto tilesAt = [](const ConvSpec &spec, const IsaLevel &isa, DictionaryAttr own) {
    return writeTiles(decidedConvTiles(spec, isa, own), spec.accType.getContext());
  };
  planTiles<ConvSpec>(plan, spec, decided, tilesAt, convDecisions);
  if (!choice.chooses())
    return choice.readSizes(plan);
  ConvTiles nominal = chosen(choice.level());
  plan.work = convWorkItems(spec, nominal);
  plan.grain = convGrain(spec, nominal);
  plan.scratch =
      otherScratch + choice.mostBytes([&](const IsaLevel &level) { return convScratchBytes(spec, chosen(level)); });
}

//===----------------------------------------------------------------------===//
// Minimal filtering
//===----------------------------------------------------------------------===//

/// Tiles of a block whose transformed inputs and sums are no more than scratch may have; few, or all of an image.
static std::set<int64_t> blocksOf(const WinogradSpec &spec, WinogradTiles tile) {
  constexpr int64_t fewest = 4, most = 112;
  std::set<int64_t> blocks;
  auto add = [&](int64_t count) {
    tile.blockTiles = count;
    if (winogradScratchBytes(spec, tile) <= kMostScratch)
      blocks.insert(count);
  };
  if (std::optional<int64_t> tiles = tile.imageTiles().known()) {
    for (int64_t count : evenParts(*tiles, std::min(most, *tiles)))
      if (count >= std::min(*tiles, fewest))
        add(count);
    add(*tiles);
  } else {
    for (int64_t count = tile.rows; count <= most; count += tile.rows)
      add(count);
  }
  return blocks;
}

/// Rows of register tiles, up to `most`. Of those that cut the tiles of a block in as many parts one is enough.
static std::set<int64_t> winogradRowsOf(const WinogradSpec &spec, const WinogradTiles &tile, int64_t most) {
  std::set<int64_t> rows;
  if (!spec.isStatic()) { // rests are cut in tiles of 2 and of half the rows
    for (int64_t count = 4; count <= most; ++count)
      rows.insert(count);
    return rows;
  }
  auto partsOf = [counts = tilesAtOnce(spec, tile)](int64_t rows) {
    std::vector<int64_t> parts;
    for (int64_t count : counts)
      parts.push_back(ceilDivInt(count, rows));
    return parts;
  };
  std::set<std::vector<int64_t>> seen{partsOf(tile.rows)};
  for (int64_t count = 1; count <= most; ++count)
    if (seen.insert(partsOf(count)).second)
      rows.insert(count);
  return rows;
}

std::vector<Decision> dmxc::cpu::winogradDecisions(const WinogradSpec &spec, const IsaLevel &isa,
                                                   DictionaryAttr decided) {
  FreeTiles free(isa, spec.f32.getContext(), decided);
  WinogradChoice choice;
  WinogradTiles own = completeWinogradTiles(spec, isa, {});
  choice.vectors = free.number(kVectors, vectorsOf(own.lanes, spec.oc, 1), own.vectors, Effect::Order,
                               "vectors of output channels of a register tile");
  // Blocks of open sizes are whole register tiles; rows of others are shared out evenly in each block.
  auto blocks = [&] {
    WinogradTiles tile = completeWinogradTiles(spec, isa, choice);
    choice.blockTiles = free.number(kBlockTiles, blocksOf(spec, tile), tile.blockTiles, Effect::Order,
                                    "tiles of a block, transformed in scratch");
  };
  if (spec.isStatic())
    blocks();
  WinogradTiles wide = completeWinogradTiles(spec, isa, choice);
  choice.rows = free.number(kRows, winogradRowsOf(spec, wide, mostWinogradRows(isa, spec, wide.vectors)), wide.rows,
                            Effect::Order, "tiles of a register tile");
  if (!spec.isStatic())
    blocks();
  return free.take();
}

WinogradTiles dmxc::cpu::decidedWinogradTiles(const WinogradSpec &spec, const IsaLevel &isa, DictionaryAttr decided) {
  return completeWinogradTiles(spec, isa, winogradChoiceOf(ofDomains(winogradDecisions(spec, isa, decided), decided)));
}

/// What a strategy keeps of tiles; the rest follows from the level and the image.
static void eachWinogradField(auto &tiles, auto &&visit) {
  visit(kRows, tiles.rows);
  visit(kVectors, tiles.vectors);
  visit(kBlockTiles, tiles.blockTiles);
}

DictionaryAttr dmxc::cpu::writeTiles(const WinogradTiles &tiles, MLIRContext *context) {
  TileWriter writer(context);
  eachWinogradField(tiles, writer);
  return writer.take();
}

WinogradTiles dmxc::cpu::readWinogradTiles(DictionaryAttr tiles, const WinogradSpec &spec, const IsaLevel &isa) {
  WinogradTiles t = tilesOfImage(spec, isa);
  eachWinogradField(t, TileReader(tiles));
  t.blocks = Dim::ceilDiv(t.imageTiles(), t.blockTiles);
  return t;
}

void dmxc::cpu::planWinograd(KernelPlan &plan, const WinogradSpec &spec, const Choice &choice) {
  const Decided &decided = choice.decided;
  auto chosen = [spec, decided](const IsaLevel &isa) { return decidedWinogradTiles(spec, isa, decided.at(isa)); };
  auto tilesAt = [](const WinogradSpec &spec, const IsaLevel &isa, DictionaryAttr own) {
    return writeTiles(decidedWinogradTiles(spec, isa, own), spec.f32.getContext());
  };
  planTiles<WinogradSpec>(plan, spec, decided, tilesAt, winogradDecisions);
  if (!choice.chooses())
    return choice.readSizes(plan);
  WinogradTiles nominal = chosen(choice.level());
  plan.work = winogradWorkItems(spec, nominal);
  plan.grain = winogradGrain(spec, nominal);
  plan.scratch = choice.mostBytes([&](const IsaLevel &level) { return winogradScratchBytes(spec, chosen(level)); });
}
