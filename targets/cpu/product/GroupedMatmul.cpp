//===- GroupedMatmul.cpp - regions around dmir.grouped_matmul -----------------===//
//
// Rows that follow one another share a matrix. Each work item multiplies the rows of one group by some columns of its
// matrix, through the same register tiles as other products; which rows these are is read when the kernel runs.
// Constant matrices are packed one after the other, those of few bits as they are.
//
//===----------------------------------------------------------------------===//

#include "BlockWeights.h"
#include "Gemm.h"
#include "GemmDecisions.h"
#include "MatmulRegion.h"

#include "targets/common/element/StridedView.h"

#include "mlir/IR/TypeUtilities.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

namespace {

/// Everything about a product that does not depend on the level.
struct GroupedProduct {
  mutable dmir::GroupedMatMulOp op; ///< a handle, whose accessors are not const
  Dim groups, m, n, k;
  std::optional<StridedView> lhs, rhs;
  std::optional<BlockWeights> blocks; ///< what the matrices are made of, where they are no view
  Type element;
  bool packedRhs = false, heavyEpilogue;

  GroupedProduct(dmir::GroupedMatMulOp op, bool heavyEpilogue) : op(op), heavyEpilogue(heavyEpilogue) {
    SmallVector<Dim> left = dmir::dimsOf(op.getLhs()), right = dmir::dimsOf(op.getRhs());
    groups = right[0], m = left[0], n = right[2];
    k = right[1].isStatic() ? right[1] : left[1];
    lhs = stridedView(op.getLhs());
    rhs = stridedView(op.getRhs());
    element = getElementTypeOrSelf(op.getResult().getType());
    if (!rhs)
      blocks = matchBlockWeights(op.getRhs());
    if (blocks && (!blocks->grouped() || !blocks->findBuffers()))
      blocks.reset();
  }
  bool direct() const { return lhs && (rhs || blocks) && element.getIntOrFloatBitWidth() > 8; }
  /// Packing needs matrices of known sizes that are not empty.
  bool isConstant() const {
    return groups.valueOr(0) > 0 && n.valueOr(0) > 0 && k.valueOr(0) > 0 && rhs->offset.isStatic() &&
           llvm::all_of(rhs->strides, [](Dim stride) { return stride.isStatic(); });
  }
  int64_t panelBytes() const { return panel16Bytes(*k.known(), *n.known(), element.getIntOrFloatBitWidth() / 8); }
  /// Elements of a packed matrix: of blocks, words.
  int64_t packedElements() const {
    return blocks ? blocks16Bytes(blocks->format, blocks->k, blocks->n) / 4
                  : panelBytes() * 8 / element.getIntOrFloatBitWidth();
  }
  DictionaryAttr form() const;
  GemmSpec spec() const;
  /// The operands in memory. The product outlives them.
  GemmMatrix left(CpuBuilder &b) const {
    GemmMatrix result = matrix(b, *lhs);
    result.offset = [this, &b](Value) { return b.idx(lhs->offset); };
    return result;
  }
  GemmMatrix right(CpuBuilder &b) const;
  static GemmMatrix matrix(CpuBuilder &b, const StridedView &view) {
    GemmMatrix result;
    result.base = b.buffer(view.buffer);
    result.rowStride = b.idx(view.strides[view.strides.size() - 2]);
    result.colStride = b.idx(view.strides.back());
    return result;
  }
  Dim workItems(const GemmTiles &tiles) const { return groups * Dim::ceilDiv(n, tiles.columns()); }
};

DictionaryAttr GroupedProduct::form() const {
  Builder b(op.getContext());
  NamedAttrList list;
  auto number = [&](StringRef name, int64_t value) { list.set(name, b.getI64IntegerAttr(value)); };
  list.set("form", b.getStringAttr(panelForm(WeightFormat::Kept)));
  number("count", *groups.known());
  number("k", *k.known());
  number("n", *n.known());
  number("offset", *rhs->offset.known());
  number("stride", *rhs->strides[0].known());
  number("stride_k", *rhs->strides[1].known());
  number("stride_n", *rhs->strides[2].known());
  number("size", *groups.known() * panelBytes());
  return list.getDictionary(op.getContext());
}

GemmSpec GroupedProduct::spec() const {
  GemmSpec spec;
  spec.grouped = true;
  spec.batch = groups.valueOr(kDynamic);
  spec.m = kDynamic;
  spec.n = n.valueOr(kDynamic);
  spec.k = k.valueOr(kDynamic);
  spec.aType = spec.bType = element;
  spec.accType = element.isF64() ? Type(Float64Type::get(op.getContext())) : Type(Float32Type::get(op.getContext()));
  spec.packedB = packedRhs;
  if (blocks) {
    spec.blocks = blocks->format;
    spec.bType = IntegerType::get(op.getContext(), 32);
  }
  spec.heavyEpilogue = heavyEpilogue;
  return spec;
}

GemmMatrix GroupedProduct::right(CpuBuilder &b) const {
  GemmMatrix result;
  if (rhs) {
    result = matrix(b, *rhs);
  } else {
    result.base = b.buffer(blocks->values);
    result.scales = b.buffer(blocks->scales);
    result.zeros = blocks->zeros ? b.buffer(*blocks->zeros) : Value();
  }
  result.offset = [this, &b](Value group) {
    return packedRhs ? b.mulC(group, packedElements()) : b.add(b.idx(rhs->offset), b.mulC(group, rhs->strides[0]));
  };
  return result;
}

class GroupedEmitter {
public:
  GroupedEmitter(CpuBuilder &b, const RegionBody &body, const GroupedProduct &product)
      : b(b), product(product), e(b, body.block), writer(e, body) {}
  void direct(Dim nominalItems, DictionaryAttr tiles);
  void generic(const WorkPlan &work);

private:
  std::pair<Value, Value> rowsOf(Value group);
  Value groupOf(Value row);
  Value endOf(Value group) {
    e.forget();
    return e.evaluate(product.op.getEnds(), {e.at(group)});
  }
  void write(Value row, Index column, Value sum) {
    e.forget();
    e.bindValue(product.op.getResult(), fromAccumulator(e, sum, product.element));
    writer.write({e.at(row), column});
  }

