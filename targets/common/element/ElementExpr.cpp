//===- ElementExpr.cpp - values of tensors, element by element ----------------===//

#include "ElementExpr.h"

#include "ElementMask.h"

#include "targets/common/math/VectorMath.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/DMIR.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

ElementExpr::ElementExpr(KernelBuilder &builder, Block *block) : b(builder), block(block) {}

void ElementExpr::bind(Value tensor, Source source) { bound[tensor] = std::move(source); }
void ElementExpr::bindValue(Value tensor, Value value) {
  bind(tensor, [value, this](ArrayRef<Index>) -> Value {
    // One is, also of a vector, where the lanes' axis has one element.
    if (laneCount == 1 && mlir::isa<VectorType>(value.getType()))
      return vector::ExtractOp::create(b, value, 0);
    return value;
  });
}
void ElementExpr::unbind(Value tensor) { bound.erase(tensor); }

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

bool dmxc::kernels::isUnsignedElement(Type element) { return element.isUnsignedInteger() || element.isInteger(1); }

bool dmxc::kernels::isPacked(Type element) {
  unsigned bits = element.getIntOrFloatBitWidth();
  return bits == 2 || bits == 4;
}

/// The 8-bit and 4-bit floats that are computed with.
static bool isF8(Type element) {
  return mlir::isa<FloatType>(element) && element.getIntOrFloatBitWidth() <= 8 &&
         !mlir::isa<Float8E8M0FNUType>(element);
}

Type ElementExpr::carried(Type element) const {
  if (isF8(element) || mlir::isa<Float8E8M0FNUType>(element))
    return IntegerType::get(element.getContext(), 8);
  if (auto integer = dyn_cast<IntegerType>(element))
    return IntegerType::get(element.getContext(), isPacked(element) ? 8 : integer.getWidth());
  return element;
}

Type ElementExpr::computed(Type element) const {
  if (isF8(element) || element.isF16() || element.isBF16())
    return Float32Type::get(element.getContext());
  return carried(element);
}

Value ElementExpr::widen(Value value, Type element) {
  auto f32 = b.getF32Type();
  if (isF8(element))
    return VectorMath(b, b.processor()).decodeF8(value, cast<FloatType>(element), f32);
  if (element.isF16() || element.isBF16())
    return VectorMath(b, b.processor()).extendFloat(value, f32);
  return value;
}

Value ElementExpr::narrow(Value value, Type element, Overflow overflow) {
  if (isF8(element))
    return VectorMath(b, b.processor()).encodeF8(value, cast<FloatType>(element), overflow);
  if ((element.isF16() || element.isBF16()) && getElementTypeOrSelf(value.getType()) != element)
    return VectorMath(b, b.processor()).truncateFloat(value, cast<FloatType>(element));
  return value;
}

Value ElementExpr::constant(Type element, double value) {
  Type compute = b.laneType(computed(element), laneCount);
  return narrow(b.constant(compute, value), element);
}

//===----------------------------------------------------------------------===//
// Index arithmetic
//===----------------------------------------------------------------------===//

bool ElementExpr::visible(Value value) const {
  Block *home = value.getParentBlock();
  for (Block *at = b.getInsertionBlock(); at; at = at->getParentOp() ? at->getParentOp()->getBlock() : nullptr)
    if (at == home)
      return true;
  return false;
}

Value ElementExpr::constantIndex(int64_t value) {
  Value &known = indexConstants[value];
  if (!known) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(b.entryBlock());
    known = b.idx(value);
  }
  return known;
}

namespace {
enum IndexOp { AddOp, MulOp, DivOp, RemOp, MinOp, MaxOp, VectorOp, RepeatOp };
} // namespace

Value ElementExpr::cached(int kind, Value x, Value y, llvm::function_ref<Value()> make) {
  for (const CachedOp &op : llvm::reverse(indexOps))
    if (op.kind == kind && op.a == x && op.b == y && visible(op.result))
      return op.result;
  Value result = make();
  indexOps.push_back({kind, x, y, result});
  return result;
}

