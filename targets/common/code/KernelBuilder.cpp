//===- KernelBuilder.cpp - emission of one kernel --------------------------===//

#include "KernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

#include <algorithm>

using namespace dmxc::kernels;
using namespace mlir;

void KernelBuilder::enter(Block *block, Arguments values) {
  entry = block;
  arguments = std::move(values);
  setInsertionPointToStart(block);
}

//===----------------------------------------------------------------------===//
// Index arithmetic
//===----------------------------------------------------------------------===//

std::optional<int64_t> KernelBuilder::constantOf(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  return std::nullopt;
}

Value KernelBuilder::idx(int64_t value) { return constantInt(getI64Type(), value); }

/// Rounds towards minus infinity, whatever the signs.
static Value floorDivide(ImplicitLocOpBuilder &b, Value x, Value y) {
  Value zero = arith::ConstantOp::create(b, b.getI64IntegerAttr(0));
  Value quotient = arith::DivSIOp::create(b, x, y);
  Value rest = arith::SubIOp::create(b, x, arith::MulIOp::create(b, quotient, y));
  Value uneven = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, rest, zero);
  Value signs = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, arith::XOrIOp::create(b, rest, y), zero);
  Value less = arith::ExtUIOp::create(b, b.getI64Type(), arith::AndIOp::create(b, uneven, signs));
  return arith::SubIOp::create(b, quotient, less);
}

