//===- GemmTile.cpp - how a product is cut for multiprocessors ----------------===//

#include "GemmTile.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

namespace {

constexpr int64_t kFewestStages = 2, kMostStages = 8, kUsualStages = 4;
constexpr int64_t kTileRows[] = {128, 64}, kTileColumns[] = {128, 64, 256}; ///< the first of equally good ones

int64_t stepsOf(int64_t k) { return llvm::divideCeil(std::max<int64_t>(k, 1), dmx::cuda::kTileRowElements); }

/// More slots than steps are of no use, but one more is there for the next tile.
int64_t chooseStages(const hw::Machine &machine, const GemmSizes &sizes, const GemmTile &tile) {
  return std::clamp(stepsOf(sizes.k) + 1, kFewestStages, std::min(kUsualStages, tile.mostStages(machine)));
}

} // namespace

double dmxc::cuda::gemmClocks(const hw::Machine &machine, const GemmSizes &sizes, const GemmTile &tile) {
  double tiles = static_cast<double>(sizes.batch) * llvm::divideCeil(std::max<int64_t>(sizes.m, 1), tile.rows) *
                 llvm::divideCeil(std::max<int64_t>(sizes.n, 1), tile.columns);
  double waves = std::ceil(tiles / machine.multiprocessors), busy = std::min<double>(tiles, machine.multiprocessors);
  double multiplications = static_cast<double>(tile.rows * tile.columns * dmx::cuda::kTileRowElements);
  // Multiprocessors without a tile leave their part of the second cache's bandwidth to others, up to twice as much.
  double bytes = machine.cacheBytesPerClock * std::min(2.0, machine.multiprocessors / busy);
  double step =
      std::max(multiplications / machine.multiplicationsPerClock, static_cast<double>(tile.slotBytes()) / bytes);
  double sums = machine.clocksFor128Sums * static_cast<double>(tile.rows * tile.columns) /
                (128 * static_cast<double>(tile.consumers()));
  return waves * (static_cast<double>(stepsOf(sizes.k)) * step + sums) + machine.startClocks;
}

ArrayRef<kernels::TileField<GemmTile>> GemmTile::fields() {
  static const kernels::TileField<GemmTile> all[] = {
      {"rows", &GemmTile::rows, "rows of a block's part of the result"},
      {"columns", &GemmTile::columns, "columns of a block's part of the result"},
      {"stages", &GemmTile::stages, "slots of operand tiles that a block keeps in flight"}};
  return all;
}

GemmTile dmxc::cuda::chooseGemmTile(const hw::Machine &machine, const GemmSizes &sizes,
                                    const kernels::DecidedFields<GemmTile> &decided) {
  std::optional<int64_t> ownRows = decided[&GemmTile::rows], ownColumns = decided[&GemmTile::columns];
  std::optional<GemmTile> best;
  for (int64_t rows : kTileRows)
    for (int64_t columns : kTileColumns) {
      GemmTile tile{ownRows.value_or(rows), ownColumns.value_or(columns)};
      tile.stages = std::min(kUsualStages, tile.mostStages(machine));
      if (!best || gemmClocks(machine, sizes, tile) < gemmClocks(machine, sizes, *best))
        best = tile;
    }
  best->stages = decided[&GemmTile::stages].value_or(chooseStages(machine, sizes, *best));
  return *best;
}

/// What is free, and what is decided of it.
static kernels::FreeTile<GemmTile> freeTile(const hw::Machine &machine, const GemmSizes &sizes, DictionaryAttr decided,
                                            MLIRContext *context) {
  kernels::FreeTile<GemmTile> free("", context, decided);
  auto tile = [&] { return chooseGemmTile(machine, sizes, free.decided()); };
  free.add(&GemmTile::rows, std::set<int64_t>(std::begin(kTileRows), std::end(kTileRows)), tile().rows);
  free.add(&GemmTile::columns, std::set<int64_t>(std::begin(kTileColumns), std::end(kTileColumns)), tile().columns);
  GemmTile cut = tile();
  free.add(&GemmTile::stages, Domain::range(context, kFewestStages, std::min(kMostStages, cut.mostStages(machine))),
           cut.stages);
  return free;
}

std::vector<Decision> dmxc::cuda::gemmDecisions(const hw::Machine &machine, const GemmSizes &sizes,
                                                DictionaryAttr decided, MLIRContext *context) {
  return freeTile(machine, sizes, decided, context).take();
}

GemmTile dmxc::cuda::decidedGemmTile(const hw::Machine &machine, const GemmSizes &sizes, DictionaryAttr decided,
                                     MLIRContext *context) {
  return chooseGemmTile(machine, sizes, freeTile(machine, sizes, decided, context).decided());
}

Result<GemmTile> dmxc::cuda::readGemmTile(const hw::Machine &machine, Attribute written, StringRef key,
                                          MLIRContext *context) {
  // What a tile may be does not rest on sizes.
  auto own = dyn_cast_or_null<DictionaryAttr>(written);
  kernels::FreeTile<GemmTile> free = freeTile(machine, {1, 1, 1, 1}, own, context);
  GemmTile tile = chooseGemmTile(machine, {1, 1, 1, 1}, free.decided());
  std::string wrong = kernels::wrongField(written, free.take(), kernels::writeTile(tile, context), key.str());
  if (!wrong.empty())
    return modelError(wrong);
  return tile;
}
