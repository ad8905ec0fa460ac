//===- GemmTile.cpp - register tiles of products -------------------------===//

#include "GemmTile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

#include <cassert>

using namespace dmxc::cpu;
using namespace mlir;

static bool isFloatType(Type type) { return mlir::isa<FloatType>(getElementTypeOrSelf(type)); }

Value dmxc::cpu::convertElements(CpuBuilder &b, const ElementConversion &c, Value value) {
  if (c.from == c.to)
    return value;
  Type type = c.to;
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    type = VectorType::get(vector.getShape(), c.to);
  if (isFloatType(c.from))
    return arith::ExtFOp::create(b, type, value);
  if (isFloatType(c.to))
    return c.isUnsigned ? Value(arith::UIToFPOp::create(b, type, value))
                        : Value(arith::SIToFPOp::create(b, type, value));
  if (c.isUnsigned)
    return arith::ExtUIOp::create(b, type, value);
  return arith::ExtSIOp::create(b, type, value);
}

Value dmxc::cpu::roundToBf16(CpuBuilder &b, Value value) {
  Type f32 = value.getType(), i32 = b.getI32Type();
  if (auto vector = dyn_cast<VectorType>(f32))
    i32 = vector.clone(i32);
  auto number = [&](int64_t x) { return b.constantInt(i32, x); };
  Value bits = arith::BitcastOp::create(b, i32, value);
  Value odd = arith::AndIOp::create(b, Value(arith::ShRUIOp::create(b, bits, number(16))), number(1));
  Value above = arith::AddIOp::create(b, Value(arith::AddIOp::create(b, bits, number(0x7fff))), odd);
  Value rounded = arith::AndIOp::create(b, above, number(-0x10000));
  // What NaN carries is lost, as it is in sums: all ones are one too.
  Value isNaN = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, value, value);
  Value ones = arith::ExtSIOp::create(b, i32, isNaN);
  return arith::BitcastOp::create(b, f32, Value(arith::OrIOp::create(b, rounded, ones)));
}

static Value intrinsic(CpuBuilder &b, const llvm::Twine &name, Type result, ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(b, result, b.getStringAttr("llvm.x86." + name), operands).getResult(0);
}

Value dmxc::cpu::bf16Of(CpuBuilder &b, Value value) {
  auto vector = dyn_cast<VectorType>(value.getType());
  Type i16 = b.getIntegerType(16), bf16 = b.getBF16Type();
  if (vector)
    i16 = vector.clone(i16), bf16 = vector.clone(bf16);
  const bool isWhole = vector && vector.getNumElements() == 16 && (b.isa().hasDots || b.isa().hasTiles);
  Value rounded;
  if (isWhole) {
    rounded = LLVM::BitcastOp::create(b, i16, intrinsic(b, "avx512bf16.cvtneps2bf16.512", bf16, {value}));
  } else {
    Type i32 = vector ? Type(vector.clone(b.getI32Type())) : b.getI32Type();
    Value bits = arith::BitcastOp::create(b, i32, roundToBf16(b, value));
    rounded = arith::TruncIOp::create(b, i16, Value(arith::ShRUIOp::create(b, bits, b.constantInt(i32, 16))));
  }
  return arith::BitcastOp::create(b, bf16, rounded);
}

Value dmxc::cpu::joinAsBf16(CpuBuilder &b, Value first, Value second) {
  auto type = cast<VectorType>(first.getType());
  auto pairs = VectorType::get({2 * type.getNumElements()}, b.getBF16Type());
  Value joined =
      intrinsic(b, "avx512bf16.cvtne2ps2bf16." + llvm::Twine(32 * type.getNumElements()), pairs, {second, first});
  return LLVM::BitcastOp::create(b, type, joined);
}

