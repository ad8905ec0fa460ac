//===- KernelTable.cpp - which ops have kernels, and what is known of them ----===//

#include "KernelTable.h"

#include "Contract.h"

#include "targets/common/attention/Append.h"
#include "targets/common/element/ElementExpr.h"

#include "llvm/ADT/SmallPtrSet.h"

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

//===----------------------------------------------------------------------===//
// What is known of an op
//===----------------------------------------------------------------------===//

/// Ops without operands that are part of any kernel.
static bool isLeaf(Operation *op) { return mlir::isa<dmir::ConstantOp, dmir::IotaOp, dmir::DimTensorOp>(op); }

const KernelRow *KernelTable::find(Operation *op) const {
  auto row = rows.find(op->getName().getStringRef());
  return row == rows.end() ? nullptr : &row->second;
}

bool KernelTable::has(Operation *op) const { return dmir::isPulled(op) || isLeaf(op) || find(op); }

bool KernelTable::readsOnce(Operation *op) const {
  const KernelRow *row = find(op);
  // A block is read for each of its numbers.
  return (dmir::isPulled(op) && !mlir::isa<dmir::RoundBlocksOp>(op)) || (row && row->readsOnce);
}

bool KernelTable::readsViews(Operation *op) const {
  const KernelRow *row = find(op);
  return row && row->readsViews;
}

bool KernelTable::takes(Operation *root, Operation *producer) const {
  const KernelRow *row = find(root);
  return row && row->takes && row->takes(root, producer);
}

bool KernelTable::hasEpilogue(Operation *op) const {
  const KernelRow *row = find(op);
  return row && row->epilogue;
}

SmallVector<Operation *> KernelTable::computedWith(Operation *root) const {
  const KernelRow *row = find(root);
  return row && row->computes ? row->computes(root) : SmallVector<Operation *>();
}

Dim kernels::elementsTouched(Operation *op) {
  Dim count = op->getNumResults() ? dmir::elementsOf(op->getResult(0).getType()) : Dim(0);
  return op->getNumOperands() ? Dim::max(count, dmir::elementsOf(op->getOperand(0).getType())) : count;
}

Dim KernelTable::operations(Block *block) const {
  Dim count = 0;
  for (Operation &op : *block) {
    if (op.hasTrait<dmir::DataMovement>() || isLeaf(&op) || mlir::isa<dmir::YieldOp>(op))
      continue;
    const KernelRow *row = find(&op);
    count += row && row->operations ? row->operations(&op) : elementsTouched(&op);
  }
  return count;
}

//===----------------------------------------------------------------------===//
// Sharing a buffer with an operand
//===----------------------------------------------------------------------===//

namespace {

/// Finds operands that are read at an index only while the result's element of that index is computed.
class InPlaceSearch {
public:
  InPlaceSearch(const KernelTable &table, const RegionBody &body) : table(table), body(body) {}

  std::vector<int64_t> operands() {
    std::vector<int64_t> found;
    auto result = body.resultType();
    for (BlockArgument argument : body.block->getArguments()) {
      seen.clear();
      bool alone = true;
      for (Value value : body.results)
        alone &= readsInPlace(value, /*sameIndex=*/true, argument);
      if (argument.getType() == result && !argument.use_empty() && alone)
        found.push_back(argument.getArgNumber());
    }
    return found;
  }

private:
  InPlace ruleOf(Operation *op) const {
    const KernelRow *row = table.find(op);
    return op->hasTrait<dmir::Elementwise>() ? InPlace::SameIndex : row ? row->inPlace : InPlace::Never;
  }

  bool readsInPlace(Value value, bool sameIndex, Value operand) {
    if (value == operand)
      return sameIndex;
    if (!seen.insert({value, sameIndex}).second || !value.getDefiningOp())
      return true;
    Operation *op = value.getDefiningOp();
    InPlace rule = ruleOf(op);
    SmallVector<Dim> dims = dmir::dimsOf(value);
    return llvm::all_of(op->getOpOperands(), [&](OpOperand &use) {
      bool same = rule == InPlace::Copied      ? use.getOperandNumber() == 0
                  : rule == InPlace::SameIndex ? dmir::dimsOf(use.get()) == dims
                                               : false;
      return readsInPlace(use.get(), sameIndex && same, operand);
    });
  }

  const KernelTable &table;
  const RegionBody &body;
  llvm::DenseSet<std::pair<Value, unsigned>> seen;
};

} // namespace

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

