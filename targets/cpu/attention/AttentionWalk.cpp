//===- AttentionWalk.cpp - attention of tiles that are each asked about --------===//
//
// Where what is kept is no range of keys a block of rows: a rule of several cases, a list of tiles. And where what is
// left out is not nothing: one number in the place of scores weighs so many powers of it, and so many times the sum of
// the values; a number that is added to scores leaves them out as far as a bound of theirs says that they weigh
// nothing.
//
//===----------------------------------------------------------------------===//

#include "AttentionEmitter.h"

#include "targets/common/element/ElementMask.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace dmxc::kernels;
using namespace mlir;

/// Places in AttentionEmitter::state.
static constexpr int64_t kLooksAgain = 2, kLeftOut = 3;

void AttentionEmitter::walkTiles() {
  if (d.classes)
    return walkClasses();
  rangesOf(d.rule(), b.idx(0), rows);
  if (!d.looksAgain())
    return walkOnce({});
  setNumber(kLooksAgain, b.idx(1));
  boundLines();
  b.forLoop(b.idx(0), b.idx(2), b.idx(1), [&](Value pass) {
    b.ifThen(b.cmp(arith::CmpIPredicate::ne, number(kLooksAgain), b.idx(0)), [&] {
      Value isAgain = b.cmp(arith::CmpIPredicate::ne, pass, b.idx(0));
      walkOnce(isAgain);
      setNumber(kLooksAgain, b.idx(0));
      Value leavesOut = b.cmp(arith::CmpIPredicate::ne, number(kLeftOut), b.idx(0));
      b.ifThen(leavesOut, [&] {
        b.forLoop(b.idx(0), rows, b.idx(1),
                  [&](Value row) { b.ifThen(mayCount(row), [&] { setNumber(kLooksAgain, b.idx(1)); }); });
      });
    });
  });
}

/// The keys that each case keeps some of for rows of the block.
void AttentionEmitter::rangesOf(const dmir::Rule &rule, Value from, Value count) {
  cases.clear();
  testRows(from, count);
  for (IntegerSet set : rule.cases) {
    dmir::Rule one = rule;
    one.cases = {set};
    cases.push_back(keptColumns(b, one, tests->rows(), tests->symbols(), b.idx(d.result.k)));
  }
}

/// Visits the tiles of which something is kept, or all of them.
void AttentionEmitter::walkOnce(Value isAgain) {
  startRows();
  if (d.countsLeftOut())
    setNumber(kLeftOut, b.idx(0));
  if (d.adds())
    b.store(b.constant(f32, 0), state, b.idx(kGreatestKey));
  if (d.weighs())
    b.forLoop(b.idx(0), b.idx(d.resultStride()), b.idx(1),
              [&](Value column) { b.store(b.constant(f32, 0), leftOut, column); });
  forEachTile(b.idx(0), b.idx(d.result.k), [&](Value at, Value end, int64_t ofTile) {
    if (d.all)
      return emitTile(at, end, {}, ofTile);
    Visit visit = visitOf(at, end);
    if (isAgain)
      visit.present = arith::OrIOp::create(b, visit.present, isAgain);
    auto look = [&] { emitTile(at, end, d.mask ? visit.full : Value(), ofTile); };
    if (d.countsLeftOut())
      b.ifThen(visit.present, look, [&] { leaveOut(at, end); });
    else
      b.ifThen(visit.present, look);
  });
  if (d.weighs())
    b.ifThen(b.cmp(arith::CmpIPredicate::ne, number(kLeftOut), b.idx(0)),
             [&] { b.forLoop(b.idx(0), rows, b.idx(1), [&](Value row) { weighLeftOut(row); }); });
}

AttentionEmitter::Visit AttentionEmitter::visitOf(Value at, Value end) {
  Visit visit;
  auto less = [&](Value x, Value y) { return b.cmp(arith::CmpIPredicate::slt, x, y); };
  auto both = [&](Value x, Value y) -> Value { return arith::AndIOp::create(b, x, y); };
  for (const dmir::ColumnRange<Value> &range : cases) {
    Value meets = both(both(less(at, range.last), less(range.first, end)), less(range.first, range.last));
    Value isWhole = both(b.cmp(arith::CmpIPredicate::sge, at, range.firstFull),
                         b.cmp(arith::CmpIPredicate::sle, end, range.lastFull));
    visit.present = visit.present ? Value(arith::OrIOp::create(b, visit.present, meets)) : meets;
    visit.full = visit.full ? Value(arith::OrIOp::create(b, visit.full, isWhole)) : isWhole;
  }
  if (d.asksNumbers()) {
    auto [some, every] = tests->ask(at, end);
    visit = {both(visit.present, some), arith::OrIOp::create(b, visit.full, every)};
  }
  if (!d.rule().tiles)
    return visit;
  Visit listed = inLists(at);
  return {both(visit.present, listed.present), both(visit.full, listed.full)};
}

