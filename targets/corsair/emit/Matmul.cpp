//===- Matmul.cpp - matrix products on the arrays -------------------------===//
//
// Rows of A are quantised on the way into IB, 64 at a time and up to 8 blocks along K; B lies in ST as tiles, from
// where the array controller streams it: constants are packed by the compiler, a B that is computed is quantised on the
// way into ST. Sums leave OB as f16. Loading, multiplying and storing have a queue each and a double buffer between
// them. A convolution is a product whose rows the array controller takes from an image in GM.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"
#include "MatmulView.h"

#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;
using hw::ConfigKey;

static constexpr int64_t kRows = 64, kBlock = 64;
static constexpr int64_t kObHalf = 32768, kWbHalf = 4224, kIbHalf = MatmulPlan::kSegment * MatmulPlan::kTileBytes;

static int64_t kindValue(hw::ElemKind kind) { return static_cast<int64_t>(kind); }

namespace dmxc::corsair {

/// Emits one product of two matrices, or a loop body of many.
class ProductEmitter {
public:
  ProductEmitter(Program &program, const MatmulPlan &plan, const MatmulOperands &operands)
      : program(program), plan(plan), at(operands) {}

  void run() {
    if (plan.isStationary())
      // A round's weights stay in WB while all rows pass.
      return forEachRound([&](const ProductEmitter &round, const Round &columns, int wbHalf) {
        round.loadWeights(columns, wbHalf);
        round.forEachBand([&](const ProductEmitter &band, const Band &rows) {
          band.withRows(rows, [&] { band.multiplyAndStore(rows, columns, rows.half ^ wbHalf, wbHalf); });
        });
        program.on(Queue::Array).signal(kWbFree + wbHalf);
      });
    // Rows stay in IB while all weights pass.
    forEachBand([&](const ProductEmitter &band, const Band &rows) {
      band.withRows(rows, [&] {
        band.forEachRound([&](const ProductEmitter &round, const Round &columns, int half) {
          round.multiplyAndStore(rows, columns, rows.half ^ half, 0);
        });
      });
    });
  }

private:
  /// Rows in each slice of a mask; alternate bands use alternate halves of buffers.
  struct Band {
    int mask;
    int64_t rows;
    int half;
  };
  /// Tiles of columns that slices of a mask store; `skipped` are the tiles of slices before the mask's first.
  struct Share {
    int mask;
    int64_t skipped, tiles, lastColumns;
  };
  /// `tiles` in each slice of a mask. Those that no share stores are zeros times something.
  struct Round {
    int mask;
    int64_t tiles;
    SmallVector<Share, 2> shares;
  };

  //--- places
  ProductEmitter movedDown(int64_t rows) const {
    ProductEmitter body = *this;
    body.at.a = at.conv ? at.a : at.a.plus(rows * at.aRow);
    body.at.pixel = at.pixel.plus(rows);
    body.at.out = at.out.plus(rows * at.outRow);
    return body;
  }
  ProductEmitter movedDown(int depth, int64_t rows) const {
    ProductEmitter body = *this;
    body.at.a = at.conv ? at.a : at.a.plusLoop(depth, rows * at.aRow);
    body.at.pixel = at.pixel.plusLoop(depth, rows);
    body.at.out = at.out.plusLoop(depth, rows * at.outRow);
    return body;
  }
  ProductEmitter movedRight(int64_t rounds) const {
    ProductEmitter body = *this;
    body.at.st = at.st.plus(rounds * stRound());
    body.at.out = at.out.plus(rounds * outRound());
    return body;
  }
  ProductEmitter movedRight(int depth, int64_t rounds) const {
    ProductEmitter body = *this;
    body.at.st = at.st.plusLoop(depth, rounds * stRound());
    body.at.out = at.out.plusLoop(depth, rounds * outRound());
    return body;
  }
  int64_t stRound() const { return plan.groups * plan.kChunks * MatmulPlan::kTileBytes; }
  int64_t outRound() const { return plan.tilesARound() * 64 * at.outBytes; }

