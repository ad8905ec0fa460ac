//===- KeyTests.cpp - what a rule keeps, asked in a run -----------------------===//

#include "KeyTests.h"

#include "targets/common/element/ElementMask.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace dmxc::kernels;
using namespace mlir;

bool dmxc::cpu::differsAlongKeys(const dmir::Rule &rule) {
  return llvm::any_of(rule.values, [](const dmir::RuleValue &value) { return value.ofColumns; });
}

KeyTests::KeyTests(CpuBuilder &b, ElementExpr &e, dmir::MaskOp mask, dmir::Rule ofRows, ArrayRef<Index> batch,
                   Value row, Value rows)
    : b(b), e(e), mask(mask), rule(std::move(ofRows)), batch(batch) {
  for (const Index &index : batch)
    rowBounds.emplace_back(index.base, index.base);
  rowBounds.emplace_back(row, b.addC(b.add(row, rows), -1));
  for (Dim dim : rule.dims)
    symbolBounds.emplace_back(b.idx(dim), b.idx(dim));
  for (auto [position, how] : llvm::enumerate(rule.values)) {
    int64_t most = how.isBool ? 1 : dmir::kMostValue;
    if (how.ofColumns)
      symbolBounds.emplace_back(b.idx(how.isBool ? 0 : -most), b.idx(most));
    else
      symbolBounds.push_back(boundsOf(mask.getValues()[position], how, b.idx(0), b.idx(1)));
  }
}

std::pair<Value, Value> KeyTests::ask(Value from, Value to) {
  SmallVector<Bounds> box(rowBounds), symbols(symbolBounds);
  box.emplace_back(from, b.addC(to, -1));
  for (auto [position, how] : llvm::enumerate(rule.values))
    if (how.ofColumns)
      symbols[rule.dims.size() + position] = boundsOf(mask.getValues()[position], how, from, to);
  return whetherKept(b, rule, box, symbols);
}

namespace {

/// The least and the greatest of numbers, lane by lane; of bools whether all are, and whether one is.
class Extremes {
public:
  Extremes(CpuBuilder &b, Type element, int64_t lanes)
      : b(b), lanes(lanes), isBool(element.isInteger(1)), type(b.laneType(element, lanes)) {}

  SmallVector<Value> none() const {
    int64_t most = isBool ? 1 : dmir::kMostValue;
    return {b.constantInt(type, most), b.constantInt(type, isBool ? 0 : -most)};
  }

  /// With a value more, in lanes that are `inside`; null: all.
  SmallVector<Value> with(ValueRange found, Value x, Value inside) const {
    SmallVector<Value> start = none();
    auto own = [&](Value neutral) -> Value {
      return inside ? arith::SelectOp::create(b, inside, x, neutral).getResult() : x;
    };
    Value low = own(start[0]), high = own(start[1]);
    if (isBool)
      return {arith::AndIOp::create(b, found[0], low), arith::OrIOp::create(b, found[1], high)};
    return {arith::MinSIOp::create(b, found[0], low), arith::MaxSIOp::create(b, found[1], high)};
  }

  /// As bounds, whose numbers are those that rules count with.
  std::pair<Value, Value> bounds(ValueRange found) const {
    auto one = [&](Value lanesOf, vector::CombiningKind ofBools, vector::CombiningKind ofNumbers) -> Value {
      Value x = lanesOf;
      if (lanes > 1)
        x = vector::ReductionOp::create(b, isBool ? ofBools : ofNumbers, x);
      if (isBool)
        return arith::ExtUIOp::create(b, b.getI64Type(), x);
      return b.minS(b.maxS(x, b.idx(-dmir::kMostValue)), b.idx(dmir::kMostValue));
    };
    return {one(found[0], vector::CombiningKind::AND, vector::CombiningKind::MINSI),
            one(found[1], vector::CombiningKind::OR, vector::CombiningKind::MAXSI)};
  }

private:
  CpuBuilder &b;
  int64_t lanes;
  bool isBool;
  Type type;
};

} // namespace

/// Of the block's rows and keys [from, to), along what it differs.
KeyTests::Bounds KeyTests::boundsOf(Value value, const dmir::RuleValue &how, Value from, Value to) {
  constexpr unsigned bits = 64;
  int64_t lanes = !how.ofColumns ? 1 : how.isBool ? b.isa().lanes(8) : b.isa().lanes(bits);
  Extremes extremes(b, how.isBool ? elementOf(value) : b.getI64Type(), lanes);
  SmallVector<Dim> own = dmir::dimsOf(value), whole = dmir::dimsOf(mask.getInput());
  auto add = [&](Value row, Value column, Value inside, ValueRange found) {
    ElementExpr::Lanes scope(e, lanes, inside);
    Indices index(batch);
    index.append({e.at(row), e.at(column, 1, lanes > 1)});
    Value x = e.evaluate(value, broadcastIndices(e, index, own, whole));
    if (elementOf(value).isInteger(32))
      x = arith::ExtSIOp::create(b, b.laneType(b.getI64Type(), lanes), x);
    return extremes.with(found, x, inside);
  };
  auto [first, last] = rowBounds.back();
  Value end = how.ofRows ? b.addC(last, 1) : b.addC(first, 1);
  SmallVector<Value> found = b.forLoop(first, end, b.idx(1), extremes.none(), [&](Value row, ValueRange before) {
    if (!how.ofColumns)
      return add(row, b.idx(0), {}, before);
    Value step = b.idx(lanes), vectors = b.add(from, b.mulC(b.floorDiv(b.sub(to, from), step), lanes));
    SmallVector<Value> all =
        b.forLoop(from, vectors, step, before, [&](Value column, ValueRange now) { return add(row, column, {}, now); });
    if (lanes == 1)
      return all;
    return b.forLoop(vectors, to, step, all, [&](Value column, ValueRange now) {
      return add(row, column, b.headMask(lanes, b.sub(to, column)), now);
    });
  });
  e.forget();
  return extremes.bounds(found);
}
