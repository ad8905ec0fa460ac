//===- Loops.cpp - loop nests of fused kernels --------------------------------===//

#include "Loops.h"

#include "Attention.h"

#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Support/Result.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <numeric>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

//===----------------------------------------------------------------------===//
// The body
//===----------------------------------------------------------------------===//

static bool isFused(Operation &op) {
  return op.hasTrait<dmir::Elementwise>() || op.hasTrait<dmir::DataMovement>() ||
         mlir::isa<dmir::ConstantOp, dmir::IotaOp, dmir::DimTensorOp>(op);
}

Result<RegionBody> RegionBody::of(Block *block) {
  RegionBody body;
  body.block = block;
  llvm::SmallPtrSet<Operation *, 8> inner; // computed by the root's kernel
  for (Operation &op : *block)
    for (Operation *other : innerOpsOf(&op))
      inner.insert(other);
  for (Operation &op : *block) {
    if (auto yield = dyn_cast<dmir::YieldOp>(op)) {
      body.results.assign(yield->operand_begin(), yield->operand_end());
      continue;
    }
    if (isFused(op) || inner.contains(&op))
      continue;
    if (body.root)
      return Error{ErrorKind::Internal, "a region has two roots: '" + dmir::nodeName(body.root) + "' (" +
                                            body.root->getName().getStringRef().str() + ") and '" +
                                            dmir::nodeName(&op) + "' (" + op.getName().getStringRef().str() + ")"};
    body.root = &op;
  }
  if (body.results.empty() && !isa_and_nonnull<dmir::DefineDimsOp>(body.root))
    return Error{ErrorKind::Internal, "a region without results"};
  return body;
}

RankedTensorType RegionBody::resultType(unsigned i) const { return cast<RankedTensorType>(results[i].getType()); }

//===----------------------------------------------------------------------===//
// Nominal sizes
//===----------------------------------------------------------------------===//

/// Of a symbol without bounds: long enough for cutting work to pay, short enough for a row to fit the cache.
static constexpr int64_t kNominalSize = 128;

static int64_t nominalOf(Operation *owner, StringRef symbol) {
  auto strategy = owner->getAttrOfType<DictionaryAttr>("strategy");
  auto sizes = strategy ? strategy.getAs<DictionaryAttr>("nominal") : DictionaryAttr();
  auto size = sizes ? sizes.getAs<IntegerAttr>(symbol) : IntegerAttr();
  DimBounds bounds = dmir::symbolBounds(owner, symbol);
  return std::clamp(size ? size.getInt() : kNominalSize, std::max<int64_t>(bounds.min, 1),
                    std::max<int64_t>(bounds.max, 1));
}

/// A size where `valueOf` gives its symbols' values.
static int64_t valueAt(Block *block, Dim size, llvm::function_ref<int64_t(Operation *, StringRef)> valueOf) {
  if (std::optional<int64_t> number = size.known())
    return *number;
  auto value = size.evaluate([&](std::string_view symbol) {
    return std::optional<int64_t>(valueOf(block->getParentOp(), StringRef(symbol.data(), symbol.size())));
  });
  return std::max<int64_t>(value.value_or(kNominalSize), 1);
}

int64_t dmxc::cpu::nominal(Block *block, Dim size) { return valueAt(block, size, nominalOf); }

int64_t dmxc::cpu::smallest(Block *block, Dim size) {
  return valueAt(block, size, [](Operation *owner, StringRef symbol) {
    return std::max<int64_t>(dmir::symbolBounds(owner, symbol).min, 1);
  });
}

DictionaryAttr dmxc::cpu::nominalSizes(Block *block) {
  Builder b(block->getParentOp()->getContext());
  NamedAttrList sizes;
  for (StringAttr symbol : dmir::symbolsOf(block))
    sizes.set(symbol, b.getI64IntegerAttr(nominalOf(block->getParentOp(), symbol)));
  return sizes.getDictionary(b.getContext());
}

//===----------------------------------------------------------------------===//
// Joining axes
//===----------------------------------------------------------------------===//

namespace {

RankedTensorType typeOf(Value v) { return cast<RankedTensorType>(v.getType()); }
ArrayRef<int64_t> shapeOf(Value v) { return typeOf(v).getShape(); }

/// Decides whether axes `axis` and `axis + 1` of a value may be iterated as one.
class Joiner {
public:
  explicit Joiner(ArrayRef<Value> leaves) : leaves(leaves) {}

