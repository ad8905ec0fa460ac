//===- FewRows.cpp - products of few rows with a constant matrix --------------===//

#include "FewRows.h"

#include "schemas/cuda/Rates.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include <cmath>

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

namespace {

/// From so many elements of a matrix on it is worth packing.
constexpr int64_t kWorth = int64_t{1} << 16;
/// Sums that a thread has at a time, and bytes of rows that a block keeps.
constexpr int64_t kMostSums = 64, kMostRowBytes = int64_t{1} << 16;
constexpr int64_t kSizes[] = {1, 2, 4, 8, 16};

bool isPlainFloat(Type type) { return type.isF32() || type.isF16() || type.isBF16(); }

std::set<int64_t> sizesTo(int64_t most) {
  std::set<int64_t> all;
  for (int64_t size : kSizes)
    if (size <= most)
      all.insert(size);
  return all;
}

} // namespace

ArrayRef<kernels::TileField<FewTile>> FewTile::fields() {
  static const kernels::TileField<FewTile> all[] = {
      {"rows", &FewTile::rows, "rows of the result that a block has at a time"},
      {"columns", &FewTile::columns, "columns that a warp has at a time"},
      {"together", &FewTile::together, "warps that share a column's terms", Effect::Order},
      {"warps", &FewTile::warps, "warps of a block"}};
  return all;
}

std::optional<FewRows> FewRows::of(const RegionBody &body, llvm::function_ref<bool(unsigned)> constant) {
  FewRows found;
  auto op = dyn_cast_or_null<dmir::MatMulOp>(body.root);
  if (!op)
    return std::nullopt;
  found.op = op;
  found.left = op.getLhs();
  found.result = op.getResult();
  found.element = elementOf(op.getRhs());
  Type left = elementOf(found.left), result = elementOf(found.result);
  std::optional<StridedView> matrix = stridedView(op.getRhs());
  SmallVector<Dim> dims = dmir::dimsOf(op.getRhs()), whole = dmir::dimsOf(found.result);
  bool isOne = llvm::all_of(ArrayRef(dims).drop_back(2), [](Dim dim) { return dim.is(1); });
  if (!isPlainFloat(found.element) || !isPlainFloat(left) || !isPlainFloat(result) || !matrix || !isOne ||
      whole.size() < 2 || !dims.back().known() || !dims[dims.size() - 2].known() || !matrix->offset.known())
    return std::nullopt;
  found.n = *dims.back().known();
  found.k = *dims[dims.size() - 2].known();
  found.buffer = matrix->buffer;
  found.offset = matrix->offset;
  found.strides.assign(matrix->strides.end() - 2, matrix->strides.end());
  found.rows = dmir::product(ArrayRef(whole).drop_back());
  BlockArgument buffer = body.block->getArgument(found.buffer);
  bool packs = buffer.hasOneUse() && constant(found.buffer) &&
               llvm::all_of(found.strides, [](Dim stride) { return stride.known().has_value(); });
  if (!packs || elementOf(buffer) != found.element || found.n < 1 || found.k < 1 || found.rows.is(0))
    return std::nullopt;
  return found;
}

int64_t FewRows::nominalRows() const { return std::max<int64_t>(nominal(op->getBlock(), rows), 1); }

bool FewRows::pays() const { return nominalRows() <= kFewRows && n * k >= kWorth; }

int64_t FewRows::chunk(const FewTile &tile) const {
  int64_t most = std::max<int64_t>(kMostRowBytes / (step(tile) * tile.rows * 4), 1);
  return std::min(most, static_cast<int64_t>(llvm::divideCeil(k, step(tile))));
}

Dim FewRows::blocks(const FewTile &tile) const { return Dim::ceilDiv(rows, tile.rows) * Dim::ceilDiv(n, tile.wide()); }

DictionaryAttr FewRows::packedForm(MLIRContext *context) const {
  return columnsForm(context, {k, n, *offset.known(), *strides[0].known(), *strides[1].known(), pitch()},
                     elementBytes());
}

