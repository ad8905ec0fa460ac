//===- AttentionPlan.cpp - how an attention is computed -----------------------===//

#include "CoreAttention.h"

#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Target/DecisionsMade.h"
#include "dmxc/Target/TargetBackend.h"

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

/// An attention by warps, cut as its strategy or, where it has none, the estimate says.
static Result<KernelPlan> planQueries(const RegionBody &body, const CudaRequest &request, const FewQueries &few) {
  QueryTile tile;
  if (!request.strategy) {
    DecisionsMade::check("a tile of attention");
    tile = few.choose(request.machine, request.decided);
  } else {
    Result<QueryTile> read = few.read(request.machine, request.strategy.get(kQueries), kQueries);
    if (!read)
      return modelError("node '" + dmir::nodeName(body.root) + "': " + read.error().message);
    tile = *read;
  }
  KernelPlan plan(kQueriesByWarps.str(), WorkPlan());
  plan.work = few.blocks(tile);
  plan.own.set(kQueries, writeTile(tile, body.root->getContext()));
  plan.launch = few.launch(tile);
  plan.emit = [body, few, tile](KernelBuilder &b) { emitFewQueries(CudaBuilder::of(b), body, few, tile); };
  return plan;
}

/// An attention by tensor cores, which looks at the keys alone that a mask's rule leaves where `usesRules`.
static Result<KernelPlan> planCores(const RegionBody &body, const CudaRequest &request, const FewQueries &few,
                                    bool usesRules) {
  auto core = std::make_shared<const CoreAttention>(few, body, request.machine, usesRules);
  if (core->sharedBytes() > request.machine.mostShared)
    return modelError("node '" + dmir::nodeName(body.root) + "': its attention by tensor cores takes " +
                      std::to_string(core->sharedBytes()) + " bytes of a block's shared memory, and " +
                      request.machine.name + " has " + std::to_string(request.machine.mostShared) +
                      "; leave the strategy out and it is derived");
  KernelPlan plan(kAttentionByCores.str() + (core->mask ? kRanges.str() : ""), WorkPlan());
  plan.work = core->blocks();
  plan.launch = core->launch();
  if (CoreAttention::leavesOut(few))
    plan.tile = core->tile();
  if (core->mask)
    plan.skips.push_back("scores");
  plan.emit = [body, core](KernelBuilder &b) { emitAttention(CudaBuilder::of(b), body, *core); };
  return plan;
}

Result<KernelPlan> dmxc::cuda::planAttention(const RegionBody &body, const CudaRequest &request,
                                             const FewQueries &few) {
  StringRef name = algorithmIn(request.strategy ? request.strategy : request.decided);
  const bool isDecided = !name.empty();
  if (!isDecided)
    name = few.preferred();
  if (name == kQueriesByWarps && few.fitsWarps())
    return planQueries(body, request, few);
  const bool ranges = name.consume_back(kRanges);
  if (name != kAttentionByCores || !few.fitsCores() || (ranges && !CoreAttention::leavesOut(few)))
    return modelError("node '" + dmir::nodeName(body.root) + "': its region is an attention, which is computed by " +
                      few.preferred().str() + "; leave the strategy out and it is derived");
  return planCores(body, request, few, isDecided ? ranges : request.usesRanges(body.block, /*exact=*/false));
}

std::vector<Decision> dmxc::cuda::attentionDecisions(const hw::Machine &machine, dmir::RegionOp region,
                                                     const FewQueries &few, DictionaryAttr decided) {
  if (few.preferred() == kQueriesByWarps)
    return few.decisions(machine, decided);
  if (!CoreAttention::leavesOut(few))
    return {};
  Builder b(region.getContext());
  Attribute all = b.getStringAttr(kAttentionByCores), some = b.getStringAttr(kAttentionByCores.str() + kRanges.str());
  const bool uses = CudaRequest(machine).usesRanges(region.getBlock(), /*exact=*/false);
  return {{strategy::kAlgorithm.str(), "", Domain::oneOf({all, some}), uses ? some : all, Effect::Bits,
           "all keys, or those alone that the mask's rule keeps"}};
}

bool dmxc::cuda::isForCores(const FewQueries &few, const hw::Machine &machine, bool rounds) {
  return rounds && few.preferred() == kAttentionByCores && few.paysByCores(machine);
}

/// Whether what is read there becomes keys or values, through ops that have one reader each.
static bool isForKeys(OpOperand &use, const Attention &attention) {
  OpOperand *next = &use;
  for (Operation *op; (op = next->getOwner()) != attention.scores && op != attention.result; next = &*op->use_begin())
    if (op->getNumResults() != 1 || !op->hasOneUse())
      return false;
  return next->getOperandNumber() == 1;
}

std::optional<bool> dmxc::cuda::takesProducer(const hw::Machine &machine, Operation *root, OpOperand &use,
                                              Operation *producer, bool rounds) {
  std::optional<FewQueries> few = FewQueries::of(root);
  if (!few)
    return std::nullopt;
  // Keys and values that were rounded are in memory as bf16, which tensor maps copy.
  auto isCast = [](auto &&from, auto &&to, Operation *op) {
    auto cast = dyn_cast<dmir::CastOp>(op);
    return cast && from(elementOf(cast.getInput())) && to(elementOf(cast.getResult()));
  };
  auto isBF16 = [](Type type) { return type.isBF16(); };
  auto isF32 = [](Type type) { return type.isF32(); };
  const bool isRead = use.getOwner() == few->attention.result && isCast(isBF16, isF32, producer),
             isMade = isCast(isF32, isBF16, producer) && isForKeys(use, few->attention);
  if ((isRead || isMade) && isForCores(*few, machine, rounds))
    return isRead;
  if (use.getOwner() == few->attention.scores && use.getOperandNumber() == 0 &&
      (producer->hasTrait<dmir::Elementwise>() || isa<dmir::ReshapeOp>(producer)))
    return true;
  return std::nullopt;
}