Value ElementExpr::addV(Value x, Value y) {
  auto cx = KernelBuilder::constantOf(x), cy = KernelBuilder::constantOf(y);
  if (cx && cy)
    return constantIndex(*cx + *cy);
  if (cx && *cx == 0)
    return y;
  if (cy && *cy == 0)
    return x;
  return cached(AddOp, x, y, [&] { return b.add(x, y); });
}

Value ElementExpr::mulV(Value x, int64_t c) {
  if (auto cx = KernelBuilder::constantOf(x))
    return constantIndex(*cx * c);
  if (c == 0)
    return constantIndex(0);
  if (c == 1)
    return x;
  Value factor = constantIndex(c);
  return cached(MulOp, x, factor, [&] { return b.mul(x, factor); });
}

Index ElementExpr::at(int64_t value) {
  // 0 is a multiple of everything; a large power of two stands for that.
  return {constantIndex(value), 0, value ? std::abs(value) : int64_t(1) << 40, {}};
}

Value ElementExpr::vectorOf(Index a) {
  if (a.vec)
    return a.vec;
  if (laneCount == 1)
    return a.base;
  auto type = VectorType::get({laneCount}, b.getI64Type());
  const bool repeats = a.repeat > 1;
  return cached(repeats ? RepeatOp : VectorOp, a.base, constantIndex(repeats ? a.repeat : a.stride), [&]() -> Value {
    Value splat = b.splat(a.base, laneCount);
    if (a.uniform())
      return splat;
    SmallVector<int64_t> steps;
    for (int64_t l = 0; l < laneCount; ++l)
      steps.push_back(repeats ? l / a.repeat : l * a.stride);
    Value ramp = arith::ConstantOp::create(b, DenseElementsAttr::get(type, ArrayRef(steps)));
    return arith::AddIOp::create(b, splat, ramp);
  });
}

Index ElementExpr::add(Index x, Index y) {
  const bool repeats = (x.repeat > 1 && y.uniform()) || (y.repeat > 1 && x.uniform());
  if (repeats)
    return {addV(x.base, y.base), 0, std::gcd(x.multiple, y.multiple), {}, std::max(x.repeat, y.repeat)};
  if (x.vec || y.vec || x.repeat > 1 || y.repeat > 1) {
    Value vx = vectorOf(x), vy = vectorOf(y);
    return {{}, 0, 1, arith::AddIOp::create(b, vx, vy)};
  }
  return {addV(x.base, y.base), x.stride + y.stride, std::gcd(x.multiple, y.multiple), {}};
}

Index ElementExpr::addC(Index x, int64_t c) { return c ? add(x, at(c)) : x; }

Index ElementExpr::mulC(Index x, int64_t c) {
  if (c == 1)
    return x;
  if (c == 0)
    return at(0);
  if (x.vec || x.repeat > 1) {
    Value v = vectorOf(x);
    return {{}, 0, 1, arith::MulIOp::create(b, v, b.constantInt(v.getType(), c))};
  }
  // Bounded, so that products of multiples cannot overflow.
  int64_t multiple = x.multiple >= (int64_t(1) << 40) ? x.multiple : x.multiple * std::abs(c);
  return {mulV(x.base, c), x.stride * c, std::min(multiple, int64_t(1) << 40), {}};
}

Index ElementExpr::mulC(Index x, Dim c) {
  if (std::optional<int64_t> number = c.known())
    return mulC(x, *number);
  Value factor = b.idx(c);
  if (x.uniform()) {
    if (auto constant = KernelBuilder::constantOf(x.base); constant && *constant == 0)
      return at(0);
    return at(cached(MulOp, x.base, factor, [&] { return b.mul(x.base, factor); }));
  }
  return {{}, 0, 1, arith::MulIOp::create(b, vectorOf(x), b.splat(factor, laneCount))};
}