Result<RegionBody> KernelTable::bodyOf(Block *block) const {
  RegionBody body;
  body.block = block;
  llvm::SmallPtrSet<Operation *, 8> inner; // computed by the root's kernel
  for (Operation &op : *block)
    for (Operation *other : computedWith(&op))
      inner.insert(other);
  for (Operation &op : *block) {
    if (auto yield = dyn_cast<dmir::YieldOp>(op)) {
      body.results.assign(yield->operand_begin(), yield->operand_end());
      continue;
    }
    if (dmir::isPulled(&op) || isLeaf(&op) || inner.contains(&op))
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

/// Whether there is no element to compute, nor an index to check. Symbols may be 0 too: then a run has no work items,
/// or loops that do not turn.
static bool isEmpty(const RegionBody &body) {
  return !body.results.empty() && !isa_and_nonnull<dmir::ScatterElementsOp, dmir::ScatterNDOp>(body.root) &&
         llvm::all_of(body.results, [](Value result) { return dmir::elementsOf(result.getType()).is(0); });
}

/// A task has a work item at least, so the emitters' plans, which are cut by sizes, do not fit.
static KernelPlan emptyPlan() {
  KernelPlan plan("empty", {});
  plan.emit = [](KernelBuilder &) {};
  return plan;
}

Result<KernelPlan> KernelTable::plan(Block *block, const PlanRequest &request) const {
  Result<RegionBody> body = bodyOf(block);
  if (!body)
    return body.takeError();
  if (isEmpty(*body))
    return emptyPlan();
  const KernelRow *row = body->root ? find(body->root) : nullptr;
  if (body->root && !row)
    return Error{ErrorKind::Internal, "node '" + dmir::nodeName(body->root) + "': there is no kernel for " +
                                          body->root->getName().getStringRef().str() +
                                          ", which refuses() should have said"};
  if (std::optional<Append> append = appendOf(*body, request))
    return planAppend(*body, *append, request);
  Result<KernelPlan> plan = row ? row->plan(*body, request) : planPointwise(*body, request);
  if (plan && !body->results.empty())
    plan->inPlace = InPlaceSearch(*this, *body).operands();
  return plan;
}

Result<std::vector<int64_t>> KernelTable::emit(ModuleOp module, dlir::KernelOp kernel, const PlanRequest &request,
                                               const Processor &processor) const {
  Result<KernelPlan> plan = this->plan(kernel.getBlock(), request);
  if (!plan)
    return plan.takeError();
  return emit(module, kernel, *plan, request, processor);
}

std::vector<int64_t> KernelTable::emit(ModuleOp module, dlir::KernelOp kernel, const KernelPlan &plan,
                                       const PlanRequest &request, const Processor &processor) const {
  Block *block = kernel.getBlock();
  unsigned operands = block->getNumArguments(), results = block->getTerminator()->getNumOperands();
  SmallVector<bool> noalias(operands + results, true);
  for (int64_t operand : plan.inPlace)
    noalias[operand] = noalias[operands] = false;
  dmir::SymbolSet symbols = dmir::symbolsOf(block);
  std::unique_ptr<KernelBuilder> b =
      processor.makeBuilder(module, kernel.getLoc(), kernel.getSymName(), operands + results, symbols.size(), noalias);
  b->setSymbols(std::move(symbols));
  for (const auto &[operand, panels] : request.panels)
    b->setPanels(operand, panels);
  plan.emit(*b);
  b->finish();
  return contractWords(kernel, plan);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// The values go to the runtime, which checks them.
static Result<KernelPlan> planDefineDims(const RegionBody &body, const PlanRequest &) {
  KernelPlan plan("define-dims", {});
  plan.emit = [body](KernelBuilder &b) {
    ElementExpr e(b, body.block);
    auto op = cast<dmir::DefineDimsOp>(body.root);
    for (size_t i = 0; i < op.getSymbols().size(); ++i) {
      Value at = b.idx(static_cast<int64_t>(i));
      b.store(e.evaluate(op.getInput(), e.at(static_cast<int64_t>(i))), b.results(), at);
    }
  };
  return plan;
}

void kernels::registerRoots(KernelTable &table) {
  for (auto add : {registerProducts, registerConvolutions, registerReductions, registerRowKernels, registerPools,
                   registerTopK, registerGreedySelect, registerScatters})
    add(table);
  table.add<dmir::DefineDimsOp>({.plan = planDefineDims, .readsOnce = true});
}
