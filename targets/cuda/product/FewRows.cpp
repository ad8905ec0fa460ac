//===- FewRows.cpp - products of few rows with a constant matrix --------------===//

#include "FewRows.h"

#include "schemas/cuda/Rates.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
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
  if (SmallVector<Operation *> ops = normBefore(op); !ops.empty())
    found.norm = ops.front();
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

SmallVector<Operation *> dmxc::cuda::normBefore(Operation *product) {
  constexpr size_t most = 5;
  constexpr int64_t mostTerms = 16384;
  SmallVector<Operation *> ops;
  if (!isa<dmir::MatMulOp>(product))
    return ops;
  Value value = product->getOperand(0);
  for (Operation *op; (op = value.getDefiningOp()) && ops.size() < most && value.hasOneUse();) {
    ops.insert(ops.begin(), op);
    SmallVector<Dim> dims = dmir::dimsOf(op->getResult(0));
    if (auto norm = dyn_cast<dmir::NormalizeOp>(op)) {
      bool ofRows = norm.getAxes() == ArrayRef<int64_t>{static_cast<int64_t>(dims.size()) - 1} &&
                    dims.back().known().value_or(mostTerms + 1) <= mostTerms &&
                    isPlainFloat(elementOf(norm.getInput()));
      return ofRows ? ops : SmallVector<Operation *>();
    }
    auto isWhole = [&](Value operand) {
      Operation *made = operand.getDefiningOp();
      return made && (made->hasTrait<dmir::Elementwise>() || isa<dmir::NormalizeOp>(made)) &&
             dmir::dimsOf(operand) == dims;
    };
    auto next = llvm::find_if(op->getOperands(), isWhole);
    if (!op->hasTrait<dmir::Elementwise>() || op->getNumResults() != 1 || next == op->operand_end())
      break;
    value = *next;
  }
  return {};
}

bool dmxc::cuda::waitsForMatrix(Operation *op) {
  auto product = dyn_cast<dmir::MatMulOp>(op);
  if (!product || !dmir::isConstant(product.getRhs()) || rowsOf(op) > kFewRows)
    return false;
  auto isFit = [](Value value) { return isPlainFloat(elementOf(value)); };
  SmallVector<Dim> dims = dmir::dimsOf(product.getRhs());
  bool isMatrix = llvm::all_of(ArrayRef(dims).drop_back(2), [](Dim dim) { return dim.is(1); });
  return isMatrix && llvm::all_of(op->getOperands(), isFit) && isFit(product.getResult()) &&
         dmir::elementsOf(product.getRhs().getType()).known().value_or(0) >= kWorth;
}

int64_t FewRows::nominalRows() const { return std::max<int64_t>(nominal(op->getBlock(), rows), 1); }

bool FewRows::pays() const { return norm || (nominalRows() <= kFewRows && n * k >= kWorth); }

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

FewTile FewRows::cheapest(const hw::Machine &machine, const kernels::DecidedFields<FewTile> &decided) const {
  FewTile best;
  double least = std::numeric_limits<double>::infinity();
  int64_t most = std::min<int64_t>(nominalRows(), 16);
  auto sizes = [&](int64_t FewTile::*field, int64_t upTo) {
    std::set<int64_t> all = sizesTo(upTo);
    if (field == &FewTile::rows)
      all.insert(most);
    return decided[field] ? std::set<int64_t>{*decided[field]} : all;
  };
  for (int64_t rows : sizes(&FewTile::rows, most))
    for (int64_t warps : sizes(&FewTile::warps, 16))
      for (int64_t columns : sizes(&FewTile::columns, std::min<int64_t>(kMostSums / rows, 8)))
        for (int64_t together : sizes(&FewTile::together, std::min(warps, kMostSums / rows)))
          if (FewTile tile{rows, columns, together, warps}; clocks(machine, tile) < 0.98 * least) {
            least = clocks(machine, tile);
            best = tile;
          }
  return best;
}

kernels::FreeTile<FewTile> FewRows::freeTile(const hw::Machine &machine, DictionaryAttr decided) const {
  kernels::FreeTile<FewTile> free("", op->getContext(), decided);
  auto chosen = [&] { return cheapest(machine, free.decided()); };
  free.add(&FewTile::rows, sizesTo(16), chosen().rows);
  free.add(&FewTile::warps, sizesTo(16), chosen().warps);
  FewTile tile = chosen();
  free.add(&FewTile::columns, sizesTo(std::min<int64_t>(kMostSums / tile.rows, 8)), tile.columns);
  free.add(&FewTile::together, sizesTo(std::min(tile.warps, kMostSums / tile.rows)), chosen().together);
  return free;
}

FewTile FewRows::choose(const hw::Machine &machine, DictionaryAttr decided) const {
  return cheapest(machine, freeTile(machine, decided).decided());
}

std::vector<Decision> FewRows::decisions(const hw::Machine &machine, DictionaryAttr decided) const {
  return freeTile(machine, decided).take();
}

Result<FewTile> FewRows::read(const hw::Machine &machine, Attribute written, StringRef key) const {
  auto own = dyn_cast_or_null<DictionaryAttr>(written);
  return freeTile(machine, own).read(written, key, choose(machine, own));
}
