//===- GemmTile.cpp - how a product is cut for multiprocessors ----------------===//

#include "GemmTile.h"

#include "mlir/IR/Builders.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

namespace {

constexpr StringLiteral kTile = "tile", kStages = "stages";
constexpr int64_t kFewestStages = 2, kMostStages = 8, kUsualStages = 4;
constexpr int64_t kTileRows[] = {128, 64}, kTileColumns[] = {128, 64, 256};

/// Of a multiprocessor in a clock: multiplications of 16-bit floats (989 TFLOP/s by 132 and 1.83 GHz), bytes from the
/// second cache, which is near 5.5 TB/s. Clocks before the first product of a tile and for 128 of its sums.
constexpr double kMultiplications = 2048, kBytes = 23, kStart = 1500, kSums = 12;

std::vector<GemmTile> allTiles() {
  std::vector<GemmTile> tiles;
  for (int64_t rows : kTileRows)
    for (int64_t columns : kTileColumns) {
      GemmTile tile{rows, columns};
      tile.stages = std::min(kUsualStages, tile.mostStages());
      tiles.push_back(tile);
    }
  return tiles;
}

std::optional<GemmTile> tileOfName(StringRef name) {
  for (const GemmTile &tile : allTiles())
    if (name == tile.name())
      return tile;
  return std::nullopt;
}

int64_t stepsOf(int64_t k) { return llvm::divideCeil(std::max<int64_t>(k, 1), dmx::cuda::kTileRowElements); }

/// More slots than steps are of no use, but one more is there for the next tile.
int64_t chooseStages(const GemmSizes &sizes, const GemmTile &tile) {
  return std::clamp(stepsOf(sizes.k) + 1, kFewestStages, std::min(kUsualStages, tile.mostStages()));
}

} // namespace

int64_t GemmTile::mostStages() const { return std::min(kMostStages, dmx::cuda::kMostShared / (slotBytes() + 16)); }

double dmxc::cuda::gemmClocks(const GemmSizes &sizes, const GemmTile &tile) {
  double tiles = static_cast<double>(sizes.batch) * llvm::divideCeil(std::max<int64_t>(sizes.m, 1), tile.rows) *
                 llvm::divideCeil(std::max<int64_t>(sizes.n, 1), tile.columns);
  double waves = std::ceil(tiles / kMultiprocessors), busy = std::min<double>(tiles, kMultiprocessors);
  double multiplications = static_cast<double>(tile.rows * tile.columns * dmx::cuda::kTileRowElements);
  // Multiprocessors without a tile leave their part of the second cache's bandwidth to others, up to twice as much.
  double bytes = kBytes * std::min(2.0, kMultiprocessors / busy);
  double step = std::max(multiplications / kMultiplications, static_cast<double>(tile.slotBytes()) / bytes);
  double sums = kSums * static_cast<double>(tile.rows * tile.columns) / (128 * static_cast<double>(tile.consumers()));
  return waves * (static_cast<double>(stepsOf(sizes.k)) * step + sums) + kStart;
}

GemmTile dmxc::cuda::chooseGemmTile(const GemmSizes &sizes) {
  std::vector<GemmTile> tiles = allTiles();
  GemmTile best = *std::ranges::min_element(tiles, {}, [&](const GemmTile &tile) { return gemmClocks(sizes, tile); });
  best.stages = chooseStages(sizes, best);
  return best;
}

static StringRef textIn(DictionaryAttr decided, StringRef name) {
  auto text = decided ? decided.getAs<StringAttr>(name) : StringAttr();
  return text ? text.getValue() : StringRef();
}

GemmTile dmxc::cuda::decidedGemmTile(const GemmSizes &sizes, DictionaryAttr decided, MLIRContext *context) {
  GemmTile tile = chooseGemmTile(sizes);
  if (std::optional<GemmTile> asked = tileOfName(textIn(decided, kTile))) {
    tile = *asked;
    tile.stages = chooseStages(sizes, tile);
  }
  auto stages = decided ? decided.getAs<IntegerAttr>(kStages) : IntegerAttr();
  if (stages && stages.getInt() >= kFewestStages && stages.getInt() <= tile.mostStages())
    tile.stages = stages.getInt();
  return tile;
}

std::vector<Decision> dmxc::cuda::gemmDecisions(const GemmSizes &sizes, DictionaryAttr decided, MLIRContext *context) {
  Builder b(context);
  SmallVector<Attribute> names;
  for (const GemmTile &tile : allTiles())
    names.push_back(b.getStringAttr(tile.name()));
  GemmTile tile = decidedGemmTile(sizes, decided, context);
  int64_t stages = chooseStages(sizes, tile);
  return {{kTile.str(), "", Domain::oneOf(names), b.getStringAttr(chooseGemmTile(sizes).name()), Effect::Bits,
           "rows and columns of a block's part of the result"},
          {kStages.str(), "", Domain::range(context, kFewestStages, tile.mostStages()), b.getI64IntegerAttr(stages),
           Effect::Bits, "slots of operand tiles that a block keeps in flight"}};
}

DictionaryAttr dmxc::cuda::writeGemmTile(const GemmTile &tile, MLIRContext *context) {
  Builder b(context);
  return b.getDictionaryAttr(
      {b.getNamedAttr(kTile, b.getStringAttr(tile.name())), b.getNamedAttr(kStages, b.getI64IntegerAttr(tile.stages))});
}

std::optional<GemmTile> dmxc::cuda::readGemmTile(Attribute written) {
  auto own = dyn_cast_or_null<DictionaryAttr>(written);
  std::optional<GemmTile> tile = tileOfName(textIn(own, kTile));
  auto stages = own ? own.getAs<IntegerAttr>(kStages) : IntegerAttr();
  if (!tile || !stages || stages.getInt() < kFewestStages || stages.getInt() > tile->mostStages())
    return std::nullopt;
  tile->stages = stages.getInt();
  return tile;
}
