//===- TileProduct.cpp - f32 products by tiles in shared memory ---------------===//

#include "TileProduct.h"
#include "WindowTerms.h"

#include "schemas/cuda/Rates.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include <cmath>

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

/// From so many rows, columns and multiply-adds on it is worth copying tiles.
static constexpr int64_t kFewestRows = 4, kFewestColumns = 16, kWorth = int64_t{1} << 18,
                         kMostTableBytes = int64_t{1} << 17;
static constexpr int64_t kRows[] = {8, 16, 32, 64, 128}, kColumns[] = {64, 128};

ArrayRef<kernels::TileField<SumTile>> SumTile::fields() {
  static const kernels::TileField<SumTile> all[] = {
      {"rows", &SumTile::rows, "rows of a block's part of the result"},
      {"columns", &SumTile::columns, "columns of a block's part of the result"}};
  return all;
}

std::shared_ptr<const TileProduct> TileProduct::of(Operation *root) {
  if (!root || !Contraction::is(root))
    return nullptr;
  std::shared_ptr<TileProduct> found(new TileProduct(root));
  auto isOpen = [](const WindowAxis &axis) { return !axis.taps.isStatic(); };
  bool fits = found->lhs && found->rhs && !found->unclear && found->element.isF32() && found->lhsElement.isF32() &&
              found->rhsElement.isF32() && found->k.known().value_or(0) > 0 && !found->m.is(0) && !found->n.is(0) &&
              !found->batch.is(0) && !(found->windows && llvm::any_of(found->windows->axes, isOpen));
  if (!fits || found->tableBytes() > kMostTableBytes)
    return nullptr;
  found->joinRows();
  return found;
}

bool TileProduct::pays(const hw::Machine &machine) const {
  return nominally(m) >= kFewestRows && nominally(n) >= kFewestColumns && nominally(multiplyAdds()) >= kWorth &&
         clocks(machine, choose(machine, {})) < plainClocks(machine, op);
}

int64_t TileProduct::tableBytes() const {
  return windows && !windows->areImage() ? *k.known() * TermTable::entryBytes(*windows) : 0;
}

TileProduct::Side TileProduct::left() const {
  return {lhs->buffer, m, lhsRow, windows ? Dim(1) : lhs->strides.back(), lhs->offset, lhsBatch};
}

TileProduct::Side TileProduct::right() const {
  Side side{rhs->buffer, n, 0, 0, rhs->offset, rhsBatch};
  if (!windows) {
    side.rowStride = rhs->strides.back();
    side.kStride = rhs->strides[rhs->strides.size() - 2];
  } else if (windows->areImage()) {
    side.rowStride = windows->axes.back().apart;
    side.kStride = windows->channelsApart;
  } else {
    side.windows = &*windows;
  }
  return side;
}

Dim TileProduct::tiles(const SumTile &tile) const {
  return batch * Dim::ceilDiv(m, tile.rows) * Dim::ceilDiv(n, tile.columns);
}

/// Of the multiprocessor with the most blocks. A warp's step is so many instructions, behind which it waits for the
/// next step's terms, and for what it reads of shared memory term by term; other warps of its scheduler fill that.
double TileProduct::clocks(const hw::Machine &machine, const SumTile &tile) const {
  auto real = [](int64_t value) { return static_cast<double>(value); };
  constexpr double plainCopy = 10, windowCopy = 70, fewWarps = 12, manyWarps = 24;
  const hw::Machine::Clock &clock = machine.clock;
  double own = real(tile.own()), warps = real(tile.threads()) / 32, terms = real(tile.terms()),
         each = std::ceil(real(nominally(tiles(tile))) / machine.multiprocessors),
         steps = std::ceil(real(nominally(k)) / terms),
         copies = real(tile.rows) * plainCopy + real(tile.columns) * (tableBytes() ? windowCopy : plainCopy),
         issue = terms * (own * own + own / 2 + copies / real(tile.threads())),
         waits = clock.memoryLatency + terms * clock.sharedLatency,
         resident = std::clamp(std::floor((own > 4 ? fewWarps : manyWarps) / warps), 1.0, each),
         turns = std::max(1.0, resident * warps / hw::kSchedulers), reading = resident * terms * 2 * own * warps;
  return clock.launchClocks + 2 * clock.memoryLatency +
         std::ceil(each / resident) * steps * std::max({issue * turns, reading, issue + waits});
}