void ElementExpr::knowDivision(Value value, int64_t c, Value quotient, Value remainder) {
  divisions.push_back({value, c, quotient, remainder});
}

std::pair<Index, Index> ElementExpr::divRem(Index x, int64_t c) {
  if (c == 1)
    return {x, at(0)};
  if (x.vec || x.repeat > 1) {
    Value v = vectorOf(x), d = b.constantInt(v.getType(), c);
    return {{{}, 0, 1, arith::DivUIOp::create(b, v, d)}, {{}, 0, 1, arith::RemUIOp::create(b, v, d)}};
  }
  int64_t reach = std::abs(x.stride) * (laneCount - 1);
  bool stays = x.stride >= 0 && reach < std::gcd(x.multiple, c);
  bool steps = x.stride % c == 0;
  // Lanes beside each other from a multiple on: each quotient c times.
  bool repeats = x.stride == 1 && laneCount % c == 0 && x.multiple % c == 0;
  if (!stays && !steps && !repeats) {
    Index vec{{}, 0, 1, vectorOf(x)};
    return divRem(vec, c);
  }
  Value quotient, remainder;
  for (const Known &known : divisions)
    if (known.base == x.base && known.c == c && visible(known.base))
      quotient = known.quotient, remainder = known.remainder;
  if (auto constant = KernelBuilder::constantOf(x.base)) {
    quotient = constantIndex(*constant / c);
    remainder = constantIndex(*constant % c);
  } else if (!quotient) {
    Value d = constantIndex(c);
    quotient = cached(DivOp, x.base, d, [&] { return b.floorDiv(x.base, d); });
    remainder = cached(RemOp, x.base, d, [&] { return b.rem(x.base, d); });
  }
  int64_t below = x.multiple % c == 0 ? x.multiple / c : 1;
  if (!stays && !steps) {
    SmallVector<int64_t> rests;
    for (int64_t l = 0; l < laneCount; ++l)
      rests.push_back(l % c);
    auto type = VectorType::get({laneCount}, b.getI64Type());
    Value rest = arith::ConstantOp::create(b, DenseElementsAttr::get(type, ArrayRef(rests)));
    return {{quotient, 0, below, {}, c}, {{}, 0, 1, rest}};
  }
  if (steps && x.stride != 0)
    return {{quotient, x.stride / c, below, {}}, {remainder, 0, std::gcd(x.multiple, c), {}}};
  return {{quotient, 0, below, {}}, {remainder, x.stride, std::gcd(x.multiple, c), {}}};
}

std::pair<Index, Index> ElementExpr::divRem(Index x, Dim c) {
  if (std::optional<int64_t> number = c.known())
    return divRem(x, *number);
  Value d = b.idx(c);
  if (x.uniform()) {
    Value quotient = cached(DivOp, x.base, d, [&] { return b.floorDiv(x.base, d); });
    return {at(quotient), at(cached(RemOp, x.base, d, [&] { return b.rem(x.base, d); }))};
  }
  Value v = vectorOf(x), splat = b.splat(d, laneCount);
  return {{{}, 0, 1, arith::DivUIOp::create(b, v, splat)}, {{}, 0, 1, arith::RemUIOp::create(b, v, splat)}};
}

Index ElementExpr::broadcastIndex(Index x, Dim own, Dim whole) {
  if (own.is(1))
    return at(0);
  if (own.isStatic() || own == whole)
    return x;
  Value one = b.idx(1), isWide = b.cmp(arith::CmpIPredicate::ne, b.idx(own), one);
  if (x.uniform())
    return at(arith::SelectOp::create(b, isWide, x.base, constantIndex(0)));
  Value v = vectorOf(x);
  return {{}, 0, 1, arith::SelectOp::create(b, isWide, v, b.constantInt(v.getType(), 0))};
}

