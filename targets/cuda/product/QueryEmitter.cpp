//===- QueryEmitter.cpp - attention of few rows: the kernel -------------------===//
//
// Of 32 keys each lane loads some terms of several: a key's terms lie in neighbouring lanes. Parts of scores are added
// up so that each lane ends with the score of one key. Of the values it has some columns, for the same keys.
//
//===----------------------------------------------------------------------===//

#include "FewQueries.h"

#include "targets/common/math/VectorMath.h"
#include "targets/common/roots/Loops.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

namespace {

constexpr int64_t kWarp = 32;

class QueryEmitter {
public:
  QueryEmitter(CudaBuilder &b, const RegionBody &body, const FewQueries &few, const QueryTile &tile)
      : b(b), few(few), tile(tile), e(b, body.block), writer(e, body), f32(b.getF32Type()), attention(few.attention),
        ofKeys(FewQueries::lanesOf(few.depth)), ofValues(FewQueries::lanesOf(few.width)), terms(few.depth / ofKeys),
        columns(few.width / ofValues) {}

  void emit();

private:
  /// A row of the block: which item's, and which of it; rows behind the last one are like that.
  struct Row {
    Value item, at;
  };
  /// Of each row the greatest score, the lane's part of the sum, its columns of the result.
  struct State {
    SmallVector<Value> most, sum, result;

    SmallVector<Value> all() const {
      SmallVector<Value> values(most);
      llvm::append_range(values, sum);
      llvm::append_range(values, result);
      return values;
    }
    static State of(ValueRange values, int64_t rows) {
      auto count = static_cast<size_t>(rows);
      return {llvm::to_vector(values.take_front(count)), llvm::to_vector(values.slice(count, count)),
              llvm::to_vector(values.drop_front(2 * count))};
    }
  };

  void emitItem(Value item);
  Row rowOf(Value number);
  Indices indexOf(Value item, Value matrix, ArrayRef<Dim> batch, Value row, Value column);
  Value load(Value tensor, Value item, ArrayRef<Dim> batch, Value row, Value column);
  void loadQueries();
  State start();
  State overKeys(Value firstKey, const State &before);
  SmallVector<SmallVector<Value>> partsOfScores(Value firstKey);
  Value gather(SmallVector<Value> parts);
  Value scoreOf(const Row &row, Value sum, Value key);
  void addValues(Value firstKey, ArrayRef<Value> powers, State &state);
  Value keyOf(Value firstKey, int64_t lanes, Value round);
  Value shuffled(Value value, StringRef how, Value lane, int64_t lanes);
  SmallVector<Value> ofWarp(Value value, int64_t from, llvm::function_ref<Value(Value, Value)> combine);
  void tellWarp(const State &state);
  Value told(Value base, int64_t parts, Value row, Value column);
  void finish();
  void write(Value number, Value value);

