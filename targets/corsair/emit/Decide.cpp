//===- Decide.cpp - how a region's ops are computed -----------------------===//

#include "Decide.h"

#include "llvm/Support/ErrorHandling.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

static thread_local int decided = 0;

DecisionsMade::DecisionsMade() { ++decided; }
DecisionsMade::~DecisionsMade() { --decided; }
void DecisionsMade::check() {
  if (decided)
    llvm::report_fatal_error("a deal or a plan is decided after the phase partition");
}

/// The fastest of all team sizes; a larger team must be worth its energy.
static Result<Distribution> fastestTeam(Block *body, const hw::Machine &machine,
                                        llvm::function_ref<bool(Value)> isConstant) {
  Result<Distribution> best = distribute(body, machine, 1, isConstant);
  for (int size = 2; best && size <= machine.quadCount(); size *= 2)
    if (Result<Distribution> other = distribute(body, machine, size, isConstant);
        other && other->clocks < 0.99 * best->clocks)
      best = std::move(other);
  return best;
}

/// The team that the ops are dealt to already; 0 for none.
static int teamOf(Block *body, const hw::Machine &machine) {
  for (Operation &op : *body)
    if (auto deal = op.getAttrOfType<lldmir::DealAttr>(lldmir::kDealAttr))
      return static_cast<int>(std::min<int64_t>(deal.getQuads(), machine.quadCount()));
  return 0;
}

static std::string textOf(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

static Error refused(Operation *op, StringRef key, const std::string &why) {
  return modelError("node '" + dmir::nodeName(op) + "': '" + key.str() + "' is " + textOf(op->getAttr(key)) + ", but " +
                    why + "; what is left out is decided");
}

/// Gives a product its plan, or checks that it can be computed by the one it has.
static Status plan(Operation *op, const Distribution &deal, const hw::Machine &machine) {
  const ProductDims dims = dimsOf(op, deal);
  Attribute given = op->getAttr(lldmir::kPlanAttr);
  if (!given) {
    const MatmulPlan made = dims.conv ? planConv(machine, dims.m, dims.n, dims.kChunks)
                                      : planMatmul(machine, dims.m, dims.n, dims.k, std::max<int64_t>(dims.batch, 1));
    op->setAttr(lldmir::kPlanAttr, made.write(op->getContext()));
    return Status::ok();
  }
  auto attribute = dyn_cast<lldmir::PlanAttr>(given);
  if (!attribute)
    return refused(op, lldmir::kPlanAttr, "a plan is needed");
  if (std::optional<std::string> why = unfit(attribute, dims, machine))
    return refused(op, lldmir::kPlanAttr, *why);
  return Status::ok();
}

/// The tiles of a constant serve all of its readers, whose plans must then want the same ones.
static Status agree(Operation *op, const Distribution &deal) {
  if (!deal.packed.contains(op->getOperand(1)))
    return Status::ok();
  for (Operation *other : op->getOperand(1).getUsers())
    if (isProduct(other) && other->getAttr(lldmir::kPlanAttr) != op->getAttr(lldmir::kPlanAttr))
      return refused(op, lldmir::kPlanAttr,
                     "node '" + dmir::nodeName(other) + "' reads the same weights and has " +
                         textOf(other->getAttr(lldmir::kPlanAttr)));
  return Status::ok();
}

Result<Distribution> dmxc::corsair::decide(Block *body, const hw::Machine &machine, int quads,
                                           llvm::function_ref<bool(Value)> isConstant) {
  DecisionsMade::check();
  const int team = quads ? quads : teamOf(body, machine);
  Result<Distribution> deal =
      team ? distribute(body, machine, team, isConstant) : fastestTeam(body, machine, isConstant);
  if (!deal)
    return deal;
  deal->write(body);
  for (Operation &op : body->without_terminator()) {
    if (!isProduct(&op) && op.hasAttr(lldmir::kPlanAttr))
      return refused(&op, lldmir::kPlanAttr, "the op is no product of the arrays");
    if (isProduct(&op))
      if (Status planned = plan(&op, *deal, machine); !planned)
        return planned.takeError();
  }
  for (Operation &op : body->without_terminator())
    if (isProduct(&op))
      if (Status same = agree(&op, *deal); !same)
        return same.takeError();
  return deal;
}
