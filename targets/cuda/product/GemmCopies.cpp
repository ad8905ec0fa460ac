//===- GemmCopies.cpp - tiles of operands to shared memory --------------------===//

#include "GemmCopies.h"

using namespace dmxc;
using namespace dmxc::cuda;
using namespace dmx::cuda;
using namespace mlir;

static constexpr int64_t kWarpgroup = 128;

int64_t GemmCopies::mapBytes() const {
  return (product.left.byThreads.empty() ? tile.leftBytes() : 0) +
         (product.right.byThreads.empty() ? tile.rightBytes() : 0);
}

Value GemmCopies::isFirst() {
  return b.cmp(arith::CmpIPredicate::eq, b.threadInBlock(), b.idx(tile.consumers() * kWarpgroup));
}

SmallVector<Value> GemmCopies::ahead(Value k, Value nextK) {
  if (!taps)
    return {};
  return taps->groups() == 1 ? taps->load(nextK, 0) : taps->load(k, 1);
}

/// While a group is put down, the next one is under way.
SmallVector<Value> GemmCopies::fillTaps(Value k, Value to, ArrayRef<SmallVector<Value>> loaded, Value nextK) {
  SmallVector<Value> own = loaded[0], next = loaded[1];
  for (int64_t group = 0; group < taps->groups(); ++group) {
    if (group)
      next = group + 1 < taps->groups() ? taps->load(k, group + 1) : taps->load(nextK, 0);
    taps->store(own, group, to);
    own = next;
  }
  return own;
}

SmallVector<Value> GemmCopies::fill(const From &from, Value left, Value right, Value barrier,
                                    ArrayRef<SmallVector<Value>> loaded, Value nextK) {
  auto start = [&] {
    async.arriveAndExpect(barrier, mapBytes());
    unsigned map = 0;
    if (product.left.byThreads.empty())
      copyByMap(b, product, product.left, b.map(map++), tile.rows, left, barrier, from.row, from.k, from.item);
    if (product.right.byThreads.empty())
      copyByMap(b, product, product.right, b.map(map), tile.columns, right, barrier, from.column, from.rightK,
                from.item);
  };
  SmallVector<Value> next;
  if (!byThreads())
    return start(), next;
  if (mapBytes()) {
    b.ifThen(isFirst(), start);
    async.meetWarp();
  }
  if (!product.left.byThreads.empty())
    byThread(product.left, tile.rows, pipeline.leftPairs, left, from.row, from.k, from.item);
  if (taps)
    next = fillTaps(from.rightK, right, loaded, nextK);
  else if (!product.right.byThreads.empty())
    byThread(product.right, tile.columns, pipeline.rightPairs, right, from.column, from.rightK, from.item);
  async.arriveAsWarp(barrier);
  return next;
}

static SmallVector<Value> batchOf(CudaBuilder &b, const GemmProduct &product, Value item) {
  SmallVector<Value> batch(product.joined ? 0 : product.batchDims.size());
  for (size_t axis = batch.size(); axis-- > 0;) {
    Value size = b.idx(product.batchDims[axis]);
    batch[axis] = axis ? b.rem(item, size) : item;
    item = b.floorDiv(item, size);
  }
  return batch;
}

Value GemmCopies::placeOf(const GemmOperand &operand, Value item) {
  Value place = b.idx(operand.offset);
  for (auto [position, stride] : llvm::zip(batchOf(b, product, item), operand.strides))
    place = b.add(place, b.mulC(position, stride));
  return place;
}

void dmxc::cuda::copyByMap(CudaBuilder &b, const GemmProduct &product, const GemmOperand &operand, Value map,
                           int64_t rows, Value to, Value barrier, Value row, Value k, Value item) {
  Asynchronous async(b);
  SmallVector<Value> batch = batchOf(b, product, item), at{k, row};
  if (!operand.isKMajor)
    std::swap(at[0], at[1]);
  for (unsigned axis : product.mapAxes(operand))
    at.push_back(batch[axis]);
  int64_t boxRows = operand.isKMajor ? rows : kTileRowElements;
  for (int64_t done = 0; done < rows; done += boxRows) {
    if (!operand.isKMajor)
      at[0] = b.addC(row, done);
    async.copy(async.shared(b.addC(to, done * kTileRowBytes)), map, barrier, at);
  }
}

/// Pairs of terms go to threads so that a warp's loads are neighbours in memory where the operand has such.
void GemmCopies::byThread(const GemmOperand &operand, int64_t rows, int64_t pairs, Value to, Value row, Value k,
                          Value item) {
  Value thread = b.addC(b.threadInBlock(), -tile.consumers() * kWarpgroup);
  Value source = placeOf(operand, item);
  int64_t rounds = rows * (kTileRowElements / 2) / kWarpgroup;
  b.forLoop(0, rounds, pairs, [&](Value round) {
    Value number = b.add(b.mulC(round, kWarpgroup), thread);
    moveTerms(operand, rows, pairs, source, to, number, row, k);
  });
}

