//===- Products.cpp - tasks of the arrays ---------------------------------===//
//
// What goes into a product of tiles, by ISA.md (6); the product itself is that of schemas/blockfp.
//
//===----------------------------------------------------------------------===//
#include "Tasks.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;
using namespace dmxc::corsair::stages;
using hw::ConfigKey;
using hw::ElemKind;

namespace {

/// What both products of tiles have in common.
class Product {
public:
  template <typename OpTy>
  Product(OpTy op, const TaskSite &site)
      : site(site), numbers(op, site, access), left(op.getBuffers()[0]), right(op.getBuffers()[1]),
        sums(op.getBuffers()[2]), stash(op.getBuffers().size() > 3 ? op.getBuffers()[3] : Value()),
        actKind(op.getActivationKind()), weightKind(op.getWeightKind()) {
    constexpr hw::Opcode opcode = hw::Opcode::Matmul;
    imc = static_cast<int64_t>(op.getNumImc()), ppr = static_cast<int64_t>(op.getPprMode());
    groups = given(op.getGroups(), opcode, "groups"), core = given(op.getCore(), opcode, "core");
    slices = given(op.getSlices(), opcode, "slices");
    rows = numbers.of(op.getRows(), otherwiseOf(opcode, "rows"));
    k0 = numbers.of(op.getK0(), otherwiseOf(opcode, "k0"));
    accumulates = numbers.of(op.getAccumulate(), otherwiseOf(opcode, "acc")) != 0;
    steps = numbers.of(op.getSteps(), otherwiseOf(opcode, "steps"));
    stepsAdd = op.getAccumulateSteps();
    chunks = given(op.getChunks(), ConfigKey::KChunks);
    sumRow = given(op.getResultRow(), ConfigKey::ObRow), sumGroup = given(op.getResultGroup(), ConfigKey::ObGroup);
    sumStep = given(op.getResultStep(), ConfigKey::ObStep);
    stashChunk = given(op.getStashChunk(), ConfigKey::StChunk);
    stashGroup = given(op.getStashGroup(), ConfigKey::StGroup), stashStep = given(op.getStashStep(), ConfigKey::StStep);
    at = numbers.place(0), weightAt = numbers.place(1), sumAt = numbers.place(2);
    stashAt = stash ? numbers.place(3) : 0;
  }
  virtual ~Product() = default;

  Status run() {
    const bool done =
        access.status() && isMeant() && decode() &&
        eachOf(slices, site.machine().slices, [&](int64_t slice, int64_t rank) { return runSlice(slice, rank); });
    return done ? Status::ok() : access.status();
  }

protected:
  /// What the other operand says.
  virtual bool decode() = 0;
  /// How many of the rows exist in a slice.
  virtual int64_t rowsOf(int64_t rank) const { return rows; }
  /// The rows of `present` tiles from one along K on, as the operands of a product.
  virtual bool gather(int64_t slice, int64_t rank, int64_t step, int64_t first, int64_t present, int64_t count) = 0;

  /// Row of a tile at a place, which is read.
  bool addRow(const Cell &cell, Wide tile, int64_t row) {
    const std::byte *scale = access.read(cell, tile + row, 1, acts),
                    *run = scale ? access.read(cell, tile + 64 + row * product.activation.runBytes(),
                                               product.activation.runBytes(), acts)
                                 : nullptr;
    runs.push_back({scale, run});
    return run != nullptr;
  }

  const TaskSite &site;
  Accesses access;
  TaskNumbers numbers;
  Value left, right, sums, stash;
  int64_t imc, ppr, groups, core, slices, rows, k0, steps, chunks, sumRow, sumGroup, sumStep, stashChunk, stashGroup,
      stashStep, at, weightAt, sumAt, stashAt;
  bool accumulates, stepsAdd;
  ElemKind acts = ElemKind::Bfp16R, weights = ElemKind::Bfp16C;
  hw::TileProduct product;
  std::vector<hw::TileRun> runs; ///< row after row of each tile along K

private:
  bool isMeant();
  bool runSlice(int64_t slice, int64_t rank);
  bool runStep(int64_t slice, int64_t rank, int64_t step);
  bool readWeights(int64_t slice, int64_t step, int64_t group, int64_t present);
  bool multiply(int64_t slice, int64_t step, int64_t group, int64_t count);

