//===- AttentionEmitter.cpp - attention by tensor cores: the kernel -----------===//
//
// What copies fills slots with 64 keys and their values. A warpgroup multiplies its queries with the keys by wgmma, has
// the scores in registers, the running greatest score and sum of each row, and the powers, rounded, as the left operand
// of the wgmma that adds up the result, in registers.
//
//===----------------------------------------------------------------------===//

#include "KeyCopies.h"

#include "targets/cuda/product/GemmSums.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace dmxc;
using namespace dmxc::cuda;
using namespace dmx::cuda;
using namespace mlir;

namespace {

constexpr int64_t kWarpgroup = 128, kWarp = 32, kKeys = CoreAttention::kKeys, kRowLanes = 4, kAtOnce = 16;
/// Registers of threads that copy, by maps and by themselves, and of those that multiply meanwhile.
constexpr unsigned kMapRegisters = 24, kBesideMaps = 240, kThreadRegisters = 104, kBesideThreads = 200;

class AttentionEmitter : KeyCopies {
public:
  AttentionEmitter(CudaBuilder &b, const RegionBody &body, const CoreAttention &core)
      : KeyCopies(b, body, core), product(Contraction::of(attention.result)),
        layout(dealtLayout(body, product, 1, few.width, 32)), sums(b, body, product, layout) {
    rounds = true;
  }

  void emit();

private:
  /// Of the thread's two rows the greatest score and its part of the sum; its part of the result's sums.
  struct State {
    Value most[2], sum[2], result;
    Value scores; ///< of the tile that is next

    SmallVector<Value> all() const { return {most[0], most[1], sum[0], sum[1], result, scores}; }
    static State of(ValueRange v) { return {{v[0], v[1]}, {v[2], v[3]}, v[4], v[5]}; }
  };
  using Scores = std::array<SmallVector<Value>, 2>; ///< of both rows, in the order of columns

  void copyAll();
  void copyPlaces();
  void multiplyAll();
  Carried multiplyPlace(const Place &place, ValueRange slot);
  void putQueries();
  State start();
  Carried overPasses(const Place &place, ValueRange init, size_t kept, llvm::function_ref<Value(ValueRange)> asks,
                     Begin begin, OneTile one);
  Value meetVotes(Value asks);
  void beginKeys(Value hasTiles, Carried &carried);
  Carried overKeys(const Tile &tile, ValueRange before);
  Value multiplyQueries(Value slot);
  Value addValues(Value result, SmallVectorImpl<Value> &powers, Value slot);
  Scores scoresOf(Value firstKey, Value isFull, Value sums);
  SmallVector<Value> scoresOf(Value firstKey, Value sums, bool whole);
  void soften(const Scores &scores, State &state, SmallVectorImpl<Value> &powers);
  std::array<Value, 2> greatestOf(const Scores &scores, State &state);
  Value powersOf(Value scores, Value from);
  void finish(const State &state);