void GemmCopies::moveTerms(const GemmOperand &operand, int64_t rows, int64_t pairs, Value source, Value to,
                           Value number, Value row, Value k) {
  Type i16 = b.getIntegerType(16), i32 = b.getI32Type();
  Value lastRow = b.idx(operand.rows - 1), lastK = b.idx(operand.k - 1);
  auto placeOf = [&](int64_t i) { return pairAt(operand, rows, b.addC(number, i * kWarpgroup)); };
  auto termAt = [&](const Pair &pair, int64_t half) { return b.add(k, b.addC(pair.term, half)); };
  using Entries = std::array<SmallVector<Value, 2>, 2>;
  auto entriesOf = [&](int64_t i) -> Entries {
    if (!operand.windows || !table || i == pairs)
      return {};
    Pair pair = placeOf(i);
    return {table->entryOf(b.minS(termAt(pair, 0), lastK)), table->entryOf(b.minS(termAt(pair, 1), lastK))};
  };
  // All loads before what uses the first one: a warp waits there.
  SmallVector<std::pair<Value, Value>> terms; // what is loaded, and whether the operand has it
  SmallVector<Value> places;
  Value buffer = b.buffer(operand.buffer), elsewhere = b.buffer(product.left.buffer);
  Entries next = entriesOf(0);
  for (int64_t i = 0; i < pairs; ++i) {
    Pair pair = placeOf(i);
    Entries entries = next;
    next = entriesOf(i + 1);
    // What lies behind the operand's ends is 0; an element of it that exists is read instead.
    Value ownRow = b.add(row, pair.row), readRow = b.minS(ownRow, lastRow);
    Value hasRow = b.cmp(arith::CmpIPredicate::sle, ownRow, lastRow);
    Value rowSource = operand.windows ? Value() : b.add(source, b.mulC(readRow, operand.rowStride));
    Pixel pixel = operand.windows ? pixelOf(b, *operand.windows, readRow) : Pixel();
    for (size_t half = 0; half < 2; ++half) {
      Value ownK = termAt(pair, static_cast<int64_t>(half)), readK = b.minS(ownK, lastK);
      Value has = arith::AndIOp::create(b, hasRow, b.cmp(arith::CmpIPredicate::sle, ownK, lastK)), place, base = buffer;
      if (operand.windows) {
        auto [offset, isInside] = table ? table->look(pixel, entries[half]) : termOf(b, *operand.windows, pixel, readK);
        place = b.add(source, offset);
        has = arith::AndIOp::create(b, has, isInside);
        // Of the image there may be nothing to read instead, of the other operand there is.
        base = arith::SelectOp::create(b, has, base, elsewhere);
        place = arith::SelectOp::create(b, has, place, b.idx(0));
      } else {
        place = b.add(rowSource, b.mulC(readK, operand.kStride));
      }
      terms.emplace_back(b.load(i16, base, place), has);
    }
    // As swizzled() has it, of an offset in a tile: units of 16 bytes change places by the row.
    Value offset = b.add(b.mulC(pair.row, kTileRowBytes), b.mulC(pair.term, 2));
    Value turn = b.mulC(b.rem(pair.row, b.idx(kPatternRows)), 16);
    places.push_back(b.add(to, arith::XOrIOp::create(b, offset, turn)));
  }
  auto bitsOf = [&](std::pair<Value, Value> term) {
    auto [bits, has] = term;
    return arith::ExtUIOp::create(b, i32, arith::SelectOp::create(b, has, bits, b.constantInt(i16, 0)));
  };
  for (auto [i, place] : llvm::enumerate(places)) {
    Value high = arith::ShLIOp::create(b, bitsOf(terms[2 * i + 1]), b.constantInt(i32, 16));
    LLVM::StoreOp::create(b, arith::OrIOp::create(b, bitsOf(terms[2 * i]), high), async.shared(place), /*alignment=*/4);
  }
}

GemmCopies::Pair GemmCopies::pairAt(const GemmOperand &operand, int64_t rows, Value number) {
  Value ofRow = b.idx(kTileRowElements / 2), all = b.idx(rows);
  if (operand.hasKSideBySide())
    return {b.floorDiv(number, ofRow), b.mulC(b.rem(number, ofRow), 2)};
  return {b.rem(number, all), b.mulC(b.floorDiv(number, all), 2)};
}
