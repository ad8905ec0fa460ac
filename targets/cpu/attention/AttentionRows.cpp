//===- AttentionRows.cpp - attention of a block's whole rows at once -----------===//

#include "AttentionEmitter.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

void AttentionEmitter::emitRows() {
  from = b.idx(0), to = b.idx(d.result.k);
  chooseKeys(
      [&](const AttentionKeys &keys) {
        from = keys.first, to = keys.last;
        emitKeptScores(keys);
      },
      [&](Value row) { return highestOf(row); });
  b.forLoop(b.idx(0), rows, b.idx(1), [&](Value row) { emitSoftmax(row); });
  emitResult();
}

/// Scores of a block's keys: where all rows keep all keys, the rule is not asked.
void AttentionEmitter::emitKeptScores(const AttentionKeys &keys) {
  dmir::MaskOp mask = d.mask;
  if (!mask)
    return emitScores(keys.first, keys.last);
  auto isFirst = [&](Value part) { return b.cmp(arith::CmpIPredicate::eq, part, b.idx(0)); };
  b.forLoop(b.idx(0), b.idx(2), b.idx(1), [&](Value part) {
    Value from = arith::SelectOp::create(b, isFirst(part), keys.first, keys.lastFull);
    Value to = arith::SelectOp::create(b, isFirst(part), keys.firstFull, keys.last);
    emitScores(from, to);
  });
  if (d.all)
    return;
  e.bind(mask.getResult(), [this, mask](ArrayRef<Index> index) mutable { return e.evaluate(mask.getInput(), index); });
  emitScores(keys.firstFull, keys.lastFull);
  e.unbind(mask.getResult());
}

void AttentionEmitter::emitSoftmax(Value row) {
  Value total = powersOf(row, highestOf(row), bool(d.attention.zeroRows));
  // At least 1, or NaN; 0 where there are no keys, and the result is to be zeros.
  Value none = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, total, b.constant(f32, 0));
  total = arith::SelectOp::create(b, none, b.constant(f32, 1), total);
  Value inverse = arith::DivFOp::create(b, b.constant(f32, 1), total);
  if (d.attention.zeroRows) {
    inverse = clearRow(row, total, inverse);
  } else {
    finishWeights(row, b.splat(inverse, b.isa().lanes(32)));
    inverse = b.constant(f32, 1);
  }
  b.store(inverse, inverses, row);
}

/// Divides the weights of a row and does with them what comes behind the softmax.
void AttentionEmitter::finishWeights(Value row, Value inverse) {
  int64_t lanes = b.isa().lanes(32);
  Value softmax = d.attention.softmax.getResult(), weights = d.attention.weights();
  b.forLoop(from, to, b.idx(lanes), [&](Value column) {
    Value at = b.add(b.mul(row, stride), column);
    // Lanes beyond the row are written, and not read.
    Value inside = lanes > 1 ? b.headMask(lanes, b.sub(to, column)) : Value();
    ElementExpr::Lanes scope(e, lanes, inside);
    e.forget();
    e.bindValue(softmax, mul(b.load(f32, table, at, lanes), inverse));
    Value weight = e.evaluate(weights, indexOf(weights, row, e.at(column, lanes, lanes > 1)));
    if (inside && d.result.runPairs) // the second of the last pair
      weight = arith::SelectOp::create(b, inside, weight, b.constant(b.laneType(f32, lanes), 0));
    storeWeights(weight, row, column);
  });
  e.unbind(softmax);
}

void AttentionEmitter::emitResult() {
  GemmKernel spec = d.specOf(d.result);
  GemmCallbacks callbacks = storing([this](Value row, Index column, Value sums) { writeSums(row, column, sums); });
  GemmMatrix weights = weightsFrom(from);
  GemmMatrix v = matrixWithin(b, d.result.right(b), batch, from);
  emitGemm(b, spec, tilesOf(d.result), weights, v, callbacks, {.m = rows, .k = b.sub(to, from)});
  e.unbind(d.result.result());
}
