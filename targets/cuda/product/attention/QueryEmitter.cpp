//===- QueryEmitter.cpp - attention of few rows: the kernel -------------------===//
//
// Of 32 keys each lane loads some terms of several: a key's terms lie in neighbouring lanes. Parts of scores are added
// up so that each lane ends with the score of one key. Of the values it has some columns, for the same keys.
//
//===----------------------------------------------------------------------===//

#include "AttentionParts.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

namespace {

constexpr int64_t kWarp = 32;

class QueryEmitter : AttentionParts {
public:
  QueryEmitter(CudaBuilder &b, const RegionBody &body, const FewQueries &few, const QueryTile &tile)
      : AttentionParts(b, body, few), tile(tile), ofKeys(FewQueries::lanesOf(few.depth)),
        ofValues(FewQueries::lanesOf(few.width)), terms(few.depth / ofKeys), columns(few.width / ofValues) {}

  void emit();

private:
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
  void loadQueries();
  State start();
  State overKeys(Value firstKey, const State &before);
  SmallVector<SmallVector<Value>> partsOfScores(Value firstKey);
  Value gather(SmallVector<Value> parts);
  void addValues(Value firstKey, ArrayRef<Value> powers, State &state);
  Value keyOf(Value firstKey, int64_t lanes, Value round);
  void tellWarp(const State &state);
  Value told(Value base, int64_t parts, Value row, Value column);
  void finish();

  const QueryTile &tile;
  int64_t ofKeys, ofValues, terms, columns;
  Value lane, warp, rank, firstRow;
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

void QueryEmitter::loadQueries() {
  queries.clear();
  Value own = b.rem(lane, b.idx(ofKeys));
  e.forget();
  for (const Row &row : rows) {
    SmallVector<Value> &each = queries.emplace_back();
    for (int64_t i = 0; i < terms; ++i)
      each.push_back(query(row, b.addC(own, i * ofKeys)));
  }
  e.forget();
}

QueryEmitter::State QueryEmitter::start() {
  Value zero = b.constant(f32, 0);
  auto count = static_cast<size_t>(tile.rows);
  return {SmallVector<Value>(count, lowest()), SmallVector<Value>(count, zero),
          SmallVector<Value>(count * static_cast<size_t>(columns), zero)};
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
      Value at = b.minS(keyOf(firstKey, ofKeys, b.idx(round)), last);
      SmallVector<Value> &each = keys.emplace_back();
      for (int64_t i = 0; i < terms; ++i)
        each.push_back(key(item, at, b.addC(own, i * ofKeys)));
    }
    e.forget();
    for (ArrayRef<Value> own : keys)
      for (auto [row, terms] : llvm::enumerate(queries)) {
        Value sum = b.constant(f32, 0);
        for (auto [x, y] : llvm::zip(terms, own))
          sum = b.fma(x, y, sum);
        parts[row].push_back(sum);
      }
  }
  return parts;
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
      next.push_back(add(kept, b.shuffled(given, "bfly", b.constantInt(b.getI32Type(), half))));
    }
    parts = next;
  }
  return parts.front();
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
    Value most = ofLanes(score, 1, kWarp, [&](Value x, Value y) { return emitMax(b, x, y, false); });
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
      SmallVector<Value> &loaded = values.emplace_back();
      for (int64_t c = 0; c < columns; ++c) {
        Value each = value(item, isWhole ? key : b.minS(key, last), b.addC(own, c * ofValues));
        loaded.push_back(isThere ? Value(arith::SelectOp::create(b, isThere, each, b.constant(f32, 0))) : each);
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
        Value power = b.shuffled(powers[row], "idx", from);
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
    Value total = ofLanes(state.sum[row], 1, kWarp, sum);
    SmallVector<Value> result;
    for (int64_t c = 0; c < columns; ++c)
      result.push_back(ofLanes(state.result[row * columns + c], ofValues, kWarp, sum));
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
  auto each = [&](llvm::function_ref<void(Value row, Value column)> body) {
    b.forLoop(b.threadInBlock(), count, step,
              [&](Value number) { body(b.floorDiv(number, b.idx(few.width)), b.rem(number, b.idx(few.width))); });
  };
  if (tile.blocks == 1) {
    each([&](Value row, Value column) {
      Combined all = combine(b.shared(), tile.warps, row, column);
      write(b.add(firstRow, row), column, whereKeys(arith::DivFOp::create(b, all.result, all.sum)));
    });
    NVVM::Barrier0Op::create(b); // before the room is used again
    return;
  }
  Value ofBlocks = b.elementPtr(f32, b.shared(), b.idx(few.warpFloats(tile)));
  Value there = b.sharedOf(ofBlocks, b.idx(0));
  each([&](Value row, Value column) {
    Combined all = combine(b.shared(), tile.warps, row, column);
    b.store(all.result, there, told(rank, 2, row, column));
    b.ifThen(b.cmp(arith::CmpIPredicate::eq, column, b.idx(0)), [&] {
      b.store(all.most, there, told(rank, 0, row, b.idx(0)));
      b.store(all.sum, there, told(rank, 1, row, b.idx(0)));
    });
  });
  b.meetCluster();
  b.ifThen(b.cmp(arith::CmpIPredicate::eq, rank, b.idx(0)), [&] {
    each([&](Value row, Value column) {
      Combined all = combine(ofBlocks, tile.blocks, row, column);
      write(b.add(firstRow, row), column, whereKeys(arith::DivFOp::create(b, all.result, all.sum)));
    });
  });
  NVVM::Barrier0Op::create(b);
}

} // namespace

void dmxc::cuda::emitFewQueries(CudaBuilder &b, const RegionBody &body, const FewQueries &attention,
                                const QueryTile &tile) {
  QueryEmitter(b, body, attention, tile).emit();
}
