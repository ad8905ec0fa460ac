//===- AttentionClasses.cpp - attention of keys that are a step apart ----------===//
//
// A block's rows are looked at class by class, keys of a class as neighbours, by strides; and then, some rows at a
// time, with the keys that are of no class. The running greatest score and sum of a row put both together, as they do
// tiles.
//
//===----------------------------------------------------------------------===//

#include "AttentionEmitter.h"

#include "targets/common/element/ElementMask.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace dmxc::kernels;
using namespace mlir;

static Value stepsUp(CpuBuilder &b, Value x, int64_t step) { return b.floorDiv(b.addC(x, step - 1), b.idx(step)); }

void AttentionEmitter::walkClasses() {
  const KeyClasses &classes = *d.classes;
  startRows();
  anyCount = true;
  Value every = b.idx(classes.ofRows ? classes.step : classes.count);
  b.forLoop(b.idx(0), every, b.idx(1), [&](Value which) {
    Value place = b.addC(classes.ofRows ? b.add(first, which) : which, classes.shift);
    keyLine = {b.sub(place, b.mulC(b.floorDiv(place, b.idx(classes.step)), classes.step)), classes.step, {}};
    if (classes.ofRows)
      rowLine = {which, classes.step, stepsUp(b, b.maxS(b.sub(rows, which), b.idx(0)), classes.step)};
    lookAtClass();
  });
  keyLine = {};
  anyCount = false;
  if (!classes.outside.cases.empty())
    b.forLoop(b.idx(0), rows, b.idx(kStripe), [&](Value from) {
      Value left = b.sub(rows, from);
      rowLine = {from, 1, d.isStriped() ? b.idx(kStripe) : b.minS(left, b.idx(kStripe))};
      lookAtOthers();
    });
  rowLine = {};
}

/// The keys of `keyLine`, a class, for the rows of `rowLine`.
void AttentionEmitter::lookAtClass() {
  constexpr int64_t vectors = 16; // sums of a row are made of whole ones of any level
  const dmir::Rule &rule = d.classes->inside;
  const int64_t step = keyLine.step;
  Value count = stepsUp(b, b.sub(b.idx(d.result.k), keyLine.first), step), from = b.idx(0), to = count;
  auto numberOf = [&](Value key) { return stepsUp(b, b.maxS(b.sub(key, keyLine.first), b.idx(0)), step); };
  Value firstFull, lastFull;
  if (!d.all) {
    rangesOf(rule, b.idx(0), rows);
    from = count, to = b.idx(0);
    for (const dmir::ColumnRange<Value> &range : cases)
      from = b.minS(from, numberOf(range.first)), to = b.maxS(to, numberOf(range.last));
    from = b.mulC(b.floorDiv(from, b.idx(d.keys)), d.keys);
    to = b.minS(b.mulC(stepsUp(b, to, vectors), vectors), count);
    firstFull = numberOf(cases[0].firstFull), lastFull = numberOf(cases[0].lastFull);
  }
  b.forLoop(from, to, b.idx(d.keys), [&](Value at) {
    Value end = b.minS(b.addC(at, d.keys), to), isFull;
    if (!d.all)
      isFull = arith::AndIOp::create(b, b.cmp(arith::CmpIPredicate::sge, at, firstFull),
                                     b.cmp(arith::CmpIPredicate::sle, end, lastFull));
    emitTile(at, end, isFull, kOfClass, &rule);
  });
}

/// Tiles of neighbours for the rows of `rowLine`, of which keys of classes count no more.
void AttentionEmitter::lookAtOthers() {
  const dmir::Rule &rule = d.classes->outside;
  if (!d.all)
    rangesOf(rule, rowLine.first, rowLine.count);
  forEachTile(b.idx(0), b.idx(d.result.k), [&](Value at, Value end, int64_t ofTile) {
    if (d.all)
      return emitTile(at, end, {}, ofTile, &rule);
    b.ifThen(visitOf(at, end).present, [&] { emitTile(at, end, {}, ofTile, &rule); });
  });
}
