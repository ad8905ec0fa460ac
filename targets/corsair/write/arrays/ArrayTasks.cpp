//===- ArrayTasks.cpp - what the queues do for a product on the arrays --------===//

#include "ArrayTasks.h"
#include "../SimdOp.h"

#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

static constexpr int64_t kRows = 64, kBlock = 64;
static constexpr int64_t kWbHalf = 4224, kIbHalf = Spread::kSegment * Spread::kTileBytes;

std::optional<std::string> dmxc::corsair::lacksForProducts(const hw::Machine &machine) {
  const std::pair<hw::Memory, int64_t> needs[] = {
      {hw::Memory::IB, 2 * kIbHalf}, {hw::Memory::WB, 2 * kWbHalf}, {hw::Memory::OB, 2 * kObHalf}};
  for (auto [memory, bytes] : needs)
    if (const auto size = static_cast<int64_t>(machine.memory(memory).size); size < bytes)
      return "memories." + std::string(hw::nameOf(memory)) + ".size is " + std::to_string(size) +
             ", the double buffers of a product need " + std::to_string(bytes);
  return std::nullopt;
}

static StringRef name(hw::ElemKind kind) { return hw::nameOf(kind); }

//===----------------------------------------------------------------------===//
// Between DDR and GM
//===----------------------------------------------------------------------===//

void ArrayTasks::bringAhead() const {
  if (!comesAhead())
    return;
  const int64_t each = plan.sliceRows(), step = each * plan.rowSlices(), full = plan.m / step, rest = plan.m % step;
  const QueueWriter vector = program.on(Queue::Vector);
  for (int64_t first = 0, bands = 1; first < full; first += bands, bands = first) {
    bands = std::min(bands, full - first);
    bring(Queue::Vector, first * step, bands * step);
    program.loop(bands, [&](int) { vector.signal(kRowsCome); });
  }
  if (!rest)
    return;
  bring(Queue::Vector, full * step, rest);
  for (int64_t band = 0; band < (rest / each > 0) + (rest % each > 0); ++band)
    vector.signal(kRowsCome);
}

void ArrayTasks::bring(Queue queue, int64_t first, int64_t rows) const {
  const int64_t taken = at.aTiles ? (rows + kRows - 1) / kRows * kRows : rows; // tiles are whole ones
  program.on(queue)
      .copy(at.arrives.plus(first * at.aRow), at.a.plus(first * at.aRow), DmaSpec("raw", {}, taken * at.aRow))
      .create();
}

void ArrayTasks::crossing(const Band &rows, llvm::function_ref<void()> body) const {
  if (comesAhead())
    program.on(Queue::Load).wait(kRowsCome);
  else if (at.arrives.buffer >= 0)
    bring(Queue::Load, 0, rowsOf(rows));
  body();
  if (at.leaves.buffer < 0)
    return;
  const QueueWriter vector = program.on(Queue::Vector);
  if (!at.epilogue) {
    program.on(Queue::Store).signal(kRowsFull);
    vector.wait(kRowsFull);
  }
  vector.copy(at.out, at.leaves, DmaSpec("raw", {}, rowsOf(rows) * at.outRow)).create();
}

int64_t ArrayTasks::rowsOf(const Band &rows) const {
  return rows.rows * (plan.rowSlices() > 1 ? llvm::popcount(unsigned(rows.mask)) : 1);
}

//===----------------------------------------------------------------------===//
// To the arrays
//===----------------------------------------------------------------------===//

void ArrayTasks::withLoaded(const Band &rows, llvm::function_ref<void()> body) const {
  if (!loadsOnce())
    return body();
  if (at.aTiles)
    loadTiles(rows.mask, rows.rows, segments.front(), rows.half, 0);
  else
    loadRows(rows.mask, rows.rows, segments.front(), rows.half);
  program.on(Queue::Array).wait(kIbFull + rows.half);
  body();
  program.on(Queue::Array).signal(kIbFree + rows.half);
}

void ArrayTasks::loadWeights(const Round &columns, int half) const {
  QueueWriter load = program.on(Queue::Load);
  load.wait(kWbFree + half);
  DmaSpec spec;
  spec.unit = spec.sourceSubunitStep = Spread::kTileBytes;
  load.copy(at.st, {units.wb, half * kWbHalf, {}}, spec)
      .integer("units", columns.mask)
      .integer("subunits", (int64_t(1) << (columns.tiles * plan.imc)) - 1)
      .create();
  load.signal(kWbFull + half);
  program.on(Queue::Array).wait(kWbFull + half);
}

void ArrayTasks::prepareSums(int mask, int64_t tiles, int64_t rows, int half) const {
  QueueWriter load = program.ahead(Queue::Load);
  load.wait(kObFree + half);
  if (at.bias.buffer >= 0) {
    DmaSpec spec{name(hw::ElemKind::Bfp32), {}, 64};
    spec.dims = {{tiles, 256, obGroup(plan)}, {rows, 0, 256}};
    spec.sourceUnitStep = plan.sharing == Sharing::Columns ? plan.groups * 256 : 0;
    load.copy(at.bias, {units.ob, half * kObHalf, {}}, spec).integer("units", mask).create();
  }
  load.signal(kObReady + half);
}