Value dmxc::cpu::halfOfPairs(CpuBuilder &b, Value pairs, int64_t half) {
  Type i32 = pairs.getType(), f32 = b.getF32Type();
  if (auto vector = dyn_cast<VectorType>(i32))
    f32 = vector.clone(f32);
  Value bits = half ? Value(arith::AndIOp::create(b, pairs, b.constantInt(i32, -0x10000)))
                    : Value(arith::ShLIOp::create(b, pairs, b.constantInt(i32, 16)));
  return arith::BitcastOp::create(b, f32, bits);
}

SmallVector<Value> dmxc::cpu::zeroTile(CpuBuilder &b, const RegisterTile &tile) {
  SmallVector<Value> row;
  for (int64_t v = 0; v < tile.vectors; ++v)
    row.push_back(b.constant(b.laneType(tile.acc, tile.lanesOf(v)), 0));
  SmallVector<Value> zeros;
  for (int64_t r = 0; r < tile.chains * tile.rows; ++r)
    zeros.append(row);
  return zeros;
}

int64_t dmxc::cpu::chainsThatFit(const IsaLevel &isa, const RegisterTile &tile) {
  TileShape most = largestTile(isa, tile.acc, tile.fours);
  if (!isFloatType(tile.acc))
    return 1;
  int64_t fitting = most.rows * most.vectors / tile.sums();
  return fitting >= 4 ? 4 : fitting >= 2 ? 2 : 1;
}

SmallVector<Value> dmxc::cpu::beginChains(CpuBuilder &b, const RegisterTile &tile, ValueRange sums) {
  SmallVector<Value> acc = zeroTile(b, tile);
  llvm::copy(sums, acc.begin());
  return acc;
}

SmallVector<Value> dmxc::cpu::sumChains(CpuBuilder &b, const RegisterTile &tile, ValueRange acc) {
  SmallVector<Value> sums(acc);
  for (int64_t chains = tile.chains; chains > 1; chains /= 2) {
    int64_t half = chains / 2 * tile.sums();
    for (int64_t i = 0; i < half; ++i)
      sums[i] = arith::AddFOp::create(b, sums[i], sums[half + i]);
    sums.truncate(half);
  }
  return sums;
}

bool dmxc::cpu::totalsFit(const IsaLevel &isa, const RegisterTile &tile) {
  return 2 * tile.size() + tile.vectors + 1 <= isa.vectorRegisters;
}

SmallVector<Value> dmxc::cpu::sumInStretches(CpuBuilder &b, const RegisterTile &tile, Value low, Value high,
                                             int64_t step, int64_t stretch, ValueRange init,
                                             llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  return sumInStretches(b, tile, low, high, stretch, init, [&](Value from, Value to, ValueRange sums) {
    return b.forLoop(from, to, b.idx(step), sums, body);
  });
}

SmallVector<Value> dmxc::cpu::sumInStretches(CpuBuilder &b, const RegisterTile &tile, Value low, Value high,
                                             int64_t stretch, ValueRange init,
                                             llvm::function_ref<SmallVector<Value>(Value, Value, ValueRange)> range) {
  auto first = CpuBuilder::constantOf(low), last = CpuBuilder::constantOf(high);
  bool known = first && last;
  if (!isFloatType(tile.acc) || (known && *last - *first <= stretch))
    return range(low, high, init);
  bool whole = known && (*last - *first) % stretch == 0;
  auto runFrom = [&](Value from) {
    Value to = b.addC(from, stretch);
    return range(from, whole ? to : b.minS(to, high), zeroTile(b, tile));
  };
  if (totalsFit(b.isa(), tile))
    return b.forLoop(low, high, b.idx(stretch), init, [&](Value from, ValueRange totals) {
      SmallVector<Value> acc = runFrom(from);
      for (auto [sum, total] : llvm::zip(acc, totals))
        sum = arith::AddFOp::create(b, total, sum);
      return acc;
    });
  assert(tile.size() * tile.lanes * tile.acc.getIntOrFloatBitWidth() / 8 <= CpuBuilder::kTileBytes);
  // In memory, as there are no registers for a second tile.
  Value total = b.tileBuffer();
  auto store = [&](ValueRange sums) {
    for (int64_t i = 0; i < tile.size(); ++i)
      b.store(sums[i], total, b.idx(i * tile.lanes));
  };
  auto totals = [&](ValueRange sums) { // plus `sums`, where there are some
    SmallVector<Value> result;
    for (int64_t i = 0; i < tile.size(); ++i) {
      Value x = b.load(tile.acc, total, b.idx(i * tile.lanes), tile.lanesOf(i % tile.vectors));
      result.push_back(sums.empty() ? x : Value(arith::AddFOp::create(b, sums[i], x)));
    }
    return result;
  };
  if (known && *last - *first <= 2 * stretch) {
    Value middle = b.addC(low, stretch);
    store(range(low, middle, init));
    return totals(range(middle, high, zeroTile(b, tile)));
  }
  bool fromZero = known && llvm::all_of(init, [](Value x) { return matchPattern(x, m_AnyZeroFloat()); });
  if (!fromZero)
    store(init);
  b.forLoop(low, high, b.idx(stretch), [&](Value from) {
    SmallVector<Value> acc = runFrom(from);
    auto add = [&] { store(totals(acc)); };
    if (fromZero)
      b.ifThen(b.cmp(arith::CmpIPredicate::eq, from, low), [&] { store(acc); }, add);
    else
      add();
  });
  return totals({});
}

