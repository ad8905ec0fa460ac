//===- EmitKernel.cpp - a region's plan and its kernel ------------------------===//

#include "EmitKernel.h"

#include "Attention.h"
#include "Contract.h"
#include "ConvRegion.h"
#include "MatmulRegion.h"
#include "Pointwise.h"
#include "Pool.h"
#include "Reduce.h"
#include "RowKernels.h"
#include "Select.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/IR/TypeUtilities.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Sharing a buffer with an operand
//===----------------------------------------------------------------------===//

namespace {

/// Finds operands that are read at an index only while the result's element of that index is computed.
class InPlaceSearch {
public:
  explicit InPlaceSearch(const RegionBody &body) : body(body) {}

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
  bool readsInPlace(Value value, bool sameIndex, Value operand) {
    if (value == operand)
      return sameIndex;
    if (!seen.insert({value, sameIndex}).second || !value.getDefiningOp())
      return true;
    Operation *op = value.getDefiningOp();
    // Scatters copy their data before anything else.
    if (mlir::isa<dmir::ScatterElementsOp, dmir::ScatterNDOp>(op))
      return readsInPlace(op->getOperand(0), sameIndex, operand) && readsInPlace(op->getOperand(1), false, operand) &&
             readsInPlace(op->getOperand(2), false, operand);
    // A row is read whole before any of it is written, and written by the same thread.
    bool keeps = op->hasTrait<dmir::Elementwise>() || mlir::isa<dmir::SoftmaxOp, dmir::NormalizeOp>(op);
    SmallVector<Dim> dims = dmir::dimsOf(value);
    return llvm::all_of(op->getOperands(), [&](Value v) {
      bool same = keeps && sameIndex && dmir::dimsOf(v) == dims;
      return readsInPlace(v, same, operand);
    });
  }

  const RegionBody &body;
  llvm::DenseSet<std::pair<Value, unsigned>> seen;
};

Error unsupported(Operation *op) {
  return {ErrorKind::Internal, "node '" + dmir::nodeName(op) + "': the CPU target has no kernel for " +
                                   op->getName().getStringRef().str() + ", which refuses() should have said"};
}

} // namespace

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

static void takeWork(KernelPlan &plan, const WorkPlan &work) {
  plan.work = work.items;
  plan.grain = work.grain;
}

static KernelPlan pointwisePlan(const RegionBody &body) {
  KernelPlan plan;
  PointwisePlan details = planPointwise(body);
  plan.algorithm = details.flat ? "elementwise" : "pointwise";
  takeWork(plan, details.work);
  plan.emit = [body, details](KernelBuilder &b) { emitPointwise(b, body, details); };
  return plan;
}

static KernelPlan reducePlan(const RegionBody &body) {
  KernelPlan plan;
  RowPlan details = planReduce(body);
  plan.algorithm = body.root->getName().stripDialect().str() + (details.lanesAcross() ? "-across" : "-along");
  takeWork(plan, details.work);
  plan.emit = [body, details](KernelBuilder &b) { emitReduce(b, body, details); };
  return plan;
}

static KernelPlan rowPlan(const RegionBody &body) {
  KernelPlan plan;
  RowPlan details = planRowKernel(body);
  plan.algorithm = body.root->getName().stripDialect().str() + (details.lanesAcross() ? "-across" : "-along");
  takeWork(plan, details.work);
  plan.scratch = rowKernelScratch(body, details);
  plan.emit = [body, details](KernelBuilder &b) { emitRowKernel(b, body, details); };
  return plan;
}

static KernelPlan poolPlan(const RegionBody &body) {
  KernelPlan plan;
  PoolPlan details = planPool(body);
  plan.algorithm = details.block ? "pool-blocked" : "pool";
  takeWork(plan, details.work);
  plan.emit = [body, details](KernelBuilder &b) { emitPool(b, body, details); };
  return plan;
}

/// Ops that pick elements of lines, with the picked ones in scratch.
static KernelPlan selectPlan(const RegionBody &body, StringRef algorithm, const TopKPlan &details,
                             void (*emit)(KernelBuilder &, const RegionBody &, const TopKPlan &)) {
  KernelPlan plan;
  plan.algorithm = algorithm.str();
  takeWork(plan, details.work);
  plan.scratch = details.scratch;
  plan.emit = [body, details, emit](KernelBuilder &b) { emit(b, body, details); };
  return plan;
}

static Result<KernelPlan> scatterPlan(const RegionBody &body) {
  if (auto problem = scatterProblem(body.root))
    return modelError("node '" + dmir::nodeName(body.root) + "': " + *problem);
  KernelPlan plan;
  plan.algorithm = "scatter";
  plan.emit = [body](KernelBuilder &b) { emitScatter(b, body); };
  return plan;
}

/// Whether there is no element to compute, nor an index to check. Symbols may be 0 too: then a run has no work items, or
/// loops that do not turn.
static bool isEmpty(const RegionBody &body) {
  return !body.results.empty() && !isa_and_nonnull<dmir::ScatterElementsOp, dmir::ScatterNDOp>(body.root) &&
         llvm::all_of(body.results, [](Value result) { return dmir::elementsOf(result.getType()).is(0); });
}

/// A task has a work item at least, so the emitters' plans, which are cut by sizes, do not fit.
static KernelPlan emptyPlan() {
  KernelPlan plan;
  plan.algorithm = "empty";
  plan.emit = [](KernelBuilder &) {};
  return plan;
}