  //--- loops
  void forEachBand(llvm::function_ref<void(const ProductEmitter &, const Band &)> body) const {
    const int64_t step = kRows * plan.rowSlices(), full = plan.m / step, rest = plan.m - full * step, pairs = full / 2;
    program.loop(pairs, [&](int depth) {
      ProductEmitter pair = movedDown(depth, 2 * step);
      body(pair, {plan.mask(), kRows, 0});
      body(pair.movedDown(step), {plan.mask(), kRows, 1});
    });
    if (full % 2)
      body(movedDown(2 * pairs * step), {plan.mask(), kRows, 0});
    const int64_t wholeSlices = rest / kRows, lastRows = rest % kRows;
    if (wholeSlices)
      body(movedDown(full * step), {(1 << wholeSlices) - 1, kRows, 1});
    if (lastRows)
      body(movedDown(full * step + wholeSlices * kRows),
           {plan.rowSlices() > 1 ? 1 << wholeSlices : plan.mask(), lastRows, wholeSlices ? 0 : 1});
  }

  /// Whole rounds as a loop, then what is left.
  void forEachRound(llvm::function_ref<void(const ProductEmitter &, const Round &, int half)> body) const {
    const int64_t rounds = plan.n / 64 / plan.tilesARound(), rest = plan.tilesN() - rounds * plan.tilesARound();
    const Round whole{plan.mask(), plan.groups, {{plan.mask(), 0, plan.groups, 64}}};
    program.loop(rounds / 2, [&](int depth) {
      ProductEmitter pair = movedRight(depth, 2);
      body(pair, whole, 0);
      body(pair.movedRight(1), whole, 1);
    });
    if (rounds % 2)
      body(movedRight(rounds - 1), whole, 0);
    if (rest)
      body(movedRight(rounds), lastRound(rest), 1);
  }

  /// The last tiles of columns; of slices that share them some may have fewer than the others.
  Round lastRound(int64_t rest) const {
    const int64_t lastColumns = plan.n % 64 ? plan.n % 64 : 64;
    if (plan.columnSlices() == 1)
      return {plan.mask(), rest, {{plan.mask(), 0, rest, lastColumns}}};
    const int64_t full = lastColumns == 64 ? rest / plan.groups : (rest - 1) / plan.groups;
    const int64_t left = rest - full * plan.groups;
    Round round{(1 << (full + (left > 0))) - 1, full ? plan.groups : left, {}};
    if (full)
      round.shares.push_back({(1 << full) - 1, 0, plan.groups, 64});
    if (left)
      round.shares.push_back({1 << full, full * plan.groups, left, lastColumns});
    return round;
  }

  //--- instructions
  bool loadsOnce() const { return !at.conv && plan.segments() == 1; }

  /// Runs `body` with the rows in IB, unless they come in segments or from an image.
  void withRows(const Band &rows, llvm::function_ref<void()> body) const {
    if (!loadsOnce())
      return body();
    loadRows(rows.mask, rows.rows, 0, rows.half);
    program.on(Queue::Array).wait(kIbFull + rows.half);
    body();
    program.on(Queue::Array).signal(kIbFree + rows.half);
  }

  /// A round's tiles to WB: one a core.
  void loadWeights(const Round &columns, int half) const {
    QueueCode &load = program.on(Queue::Load);
    load.wait(kWbFree + half);
    int slot = load.config(hw::Unit::ST,
                           {{ConfigKey::Unit, MatmulPlan::kTileBytes}, {ConfigKey::SrcCore, MatmulPlan::kTileBytes}});
    hw::Instruction &move = load.emit(hw::Opcode::Move);
    move.set("src", static_cast<int64_t>(hw::Memory::ST)).set("dst", static_cast<int64_t>(hw::Memory::WB));
    move.set("slot", slot).set("slices", columns.mask).set("daddr", half * kWbHalf);
    move.set("cores", (int64_t(1) << (columns.tiles * plan.imc)) - 1);
    load.address("saddr", at.st);
    load.signal(kWbFull + half);
    program.on(Queue::Array).wait(kWbFull + half);
  }

  void multiplyAndStore(const Band &rows, const Round &columns, int obHalf, int wbHalf) const {
    QueueCode &array = program.on(Queue::Array), &store = program.on(Queue::Store);
    const int mask = rows.mask & columns.mask;
    for (int64_t first = 0; first < rows.rows; first += plan.rowsAtOnce()) {
      const int64_t rowsNow = std::min(plan.rowsAtOnce(), rows.rows - first);
      const int half = rows.rows > plan.rowsAtOnce() ? static_cast<int>(first / plan.rowsAtOnce()) % 2 : obHalf;
      const ProductEmitter part = movedDown(first);
      array.wait(kObFree + half);
      for (int64_t segment = 0; segment < plan.segments(); ++segment) {
        const int ib = loadsOnce() ? rows.half : static_cast<int>(segment % 2);
        const bool loads = !loadsOnce() && !at.conv;
        if (loads) {
          part.loadRows(mask, rowsNow, segment * plan.segment, ib);
          array.wait(kIbFull + ib);
        }
        multiply(mask, rowsNow, loads ? 0 : first, columns.tiles, segment, ib, half, wbHalf);
        if (loads)
          array.signal(kIbFree + ib);
      }
      array.signal(kObFull + half);
      store.wait(kObFull + half);
      for (const Share &share : columns.shares)
        part.storeShare({share.mask & mask, share.skipped, share.tiles, share.lastColumns}, rowsNow, half);
      store.signal(kObFree + half);
    }
  }

