//===- FewQueries.cpp - attention of few rows ---------------------------------===//

#include "FewQueries.h"

#include "schemas/cuda/Rates.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include <cmath>

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

namespace {

/// Floats of a thread that its rows may take: parts of scores, of queries and of results.
constexpr int64_t kMostParts = 96, kMostRows = 8, kMostWarps = 8;

ArrayRef<Dim> batchOf(ArrayRef<Dim> dims) { return dims.drop_back(2); }

/// Batch items that follow each other and have one matrix of an operand.
int64_t sharing(ArrayRef<Dim> own, ArrayRef<Dim> whole) {
  int64_t share = 1;
  for (size_t i = 0; i < whole.size(); ++i) {
    Dim size = whole[whole.size() - 1 - i];
    bool isOne = i >= own.size() || own[own.size() - 1 - i].is(1);
    if (!size.known() || (!isOne && !size.is(1)))
      return share;
    share *= *size.known();
  }
  return share;
}

std::set<int64_t> powers(int64_t most) {
  std::set<int64_t> all;
  for (int64_t each = 1; each <= most; each *= 2)
    all.insert(each);
  return all;
}

} // namespace

ArrayRef<kernels::TileField<QueryTile>> QueryTile::fields() {
  static const kernels::TileField<QueryTile> all[] = {
      {"rows", &QueryTile::rows, "rows that a block has at a time"},
      {"warps", &QueryTile::warps, "warps of a block, which have keys in turn", Effect::Order},
      {"blocks", &QueryTile::blocks, "blocks of a cluster, which share the keys", Effect::Order}};
  return all;
}

int64_t FewQueries::lanesOf(int64_t size) {
  constexpr int64_t most = 8;
  for (int64_t lanes : {8, 16, 32})
    if (size % lanes == 0 && size / lanes <= most)
      return lanes;
  return 0;
}

std::optional<FewQueries> FewQueries::of(Operation *result) {
  std::optional<Attention> found = matchAttention(result);
  auto isReshape = [](Operation *op) { return isa<dmir::ReshapeOp>(op); };
  if (!found || found->rounded || !llvm::all_of(found->after, isReshape))
    return std::nullopt;
  FewQueries few;
  few.attention = *found;
  SmallVector<Dim> scores = dmir::dimsOf(found->scores.getResult()), whole = dmir::dimsOf(found->result.getResult()),
                   queries = dmir::dimsOf(found->scores.getLhs()), keys = dmir::dimsOf(found->scores.getRhs()),
                   values = dmir::dimsOf(found->result.getRhs());
  few.batch.assign(scores.begin(), scores.end() - 2);
  few.resultBatch.assign(whole.begin(), whole.end() - 2);
  few.items = dmir::product(few.batch);
  few.rows = whole[whole.size() - 2];
  few.keys = scores.back();
  few.depth = queries.back().known().value_or(0);
  few.width = whole.back().known().value_or(0);
  if (few.items.is(0) || few.rows.is(0) || few.keys.is(0) || few.depth < 1 || few.width < 1 ||
      (!few.fitsWarps() && !few.fitsCores()))
    return std::nullopt;
  int64_t ofKeys = sharing(batchOf(keys), few.batch), ofValues = sharing(batchOf(values), few.resultBatch);
  few.share = ofKeys == ofValues ? ofKeys : 1;
  return few;
}

bool FewQueries::hasFewRows() const { return nominal(attention.result->getBlock(), rows) <= kFewRows; }

StringRef FewQueries::preferred() const {
  if (fitsWarps() && hasFewRows())
    return kQueriesByWarps;
  return fitsCores() ? StringRef(kAttentionByCores) : StringRef();
}

/// A block begins with its queries and the first keys, and ends with its result; a tile of keys takes the softmax of
/// its rows or the products, whichever is longer.
double FewQueries::coreClocks(const hw::Machine &machine) const {
  Block *block = attention.result->getBlock();
  const int64_t ofGroup = nominal(block, groupRows()),
                rows = ofGroup > dmx::cuda::kMmaRows ? 2 * dmx::cuda::kMmaRows : dmx::cuda::kMmaRows;
  double size = static_cast<double>(depth + width), ends = 2200 + 16 * size,
         tile = (rows > dmx::cuda::kMmaRows ? 1 : 0.75) * std::max(1730.0, 9 * size),
         tiles = std::ceil(static_cast<double>(nominal(block, keys)) / dmx::cuda::kTileRowElements),
         rounds = std::ceil(static_cast<double>(nominal(block, groups()) * llvm::divideCeil(ofGroup, rows)) /
                            machine.multiprocessors);
  return machine.clock.launchClocks + rounds * (ends + tiles * tile);
}

