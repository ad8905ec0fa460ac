//===- AttentionTiles.cpp - attention of many keys, some at a time -------------===//
//
// A row's greatest score so far is subtracted from its scores; where a tile has a greater one, the row's sum and result
// so far are scaled by the power of the difference (Milakov and Gimelshein 2018, "Online normalizer calculation for
// softmax"). Tiles begin at multiples of their keys, whatever is left out, and one without a score above -inf, or below
// another by more than powers of f32 reach, changes no bit of what is there: it is the same to leave it out.
//
//===----------------------------------------------------------------------===//

#include "AttentionEmitter.h"

#include "targets/common/element/ElementMask.h"

#include "llvm/ADT/SetVector.h"

#include <limits>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace dmxc::kernels;
using namespace mlir;

static constexpr double kLowest = -std::numeric_limits<double>::infinity();

void AttentionEmitter::emitTiles() {
  if (d.asksTiles())
    walkTiles();
  else
    chooseKeys([&](const AttentionKeys &keys) { lookAtTiles(keys); },
               [&](Value row) { return b.load(f32, highest, row); });
  b.forLoop(b.idx(0), rows, b.idx(1), [&](Value row) {
    if (d.isLinear()) {
      b.store(b.constant(f32, 1), inverses, row);
      return writeResult(row);
    }
    Value total = b.load(f32, totals, row);
    // At least 1, or NaN; 0 where no score is above -inf, which is NaN, or where there are no keys.
    Value none = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, total, b.constant(f32, 0));
    Value isEmpty = b.cmp(arith::CmpIPredicate::sle, b.idx(d.result.k), b.idx(0));
    Value instead = arith::SelectOp::create(b, isEmpty, b.constant(f32, 1),
                                            b.constant(f32, std::numeric_limits<double>::quiet_NaN()));
    total = arith::SelectOp::create(b, none, instead, total);
    b.store(clearRow(row, total, arith::DivFOp::create(b, b.constant(f32, 1), total)), inverses, row);
    writeResult(row);
  });
}

void AttentionEmitter::startRows() {
  int64_t lanes = b.isa().lanes(32);
  b.forLoop(b.idx(0), rows, b.idx(1), [&](Value row) {
    b.store(b.constant(f32, kLowest), highest, row);
    b.store(b.constant(f32, 0), totals, row);
    b.store(b.constant(f32, 1), scales, row);
    Value base = b.mulC(row, d.resultStride());
    b.forLoop(b.idx(0), b.idx(d.resultStride() - 16), b.idx(lanes),
              [&](Value column) { b.store(b.constant(b.laneType(f32, lanes), 0), results, b.add(base, column)); });
  });
}

/// Calls `use` with whole tiles, and with what is left where all keys are no multiple of them.
void AttentionEmitter::forEachTile(Value first, Value last,
                                   llvm::function_ref<void(Value at, Value end, int64_t keys)> use) {
  std::optional<int64_t> known = d.result.k.known();
  bool isWhole = known && *known % d.keys == 0;
  Value size = b.idx(d.keys);
  Value whole = isWhole ? last : b.add(first, b.mulC(b.floorDiv(b.sub(last, first), size), d.keys));
  b.forLoop(first, whole, size, [&](Value at) { use(at, b.add(at, size), d.keys); });
  if (!isWhole)
    b.ifThen(b.cmp(arith::CmpIPredicate::slt, whole, last), [&] { use(whole, last, kDynamic); });
}

void AttentionEmitter::lookAtTiles(const AttentionKeys &keys) {
  startRows();
  auto isFull = [&](Value at, Value end) -> Value {
    return arith::AndIOp::create(b, b.cmp(arith::CmpIPredicate::sge, at, keys.firstFull),
                                 b.cmp(arith::CmpIPredicate::sle, end, keys.lastFull));
  };
  forEachTile(keys.first, keys.last, [&](Value at, Value end, int64_t ofTile) {
    Value full = isFull(at, end);
    if (!d.asksNumbers())
      return emitTile(at, end, full, ofTile);
    auto [some, every] = tests->ask(at, end);
    if (keys.again)
      some = arith::OrIOp::create(b, some, keys.again);
    b.ifThen(some, [&, every = every] { emitTile(at, end, arith::OrIOp::create(b, full, every), ofTile); });
  });
}

/// Keys [at, end): as many as `keys` says, or fewer where that is kDynamic.
void AttentionEmitter::emitTile(Value at, Value end, Value isFull, int64_t keys, const dmir::Rule *rule) {
  origin = at;
  dmir::MaskOp mask = d.mask;
  if (!mask || d.all || !isFull) {
    emitMaskedScores(at, end, keys, rule);
  } else {
    b.ifThen(
        isFull,
        [&] {
          e.bind(mask.getResult(),
                 [this, mask](ArrayRef<Index> index) mutable { return e.evaluate(mask.getInput(), index); });
          emitScores(at, end, keys);
          e.unbind(mask.getResult());
        },
        [&] { emitMaskedScores(at, end, keys, rule); });
  }
  from = b.idx(0), to = keys < 0 ? b.sub(end, at) : b.idx(keys);
  if (!d.isLinear())
    b.forLoop(b.idx(0), rowCount(), b.idx(1), [&](Value row) {
      fetchMatrices(this->at(rowLine, row), end,
                    d.keys); // of the next tile, which is begun as soon as this one is done
      addToRow(this->at(rowLine, row));
    });
  addResult(at, keys);
}