double dmxc::cuda::plainClocks(const hw::Machine &machine, Operation *product) {
  constexpr double ofElement = 150, ofMatrix = 20, ofWindows = 26, warp = 32;
  const ContractionSizes sizes = Contraction::ofWhole(product);
  auto real = [&](Dim size) { return static_cast<double>(std::max<int64_t>(nominal(product->getBlock(), size), 1)); };
  double depth = real(sizes.k), warps = real(sizes.batch * sizes.m * sizes.n) / warp,
         issue = warps * (ofElement + depth * (isa<dmir::ConvOp>(product) ? ofWindows : ofMatrix)) /
                 (machine.multiprocessors * hw::kSchedulers);
  return machine.clock.launchClocks + std::max(issue, depth * machine.clock.l2Latency);
}

SumTile TileProduct::cheapest(const hw::Machine &machine, const kernels::DecidedFields<SumTile> &decided) const {
  SumTile best;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t rows : kRows)
    for (int64_t columns : kColumns) {
      SumTile tile{decided[&SumTile::rows].value_or(rows), decided[&SumTile::columns].value_or(columns)};
      if (double own = clocks(machine, tile); own < 0.98 * least) {
        least = own;
        best = tile;
      }
    }
  return best;
}

kernels::FreeTile<SumTile> TileProduct::freeTile(const hw::Machine &machine, DictionaryAttr decided) const {
  kernels::FreeTile<SumTile> free("", op->getContext(), decided);
  auto chosen = [&] { return cheapest(machine, free.decided()); };
  free.add(&SumTile::rows, std::set<int64_t>(std::begin(kRows), std::end(kRows)), chosen().rows);
  free.add(&SumTile::columns, std::set<int64_t>(std::begin(kColumns), std::end(kColumns)), chosen().columns);
  return free;
}

SumTile TileProduct::choose(const hw::Machine &machine, DictionaryAttr decided) const {
  return cheapest(machine, freeTile(machine, decided).decided());
}

std::vector<Decision> TileProduct::decisions(const hw::Machine &machine, DictionaryAttr decided) const {
  return freeTile(machine, decided).take();
}

Result<SumTile> TileProduct::read(const hw::Machine &machine, Attribute written, StringRef key) const {
  auto own = dyn_cast_or_null<DictionaryAttr>(written);
  return freeTile(machine, own).read(written, key, choose(machine, own));
}

StringRef dmxc::cuda::tiledOf(Operation *product) {
  return isa<dmir::ConvOp>(product) ? StringRef(kConvByTiles) : StringRef(kByTiles);
}

KernelPlan dmxc::cuda::planTiles(const RegionBody &body, const std::shared_ptr<const TileProduct> &product,
                                 const SumTile &tile) {
  KernelPlan plan(tiledOf(body.root).str(), WorkPlan());
  plan.work = product->tiles(tile);
  plan.own.set(kTiles, writeTile(tile, body.root->getContext()));
  plan.launch = product->launch(tile);
  plan.emit = [body, product, tile](KernelBuilder &b) { emitTiles(CudaBuilder::of(b), body, *product, tile); };
  return plan;
}

Result<KernelPlan> dmxc::cuda::tilesIn(const RegionBody &body, const CudaRequest &request) {
  const std::string node = "node '" + dmir::nodeName(body.root) + "': ";
  std::shared_ptr<const TileProduct> product = TileProduct::of(body.root);
  if (!product)
    return modelError(node + "its strategy has the algorithm " + tiledOf(body.root).str() +
                      ", but it is no product of f32 whose operands are views of memory with a known number of terms; "
                      "leave the strategy out and it is derived");
  Result<SumTile> tile = product->read(request.machine, request.strategy.get(kTiles), kTiles);
  if (!tile)
    return modelError(node + tile.error().message);
  return planTiles(body, product, *tile);
}