/// What the mask's lists have of a tile of the block: looked up in a table by block and tile.
AttentionEmitter::Visit AttentionEmitter::inLists(Value at) {
  const dmir::Rule rule = d.rule();
  const int64_t m = *d.result.m.known(), k = *d.result.k.known(), width = ceilDivInt(k, d.keys);
  std::string bytes;
  for (int64_t row = 0; row < m; row += d.places())
    for (int64_t key = 0; key < k; key += d.keys) {
      SmallVector<dmir::Interval> box(rule.rank, {0, 0});
      box[rule.rank - 2] = {row, std::min(row + d.places(), m) - 1}, box.back() = {key, std::min(key + d.keys, k) - 1};
      dmir::TileKind kind = dmir::classifyTiles(rule.tiles, box[rule.rank - 2], box.back());
      bytes.push_back(static_cast<char>(kind == dmir::TileKind::Empty ? 0 : kind == dmir::TileKind::Mixed ? 1 : 2));
    }
  Value table = e.tableOf(d.attention.softmax, bytes, 1);
  Value place = b.add(b.mulC(b.floorDiv(first, b.idx(d.places())), width), b.floorDiv(at, b.idx(d.keys)));
  Value kind = b.load(b.getI8Type(), table, place);
  auto is = [&](arith::CmpIPredicate predicate, int64_t number) {
    return b.cmp(predicate, kind, b.constantInt(kind.getType(), number));
  };
  return {is(arith::CmpIPredicate::ne, 0), is(arith::CmpIPredicate::eq, 2)};
}

//===----------------------------------------------------------------------===//
// What is left out
//===----------------------------------------------------------------------===//

void AttentionEmitter::leaveOut(Value at, Value end) {
  setNumber(kLeftOut, b.add(number(kLeftOut), b.sub(end, at)));
  if (d.weighs())
    sumValues(at, end);
  if (d.adds())
    boundKeys(at, end);
}

/// Adds the values of keys to those that are left out.
void AttentionEmitter::sumValues(Value at, Value end) {
  GemmMatrix v = matrixWithin(b, d.result.right(b), batch, at);
  Type element = d.result.rhsElement;
  Value base = b.elementPtr(element, v.base, v.offset({}));
  int64_t n = *d.result.n.known(), lanes = CpuBuilder::constantOf(v.colStride) == 1 ? b.isa().lanes(32) : 1;
  auto sum = [&](Value column, int64_t lanes) {
    Value start = b.constant(b.laneType(f32, lanes), 0), shift = b.mul(column, v.colStride);
    Value total = b.forLoop(b.idx(0), b.sub(end, at), b.idx(1), start, [&](Value key, ValueRange sums) {
      Value x = b.load(element, base, b.add(b.mul(key, v.rowStride), shift), lanes);
      x = convertElements(b, {element, f32, false}, x);
      return SmallVector<Value>{add(sums[0], d.result.roundsRhs ? roundToBf16(b, x) : x)};
    })[0];
    b.store(add(b.load(f32, leftOut, column, lanes), total), leftOut, column);
  };
  const int64_t whole = n / lanes * lanes;
  b.forLoop(b.idx(0), b.idx(whole), b.idx(lanes), [&](Value column) { sum(column, lanes); });
  if (whole < n)
    b.forLoop(b.idx(whole), b.idx(n), b.idx(1), [&](Value column) { sum(column, 1); });
}

/// A tile of the fill for each row: as many powers of it as keys are left out.
void AttentionEmitter::weighLeftOut(Value row) {
  Value before = b.load(f32, highest, row), fill = b.constant(f32, d.fill()), now = max(fill, before);
  VectorMath math(b, b.isa());
  Value scale = math.exp(arith::SubFOp::create(b, before, now)), weight = math.exp(arith::SubFOp::create(b, fill, now));
  Value count = arith::SIToFPOp::create(b, f32, number(kLeftOut));
  b.store(now, highest, row);
  b.store(add(mul(b.load(f32, totals, row), scale), mul(count, weight)), totals, row);
  int64_t lanes = b.isa().lanes(32);
  Value base = b.mulC(row, d.resultStride());
  b.forLoop(b.idx(0), b.idx(d.resultStride() - 16), b.idx(lanes), [&](Value column) {
    Value place = b.add(base, column), sum = mul(b.load(f32, results, place, lanes), b.splat(scale, lanes));
    b.store(add(sum, mul(b.load(f32, leftOut, column, lanes), b.splat(weight, lanes))), results, place);
  });
}