Value KernelBuilder::idx(Dim size) {
  if (std::optional<int64_t> number = size.known())
    return idx(*number);
  Value &known = extents[size.key()];
  if (known)
    return known;
  // Behind the sizes that are there: a block of their own at the top of the body.
  OpBuilder::InsertionGuard guard(*this);
  if (lastExtent)
    setInsertionPointAfter(lastExtent);
  else
    setInsertionPointToStart(entry);
  Dim::Builder<Value> make;
  make.number = [&](int64_t number) { return idx(number); };
  make.symbol = [&](std::string_view name) {
    auto at = llvm::find(symbols, getStringAttr(StringRef(name.data(), name.size())));
    assert(at != symbols.end() && "a kernel has the symbols of its body");
    return dim(at - symbols.begin());
  };
  make.add = [&](Value x, Value y) { return add(x, y); };
  make.mul = [&](Value x, Value y) { return mul(x, y); };
  make.call = [&](Dim::Call call, Value x, Value y) -> Value {
    switch (call) {
    case Dim::Call::FloorDiv:
      return floorDivide(*this, x, y);
    case Dim::Call::Min:
      return minS(x, y);
    case Dim::Call::Max:
      return maxS(x, y);
    case Dim::Call::Broadcast:
      break;
    }
    Value isOne = arith::CmpIOp::create(*this, arith::CmpIPredicate::eq, x, idx(1));
    return arith::SelectOp::create(*this, isOne, y, x);
  };
  Value value = size.build(make);
  // A copy, so that the end of the block of sizes is known even where nothing was computed.
  if (getInsertionPoint() != entry->begin())
    lastExtent = &*std::prev(getInsertionPoint());
  return extents[size.key()] = value;
}
Value KernelBuilder::add(Value a, Value b) {
  auto ca = constantOf(a), cb = constantOf(b);
  if (ca && cb)
    return idx(*ca + *cb);
  if (ca && *ca == 0)
    return b;
  if (cb && *cb == 0)
    return a;
  return arith::AddIOp::create(*this, a, b, arith::IntegerOverflowFlags::nsw);
}
Value KernelBuilder::sub(Value a, Value b) {
  auto ca = constantOf(a), cb = constantOf(b);
  if (ca && cb)
    return idx(*ca - *cb);
  if (cb && *cb == 0)
    return a;
  return arith::SubIOp::create(*this, a, b, arith::IntegerOverflowFlags::nsw);
}
Value KernelBuilder::mul(Value a, Value b) {
  auto ca = constantOf(a), cb = constantOf(b);
  if (ca && cb)
    return idx(*ca * *cb);
  if ((ca && *ca == 0) || (cb && *cb == 1))
    return a;
  if ((cb && *cb == 0) || (ca && *ca == 1))
    return b;
  return arith::MulIOp::create(*this, a, b, arith::IntegerOverflowFlags::nsw);
}
Value KernelBuilder::addC(Value a, int64_t b) { return b ? add(a, idx(b)) : a; }
Value KernelBuilder::mulC(Value a, int64_t b) { return b == 1 ? a : mul(a, idx(b)); }
Value KernelBuilder::floorDiv(Value a, Value b) {
  auto ca = constantOf(a), cb = constantOf(b);
  if (ca && cb && *cb)
    return idx(*ca / *cb);
  if (cb && *cb == 1)
    return a;
  return arith::DivUIOp::create(*this, a, b);
}
Value KernelBuilder::rem(Value a, Value b) {
  auto ca = constantOf(a), cb = constantOf(b);
  if (ca && cb && *cb)
    return idx(*ca % *cb);
  if (cb && *cb == 1)
    return idx(0);
  return arith::RemUIOp::create(*this, a, b);
}
Value KernelBuilder::ceilDiv(Value a, Value b) { return floorDiv(addC(add(a, b), -1), b); }
Value KernelBuilder::minS(Value a, Value b) {
  auto ca = constantOf(a), cb = constantOf(b);
  if (ca && cb)
    return idx(std::min(*ca, *cb));
  return arith::MinSIOp::create(*this, a, b);
}
Value KernelBuilder::maxS(Value a, Value b) {
  auto ca = constantOf(a), cb = constantOf(b);
  if (ca && cb)
    return idx(std::max(*ca, *cb));
  return arith::MaxSIOp::create(*this, a, b);
}
Value KernelBuilder::cmp(arith::CmpIPredicate predicate, Value a, Value b) {
  return createOrFold<arith::CmpIOp>(predicate, a, b);
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

void KernelBuilder::forLoop(Value lo, Value hi, Value step, LoopBody bodyFn) {
  auto clo = constantOf(lo), chi = constantOf(hi), cstep = constantOf(step);
  if (clo && chi && cstep && *clo >= *chi)
    return;
  if (clo && chi && cstep && *clo + *cstep >= *chi)
    return bodyFn(lo); // one trip
  auto loop = scf::ForOp::create(*this, lo, hi, step);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPoint(loop.getBody()->getTerminator());
  bodyFn(loop.getInductionVar());
}

void KernelBuilder::forLoop(int64_t lo, int64_t hi, int64_t step, LoopBody bodyFn) {
  if (lo < hi) // no constants for an empty loop
    forLoop(idx(lo), idx(hi), idx(step), bodyFn);
}

SmallVector<Value> KernelBuilder::forLoop(Value lo, Value hi, Value step, ValueRange init,
                                          llvm::function_ref<SmallVector<Value>(Value, ValueRange)> bodyFn) {
  auto clo = constantOf(lo), chi = constantOf(hi), cstep = constantOf(step);
  if (clo && chi && cstep && *clo >= *chi)
    return llvm::to_vector(init);
  if (clo && chi && cstep && *clo + *cstep >= *chi)
    return bodyFn(lo, init); // one trip
  auto loop = scf::ForOp::create(*this, lo, hi, step, init);
  OpBuilder::InsertionGuard guard(*this);
  // With loop-carried values the builder of scf.for adds no terminator.
  if (init.empty()) {
    setInsertionPoint(loop.getBody()->getTerminator());
    bodyFn(loop.getInductionVar(), {});
    return {};
  }
  setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next = bodyFn(loop.getInductionVar(), loop.getRegionIterArgs());
  scf::YieldOp::create(*this, next);
  return llvm::to_vector_of<Value>(loop.getResults());
}

void KernelBuilder::ifThen(Value condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise) {
  if (auto known = constantOf(condition)) {
    if (*known)
      then();
    else if (otherwise)
      otherwise();
    return;
  }
  auto branch = scf::IfOp::create(*this, condition, /*withElseRegion=*/bool(otherwise));
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(branch.thenBlock());
  then();
  if (otherwise) {
    setInsertionPointToStart(branch.elseBlock());
    otherwise();
  }
}

void KernelBuilder::forItems(Dim count, LoopBody item) {
  if (count.is(1))
    return ifThen(cmp(arith::CmpIPredicate::slt, begin(), end()), [&] { item(idx(0)); });
  forLoop(begin(), end(), idx(1), item);
}

Value KernelBuilder::mostOfTeam(Value own) {
  return ofTeam(own, [&](ValueRange x, ValueRange y) -> SmallVector<Value> {
    return {arith::MaxUIOp::create(*this, x[0], y[0])};
  })[0];
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value KernelBuilder::constant(Type type, double value) {
  Type element = getElementTypeOrSelf(type);
  if (!isa_and_nonnull<FloatType>(element))
    return constantInt(type, static_cast<int64_t>(value));
  TypedAttr attr = FloatAttr::get(element, value);
  if (auto vector = dyn_cast<VectorType>(type))
    attr = DenseElementsAttr::get(vector, ArrayRef<Attribute>(attr));
  return arith::ConstantOp::create(*this, attr);
}

Value KernelBuilder::constantInt(Type type, int64_t value) {
  Type element = getElementTypeOrSelf(type);
  if (mlir::isa<FloatType>(element))
    return constant(type, static_cast<double>(value));
  unsigned bits = element.getIntOrFloatBitWidth();
  TypedAttr attr = IntegerAttr::get(element, APInt(bits, static_cast<uint64_t>(value), /*isSigned=*/true,
                                                   /*implicitTrunc=*/true));
  if (auto vector = dyn_cast<VectorType>(type))
    attr = DenseElementsAttr::get(vector, ArrayRef<Attribute>(attr));
  return arith::ConstantOp::create(*this, attr);
}

Value KernelBuilder::splat(Value scalar, int64_t lanes) {
  if (lanes == 1)
    return scalar;
  return vector::BroadcastOp::create(*this, laneType(scalar.getType(), lanes), scalar);
}

Value KernelBuilder::narrowed(Value vector, int64_t lanes) {
  auto type = dyn_cast<VectorType>(vector.getType());
  if (!type || type.getNumElements() == lanes)
    return vector;
  int64_t first = 0, step = 1;
  return vector::ExtractStridedSliceOp::create(*this, vector, first, lanes, step);
}

Value KernelBuilder::widened(Value vector, int64_t lanes) {
  auto type = dyn_cast<VectorType>(vector.getType());
  if (!type || type.getNumElements() == lanes)
    return vector;
  int64_t first = 0, step = 1;
  Value zeros = constant(laneType(type.getElementType(), lanes), 0);
  return vector::InsertStridedSliceOp::create(*this, vector, zeros, first, step);
}

SmallVector<Value> KernelBuilder::transposed(ArrayRef<Value> rows) {
  // Stage by stage, exchange the off-diagonal blocks of size s: after the last
  // one (s = 1) element (i, j) is at (j, i).
  SmallVector<Value> v(rows);
  int64_t n = rows.size();
  for (int64_t s = n / 2; s >= 1; s /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t j = 0; j < n; ++j) {
      bool upper = j & s;
      low.push_back(upper ? n + j - s : j);
      high.push_back(upper ? n + j : j + s);
    }
    for (int64_t i = 0; i < n; ++i) {
      if (i & s)
        continue;
      Value x = v[i], y = v[i + s];
      v[i] = vector::ShuffleOp::create(*this, x, y, low);
      v[i + s] = vector::ShuffleOp::create(*this, x, y, high);
    }
  }
  return v;
}

Type KernelBuilder::laneType(Type element, int64_t lanes) {
  return lanes == 1 ? element : VectorType::get({lanes}, element);
}

Value KernelBuilder::fma(Value a, Value b, Value c) {
  if (!target.hasFma) {
    Value product = arith::MulFOp::create(*this, a, b);
    return arith::AddFOp::create(*this, product, c);
  }
  // llvm.fma rather than vector.fma: the same for scalars and vectors.
  return LLVM::FMAOp::create(*this, a, b, c);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static unsigned storageBytes(Type storage) { return (storage.getIntOrFloatBitWidth() + 7) / 8; }

Type KernelBuilder::storageType(Type element) {
  if (element.isBF16())
    return getIntegerType(16);
  return element.isInteger(1) ? getI8Type() : element;
}

Value KernelBuilder::elementPtr(Type element, Value base, Value offset) {
  auto constant = constantOf(offset);
  if (constant && *constant == 0)
    return base;
  SmallVector<LLVM::GEPArg, 1> index{offset};
  if (constant && *constant == static_cast<int32_t>(*constant))
    index[0] = LLVM::GEPArg(static_cast<int32_t>(*constant));
  return LLVM::GEPOp::create(*this, base.getType(), storageType(element), base, index, LLVM::GEPNoWrapFlags::inbounds);
}

/// i1 tensors live in bytes: back to i1 after a load, to i8 before a store. bf16 moves as i16: LLVM's
/// code generation splits masked stores of bf16 through f32 and a library function.
static Value fromStorage(KernelBuilder &b, Type element, Value stored) {
  if (element.isBF16()) {
    Type type = element;
    if (auto vector = dyn_cast<VectorType>(stored.getType()))
      type = VectorType::get(vector.getShape(), element);
    return arith::BitcastOp::create(b, type, stored);
  }
  if (!element.isInteger(1))
    return stored;
  Value zero = b.constantInt(stored.getType(), 0);
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, stored, zero);
}
static Value toStorage(KernelBuilder &b, Value value) {
  Type element = getElementTypeOrSelf(value.getType());
  if (!element.isInteger(1) && !element.isBF16())
    return value;
  Type wide = element.isBF16() ? b.getIntegerType(16) : b.getI8Type();
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    wide = VectorType::get(vector.getShape(), wide);
  if (element.isBF16())
    return arith::BitcastOp::create(b, wide, value);
  return arith::ExtUIOp::create(b, wide, value);
}

Value KernelBuilder::areAligned(ArrayRef<Value> pointers, int64_t bytes) {
  Value bits = idx(0);
  for (Value pointer : pointers)
    bits = arith::OrIOp::create(*this, bits, LLVM::PtrToIntOp::create(*this, getI64Type(), pointer));
  return cmp(arith::CmpIPredicate::eq, rem(bits, idx(bytes)), idx(0));
}

void KernelBuilder::assumeAligned(ArrayRef<Value> pointers, int64_t bytes) {
  Value yes = constantInt(getI1Type(), 1);
  for (Value pointer : pointers)
    LLVM::AssumeOp::create(*this, yes, LLVM::AssumeAlignTag(), pointer, idx(bytes));
}

Value KernelBuilder::load(Type element, Value base, Value offset, int64_t lanes) {
  Type storage = storageType(element);
  Value stored =
      LLVM::LoadOp::create(*this, laneType(storage, lanes), elementPtr(element, base, offset), storageBytes(storage));
  return fromStorage(*this, element, stored);
}

void KernelBuilder::store(Value value, Value base, Value offset) {
  Value stored = toStorage(*this, value);
  Type storage = getElementTypeOrSelf(stored.getType());
  LLVM::StoreOp::create(*this, stored, elementPtr(storage, base, offset), storageBytes(storage));
}

Value KernelBuilder::maskedLoad(Type element, Value base, Value offset, Value mask, Value passThru) {
  Type storage = storageType(element);
  Type type = VectorType::get(cast<VectorType>(mask.getType()).getShape(), storage);
  Value other = passThru ? toStorage(*this, passThru) : constantInt(type, 0);
  Value stored =
      LLVM::MaskedLoadOp::create(*this, type, elementPtr(element, base, offset), mask, other, storageBytes(storage));
  return fromStorage(*this, element, stored);
}

void KernelBuilder::maskedStore(Value value, Value base, Value offset, Value mask) {
  Value stored = toStorage(*this, value);
  Type storage = getElementTypeOrSelf(stored.getType());
  LLVM::MaskedStoreOp::create(*this, stored, elementPtr(storage, base, offset), mask, storageBytes(storage));
}

Value KernelBuilder::headMask(int64_t lanes, int64_t count) {
  SmallVector<bool> on(lanes, false);
  std::fill_n(on.begin(), std::clamp<int64_t>(count, 0, lanes), true);
  auto type = VectorType::get({lanes}, getI1Type());
  return arith::ConstantOp::create(*this, DenseElementsAttr::get(type, ArrayRef<bool>(on)));
}

Value KernelBuilder::headMask(int64_t lanes, Value count) {
  if (auto known = constantOf(count))
    return headMask(lanes, *known);
  // Clamped first, so that the comparison fits in 32 bits (half the registers
  // of i64).
  Type i32 = getI32Type();
  Value clamped = minS(maxS(count, idx(0)), idx(lanes));
  Value narrow = arith::TruncIOp::create(*this, i32, clamped);
  SmallVector<int32_t> steps;
  for (int64_t i = 0; i < lanes; ++i)
    steps.push_back(static_cast<int32_t>(i));
  auto type = VectorType::get({lanes}, i32);
  Value lane = arith::ConstantOp::create(*this, DenseElementsAttr::get(type, ArrayRef(steps)));
  Value limit = vector::BroadcastOp::create(*this, type, narrow);
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::slt, lane, limit);
}
