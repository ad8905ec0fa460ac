//===- GemmTile.cpp - how a product is cut for multiprocessors ----------------===//

#include "GemmTile.h"

#include "schemas/cuda/Rates.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

namespace {

/// Slots cover the time until bytes are there; a block has its multiprocessor alone, so that they take room from
/// nobody. By the clock more than six gain nothing.
constexpr int64_t kFewestStages = 2, kMostStages = 8, kUsualStages = 6;
constexpr int64_t kTileRows[] = {128, 64}, kTileColumns[] = {128, 64, 256}; ///< the first of equally good ones

int64_t stepsOf(int64_t k) { return llvm::divideCeil(std::max<int64_t>(k, 1), dmx::cuda::kTileRowElements); }

/// More slots than steps are of no use, but one more is there for the next tile.
int64_t chooseStages(const hw::Machine &machine, const GemmSizes &sizes, const GemmTile &tile) {
  return std::clamp(stepsOf(sizes.k) + 1, kFewestStages, std::min(kUsualStages, tile.mostStages(machine)));
}

} // namespace

namespace {

/// A tile's part of a product, as the simulator's clock will see it.
struct Expected {
  double rounds = 0, memory = 0; ///< clocks: of the multiprocessor with the most tiles; of the device's memory

  Expected(const hw::Machine &machine, const GemmSizes &sizes, const GemmTile &tile);
};

double area(int64_t rows, int64_t columns) { return static_cast<double>(rows) * static_cast<double>(columns); }

Expected::Expected(const hw::Machine &machine, const GemmSizes &sizes, const GemmTile &tile) {
  auto batch = static_cast<double>(sizes.batch), steps = static_cast<double>(stepsOf(sizes.k));
  double tiles = batch * area(llvm::divideCeil(std::max<int64_t>(sizes.m, 1), tile.rows),
                              llvm::divideCeil(std::max<int64_t>(sizes.n, 1), tile.columns));
  const double turns = std::ceil(tiles / machine.multiprocessors);
  GemmSizes::Steps of{turns * steps, tiles * steps};
  if (sizes.keptSteps)
    of = sizes.keptSteps(tile, machine.multiprocessors);
  // Bytes: of operands of 16 bits and results of 32, each once, and of those that all blocks ask for.
  auto slot = static_cast<double>(tile.slotBytes());
  double results = 4 * batch * area(sizes.m, sizes.n),
         once = 2 * batch * (area(sizes.m, sizes.k) + area(sizes.n, sizes.k)) + results,
         asked = of.all * slot + results;
  hw::SharedRates rates =
      hw::ratesOf(machine, std::min<double>(tiles, machine.multiprocessors), asked / std::max(once, 1.0));
  // Of a step's products each consumer does some; what arrives for a later step is written in between.
  constexpr int64_t depth = hw::kMmaDepth, times = hw::kTileRowElements / depth;
  auto products = static_cast<double>(times * tile.consumers());
  double arriving = slot / machine.clock.sharedBytesPerClock / products;
  double multiplying = products * hw::productClocks(machine, tile.columns, depth, false, true).taken(arriving);
  double step = std::max({multiplying, slot / rates.l2, slot / rates.dram});
  double sums =
      machine.clocksFor128Sums * area(tile.rows, tile.columns) / (128 * static_cast<double>(tile.consumers()));
  rounds = of.busiest * step + turns * sums;
  memory = once / hw::memoryBytesPerClock(machine);
}

} // namespace

double dmxc::cuda::gemmClocks(const hw::Machine &machine, const GemmSizes &sizes, const GemmTile &tile) {
  const hw::Machine::Clock &clock = machine.clock;
  Expected expected(machine, sizes, tile);
  return clock.launchClocks + clock.memoryLatency + clock.bulkLatency + clock.barrierLatency +
         std::max(expected.rounds, expected.memory);
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
  double least = 0;
  for (int64_t rows : kTileRows)
    for (int64_t columns : kTileColumns) {
      GemmTile tile{ownRows.value_or(rows), ownColumns.value_or(columns)};
      tile.stages = std::min(kUsualStages, tile.mostStages(machine));
      if (double rounds = Expected(machine, sizes, tile).rounds; !best || rounds < least) {
        best = tile;
        least = rounds;
      }
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

std::string dmxc::cuda::explainGemmTile(const hw::Machine &machine, const GemmSizes &sizes, DictionaryAttr decided,
                                        MLIRContext *context) {
  GemmTile chosen = decidedGemmTile(machine, sizes, decided, context);
  auto said = [&](const GemmTile &tile) {
    return std::to_string(std::llround(gemmClocks(machine, sizes, tile))) + " clocks with " +
           std::to_string(tile.rows) + " x " + std::to_string(tile.columns);
  };
  std::vector<std::pair<double, std::string>> others;
  for (int64_t rows : kTileRows)
    for (int64_t columns : kTileColumns)
      if (GemmTile tile{rows, columns}; rows != chosen.rows || columns != chosen.columns)
        others.emplace_back(gemmClocks(machine, sizes, tile), said(tile));
  llvm::stable_sort(others, [](const auto &a, const auto &b) { return a.first < b.first; });
  std::string text = said(chosen) + " expected; else ";
  for (const auto &[clocks, other] : others)
    text += (&other == &others.front().second ? "" : ", ") + other;
  return text;
}

Result<GemmTile> dmxc::cuda::readGemmTile(const hw::Machine &machine, Attribute written, StringRef key,
                                          MLIRContext *context) {
  // What a tile may be does not rest on sizes.
  auto own = dyn_cast_or_null<DictionaryAttr>(written);
  kernels::FreeTile<GemmTile> free = freeTile(machine, {1, 1, 1, 1}, own, context);
  return free.read(written, key, chooseGemmTile(machine, {1, 1, 1, 1}, free.decided()));
}