  CpuBuilder &b;
  const GroupedProduct &product;
  ElementExpr e;
  ResultWriter writer;
};

/// From the largest end of the groups before it to its own.
std::pair<Value, Value> GroupedEmitter::rowsOf(Value group) {
  ElementExpr::Lanes one(e, 1);
  Value rows = b.idx(product.m);
  Value before = b.forLoop(b.idx(0), group, b.idx(1), b.idx(0), [&](Value i, ValueRange largest) {
    return SmallVector<Value>{b.maxS(largest[0], endOf(i))};
  })[0];
  Value first = b.minS(before, rows);
  return {first, b.maxS(first, b.minS(endOf(group), rows))};
}

void GroupedEmitter::direct(Dim nominalItems, DictionaryAttr given) {
  GemmSpec spec = product.spec();
  GemmTiles tiles = readGemmTiles(given, spec, b.isa());
  mapRange(b, nominalItems, product.workItems(tiles));
  GemmMatrix lhs = product.left(b), rhs = product.right(b);
  GemmCallbacks callbacks;
  callbacks.rows = [&](Value group) { return rowsOf(group); };
  callbacks.store = [&](Value, Value row, Value column, Value value, Value mask) {
    auto vector = dyn_cast<VectorType>(value.getType());
    int64_t lanes = vector ? vector.getNumElements() : 1;
    ElementExpr::Lanes scope(e, lanes, mask);
    write(row, e.at(column, lanes, lanes > 1), value);
  };
  GemmExtents extents{b.idx(product.groups), b.idx(product.m), b.idx(product.n), b.idx(product.k)};
  emitGemm(b, spec, tiles, lhs, rhs, callbacks, extents);
}

/// The number of ends that a row is not below: of the first group that has it, or of the groups.
Value GroupedEmitter::groupOf(Value row) {
  Value groups = b.idx(product.groups);
  return b.forLoop(b.idx(0), groups, b.idx(1), groups, [&](Value i, ValueRange found) {
    Value group = b.sub(b.addC(groups, -1), i), has = b.cmp(arith::CmpIPredicate::slt, row, endOf(group));
    return SmallVector<Value>{arith::SelectOp::create(b, has, group, found[0])};
  })[0];
}

void GroupedEmitter::generic(const WorkPlan &work) {
  Type compute = e.computed(product.element);
  emitItems(b, work, [&](ArrayRef<Value> outer, Value lo, Value hi) {
    ElementExpr::Lanes one(e, 1);
    Value row = outer.back(), group = groupOf(row);
    Value depth = arith::SelectOp::create(b, b.cmp(arith::CmpIPredicate::slt, group, b.idx(product.groups)),
                                          b.idx(product.k), b.idx(0));
    b.forLoop(lo, hi, b.idx(1), [&](Value column) {
      Value sum = b.forLoop(b.idx(0), depth, b.idx(1), b.constant(compute, 0), [&](Value k, ValueRange carried) {
        e.forget();
        Value x = e.evaluateWide(product.op.getLhs(), {e.at(row), e.at(k)});
        Value y = e.evaluateWide(product.op.getRhs(), {e.at(group), e.at(k), e.at(column)});
        return SmallVector<Value>{b.fma(x, y, carried[0])};
      })[0];
      write(row, e.at(column), sum);
    });
  });
}

using SharedProduct = std::shared_ptr<GroupedProduct>;

/// Constant matrices are packed, if nothing else in the region reads them; false where they are of few bits and cannot
/// be.
bool packRight(const RegionBody &body, const Choice &choice, GroupedProduct &product, KernelPlan &plan) {
  SmallVector<unsigned> buffers;
  if (product.rhs)
    buffers.push_back(product.rhs->buffer);
  else
    buffers = product.blocks->buffers();
  auto packed = choice.strategy ? choice.strategy.getAs<DictionaryAttr>(strategy::kPacked) : DictionaryAttr();
  product.packedRhs = llvm::all_of(buffers, [&](unsigned buffer) {
    bool isPacked = choice.strategy ? packed && packed.contains(std::to_string(buffer))
                                    : choice.packing != Packing::None && choice.constant(buffer);
    return isPacked && body.block->getArgument(buffer).hasOneUse() && product.lhs->buffer != buffer;
  });
  product.packedRhs &= product.blocks || product.isConstant();
  if (product.packedRhs && product.blocks)
    plan.packed = blockForms(*product.blocks, body.root->getContext());
  else if (product.packedRhs)
    plan.packed.set(std::to_string(product.rhs->buffer), product.form());
  return product.packedRhs || product.rhs;
}

KernelPlan planGeneric(const RegionBody &body, const Choice &choice, const SharedProduct &product) {
  WorkPlan work = choice.nominal.planWork(body.block, {product->m, product->n}, nominal(body.block, product->k) + 1.0);
  KernelPlan plan("grouped-matmul-generic", work);
  plan.emit = [body, product, work](KernelBuilder &b) {
    GroupedEmitter(CpuBuilder::of(b), body, *product).generic(work);
  };
  return plan;
}

Result<KernelPlan> planGroupedMatmul(const RegionBody &body, const PlanRequest &request) {
  const Choice &choice = Choice::of(request);
  auto product = std::make_shared<GroupedProduct>(cast<dmir::GroupedMatMulOp>(body.root), heavyEpilogue(body));
  KernelPlan plan;
  if (!product->direct() || !packRight(body, choice, *product, plan))
    return planGeneric(body, choice, product);
  plan.algorithm = product->blocks      ? "grouped-matmul-blocks" + std::to_string(product->blocks->format.bits)
                   : product->packedRhs ? "grouped-matmul-packed"
                                        : "grouped-matmul";
  planGemm(plan, product->spec(), choice, [&](const GemmTiles &tiles) { return product->workItems(tiles); });
  plan.emit = [body, product, items = plan.work, strategy = choice.strategy](KernelBuilder &b) {
    CpuBuilder &builder = CpuBuilder::of(b);
    GroupedEmitter(builder, body, *product).direct(items, levelTiles(strategy, builder.isa()));
  };
  return plan;
}

Dim operations(Operation *op) {
  return dmir::dimsOf(op->getOperand(0)).back() * 2 * dmir::elementsOf(op->getResult(0).getType());
}

} // namespace

void dmxc::cpu::registerGroupedMatmul(KernelTable &table) {
  table.add<dmir::GroupedMatMulOp>({.plan = planGroupedMatmul,
                                    .readsViews = true,
                                    .takes = takesFewBits,
                                    .epilogue = true,
                                    .operations = operations});
}