Index ElementExpr::clamp(Index x, Dim low, Dim high) {
  if (x.uniform()) {
    Value lo = sizeIndex(low), hi = sizeIndex(high);
    Value upper = cached(MinOp, x.base, hi, [&] { return b.minS(x.base, hi); });
    return at(cached(MaxOp, upper, lo, [&] { return b.maxS(upper, lo); }));
  }
  Value v = vectorOf(x);
  Value upper = arith::MinSIOp::create(b, v, b.splat(b.idx(high), laneCount));
  Value both = arith::MaxSIOp::create(b, upper, b.splat(b.idx(low), laneCount));
  return {{}, 0, 1, both};
}

Value ElementExpr::inRange(Index x, Dim low, Dim high) {
  // One unsigned comparison: x - low < high - low.
  Index from = addC(x, Dim(0) - low);
  if (from.uniform())
    return b.cmp(arith::CmpIPredicate::ult, from.base, sizeIndex(high - low));
  Value v = vectorOf(from);
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, v, b.splat(b.idx(high - low), laneCount));
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

static bool sameIndex(const Index &x, const Index &y) {
  return x.base == y.base && x.stride == y.stride && x.vec == y.vec && x.repeat == y.repeat;
}

Value *ElementExpr::findMemo(Value tensor, ArrayRef<Index> index) {
  for (Memo &m : llvm::reverse(memo))
    if (m.tensor == tensor && m.lanes == laneCount && m.mask == laneMask && m.index.size() == index.size() &&
        std::equal(index.begin(), index.end(), m.index.begin(), sameIndex) && visible(m.value))
      return &m.value;
  return nullptr;
}

Value ElementExpr::evaluate(Value tensor, ArrayRef<Index> index) {
  auto type = cast<RankedTensorType>(tensor.getType());
  Indices normal(index.begin(), index.end());
  bool uniform = true;
  for (auto [axis, i] : llvm::enumerate(normal)) {
    if (type.getDimSize(axis) == 1)
      i = at(0);
    else if (auto constant = i.base ? KernelBuilder::constantOf(i.base) : std::nullopt; constant && !i.vec)
      i.base = constantIndex(*constant);
    uniform &= i.uniform();
  }
  if (uniform && laneCount > 1) {
    int64_t wanted = laneCount;
    Value scalar;
    {
      Lanes one(*this, 1);
      scalar = evaluate(tensor, normal);
      ++counts.uniform;
    }
    return b.splat(scalar, wanted);
  }
  if (Value *known = findMemo(tensor, normal))
    return *known;
  Value value = evaluateNew(tensor, normal);
  memo.push_back({tensor, normal, laneCount, laneMask, value});
  return value;
}

Value ElementExpr::evaluateWide(Value tensor, ArrayRef<Index> index) {
  return widen(evaluate(tensor, index), elementOf(tensor));
}

Value ElementExpr::evaluateNew(Value tensor, ArrayRef<Index> index) {
  if (auto source = bound.find(tensor); source != bound.end()) {
    Source read = source->second; // the source may bind others
    return read(index);
  }
  auto type = cast<RankedTensorType>(tensor.getType());
  if (auto argument = dyn_cast<BlockArgument>(tensor)) {
    unsigned number = argument.getArgNumber();
    if (Panels panels = b.panelsOf(number); panels.unit)
      return loadInPanels(type, b.buffer(number), index, panels);
    return loadElement(type.getElementType(), b.buffer(number), offsetOf(type, index));
  }
  Operation *op = tensor.getDefiningOp();
  if (mlir::isa<dmir::ConstantOp>(op))
    return evaluateConstant(op, index);
  if (op->hasTrait<dmir::Elementwise>())
    return evaluateElementwise(op, index);
  return evaluateMovement(op, index);
}

