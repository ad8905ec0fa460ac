//===- ConvDecisions.cpp - what of a convolution's blocking is free -----------===//

#include "ConvDecisions.h"
#include "ConvPlan.h"

#include "targets/cpu/product/GemmTile.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

namespace {

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
std::set<int64_t> unrollsOf(const ConvKernel &spec, int64_t preferred) {
  int64_t adjacent = spec.taps() == 1 ? spec.blockElements() : weightBlock(spec);
  int64_t channels = std::min(adjacent, spec.groupIc());
  std::set<int64_t> values{preferred};
  for (int64_t unroll = 1; unroll <= 16 && unroll < channels; unroll *= 2)
    values.insert(unroll);
  if (preferred < channels)
    values.insert(16);
  return values;
}

} // namespace

//===----------------------------------------------------------------------===//
// Direct sums
//===----------------------------------------------------------------------===//

ArrayRef<TileField<ConvTiles>> ConvTiles::fields() {
  static const TileField<ConvTiles> all[] = {
      {"rows", &ConvTiles::rows, "pixels of a register tile", Effect::Order},
      {"vectors", &ConvTiles::vectors, "vectors of output channels of a register tile", Effect::Order},
      {"sums", &ConvTiles::sums},
      {"unroll", &ConvTiles::unroll, "input channels of an iteration"},
      {"tiles_per_item", &ConvTiles::tilesPerItem, "register tiles of a row in a work item"},
      {"passes", &ConvTiles::passes, "16 input channels at a time go over a whole image", Effect::Order},
      {"prefetch", &ConvTiles::prefetch, "the next channels' weights are fetched meanwhile"}};
  return all;
}

/// Nothing is free where elements are fours or pairs.
static FreeTile<ConvTiles> freeTile(const ConvKernel &original, const IsaLevel &isa, DictionaryAttr decided) {
  ConvKernel spec = normalized(original);
  FreeTile<ConvTiles> free(isa.name, spec.accType.getContext(), decided);
  if (spec.fours || spec.pairs || spec.n == 0 || spec.ic == 0 || spec.oc == 0 || spec.outPositions() == 0)
    return free;
  auto tile = [&] { return chooseConvTiles(original, isa, free.decided()); };
  ConvTiles own = tile();
  bool isBroadcast = own.mode == ConvMode::Broadcast;
  free.add(&ConvTiles::rows, evenParts(spec.out[2], std::min<int64_t>(own.sums, 16)), own.rows);
  if (isBroadcast) {
    std::set<int64_t> counts = vectorsOf(own.lanes, spec.groups == 1 ? spec.oc : spec.groupOc(), spec.groups);
    free.add(&ConvTiles::vectors, counts, tile().vectors);
    free.add(&ConvTiles::unroll, unrollsOf(spec, own.unroll), own.unroll);
  }
  ConvTiles wide = tile();
  bool fits = spec.outPositions() * wide.columns() * spec.accType.getIntOrFloatBitWidth() / 8 <= kMostScratch;
  if (fits && canPass(spec, own.mode))
    free.add(&ConvTiles::passes, wide.passes);
  ConvTiles pass = tile();
  if (!pass.passes) {
    std::set<int64_t> parts = evenParts(tilesOfRow(spec, pass.rows), 64);
    std::erase_if(parts, [&](int64_t tiles) { return spec.turned && tiles * pass.rows > kMostTurned; });
    free.add(&ConvTiles::tilesPerItem, parts, pass.tilesPerItem);
  }
  // Else there is nothing that comes next, or parts of tiles are narrower than panels.
  bool ahead = pass.vectorsAtOnce(pass.rows) * pass.lanes >= 16 && spec.oc > pass.columns();
  if (isBroadcast && ahead)
    free.add(&ConvTiles::prefetch, pass.prefetch);
  return free;
}

ConvTiles dmxc::cpu::readConvTiles(DictionaryAttr tiles, const ConvKernel &spec, const IsaLevel &isa) {
  ConvTiles level;
  level.mode = convMode(normalized(spec));
  level.lanes = isa.lanes(spec.accType.getIntOrFloatBitWidth());
  level.words = widensFours(normalized(spec), isa);
  return readTile(tiles, level);
}

void dmxc::cpu::planDirectConv(KernelPlan &plan, const ConvKernel &spec, Dim images, const Choice &choice,
                               int64_t otherScratch) {
  auto tiles = planTiles<ConvTiles>(plan, spec, choice.decided, spec.accType.getContext(), freeTile, chooseConvTiles);
  if (!choice.chooses())
    return choice.readSizes(plan);
  ConvTiles nominal = tiles(choice.level());
  plan.work = convWorkItems(spec, nominal) * (spec.n < 0 ? images : Dim(1));
  plan.grain = convGrain(spec, nominal);
  plan.scratch =
      otherScratch + choice.mostBytes([&](const IsaLevel &level) { return convScratchBytes(spec, tiles(level)); });
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

ArrayRef<TileField<WinogradTiles>> WinogradTiles::fields() {
  static const TileField<WinogradTiles> all[] = {
      {"rows", &WinogradTiles::rows, "tiles of a register tile", Effect::Order},
      {"vectors", &WinogradTiles::vectors, "vectors of output channels of a register tile", Effect::Order},
      {"block_tiles", &WinogradTiles::blockTiles, "tiles of a block, transformed in scratch", Effect::Order}};
  return all;
}

static FreeTile<WinogradTiles> freeTile(const WinogradSpec &spec, const IsaLevel &isa, DictionaryAttr decided) {
  FreeTile<WinogradTiles> free(isa.name, spec.f32.getContext(), decided);
  auto tile = [&] { return chooseWinogradTiles(spec, isa, free.decided()); };
  WinogradTiles own = tile();
  free.add(&WinogradTiles::vectors, vectorsOf(own.lanes, spec.oc, 1), own.vectors);
  // Blocks of open sizes are whole register tiles; rows of others are shared out evenly in each block.
  auto addBlocks = [&] {
    WinogradTiles now = tile();
    free.add(&WinogradTiles::blockTiles, blocksOf(spec, now), now.blockTiles);
  };
  if (spec.isStatic())
    addBlocks();
  WinogradTiles wide = tile();
  free.add(&WinogradTiles::rows, winogradRowsOf(spec, wide, mostWinogradRows(isa, spec, wide.vectors)), wide.rows);
  if (!spec.isStatic())
    addBlocks();
  return free;
}

WinogradTiles dmxc::cpu::readWinogradTiles(DictionaryAttr tiles, const WinogradSpec &spec, const IsaLevel &isa) {
  WinogradTiles t = readTile(tiles, tilesOfImage(spec, isa));
  t.blocks = Dim::ceilDiv(t.imageTiles(), t.blockTiles);
  return t;
}

void dmxc::cpu::planWinograd(KernelPlan &plan, const WinogradSpec &spec, const Choice &choice) {
  auto tiles =
      planTiles<WinogradTiles>(plan, spec, choice.decided, spec.f32.getContext(), freeTile, chooseWinogradTiles);
  if (!choice.chooses())
    return choice.readSizes(plan);
  WinogradTiles nominal = tiles(choice.level());
  plan.work = winogradWorkItems(spec, nominal);
  plan.grain = winogradGrain(spec, nominal);
  plan.scratch = choice.mostBytes([&](const IsaLevel &level) { return winogradScratchBytes(spec, tiles(level)); });
}
