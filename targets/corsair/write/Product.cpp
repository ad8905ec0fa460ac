//===- Product.cpp - one product on the arrays ----------------------------===//
//
// Rows of A are quantised on the way into IB, 64 at a time and up to 8 blocks along K; B lies in ST as tiles, from
// where the array controller streams it: constants are packed by the compiler, a B that is computed is quantised on the
// way into ST. Sums leave OB as f16. Loading, multiplying and storing have a queue each and a double buffer between
// them. A convolution is a product whose rows the array controller takes from an image in GM.
//
// C (128 x 320) = A (128 x 512) x B (512 x 320), weights streamed, two tiles of 64 columns at a time (`groups`): bands
// of 64 rows b0, b1 downwards, rounds of two tiles r0, r1, r2 to the right, the last of one tile.
//
//         t0 t1 | t2 t3 | t4     queue Load         queue Array                 queue Store
//     b0  r0    | r1    | r2     b0 -> IB half 0
//     b1  r0    | r1    | r2     b1 -> IB half 1    b0 x t0 t1 -> OB half 0
//                                                   b0 x t2 t3 -> OB half 1     OB half 0 -> C b0, columns 0..127
//                                                   b0 x t4    -> OB half 1     OB half 1 -> C b0, columns 128..255
//                                                   b1 x t0 t1 -> OB half 1     OB half 1 -> C b0, columns 256..319
//
// Tokens between them, for each half: IbFull, IbFree; ObFree (Store to Load), ObReady (Load, with the bias in the sums,
// to Array), ObFull (Array to Store). With k over 512 a band comes in segments of 8 blocks, whose sums add up in OB.
// Stationary weights turn the loops round: rounds outside, their tiles in WB, and all bands pass them. Slices of the
// array share rows, columns or a batch; a mask says which take part, and a share how many tiles each of them stores.
//
// Rows of A may come from DDR, a band before it is loaded first, and those of the result go there when their last
// column is stored (`arrives`, `leaves`), on the queue of the vector device, which has nothing else to do or made them.
//
//===----------------------------------------------------------------------===//

#include "Drain.h"
#include "SimdOp.h"

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

namespace dmxc::corsair {

/// Emits one product of two matrices, or a loop body of many.
class ProductEmitter {
public:
  /// `at` is the first tile of a box of the plan's size, its weights' first round.
  ProductEmitter(Program &program, const ArrayUnits &units, const Spread &plan, const Segments &segments,
                 const MatmulOperands &operands)
      : program(program), plan(plan), segments(segments), at(operands), units(units) {}