  Value add(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value power(Value x) { return VectorMath(b, b.processor()).exp(x); }
  Value lowest() { return b.constant(f32, -std::numeric_limits<double>::infinity()); }
  /// exp(x - most), where nothing is there yet: 0.
  Value powerOver(Value x, Value most);
  Value floats(int64_t first) { return b.elementPtr(f32, b.shared(), b.idx(first)); }

  CudaBuilder &b;
  const FewQueries &few;
  const QueryTile &tile;
  ElementExpr e;
  ResultWriter writer;
  Type f32;
  Attention attention;
  int64_t ofKeys, ofValues, terms, columns;
  Value lane, warp, rank, group, firstRow;
  SmallVector<Row> rows;
  SmallVector<SmallVector<Value>> queries; ///< of each row, the lane's terms
};

void QueryEmitter::emit() {
  lane = b.rem(b.threadInBlock(), b.idx(kWarp));
  warp = b.floorDiv(b.threadInBlock(), b.idx(kWarp));
  rank = tile.blocks > 1 ? b.rankInCluster() : b.idx(0);
  b.forItems(few.blocks(tile), [&](Value item) { emitItem(item); });
}

void QueryEmitter::emitItem(Value item) {
  Dim parts = Dim::ceilDiv(few.groupRows(), tile.rows);
  group = parts.is(1) ? item : b.floorDiv(item, b.idx(parts));
  firstRow = parts.is(1) ? b.idx(0) : b.mulC(b.rem(item, b.idx(parts)), tile.rows);
  rows.clear();
  for (int64_t i = 0; i < tile.rows; ++i)
    rows.push_back(rowOf(b.addC(firstRow, i)));
  loadQueries();
  Value first = b.mulC(b.add(b.mulC(rank, tile.warps), warp), kWarp);
  SmallVector<Value> last =
      b.forLoop(first, b.idx(few.keys), b.idx(kWarp * tile.warps * tile.blocks), start().all(),
                [&](Value key, ValueRange carried) { return overKeys(key, State::of(carried, tile.rows)).all(); });
  tellWarp(State::of(last, tile.rows));
  finish();
}

QueryEmitter::Row QueryEmitter::rowOf(Value number) {
  number = b.minS(number, b.addC(b.idx(few.groupRows()), -1));
  Value first = b.mulC(group, few.share);
  if (few.share == 1)
    return {first, number};
  if (few.rows.is(1))
    return {b.add(first, number), b.idx(0)};
  return {b.add(first, b.floorDiv(number, b.idx(few.rows))), b.rem(number, b.idx(few.rows))};
}

/// An index of a tensor whose batch meets these batch axes.
Indices QueryEmitter::indexOf(Value tensor, Value item, ArrayRef<Dim> batch, Value row, Value column) {
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

Value QueryEmitter::load(Value tensor, Value item, ArrayRef<Dim> batch, Value row, Value column) {
  return e.evaluateWide(tensor, indexOf(tensor, item, batch, row, column));
}

void QueryEmitter::loadQueries() {
  queries.clear();
  Value own = b.rem(lane, b.idx(ofKeys));
  e.forget();
  for (const Row &row : rows) {
    SmallVector<Value> &each = queries.emplace_back();
    for (int64_t i = 0; i < terms; ++i)
      each.push_back(load(attention.scores.getLhs(), row.item, few.batch, row.at, b.addC(own, i * ofKeys)));
  }
  e.forget();
}

QueryEmitter::State QueryEmitter::start() {
  Value zero = b.constant(f32, 0);
  auto count = static_cast<size_t>(tile.rows);
  return {SmallVector<Value>(count, lowest()), SmallVector<Value>(count, zero),
          SmallVector<Value>(count * static_cast<size_t>(columns), zero)};
}

Value QueryEmitter::powerOver(Value x, Value most) {
  Value isThere = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, most, lowest());
  return power(arith::SubFOp::create(b, x, arith::SelectOp::create(b, isThere, most, b.constant(f32, 0))));
}

/// Key `round` of those that a lane's neighbours have terms of: those of one round lie beside each other.
Value QueryEmitter::keyOf(Value firstKey, int64_t lanes, Value round) {
  return b.add(firstKey, b.add(b.mulC(round, kWarp / lanes), b.floorDiv(lane, b.idx(lanes))));
}

/// The lane's parts of scores: of each row one a round.
SmallVector<SmallVector<Value>> QueryEmitter::partsOfScores(Value firstKey) {
  constexpr int64_t loads = 32;
  Value own = b.rem(lane, b.idx(ofKeys)), last = b.addC(b.idx(few.keys), -1), item = rows.front().item;
  SmallVector<SmallVector<Value>> parts(rows.size());
  int64_t atOnce = std::clamp<int64_t>(loads / terms, 1, ofKeys);
  for (int64_t done = 0; done < ofKeys; done += atOnce) {
    SmallVector<SmallVector<Value>> keys;
    e.forget();
    for (int64_t round = done; round < std::min(done + atOnce, ofKeys); ++round) {
      Value key = b.minS(keyOf(firstKey, ofKeys, b.idx(round)), last);
      SmallVector<Value> &each = keys.emplace_back();
      for (int64_t i = 0; i < terms; ++i)
        each.push_back(load(attention.scores.getRhs(), item, few.batch, b.addC(own, i * ofKeys), key));
    }
    e.forget();
    for (ArrayRef<Value> key : keys)
      for (auto [row, query] : llvm::enumerate(queries)) {
        Value sum = b.constant(f32, 0);
        for (auto [x, y] : llvm::zip(query, key))
          sum = b.fma(x, y, sum);
        parts[row].push_back(sum);
      }
  }
  return parts;
}

Value QueryEmitter::shuffled(Value value, StringRef how, Value to, int64_t lanes) {
  Type i32 = b.getI32Type();
  Value word = arith::BitcastOp::create(b, i32, value), all = b.constantInt(i32, -1);
  Value clamp = b.constantInt(i32, (kWarp - lanes) << 8 | (kWarp - 1));
  Value moved = LLVM::CallIntrinsicOp::create(b, i32, b.getStringAttr(("llvm.nvvm.shfl.sync." + how + ".i32").str()),
                                              ValueRange{all, word, to, clamp})
                    .getResult(0);
  return arith::BitcastOp::create(b, f32, moved);
}

/// Adds up parts, of which each lane has one for each lane of its neighbours: lane i gets the sum of parts i. Lanes
/// exchange the halves that the other one goes on with.
Value QueryEmitter::gather(SmallVector<Value> parts) {
  auto lanes = static_cast<int64_t>(parts.size());
  for (int64_t half = lanes / 2; half > 0; half /= 2) {
    Value bit = arith::AndIOp::create(b, lane, b.idx(half));
    Value isUpper = b.cmp(arith::CmpIPredicate::ne, bit, b.idx(0));
    SmallVector<Value> next;
    for (int64_t i = 0; i < half; ++i) {
      Value kept = arith::SelectOp::create(b, isUpper, parts[i + half], parts[i]),
            given = arith::SelectOp::create(b, isUpper, parts[i], parts[i + half]);
      next.push_back(add(kept, shuffled(given, "bfly", b.constantInt(b.getI32Type(), half), kWarp)));
    }
    parts = next;
  }
  return parts.front();
}

/// What the softmax takes, of a product's sum.
Value QueryEmitter::scoreOf(const Row &row, Value sum, Value key) {
  e.forget();
  e.bindValue(attention.scores.getResult(), sum);
  SmallVector<Dim> dims = dmir::dimsOf(attention.softmax.getInput());
  Value score = e.evaluateWide(attention.softmax.getInput(), indexOf(attention.softmax.getInput(), row.item,
                                                                     ArrayRef(dims).drop_back(2), row.at, key));
  e.forget();
  return score;
}

SmallVector<Value> QueryEmitter::ofWarp(Value value, int64_t from, llvm::function_ref<Value(Value, Value)> combine) {
  for (int64_t distance = kWarp / 2; distance >= from; distance /= 2)
    value = combine(value, shuffled(value, "bfly", b.constantInt(b.getI32Type(), distance), kWarp));
  return {value};
}

QueryEmitter::State QueryEmitter::overKeys(Value firstKey, const State &before) {
  SmallVector<SmallVector<Value>> parts = partsOfScores(firstKey);
  Value key = keyOf(firstKey, ofKeys, b.rem(lane, b.idx(ofKeys)));
  Value isThere = b.cmp(arith::CmpIPredicate::slt, key, b.idx(few.keys));
  Value readKey = b.minS(key, b.addC(b.idx(few.keys), -1));
  State state = before;
  SmallVector<Value> powers;
  for (auto [i, row] : llvm::enumerate(rows)) {
    Value score = scoreOf(row, gather(parts[i]), readKey);
    score = arith::SelectOp::create(b, isThere, score, lowest());
    Value most = ofWarp(score, 1, [&](Value x, Value y) { return emitMax(b, x, y, false); })[0];
    most = emitMax(b, most, before.most[i], false);
    Value scale = powerOver(before.most[i], most), own = powerOver(score, most);
    state.most[i] = most;
    state.sum[i] = b.fma(before.sum[i], scale, own);
    for (int64_t c = 0; c < columns; ++c) {
      Value &result = state.result[i * columns + c];
      result = mul(result, scale);
    }
    powers.push_back(own);
  }
  addValues(firstKey, powers, state);
  return state;
}

/// Adds the values of 32 keys, each times its power, which the lane has whose key it is.
void QueryEmitter::addValues(Value firstKey, ArrayRef<Value> powers, State &state) {
  constexpr int64_t loads = 32;
  Value own = b.rem(lane, b.idx(ofValues)), last = b.addC(b.idx(few.keys), -1), item = rows.front().item;
  int64_t atOnce = std::clamp<int64_t>(loads / columns, 1, ofValues);
  bool isWhole = few.keys.known() && *few.keys.known() % kWarp == 0;
  for (int64_t done = 0; done < ofValues; done += atOnce) {
    int64_t count = std::min(atOnce, ofValues - done);
    SmallVector<SmallVector<Value>> values;
    e.forget();
    for (int64_t i = 0; i < count; ++i) {
      Value key = keyOf(firstKey, ofValues, b.idx(done + i));
      Value isThere = isWhole ? Value() : b.cmp(arith::CmpIPredicate::sle, key, last);
      SmallVector<Value> &each = values.emplace_back();
      for (int64_t c = 0; c < columns; ++c) {
        Value value = load(attention.result.getRhs(), item, few.resultBatch, isWhole ? key : b.minS(key, last),
                           b.addC(own, c * ofValues));
        each.push_back(isThere ? Value(arith::SelectOp::create(b, isThere, value, b.constant(f32, 0))) : value);
      }
    }
    e.forget();
    for (int64_t i = 0; i < count; ++i) {
      // Key r * (32 / l) + h of l lanes is that of lane h * l + r.
      Value key = b.addC(keyOf(b.idx(0), ofValues, b.idx(done + i)), 0);
      Value each = b.idx(kWarp / ofKeys);
      Value from = b.add(b.mulC(b.rem(key, each), ofKeys), b.floorDiv(key, each));
      from = arith::TruncIOp::create(b, b.getI32Type(), from);
      for (int64_t row = 0; row < tile.rows; ++row) {
        Value power = shuffled(powers[row], "idx", from, kWarp);
        for (int64_t c = 0; c < columns; ++c) {
          Value &result = state.result[row * columns + c];
          result = b.fma(power, values[i][c], result);
        }
      }
    }
  }
}

/// Where a part's float of a row lies: greatest score, sum, columns.
Value QueryEmitter::told(Value part, int64_t first, Value row, Value column) {
  return b.addC(b.add(b.mulC(b.add(b.mulC(part, tile.rows), row), few.told()), column), first);
}

void QueryEmitter::tellWarp(const State &state) {
  auto sum = [&](Value x, Value y) { return add(x, y); };
  Value own = b.rem(lane, b.idx(ofValues));
  for (int64_t row = 0; row < tile.rows; ++row) {
    Value total = ofWarp(state.sum[row], 1, sum)[0];
    SmallVector<Value> result;
    for (int64_t c = 0; c < columns; ++c)
      result.push_back(ofWarp(state.result[row * columns + c], ofValues, sum)[0]);
    b.ifThen(b.cmp(arith::CmpIPredicate::slt, lane, b.idx(ofValues)), [&] {
      for (int64_t c = 0; c < columns; ++c)
        b.store(result[c], b.shared(), told(warp, 2, b.idx(row), b.addC(own, c * ofValues)));
    });
    b.ifThen(b.cmp(arith::CmpIPredicate::eq, lane, b.idx(0)), [&] {
      b.store(state.most[row], b.shared(), told(warp, 0, b.idx(row), b.idx(0)));
      b.store(total, b.shared(), told(warp, 1, b.idx(row), b.idx(0)));
    });
  }
  NVVM::Barrier0Op::create(b);
}

/// A thread combines the parts of a column of a row: of warps, then in the first block of a cluster of blocks.
void QueryEmitter::finish() {
  Value count = b.idx(tile.rows * few.width), step = b.idx(tile.threads());
  struct Combined {
    Value most, sum, result;
  };
  auto combine = [&](Value base, int64_t parts, Value row, Value column) {
    auto at = [&](int64_t part, Value which) { return b.load(f32, base, told(b.idx(part), 0, row, which)); };
    Combined all{lowest(), b.constant(f32, 0), b.constant(f32, 0)};
    for (int64_t part = 0; part < parts; ++part)
      all.most = emitMax(b, all.most, at(part, b.idx(0)), false);
    for (int64_t part = 0; part < parts; ++part) {
      Value scale = powerOver(at(part, b.idx(0)), all.most);
      all.sum = b.fma(at(part, b.idx(1)), scale, all.sum);
      all.result = b.fma(at(part, b.addC(column, 2)), scale, all.result);
    }
    return all;
  };
  auto each = [&](llvm::function_ref<void(Value number, Value row, Value column)> body) {
    b.forLoop(b.threadInBlock(), count, step, [&](Value number) {
      body(number, b.floorDiv(number, b.idx(few.width)), b.rem(number, b.idx(few.width)));
    });
  };
  if (tile.blocks == 1) {
    each([&](Value number, Value row, Value column) {
      Combined all = combine(b.shared(), tile.warps, row, column);
      write(number, arith::DivFOp::create(b, all.result, all.sum));
    });
    NVVM::Barrier0Op::create(b); // before the room is used again
    return;
  }
  Value ofBlocks = floats(few.warpFloats(tile));
  Value there = b.sharedOf(ofBlocks, b.idx(0));
  each([&](Value, Value row, Value column) {
    Combined all = combine(b.shared(), tile.warps, row, column);
    b.store(all.result, there, told(rank, 2, row, column));
    b.ifThen(b.cmp(arith::CmpIPredicate::eq, column, b.idx(0)), [&] {
      b.store(all.most, there, told(rank, 0, row, b.idx(0)));
      b.store(all.sum, there, told(rank, 1, row, b.idx(0)));
    });
  });
  b.meetCluster();
  b.ifThen(b.cmp(arith::CmpIPredicate::eq, rank, b.idx(0)), [&] {
    each([&](Value number, Value row, Value column) {
      Combined all = combine(ofBlocks, tile.blocks, row, column);
      write(number, arith::DivFOp::create(b, all.result, all.sum));
    });
  });
  NVVM::Barrier0Op::create(b);
}

void QueryEmitter::write(Value number, Value value) {
  Value own = b.add(firstRow, b.floorDiv(number, b.idx(few.width))), column = b.rem(number, b.idx(few.width));
  b.ifThen(b.cmp(arith::CmpIPredicate::slt, own, b.idx(few.groupRows())), [&] {
    Row row = rowOf(own);
    e.forget();
    e.bindValue(attention.result.getResult(), value);
    writer.write(indexOf(attention.result.getResult(), row.item, few.resultBatch, row.at, column));
  });
  e.forget();
}

} // namespace

void dmxc::cuda::emitFewQueries(CudaBuilder &b, const RegionBody &body, const FewQueries &attention,
                                const QueryTile &tile) {
  QueryEmitter(b, body, attention, tile).emit();
}