/// Scores of which some may be left out, by a rule in the place of the mask's own; null: by that.
void AttentionEmitter::emitMaskedScores(Value at, Value end, int64_t keys, const dmir::Rule *rule) {
  dmir::MaskOp mask = d.mask;
  if (rule)
    e.bind(mask.getResult(), [this, mask, rule](ArrayRef<Index> index) { return evaluateMask(e, mask, index, *rule); });
  emitScores(at, end, keys);
  if (rule)
    e.unbind(mask.getResult());
}

/// The kernel's buffers of a matrix that scores are computed with, element by element.
static llvm::SmallSetVector<BlockArgument, 4> matricesIn(Value scores, Value product) {
  llvm::SmallSetVector<BlockArgument, 4> matrices;
  llvm::SmallSetVector<Value, 16> values;
  values.insert(scores);
  for (size_t at = 0; at < values.size(); ++at) {
    SmallVector<Dim> dims = dmir::dimsOf(values[at]);
    auto argument = dyn_cast<BlockArgument>(values[at]);
    Operation *op = values[at].getDefiningOp();
    if (argument && dims.size() >= 2 && !dims.back().is(1) && !dims[dims.size() - 2].is(1))
      matrices.insert(argument);
    else if (op && values[at] != product && op->hasTrait<dmir::Elementwise>())
      values.insert(op->operand_begin(), op->operand_end());
  }
  return matrices;
}

/// Asks for some keys of a row of what scores are computed with: each element is read once, with little to do
/// meanwhile.
void AttentionEmitter::fetchMatrices(Value row, Value next, int64_t keys) {
  constexpr int64_t line = 64, secondLevel = 2;
  if (keyLine.first) // keys of a class are not neighbours
    return;
  Value scores = d.weightsSource();
  for (BlockArgument matrix : matricesIn(scores, d.scores.result())) {
    Type element = elementOf(matrix);
    if (b.panelsOf(matrix.getArgNumber()).unit || isPacked(element))
      continue;
    int64_t each = line / std::max<int64_t>(1, element.getIntOrFloatBitWidth() / 8);
    Indices index = broadcastIndices(e, indexOf(scores, row, e.at(next)), dmir::dimsOf(matrix), dmir::dimsOf(scores));
    Index offset = e.offsetOf(typeOf(matrix), index);
    for (int64_t at = 0; at < keys; at += each)
      b.prefetch(element, b.buffer(matrix.getArgNumber()), b.addC(offset.base, at), secondLevel);
  }
}

void AttentionEmitter::addToRow(Value row) {
  Value before = b.load(f32, highest, row), now = max(highestOf(row), before);
  // Where there is nothing above -inf yet, 0 is subtracted: the powers are 0.
  Value none = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, now, b.constant(f32, kLowest));
  Value shift = arith::SelectOp::create(b, none, b.constant(f32, 0), now);
  Value sum = powersOf(row, shift, /*areWeights=*/true);
  Value scale = VectorMath(b, b.isa()).exp(arith::SubFOp::create(b, before, shift));
  b.store(now, highest, row);
  b.store(scale, scales, row);
  b.store(add(mul(b.load(f32, totals, row), scale), sum), totals, row);
}

/// Adds the weighted values of a tile to the results.
void AttentionEmitter::addResult(Value at, int64_t keys) {
  GemmCallbacks callbacks = storing([this](Value row, Index column, Value sums) {
    row = this->at(rowLine, row);
    Value place = b.add(b.mulC(row, d.resultStride()), column.base),
          scale = b.splat(b.load(f32, scales, row), e.lanes());
    b.store(add(mul(b.load(f32, results, place, e.lanes()), scale), sums), results, place);
  });
  GemmMatrix weights = weightsFrom(b.idx(0));
  if (rowLine.first) {
    Value offset = b.mul(rowLine.first, weights.rowStride);
    weights.offset = [offset](Value) { return offset; };
  }
  weights.rowStride = b.mulC(weights.rowStride, rowLine.step);
  GemmMatrix v = matrixWithin(b, d.result.right(b), batch, this->at(keyLine, at));
  v.rowStride = b.mulC(v.rowStride, keyLine.step);
  emitGemm(b, d.specOf(d.result, keys), tilesOf(d.result, keys), weights, v, callbacks, {.m = rowCount(), .k = to});
}

void AttentionEmitter::writeResult(Value row) {
  int64_t lanes = b.isa().lanes(32), n = *d.result.n.known();
  auto write = [&](Value column, Value mask) {
    ElementExpr::Lanes scope(e, lanes, mask);
    e.forget();
    Value place = b.add(b.mulC(row, d.resultStride()), column);
    writeSums(row, e.at(column, lanes, lanes > 1), b.load(f32, results, place, lanes));
  };
  int64_t whole = n / lanes * lanes;
  b.forLoop(b.idx(0), b.idx(whole), b.idx(lanes), [&](Value column) { write(column, {}); });
  if (whole < n)
    write(b.idx(whole), b.headMask(lanes, n - whole));
  e.unbind(d.result.result());
}
