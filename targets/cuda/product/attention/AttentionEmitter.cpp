//===- AttentionEmitter.cpp - attention by tensor cores: the kernel -----------===//
//
// A warpgroup has 64 rows of a group, and goes over the keys 64 at a time: scores by wgmma, in registers; the running
// greatest score and sum of each row; powers, rounded, to shared memory; the result by wgmma, in registers.
//
//===----------------------------------------------------------------------===//

#include "AttentionParts.h"

#include "targets/cuda/code/Asynchronous.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace dmxc;
using namespace dmxc::cuda;
using namespace dmx::cuda;
using namespace mlir;

namespace {

constexpr int64_t kThreads = 128, kKeys = kTileRowElements;

class AttentionEmitter : AttentionParts {
public:
  AttentionEmitter(CudaBuilder &b, const RegionBody &body, const FewQueries &few)
      : AttentionParts(b, body, few), async(b) {
    rounds = true;
  }

  void emit();

private:
  /// Of the thread's two rows the greatest score and its part of the sum; its part of the result's sums.
  struct State {
    Value most[2], sum[2], result;
  };
  /// A number of a tile in memory, at a row and a place along the terms of its product.
  using Source = llvm::function_ref<Value(Value row, Value term)>;

  void emitItem(Value item);
  void put(int64_t to, int64_t rows, int64_t terms, bool alongRows, Source source);
  void putKeys(Value firstKey);
  Value whereTerm(Value term, llvm::function_ref<Value(Value)> read);
  State overKeys(Value firstKey, const State &before);
  Value multiply(Value sums, int64_t left, int64_t right, int64_t slabs, int64_t columns);
  void soften(Value firstKey, Value scores, int64_t half, State &state);
  void finish(const State &state);
  void meet() {
    NVVM::FenceProxyOp::create(b, NVVM::ProxyKind::async, NVVM::SharedSpaceAttr());
    NVVM::Barrier0Op::create(b);
  }
  /// Two numbers of f32 as a word of bf16, and two words of one each.
  Value roundedPair(Value low, Value high);
  Value pairOf(Value low, Value high) {
    if (low.getType() == f32)
      return roundedPair(low, high);
    return arith::OrIOp::create(b, low, arith::ShLIOp::create(b, high, b.constantInt(b.getI32Type(), 16)));
  }
  Value orZero(Value isThere, Value value) {
    Value zero = value.getType() == f32 ? b.constant(f32, 0) : b.constantInt(value.getType(), 0);
    return arith::SelectOp::create(b, isThere, value, zero);
  }
  void store(Value pair, int64_t to, Value row, Value term);

  // Tiles in shared memory, each in slabs of 64 terms: queries, keys, values, powers.
  int64_t keysAt() const { return few.slabs() * kMmaRows * kTileRowBytes; }
  int64_t valuesAt() const { return 2 * keysAt(); }
  int64_t powersAt() const { return valuesAt() + few.width * kTileRowBytes; }

