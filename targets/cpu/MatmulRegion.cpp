//===- MatmulRegion.cpp - regions around dmir.matmul --------------------------===//
//
// Operands are strided views of buffers (or a packed constant), so that transposes and slices cost
// nothing; the epilogue is evaluated on vectors of the product while they are in registers. A product
// whose operands are no views, or of a type without vector arithmetic, is computed element by element.
//
//===----------------------------------------------------------------------===//

#include "MatmulRegion.h"

#include "Gemm.h"
#include "GemmTile.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

static std::optional<StridedView> reshapedView(const StridedView &view, ArrayRef<Dim> from, ArrayRef<Dim> to) {
  StridedView result{view.buffer, view.offset, SmallVector<Dim>(to.size(), 0)};
  if (llvm::is_contained(from, Dim(0)))
    return result;
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    auto [iEnd, jEnd] = equalRuns(from, to, i, j);
    // The run must be contiguous in itself; axes of one element do not matter.
    Dim stride = 0, extent = 1;
    for (size_t k = iEnd; k-- > i;) {
      if (from[k].is(1))
        continue;
      if (extent.is(1))
        stride = view.strides[k];
      else if (!(view.strides[k] == stride * extent))
        return std::nullopt;
      extent *= from[k];
    }
    for (size_t k = jEnd; k-- > j; stride *= to[k])
      result.strides[k] = stride;
    i = iEnd, j = jEnd;
  }
  return result;
}

std::optional<StridedView> dmxc::cpu::stridedView(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (dmir::layoutOf(value.getType()))
      return std::nullopt;
    SmallVector<Dim> dims = dmir::dimsOf(value);
    StridedView view{argument.getArgNumber(), 0, SmallVector<Dim>(dims.size())};
    Dim stride = 1;
    for (size_t axis = view.strides.size(); axis-- > 0; stride *= dims[axis])
      view.strides[axis] = stride;
    return view;
  }
  Operation *op = value.getDefiningOp();
  if (!mlir::isa<dmir::TransposeOp, dmir::SliceOp, dmir::BroadcastOp, dmir::ReshapeOp>(op))
    return std::nullopt;
  std::optional<StridedView> from = stridedView(op->getOperand(0));
  if (!from)
    return std::nullopt;
  if (mlir::isa<dmir::ReshapeOp>(op))
    return reshapedView(*from, dmir::dimsOf(op->getOperand(0)), dmir::dimsOf(value));
  StridedView view{from->buffer, from->offset, {}};
  if (auto transpose = dyn_cast<dmir::TransposeOp>(op)) {
    for (int64_t axis : transpose.getPermutation())
      view.strides.push_back(from->strides[axis]);
  } else if (auto slice = dyn_cast<dmir::SliceOp>(op)) {
    for (auto [stride, start, step] : llvm::zip(from->strides, slice.getStartDims(), slice.getSteps())) {
      view.offset += start * stride;
      view.strides.push_back(stride * step);
    }
  } else {
    SmallVector<Dim> own = dmir::dimsOf(op->getOperand(0)), wide = dmir::dimsOf(value);
    view.strides.assign(wide.size(), 0);
    size_t missing = wide.size() - own.size();
    for (size_t axis = 0; axis < own.size(); ++axis) {
      if (!own[axis].isStatic() && !(own[axis] == wide[axis + missing]))
        return std::nullopt; // its stride depends on whether it is 1
      if (!own[axis].is(1) || wide[axis + missing].is(1))
        view.strides[axis + missing] = from->strides[axis];
    }
  }
  return view;
}

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

