//===- RepeatNorms.cpp - norms as part of the products that read them -----===//
//
// A norm of few rows is cheaper computed again by each kernel that reads it than waited for. Copies that are the same
// would be made one again, so this comes behind what does that.
//
//===----------------------------------------------------------------------===//
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/MapVector.h"

namespace dmxc {
#define GEN_PASS_DEF_REPEATNORMS
#include "dmxc/Phases/Partition/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

/// A norm and the elementwise ops behind it up to a value, in order; empty where there is none that is read there
/// alone.
SmallVector<Operation *> normBefore(Value value) {
  constexpr size_t most = 4;
  SmallVector<Operation *> ops;
  for (Operation *op; (op = value.getDefiningOp()) && ops.size() < most && (ops.empty() || value.hasOneUse());) {
    ops.insert(ops.begin(), op);
    if (isa<dmir::NormalizeOp>(op))
      return ops;
    auto isWhole = [&](Value operand) {
      return operand.getDefiningOp() && !operand.getDefiningOp<dmir::ConstantOp>() &&
             dmir::dimsOf(operand) == dmir::dimsOf(op->getResult(0));
    };
    auto next = llvm::find_if(op->getOperands(), isWhole);
    if (!op->hasTrait<dmir::Elementwise>() || op->getNumResults() != 1 || next == op->operand_end())
      break;
    value = *next;
  }
  return {};
}

/// Gives each of some products that alone read a norm one of its own.
void repeatNorm(Value value, ArrayRef<dmir::MatMulOp> readers) {
  SmallVector<Operation *> ops = normBefore(value);
  if (ops.empty())
    return;
  for (dmir::MatMulOp reader : readers.drop_front()) {
    OpBuilder b(reader);
    IRMapping mapping;
    for (Operation *op : ops)
      b.clone(*op, mapping);
    reader->setOperand(0, mapping.lookup(value));
  }
}

struct RepeatNorms : dmxc::impl::RepeatNormsBase<RepeatNorms> {
  explicit RepeatNorms(const PhaseContext &context) : context(context) {}

  void runOnOperation() override {
    llvm::MapVector<Value, SmallVector<dmir::MatMulOp>> readers;
    for (auto product : getOperation().getOps<dmir::MatMulOp>())
      if (const TargetBackend *target = context.responsible(product); target && target->waitsForMatrix(product))
        readers[product.getLhs()].push_back(product);
    for (auto &[value, all] : readers)
      if (value.hasNUses(static_cast<unsigned>(all.size())) && all.size() > 1)
        repeatNorm(value, all);
  }

private:
  const PhaseContext &context;
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createRepeatNormsPass(const PhaseContext &context) {
  return std::make_unique<RepeatNorms>(context);
}
} // namespace dmxc
