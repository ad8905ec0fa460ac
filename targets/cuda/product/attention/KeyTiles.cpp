//===- KeyTiles.cpp - the tiles of keys that a block has ----------------------===//
//
// Of a range of keys that a rule keeps its ends are computed in a run; a rule of several cases, or a list of tiles, is
// looked at while compiling where all sizes are known: then each part of the rows has a list.
//
//===----------------------------------------------------------------------===//

#include "KeyTiles.h"

#include "targets/common/element/ElementMask.h"

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

static constexpr int64_t kKeys = CoreAttention::kKeys;

KeyTiles::KeyTiles(CudaBuilder &b, const RegionBody &body, const CoreAttention &core)
    : AttentionParts(b, body, core.few), core(core), listed(hasList()) {
  if (listed)
    words = e.tableOf(attention.softmax, list(), 4);
}

KeyTiles::Carried KeyTiles::forPlaces(ValueRange init, llvm::function_ref<Carried(const Place &, ValueRange)> one) {
  Dim parts = core.parts(), firsts = core.firstParts();
  return b.forLoop(b.begin(), b.idx(core.blocks()), b.end(), init, [&](Value number, ValueRange state) {
    Value group = firsts.is(1) ? number : b.floorDiv(number, b.idx(firsts)),
          part = firsts.is(1) ? b.idx(0) : b.rem(number, b.idx(firsts));
    if (!core.pairs)
      return one(placeOf(group, part), state);
    // The one in the middle is its own other one.
    Value other = b.sub(b.addC(b.idx(parts), -1), part), isOther = b.cmp(arith::CmpIPredicate::ne, part, other);
    return b.forLoop(b.idx(0), b.addC(arith::ExtUIOp::create(b, b.getI64Type(), isOther), 1), b.idx(1), state,
                     [&](Value turn, ValueRange own) {
                       Value isFirst = b.cmp(arith::CmpIPredicate::eq, turn, b.idx(0));
                       return one(placeOf(group, arith::SelectOp::create(b, isFirst, other, part)), own);
                     });
  });
}

KeyTiles::Place KeyTiles::placeOf(Value group, Value part) {
  Place place{group,    b.mulC(part, core.blockRows()),           b.idx(0), allTiles(),
              b.idx(0), b.floorDiv(b.idx(few.keys), b.idx(kKeys))};
  if (listed)
    useList(place);
  else if (core.mask)
    keepSome(place);
  return place;
}

Value KeyTiles::allTiles() { return b.idx(Dim::ceilDiv(few.keys, kKeys)); }

/// Bounds of all indices but the last one, and of what the rule's symbols stand for. A block's rows may be those of
/// several heads of the group.
KeyTiles::Box KeyTiles::boxOf(const Place &place) {
  dmir::MaskOp mask = core.mask;
  const dmir::Rule rule = dmir::ruleOf(mask);
  SmallVector<Dim> dims = dmir::dimsOf(mask.getInput());
  auto isOfGroup = [&](size_t axis) { // an axis of the heads that share keys
    std::optional<int64_t> inner = dmir::product(ArrayRef(dims).drop_back(2).drop_front(axis + 1)).known();
    return few.share > 1 && !dims[axis].is(1) && (!inner || *inner < few.share);
  };
  Value low = place.firstRow, high = b.addC(low, core.blockRows() - 1), lastRow = b.addC(b.idx(few.rows), -1);
  Value item = b.mulC(place.group, few.share);
  if (few.share > 1) {
    item = b.add(item, b.minS(b.floorDiv(low, b.idx(few.rows)), b.idx(few.share - 1)));
    low = b.rem(low, b.idx(few.rows)), high = b.addC(low, core.blockRows() - 1);
    Value crosses = b.cmp(arith::CmpIPredicate::sgt, high, lastRow);
    low = arith::SelectOp::create(b, crosses, b.idx(0), low);
  }
  high = b.minS(high, lastRow);
  e.forget();
  Indices index = indexOf(mask.getInput(), item, ArrayRef(dims).drop_back(2), low, b.idx(0));
  Box box;
  for (size_t axis = 0; axis + 2 < dims.size(); ++axis)
    box.rows.push_back(isOfGroup(axis) ? std::pair(b.idx(0), b.addC(b.idx(dims[axis]), -1))
                                       : std::pair(index[axis].base, index[axis].base));
  box.rows.emplace_back(low, high);
  Indices symbols = symbolsOf(e, mask, index);
  for (auto [i, symbol] : llvm::enumerate(symbols)) {
    box.symbols.emplace_back(symbol.base, symbol.base);
    if (i < rule.dims.size())
      continue;
    const dmir::RuleValue &how = rule.values[i - rule.dims.size()];
    SmallVector<Dim> own = dmir::dimsOf(mask.getValues()[i - rule.dims.size()]);
    bool differs = how.ofRows || how.ofColumns;
    for (size_t axis = 0; axis + 2 < own.size(); ++axis)
      differs |= !own[axis].is(1) && isOfGroup(axis + dims.size() - own.size());
    if (differs)
      box.symbols.back() = {b.idx(how.isBool ? 0 : -dmir::kMostValue), b.idx(how.isBool ? 1 : dmir::kMostValue)};
  }
  e.forget();
  return box;
}