bool dmxc::cpu::heavyEpilogue(const RegionBody &body) {
  int64_t weight = 0;
  for (Operation &op : *body.block) {
    if (&op == body.root || !op.hasTrait<dmir::Elementwise>())
      continue;
    bool cheap = mlir::isa<dmir::AddOp, dmir::SubOp, dmir::MulOp, dmir::ReluOp, dmir::MaxOp, dmir::MinOp,
                           dmir::SelectOp, dmir::CompareOp, dmir::NegOp, dmir::AbsOp>(op);
    Type element = getElementTypeOrSelf(op.getResult(0).getType());
    weight += cheap && element.getIntOrFloatBitWidth() != 16 ? 1 : 8;
  }
  return weight > 4;
}

Value dmxc::cpu::fromAccumulator(ElementExpr &e, Value value, Type element) {
  KernelBuilder &b = e.builder();
  if (mlir::isa<FloatType>(element))
    return e.narrow(value, element);
  Type narrow = b.laneType(e.carried(element), e.lanes());
  return narrow == value.getType() ? value : Value(arith::TruncIOp::create(b, narrow, value));
}

void dmxc::cpu::mapRange(KernelBuilder &b, Dim nominal, Dim own) {
  if (nominal == own)
    return;
  auto map = [&](Value item) { return b.floorDiv(b.mulC(item, own), b.idx(Dim::max(nominal, 1))); };
  b.setRange(map(b.begin()), map(b.end()));
}

namespace {

/// Everything about a product that does not depend on the level.
struct Product {
  RegionBody body;
  mutable dmir::MatMulOp op; ///< a handle, whose accessors are not const
  Dim batch = 1, m, n, k;
  SmallVector<Dim> batchDims;
  /// Batch dims are part of m: the right operand has none.
  bool joined = false;
  std::optional<StridedView> lhs, rhs;
  SmallVector<Dim> lhsBatch, rhsBatch; ///< strides of the batch axes, 0 where broadcast
  Dim lhsRow = 0;
  bool unclear = false; ///< whether a batch axis is broadcast is known at run time only
  bool packedRhs = false;
  WeightFormat weights = WeightFormat::Kept; ///< of a packed right operand of f32
  Type element, lhsElement, rhsElement;      ///< of the result and of the operands, which may be bytes summed in i32