  int64_t chunksFrom(int64_t chunk) const { return std::min(plan.segment, plan.kChunks - chunk); }

  /// Rows of A, chunks of 64 along K, quantised into half of IB.
  void loadRows(int mask, int64_t rows, int64_t chunk, int half) const {
    QueueCode &load = program.on(Queue::Load);
    const int64_t chunks = chunksFrom(chunk), tail = chunk + chunks == plan.kChunks ? plan.k % kBlock : 0;
    const int64_t slice = plan.rowSlices() > 1 ? kRows * at.aRow : plan.sharing == Sharing::Batch ? at.aSlice : 0;
    load.wait(kIbFree + half);
    int slot = load.config(hw::Unit::GM, {{ConfigKey::Kind, kindValue(hw::ElemKind::F16)},
                                          {ConfigKey::To, kindValue(hw::ElemKind::Bfp16R)},
                                          {ConfigKey::DstMode, 1},
                                          {ConfigKey::N0, rows},
                                          {ConfigKey::N3, chunks},
                                          {ConfigKey::S0, at.aRow},
                                          {ConfigKey::S3, kBlock * at.aColumn},
                                          {ConfigKey::T0, 1},
                                          {ConfigKey::T3, plan.pitch},
                                          {ConfigKey::Tail, tail},
                                          {ConfigKey::ElemStride, at.aColumn == 2 ? 0 : at.aColumn},
                                          {ConfigKey::SrcSlice, slice}});
    hw::Instruction &move = load.emit(hw::Opcode::Move);
    move.set("src", static_cast<int64_t>(hw::Memory::GM)).set("dst", static_cast<int64_t>(hw::Memory::IB));
    move.set("slot", slot).set("slices", mask).set("daddr", half * kIbHalf);
    load.address("saddr", at.a.plus(chunk * kBlock * at.aColumn));
    load.signal(kIbFull + half);
  }

  void multiply(int mask, int64_t rows, int64_t row, int64_t count, int64_t segment, int ibHalf, int obHalf,
                int wbHalf) const {
    QueueCode &array = program.on(Queue::Array);
    const int64_t chunk = segment * plan.segment;
    std::vector<hw::ConfigPair> keys = {{ConfigKey::StStep, plan.imc * MatmulPlan::kTileBytes},
                                        {ConfigKey::StGroup, plan.kChunks * MatmulPlan::kTileBytes},
                                        {ConfigKey::ObGroup, kObHalf / (plan.rowsAtOnce() == 64 ? 2 : 4)},
                                        {ConfigKey::StepAcc, 1},
                                        {ConfigKey::KChunks, plan.kChunks}};
    if (at.conv) {
      llvm::append_range(keys, at.conv->window.keys());
      keys.insert(keys.end(), {{ConfigKey::ImgBlocks, at.conv->blocks},
                               {ConfigKey::ImgBand, at.conv->blocks * MatmulPlan::kTileBytes},
                               {ConfigKey::PixSlice, plan.rowSlices() > 1 ? kRows : 0},
                               {ConfigKey::Pixels, at.conv->pixels}});
    } else {
      keys.insert(keys.end(), {{ConfigKey::IbChunk, plan.pitch}, {ConfigKey::IbStep, plan.imc * plan.pitch}});
    }
    int slot = array.config(hw::Unit::AC, std::move(keys));
    hw::Instruction &product = array.emit(at.conv ? hw::Opcode::Conv : hw::Opcode::Matmul);
    product.set("slot", slot).set("slices", mask).set("imc", plan.imc).set("ppr", plan.ppr).set("groups", count);
    product.set("rows", rows).set("k0", chunk).set("acc", chunk > 0);
    product.set("steps", (chunksFrom(chunk) + plan.imc - 1) / plan.imc).set("ob", obHalf * kObHalf);
    if (plan.isStationary()) {
      product.set("wb", wbHalf * kWbHalf);
    } else {
      product.set("stream", 1);
      array.address("st", at.st.plus(chunk * MatmulPlan::kTileBytes));
    }
    if (at.conv) {
      array.address("img", at.a);
      array.address("pix", at.pixel.plus(row));
    } else {
      product.set("ib", ibHalf * kIbHalf).set("row", row);
    }
  }