  Asynchronous async;
  Value firstRow, ownRow, ownColumn; ///< of the block; of the thread's part of a product's sums
};

void AttentionEmitter::emit() {
  Value thread = b.threadInBlock(), lane = b.rem(thread, b.idx(32));
  ownRow = b.add(b.mulC(b.floorDiv(thread, b.idx(32)), 16), b.floorDiv(lane, b.idx(4)));
  ownColumn = b.mulC(b.rem(lane, b.idx(4)), 2);
  b.forItems(few.coreBlocks(), [&](Value item) { emitItem(item); });
}

void AttentionEmitter::emitItem(Value item) {
  Dim parts = Dim::ceilDiv(few.groupRows(), kMmaRows);
  group = parts.is(1) ? item : b.floorDiv(item, b.idx(parts));
  firstRow = parts.is(1) ? b.idx(0) : b.mulC(b.rem(item, b.idx(parts)), kMmaRows);
  put(0, kMmaRows, few.slabs() * kTileRowElements, /*alongRows=*/false, [&](Value row, Value term) {
    Row own = rowOf(b.add(firstRow, row));
    return whereTerm(term, [&](Value read) { return query(own, read); });
  });
  Value zero = b.constant(f32, 0);
  SmallVector<Value> last =
      b.forLoop(b.idx(0), b.idx(few.keys), b.idx(kKeys), {lowest(), lowest(), zero, zero, async.zeroSums(few.width)},
                [&](Value key, ValueRange c) {
                  State state = overKeys(key, {{c[0], c[1]}, {c[2], c[3]}, c[4]});
                  return SmallVector<Value>{state.most[0], state.most[1], state.sum[0], state.sum[1], state.result};
                });
  finish({{last[0], last[1]}, {last[2], last[3]}, last[4]});
}

Value AttentionEmitter::roundedPair(Value low, Value high) {
  return LLVM::InlineAsmOp::create(b, b.getI32Type(), ValueRange{high, low}, "cvt.rn.bf16x2.f32 $0, $1, $2;", "=r,f,f",
                                   /*has_side_effects=*/false, /*is_align_stack=*/false, LLVM::TailCallKind::None,
                                   LLVM::AsmDialectAttr(), ArrayAttr())
      .getRes();
}

/// Pairs of terms, as swizzled() has them.
void AttentionEmitter::store(Value pair, int64_t to, Value row, Value term) {
  Value slab = b.floorDiv(term, b.idx(kTileRowElements)), own = b.rem(term, b.idx(kTileRowElements));
  Value offset = b.add(b.mulC(row, kTileRowBytes), b.mulC(own, 2));
  Value turn = b.mulC(b.rem(row, b.idx(kPatternRows)), 16);
  Value place = b.add(b.mulC(slab, kMmaRows * kTileRowBytes), arith::XOrIOp::create(b, offset, turn));
  LLVM::StoreOp::create(b, pair, async.shared(b.addC(place, to)), /*alignment=*/4);
}

/// A tile by all threads; neighbours have neighbouring terms, or rows.
void AttentionEmitter::put(int64_t to, int64_t rows, int64_t terms, bool alongRows, Source source) {
  constexpr int64_t atOnce = 16;
  int64_t pairs = rows * terms / 2, rounds = llvm::divideCeil(pairs, kThreads);
  auto putSome = [&](Value round, int64_t count) {
    SmallVector<std::array<Value, 4>> all;
    e.forget();
    for (int64_t i = 0; i < count; ++i) {
      Value number = b.add(b.mulC(b.addC(round, i), kThreads), b.threadInBlock());
      Value size = b.idx(alongRows ? rows : terms / 2), outer = b.floorDiv(number, size), inner = b.rem(number, size);
      Value row = alongRows ? inner : outer, term = b.mulC(alongRows ? outer : inner, 2);
      all.push_back({source(row, term), source(row, b.addC(term, 1)), row, term});
    }
    e.forget();
    for (auto &[low, high, row, term] : all)
      store(pairOf(low, high), to, row, term);
  };
  // Rows are multiples of 8: of 64 terms, all rounds are whole ones or halves.
  int64_t full = pairs / kThreads, looped = full / atOnce * atOnce;
  if (looped)
    b.forLoop(0, looped, atOnce, [&](Value round) { putSome(round, atOnce); });
  if (full > looped)
    putSome(b.idx(looped), full - looped);
  if (rounds > full)
    b.ifThen(b.cmp(arith::CmpIPredicate::slt, b.threadInBlock(), b.idx(pairs - full * kThreads)),
             [&] { putSome(b.idx(full), 1); });
}

/// Keys as rows of terms, values as columns with keys side by side; what is not there is 0.
void AttentionEmitter::putKeys(Value firstKey) {
  Value item = b.mulC(group, few.share), last = b.addC(b.idx(few.keys), -1);
  bool isWhole = few.keys.known() && *few.keys.known() % kKeys == 0;
  put(keysAt(), kKeys, few.slabs() * kTileRowElements, /*alongRows=*/false, [&](Value row, Value term) {
    Value at = b.add(firstKey, row);
    if (!isWhole)
      at = b.minS(at, last);
    return whereTerm(term, [&](Value read) { return key(item, at, read); });
  });
  put(valuesAt(), few.width, kKeys, /*alongRows=*/true, [&](Value column, Value term) {
    Value at = b.add(firstKey, term);
    if (isWhole)
      return value(item, at, column);
    Value isThere = b.cmp(arith::CmpIPredicate::sle, at, last);
    return orZero(isThere, value(item, b.minS(at, last), column));
  });
}

/// A term of a row in slabs, 0 behind the last one.
Value AttentionEmitter::whereTerm(Value term, llvm::function_ref<Value(Value)> read) {
  if (few.depth % kTileRowElements == 0)
    return read(term);
  Value isThere = b.cmp(arith::CmpIPredicate::slt, term, b.idx(few.depth));
  return orZero(isThere, read(b.minS(term, b.idx(few.depth - 1))));
}

/// sums + left * right, over slabs of 64 terms.
Value AttentionEmitter::multiply(Value sums, int64_t left, int64_t right, int64_t slabs, int64_t columns) {
  constexpr int64_t slabBytes = kMmaRows * kTileRowBytes;
  sums = async.beginProducts(sums);
  for (int64_t slab = 0; slab < slabs; ++slab) {
    Value a = async.descriptor(async.shared(left + slab * slabBytes), KMajor::leading());
    Value c = async.descriptor(async.shared(right + slab * slabBytes), KMajor::leading());
    for (int64_t i = 0; i < kTileRowElements / kMmaDepth; ++i) {
      auto step = static_cast<int64_t>(KMajor::kStep) * i;
      sums = async.multiply(sums, async.advance(a, step), async.advance(c, step), {true, true, true, columns});
    }
  }
  async.commitProducts();
  return async.waitForProducts(sums, 0);
}

AttentionEmitter::State AttentionEmitter::overKeys(Value firstKey, const State &before) {
  putKeys(firstKey);
  meet();
  Value scores = multiply(async.zeroSums(kKeys), 0, keysAt(), few.slabs(), kKeys);
  State state = before;
  for (int64_t half = 0; half < 2; ++half)
    soften(firstKey, scores, half, state);
  meet();
  state.result = multiply(state.result, powersAt(), valuesAt(), 1, few.width);
  NVVM::Barrier0Op::create(b); // before the tiles are filled again
  return state;
}

/// Of one of the thread's rows: its scores' powers, and what they make of those before. Four lanes have a row.
void AttentionEmitter::soften(Value firstKey, Value scores, int64_t half, State &state) {
  auto most = [&](Value x, Value y) { return emitMax(b, x, y, false); };
  Value row = b.addC(ownRow, half * 8), last = b.addC(b.idx(few.keys), -1), highest = state.most[half];
  Row of = rowOf(b.add(firstRow, row));
  SmallVector<Value> own;
  for (int64_t column = 0; column < kKeys; column += 8)
    for (int64_t i = 0; i < 2; ++i) {
      Value sum = LLVM::ExtractValueOp::create(b, scores, ArrayRef<int64_t>{registerOf(half, column + i)});
      Value at = b.add(firstKey, b.addC(ownColumn, column + i));
      Value isThere = b.cmp(arith::CmpIPredicate::sle, at, last);
      own.push_back(arith::SelectOp::create(b, isThere, scoreOf(of, sum, b.minS(at, last)), lowest()));
      highest = most(highest, own.back());
    }
  highest = ofLanes(highest, 1, 4, most);
  Value scale = powerOver(state.most[half], highest), total = mul(state.sum[half], scale);
  // All powers in step, so that none waits for another one.
  auto type = VectorType::get({static_cast<int64_t>(own.size())}, f32);
  Value powers = powerOver(vector::FromElementsOp::create(b, type, own), highest);
  for (int64_t i = 0; i < type.getNumElements(); i += 2) {
    Value low = vector::ExtractOp::create(b, powers, i), high = vector::ExtractOp::create(b, powers, i + 1);
    total = add(total, add(low, high));
    store(roundedPair(low, high), powersAt(), row, b.addC(ownColumn, i * 4));
  }
  state.most[half] = highest;
  state.sum[half] = total;
  for (int64_t column = 0; column < few.width; column += 8)
    for (int64_t i = 0; i < 2; ++i) {
      const int64_t number[] = {registerOf(half, column + i)};
      Value scaled = mul(LLVM::ExtractValueOp::create(b, state.result, number), scale);
      state.result = LLVM::InsertValueOp::create(b, state.result, scaled, number);
    }
}

void AttentionEmitter::finish(const State &state) {
  for (int64_t half = 0; half < 2; ++half) {
    Value total = ofLanes(state.sum[half], 1, 4, [&](Value x, Value y) { return add(x, y); });
    Value row = b.add(firstRow, b.addC(ownRow, half * 8));
    for (int64_t column = 0; column < few.width; column += 8)
      for (int64_t i = 0; i < 2; ++i) {
        Value sum = LLVM::ExtractValueOp::create(b, state.result, ArrayRef<int64_t>{registerOf(half, column + i)});
        write(row, b.addC(ownColumn, column + i), arith::DivFOp::create(b, sum, total));
      }
  }
}

} // namespace

void dmxc::cuda::emitAttention(CudaBuilder &b, const RegionBody &body, const FewQueries &attention) {
  AttentionEmitter(b, body, attention).emit();
}
