//===- Plans.cpp - how a region is computed, and what that rests on -----------===//

#include "Plans.h"

#include "ConstantMatrix.h"

#include "targets/common/element/ElementExpr.h"

#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Target/TargetBackend.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

RankedTensorType RegionBody::resultType(unsigned i) const { return typeOf(results[i]); }

//===----------------------------------------------------------------------===//
// Nominal sizes
//===----------------------------------------------------------------------===//

static int64_t nominalOf(Operation *owner, StringRef symbol) {
  auto strategy = owner->getAttrOfType<DictionaryAttr>("strategy");
  auto sizes = strategy ? strategy.getAs<DictionaryAttr>("nominal") : DictionaryAttr();
  auto size = sizes ? sizes.getAs<IntegerAttr>(symbol) : IntegerAttr();
  return dmir::nominalSize(owner, symbol, size ? size.getInt() : dmir::kNominalSize);
}

/// A size where `valueOf` gives its symbols' values.
static int64_t valueAt(Block *block, Dim size, llvm::function_ref<int64_t(Operation *, StringRef)> valueOf) {
  if (std::optional<int64_t> number = size.known())
    return *number;
  auto value = size.evaluate([&](std::string_view symbol) {
    return std::optional<int64_t>(valueOf(block->getParentOp(), StringRef(symbol.data(), symbol.size())));
  });
  return std::max<int64_t>(value.value_or(dmir::kNominalSize), 1);
}

int64_t dmxc::kernels::nominal(Block *block, Dim size) { return valueAt(block, size, nominalOf); }

int64_t dmxc::kernels::smallest(Block *block, Dim size) {
  return valueAt(block, size, [](Operation *owner, StringRef symbol) {
    return std::max<int64_t>(dmir::symbolBounds(owner, symbol).min, 1);
  });
}

DictionaryAttr dmxc::kernels::nominalSizes(Block *block) {
  Builder b(block->getParentOp()->getContext());
  NamedAttrList sizes;
  for (StringAttr symbol : dmir::symbolsOf(block))
    sizes.set(symbol, b.getI64IntegerAttr(nominalOf(block->getParentOp(), symbol)));
  return sizes.getDictionary(b.getContext());
}

//===----------------------------------------------------------------------===//
// Work items
//===----------------------------------------------------------------------===//

// Time below which a nest is not cut, that an item should take at least, and at most before the
// innermost loop is cut too. A wake-up of a thread costs microseconds.
static constexpr double kSmallNs = 4000, kItemNs = 1000, kLargeNs = 64000, kGrainNs = 4000;
static constexpr int64_t kManyItems = 64;
// Where that leaves fewer items than a few threads can share, smaller ones will do: a thread gets many of them.
static constexpr double kLeastNs = 30;
static constexpr int64_t kFewItems = 8;

WorkPlan Processor::planWork(Block *block, ArrayRef<Dim> dims, double cost) const {
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
  auto cut = [&] {
    items *= dims[plan.split].known().value_or(1); // an open size may be one, whatever is nominal
    plan.items *= dims[plan.split];
    inner /= sizes[plan.split++];
  };
  auto leaves = [&](double least) { return plan.split + 1 < dims.size() && inner / sizes[plan.split] >= least; };
  while ((items < kManyItems || inner > kLargeNs) && leaves(kItemNs))
    cut();
  while (items < kFewItems && leaves(kLeastNs))
    cut();
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

//===----------------------------------------------------------------------===//
// Cost by trial
//===----------------------------------------------------------------------===//

double Processor::costOf(Operation *op) const {
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
    return vector && vectorBytes < 64 ? 2 * lanes : lanes * bits / 512 + 1;
  return vector ? std::max(1.0, lanes * bits / (8 * vectorBytes)) : 1;
}

double dmxc::kernels::dryRunCost(Block *block, const Processor &processor, int64_t lanes,
                                 llvm::function_ref<void(ElementExpr &, llvm::function_ref<Value()>)> emit) {
  MLIRContext *context = block->getParentOp()->getContext();
  auto loc = UnknownLoc::get(context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  unsigned results = block->getTerminator()->getNumOperands();
  dmir::SymbolSet symbols = dmir::symbolsOf(block);
  std::unique_ptr<KernelBuilder> builder =
      processor.makeBuilder(*module, loc, "trial", block->getNumArguments() + results, symbols.size());
  KernelBuilder &b = *builder;
  b.setSymbols(std::move(symbols));
  ElementExpr e(b, block);
  ElementExpr::Lanes scope(e, lanes);
  int64_t slot = 0;
  emit(e, [&] { return b.load(b.getI64Type(), b.results(), b.idx(slot++)); });
  double cost = 0;
  module->walk([&](Operation *op) { cost += processor.costOf(op); });
  return cost / lanes;
}

//===----------------------------------------------------------------------===//
// What is free
//===----------------------------------------------------------------------===//

std::vector<Decision> dmxc::kernels::freeOf(const KernelPlan &plan, ArrayRef<const Processor *> processors,
                                            MLIRContext *context) {
  std::vector<Decision> free = plan.free;
  for (const Processor *processor : plan.freeTiles ? processors : ArrayRef<const Processor *>())
    llvm::append_range(free, plan.freeTiles(*processor));
  // Of an open number of items no grain is wrong: a task has at least one part. One item is one part whatever is said.
  constexpr int64_t manyItems = int64_t{1} << 20;
  int64_t items = plan.work.valueOr(manyItems);
  if (items > 1 && plan.grain.isStatic())
    free.push_back({strategy::kGrain.str(), "", Domain::range(context, 1, std::max(items, *plan.grain.known())),
                    dmir::dimAttr(context, plan.grain), Effect::Bits, "fewest work items that a thread gets",
                    /*inTask=*/true});
  return free;
}

void dmxc::kernels::decideGrain(KernelPlan &plan, DictionaryAttr decided) {
  if (auto grain = decided ? decided.getAs<IntegerAttr>(strategy::kGrain) : IntegerAttr(); grain && grain.getInt() >= 1)
    plan.grain = grain.getInt();
}

bool PlanRequest::usesRanges(Block *block, bool exact) const {
  if (strategy) {
    auto algorithm = strategy.getAs<StringAttr>(strategy::kAlgorithm);
    return algorithm && algorithm.getValue().ends_with(kRanges);
  }
  if (leftOut != LeftOut::AsAsked)
    return leftOut == LeftOut::Known;
  return mayLeaveOut(block->getParentOp(), exact);
}