  bool joins(Value value, unsigned axis) {
    ArrayRef<int64_t> shape = shapeOf(value);
    if (shape[axis] == 1 && shape[axis + 1] == 1)
      return true;
    if (llvm::is_contained(leaves, value))
      return true;
    if (mlir::isa<BlockArgument>(value) || mlir::isa<dmir::ConstantOp>(value.getDefiningOp()))
      return joinsInMemory(typeOf(value), axis);
    if (!seen.insert({value, axis}).second)
      return true; // decided by the first visit
    Operation *op = value.getDefiningOp();
    if (op->hasTrait<dmir::Elementwise>() || mlir::isa<dmir::BroadcastOp, dmir::RelayoutOp>(op))
      return llvm::all_of(op->getOperands(),
                          [&](Value operand) { return joinsAligned(operand, dmir::dimsOf(value), axis); });
    return llvm::TypeSwitch<Operation *, bool>(op)
        .Case([&](dmir::TransposeOp o) {
          ArrayRef<int64_t> p = o.getPermutation();
          return p[axis + 1] == p[axis] + 1 && joins(o.getInput(), p[axis]);
        })
        .Case([&](dmir::SliceOp o) {
          return o.getSteps()[axis] == 1 && o.getSteps()[axis + 1] == 1 && whole(o, axis + 1) &&
                 joins(o.getInput(), axis);
        })
        .Case([&](dmir::ConcatOp o) {
          return !touches(o.getAxis(), axis) && llvm::all_of(o.getInputs(), [&](Value v) { return joins(v, axis); });
        })
        .Case([&](dmir::PadOp o) {
          auto plain = [&](unsigned a) { return !o.getLow()[a] && !o.getHigh()[a] && !o.getInterior()[a]; };
          return plain(axis) && plain(axis + 1) && joins(o.getInput(), axis);
        })
        .Case([&](dmir::GatherOp o) { return joinsGather(o, axis); })
        .Default([](Operation *) { return false; });
  }

private:
  static bool touches(int64_t at, unsigned axis) { return at == axis || at == axis + 1; }
  static bool whole(dmir::SliceOp o, unsigned axis) {
    return o.getStarts()[axis] == 0 && o.getSizeDims()[axis] == dmir::dimOf(o.getInput(), axis);
  }
  static bool joinsInMemory(RankedTensorType type, unsigned axis) {
    auto blocked = dyn_cast_or_null<dmir::BlockedAttr>(dmir::layoutOf(type));
    return !blocked || !touches(blocked.getAxis(), axis);
  }
  /// An operand broadcast to `shape`: it has both axes whole, or neither.
  bool joinsAligned(Value operand, ArrayRef<Dim> shape, unsigned axis) {
    SmallVector<Dim> own = dmir::dimsOf(operand);
    int64_t missing = shape.size() - own.size(), at = static_cast<int64_t>(axis) - missing;
    Dim outer = at < 0 ? Dim(1) : own[at], inner = at + 1 < 0 ? Dim(1) : own[at + 1];
    if (outer.is(1) && inner.is(1))
      return true;
    return at >= 0 && outer == shape[axis] && inner == shape[axis + 1] && joins(operand, at);
  }
  bool joinsGather(dmir::GatherOp o, unsigned axis) {
    unsigned at = o.getAxis(), count = shapeOf(o.getIndices()).size();
    if (axis + 1 < at)
      return joins(o.getData(), axis);
    if (axis >= at + count)
      return joins(o.getData(), axis - count + 1);
    return axis >= at && axis + 1 < at + count && joins(o.getIndices(), axis - at);
  }

  ArrayRef<Value> leaves;
  llvm::DenseSet<std::pair<Value, unsigned>> seen;
};

} // namespace

bool dmxc::cpu::axesJoin(Value value, unsigned axis, ArrayRef<Value> leaves) {
  return Joiner(leaves).joins(value, axis);
}