  /// Tiles of sums from OB, as f16, to their columns of the result.
  void storeShare(const Share &share, int64_t rows, int half) const {
    if (share.lastColumns == 64)
      return storeTiles(share, 0, share.tiles, 64, rows, half);
    storeTiles(share, 0, share.tiles - 1, 64, rows, half);
    storeTiles(share, share.tiles - 1, 1, share.lastColumns, rows, half);
  }

  void storeTiles(const Share &share, int64_t first, int64_t count, int64_t columns, int64_t rows, int half) const {
    if (!count)
      return;
    QueueCode &store = program.on(Queue::Store);
    const int64_t group = kObHalf / (plan.rowsAtOnce() == 64 ? 2 : 4);
    const int64_t slice = plan.sharing == Sharing::Columns ? plan.groups * 64 * at.outBytes
                          : plan.sharing == Sharing::Rows  ? kRows * at.outRow
                                                           : at.outSlice;
    int slot = store.config(hw::Unit::GM,
                            {{ConfigKey::Kind, kindValue(hw::ElemKind::Bfp32)},
                             {ConfigKey::To, kindValue(at.outBytes == 2 ? hw::ElemKind::F16 : hw::ElemKind::F32)},
                             {ConfigKey::Unit, columns},
                             {ConfigKey::N0, count},
                             {ConfigKey::N1, rows},
                             {ConfigKey::S0, group},
                             {ConfigKey::S1, 256},
                             {ConfigKey::T0, 64 * at.outBytes},
                             {ConfigKey::T1, at.outRow},
                             {ConfigKey::DstSlice, llvm::popcount(unsigned(share.mask)) > 1 ? slice : 0}});
    hw::Instruction &move = store.emit(hw::Opcode::Move);
    move.set("src", static_cast<int64_t>(hw::Memory::OB)).set("dst", static_cast<int64_t>(hw::Memory::GM));
    move.set("slot", slot).set("slices", share.mask).set("saddr", half * kObHalf + first * group);
    store.address("daddr", at.out.plus((share.skipped + first) * 64 * at.outBytes));
  }

  Program &program;
  const MatmulPlan &plan;
  MatmulOperands at;
};

void emitProduct(Program &program, const MatmulPlan &plan, const MatmulOperands &operands) {
  ProductEmitter(program, plan, operands).run();
}

/// `columns` columns of B from GM, of which `valid` exist, to tiles in the slices of a mask; `rounds` of them.
static void packColumns(Program &program, const MatmulPlan &plan, const MatmulOperands &at, int mask, int64_t rounds,
                        int64_t valid) {
  QueueCode &load = program.on(Queue::Load);
  const int64_t columns = plan.groups * 64;
  const int64_t slice = plan.sharing == Sharing::Columns ? columns * at.bColumn
                        : plan.sharing == Sharing::Batch ? at.bSlice
                                                         : 0;
  int slot = load.config(hw::Unit::ST, {{ConfigKey::Kind, kindValue(hw::ElemKind::F16)},
                                        {ConfigKey::To, kindValue(hw::ElemKind::Bfp16C)},
                                        {ConfigKey::DstMode, 1},
                                        {ConfigKey::N0, columns},
                                        {ConfigKey::Hi0, valid < columns ? valid : int64_t(1) << 31},
                                        {ConfigKey::N1, rounds},
                                        {ConfigKey::N3, plan.kChunks},
                                        {ConfigKey::S0, at.bColumn},
                                        {ConfigKey::S1, plan.tilesARound() * 64 * at.bColumn},
                                        {ConfigKey::S3, kBlock * at.bRow},
                                        {ConfigKey::T0, 1},
                                        {ConfigKey::T1, columns},
                                        {ConfigKey::T3, MatmulPlan::kTileBytes},
                                        {ConfigKey::DstBand, plan.kChunks * MatmulPlan::kTileBytes},
                                        {ConfigKey::Tail, plan.k % kBlock},
                                        {ConfigKey::ElemStride, at.bRow == 2 ? 0 : at.bRow},
                                        {ConfigKey::SrcSlice, llvm::popcount(unsigned(mask)) > 1 ? slice : 0}});
  hw::Instruction &move = load.emit(hw::Opcode::Move);
  move.set("src", static_cast<int64_t>(hw::Memory::GM)).set("dst", static_cast<int64_t>(hw::Memory::ST));
  move.set("slot", slot).set("slices", mask);
  load.address("saddr", at.b);
  load.address("daddr", at.st);
}

void emitPack(Program &program, const MatmulPlan &plan, const MatmulOperands &operands) {
  const int64_t perRound = plan.tilesARound() * 64, rounds = plan.n / perRound, rest = plan.n - rounds * perRound;
  if (rounds)
    packColumns(program, plan, operands, plan.mask(), rounds, plan.groups * 64);
  if (!rest)
    return;
  MatmulOperands tail = operands;
  tail.b = operands.b.plus(rounds * perRound * operands.bColumn);
  tail.st = operands.st.plus(rounds * plan.groups * plan.kChunks * MatmulPlan::kTileBytes);
  if (plan.columnSlices() == 1)
    return packColumns(program, plan, tail, plan.mask(), 1, rest);
  const int64_t columns = plan.groups * 64, full = rest / columns, left = rest - full * columns;
  if (full)
    packColumns(program, plan, tail, (1 << full) - 1, 1, columns);
  if (!left)
    return;
  tail.b = tail.b.plus(full * columns * operands.bColumn);
  packColumns(program, plan, tail, 1 << full, 1, left);
}

} // namespace dmxc::corsair

