//===- Product.cpp - products of matrices, element by element -----------------===//
//
// The plain kernels of dmir.matmul and dmir.grouped_matmul: each element of the result is a sum of its own, with lanes
// along its row. Targets with something better have rows of their own in the place of these.
//
//===----------------------------------------------------------------------===//

#include "KernelTable.h"
#include "Loops.h"
#include "Terms.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/IR/TypeUtilities.h"

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

namespace {

/// What both products have in common: rows of the result, and the row of the left operand that each needs.
class ProductEmitter {
public:
  ProductEmitter(KernelBuilder &b, const RegionBody &body, bool chained)
      : b(b), body(body), e(b, body.block), writer(e, body), lhs(body.root->getOperand(0)),
        rhs(body.root->getOperand(1)), terms(e, elementOf(body.root->getResult(0))), chained(chained) {}

  void emit(const WorkPlan &work);

private:
  /// The matrix that a row of the result is multiplied by: its leading positions, and how many terms there are.
  struct Matrix {
    Indices lead;
    Value depth;
  };
  Matrix matrixOf(ArrayRef<Value> row);
  /// Positions on an operand's leading axes, which broadcast to the result's.
  Indices leadOf(Value operand, ArrayRef<Value> row);
  Value groupOf(Value row);
  void element(ArrayRef<Value> row, const Matrix &matrix, Index column);

  KernelBuilder &b;
  const RegionBody &body;
  ElementExpr e;
  ResultWriter writer;
  Value lhs, rhs;
  Terms terms;
  bool chained;
};

/// Of one of the operands: the extent that is known, where one is.
Dim depthOf(Operation *op) {
  Dim left = dmir::dimsOf(op->getOperand(0)).back(), right = *std::next(dmir::dimsOf(op->getOperand(1)).rbegin());
  return right.isStatic() ? right : left;
}

Indices ProductEmitter::leadOf(Value operand, ArrayRef<Value> row) {
  SmallVector<Dim> own = dmir::dimsOf(operand), whole = dmir::dimsOf(body.root->getResult(0));
  size_t missing = whole.size() - own.size();
  Indices lead;
  for (size_t axis = 0; axis + 2 < own.size(); ++axis)
    lead.push_back(e.broadcastIndex(e.at(row[axis + missing]), own[axis], whole[axis + missing]));
  return lead;
}

/// The first group whose end the row is below; where there is none, the number of groups.
Value ProductEmitter::groupOf(Value row) {
  Value ends = body.root->getOperand(2), groups = b.idx(dmir::dimOf(rhs, 0));
  return b.forLoop(b.idx(0), groups, b.idx(1), groups, [&](Value i, ValueRange found) {
    e.forget();
    Value group = b.sub(b.addC(groups, -1), i);
    Value has = b.cmp(arith::CmpIPredicate::slt, row, e.evaluate(ends, e.at(group)));
    return SmallVector<Value>{arith::SelectOp::create(b, has, group, found[0])};
  })[0];
}

ProductEmitter::Matrix ProductEmitter::matrixOf(ArrayRef<Value> row) {
  Value depth = b.idx(depthOf(body.root));
  if (mlir::isa<dmir::MatMulOp>(body.root))
    return {leadOf(rhs, row), depth};
  // Rows that belong to no group are sums of nothing.
  Value group = groupOf(row.back()), groups = b.idx(dmir::dimOf(rhs, 0));
  Value has = b.cmp(arith::CmpIPredicate::slt, group, groups);
  return {{e.at(group)}, arith::SelectOp::create(b, has, depth, b.idx(0))};
}

void ProductEmitter::element(ArrayRef<Value> row, const Matrix &matrix, Index column) {
  Indices left = mlir::isa<dmir::MatMulOp>(body.root) ? leadOf(lhs, row) : Indices();
  left.push_back(e.at(row.back()));
  Value sum = terms.sum(matrix.depth, chained ? Dim(1) : depthOf(body.root), [&](Value k, Value sum) {
    e.forget();
    Indices x(left), y(matrix.lead);
    x.push_back(e.at(k));
    y.append({e.at(k), column});
    return terms.add(sum, terms.operand(lhs, x), terms.operand(rhs, y));
  });
  e.forget();
  e.bindValue(body.root->getResult(0), terms.finish(sum));
  Indices index;
  for (Value i : row)
    index.push_back(e.at(i));
  index.push_back(column);
  writer.write(index);
}

void ProductEmitter::emit(const WorkPlan &work) {
  SmallVector<Value> all{lhs, rhs};
  llvm::append_range(all, writer.values());
  unsigned narrowest;
  int64_t lanes = chooseLanes(all, b.processor(), &narrowest);
  if (chained)
    lanes = 1;
  emitItems(b, work, [&](ArrayRef<Value> row, Value lo, Value hi) {
    ElementExpr::Lanes one(e, 1);
    Matrix matrix = matrixOf(row);
    laneLoop(e, lo, hi, lanes, narrowest, 64, [&](Index column) { element(row, matrix, column); });
  });
}

} // namespace

KernelPlan dmxc::kernels::planPlainProduct(const RegionBody &body, const PlanRequest &request, StringRef algorithm,
                                           bool chained) {
  double cost = static_cast<double>(nominal(body.block, depthOf(body.root))) + 1;
  WorkPlan work = request.nominal.planWork(body.block, dmir::dimsOf(body.root->getResult(0)), cost);
  KernelPlan plan(algorithm.str(), work);
  plan.emit = [body, work, chained](KernelBuilder &b) { ProductEmitter(b, body, chained).emit(work); };
  return plan;
}

static Result<KernelPlan> planProduct(const RegionBody &body, const PlanRequest &request) {
  bool grouped = mlir::isa<dmir::GroupedMatMulOp>(body.root);
  return planPlainProduct(body, request, grouped ? "grouped-matmul-plain" : "matmul-plain", /*chained=*/false);
}

static Dim operations(Operation *op) { return productOperations(op, depthOf(op)); }

void dmxc::kernels::registerProducts(KernelTable &table) {
  table.add<dmir::MatMulOp, dmir::GroupedMatMulOp>(
      {.plan = planProduct, .readsViews = true, .epilogue = true, .operations = operations});
}