void dmxc::cpu::cutInTiles(CpuBuilder &b, Value count, int64_t rows, ArrayRef<int64_t> sizes,
                           llvm::function_ref<void(int64_t rows, Value at, Value left)> body) {
  Value full = b.mulC(b.floorDiv(count, b.idx(rows)), rows);
  b.forLoop(b.idx(0), full, b.idx(rows), [&](Value at) { body(rows, at, {}); });
  if (rows == 1)
    return;
  sizes = sizes.take_while([&](int64_t size) { return size < rows - 1; });
  Value left = b.sub(count, full);
  auto smallest = [&](auto &&self, size_t i) -> void {
    if (i == sizes.size())
      return body(rows - 1, full, left);
    b.ifThen(
        b.cmp(arith::CmpIPredicate::sle, left, b.idx(sizes[i])), [&] { body(sizes[i], full, left); },
        [&] { self(self, i + 1); });
  };
  b.ifThen(b.cmp(arith::CmpIPredicate::sgt, left, b.idx(0)), [&] { smallest(smallest, 0); });
}

Value dmxc::cpu::multiplyAdd(CpuBuilder &b, Value x, Value y, Value sum) {
  if (isFloatType(sum.getType()))
    return b.fma(x, y, sum);
  Value product = arith::MulIOp::create(b, x, y);
  return arith::AddIOp::create(b, sum, product);
}

Value dmxc::cpu::bytePairs(CpuBuilder &b, Value fours, bool odd, bool isSigned) {
  int64_t lanes = cast<VectorType>(fours.getType()).getNumElements();
  auto pairs = VectorType::get({2 * lanes}, b.getI16Type());
  Value x = vector::BitCastOp::create(b, pairs, fours), eight = b.constantInt(pairs, 8);
  if (!isSigned)
    return odd ? Value(arith::ShRUIOp::create(b, x, eight))
               : Value(arith::AndIOp::create(b, x, b.constantInt(pairs, 0xff)));
  return arith::ShRSIOp::create(b, odd ? x : Value(arith::ShLIOp::create(b, x, eight)), eight);
}

Value dmxc::cpu::dotWords(CpuBuilder &b, Value x, Value y, Value sum) {
  auto type = cast<VectorType>(sum.getType());
  const int64_t lanes = type.getNumElements();
  const char *name = lanes == 16 ? "avx512.pmaddw.d.512" : lanes == 8 ? "avx2.pmadd.wd" : "sse2.pmadd.wd";
  auto words = VectorType::get({2 * lanes}, b.getI16Type());
  auto bits = [&](Value operand) {
    return operand.getType() == words ? operand : Value(vector::BitCastOp::create(b, words, operand));
  };
  return arith::AddIOp::create(b, sum, intrinsic(b, name, type, {bits(x), bits(y)}));
}