  Contraction product;
  SumLayout layout;
  SumWriter sums;
  Value warpgroup, firstRow, ownRow, ownColumn; ///< the warpgroup's rows; the thread's part of a product's sums
};

void AttentionEmitter::emit() {
  initBarriers();
  Value thread = b.threadInBlock(), lane = b.rem(thread, b.idx(kWarp));
  warpgroup = b.floorDiv(thread, b.idx(kWarpgroup));
  Value own = b.rem(thread, b.idx(kWarpgroup));
  ownRow = b.add(b.mulC(b.floorDiv(own, b.idx(kWarp)), 16), b.floorDiv(lane, b.idx(kRowLanes)));
  ownColumn = b.mulC(b.rem(lane, b.idx(kRowLanes)), 2);
  Value isCopier = b.cmp(arith::CmpIPredicate::sge, thread, b.idx(core.consumers()));
  b.ifThen(isCopier, [&] { copyAll(); }, [&] { multiplyAll(); });
}

/// Slots are empty at first: the phase before the first one counts as ended.
void AttentionEmitter::copyAll() {
  if (core.movesRegisters())
    async.setRegisters(core.byMaps() ? kMapRegisters : kThreadRegisters, /*takes=*/false);
  Value walks = b.cmp(arith::CmpIPredicate::slt, b.threadInBlock(), b.idx(core.consumers() + core.walkers()));
  if (core.walkers() < core.copiers())
    return b.ifThen(walks, [&] { copyPlaces(); });
  copyPlaces();
}

void AttentionEmitter::copyPlaces() {
  forPlaces({b.idx(0), parity(1)}, [&](const Place &place, ValueRange slot) {
    group = place.group;
    return overPasses(place, slot, slot.size(), nullptr, nullptr, [&](const Tile &tile, ValueRange state) {
      return fill(tile.firstKey, {state[0], state[1]}).all();
    });
  });
}

void AttentionEmitter::multiplyAll() {
  if (core.movesRegisters())
    async.setRegisters(core.byMaps() ? kBesideMaps : kBesideThreads, /*takes=*/true);
  forPlaces({b.idx(0), parity(0)}, [&](const Place &place, ValueRange slot) { return multiplyPlace(place, slot); });
}

AttentionEmitter::State AttentionEmitter::start() {
  Value zero = b.constant(f32, 0);
  return {{lowest(), lowest()}, {zero, zero}, async.zeroSums(few.width), async.zeroSums(kKeys)};
}

KeyTiles::Carried AttentionEmitter::multiplyPlace(const Place &place, ValueRange slot) {
  group = place.group;
  firstRow = b.add(place.firstRow, b.mulC(warpgroup, kMmaRows));
  putQueries();
  SmallVector<Value> init(slot);
  llvm::append_range(init, start().all());
  auto asks = [&](ValueRange state) { // whether a row has seen nothing that outweighs what is left out
    constexpr double enough = 110;
    State own = State::of(state.drop_front(2));
    Value found = b.constant(f32, core.fill() + enough), any;
    for (Value most : own.most) {
      Value is = arith::CmpFOp::create(b, arith::CmpFPredicate::ULE, most, found);
      any = any ? arith::OrIOp::create(b, any, is).getResult() : is;
    }
    return any;
  };
  Carried last = overPasses(
      place, init, 2, asks, [&](Value hasTiles, Carried &carried) { beginKeys(hasTiles, carried); },
      [&](const Tile &tile, ValueRange state) { return overKeys(tile, state); });
  finish(State::of(ArrayRef(last).drop_front(2)));
  return {last[0], last[1]};
}

/// Over the keys that a rule leaves, and where that is asked for over all of them: then what is carried begins anew,
/// but the first `kept` values.
KeyTiles::Carried AttentionEmitter::overPasses(const Place &place, ValueRange init, size_t kept,
                                               llvm::function_ref<Value(ValueRange)> asks, Begin begin, OneTile one) {
  if (!core.looksAgain())
    return forTiles(place, std::nullopt, init, begin, one);
  SmallVector<Value> before(init);
  before.push_back(b.constantInt(b.getI1Type(), 0));
  Carried last = b.forLoop(b.idx(0), b.idx(2), b.idx(1), before, [&](Value pass, ValueRange state) {
    Value isAgain = b.cmp(arith::CmpIPredicate::ne, pass, b.idx(0)), isAsked = state.back();
    SmallVector<Value> own(state.drop_back());
    for (size_t i = kept; i < own.size(); ++i)
      own[i] = arith::SelectOp::create(b, isAsked, init[i], own[i]);
    Carried carried = forTiles(place, Again{isAgain, isAsked}, own, begin, one);
    carried.push_back(meetVotes(asks ? asks(carried) : Value()));
    return carried;
  });
  last.pop_back();
  return last;
}

/// Whether some thread of those that multiply asks for it, told to all of the block. `asks` (i1); null: one that
/// copies.
Value AttentionEmitter::meetVotes(Value asks) {
  auto placeOf = [&](Value warp) { return async.shared(b.addC(b.mulC(warp, 4), core.votesAt())); };
  Type i32 = b.getI32Type();
  if (asks) {
    Value all = b.constantInt(i32, -1);
    Value any = NVVM::VoteSyncOp::create(b, b.getI1Type(), all, asks, NVVM::VoteSyncKind::any);
    any = arith::ExtUIOp::create(b, i32, any);
    async.inOneLane([&] { LLVM::StoreOp::create(b, any, placeOf(b.floorDiv(b.threadInBlock(), b.idx(kWarp)))); });
  }
  const int64_t all = core.consumers() + core.walkers();
  async.meet(b.idx(0), all);
  Value found = b.constantInt(i32, 0);
  for (int64_t warp = 0; warp < core.consumers() / kWarp; ++warp)
    found = arith::OrIOp::create(b, found, LLVM::LoadOp::create(b, i32, placeOf(b.idx(warp))));
  async.meet(b.idx(0), all); // before others are told
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, found, b.constantInt(i32, 0));
}