  /// `stays`: the weights do, while rows pass.
  void run(const TileOrder::Box &box, bool stays) {
    phase = box.phase, stationary = stays;
    if (stationary)
      // A round's weights stay in WB while all rows pass.
      return forEachRound([&](const ProductEmitter &round, const Round &columns, int wbHalf) {
        round.loadWeights(columns, wbHalf);
        round.forEachBand([&](const ProductEmitter &band, const Band &rows) {
          band.withRows(rows, [&] { band.multiplyAndStore(rows, columns, rows.half ^ wbHalf, wbHalf); });
        });
        program.on(Queue::Array).signal(kWbFree + wbHalf);
      });
    if (box.columnsOutside)
      // Weights are streamed, and rows come again for each round.
      return forEachRound([&](const ProductEmitter &round, const Round &columns, int half) {
        round.forEachBand([&](const ProductEmitter &band, const Band &rows) {
          band.withRows(rows, [&] { band.multiplyAndStore(rows, columns, rows.half ^ half, 0); });
        });
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

  /// 64 rows by as many rounds.
  void runRounds(const Address &rounds) {
    const Band rows{plan.mask(), plan.sliceRows(), 0};
    const Round whole{plan.mask(), plan.groups, {{plan.mask(), 0, plan.groups, 64}}};
    withRows(rows, [&] {
      program.repeat(rounds, [&](int depth) { movedRight(depth, 1).multiplyAndStore(rows, whole, 0, 0); });
    });
  }

  /// 64 rows by one round of columns, their sums over as many segments along K.
  void runSegments(const Address &count) {
    QueueWriter array = program.on(Queue::Array);
    const int64_t rows = plan.sliceRows();
    const Round columns = plan.tilesN() < plan.tilesARound()
                              ? lastRound(plan.tilesN())
                              : Round{plan.mask(), plan.groups, {{plan.mask(), 0, plan.groups, lastColumns()}}};
    constexpr int half = 0; // of OB
    auto segment = [&](const ProductEmitter &part, int64_t number, int ib) {
      part.loadRows(columns.mask, rows, segments[number], ib);
      array.wait(kIbFull + ib);
      part.multiply(columns.mask, rows, 0, columns.tiles, number, ib, half, 0);
      array.signal(kIbFree + ib);
    };
    prepareSums(columns.mask, columns.tiles, rows, half);
    array.wait(kObReady + half);
    segment(*this, 0, 0);
    if (segments.size() > 1)
      program.repeat(count.plus(-1), [&](int depth) {
        ProductEmitter next = *this;
        next.at.a = at.a.plusLoop(depth, plan.segment * kBlock * at.aColumn);
        next.at.st = at.st.plusLoop(depth, plan.segment * Spread::kTileBytes);
        segment(next, 1, 1);
      });
    array.signal(kObFull + half);
    drain(program, units, plan, at, columns.shares, rows, half);
  }

private:
  /// Rows in each slice of a mask; alternate bands use alternate halves of buffers.
  struct Band {
    int mask;
    int64_t rows;
    int half;
  };
  /// `tiles` in each slice of a mask. Those that no share stores are zeros times something.
  struct Round {
    int mask;
    int64_t tiles;
    SmallVector<Share, 2> shares;
  };

  //--- places
  /// Down and to the right, once or in each trip of the loop at a depth.
  ProductEmitter moved(int64_t rows, int64_t rounds, int depth = -1) const {
    auto by = [depth](const Address &place, int64_t distance) {
      return distance == 0 ? place : depth < 0 ? place.plus(distance) : place.plusLoop(depth, distance);
    };
    ProductEmitter body = *this;
    body.at.a = by(at.a, at.conv ? 0 : rows * at.aRow);
    body.at.pixel = by(at.pixel, rows);
    body.at.st = by(at.st, rounds * stRound());
    body.at.bias = by(at.bias, rounds * biasRound());
    body.at.out = by(at.out, rows * at.outRow + rounds * outRound());
    for (auto [crossing, row] : {std::pair(&body.at.arrives, at.aRow), {&body.at.leaves, at.outRow}})
      if (crossing->buffer >= 0)
        *crossing = by(*crossing, rows * row);
    for (Beside &matrix : body.at.beside)
      matrix.at = by(matrix.at, rows * matrix.row + rounds * plan.tilesARound() * 64 * matrix.column);
    return body;
  }
  ProductEmitter movedDown(int64_t rows) const { return moved(rows, 0); }
  ProductEmitter movedDown(int depth, int64_t rows) const { return moved(rows, 0, depth); }
  ProductEmitter movedRight(int64_t rounds) const { return moved(0, rounds); }
  ProductEmitter movedRight(int depth, int64_t rounds) const { return moved(0, rounds, depth); }
  int64_t stRound() const { return plan.groups * plan.kChunks * Spread::kTileBytes; }
  int64_t biasRound() const { return plan.tilesARound() * 64 * 4; }
  int64_t outRound() const { return plan.tilesARound() * 64 * at.outBytes; }

  //--- loops
  void forEachBand(llvm::function_ref<void(const ProductEmitter &, const Band &)> body) const {
    const int64_t each = plan.sliceRows(), step = each * plan.rowSlices(), full = plan.m / step,
                  rest = plan.m - full * step, pairs = full / 2;
    program.loop(pairs, [&](int depth) {
      ProductEmitter pair = movedDown(depth, 2 * step);
      body(pair, {plan.mask(), each, 0});
      body(pair.movedDown(step), {plan.mask(), each, 1});
    });
    if (full % 2)
      body(movedDown(2 * pairs * step), {plan.mask(), each, 0});
    const int64_t wholeSlices = rest / each, lastRows = rest % each;
    if (wholeSlices)
      body(movedDown(full * step), {(1 << wholeSlices) - 1, each, 1});
    if (lastRows)
      body(movedDown(full * step + wholeSlices * each),
           {plan.rowSlices() > 1 ? 1 << wholeSlices : plan.mask(), lastRows, wholeSlices ? 0 : 1});
  }

  using RoundBody = llvm::function_ref<void(const ProductEmitter &, const Round &, int half)>;

  /// Whole rounds as a loop, then what is left; before them the rest of one in the middle of which the box begins.
  void forEachRound(RoundBody body) const {
    if (phase)
      return startedRound(body);
    const int64_t rounds = plan.n / 64 / plan.tilesARound(), rest = plan.tilesN() - rounds * plan.tilesARound();
    const Round whole{plan.mask(), plan.groups, {{plan.mask(), 0, plan.groups, 64}}};
    if (at.arrives.buffer >= 0 && rounds && plan.rounds() > 1) {
      body(*this, whole, 0);
      ProductEmitter others = movedRight(1);
      others.at.arrives = {}; // the first round has all rows come
      others.plan.n -= plan.tilesARound() * 64;
      return others.forEachRound(body);
    }
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

  void startedRound(RoundBody body) const {
    const int64_t begun = std::min(plan.tilesN(), plan.tilesARound() - phase);
    int half = 0;
    for (int64_t tile = 0; tile < begun; half ^= 1) {
      const int64_t slice = (phase + tile) / plan.groups, group = (phase + tile) % plan.groups, left = begun - tile;
      int64_t slices = group ? 0 : left / plan.groups;
      if (slices > 1 && tile + slices * plan.groups == plan.tilesN() && plan.n % 64)
        --slices; // the last one stores fewer columns
      const int mask = slices ? ((1 << slices) - 1) << slice : 1 << slice;
      const int64_t tiles = slices ? plan.groups : std::min(plan.groups - group, left),
                    done = tile + std::max<int64_t>(slices, 1) * tiles;
      ProductEmitter part = movedTo(tile);
      part.at.st = at.st.plus(group * plan.kChunks * Spread::kTileBytes);
      body(part, {mask, tiles, {{mask, 0, tiles, done == plan.tilesN() ? lastColumns() : 64}}}, half);
      tile = done;
    }
    ProductEmitter rest = movedTo(begun);
    rest.at.st = at.st.plus(stRound());
    rest.plan.n -= begun * 64;
    rest.phase = 0;
    if (rest.plan.n > 0)
      rest.forEachRound(body);
  }
  /// The bias and the result of a tile to the right.
  ProductEmitter movedTo(int64_t tile) const {
    ProductEmitter body = *this;
    body.at.bias = at.bias.plus(tile * 64 * 4);
    body.at.out = at.out.plus(tile * 64 * at.outBytes);
    for (Beside &matrix : body.at.beside)
      matrix.at = matrix.at.plus(tile * 64 * matrix.column);
    return body;
  }

  int64_t lastColumns() const { return plan.n % 64 ? plan.n % 64 : 64; }

  /// The last tiles of columns; of slices that share them some may have fewer than the others.
  Round lastRound(int64_t rest) const {
    if (plan.columnSlices() == 1)
      return {plan.mask(), rest, {{plan.mask(), 0, rest, lastColumns()}}};
    const int64_t full = lastColumns() == 64 ? rest / plan.groups : (rest - 1) / plan.groups;
    const int64_t left = rest - full * plan.groups;
    Round round{(1 << (full + (left > 0))) - 1, full ? plan.groups : left, {}};
    if (full)
      round.shares.push_back({(1 << full) - 1, 0, plan.groups, 64});
    if (left)
      round.shares.push_back({1 << full, full * plan.groups, left, lastColumns()});
    return round;
  }

  //--- instructions
  bool loadsOnce() const { return !at.conv && segments.size() == 1; }

  /// Runs `body` with the rows in IB, unless they come in segments or from an image.
  void withRows(const Band &rows, llvm::function_ref<void()> body) const {
    if (at.arrives.buffer >= 0)
      program.on(Queue::Load).copy(at.arrives, at.a, bytesOf(rows, at.aTiles, at.aRow)).create();
    withLoaded(rows, body);
    if (at.leaves.buffer < 0)
      return;
    const QueueWriter vector = program.on(Queue::Vector);
    if (!at.epilogue) {
      program.on(Queue::Store).signal(kRowsFull);
      vector.wait(kRowsFull);
    }
    vector.copy(at.out, at.leaves, bytesOf(rows, false, at.outRow)).create();
  }

  /// Of all slices; tiles are whole ones.
  DmaSpec bytesOf(const Band &rows, bool tiles, int64_t row) const {
    const int64_t count = rows.rows * (plan.rowSlices() > 1 ? llvm::popcount(unsigned(rows.mask)) : 1);
    return DmaSpec("raw", {}, (tiles ? (count + kRows - 1) / kRows * kRows : count) * row);
  }

  void withLoaded(const Band &rows, llvm::function_ref<void()> body) const {
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

  /// A round's tiles to WB: one a core.
  void loadWeights(const Round &columns, int half) const {
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

  void multiplyAndStore(const Band &rows, const Round &columns, int obHalf, int wbHalf) const {
    QueueWriter array = program.on(Queue::Array);
    const int mask = rows.mask & columns.mask;
    for (int64_t first = 0; first < rows.rows; first += plan.rowsAtOnce()) {
      const int64_t rowsNow = std::min(plan.rowsAtOnce(), rows.rows - first);
      const int half = rows.rows > plan.rowsAtOnce() ? static_cast<int>(first / plan.rowsAtOnce()) % 2 : obHalf;
      const ProductEmitter part = movedDown(first);
      prepareSums(mask, columns.tiles, rowsNow, half);
      array.wait(kObReady + half);
      for (size_t segment = 0; segment < segments.size(); ++segment) {
        const int ib = loadsOnce() ? rows.half : static_cast<int>(segment % 2);
        const bool loads = !loadsOnce() && !at.conv;
        if (loads) {
          if (at.aTiles)
            loadTiles(mask, rowsNow, segments[segment], ib, first);
          else
            part.loadRows(mask, rowsNow, segments[segment], ib);
          array.wait(kIbFull + ib);
        }
        multiply(mask, rowsNow, loads ? 0 : first, columns.tiles, segment, ib, half, wbHalf);
        if (loads)
          array.signal(kIbFree + ib);
      }
      array.signal(kObFull + half);
      SmallVector<Share, 2> shares(columns.shares);
      for (Share &share : shares)
        share.mask &= mask;
      drain(program, units, plan, part.at, shares, rowsNow, half);
    }
  }

  /// Takes half of OB and puts the bias into all rows. The load queue alone takes it, for products with a bias and
  /// without, so that it comes to them in their order.
  void prepareSums(int mask, int64_t tiles, int64_t rows, int half) const {
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

  /// Rows of A, blocks of 64 along K, quantised into half of IB.
  void loadRows(int mask, int64_t rows, ArrayRef<Addition> segment, int half) const {
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
      load.copy(at.a.plus(run.block * kBlock * at.aColumn), {units.ib, half * kIbHalf + run.slot * plan.pitch, {}},
                spec)
          .integer("units", mask)
          .create();
    }
    load.signal(kIbFull + half);
  }

  /// Rows of tiles, from row `first` of each on: exponents, then mantissas, which follow each other where it is 0.
  void loadTiles(int mask, int64_t rows, ArrayRef<Addition> segment, int half, int64_t first) const {
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

  void multiply(int mask, int64_t rows, int64_t row, int64_t count, size_t segment, int ibHalf, int obHalf,
                int wbHalf) const {
    int64_t slot = 0;
    for (const Addition &addition : segments[segment]) {
      const bool isFirst = segment == 0 && slot == 0;
      add(addition, {mask, rows, row, count}, isFirst, ibHalf * kIbHalf + slot * plan.pitch, obHalf,
          stationary ? wbHalf * kWbHalf : 0);
      slot += addition.count();
    }
  }

  /// Which rows of a tile, and how many tiles of columns.
  struct Extent {
    int mask;
    int64_t rows, row, tiles;
  };
  void add(const Addition &addition, const Extent &extent, bool isFirst, int64_t ib, int obHalf, int64_t wb) const {
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

  void readRows(const QueueWriter &array, TaskWriter &product, const Addition &addition, int64_t row,
                int64_t ib) const {
    array.reads(product, {units.ib, ib, {}});
    product.integer("activation_chunk", plan.pitch)
        .integer("activation_step", addition.imc * plan.pitch)
        .sum("row", row);
  }

  void readImage(const QueueWriter &array, TaskWriter &product, int64_t row) const {
    array.reads(product, at.a);
    array.sum(product, "pixel", at.pixel.plus(row));
    product.integer("image_blocks", at.conv->blocks)
        .integer("image_band", at.conv->blocks * Spread::kTileBytes)
        .integer("pixel_slice", plan.rowSlices() > 1 ? kRows : 0)
        .integer("pixels", at.conv->pixels)
        .set("window", windowClause(array.builder(), at.conv->window));
  }

  Program &program;
  Spread plan;
  const Segments &segments;
  MatmulOperands at;
  const ArrayUnits units;
  int64_t phase = 0;
  bool stationary = false;
};

void emitBox(Program &program, const ArrayUnits &units, const Spread &plan, const Segments &segments,
             const MatmulOperands &operands, const TileOrder::Box &box, bool stays) {
  ProductEmitter(program, units, plan, segments, operands).run(box, stays);
}

static Segments segmentsOf(const Spread &plan) {
  return TileTerms::of(plan, /*biased=*/false).segments(plan.segment, plan.kChunks);
}

void emitRounds(Program &program, const ArrayUnits &units, const Spread &plan, const MatmulOperands &operands,
                const Address &rounds) {
  const Segments segments = segmentsOf(plan);
  ProductEmitter(program, units, plan, segments, operands).runRounds(rounds);
}

void emitSegments(Program &program, const ArrayUnits &units, const Spread &plan, const MatmulOperands &operands,
                  const Address &segments) {
  const Segments all = segmentsOf(plan);
  ProductEmitter(program, units, plan, all, operands).runSegments(segments);
}

} // namespace dmxc::corsair
