//===- PatchProduct.cpp - convolutions by patches of the image ----------------===//

#include "PatchProduct.h"

#include "schemas/cuda/Rates.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include <cmath>

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

static constexpr int64_t kColumns[] = {8, 16, 32, 64}, kRows[] = {1, 2, 4, 8, 16, 32}, kParts[] = {1, 2, 4, 8, 16, 32},
                         kOutputs[] = {1, 2, 4, 8}, kOwn[] = {1, 2, 4, 8};
static constexpr int64_t kWarp = 32, kFewestThreads = 64, kMostThreads = 512, kMostSums = 32, kMostCopies = 16;
/// Taps that a kernel has one after the other in its text: of a column all, of the others so many.
static constexpr int64_t kMostDown = 11, kMostTaps = 1024, kMostDepth = 64;

ArrayRef<kernels::TileField<PatchTile>> PatchTile::fields() {
  static const kernels::TileField<PatchTile> all[] = {
      {"columns", &PatchTile::columns, "pixels of a row of the result that a block has side by side"},
      {"rows", &PatchTile::rows, "rows of the result that a block has one below the other"},
      {"parts", &PatchTile::parts, "runs of outputs that a block has, each of one group"},
      {"outputs", &PatchTile::outputs, "outputs of a thread"},
      {"own", &PatchTile::own, "pixels of a thread, one below the other"}};
  return all;
}

/// Three axes, of which those that are not there have one pixel.
bool PatchProduct::placeAxes() {
  imageAxes = windows->axes.size();
  if (imageAxes > 3)
    return false;
  Axis *axes[] = {&across, &down, &depthAxis};
  for (Axis *axis : axes)
    axis->window.in = axis->window.out = axis->window.taps = 1;
  for (size_t i = 0; i < imageAxes; ++i) {
    const Windows::Axis &window = windows->axes[imageAxes - 1 - i];
    if (!window.taps.known() || *window.taps.known() < 1)
      return false;
    axes[i]->window = window;
    axes[i]->taps = *window.taps.known();
  }
  return down.taps <= kMostDown && tapsOfChannel() <= kMostTaps;
}

std::shared_ptr<const PatchProduct> PatchProduct::of(Operation *root, const hw::Machine &machine) {
  auto conv = dyn_cast_or_null<dmir::ConvOp>(root);
  if (!conv)
    return nullptr;
  std::shared_ptr<PatchProduct> found(new PatchProduct(root));
  auto isFloat = [](Type type) { return type.isF32() || type.isBF16() || type.isF16(); };
  bool fits = found->lhs && found->rhs && !found->unclear && isFloat(found->element) && isFloat(found->lhsElement) &&
              isFloat(found->rhsElement) && found->m.known().value_or(0) > 0 &&
              found->windows->channels.known().value_or(0) > 0 && !found->n.is(0) && !found->batch.is(0);
  if (!fits || !found->placeAxes())
    return nullptr;
  found->groups = static_cast<int64_t>(conv.getGroups());
  found->outputs = *found->m.known();
  found->channels = *found->windows->channels.known();
  found->findTiles(machine);
  return found->tiles.empty() ? nullptr : found;
}

bool PatchProduct::isNarrow() const {
  constexpr int64_t most = int64_t{1} << 30;
  Dim last = (windows->channels - 1) * windows->channelsApart;
  for (const Axis *axis : {&depthAxis, &down, &across}) {
    last += axis->window.in * axis->window.apart;
    if (axis->window.in.known().value_or(most) >= most || axis->window.out.known().value_or(most) >= most)
      return false;
  }
  Dim weights = Dim(groups * outputs) * lhsRow;
  return last.known().value_or(most) < most && weights.known().value_or(most) < most && last.neverNegative() &&
         down.window.low.known().value_or(most) < most;
}

/// Rows of a patch lie so that a warp's threads meet in as few banks as can be: at stride 1 in none.
static std::pair<int64_t, int64_t> pitchOf(int64_t width, const PatchTile &tile, int64_t down, int64_t across) {
  const int64_t lanes = std::min(kWarp, tile.columns * (tile.rows / tile.own));
  std::pair<int64_t, int64_t> best{0, kWarp + 1};
  for (int64_t pitch = width; pitch < width + kWarp && best.second > 1; ++pitch) {
    std::array<int64_t, kWarp> banks{};
    for (int64_t lane = 0; lane < lanes; ++lane) {
      int64_t strip = lane / tile.columns, column = lane % tile.columns;
      ++banks[static_cast<size_t>((strip * tile.own * down * pitch + column * across) % kWarp)];
    }
    if (int64_t most = *llvm::max_element(banks); most < best.second)
      best = {pitch, most};
  }
  return best;
}