/// By the warpgroup's own threads, which have read those before.
void AttentionEmitter::putQueries() {
  Value barrier = b.addC(warpgroup, 1), to = b.mulC(warpgroup, few.slabs() * CoreAttention::kSlabBytes);
  async.meet(barrier, kWarpgroup);
  put(to, b.rem(b.threadInBlock(), b.idx(kWarpgroup)), kMmaRows, few.slabs() * kTileRowElements, /*alongRows=*/false,
      kAtOnce, [&](Value row, Value term) {
        Row own = rowOf(b.add(firstRow, row));
        return whereTerm(term, [&](Value read) { return query(own, read); });
      });
  NVVM::FenceProxyOp::create(b, NVVM::ProxyKind::async, NVVM::SharedSpaceAttr());
  async.meet(barrier, kWarpgroup);
}

/// The scores of the first tile.
void AttentionEmitter::beginKeys(Value hasTiles, Carried &carried) {
  if (!core.isAhead(few))
    return;
  Value &scores = carried.back();
  auto branch = scf::IfOp::create(b, scores.getType(), hasTiles, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    async.wait(full(carried[0]), carried[1]);
    scf::YieldOp::create(b, async.waitForProducts(multiplyQueries(carried[0]), 0));
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, scores);
  }
  scores = branch.getResult(0);
}

/// The scores of the tile that follows are multiplied while this one's softmax is taken; behind the last tile its own
/// ones are, once more, since what runs cannot depend on a branch.
KeyTiles::Carried AttentionEmitter::overKeys(const Tile &tile, ValueRange before) {
  Slot slot{before[0], before[1]}, following = next(slot);
  State state = State::of(before.drop_front(2));
  Value scores;
  if (core.isAhead(few)) {
    auto orThis = [&](Value other, Value own) -> Value { return arith::SelectOp::create(b, tile.isLast, own, other); };
    Slot ahead{orThis(following.number, slot.number), orThis(following.parity, slot.parity)};
    async.wait(full(ahead.number), ahead.parity);
    scores = multiplyQueries(ahead.number);
  } else {
    async.wait(full(slot.number), slot.parity);
    state.scores = async.waitForProducts(multiplyQueries(slot.number), 0);
  }
  SmallVector<Value> powers;
  soften(scoresOf(tile.firstKey, tile.isFull, state.scores), state, powers);
  state.result = addValues(state.result, powers, slot.number);
  state.scores = scores ? async.waitForProducts(scores, 0) : before.back();
  async.inOneLane([&] { async.arrive(empty(slot.number)); });
  Carried carried = following.all();
  llvm::append_range(carried, state.all());
  return carried;
}

Value AttentionEmitter::multiplyQueries(Value slot) {
  const bool isKMajor = keysAreKMajor();
  Value queries = b.mulC(warpgroup, few.slabs() * CoreAttention::kSlabBytes), keys = keysOf(slot);
  Value result = async.beginProducts(async.zeroSums(kKeys));
  for (int64_t slab = 0; slab < few.slabs(); ++slab) {
    auto at = [&](Value tile, uint64_t leading) {
      return async.descriptor(async.shared(b.addC(tile, slab * CoreAttention::kSlabBytes)), leading);
    };
    Value left = at(queries, KMajor::leading()),
          right = at(keys, isKMajor ? KMajor::leading() : MnMajor::leading(kTileRowElements));
    const auto step = static_cast<int64_t>(isKMajor ? KMajor::kStep : MnMajor::kStep);
    for (int64_t i = 0; i < kTileRowElements / kMmaDepth; ++i)
      result = async.multiply(result, async.advance(left, static_cast<int64_t>(KMajor::kStep) * i),
                              async.advance(right, step * i), {true, true, isKMajor, kKeys});
  }
  async.commitProducts();
  return result;
}

/// `powers`: words of the thread's part of a left operand, four a step.
Value AttentionEmitter::addValues(Value result, SmallVectorImpl<Value> &powers, Value slot) {
  const bool isKMajor = valuesAreKMajor();
  const auto step = static_cast<int64_t>(isKMajor ? KMajor::kStep : MnMajor::kStep);
  Value values =
      async.descriptor(async.shared(valuesOf(slot)), isKMajor ? KMajor::leading() : MnMajor::leading(kTileRowElements));
  result = async.beginProducts(result, powers);
  for (int64_t i = 0; i < kKeys / kMmaDepth; ++i)
    result = async.multiply(result, ArrayRef<Value>(powers).slice(static_cast<size_t>(i) * 4, 4),
                            async.advance(values, step * i), {true, true, isKMajor, few.width});
  async.commitProducts();
  return async.waitForProducts(result, 0);
}

