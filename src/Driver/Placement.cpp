//===- Placement.cpp - which target computes what -------------------------===//
#include "Placement.h"

#include "dmxc/Dialect/DLIR/DLIR.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <fnmatch.h>

using namespace mlir;

namespace dmxc::driver {

static PlacedShare &shareOf(Placement &placement, StringRef target) {
  for (PlacedShare &share : placement.shares)
    if (share.target == target)
      return share;
  placement.shares.push_back({target.str(), 0, 0, ""});
  return placement.shares.back();
}

/// Ops that cost something: no constants, no terminators.
static bool isComputed(Operation &op) {
  return isa<dmir::DMIRDialect>(op.getDialect()) && !isa<dmir::ConstantOp, dmir::YieldOp>(op);
}

static StringRef strategyName(DictionaryAttr strategy) {
  auto name = strategy ? strategy.getAs<StringAttr>(strategy::kAlgorithm) : StringAttr();
  return name ? name.getValue() : "";
}

Placement placementOf(ModuleOp module) {
  Placement placement;
  module.walk([&](Operation *op) {
    int64_t ops = 0;
    StringRef device;
    if (auto region = dyn_cast<dmir::RegionOp>(op)) {
      device = region.getDevice();
      ops = llvm::count_if(*region.getBlock(), isComputed);
    } else if (auto task = dyn_cast<dlir::TaskInterface>(op)) {
      device = task.getQueue();
      ops = task.getNodes().size();
    } else {
      return;
    }
    PlacedShare &share = shareOf(placement, device);
    share.ops += ops;
    ++share.tasks;
    placement.ops += ops;
  });
  return placement;
}

std::string Placement::summary() const {
  if (shares.empty())
    return "nothing to compute";
  std::string text;
  for (const PlacedShare &share : shares)
    text += (text.empty() ? "" : "; ") + share.target + " " + std::to_string(share.ops) + " of " + std::to_string(ops) +
            " nodes in " + std::to_string(share.tasks) + (share.tasks == 1 ? " task" : " tasks");
  return text;
}

/// Why an op is where it is: the targets asked before its own and their
/// refusals.
static std::string reasonOf(Operation &op, StringRef device, const PhaseContext &context) {
  std::string text;
  for (const TargetBackend *target : context.targets) {
    if (target->name() == device)
      return text + (text.empty() ? "the first target that computes it" : "");
    std::optional<std::string> refusal = context.refusal(*target, &op);
    text += (text.empty() ? "" : "; ") + target->name().str() + ": " +
            refusal.value_or("computes it, but another was chosen");
  }
  return text;
}

std::string placementReport(ModuleOp module, const PhaseContext &context) {
  std::string text = "# " + placementOf(module).summary() + "\n# node\top\ttarget\ttask\talgorithm\treason\n";
  int64_t task = 0;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto region = dyn_cast<dmir::RegionOp>(op)) {
      for (Operation &inner : *region.getBlock())
        if (isComputed(inner))
          text += dmir::nodeName(&inner) + "\t" + inner.getName().getStringRef().str() + "\t" +
                  region.getDevice().str() + "\t" + std::to_string(task) + "\t" +
                  strategyName(region.getStrategyAttr()).str() + "\t" + reasonOf(inner, region.getDevice(), context) +
                  "\n";
      ++task;
      return WalkResult::skip();
    }
    if (op->getDialect() && isComputed(*op))
      text += dmir::nodeName(op) + "\t" + op->getName().getStringRef().str() +
              (isa<dmir::IfOp, dmir::LoopOp>(op) ? "\t-\t-\tgraph\tthe runtime runs the graphs that it names\n"
                                                 : "\t-\t-\tview\tno bytes move: another view of its operand\n");
    return WalkResult::advance();
  });
  return text;
}

std::string formatTable(ModuleOp module, const PhaseContext &context) {
  std::vector<std::array<std::string, 4>> rows{{"node", "op", "operands", "result"}};
  module.walk([&](dmir::RegionOp region) {
    const TargetBackend *target = context.target(region.getDevice());
    for (Operation &op : *region.getBlock())
      if (std::optional<OpFormats> formats = isComputed(op) ? target->formatsOf(&op) : std::nullopt)
        rows.push_back({dmir::nodeName(&op), op.getName().stripDialect().str(), llvm::join(formats->operands, " "),
                        formats->result});
  });
  if (rows.size() == 1)
    return "";
  std::array<size_t, 4> widths{};
  for (const auto &row : rows)
    for (size_t i = 0; i + 1 < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  std::string text = "formats:\n";
  for (const auto &row : rows) {
    for (size_t i = 0; i + 1 < row.size(); ++i)
      text += "  " + row[i] + std::string(widths[i] - row[i].size(), ' ');
    text += "  " + row.back() + "\n";
  }
  return text;
}

static bool checkRules(ModuleOp module, const Options &options, const PhaseContext &context, Diagnostics &diagnostics) {
  bool good = true;
  std::vector<bool> matched(options.place.size());
  module.walk([&](dmir::RegionOp region) {
    for (Operation &op : *region.getBlock()) {
      std::string node = dmir::nodeName(&op);
      const PlaceRule *rule = nullptr;
      for (size_t i = 0; i < options.place.size(); ++i)
        if (fnmatch(options.place[i].glob.c_str(), node.c_str(), 0) == 0) {
          matched[i] = true;
          rule = &options.place[i];
        }
      if (!rule || !isComputed(op) || region.getDevice() == rule->target)
        continue;
      Diagnostic wrong;
      wrong.id = "placement";
      wrong.kind = ErrorKind::Constraint;
      wrong.file = options.model;
      wrong.node = node;
      const TargetBackend *target = context.target(rule->target);
      std::optional<std::string> refusal =
          target ? target->refuses(&op) : std::optional<std::string>("it is not among the -t targets");
      wrong.text = "--place " + rule->glob + "=" + rule->target + " cannot be met: " + rule->target + " " +
                   (refusal ? "refuses: " + *refusal : "was not chosen; the node runs on " + region.getDevice().str());
      diagnostics.report(std::move(wrong));
      good = false;
    }
  });
  for (size_t i = 0; i < matched.size(); ++i)
    if (!matched[i]) {
      Diagnostic unused;
      unused.severity = Severity::Warning;
      unused.id = "place-unused";
      unused.file = options.model;
      unused.text = "--place " + options.place[i].glob + "=" + options.place[i].target + " matches no node";
      diagnostics.report(std::move(unused));
    }
  return good;
}

bool checkPlacement(ModuleOp module, const Options &options, const PhaseContext &context, Diagnostics &diagnostics) {
  bool good = options.place.empty() || checkRules(module, options, context, diagnostics);
  Placement placement = placementOf(module);
  for (const RequireTarget &require : options.require) {
    int64_t ops = 0;
    for (const PlacedShare &share : placement.shares)
      if (share.target == require.target)
        ops = share.ops;
    double percent = placement.ops ? 100.0 * ops / placement.ops : 100.0;
    if (percent >= require.percent)
      continue;
    diagnostics.report(Error{ErrorKind::Constraint, llvm::formatv("--require-target {0}:{1} cannot be met: {2} of {3} "
                                                                  "ops run there; "
                                                                  "--placement-report FILE says why the others do not",
                                                                  require.target, require.percent, ops, placement.ops)
                                                        .str()},
                       "placement", options.model);
    good = false;
  }
  return good;
}

} // namespace dmxc::driver