SmallVector<AxisGroup> dmxc::cpu::groupAxes(ArrayRef<Value> values, ArrayRef<Value> leaves,
                                            llvm::function_ref<bool(unsigned)> mayJoin) {
  SmallVector<AxisGroup> groups;
  SmallVector<Dim> shape = dmir::dimsOf(values.front());
  for (unsigned axis = 0; axis < shape.size(); ++axis) {
    auto joins = [&](Value value) { return axesJoin(value, axis - 1, leaves); };
    // Joining is decided for neighbours. Across an axis of size 1 it says nothing: an operand may have both neighbours
    // of the axis joined to it and yet be broadcast along one of them.
    bool adjacent = axis && (groups.back().size.is(1) || shape[axis].is(1) || groups.back().at + 1 == axis);
    if (adjacent && (!mayJoin || mayJoin(axis - 1)) && llvm::all_of(values, joins)) {
      groups.back().last = axis;
      groups.back().size *= shape[axis];
      // Indices of axes of size 1 count for nothing, so the position must not be put there.
      if (!shape[axis].is(1))
        groups.back().at = axis;
    } else {
      groups.push_back({axis, axis, shape[axis], axis});
    }
  }
  return groups;
}

std::optional<unsigned> dmxc::cpu::joinedAxis(ArrayRef<Value> values, ArrayRef<Value> leaves, unsigned first,
                                              unsigned last) {
  auto inside = [&](unsigned axis) { return axis >= first && axis < last; };
  for (AxisGroup &group : groupAxes(values, leaves, inside))
    if (group.first == first && group.last == last)
      return group.at;
  return std::nullopt;
}

Indices dmxc::cpu::spread(ElementExpr &e, ArrayRef<AxisGroup> groups, ArrayRef<Index> positions, unsigned rank) {
  Indices index(rank, e.at(0));
  for (auto [group, position] : llvm::zip(groups, positions))
    if (rank) // a scalar's only group has no axis
      index[group.at] = position;
  return index;
}

//===----------------------------------------------------------------------===//
// Work items
//===----------------------------------------------------------------------===//

// Time below which a nest is not cut, that an item should take at least, and at most before the
// innermost loop is cut too. A wake-up of a thread costs microseconds.
static constexpr double kSmallNs = 4000, kItemNs = 1000, kLargeNs = 64000, kGrainNs = 4000;
static constexpr int64_t kManyItems = 64;

WorkPlan dmxc::cpu::planWork(Block *block, ArrayRef<Dim> dims, double cost) {
  WorkPlan plan;
  plan.dims.assign(dims.begin(), dims.end());
  SmallVector<int64_t> sizes;
  double total = cost;
  for (Dim dim : dims) {
    sizes.push_back(nominal(block, dim));
    total *= sizes.back();
  }
  if (total <= kSmallNs)
    return plan;
  double inner = total, items = 1;
  while (plan.split + 1 < dims.size() && (items < kManyItems || inner > kLargeNs) &&
         inner / sizes[plan.split] >= kItemNs) {
    items *= dims[plan.split].known().value_or(1); // an open size may be one, whatever is nominal
    plan.items *= dims[plan.split];
    inner /= sizes[plan.split++];
  }
  // Outer loops are used up and a row is still long, or there are few rows: cut rows into runs.
  if (plan.split + 1 == dims.size() && items < kManyItems && inner > 2 * kItemNs) {
    bool open = !dims.back().known();
    int64_t runs = open ? inner / kGrainNs : std::min<int64_t>(std::ceil(kManyItems / items), inner / kItemNs);
    int64_t chunk = llvm::alignTo(llvm::divideCeil(sizes.back(), std::max<int64_t>(runs, 1)), 64);
    if (chunk < sizes.back()) {
      plan.chunk = chunk;
      plan.items *= Dim::ceilDiv(dims.back(), chunk);
      double count = llvm::divideCeil(sizes.back(), chunk);
      items *= count;
      inner /= count;
    }
  }
  plan.grain = std::clamp<int64_t>(kGrainNs / std::max(inner, 1.0), 1, std::max<int64_t>(items, 1));
  return plan;
}