  StringRef actKind, weightKind;
  std::vector<const std::byte *> tiles;
};

bool Product::isMeant() {
  auto isAnyOf = [](ElemKind kind, char side) { return hw::isTiled(kind) && hw::nameOf(kind).back() == side; };
  if (!readKind(actKind, acts, access) || !readKind(weightKind, weights, access) ||
      !isMaskOf(slices, site.machine().slices, "slices", access))
    return false;
  if (!isAnyOf(acts, 'r') || !isAnyOf(weights, 'c'))
    return access.fail("multiplies " + actKind.str() + " by " + weightKind.str() + ", an R kind by a C kind is needed");
  product.activation = *hw::tileOf(acts), product.weight = *hw::tileOf(weights);
  product.rows = 1;
  if (hw::MaybeError wrong = hw::checkTileProduct(product, 1))
    return access.fail("multiplies other tiles: " + *wrong);
  if (imc < 1 || ppr < 0 || ppr > site.machine().maxPprMode || imc > int64_t(1) << ppr)
    return access.fail("has num_imc " + std::to_string(imc) + " and ppr_mode " + std::to_string(ppr) +
                       ", trees of the machine have up to " + std::to_string(site.machine().maxPprMode) + " levels");
  if (groups < 1 || core < 0 || core > site.machine().cores || groups > site.machine().cores ||
      core + groups * imc > site.machine().cores)
    return access.fail("takes cores " + std::to_string(core) + " to " + std::to_string(core + groups * imc - 1) +
                       ", a slice has " + std::to_string(site.machine().cores));
  if (rows < 1 || rows > hw::kTileRuns || steps < 0 || steps > 1 << 20 || k0 < 0 || chunks < 1)
    return access.fail("has rows " + std::to_string(rows) + ", steps " + std::to_string(steps) + ", k0 " +
                       std::to_string(k0) + " and chunks " + std::to_string(chunks) + ", which do not go together");
  for (auto [number, grain] : {std::pair(sumAt, 4), {sumRow, 4}, {weightAt, 64}, {stashAt, 64}})
    if (number % grain)
      return access.fail("has a place or step " + std::to_string(number) + ", which is no multiple of " +
                         std::to_string(grain));
  return true;
}

/// Weights that are streamed are gone from WB afterwards, from both halves where it has two.
bool Product::runSlice(int64_t slice, int64_t rank) {
  const int64_t bytes = product.weight.bytes(), half = (bytes + 127) / 128 * 128;
  for (int64_t i = 0; stash && i < groups * imc; ++i) {
    Cell &cell = site.card.cellOf(right, site.quad, slice, core + i);
    access.discard(cell, weightAt, (2 * half <= cell.size() - weightAt ? half : 0) + bytes);
  }
  for (int64_t step = 0; step < steps; ++step)
    if (!runStep(slice, rank, step))
      return false;
  return true;
}

bool Product::runStep(int64_t slice, int64_t rank, int64_t step) {
  const int64_t first = k0 + (stepsAdd ? step * imc : 0), present = std::clamp<int64_t>(chunks - first, 0, imc),
                count = rowsOf(rank);
  runs.clear();
  if (!gather(slice, rank, step, first, present, count))
    return false;
  for (int64_t group = 0; group < groups && count > 0; ++group)
    if (!readWeights(slice, step, group, present) || !multiply(slice, step, group, count))
      return false;
  return true;
}

bool Product::readWeights(int64_t slice, int64_t step, int64_t group, int64_t present) {
  const int64_t bytes = product.weight.bytes();
  tiles.clear();
  for (int64_t i = 0; i < present; ++i) {
    const Wide place = stashAt + Wide(step) * stashStep + Wide(group) * stashGroup + Wide(i) * stashChunk;
    const Cell &cell = stash ? site.card.cellOf(stash, site.quad, slice)
                             : site.card.cellOf(right, site.quad, slice, core + group * imc + i);
    if (stash && !access.isAligned(cell, place, 64))
      return false;
    tiles.push_back(access.read(cell, stash ? place : Wide(weightAt), bytes, weights));
    if (!tiles.back())
      return false;
  }
  return true;
}

bool Product::multiply(int64_t slice, int64_t step, int64_t group, int64_t count) {
  Cell &cell = site.card.cellOf(sums, site.quad, slice);
  const bool adds = accumulates || (stepsAdd && step > 0);
  const Area area{sumAt + Wide(step) * sumStep + Wide(group) * sumGroup, 256, {{count, sumRow}}};
  if ((adds && !access.read(cell, area, ElemKind::Bfp32)) || !access.write(cell, area, ElemKind::Bfp32))
    return false;
  auto *into = reinterpret_cast<float *>(cell.data() + static_cast<int64_t>(area.begin));
  if (tiles.empty()) { // nothing along K: sums of +0
    for (int64_t row = 0; row < count && !adds; ++row)
      std::fill_n(into + row * (sumRow / 4), 64, 0.0F);
    return true;
  }
  product.rows = static_cast<int>(count), product.accumulate = adds;
  const hw::MaybeError wrong = site.card.engine.runRows(product, runs, tiles, into, sumRow / 4);
  return !wrong || access.fail("is no product: " + *wrong);
}

//===----------------------------------------------------------------------===//
// Rows of tiles
//===----------------------------------------------------------------------===//

class MatMul : public Product {
public:
  MatMul(engine::MatmulOp op, const TaskSite &site)
      : Product(op, site), row(numbers.of(op.getRow(), 0)), chunk(given(op.getActivationChunk(), ConfigKey::IbChunk)),
        stepBytes(given(op.getActivationStep(), ConfigKey::IbStep)) {}

