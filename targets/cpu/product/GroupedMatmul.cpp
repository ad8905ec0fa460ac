//===- GroupedMatmul.cpp - regions around dmir.grouped_matmul -----------------===//
//
// Rows that follow one another share a matrix. Each work item multiplies the rows of one group by some columns of its
// matrix, through the same register tiles as other products; which rows these are is read when the kernel runs.
// Constant matrices are packed one after the other, those of few bits as they are.
//
//===----------------------------------------------------------------------===//

#include "GemmDecisions.h"
#include "MatmulProduct.h"
#include "MatmulRegion.h"

#include "mlir/IR/TypeUtilities.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

namespace {

class GroupedEmitter {
public:
  GroupedEmitter(CpuBuilder &b, const RegionBody &body, const MatmulProduct &product)
      : b(b), product(product), e(b, body.block), writer(e, body) {}
  void direct(Dim nominalItems, DictionaryAttr tiles);

private:
  std::pair<Value, Value> rowsOf(Value group);
  Value endOf(Value group) {
    e.forget();
    return e.evaluate(product.op->getOperand(2), {e.at(group)});
  }
  void write(Value row, Index column, Value sum) {
    e.forget();
    e.bindValue(product.result(), fromAccumulator(e, sum, product.element));
    writer.write({e.at(row), column});
  }

  CpuBuilder &b;
  const MatmulProduct &product;
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
  GemmKernel spec = product.kernel();
  GemmTiles tiles = readGemmTiles(given, spec, b.isa());
  mapRange(b, nominalItems, gemmWorkItems(spec, tiles));
  GemmMatrix lhs = product.left(b), rhs = product.right(b);
  GemmCallbacks callbacks;
  callbacks.rows = [&](Value group) { return rowsOf(group); };
  callbacks.store = [&](Value, Value row, Value column, Value value, Value mask) {
    auto vector = dyn_cast<VectorType>(value.getType());
    int64_t lanes = vector ? vector.getNumElements() : 1;
    ElementExpr::Lanes scope(e, lanes, mask);
    write(row, e.at(column, lanes, lanes > 1), value);
  };
  emitGemm(b, spec, tiles, lhs, rhs, callbacks);
}

/// Constant matrices are packed, if nothing else in the region reads them; false where they are of few bits and cannot
/// be.
bool packRight(const RegionBody &body, const Choice &choice, MatmulProduct &product, KernelPlan &plan) {
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
  product.packedRhs &= product.blocks || product.hasConstantShape();
  if (product.packedRhs && product.blocks)
    plan.packed = blockForms(*product.blocks, body.root->getContext());
  else if (product.packedRhs)
    plan.packed.set(std::to_string(product.rhs->buffer), product.packedForm());
  return product.packedRhs || product.rhs;
}

Result<KernelPlan> planGroupedMatmul(const RegionBody &body, const PlanRequest &request) {
  const Choice &choice = Choice::of(request);
  auto product = std::make_shared<MatmulProduct>(cast<dmir::GroupedMatMulOp>(body.root), heavyEpilogue(body));
  KernelPlan plan;
  if (!product->direct() || product->element.getIntOrFloatBitWidth() == 8 || !packRight(body, choice, *product, plan))
    return planPlainProduct(body, choice, "grouped-matmul-generic", /*chained=*/true);
  plan.algorithm = product->blocks      ? "grouped-matmul-blocks" + std::to_string(product->blocks->format.bits)
                   : product->packedRhs ? "grouped-matmul-packed"
                                        : "grouped-matmul";
  planGemm(plan, product->kernel(), choice);
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