void dmxc::cpu::emitItems(KernelBuilder &b, const WorkPlan &plan,
                          llvm::function_ref<void(ArrayRef<Value>, Value, Value)> body) {
  size_t loops = plan.dims.size() - 1;
  SmallVector<Value> outer(loops);
  auto inside = [&](auto &&self, size_t axis, Value lo, Value hi) -> void {
    if (axis == loops)
      return body(outer, lo, hi);
    b.forLoop(b.idx(0), b.idx(plan.dims[axis]), b.idx(1), [&](Value i) {
      outer[axis] = i;
      self(self, axis + 1, lo, hi);
    });
  };
  auto item = [&](Value work) {
    Value lo = b.idx(0), hi = b.idx(plan.dims.back());
    if (plan.chunk) {
      Value runs = b.idx(Dim::ceilDiv(plan.dims.back(), plan.chunk));
      lo = b.mulC(b.rem(work, runs), plan.chunk);
      hi = b.minS(b.addC(lo, plan.chunk), hi);
      work = b.floorDiv(work, runs);
    }
    for (size_t axis = plan.split; axis-- > 0;) {
      outer[axis] = axis ? b.rem(work, b.idx(plan.dims[axis])) : work;
      if (axis)
        work = b.floorDiv(work, b.idx(plan.dims[axis]));
    }
    inside(inside, plan.split, lo, hi);
  };
  if (plan.items.is(1))
    return b.ifThen(b.cmp(arith::CmpIPredicate::slt, b.begin(), b.end()), [&] { item(b.idx(0)); });
  b.forLoop(b.begin(), b.end(), b.idx(1), [&](Value work) { item(work); });
}

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

bool dmxc::cpu::hasMasks(const IsaLevel &isa, unsigned bits) {
  return isa.vectorBytes == 64 || (isa.vectorBytes == 32 && bits >= 32);
}

void dmxc::cpu::laneLoop(ElementExpr &e, Value lo, Value hi, int64_t lanes, unsigned bits, int64_t multiple,
                         llvm::function_ref<void(Index)> body) {
  KernelBuilder &b = e.builder();
  auto scalars = [&](Value from) {
    ElementExpr::Lanes one(e, 1);
    b.forLoop(from, hi, b.idx(1), [&](Value i) { body(e.at(i)); });
  };
  if (lanes == 1)
    return scalars(lo);
  Value count = b.sub(hi, lo);
  Value full = b.add(lo, b.mulC(b.floorDiv(count, b.idx(lanes)), lanes));
  {
    ElementExpr::Lanes all(e, lanes);
    b.forLoop(lo, full, b.idx(lanes), [&](Value i) { body(e.at(i, std::gcd(multiple, lanes), 1)); });
  }
  if (!hasMasks(b.isa(), bits))
    return scalars(full);
  b.ifThen(b.cmp(arith::CmpIPredicate::slt, full, hi), [&] {
    ElementExpr::Lanes some(e, lanes, b.headMask(lanes, b.sub(hi, full)));
    body(e.at(full, std::gcd(multiple, lanes), 1));
  });
}

Value dmxc::cpu::combineLanes(KernelBuilder &b, Value vector, llvm::function_ref<Value(Value, Value)> combine) {
  auto type = dyn_cast<VectorType>(vector.getType());
  if (!type)
    return vector;
  int64_t half = type.getNumElements() / 2;
  if (half == 1)
    return combine(vector::ExtractOp::create(b, vector, 0), vector::ExtractOp::create(b, vector, 1));
  Value low = b.narrowed(vector, half);
  Value high = vector::ExtractStridedSliceOp::create(b, vector, ArrayRef<int64_t>{half}, ArrayRef<int64_t>{half},
                                                     ArrayRef<int64_t>{1});
  return combineLanes(b, combine(low, high), combine);
}

/// Calls `visit` once for every value that `values` are computed from in the body, themselves included.
static void forEachValue(ArrayRef<Value> values, llvm::function_ref<void(Value)> visit) {
  SmallVector<Value> work(values.begin(), values.end());
  llvm::DenseSet<Value> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    visit(value);
    if (Operation *op = value.getDefiningOp())
      work.append(op->operand_begin(), op->operand_end());
  }
}