/// What the softmax takes of both rows; where all of the tile is seen, without asking the mask.
AttentionEmitter::Scores AttentionEmitter::scoresOf(Value firstKey, Value isFull, Value sums) {
  const bool isWhole = few.keys.known() && *few.keys.known() % kKeys == 0;
  SmallVector<Value> all;
  if (!core.mask && isWhole) {
    all = scoresOf(firstKey, sums, /*whole=*/true);
  } else {
    SmallVector<Type> types(kKeys / 2, f32);
    auto branch = scf::IfOp::create(b, types, isFull, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    for (bool whole : {true, false}) {
      b.setInsertionPointToStart(whole ? branch.thenBlock() : branch.elseBlock());
      scf::YieldOp::create(b, scoresOf(firstKey, sums, whole));
    }
    llvm::append_range(all, branch.getResults());
  }
  const size_t each = all.size() / 2;
  return {SmallVector<Value>(ArrayRef(all).take_front(each)), SmallVector<Value>(ArrayRef(all).drop_front(each))};
}

SmallVector<Value> AttentionEmitter::scoresOf(Value firstKey, Value sums, bool whole) {
  Value last = b.addC(b.idx(few.keys), -1), masked = core.mask ? Value(dmir::MaskOp(core.mask).getResult()) : Value();
  if (whole && masked)
    e.bind(masked, [&](ArrayRef<Index> index) { return e.evaluate(dmir::MaskOp(core.mask).getInput(), index); });
  SmallVector<Value> all;
  for (int64_t half = 0; half < 2; ++half) {
    Row of = rowOf(b.add(firstRow, b.addC(ownRow, half * 8)));
    for (int64_t column = 0; column < kKeys; column += 8)
      for (int64_t i = 0; i < 2; ++i) {
        Value sum = LLVM::ExtractValueOp::create(b, sums, ArrayRef<int64_t>{registerOf(half, column + i)});
        Value at = b.add(firstKey, b.addC(ownColumn, column + i));
        if (whole) {
          all.push_back(scoreOf(of, sum, at));
          continue;
        }
        Value isThere = b.cmp(arith::CmpIPredicate::sle, at, last);
        all.push_back(arith::SelectOp::create(b, isThere, scoreOf(of, sum, b.minS(at, last)), lowest()));
      }
  }
  if (whole && masked)
    e.unbind(masked);
  return all;
}

/// e^(scores - from), of what is not above 0: 0 where that is below -88, which the sum of a row does not see. As
/// 2^n 2^f, n an integer, f from -1/2 to 1/2, by a polynomial that is off by 1e-4 at most: powers are rounded to 2^-9.
Value AttentionEmitter::powersOf(Value scores, Value from) {
  constexpr double log2e = 0x1.715476p+0, lowest = -88, magic = 0x1.8p23 + 127;
  constexpr double terms[] = {0x1.bf7122p-5, 0x1.f01026p-3, 0x1.63007ep-1, 1};
  Type type = scores.getType(), words = VectorType::get(cast<VectorType>(type).getShape(), b.getI32Type());
  auto number = [&](double value) { return b.constant(type, value); };
  Value x = arith::SubFOp::create(b, scores, from);
  x = arith::MaximumFOp::create(b, x, number(lowest));
  Value shifted = b.fma(x, number(log2e), number(magic)),
        f = b.fma(x, number(log2e), arith::SubFOp::create(b, number(magic), shifted)), power = number(terms[0]);
  for (double term : ArrayRef(terms).drop_front())
    power = b.fma(power, f, number(term));
  // Its low bits hold the exponent, as a float has it.
  Value bits = arith::BitcastOp::create(b, words, shifted);
  bits = arith::ShLIOp::create(b, bits, b.constantInt(words, 23));
  return arith::MulFOp::create(b, power, arith::BitcastOp::create(b, type, bits));
}

/// The scores' powers, and what they make of those before. Four lanes have a row. What is done for both rows is done in
/// step, so that one does not wait for the other.
void AttentionEmitter::soften(const Scores &scores, State &state, SmallVectorImpl<Value> &powers) {
  constexpr int64_t together = 8; // so many are computed in step
  std::array<Value, 2> before{state.most[0], state.most[1]}, from = greatestOf(scores, state);
  powers.assign(kKeys / kMmaDepth * 4, Value());
  auto vectorOf = [&](ArrayRef<Value> all) -> Value {
    return vector::FromElementsOp::create(b, VectorType::get({static_cast<int64_t>(all.size())}, f32), all);
  };
  Value scales = powersOf(vectorOf(before), vectorOf(from));
  for (int64_t half = 0; half < 2; ++half) {
    ArrayRef<Value> own = scores[half];
    Value base = b.splat(from[half], together), total;
    for (size_t first = 0; first < own.size(); first += together) {
      Value part = powersOf(vectorOf(own.slice(first, together)), base);
      total = total ? add(total, part) : part;
      for (int64_t i = 0; i < together; i += 2) {
        Value low = vector::ExtractOp::create(b, part, i), high = vector::ExtractOp::create(b, part, i + 1);
        const auto block = (static_cast<int64_t>(first) + i) / 2; // of eight columns
        powers[static_cast<size_t>(block / 2 * 4 + block % 2 * 2 + half)] = roundedPair(low, high);
      }
    }
    Value scale = vector::ExtractOp::create(b, scales, half);
    Value sum = combineLanes(b, total, [&](Value x, Value y) { return add(x, y); });
    state.sum[half] = b.fma(state.sum[half], scale, sum);
    for (int64_t column = 0; column < few.width; column += 8)
      for (int64_t i = 0; i < 2; ++i) {
        const int64_t number[] = {registerOf(half, column + i)};
        Value scaled = mul(LLVM::ExtractValueOp::create(b, state.result, number), scale);
        state.result = LLVM::InsertValueOp::create(b, state.result, scaled, number);
      }
  }
}

/// The rows' greatest scores so far, and what is taken off of scores: where nothing is there yet, anything may be.
std::array<Value, 2> AttentionEmitter::greatestOf(const Scores &scores, State &state) {
  auto most = [&](Value x, Value y) { return emitMax(b, x, y, false); };
  Scores greatest = scores;
  for (size_t count = greatest[0].size() / 2; count; count /= 2)
    for (SmallVector<Value> &own : greatest)
      for (size_t i = 0; i < count; ++i)
        own[i] = most(own[i], own[i + count]);
  for (size_t half = 0; half < 2; ++half)
    state.most[half] = most(state.most[half], greatest[half][0]);
  for (int64_t apart = kRowLanes / 2; apart; apart /= 2) {
    Value distance = b.constantInt(b.getI32Type(), apart);
    std::array<Value, 2> other{b.shuffled(state.most[0], "bfly", distance),
                               b.shuffled(state.most[1], "bfly", distance)};
    for (size_t half = 0; half < 2; ++half)
      state.most[half] = most(state.most[half], other[half]);
  }
  std::array<Value, 2> from;
  for (size_t half = 0; half < 2; ++half) {
    Value isThere = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, state.most[half], lowest());
    from[half] = arith::SelectOp::create(b, isThere, state.most[half], b.constant(f32, 0));
  }
  return from;
}