  explicit Product(const RegionBody &body);
  bool direct() const { return lhs && rhs && !unclear && element.getIntOrFloatBitWidth() >= 8 && !isF8(); }
  /// Bytes along rows times constant bytes: computed four at a time.
  bool quads() const {
    return packedRhs && element.isInteger(32) && lhsElement.isUnsignedInteger(8) && rhsElement.isSignlessInteger(8) &&
           k.valueOr(0) > 0 && (lhs->strides.back().is(1) || k.is(1));
  }
  bool isF8() const { return mlir::isa<FloatType>(element) && element.getIntOrFloatBitWidth() == 8; }
  GemmSpec spec(MLIRContext *context) const;
  Dim workItems(const GemmTiles &tiles) const;

private:
  SmallVector<Dim> batchStrides(const StridedView &view, Value operand);
  bool joinsRows() const;
};

Product::Product(const RegionBody &body) : body(body), op(cast<dmir::MatMulOp>(body.root)) {
  SmallVector<Dim> result = dmir::dimsOf(op.getResult());
  element = getElementTypeOrSelf(op.getResult().getType());
  lhsElement = getElementTypeOrSelf(op.getLhs().getType());
  rhsElement = getElementTypeOrSelf(op.getRhs().getType());
  size_t rank = result.size();
  m = result[rank - 2];
  n = result[rank - 1];
  k = dmir::dimsOf(op.getLhs()).back();
  batchDims.assign(result.begin(), result.end() - 2);
  batch = dmir::product(batchDims);
  lhs = stridedView(op.getLhs());
  rhs = stridedView(op.getRhs());
  if (!direct())
    return;
  lhsBatch = batchStrides(*lhs, op.getLhs());
  rhsBatch = batchStrides(*rhs, op.getRhs());
  lhsRow = lhs->strides[lhs->strides.size() - 2];
  joined = joinsRows();
  if (joined) {
    // Rows of one element may have any stride.
    if (m.is(1))
      for (size_t axis = batchDims.size(); axis-- > 0;)
        if (!batchDims[axis].is(1)) {
          lhsRow = lhsBatch[axis];
          break;
        }
    m *= batch;
    batch = 1;
  }
}

SmallVector<Dim> Product::batchStrides(const StridedView &view, Value operand) {
  SmallVector<Dim> strides(batchDims.size(), 0), shape = dmir::dimsOf(operand);
  size_t missing = batchDims.size() + 2 - shape.size();
  for (size_t axis = 0; axis + 2 < shape.size(); ++axis) {
    unclear |= !shape[axis].isStatic() && !(shape[axis] == batchDims[axis + missing]);
    if (!shape[axis].is(1))
      strides[axis + missing] = view.strides[axis];
  }
  return strides;
}

/// One right operand for all batch items, and rows of the left one equally far apart through all of them.
bool Product::joinsRows() const {
  if (batch.is(0) || m.is(0) || llvm::any_of(rhsBatch, [](Dim s) { return !s.is(0); }))
    return false;
  Dim stride = lhsRow, extent = m;
  for (size_t axis = batchDims.size(); axis-- > 0;) {
    if (batchDims[axis].is(1))
      continue;
    if (extent.is(1))
      stride = lhsBatch[axis];
    else if (!(lhsBatch[axis] == stride * extent))
      return false;
    extent *= batchDims[axis];
  }
  return true;
}

GemmSpec Product::spec(MLIRContext *context) const {
  GemmSpec spec;
  spec.batch = batch.valueOr(kDynamic);
  spec.m = m.valueOr(kDynamic);
  spec.n = n.valueOr(kDynamic);
  spec.k = k.valueOr(kDynamic);
  bool isInt = mlir::isa<IntegerType>(element);
  auto memory = [&](Type type) { return isInt ? Type(IntegerType::get(context, type.getIntOrFloatBitWidth())) : type; };
  spec.aType = memory(lhsElement), spec.bType = memory(rhsElement);
  spec.aUnsigned = isUnsignedElement(lhsElement), spec.bUnsigned = isUnsignedElement(rhsElement);
  if (isInt)
    spec.accType = IntegerType::get(context, element.getIntOrFloatBitWidth() == 64 ? 64 : 32);
  else
    spec.accType = element.isF64() ? Type(Float64Type::get(context)) : Type(Float32Type::get(context));
  spec.packedB = packedRhs;
  if (weights != WeightFormat::Kept)
    spec.bType = weights == WeightFormat::BF16 ? Type(BFloat16Type::get(context)) : IntegerType::get(context, 8);
  if (quads()) {
    spec.quads = true;
    spec.bType = spec.accType;
    spec.lastQuad = (spec.k - 1) % 4 + 1;
    spec.k = quadsOf(spec.k);
  }
  spec.heavyEpilogue = heavyEpilogue(body);
  return spec;
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

class MatmulEmitter {
public:
  MatmulEmitter(KernelBuilder &b, const Product &product)
      : b(b), product(product), e(b, product.body.block), writer(e, product.body) {
    rank = product.batchDims.size() + 2;
    Value result = product.op.getResult();
    bool plain = writer.acceptsJoined();
    for (unsigned i = 0; i < product.body.results.size(); ++i)
      plain &= !dmir::layoutOf(product.body.resultType(i));
    if (plain)
      rowAxis = joinedAxis(writer.values(), result, 0, rank - 2);
  }

  void direct(Dim nominalItems);
  void generic(const WorkPlan &work);

private:
  /// Index of the row: batch axes and m.
  Indices rowIndex(Value batch, Value m);
  void write(Value batch, Value m, Index n, Value value);
  Value batchOffset(Value batch, ArrayRef<Dim> strides, Dim base);

  KernelBuilder &b;
  const Product &product;
  ElementExpr e;
  ResultWriter writer;
  size_t rank;
  std::optional<unsigned> rowAxis; ///< carries the row through all batch items, where the epilogue allows that
};

Indices MatmulEmitter::rowIndex(Value batch, Value m) {
  Indices index(rank - 1, e.at(0));
  if (product.joined && rowAxis) {
    index[*rowAxis] = e.at(m);
    return index;
  }
  Index rest = e.at(batch);
  if (product.joined) {
    Dim rows = dmir::dimOf(product.op.getResult(), rank - 2);
    std::tie(rest, index.back()) = e.divRem(e.at(m), rows.is(0) ? Dim(1) : rows);
  } else {
    index.back() = e.at(m);
  }
  for (size_t axis = product.batchDims.size(); axis-- > 0;) {
    if (axis == 0)
      index[axis] = rest;
    else
      std::tie(rest, index[axis]) = e.divRem(rest, product.batchDims[axis].is(0) ? Dim(1) : product.batchDims[axis]);
  }
  return index;
}

void MatmulEmitter::write(Value batch, Value m, Index n, Value value) {
  e.forget();
  Value narrow = fromAccumulator(e, value, product.element);
  e.bind(product.op.getResult(), [narrow, this](ArrayRef<Index>) -> Value {
    if (e.lanes() == 1 && mlir::isa<VectorType>(narrow.getType()))
      return vector::ExtractOp::create(b, narrow, 0);
    return narrow;
  });
  Indices index = rowIndex(batch, m);
  index.push_back(n);
  writer.write(index);
}

Value MatmulEmitter::batchOffset(Value batch, ArrayRef<Dim> strides, Dim base) {
  Value offset = b.idx(base), rest = batch;
  for (size_t axis = product.batchDims.size(); axis-- > 0;) {
    Value dim = b.idx(product.batchDims[axis].is(0) ? Dim(1) : product.batchDims[axis]);
    Value at = axis ? b.rem(rest, dim) : rest;
    rest = axis ? b.floorDiv(rest, dim) : rest;
    offset = b.add(offset, b.mulC(at, strides[axis]));
  }
  return offset;
}

Dim Product::workItems(const GemmTiles &tiles) const {
  GemmSpec s = spec(op.getContext());
  if (s.batch >= 0 && s.m >= 0 && s.n >= 0)
    return std::max<int64_t>(1, gemmWorkItems(s, tiles));
  // Static rows are in balanced tiles, dynamic ones in whole blocks.
  Dim blocks =
      s.m >= 0 ? Dim::ceilDiv(Dim::ceilDiv(m, tiles.rows), tiles.tilesPerBlock) : Dim::ceilDiv(m, tiles.rowsPerBlock());
  return batch * blocks * Dim::ceilDiv(n, tiles.columns());
}

void MatmulEmitter::direct(Dim nominalItems) {
  GemmSpec spec = product.spec(b.getContext());
  GemmTiles tiles = chooseGemmTiles(spec, b.isa());
  mapRange(b, nominalItems, product.workItems(tiles));
  auto matrix = [&](const StridedView &view, ArrayRef<Dim> batch, Dim rowStride) {
    GemmMatrix result;
    result.base = b.buffer(view.buffer);
    result.rowStride = b.idx(rowStride);
    result.colStride = b.idx(view.strides.back());
    result.offset = [this, batch, offset = view.offset](Value item) {
      return product.joined ? b.idx(offset) : batchOffset(item, batch, offset);
    };
    return result;
  };
  GemmMatrix lhs = matrix(*product.lhs, product.lhsBatch, product.lhsRow);
  GemmMatrix rhs = matrix(*product.rhs, product.rhsBatch, product.rhs->strides[product.rhs->strides.size() - 2]);
  if (product.packedRhs)
    rhs.offset = nullptr;
  Value scales;
  if (product.weights == WeightFormat::S8)
    scales = b.elementPtr(b.getI8Type(), rhs.base, b.idx(scalesOffset(spec.k, spec.n)));
  GemmCallbacks callbacks;
  callbacks.store = [&](Value batch, Value m, Value n, Value value, Value mask) {
    auto vector = dyn_cast<VectorType>(value.getType());
    int64_t lanes = vector ? vector.getNumElements() : 1;
    if (scales) // there are some for whole panels, so no lane is beyond them
      value = arith::MulFOp::create(b, value, b.load(spec.accType, scales, n, lanes));
    ElementExpr::Lanes scope(e, lanes, mask);
    write(batch, m, e.at(n, lanes, lanes > 1), value);
  };
  GemmExtents extents{b.idx(product.batch), b.idx(product.m), b.idx(product.n), b.idx(product.k)};
  emitGemm(b, spec, tiles, lhs, rhs, callbacks, extents);
}

void MatmulEmitter::generic(const WorkPlan &work) {
  Type element = product.element, compute = e.computed(element);
  bool isFloat = mlir::isa<FloatType>(element);
  emitItems(b, work, [&](ArrayRef<Value> outer, Value lo, Value hi) {
    ElementExpr::Lanes one(e, 1);
    b.forLoop(lo, hi, b.idx(1), [&](Value n) {
      auto operand = [&](Value tensor, Value row, Value column) {
        Indices index;
        SmallVector<Dim> own = dmir::dimsOf(tensor);
        size_t missing = product.batchDims.size() + 2 - own.size();
        for (size_t axis = 0; axis + 2 < own.size(); ++axis)
          index.push_back(e.broadcastIndex(e.at(outer[axis + missing]), own[axis], product.batchDims[axis + missing]));
        index.push_back(e.at(row));
        index.push_back(e.at(column));
        Type type = getElementTypeOrSelf(tensor.getType());
        return convertElements(b, {e.computed(type), compute, isUnsignedElement(type)}, e.evaluateWide(tensor, index));
      };
      Value sum =
          b.forLoop(b.idx(0), b.idx(product.k), b.idx(1), b.constantInt(compute, 0), [&](Value k, ValueRange c) {
            Value x = operand(product.op.getLhs(), outer.back(), k), y = operand(product.op.getRhs(), k, n);
            Value next =
                isFloat ? b.fma(x, y, c[0]) : Value(arith::AddIOp::create(b, c[0], arith::MulIOp::create(b, x, y)));
            return SmallVector<Value>{next};
          })[0];
      Value narrow = fromAccumulator(e, sum, element);
      e.bind(product.op.getResult(), [narrow](ArrayRef<Index>) { return narrow; });
      Indices index;
      for (Value i : outer)
        index.push_back(e.at(i));
      index.push_back(e.at(n));
      writer.write(index);
    });
  });
}

/// Packing needs a matrix of known size that is not empty.
bool isConstantMatrix(const Product &product) {
  const StridedView &view = *product.rhs;
  return product.n.valueOr(0) > 0 && product.k.valueOr(0) > 0 && view.offset.isStatic() &&
         llvm::all_of(view.strides, [](Dim stride) { return stride.isStatic(); });
}

DictionaryAttr packedForm(const Product &product, MLIRContext *context) {
  Builder b(context);
  NamedAttrList form;
  auto number = [&](StringRef name, int64_t value) { form.set(name, b.getI64IntegerAttr(value)); };
  bool quads = product.quads();
  form.set("form", b.getStringAttr(quads ? "quads16" : panelForm(product.weights)));
  const StridedView &view = *product.rhs;
  int64_t k = *product.k.known(), n = *product.n.known();
  number("k", k);
  number("n", n);
  number("offset", *view.offset.known());
  number("stride_k", *view.strides[view.strides.size() - 2].known());
  number("stride_n", *view.strides.back().known());
  int64_t bytes = product.rhsElement.getIntOrFloatBitWidth() / 8;
  bool rounded = product.weights != WeightFormat::Kept;
  number("size", rounded ? roundedPanelBytes(product.weights, k, n)
                         : panel16Bytes(quads ? quadsOf(k) : k, n, quads ? 4 : bytes));
  return form.getDictionary(context);
}

/// Whether a product waits for its weights: its rows are few, at least in some runs, and the weights outgrow a core's
/// nearest cache.
bool waitsForWeights(const Product &product) {
  constexpr int64_t fewRows = 16, manyBytes = 64 << 10;
  Block *block = product.body.block;
  bool floats = product.element.isF32() && product.lhsElement.isF32() && product.rhsElement.isF32();
  return floats && smallest(block, product.m) <= fewRows &&
         smallest(block, product.batch) * smallest(block, product.m) <= fewRows &&
         *product.k.known() * *product.n.known() >= manyBytes / 4;
}

} // namespace

DictionaryAttr dmxc::cpu::packedRhsForm(dmir::MatMulOp op, DictionaryAttr strategy) {
  std::optional<StridedView> view = stridedView(op.getRhs());
  auto packed = strategy && view ? strategy.getAs<DictionaryAttr>(strategy::kPacked) : DictionaryAttr();
  return packed ? packed.getAs<DictionaryAttr>(std::to_string(view->buffer)) : DictionaryAttr();
}

KernelPlan dmxc::cpu::planMatmul(const RegionBody &body, DictionaryAttr strategy, const Choice &choice) {
  auto product = std::make_shared<Product>(body);
  KernelPlan plan;
  MLIRContext *context = body.root->getContext();
  if (!product->direct()) {
    WorkPlan work = planWork(body.block, dmir::dimsOf(product->op.getResult()), nominal(body.block, product->k) + 1.0);
    plan.algorithm = "matmul-generic";
    plan.work = work.items;
    plan.grain = work.grain;
    plan.emit = [product, work](KernelBuilder &b) { MatmulEmitter(b, *product).generic(work); };
    return plan;
  }
  // A constant right operand of one matrix is packed, if nothing else in the region reads it.
  auto chosen = packedRhsForm(product->op, strategy);
  bool oneMatrix = llvm::all_of(product->rhsBatch, [](Dim s) { return s.is(0); });
  bool alone =
      body.block->getArgument(product->rhs->buffer).hasOneUse() && product->lhs->buffer != product->rhs->buffer;
  product->packedRhs = strategy
                           ? bool(chosen)
                           : oneMatrix && alone && isConstantMatrix(*product) && choice.constant(product->rhs->buffer);
  if (product->packedRhs) {
    if (chosen)
      product->weights = formatOfForm(formName(chosen)).value_or(WeightFormat::Kept);
    else if (waitsForWeights(*product))
      product->weights = choice.weights;
    DictionaryAttr form = packedForm(*product, context);
    plan.packed.set(std::to_string(product->rhs->buffer), form);
    if (product->weights != WeightFormat::Kept)
      plan.savedBytes = *product->k.known() * *product->n.known() * 4 - form.getAs<IntegerAttr>("size").getInt();
  }
  GemmSpec spec = product->spec(context);
  GemmTiles nominal = chooseGemmTiles(spec, nominalIsa());
  plan.algorithm = product->quads() ? "matmul-quads" : product->packedRhs ? "matmul-packed" : "matmul";
  if (product->weights != WeightFormat::Kept)
    plan.algorithm += "-" + formatName(product->weights).str();
  plan.work = product->workItems(nominal);
  plan.grain = gemmGrain(spec, nominal);
  plan.scratch =
      IsaLevel::mostBytes([&](const IsaLevel &level) { return gemmScratchBytes(spec, chooseGemmTiles(spec, level)); });
  Dim items = plan.work;
  plan.emit = [product, items](KernelBuilder &b) { MatmulEmitter(b, *product).direct(items); };
  return plan;
}
