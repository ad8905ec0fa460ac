//===- AttentionParts.cpp - what kernels of attention read and write ----------===//

#include "AttentionParts.h"

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

AttentionParts::Row AttentionParts::rowOf(Value number) {
  number = b.minS(number, b.addC(b.idx(few.groupRows()), -1));
  Value first = b.mulC(group, few.share);
  if (few.share == 1)
    return {first, number};
  if (few.rows.is(1))
    return {b.add(first, number), b.idx(0)};
  return {b.add(first, b.floorDiv(number, b.idx(few.rows))), b.rem(number, b.idx(few.rows))};
}

Indices AttentionParts::indexOf(Value tensor, Value item, ArrayRef<Dim> batch, Value row, Value column) {
  SmallVector<Dim> own = dmir::dimsOf(tensor);
  size_t missing = batch.size() + 2 - own.size();
  Indices index(own.size(), e.at(b.idx(0)));
  Index rest = e.at(item);
  for (size_t axis = batch.size(); axis-- > 0;) {
    Index at = rest;
    if (batch[axis].is(1))
      at = e.at(b.idx(0));
    else if (!dmir::product(batch.take_front(axis)).is(1))
      std::tie(rest, at) = e.divRem(rest, batch[axis]);
    if (axis >= missing)
      index[axis - missing] = e.broadcastIndex(at, own[axis - missing], batch[axis]);
  }
  index[own.size() - 2] = e.at(row);
  index[own.size() - 1] = e.at(column);
  return index;
}

/// What the softmax takes, of a product's sum.
Value AttentionParts::scoreOf(const Row &row, Value sum, Value key) {
  e.forget();
  e.bindValue(attention.scores.getResult(), sum);
  SmallVector<Dim> dims = dmir::dimsOf(attention.softmax.getInput());
  Value score = e.evaluateWide(attention.softmax.getInput(), indexOf(attention.softmax.getInput(), row.item,
                                                                     ArrayRef(dims).drop_back(2), row.at, key));
  e.forget();
  return score;
}

/// What is rounded to bf16 on the way is asked for before that: nothing is done to it that others have to wait for.
Value AttentionParts::load(Value tensor, Value item, ArrayRef<Dim> batch, Value row, Value column) {
  Indices index = indexOf(tensor, item, batch, row, column);
  auto isCast = [](Value value, auto &&from) {
    auto cast = value.getDefiningOp<dmir::CastOp>();
    return cast && from(elementOf(cast.getInput()));
  };
  auto isBF16 = [](Type type) { return type.isBF16(); };
  if (!rounds)
    return e.evaluateWide(tensor, index);
  if (isCast(tensor, isBF16))
    tensor = tensor.getDefiningOp()->getOperand(0);
  if (elementOf(tensor).isBF16() && isCast(tensor, [](Type type) { return type.isF32(); }))
    tensor = tensor.getDefiningOp()->getOperand(0);
  if (!elementOf(tensor).isBF16())
    return e.evaluateWide(tensor, index);
  Value bits = arith::BitcastOp::create(b, b.getIntegerType(16), e.evaluate(tensor, index));
  return arith::ExtUIOp::create(b, b.getI32Type(), bits);
}

Value AttentionParts::whereKeys(Value value) {
  if (few.keys.known())
    return value;
  Value isNone = b.cmp(arith::CmpIPredicate::eq, b.idx(few.keys), b.idx(0));
  return arith::SelectOp::create(b, isNone, b.constant(f32, 0), value);
}

Value AttentionParts::powerOver(Value x, Value most) {
  Value isThere = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, most, lowest());
  Value from = arith::SelectOp::create(b, isThere, most, b.constant(f32, 0));
  if (auto vector = dyn_cast<VectorType>(x.getType()))
    from = b.splat(from, vector.getNumElements());
  return VectorMath(b, b.processor()).exp(arith::SubFOp::create(b, x, from));
}

Value AttentionParts::ofLanes(Value value, int64_t from, int64_t to, llvm::function_ref<Value(Value, Value)> combine) {
  for (int64_t distance = to / 2; distance >= from; distance /= 2)
    value = combine(value, b.shuffled(value, "bfly", b.constantInt(b.getI32Type(), distance)));
  return value;
}

void AttentionParts::write(Value number, Value column, Value value) {
  b.ifThen(b.cmp(arith::CmpIPredicate::slt, number, b.idx(few.groupRows())), [&] {
    Row row = rowOf(number);
    e.forget();
    e.bindValue(attention.result.getResult(), value);
    writer.write(indexOf(attention.result.getResult(), row.item, few.resultBatch, row.at, column));
  });
  e.forget();
}