PatchProduct::Room PatchProduct::room(const PatchTile &tile) const {
  constexpr int64_t usual = 3072;
  Room room;
  room.chunks = (outputs + tile.outputs - 1) / tile.outputs;
  room.groups = std::max<int64_t>(1, tile.parts / room.chunks);
  room.width = across.reach(tile.columns);
  room.height = down.reach(tile.rows);
  std::tie(room.pitch, room.conflicts) = pitchOf(room.width, tile, down.window.stride, across.window.stride);
  int64_t patch = depthAxis.taps * room.height * room.pitch, weights = tile.parts * tapsOfChannel() * tile.outputs;
  // As many channels at a time as are not too much to copy.
  auto isMuch = [&](int64_t depth) {
    room.depth = depth;
    auto [ofPatches, ofWeights] = copies(tile, room);
    return depth * (room.groups * patch + weights) > usual || ofPatches + ofWeights > kMostCopies;
  };
  int64_t depth = 1;
  for (int64_t next = 2; next <= std::min(channels, kMostDepth); ++next)
    if (channels % next == 0 && !isMuch(next))
      depth = next;
  room.depth = depth;
  room.patches = (room.groups * depth * patch + 3) / 4 * 4;
  room.weights = (depth * weights + 3) / 4 * 4;
  room.steps = channels / depth;
  room.buffers = room.steps > 1 ? 2 : 1;
  return room;
}

std::pair<int64_t, int64_t> PatchProduct::copies(const PatchTile &tile, const Room &room) const {
  auto each = [&](int64_t elements) { return (elements + tile.threads() - 1) / tile.threads(); };
  return {each(room.groups * room.depth * depthAxis.taps * room.height * room.width),
          each(tile.parts * room.depth * tapsOfChannel() * tile.outputs)};
}

/// Runs of outputs are shared out so that a block's are of whole groups, or of one.
bool PatchProduct::fits(const hw::Machine &machine, const PatchTile &tile) const {
  if (tile.rows < tile.own || tile.outputs * tile.own > kMostSums || tile.threads() < kFewestThreads ||
      tile.threads() > kMostThreads || (tile.outputs > 1 && tile.outputs / 2 >= outputs))
    return false;
  int64_t chunks = (outputs + tile.outputs - 1) / tile.outputs;
  if (groups > 1 && tile.parts % chunks != 0 && chunks % tile.parts != 0)
    return false;
  if (tile.parts > groups * chunks && tile.parts > 1 && tile.parts / 2 >= groups * chunks)
    return false;
  if (across.reach(tile.columns) * down.reach(tile.rows) > machine.mostShared)
    return false;
  Room own = room(tile);
  auto [ofPatches, ofWeights] = copies(tile, own);
  return ofPatches <= 2 * kMostCopies && ofWeights <= 2 * kMostCopies && own.bytes() <= machine.mostShared;
}

Dim PatchProduct::blocks(const PatchTile &tile) const {
  int64_t chunks = (outputs + tile.outputs - 1) / tile.outputs;
  return batchDims.front() * depthAxis.window.out * Dim::ceilDiv(down.window.out, tile.rows) *
         Dim::ceilDiv(across.window.out, tile.columns) * ((groups * chunks + tile.parts - 1) / tile.parts);
}

/// Of the multiprocessor with the most blocks: instructions of a warp, and what it waits for at each step.
double PatchProduct::clocks(const hw::Machine &machine, const PatchTile &tile) const {
  auto real = [](int64_t value) { return static_cast<double>(value); };
  constexpr double ofBlock = 120, place = 30, copy = 8, ofSum = 14, registers = 60, waiting = 1.3;
  const hw::Machine::Clock &clock = machine.clock;
  Room own = room(tile);
  auto [ofPatches, ofWeights] = copies(tile, own);
  // Of a warp: what a step issues, and how often it takes shared memory, where a vector counts for each of its words.
  double sums = real(tile.own * tile.outputs), copied = real(ofPatches + ofWeights), taps = real(tapsOfChannel()),
         loads = taps / real(down.taps) * real(down.reach(tile.own)), weights = taps * real(tile.outputs),
         columnsOfTaps = taps / real(down.taps), depth = real(own.depth),
         issued = depth * (taps * sums + loads + weights / 2) + copied * copy,
         reading = depth * (loads * real(own.conflicts) + weights) + copied,
         warps = std::ceil(real(tile.threads()) / kWarp), steps = real(own.steps),
         once = ofBlock + copied * place + sums * ofSum;
  double each = std::ceil(real(nominally(blocks(tile))) / machine.multiprocessors),
         byRegisters = machine.registers /
                       (real(tile.threads()) *
                        (registers + sums + 3 * copied + 2 * (real(down.reach(tile.own)) + weights / columnsOfTaps))),
         byShared = real(clock.sharedBytes) / real(own.bytes() + clock.reservedShared),
         byThreads = real(clock.threads) / real(tile.threads()),
         resident = std::clamp(std::floor(std::min({byRegisters, byShared, byThreads})), 1.0, each);
  double alone = 2 * clock.memoryLatency + 2 * once +
                 steps * (issued * waiting + depth * columnsOfTaps * clock.sharedLatency + clock.sharedLatency),
         all = std::max({(once + steps * issued) * std::max(1.0, resident * warps / hw::kSchedulers),
                         steps * reading * resident * warps, alone});
  double bytes = 4 * real(nominally(batch)) *
                 (real(nominally(m * n)) +
                  real(channels) * real(nominally(depthAxis.window.in * down.window.in * across.window.in)));
  return clock.launchClocks + clock.memoryLatency +
         std::max(std::ceil(each / resident) * all, bytes / hw::memoryBytesPerClock(machine));
}