int64_t dmxc::cpu::chooseLanes(ArrayRef<Value> values, const IsaLevel &isa, unsigned *narrowest) {
  unsigned widest = 8, memory = 64;
  bool has32 = false, packed = false;
  forEachValue(values, [&](Value value) {
    Type element = typeOf(value).getElementType();
    unsigned bits = element.getIntOrFloatBitWidth();
    memory = std::min(memory, std::max(bits, 8u));
    packed |= isPacked(element);
    if (dmir::elementsOf(value.getType()).is(1))
      return;
    if (mlir::isa<FloatType>(element))
      bits = std::max(bits, 32u);
    has32 |= bits == 32;
    widest = std::max(widest, bits);
  });
  if (narrowest)
    *narrowest = memory;
  // Of one element there is one lane: its type did not count, and a vector of another width would outgrow its scratch.
  bool single = llvm::all_of(values, [](Value value) { return dmir::elementsOf(value.getType()).is(1); });
  return packed || single ? 1 : isa.lanes(widest == 64 && has32 ? 32 : widest);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

ResultWriter::ResultWriter(ElementExpr &e, const RegionBody &body) : e(e), body(body) {
  Value rootResult = body.root ? body.root->getResult(0) : Value();
  for (Value result : body.results) {
    Value value = result;
    if (rootResult)
      while (value != rootResult &&
             mlir::isa<dmir::ReshapeOp, dmir::TransposeOp, dmir::RelayoutOp>(value.getDefiningOp())) {
        moves |= !mlir::isa<dmir::RelayoutOp>(value.getDefiningOp());
        value = value.getDefiningOp()->getOperand(0);
      }
    computed.push_back(value);
  }
}

/// Index in `result` of the element that has `index` in `from`, of which it is a chain of moves.
static Indices pushIndex(ElementExpr &e, Value result, Value from, ArrayRef<Index> index) {
  if (result == from)
    return Indices(index.begin(), index.end());
  Operation *op = result.getDefiningOp();
  Indices before = pushIndex(e, op->getOperand(0), from, index);
  if (auto transpose = dyn_cast<dmir::TransposeOp>(op)) {
    Indices after;
    for (int64_t axis : transpose.getPermutation())
      after.push_back(before[axis]);
    return after;
  }
  if (mlir::isa<dmir::ReshapeOp>(op))
    return reshapeIndex(e, dmir::dimsOf(op->getOperand(0)), dmir::dimsOf(result), before);
  return before;
}

void ResultWriter::write(ArrayRef<Index> index) {
  KernelBuilder &b = e.builder();
  unsigned first = body.block->getNumArguments();
  // All values before the first store, which may overwrite an operand.
  SmallVector<Value> values;
  for (Value value : computed)
    values.push_back(e.evaluate(value, index));
  for (auto [i, value] : llvm::enumerate(values))
    e.store(value, b.buffer(first + i), body.resultType(i), pushIndex(e, body.results[i], computed[i], index));
  e.forget();
}

//===----------------------------------------------------------------------===//
// Cost by trial
//===----------------------------------------------------------------------===//

/// Rough reciprocal throughput of one op in cycles.
static double opCost(Operation *op, const IsaLevel &isa) {
  if (mlir::isa<arith::ConstantOp, LLVM::GEPOp>(op) || op->getNumResults() + op->getNumOperands() == 0)
    return 0;
  Type type = op->getNumResults() ? op->getResult(0).getType() : op->getOperand(0).getType();
  auto vector = dyn_cast<VectorType>(type);
  Type element = getElementTypeOrSelf(type);
  double bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 64;
  double lanes = vector ? vector.getNumElements() : 1;
  if (auto from = dyn_cast<vector::FromElementsOp>(op))
    return lanes;
  if (mlir::isa<arith::DivUIOp, arith::RemUIOp, arith::DivSIOp, arith::RemSIOp>(op))
    return vector ? 8 * lanes : 4;
  if (mlir::isa<arith::MulIOp>(op) && bits == 64)
    return vector && isa.vectorBytes < 64 ? 2 * lanes : lanes * bits / 512 + 1;
  return vector ? std::max(1.0, lanes * bits / (8 * isa.vectorBytes)) : 1;
}

double dmxc::cpu::dryRunCost(Block *block, const IsaLevel &isa, int64_t lanes,
                             llvm::function_ref<void(ElementExpr &, llvm::function_ref<Value()>)> emit) {
  MLIRContext *context = block->getParentOp()->getContext();
  auto loc = UnknownLoc::get(context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  unsigned results = block->getTerminator()->getNumOperands();
  dmir::SymbolSet symbols = dmir::symbolsOf(block);
  KernelBuilder b(*module, loc, "trial", block->getNumArguments() + results, symbols.size(), isa);
  b.setSymbols(std::move(symbols));
  ElementExpr e(b, block);
  ElementExpr::Lanes scope(e, lanes);
  int64_t slot = 0;
  emit(e, [&] { return b.load(b.getI64Type(), b.results(), b.idx(slot++)); });
  double cost = 0;
  module->walk([&](Operation *op) { cost += opCost(op, isa); });
  return cost / lanes;
}

const IsaLevel &dmxc::cpu::nominalIsa() {
  static const IsaLevel level = *IsaLevel::byName("x86-64-v3");
  return level;
}