Indices dmxc::kernels::broadcastIndices(ElementExpr &e, ArrayRef<Index> index, ArrayRef<Dim> own, ArrayRef<Dim> whole) {
  Indices result(index.take_back(own.size()));
  for (auto [i, at] : llvm::enumerate(result))
    at = e.broadcastIndex(at, own[i], whole[whole.size() - own.size() + i]);
  return result;
}

Value ElementExpr::evaluateElementwise(Operation *op, ArrayRef<Index> index) {
  if (auto mask = dyn_cast<dmir::MaskOp>(op))
    return evaluateMask(*this, mask, index);
  SmallVector<Value> operands;
  SmallVector<Dim> whole = dmir::dimsOf(op->getResult(0));
  for (Value operand : op->getOperands())
    operands.push_back(evaluate(operand, broadcastIndices(*this, index, dmir::dimsOf(operand), whole)));
  return emitElementwise(*this, op, operands);
}

/// One element of a constant as an attribute of its carried type.
static TypedAttr carriedAttr(const Tensor &tensor, int64_t i, Type carried) {
  unsigned bits = carried.getIntOrFloatBitWidth();
  uint64_t raw = 0;
  unsigned bytes = (bits + 7) / 8;
  std::memcpy(&raw, tensor.data() + i * bytes, bytes);
  if (bits == 1)
    raw = raw != 0;
  APInt value(bits, raw);
  if (auto floatType = dyn_cast<FloatType>(carried))
    return FloatAttr::get(floatType, APFloat(floatType.getFloatSemantics(), value));
  return IntegerAttr::get(carried, value);
}

/// A read-only global of the kernel's module; its address is taken where every block sees it.
Value ElementExpr::makeTable(StringRef bytes, unsigned alignment) {
  Block *entry = b.entryBlock();
  auto module = entry->getParentOp()->getParentOfType<ModuleOp>();
  std::string name = "table" + std::to_string(llvm::range_size(module.getOps<LLVM::GlobalOp>()));
  auto array = LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(module.getBody());
  auto global = LLVM::GlobalOp::create(b, array, /*isConstant=*/true, LLVM::Linkage::Internal, name,
                                       b.getStringAttr(bytes), alignment);
  b.setInsertionPointToStart(entry);
  return LLVM::AddressOfOp::create(b, global);
}

Value ElementExpr::tableOf(Operation *op, StringRef bytes, unsigned alignment) {
  Value &table = tables[op];
  if (!table)
    table = makeTable(bytes, alignment);
  return table;
}

/// Packed elements as bytes.
static Tensor unpacked(const Tensor &tensor) {
  Tensor bytes(DType::I8, tensor.shape());
  for (int64_t i = 0; i < tensor.numElements(); ++i) {
    uint8_t bits = packedBits(tensor.dtype(), tensor.data(), i);
    bytes.as<int8_t>()[i] =
        isSignedInt(tensor.dtype()) ? signExtended(tensor.dtype(), bits) : static_cast<int8_t>(bits);
  }
  return bytes;
}

Value ElementExpr::evaluateConstant(Operation *op, ArrayRef<Index> index) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  auto logical = dmir::logicalType(type);
  Type element = carried(type.getElementType());
  auto tensor = dmir::constantTensor(op->getResult(0));
  assert(tensor && "checked when the target was asked what it refuses");
  if (isPacked(type.getElementType()))
    tensor = unpacked(*tensor);
  unsigned bytes = dtypeBits(tensor->dtype()) / 8;
  bool splat = true;
  for (int64_t i = 1; i < tensor->numElements(); ++i)
    splat &= !std::memcmp(tensor->data(), tensor->data() + i * bytes, bytes);
  if (splat) {
    Value scalar = arith::ConstantOp::create(b, carriedAttr(*tensor, 0, element));
    return b.splat(scalar, laneCount);
  }
  Value table = tableOf(op, StringRef(reinterpret_cast<const char *>(tensor->data()), tensor->byteSize()), bytes);
  return loadAt(element, table, offsetOf(logical, index));
}