Value dmxc::cpu::dotFours(CpuBuilder &b, Value x, Value y, Value sum) {
  auto type = cast<VectorType>(sum.getType());
  int64_t bits = type.getNumElements() * 32;
  if (b.isa().hasVnni) {
    auto bytes = VectorType::get({bits / 8}, b.getI8Type());
    Value left = vector::BitCastOp::create(b, bytes, x), right = vector::BitCastOp::create(b, bytes, y);
    return intrinsic(b, "avx512.vpdpbusd." + llvm::Twine(bits), type, {sum, left, right});
  }
  // Products of bytes as i16 are exact, and so are sums of two of them: nothing saturates.
  for (bool odd : {false, true}) {
    Value left = bytePairs(b, x, odd, /*isSigned=*/false), right = bytePairs(b, y, odd, /*isSigned=*/true);
    sum = dotWords(b, left, right, sum);
  }
  return sum;
}

Value dmxc::cpu::dotPairs(CpuBuilder &b, Value x, Value y, Value sum) {
  int64_t lanes = cast<VectorType>(sum.getType()).getNumElements();
  auto pairs = VectorType::get({2 * lanes}, b.getBF16Type());
  auto bits = [&](Value operand) -> Value { return LLVM::BitcastOp::create(b, pairs, operand); };
  return intrinsic(b, "avx512bf16.dpbf16ps." + llvm::Twine(32 * lanes), sum.getType(), {sum, bits(y), bits(x)});
}

Value dmxc::cpu::multiplyPairs(CpuBuilder &b, Value x, Value y, Value sum) {
  auto bits = [&](Value operand) -> Value {
    auto vector = dyn_cast<VectorType>(operand.getType());
    Type i32 = b.getI32Type();
    return arith::BitcastOp::create(b, vector ? Type(vector.clone(i32)) : i32, operand);
  };
  Value left = bits(x), right = bits(y);
  for (int64_t half : {0, 1})
    sum = b.fma(halfOfPairs(b, left, half), halfOfPairs(b, right, half), sum);
  return sum;
}

void dmxc::cpu::accumulateTile(CpuBuilder &b, const RegisterTile &tile, MutableArrayRef<Value> acc,
                               llvm::function_ref<Value(int64_t)> left, ArrayRef<Value> right, int64_t chain) {
  for (int64_t r = 0; r < tile.rows; ++r) {
    Value x = b.splat(left(r), tile.lanes);
    for (int64_t v = 0; v < tile.vectors; ++v) {
      Value &sum = acc[chain * tile.sums() + r * tile.vectors + v];
      sum = tile.fours  ? dotFours(b, x, right[v], sum)
            : tile.dots ? dotPairs(b, x, right[v], sum)
                        : multiplyAdd(b, x, right[v], sum);
    }
  }
}

TileShape dmxc::cpu::largestTile(const IsaLevel &isa, Type acc, bool fours) {
  bool wide = isa.vectorRegisters >= 32;
  if (fours && !isa.hasVnni) // both halves of every operand, and a product
    return wide ? TileShape{12, 2} : TileShape{4, 2};
  if (fours)
    return wide ? TileShape{14, 2} : TileShape{6, 2};
  if (acc.isInteger(64)) // without AVX512DQ a 64-bit product takes several temporaries
    return wide ? TileShape{8, 2} : TileShape{3, 2};
  if (mlir::isa<IntegerType>(acc) || !isa.hasFma) // a register for the product
    return wide ? TileShape{13, 2} : TileShape{5, 2};
  return wide ? TileShape{14, 2} : TileShape{6, 2};
}

TileShape dmxc::cpu::largestConvTile(const IsaLevel &isa, Type acc, int64_t terms, bool fours) {
  TileShape most = largestTile(isa, acc, fours);
  if (isFloatType(acc) && terms > convStretch(terms) && isa.vectorRegisters >= 32)
    most.rows /= 2;
  return most;
}