void PatchProduct::findTiles(const hw::Machine &machine) {
  for (int64_t columns : kColumns)
    for (int64_t rows : kRows)
      for (int64_t parts : kParts)
        for (int64_t outputs : kOutputs)
          for (int64_t own : kOwn)
            if (PatchTile tile{columns, rows, parts, outputs, own}; fits(machine, tile))
              tiles.emplace_back(clocks(machine, tile), tile);
  llvm::stable_sort(tiles, [](const auto &x, const auto &y) { return x.first < y.first; });
}

static constexpr int64_t PatchTile::*kFields[] = {&PatchTile::columns, &PatchTile::rows, &PatchTile::parts,
                                                  &PatchTile::outputs, &PatchTile::own};

/// What is decided of a field leaves others those values with which there is a tile.
kernels::FreeTile<PatchTile> PatchProduct::freeTile(DictionaryAttr decided) const {
  kernels::FreeTile<PatchTile> free("", op->getContext(), decided);
  std::vector<std::pair<double, PatchTile>> left = tiles;
  for (int64_t PatchTile::*member : kFields) {
    if (left.empty())
      break;
    std::set<int64_t> values;
    for (const auto &[clocks, tile] : left)
      values.insert(tile.*member);
    free.add(member, values, left.front().second.*member);
    if (std::optional<int64_t> value = free.decided()[member])
      llvm::erase_if(left, [&](const auto &one) { return one.second.*member != *value; });
  }
  return free;
}

PatchTile PatchProduct::choose(const hw::Machine &, DictionaryAttr decided) const {
  kernels::FreeTile<PatchTile> free = freeTile(decided);
  auto isDecided = [&](const auto &one) {
    return llvm::all_of(kFields, [&](int64_t PatchTile::*member) {
      return free.decided()[member].value_or(one.second.*member) == one.second.*member;
    });
  };
  auto best = llvm::find_if(tiles, isDecided);
  return best == tiles.end() ? PatchTile() : best->second;
}

std::vector<Decision> PatchProduct::decisions(const hw::Machine &, DictionaryAttr decided) const {
  return freeTile(decided).take();
}

Result<PatchTile> PatchProduct::read(const hw::Machine &machine, Attribute written, StringRef key) const {
  auto own = dyn_cast_or_null<DictionaryAttr>(written);
  Result<PatchTile> tile = freeTile(own).read(written, key, choose(machine, own));
  if (tile && !fits(machine, *tile))
    return modelError("'" + key.str() +
                      "' of its strategy is no tile that a block can compute; leave it out and it is derived");
  return tile;
}

KernelPlan dmxc::cuda::planPatches(const RegionBody &body, const std::shared_ptr<const PatchProduct> &product,
                                   const PatchTile &tile) {
  KernelPlan plan(kConvByPatches.str(), WorkPlan());
  plan.work = product->blocks(tile);
  plan.own.set(kPatches, writeTile(tile, body.root->getContext()));
  plan.launch = product->launch(tile);
  plan.emit = [body, product, tile](KernelBuilder &b) { emitPatches(CudaBuilder::of(b), body, *product, tile); };
  return plan;
}

Result<KernelPlan> dmxc::cuda::patchesIn(const RegionBody &body, const CudaRequest &request) {
  const std::string node = "node '" + dmir::nodeName(body.root) + "': ";
  std::shared_ptr<const PatchProduct> product = PatchProduct::of(body.root, request.machine);
  if (!product)
    return modelError(
        node + "its strategy has the algorithm " + kConvByPatches.str() +
        ", but it is no convolution of floats with known channels and windows whose operands are views of "
        "memory; leave the strategy out and it is derived");
  Result<PatchTile> tile = product->read(request.machine, request.strategy.get(kPatches), kPatches);
  if (!tile)
    return modelError(node + tile.error().message);
  return planPatches(body, product, *tile);
}