//===----------------------------------------------------------------------===//
// Batches
//===----------------------------------------------------------------------===//

/// How often a slice has a product of a batch: the last dim may be shared by the slices.
static int64_t turnsOf(const MatmulPlan &plan, ArrayRef<BatchDim> batch) {
  int64_t turns = 1;
  for (const BatchDim &dim : batch)
    turns *= plan.sharing == Sharing::Batch && &dim == &batch.back() ? (dim.extent + plan.slices - 1) / plan.slices
                                                                     : dim.extent;
  return turns;
}

/// Runs `emit` for every product of a batch, in loops; where each slice has a product of its own, for as many at once.
/// `stBytes`: B's tiles of one product in a slice; 0 when all products share them.
static void forEachProduct(Program &program, MatmulPlan plan, MatmulOperands at, ArrayRef<BatchDim> batch,
                           int64_t stBytes, llvm::function_ref<void(const MatmulPlan &, const MatmulOperands &)> emit) {
  if (batch.empty())
    return emit(plan, at);
  const BatchDim &dim = batch.front();
  const bool spread = plan.sharing == Sharing::Batch && batch.size() == 1;
  const int64_t atOnce = spread ? plan.slices : 1, turns = dim.extent / atOnce, rest = dim.extent % atOnce;
  const int64_t inner = stBytes * turnsOf(plan, batch.drop_front()); // tiles of the dims that follow
  if (spread)
    at.aSlice = dim.a, at.bSlice = dim.b, at.outSlice = dim.out;
  program.loop(turns, [&](int depth) {
    MatmulOperands body = at;
    body.a = at.a.plusLoop(depth, atOnce * dim.a);
    body.b = at.b.plusLoop(depth, atOnce * dim.b);
    body.out = at.out.plusLoop(depth, atOnce * dim.out);
    body.st = at.st.plusLoop(depth, inner);
    forEachProduct(program, plan, body, batch.drop_front(), stBytes, emit);
  });
  if (!rest)
    return;
  plan.slices = static_cast<int>(rest);
  at.a = at.a.plus(turns * atOnce * dim.a);
  at.b = at.b.plus(turns * atOnce * dim.b);
  at.out = at.out.plus(turns * atOnce * dim.out);
  at.st = at.st.plus(turns * inner);
  emit(plan, at);
}

void KernelLowering::multiply(const MatmulPlan &plan, const MatmulOperands &operands) {
  emitProduct(main, plan, operands);
  // The array controller loads WB itself when it streams; what the load queue brings there later must wait for that.
  if (weights < 0)
    weights = buffers.add(hw::Memory::WB, 2 * kWbHalf);
  if (!plan.isStationary())
    main.on(Queue::Array).uses(weights, true);
  else if (streamed)
    main.on(Queue::Load).uses(weights, true);
  streamed = !plan.isStationary();
}