void KeyTiles::keepSome(Place &place) {
  Box box = boxOf(place);
  Value keys = b.idx(few.keys), zero = b.idx(0);
  const dmir::Rule rule = dmir::ruleOf(core.mask);
  dmir::ColumnRange<Value> kept = keptColumns(b, rule, box.rows, box.symbols, keys);
  auto within = [&](Value x) { return b.minS(b.maxS(x, zero), keys); };
  auto tiles = [&](Value x, int64_t more) { return b.floorDiv(b.addC(within(x), more), b.idx(kKeys)); };
  place.first = tiles(kept.first, 0);
  place.last = tiles(kept.last, kKeys - 1);
  if (rule.tiles) // which may leave out some of them
    place.lastFull = place.firstFull;
  else
    place.firstFull = tiles(kept.firstFull, kKeys - 1), place.lastFull = tiles(kept.lastFull, 0);
}

KeyTiles::Carried KeyTiles::forTiles(const Place &place, std::optional<Again> again, ValueRange init, Begin begin,
                                     OneTile one) {
  auto orAgain = [&](Value usual, Value other) -> Value {
    return again ? arith::SelectOp::create(b, again->isNow, other, usual).getResult() : usual;
  };
  auto is = [&](arith::CmpIPredicate how, Value x, Value y) { return b.cmp(how, x, y); };
  Value all = again ? arith::SelectOp::create(b, again->isAsked, allTiles(), b.idx(0)).getResult() : Value(),
        first = orAgain(place.first, b.idx(0)), end = orAgain(place.last, all);
  Carried carried(init);
  if (begin)
    begin(is(arith::CmpIPredicate::slt, first, end), carried);
  return b.forLoop(first, end, b.idx(1), carried, [&](Value number, ValueRange state) {
    Value isLast = is(arith::CmpIPredicate::eq, number, b.addC(end, -1));
    if (!listed) {
      Value isFull = arith::AndIOp::create(b, is(arith::CmpIPredicate::sge, number, place.firstFull),
                                           is(arith::CmpIPredicate::slt, number, place.lastFull));
      return one({b.mulC(number, kKeys), isFull, isLast}, state);
    }
    Value entry = word(b.minS(number, b.addC(place.last, -1))), two = b.idx(2);
    Value isFull = is(arith::CmpIPredicate::ne, b.rem(entry, two), b.idx(0));
    Value tile = orAgain(b.floorDiv(entry, two), number);
    if (again)
      isFull = arith::SelectOp::create(b, again->isNow, b.constantInt(isFull.getType(), 0), isFull);
    return one({b.mulC(tile, kKeys), isFull, isLast}, state);
  });
}

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

bool KeyTiles::hasList() const {
  constexpr int64_t most = 1 << 16;
  if (!core.mask)
    return false;
  dmir::Rule rule = dmir::ruleOf(core.mask);
  std::optional<int64_t> rows = few.rows.known(), keys = few.keys.known();
  const bool isStatic =
      rows && keys && dmir::symbolsOf(rule) && rule.values.empty() &&
      llvm::all_of(dmir::dimsOf(dmir::MaskOp(core.mask).getInput()), [](Dim dim) { return dim.isStatic(); });
  return isStatic && (rule.tiles || rule.cases.size() > 1) &&
         llvm::divideCeil(*rows * few.share, core.blockRows()) * llvm::divideCeil(*keys, kKeys) <= most;
}

/// Words of 32 bits.
std::string KeyTiles::list() const {
  const dmir::Rule rule = dmir::ruleOf(core.mask);
  const int64_t rows = *few.rows.known(), keys = *few.keys.known(), parts = *core.parts().known(),
                height = core.blockRows();
  SmallVector<dmir::Interval> box;
  for (Dim dim : ArrayRef(dmir::dimsOf(dmir::MaskOp(core.mask).getInput())).drop_back(2))
    box.push_back({0, *dim.known() - 1});
  box.append(2, {0, 0});
  std::vector<int32_t> starts, tiles;
  for (int64_t part = 0; part < parts; ++part) {
    starts.push_back(static_cast<int32_t>(parts + 1 + tiles.size()));
    const int64_t first = part * height, last = std::min(first + height, rows * few.share) - 1;
    const bool crosses = first / rows != last / rows;
    box[rule.rank - 2] = crosses ? dmir::Interval{0, rows - 1} : dmir::Interval{first % rows, last % rows};
    for (int64_t key = 0; key < keys; key += kKeys) {
      box.back() = {key, std::min(key + kKeys, keys) - 1};
      dmir::TileKind kind = dmir::classify(rule, box, *dmir::symbolsOf(rule));
      const bool isFull = kind == dmir::TileKind::Full && key + kKeys <= keys;
      if (kind != dmir::TileKind::Empty)
        tiles.push_back(static_cast<int32_t>(key / kKeys * 2 + isFull));
    }
  }
  starts.push_back(static_cast<int32_t>(parts + 1 + tiles.size()));
  llvm::append_range(starts, tiles);
  return {reinterpret_cast<const char *>(starts.data()), starts.size() * sizeof(int32_t)};
}

Value KeyTiles::word(Value number) {
  return arith::ExtSIOp::create(b, b.getI64Type(), b.load(b.getI32Type(), words, number));
}

void KeyTiles::useList(Place &place) {
  Value part = b.floorDiv(place.firstRow, b.idx(core.blockRows()));
  place.first = word(part), place.last = word(b.addC(part, 1));
}