/// Of the multiprocessor with the most blocks: its loads, its instructions, and how often it waits for memory.
double FewRows::clocks(const hw::Machine &machine, const FewTile &tile) const {
  const hw::Machine::Clock &clock = machine.clock;
  auto real = [](int64_t value) { return static_cast<double>(value); };
  double items = std::ceil(real(nominalRows()) / real(tile.rows)), terms = real(pitch()),
         blocks = items * std::ceil(real(n) / real(tile.wide())), all = real(machine.multiprocessors),
         each = std::ceil(blocks / all), matrix = real(n) * terms * real(elementBytes()),
         ofBlock = real(tile.wide()) * terms * real(elementBytes()) + real(tile.rows) * terms * 4,
         once = matrix + real(nominalRows()) * terms * 4;
  hw::SharedRates rates = hw::ratesOf(machine, std::min(blocks, all), std::max(blocks * ofBlock / once, 1.0));
  double moving = each * ofBlock * std::max(1 / rates.l2, 1 / rates.dram);
  // Of a load: itself, its numbers, and for each row those of the row and the products.
  double steps = std::ceil(terms / real(step(tile))), vectors = real(vector()), columns = real(tile.columns),
         load = columns * (1 + vectors) + real(tile.rows) * (vectors / 4 + columns * vectors),
         sums = real(tile.rows) * columns * 12, put = real(tile.rows) * terms / real(tile.threads()) * 8;
  constexpr double schedulers = 4;
  double issue = each * real(tile.warps) * (steps * load + sums + put) / schedulers;
  double resident = std::max(1.0, std::min(std::floor(clock.threads / real(tile.threads())),
                                           std::floor(real(machine.mostShared) / real(sharedBytes(tile)))));
  // A block waits for its rows, some loads of each thread at a time, and then for all of the matrix but the first
  // loads.
  double chunks = std::ceil(steps / real(chunk(tile))), own = std::min(steps, real(chunk(tile))),
         forRows = std::ceil(real(tile.rows) * own * real(step(tile)) / real(tile.threads() * FewTile::kRowLoads)),
         forMatrix = std::ceil(own / std::max(1.0, std::floor(FewTile::kLoads / columns))) - 1;
  double waits =
      std::ceil(each / resident) * chunks * (forRows * clock.l2Latency + (1 + forMatrix) * clock.memoryLatency);
  return clock.launchClocks + std::max({moving, issue, once / hw::memoryBytesPerClock(machine)}) + waits;
}

FewTile FewRows::choose(const hw::Machine &machine, DictionaryAttr decided) const {
  return kernels::readTile(decided, [&] {
    std::optional<FewTile> best;
    double least = 0;
    int64_t most = std::min<int64_t>(nominalRows(), 16);
    FewTile asked = kernels::readTile(decided, FewTile{0, 0, 0, 0});
    auto is = [](int64_t asked, int64_t value) { return !asked || asked == value; };
    std::set<int64_t> rows = sizesTo(most);
    rows.insert({most, asked.rows ? asked.rows : most});
    for (int64_t own : rows)
      for (int64_t warps : kSizes)
        for (int64_t columns : sizesTo(std::min<int64_t>(kMostSums / own, 8)))
          for (int64_t together : sizesTo(std::min(warps, kMostSums / own))) {
            FewTile tile{own, columns, together, warps};
            if (!is(asked.rows, own) || !is(asked.warps, warps) || !is(asked.columns, columns) ||
                !is(asked.together, together))
              continue;
            if (double expected = clocks(machine, tile); !best || expected < 0.98 * least) {
              best = tile;
              least = expected;
            }
          }
    return best.value_or(FewTile());
  }());
}

kernels::FreeTile<FewTile> FewRows::freeTile(const hw::Machine &machine, DictionaryAttr decided) const {
  kernels::FreeTile<FewTile> free("", op->getContext(), decided);
  auto chosen = [&] {
    NamedAttrList known;
    for (const kernels::TileField<FewTile> &field : FewTile::fields())
      if (auto member = std::get<int64_t FewTile::*>(field.member); auto value = free.decided()[member])
        known.set(field.key, kernels::tileValue(*value, op->getContext()));
    return choose(machine, known.getDictionary(op->getContext()));
  };
  free.add(&FewTile::rows, sizesTo(16), chosen().rows);
  free.add(&FewTile::warps, sizesTo(16), chosen().warps);
  FewTile tile = chosen();
  free.add(&FewTile::columns, sizesTo(std::min<int64_t>(kMostSums / tile.rows, 8)), tile.columns);
  free.add(&FewTile::together, sizesTo(std::min(tile.warps, kMostSums / tile.rows)), chosen().together);
  return free;
}

std::vector<Decision> FewRows::decisions(const hw::Machine &machine, DictionaryAttr decided) const {
  return freeTile(machine, decided).take();
}

Result<FewTile> FewRows::read(const hw::Machine &machine, Attribute written, StringRef key) const {
  auto own = dyn_cast_or_null<DictionaryAttr>(written);
  FewTile tile = choose(machine, own);
  std::string wrong = kernels::wrongField(written, freeTile(machine, own).take(),
                                          kernels::writeTile(tile, op->getContext()), key.str());
  if (!wrong.empty())
    return modelError(wrong);
  return tile;
}
