//===- KeyCopies.cpp - keys and values to slots in shared memory --------------===//

#include "KeyCopies.h"

#include "targets/cuda/product/GemmCopies.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace dmxc;
using namespace dmxc::cuda;
using namespace dmx::cuda;
using namespace mlir;

static constexpr int64_t kWarpgroup = 128, kWarps = 4, kKeys = CoreAttention::kKeys;
/// Pairs that a thread of those that copy has under way: they have few registers.
static constexpr int64_t kAtOnce = 8;

void KeyCopies::initBarriers() {
  Value isFirst = b.cmp(arith::CmpIPredicate::eq, b.threadInBlock(), b.idx(0));
  b.ifThen(isFirst, [&] {
    for (int64_t slot = 0; slot < core.stages; ++slot) {
      async.initBarrier(full(b.idx(slot)), core.byMaps() ? 1 : kWarps);
      async.initBarrier(empty(b.idx(slot)), core.warpgroups * kWarps);
    }
  });
  async.publishBarriers();
}

KeyCopies::Slot KeyCopies::next(Slot slot) {
  Value isLast = b.cmp(arith::CmpIPredicate::eq, slot.number, b.idx(core.stages - 1));
  Value number = arith::SelectOp::create(b, isLast, b.idx(0), b.addC(slot.number, 1));
  Value turn = arith::ExtUIOp::create(b, b.getI32Type(), isLast);
  return {number, arith::XOrIOp::create(b, slot.parity, turn)};
}

KeyCopies::Slot KeyCopies::fill(Value firstKey, Slot slot) {
  async.wait(empty(slot.number), slot.parity);
  if (core.byMaps()) {
    async.inOneLane([&] { copy(firstKey, slot); }); // none waits for a phase that others have left
  } else {
    putKeys(firstKey, slot.number);
    async.arriveAsWarp(full(slot.number));
  }
  return next(slot);
}

void KeyCopies::copy(Value firstKey, Slot slot) {
  Value item = b.mulC(group, few.share), barrier = full(slot.number), keys = keysOf(slot.number),
        values = valuesOf(slot.number);
  const int64_t valueRows = valuesAreKMajor() ? few.width : few.widthSlabs() * kTileRowElements;
  async.arriveAndExpect(barrier, core.keyBytes() + valueRows * kTileRowBytes);
  for (int64_t slab = 0; slab < few.slabs(); ++slab)
    copyByMap(b, *core.keys, core.keys->right, b.map(0), kKeys, b.addC(keys, slab * CoreAttention::kSlabBytes), barrier,
              firstKey, b.idx(slab * kTileRowElements), item);
  copyByMap(b, *core.values, core.values->right, b.map(1), few.width, values, barrier, b.idx(0), firstKey, item);
}

//===----------------------------------------------------------------------===//
// By threads
//===----------------------------------------------------------------------===//

Value KeyCopies::roundedPair(Value low, Value high) {
  return LLVM::InlineAsmOp::create(b, b.getI32Type(), ValueRange{high, low}, "cvt.rn.bf16x2.f32 $0, $1, $2;", "=r,f,f",
                                   /*has_side_effects=*/false, /*is_align_stack=*/false, LLVM::TailCallKind::None,
                                   LLVM::AsmDialectAttr(), ArrayAttr())
      .getRes();
}

Value KeyCopies::pairOf(Value low, Value high) {
  if (low.getType() == f32)
    return roundedPair(low, high);
  return arith::OrIOp::create(b, low, arith::ShLIOp::create(b, high, b.constantInt(b.getI32Type(), 16)));
}

Value KeyCopies::orZero(Value isThere, Value value) {
  Value zero = value.getType() == f32 ? b.constant(f32, 0) : b.constantInt(value.getType(), 0);
  return arith::SelectOp::create(b, isThere, value, zero);
}

/// Pairs of terms, as swizzled() has them.
void KeyCopies::store(Value pair, Value to, Value row, Value term) {
  Value slab = b.floorDiv(term, b.idx(kTileRowElements)), own = b.rem(term, b.idx(kTileRowElements));
  Value offset = b.add(b.mulC(row, kTileRowBytes), b.mulC(own, 2));
  Value turn = b.mulC(b.rem(row, b.idx(kPatternRows)), 16);
  Value place = b.add(b.mulC(slab, CoreAttention::kSlabBytes), arith::XOrIOp::create(b, offset, turn));
  LLVM::StoreOp::create(b, pair, async.shared(b.add(place, to)), /*alignment=*/4);
}

void KeyCopies::put(Value to, Value thread, int64_t rows, int64_t terms, bool alongRows, int64_t atOnce,
                    Source source) {
  int64_t pairs = rows * terms / 2, rounds = llvm::divideCeil(pairs, kWarpgroup);
  auto putSome = [&](Value round, int64_t count) {
    SmallVector<std::array<Value, 4>> all;
    e.forget();
    for (int64_t i = 0; i < count; ++i) {
      Value number = b.add(b.mulC(b.addC(round, i), kWarpgroup), thread);
      Value size = b.idx(alongRows ? rows : terms / 2), outer = b.floorDiv(number, size), inner = b.rem(number, size);
      Value row = alongRows ? inner : outer, term = b.mulC(alongRows ? outer : inner, 2);
      all.push_back({source(row, term), source(row, b.addC(term, 1)), row, term});
    }
    e.forget();
    for (auto &[low, high, row, term] : all)
      store(pairOf(low, high), to, row, term);
  };
  // Rows are multiples of 8: of 64 terms, all rounds are whole ones or halves.
  int64_t full = pairs / kWarpgroup, looped = full / atOnce * atOnce;
  if (looped)
    b.forLoop(0, looped, atOnce, [&](Value round) { putSome(round, atOnce); });
  if (full > looped)
    putSome(b.idx(looped), full - looped);
  if (rounds > full)
    b.ifThen(b.cmp(arith::CmpIPredicate::slt, thread, b.idx(pairs - full * kWarpgroup)),
             [&] { putSome(b.idx(full), 1); });
}

/// Keys as rows of terms, values as columns with keys side by side; what is not there is 0.
void KeyCopies::putKeys(Value firstKey, Value slot) {
  Value item = b.mulC(group, few.share), last = b.addC(b.idx(few.keys), -1),
        thread = b.addC(b.threadInBlock(), -core.consumers());
  bool isWhole = few.keys.known() && *few.keys.known() % kKeys == 0;
  put(keysOf(slot), thread, kKeys, few.slabs() * kTileRowElements, /*alongRows=*/false, kAtOnce,
      [&](Value row, Value term) {
        Value at = b.add(firstKey, row);
        if (!isWhole)
          at = b.minS(at, last);
        return whereTerm(term, [&](Value read) { return key(item, at, read); });
      });
  put(valuesOf(slot), thread, few.width, kKeys, /*alongRows=*/true, kAtOnce, [&](Value column, Value term) {
    Value at = b.add(firstKey, term);
    if (isWhole)
      return value(item, at, column);
    Value isThere = b.cmp(arith::CmpIPredicate::sle, at, last);
    return orZero(isThere, value(item, b.minS(at, last), column));
  });
}

Value KeyCopies::whereTerm(Value term, llvm::function_ref<Value(Value)> read) {
  if (few.depth % kTileRowElements == 0)
    return read(term);
  Value isThere = b.cmp(arith::CmpIPredicate::slt, term, b.idx(few.depth));
  return orZero(isThere, read(b.minS(term, b.idx(few.depth - 1))));
}