void ArrayTasks::loadRows(int mask, int64_t rows, ArrayRef<Addition> segment, int half) const {
  QueueWriter load = program.on(Queue::Load);
  load.wait(kIbFree + half);
  for (const BlockRun &run : runsOf(segment)) {
    DmaSpec spec{name(at.aKind), name(hw::ElemKind::Bfp16R)};
    spec.toRows = true;
    spec.dims = {{rows, at.aRow, 1}, {1, 0, 0}, {1, 0, 0}, {run.count, kBlock * at.aColumn, plan.pitch}};
    spec.tail = run.block + run.count == plan.kChunks ? plan.k % kBlock : 0;
    spec.elementStride = at.aColumn == hw::elementBytes(at.aKind) ? 0 : at.aColumn;
    spec.sourceUnitStep = plan.rowSlices() > 1             ? plan.sliceRows() * at.aRow
                          : plan.sharing == Sharing::Batch ? at.aSlice
                                                           : 0;
    load.copy(at.a.plus(run.block * kBlock * at.aColumn), {units.ib, half * kIbHalf + run.slot * plan.pitch, {}}, spec)
        .integer("units", mask)
        .create();
  }
  load.signal(kIbFull + half);
}

void ArrayTasks::loadTiles(int mask, int64_t rows, ArrayRef<Addition> segment, int half, int64_t first) const {
  QueueWriter load = program.on(Queue::Load);
  load.wait(kIbFree + half);
  for (const BlockRun &blocks : runsOf(segment)) {
    auto run = [&](int64_t from, int64_t to, int64_t bytes) {
      DmaSpec spec("raw", {}, bytes);
      spec.dims = {{blocks.count, Spread::kTileBytes, plan.pitch}};
      spec.sourceUnitStep = plan.rowSlices() > 1 ? plan.sliceRows() * at.aRow : 0;
      load.copy(at.a.plus(blocks.block * Spread::kTileBytes + from),
                {units.ib, half * kIbHalf + blocks.slot * plan.pitch + to, {}}, spec)
          .integer("units", mask)
          .create();
    };
    if (first == 0) {
      run(0, 0, plan.pitch);
    } else {
      run(first, 0, rows);
      run(kRows + first * kBlock, kRows, rows * kBlock);
    }
  }
  load.signal(kIbFull + half);
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

void ArrayTasks::multiply(int mask, int64_t rows, int64_t row, int64_t count, size_t segment, int ibHalf, int obHalf,
                          int wbHalf) const {
  int64_t slot = 0;
  for (const Addition &addition : segments[segment]) {
    const bool isFirst = segment == 0 && slot == 0;
    add(addition, {mask, rows, row, count}, isFirst, ibHalf * kIbHalf + slot * plan.pitch, obHalf,
        stationary ? wbHalf * kWbHalf : 0);
    slot += addition.count();
  }
}

void ArrayTasks::add(const Addition &addition, const Extent &extent, bool isFirst, int64_t ib, int obHalf,
                     int64_t wb) const {
  QueueWriter array = program.on(Queue::Array);
  TaskWriter product = array.task(at.conv ? "corsair.conv" : "corsair.matmul");
  if (at.conv)
    readImage(array, product, extent.row);
  else
    readRows(array, product, addition, extent.row, ib);
  array.reads(product, {units.wb, wb, {}});
  array.writes(product, {units.ob, obHalf * kObHalf, {}});
  if (!stationary) // streamed
    array.reads(product, at.st.plus(addition.first * Spread::kTileBytes));
  product.text("activation_kind", name(hw::ElemKind::Bfp16R))
      .text("weight_kind", name(hw::ElemKind::Bfp16C))
      .integer("num_imc", addition.imc)
      .integer("ppr_mode", addition.ppr)
      .integer("groups", extent.tiles)
      .integer("slices", extent.mask)
      .integer("stash_step", addition.imc * Spread::kTileBytes)
      .integer("stash_group", plan.kChunks * Spread::kTileBytes)
      .integer("result_group", obGroup(plan))
      .integer("chunks", plan.kChunks)
      .set("accumulate_steps", array.builder().getUnitAttr())
      .sum("rows", extent.rows)
      .sum("k0", addition.first)
      .sum("accumulate", !isFirst || at.bias.buffer >= 0 ? 1 : 0)
      .sum("steps", (addition.count() + addition.imc - 1) / addition.imc)
      .create();
}

void ArrayTasks::readRows(const QueueWriter &array, TaskWriter &product, const Addition &addition, int64_t row,
                          int64_t ib) const {
  array.reads(product, {units.ib, ib, {}});
  product.integer("activation_chunk", plan.pitch).integer("activation_step", addition.imc * plan.pitch).sum("row", row);
}

void ArrayTasks::readImage(const QueueWriter &array, TaskWriter &product, int64_t row) const {
  array.reads(product, at.a);
  array.sum(product, "pixel", at.pixel.plus(row));
  product.integer("image_blocks", at.conv->blocks)
      .integer("image_band", at.conv->blocks * Spread::kTileBytes)
      .integer("pixel_slice", plan.rowSlices() > 1 ? kRows : 0)
      .integer("pixels", at.conv->pixels)
      .set("window", windowClause(array.builder(), at.conv->window));
}