/// Scores of f32 are written, read twice and, rounded, written and read: the softmax takes half as much again.
double FewQueries::plainClocks(const hw::Machine &machine) const {
  Block *block = attention.result->getBlock();
  int64_t ofAll = nominal(block, items), m = nominal(block, rows), n = nominal(block, keys);
  GemmSizes scores{ofAll, m, n, depth}, result{ofAll, m, width, n};
  double bytes = 6 * static_cast<double>(ofAll) * static_cast<double>(m) * static_cast<double>(n),
         softmax = machine.clock.launchClocks + 2 * machine.clock.memoryLatency +
                   1.5 * bytes / hw::memoryBytesPerClock(machine);
  return gemmClocks(machine, scores, chooseGemmTile(machine, scores)) + softmax +
         gemmClocks(machine, result, chooseGemmTile(machine, result));
}

bool FewQueries::paysByCores(const hw::Machine &machine) const {
  constexpr int64_t barriers = 64, slots = 2; // the fewest
  const int64_t shared = (slabs() + slots * (slabs() + widthSlabs())) * dmx::cuda::kMmaRows * dmx::cuda::kTileRowBytes;
  return shared + barriers <= machine.mostShared && coreClocks(machine) <= plainClocks(machine);
}

/// A row's parts: of 32 scores, of its terms and of its result. One where warps have no lanes for it.
int64_t FewQueries::mostRows() const {
  int64_t ofKeys = lanesOf(depth), ofValues = lanesOf(width);
  if (!ofKeys || !ofValues)
    return 1;
  int64_t parts = ofKeys + depth / ofKeys + width / ofValues;
  return std::clamp<int64_t>(kMostParts / parts, 1, kMostRows);
}

Launch FewQueries::launch(const QueryTile &tile) const {
  Launch launch{blocks(tile) * tile.blocks, tile.threads(), (warpFloats(tile) + blockFloats(tile)) * 4};
  launch.cluster = tile.blocks;
  return launch;
}

/// The tile of the least clocks: a tile of keys waits for memory twice, and each row of it takes so many instructions.
QueryTile FewQueries::cheapest(const hw::Machine &machine, const kernels::DecidedFields<QueryTile> &decided) const {
  Block *block = attention.result->getBlock();
  auto all = static_cast<double>(nominal(block, keys)), size = static_cast<double>(depth + width);
  int64_t ofGroup = nominal(block, groupRows()), many = nominal(block, groups());
  QueryTile best;
  double least = std::numeric_limits<double>::infinity();
  auto sizes = [&](int64_t QueryTile::*field, int64_t most) {
    return decided[field] ? std::set<int64_t>{*decided[field]} : powers(most);
  };
  for (int64_t rows : sizes(&QueryTile::rows, mostRows()))
    for (int64_t warps : sizes(&QueryTile::warps, kMostWarps))
      for (int64_t blocks : sizes(&QueryTile::blocks, machine.mostCluster)) {
        auto own = static_cast<double>(warps);
        double turns = std::ceil(all / (32 * own * static_cast<double>(blocks))),
               grid = static_cast<double>(many * llvm::divideCeil(ofGroup, rows) * blocks),
               each = std::ceil(grid / machine.multiprocessors),
               issue = each * own * turns * size * (4 + 2 * static_cast<double>(std::min(rows, ofGroup))) / 4,
               wait = std::ceil(each * own / 16) * turns * 2 * machine.clock.memoryLatency,
               joining = blocks > 1 ? 2 * machine.clock.clusterLatency : 0;
        if (double clocks = std::max(issue, wait) + joining; clocks < 0.98 * least) {
          least = clocks;
          best = {rows, warps, blocks};
        }
      }
  return best;
}

kernels::FreeTile<QueryTile> FewQueries::freeTile(const hw::Machine &machine, DictionaryAttr decided) const {
  kernels::FreeTile<QueryTile> free("", attention.result->getContext(), decided);
  auto chosen = [&] { return cheapest(machine, free.decided()); };
  free.add(&QueryTile::rows, powers(mostRows()), chosen().rows);
  free.add(&QueryTile::warps, powers(kMostWarps), chosen().warps);
  free.add(&QueryTile::blocks, powers(machine.mostCluster), chosen().blocks);
  return free;
}

QueryTile FewQueries::choose(const hw::Machine &machine, DictionaryAttr decided) const {
  return cheapest(machine, freeTile(machine, decided).decided());
}

std::vector<Decision> FewQueries::decisions(const hw::Machine &machine, DictionaryAttr decided) const {
  return freeTile(machine, decided).take();
}

Result<QueryTile> FewQueries::read(const hw::Machine &machine, Attribute written, StringRef key) const {
  auto own = dyn_cast_or_null<DictionaryAttr>(written);
  return freeTile(machine, own).read(written, key, choose(machine, own));
}