/// The values go to the runtime, which checks them.
static KernelPlan defineDimsPlan(const RegionBody &body) {
  KernelPlan plan;
  plan.algorithm = "define-dims";
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

Result<KernelPlan> dmxc::cpu::planKernel(Block *block, DictionaryAttr strategy, const Choice &choice) {
  Result<RegionBody> found = RegionBody::of(block);
  if (!found)
    return found.takeError();
  const RegionBody &body = *found;
  if (isEmpty(body))
    return emptyPlan();
  if (!body.root) {
    KernelPlan plan = pointwisePlan(body);
    plan.inPlace = InPlaceSearch(body).operands();
    return plan;
  }
  Result<KernelPlan> plan =
      llvm::TypeSwitch<Operation *, Result<KernelPlan>>(body.root)
          .Case<dmir::ReduceOp, dmir::ArgReduceOp, dmir::CumSumOp>([&](auto) { return reducePlan(body); })
          .Case<dmir::SoftmaxOp, dmir::NormalizeOp>([&](auto) { return rowPlan(body); })
          .Case<dmir::PoolOp, dmir::ArgMaxPoolOp>([&](auto) { return poolPlan(body); })
          .Case<dmir::TopKOp>([&](auto) { return selectPlan(body, "top-k", planTopK(body), emitTopK); })
          .Case<dmir::GreedySelectOp>(
              [&](auto) { return selectPlan(body, "greedy-select", planGreedySelect(body), emitGreedySelect); })
          .Case<dmir::ScatterElementsOp, dmir::ScatterNDOp>([&](auto) { return scatterPlan(body); })
          .Case<dmir::DefineDimsOp>([&](auto) { return defineDimsPlan(body); })
          .Case<dmir::MatMulOp>([&](auto op) -> Result<KernelPlan> {
            std::optional<Attention> attention = matchAttention(op);
            return attention ? planAttention(body, *attention) : planMatmul(body, strategy, choice);
          })
          .Case<dmir::ConvOp>([&](auto) {
            return isDirectConv(body) && !prefersPixels(body) ? planConv(body, strategy, choice)
                   : isPixelConv(body)                        ? planPixelConv(body)
                                                              : planGenericConv(body);
          })
          .Default([&](Operation *op) -> Result<KernelPlan> { return unsupported(op); });
  if (plan && !body.results.empty())
    plan->inPlace = InPlaceSearch(body).operands();
  return plan;
}

Packing dmxc::cpu::packingOfForm(StringRef form) {
  if (std::optional<WeightFormat> format = formatOfForm(form))
    return *format == WeightFormat::BF16 ? Packing::BF16 : *format == WeightFormat::S8 ? Packing::S8 : Packing::Plain;
  return llvm::StringSwitch<Packing>(form)
      .Case("convpanel16", Packing::Plain)
      .Case("quads16", Packing::Quads)
      .Case("convquads16", Packing::Quads)
      .Case("convwinograd16", Packing::Winograd)
      .Default(Packing::None);
}

/// How much of what text decided a plan has: exact forms say more than their names.
static int agreement(const KernelPlan &plan, DictionaryAttr given) {
  MLIRContext *context = given.getContext();
  auto packed = given.getAs<DictionaryAttr>(strategy::kPacked);
  DictionaryAttr own = plan.packed.getDictionary(context);
  bool sameNames = !packed || llvm::all_of(own, [&](NamedAttribute entry) {
    auto form = packed.getAs<DictionaryAttr>(entry.getName());
    return form && formName(form) == formName(cast<DictionaryAttr>(entry.getValue()));
  });
  Attribute algorithm = given.get(strategy::kAlgorithm);
  bool sameAlgorithm = !algorithm || algorithm == StringAttr::get(context, plan.algorithm);
  return 2 * sameAlgorithm + 2 * (!packed || packed == own) + sameNames;
}

Result<KernelPlan> dmxc::cpu::planAsGiven(Block *block, DictionaryAttr given, const Choice &choice) {
  Result<KernelPlan> best = planKernel(block, {}, choice);
  if (!best || !given)
    return best;
  for (Packing packing :
       {Packing::Plain, Packing::Quads, Packing::BF16, Packing::S8, Packing::Winograd, Packing::None}) {
    Choice other = choice;
    other.packing = packing;
    Result<KernelPlan> plan = planKernel(block, {}, other);
    if (plan && agreement(*plan, given) > agreement(*best, given))
      best = std::move(plan);
  }
  if (auto grain = given.getAs<IntegerAttr>(strategy::kGrain); grain && grain.getInt() >= 1)
    best->grain = grain.getInt();
  return best;
}

Result<std::vector<int64_t>> dmxc::cpu::emitKernel(ModuleOp module, dlir::KernelOp kernel, const IsaLevel &isa) {
  Block *block = kernel.getBlock();
  Result<KernelPlan> plan = planKernel(block, kernel.getStrategy());
  if (!plan)
    return plan.takeError();
  unsigned operands = block->getNumArguments(), results = block->getTerminator()->getNumOperands();
  SmallVector<bool> noalias(operands + results, true);
  for (int64_t operand : plan->inPlace)
    noalias[operand] = noalias[operands] = false;
  dmir::SymbolSet symbols = dmir::symbolsOf(block);
  KernelBuilder b(module, kernel.getLoc(), kernel.getSymName(), operands + results, symbols.size(), isa, noalias);
  b.setSymbols(std::move(symbols));
  plan->emit(b);
  b.finish();
  return contractWords(kernel, *plan);
}