/// Each quad multiplies by its rows of the weights; all send their sums to all, and everybody adds them up.
void KernelLowering::multiplyAlongK(Operation *op, int64_t depth) {
  auto matmul = cast<dmir::MatMulOp>(op);
  const DeviceTensor result = values[matmul.getResult()], whole = values[matmul.getLhs()];
  const int64_t elements = result.elements();
  DeviceTensor sums{hw::ElemKind::F32, {deal.quads, elements}, {elements * 4, 4}, {}};
  sums.address.buffer = buffers.add(hw::Memory::GM, deal.quads * elements * 4);
  sums.split = {0, 1};
  DeviceTensor part = result;
  part.kind = hw::ElemKind::F32;
  for (int64_t &stride : part.strides)
    stride *= 2;
  part.address = sums.address.plusQuad(elements * 4);
  MatmulShape shape(whole.local({static_cast<int>(whole.rank()) - 1, depth}), part);
  MatmulPlan plan = planMatmul(machine, packedRows(result.shape), shape.n, depth);
  plan.m = shape.m;
  shape.operands.st = residentTiles(matmul.getRhs());
  shape.operands.outBytes = 4;
  task(op);
  forEachProduct(main, plan, shape.operands, shape.batch, 0,
                 [&](const MatmulPlan &p, const MatmulOperands &at) { multiply(p, at); });
  exchange(&sums);
  for (int quad = 1; quad < deal.quads; ++quad) {
    SimdOp add{hw::SimdFunction::Add, {elements}};
    SimdOperand first{hw::ElemKind::F32, sums.address, {4}};
    add.sources = {first, {hw::ElemKind::F32, sums.address.plus(quad * elements * 4), {4}}};
    add.result = quad + 1 < deal.quads ? first : SimdOperand{result.kind, result.address, {2}};
    simd(std::move(add));
  }
}

Status KernelLowering::lowerMatmul(Operation *op) {
  auto matmul = cast<dmir::MatMulOp>(op);
  const Split split = deal.at(matmul.getResult());
  DeviceTensor a = values[matmul.getLhs()];
  const bool packed = tiles.count(matmul.getRhs());
  DeviceTensor out = allocate(matmul.getResult());
  values[matmul.getResult()] = out;
  if (out.elements() == 0)
    return Status::ok();
  if (const int64_t depth = deal.depth.lookup(op)) {
    multiplyAlongK(op, depth);
    return Status::ok();
  }
  const int rank = static_cast<int>(out.rank());
  auto part = [&](const DeviceTensor &operand, int lastDim) { // by batch dims, and A by rows
    Split own = split;
    own.dim -= rank - static_cast<int>(operand.rank());
    return split && split.dim <= lastDim && own.dim >= 0 && operand.shape[own.dim] != 1 ? operand.local(own) : operand;
  };
  a = part(a, rank - 2);
  out = out.local(split);
  if (packed) {
    // Packed for the rows of one product, whatever the batch.
    MatmulShape shape(a, out);
    MatmulPlan plan = planMatmul(machine, packedRows(out.shape), shape.n, shape.k);
    plan.m = shape.m;
    shape.operands.st = residentTiles(matmul.getRhs());
    task(op);
    forEachProduct(main, plan, shape.operands, shape.batch, 0,
                   [&](const MatmulPlan &p, const MatmulOperands &at) { multiply(p, at); });
    return Status::ok();
  }
  MatmulShape shape(a, part(values[matmul.getRhs()], rank - 3), out);
  llvm::stable_sort(shape.batch, [](const BatchDim &x, const BatchDim &y) { return x.extent < y.extent; });
  MatmulPlan plan = planMatmul(machine, shape.m, shape.n, shape.k, shape.batch.empty() ? 1 : shape.batch.back().extent);
  const int64_t bytes = turnsOf(plan, shape.batch) * plan.bytesPerSlice();
  shape.operands.st = {buffers.add(hw::Memory::ST, bytes), 0, {}};
  task(op);
  forEachProduct(main, plan, shape.operands, shape.batch, plan.bytesPerSlice(),
                 [&](const MatmulPlan &p, const MatmulOperands &at) { emitPack(main, p, at); });
  task(op);
  forEachProduct(main, plan, shape.operands, shape.batch, plan.bytesPerSlice(),
                 [&](const MatmulPlan &p, const MatmulOperands &at) { multiply(p, at); });
  return Status::ok();
}