  bool decode() override {
    if (row < 0 || row + rows > hw::kTileRuns)
      return access.fail("reads rows " + std::to_string(row) + " to " + std::to_string(row + rows - 1) +
                         " of tiles of 64");
    const Cell &cell = site.card.cellOf(left, site.quad);
    return access.isAligned(cell, at, 64) && access.isAligned(cell, chunk, 64) && access.isAligned(cell, stepBytes, 64);
  }

  bool gather(int64_t slice, int64_t, int64_t step, int64_t, int64_t present, int64_t count) override {
    const Cell &cell = site.card.cellOf(left, site.quad, slice);
    for (int64_t i = 0; i < present; ++i)
      for (int64_t r = 0; r < count; ++r)
        if (!addRow(cell, at + Wide(step) * stepBytes + Wide(i) * chunk, row + r))
          return false;
    return true;
  }

private:
  int64_t row, chunk, stepBytes;
};

//===----------------------------------------------------------------------===//
// Windows of an image
//===----------------------------------------------------------------------===//

class Conv : public Product {
public:
  Conv(engine::ConvOp op, const TaskSite &site)
      : Product(op, site), firstRow(numbers.of(op.getImageRow(), 0)), pixel(numbers.of(op.getPixel(), 0)),
        band(given(op.getImageBand(), ConfigKey::ImgBand)), chunk(given(op.getImageChunk(), ConfigKey::ImgChunk)),
        blocks(given(op.getImageBlocks(), ConfigKey::ImgBlocks)),
        pixelsOfSlice(given(op.getPixelSlice(), ConfigKey::PixSlice)), pixels(given(op.getPixels(), ConfigKey::Pixels)),
        text(op.getWindow()) {}

  bool decode() override {
    const Cell &cell = site.card.cellOf(left, site.quad);
    if (pixel < 0 || pixelsOfSlice < 0 || pixelsOfSlice > INT32_MAX || blocks < 1 || blocks > INT32_MAX)
      return access.fail("begins at pixel " + std::to_string(pixel) + " of an image of " + std::to_string(blocks) +
                         " blocks of channels");
    return readWindow(text, window, access) && access.isAligned(cell, at, 64) && access.isAligned(cell, band, 64) &&
           access.isAligned(cell, chunk, 64);
  }

  int64_t rowsOf(int64_t rank) const override {
    return std::clamp<int64_t>(pixels - (pixel + rank * pixelsOfSlice), 0, rows);
  }

  bool gather(int64_t slice, int64_t rank, int64_t, int64_t first, int64_t present, int64_t count) override {
    const Cell &cell = site.card.cellOf(left, site.quad, slice);
    const Wide all = Wide(window.kh) * window.kw * blocks;
    if (present && first + present > all)
      return access.fail("takes block " + std::to_string(first + present - 1) + " along K of " +
                         std::to_string(static_cast<int64_t>(all)));
    for (int64_t k = first; k < first + present; ++k)
      for (int64_t r = 0; r < count; ++r)
        if (!addPixel(cell, k, pixel + rank * pixelsOfSlice + r))
          return false;
    return true;
  }

private:
  /// What output pixel `p` sees at block k; nothing outside of the image, which counts as zeros.
  bool addPixel(const Cell &cell, int64_t k, int64_t p) {
    const int64_t kw = k / blocks % window.kw, kh = k / blocks / window.kw;
    const int64_t h = p / window.ow * window.sh - window.ph + kh * window.dh,
                  w = p % window.ow * window.sw - window.pw + kw * window.dw;
    if (h < 0 || h >= window.h || w < 0 || w >= window.w) {
      runs.push_back({nullptr, nullptr});
      return true;
    }
    const int64_t row = firstRow + h * window.w + w;
    if (row < 0)
      return access.fail("sees row " + std::to_string(row) + " of the image");
    return addRow(cell, at + Wide(k % blocks) * chunk + Wide(row / 64) * band, row % 64);
  }

  int64_t firstRow, pixel, band, chunk, blocks, pixelsOfSlice, pixels;
  DictionaryAttr text;
  hw::Window window;
};

} // namespace

Status dmxc::corsair::stages::runTask(engine::MatmulOp op, const TaskSite &site) { return MatMul(op, site).run(); }
Status dmxc::corsair::stages::runTask(engine::ConvOp op, const TaskSite &site) { return Conv(op, site).run(); }
