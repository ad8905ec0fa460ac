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
// Rows of A may come from DDR, and those of the result go there when the last column of a band is stored (`arrives`,
// `leaves`), on the queue of the vector device, which has nothing else to do or made them: first all that come. Where
// the vector device makes what is stored, the load queue brings a band before it loads it first.
//
//===----------------------------------------------------------------------===//

#include "arrays/ArrayTasks.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

namespace dmxc::corsair {

/// Emits one product of two matrices, or a loop body of many.
class ProductEmitter : ArrayTasks {
public:
  /// `at` is the first tile of a box of the plan's size, its weights' first round.
  ProductEmitter(Program &program, const ArrayUnits &units, const Spread &plan, const Segments &segments,
                 const MatmulOperands &operands)
      : ArrayTasks(program, units, plan, segments, operands) {}

  /// Has the columns that another one computes of the same rows follow these.
  void add(ProductEmitter next, int64_t first) {
    next.phase = first;
    right.push_back(std::move(next));
  }

  /// `stays`: the weights do, while rows pass.
  void run(const TileOrder::Box &box, bool stays) {
    phase = box.phase, stationary = stays;
    bringAhead();
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
    forEachBand(
        [&](const ProductEmitter &band, const Band &rows) { band.crossing(rows, [&] { band.allRounds(rows); }); });
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
        next.at.a = at.a.plusLoop(depth, plan.segment * 64 * at.aColumn);
        next.at.st = at.st.plusLoop(depth, plan.segment * Spread::kTileBytes);
        segment(next, 1, 1);
      });
    array.signal(kObFull + half);
    drain(program, units, plan, at, columns.shares, rows, half);
  }

private:
  /// A band's rounds of these columns and of those to the right, each with its halves of IB and OB.
  void allRounds(const Band &rows) const {
    int64_t ib = rows.half * (static_cast<int64_t>(right.size()) + 1), ob = rows.half;
    auto all = [&](const ProductEmitter &part) {
      const Band loaded{rows.mask, rows.rows, static_cast<int>(ib++ % 2)};
      part.withLoaded(loaded, [&] {
        part.forEachRound([&](const ProductEmitter &round, const Round &columns, int half) {
          round.multiplyAndStore(loaded, columns, static_cast<int>(ob % 2) ^ half, 0);
        });
      });
      ob += part.plan.rounds();
    };
    all(*this);
    for (const ProductEmitter &part : right)
      all(part);
  }

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
    body.right.clear();
    for (const ProductEmitter &next : right)
      body.right.push_back(next.moved(rows, 0, depth));
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

  void withRows(const Band &rows, llvm::function_ref<void()> body) const {
    crossing(rows, [&] { withLoaded(rows, body); });
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

  std::vector<ProductEmitter> right; ///< of other columns of the same rows
  int64_t phase = 0;
};

void emitBoxes(Program &program, const ArrayUnits &units, ArrayRef<PlacedBox> boxes, bool stays) {
  auto emitterOf = [&](const PlacedBox &each) {
    return ProductEmitter(program, units, each.plan, *each.segments, each.operands);
  };
  ProductEmitter first = emitterOf(boxes.front());
  for (const PlacedBox &each : boxes.drop_front())
    first.add(emitterOf(each), each.box.phase);
  first.run(boxes.front().box, stays);
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