void AttentionEmitter::finish(const State &state) {
  Value lane = b.rem(b.threadInBlock(), b.idx(kWarp)), column = firstColumnOf(b, layout, lane);
  for (int64_t half = 0; half < 2; ++half) {
    Value total = ofLanes(state.sum[half], 1, kRowLanes, [&](Value x, Value y) { return add(x, y); });
    Value part = whereKeys(arith::DivFOp::create(b, b.constant(f32, 1), total));
    SmallVector<Value> own;
    for (int64_t at = 0; at < few.width; at += 8)
      for (int64_t i = 0; i < 2; ++i)
        own.push_back(
            mul(LLVM::ExtractValueOp::create(b, state.result, ArrayRef<int64_t>{registerOf(half, at + i)}), part));
    own = dealSums(b, std::move(own), dealtOf(layout), lane);
    Value number = b.add(firstRow, b.addC(ownRow, half * 8));
    b.ifThen(b.cmp(arith::CmpIPredicate::slt, number, b.idx(few.groupRows())), [&] {
      Row row = rowOf(number);
      sums.write(own, row.item, row.at, column);
    });
  }
}

} // namespace

void dmxc::cuda::emitAttention(CudaBuilder &b, const RegionBody &body, const CoreAttention &attention) {
  AttentionEmitter(b, body, attention).emit();
}
