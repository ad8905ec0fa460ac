//===- PlacementReport.cpp - what is said of the placement ----------------===//
#include "Placement.h"
#include "PlacementSizes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace dmxc::driver {

/// Why an op is where it is: the targets asked before its own and their
/// refusals.
static std::string reasonOf(Operation &op, StringRef device, const PhaseContext &context) {
  std::string text, open;
  dmir::SymbolSet symbols;
  dmir::collectSymbols(&op, symbols);
  for (StringAttr symbol : symbols)
    open += (open.empty() ? " (open dims: " : ", ") + symbol.getValue().str();
  for (const TargetBackend *target : context.targets) {
    if (target->name() == device)
      return text.empty() ? "the first target that computes it" : text + (open.empty() ? "" : open + ")");
    std::optional<std::string> refusal = context.refusal(*target, &op);
    text += (text.empty() ? "" : "; ") + target->name().str() + ": " +
            refusal.value_or("computes it, but another was chosen");
  }
  return text;
}

static StringRef strategyName(DictionaryAttr strategy) {
  auto name = strategy ? strategy.getAs<StringAttr>(strategy::kAlgorithm) : StringAttr();
  return name ? name.getValue() : "";
}

/// The numbers that its target computes an op in, where it says so.
static std::string formatsOf(Operation &op, const TargetBackend *target) {
  std::optional<OpFormats> formats = target ? target->formatsOf(&op) : std::nullopt;
  if (!formats)
    return "-";
  std::string error = formats->error ? llvm::formatv(" (error {0:e2})", *formats->error).str() : "";
  return llvm::join(formats->operands, " ") + " -> " + formats->result + error;
}

std::string placementReport(ModuleOp module, const PhaseContext &context, const Placement &placement) {
  std::string text = "# " + placement.summary() + "\n# node\top\ttarget\ttask\talgorithm\treason\tformats\n";
  int64_t task = 0;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto region = dyn_cast<dmir::RegionOp>(op)) {
      for (Operation &inner : *region.getBlock())
        if (isComputed(inner))
          text += dmir::nodeName(&inner) + "\t" + inner.getName().getStringRef().str() + "\t" +
                  region.getDevice().str() + "\t" + std::to_string(task) + "\t" +
                  strategyName(region.getStrategyAttr()).str() + "\t" + reasonOf(inner, region.getDevice(), context) +
                  "\t" + formatsOf(inner, context.target(region.getDevice())) + "\n";
      ++task;
      return WalkResult::skip();
    }
    if (op->getDialect() && isComputed(*op))
      text += dmir::nodeName(op) + "\t" + op->getName().getStringRef().str() +
              (isa<dmir::IfOp, dmir::LoopOp>(op) ? "\t-\t-\tgraph\tthe runtime runs the graphs that it names\t-\n"
                                                 : "\t-\t-\tview\tno bytes move: another view of its operand\t-\n");
    return WalkResult::advance();
  });
  return text;
}

/// "a, b, c and 12 more"
static std::string someOf(ArrayRef<std::string> nodes) {
  constexpr size_t kMost = 5;
  std::string text = llvm::join(nodes.take_front(kMost), ", ");
  return nodes.size() > kMost ? text + " and " + std::to_string(nodes.size() - kMost) + " more" : text;
}

std::vector<std::string> misfitLines(const PhaseContext &context) {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> nodes; // by target and reason
  for (const auto &[place, reason] : context.misfits)
    nodes[{place.first, reason}].push_back(place.second);
  std::vector<std::string> lines;
  for (const auto &[why, names] : nodes)
    lines.push_back(std::to_string(names.size()) + (names.size() == 1 ? " node does not fit " : " nodes do not fit ") +
                    why.first + ": " + someOf(names) + " (" + why.second + ")");
  return lines;
}

static void reportUnmet(const PlaceRule &rule, Operation &op, StringRef device, const Options &options,
                        const PhaseContext &context, Diagnostics &diagnostics) {
  Diagnostic wrong;
  wrong.id = "placement";
  wrong.kind = ErrorKind::Constraint;
  wrong.file = options.model;
  wrong.node = dmir::nodeName(&op);
  const TargetBackend *target = context.target(rule.target);
  std::optional<std::string> refusal =
      target ? context.refusal(*target, &op) : std::optional<std::string>("it is not among the -t targets");
  wrong.text = "--place " + rule.glob + "=" + rule.target + " cannot be met: " + rule.target + " " +
               (refusal ? "refuses: " + *refusal
                        : "computes it in the task of another node alone, which runs on " + device.str());
  diagnostics.report(std::move(wrong));
}

static void warnUnused(const char *id, const std::string &what, const Options &options, Diagnostics &diagnostics) {
  Diagnostic unused;
  unused.severity = Severity::Warning;
  unused.id = id;
  unused.file = options.model;
  unused.text = what + " matches no node that is computed, only constants, views or parts of others";
  diagnostics.report(std::move(unused));
}

static bool checkRules(ModuleOp module, const Options &options, const PhaseContext &context, Diagnostics &diagnostics) {
  bool good = true;
  std::vector<bool> matched(options.place.size());
  module.walk([&](dmir::RegionOp region) {
    for (Operation &op : *region.getBlock()) {
      if (!isComputed(op))
        continue;
      for (auto [i, rule] : llvm::enumerate(options.place))
        matched[i] = matched[i] || rule.matches(&op);
      const PlaceRule *rule = context.placeOf(&op);
      if (!rule || region.getDevice() == rule->target)
        continue;
      reportUnmet(*rule, op, region.getDevice(), options, context, diagnostics);
      good = false;
    }
  });
  for (auto [i, rule] : llvm::enumerate(options.place))
    if (!matched[i])
      warnUnused("place-unused", "--place " + rule.glob + "=" + rule.target, options, diagnostics);
  return good;
}

static void checkGlobs(ModuleOp module, const Options &options, Diagnostics &diagnostics) {
  for (const std::string &glob : options.keepPrecision) {
    auto found = module.walk([&](Operation *op) {
      bool isOne = op->getDialect() && isComputed(*op) && PlaceRule{glob, {}}.matches(op);
      return isOne ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (!found.wasInterrupted())
      warnUnused("keep-precision-unused", "--keep-precision " + glob, options, diagnostics);
  }
}

static bool checkShares(const Options &options, const PhaseContext &context, const Placement &placement,
                        Diagnostics &diagnostics) {
  bool good = true;
  for (const RequireTarget &require : options.require) {
    size_t nodes = placement.nodesAlone(require.target), all = placement.placed.size();
    if (!all || 100.0 * static_cast<double>(nodes) / static_cast<double>(all) >= require.percent)
      continue;
    Diagnostic wrong;
    wrong.id = "placement";
    wrong.kind = ErrorKind::Constraint;
    wrong.file = options.model;
    wrong.text =
        llvm::formatv("--require-target {0}:{1} cannot be met: {2} of the {3} nodes that are computed run there "
                      "alone; --placement-report FILE says why the others do not",
                      require.target, require.percent, nodes, all)
            .str();
    for (std::string &line : misfitLines(context))
      wrong.note(std::move(line));
    diagnostics.report(std::move(wrong));
    good = false;
  }
  return good;
}

bool checkPlacement(ModuleOp module, const Options &options, const PhaseContext &context, const Placement &placement,
                    Diagnostics &diagnostics) {
  bool good = options.place.empty() || checkRules(module, options, context, diagnostics);
  checkGlobs(module, options, diagnostics);
  return checkShares(options, context, placement, diagnostics) && good;
}

//===----------------------------------------------------------------------===//
// Targets that have nothing to do
//===----------------------------------------------------------------------===//

/// A word as a shell takes it.
static std::string forShell(const std::string &word) {
  if (llvm::all_of(word, [](char c) { return llvm::isAlnum(c) || StringRef("_=.:/-").contains(c); }))
    return word;
  std::string quoted = "'";
  for (char c : word)
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

namespace {

/// Sizes for open dims that the model's constraints allow, as far as some are found: one for what comes first in an
/// input, as a batch does.
class DimChoice {
public:
  DimChoice(ModuleOp module, const dmir::SymbolSet &open) : module(module) {
    for (auto function : module.getOps<func::FuncOp>())
      if (function.isPublic())
        for (Type type : function.getArgumentTypes())
          addInputs(dmir::dimsOf(type));
    ModelSizes sizes(module, [](StringRef) { return std::nullopt; });
    for (StringAttr symbol : open)
      for (const std::string &name : sizes.inputsOf(symbol))
        if (inputs.contains(name))
          wanted.insert(StringAttr::get(module.getContext(), name));
  }

  /// "--dim batch=1 --dim seq=128"; "" where no input has the dims.
  std::string flags() const {
    int64_t others = dmir::kNominalSize;
    for (int64_t size : {128, 64, 32, 16, 256, 512, 8, 4, 2, 1})
      if (allowed(size)) {
        others = size;
        break;
      }
    std::string text;
    for (StringAttr symbol : wanted) {
      std::string flag = symbol.str() + "=" + std::to_string(sizeOf(symbol, others));
      text += (text.empty() ? "--dim " : " --dim ") + forShell(flag);
    }
    return text;
  }

private:
  void addInputs(ArrayRef<Dim> dims) {
    for (auto [axis, dim] : llvm::enumerate(dims))
      if (std::optional<std::string> name = dim.symbolName()) {
        inputs.insert(*name);
        if (axis == 0 && dims.size() > 1)
          batches.insert(*name);
      }
  }

  int64_t sizeOf(StringRef symbol, int64_t others) const {
    return dmir::nominalSize(module, symbol, batches.contains(symbol) ? 1 : others);
  }

  /// As far as only inputs decide.
  bool allowed(int64_t others) const {
    ModelSizes sizes(module, [&](StringRef symbol) -> std::optional<int64_t> {
      return inputs.contains(symbol) ? std::optional(sizeOf(symbol, others)) : std::nullopt;
    });
    bool good = true;
    ModuleOp all = module;
    for (auto function : all.getOps<func::FuncOp>())
      if (auto list = function->getAttrOfType<ArrayAttr>(dmir::kConstraintsAttr))
        for (Attribute attr : list)
          if (std::optional<dmir::DimConstraint> constraint = dmir::constraintOf(attr)) {
            std::optional<int64_t> lhs = sizes.of(constraint->lhs), rhs = sizes.of(constraint->rhs);
            good &= !lhs || !rhs || dmir::holds(constraint->kind, *lhs, *rhs);
          }
    return good;
  }

  ModuleOp module;
  llvm::StringSet<> inputs, batches;
  dmir::SymbolSet wanted;
};

} // namespace

void warnOfIdleTargets(ModuleOp module, const Options &options, const Placement &placement, bool takesDims,
                       Diagnostics &diagnostics) {
  for (const PlacedShare &share : placement.shares) {
    bool idle = share.nodes.empty() || (placement.multiplyAdds > 0 && !share.hasProducts());
    if (!share.isNamed || !idle || placement.placed.empty() || share.reason.empty())
      continue;
    Diagnostic warning;
    warning.severity = Severity::Warning;
    warning.id = "placement-idle";
    warning.file = options.model;
    warning.text = "the target '" + share.target + "' computes " + placement.countText(share) + ": " + share.reason +
                   " (" + std::to_string(share.refused) + (placement.multiplyAdds > 0 ? " products)" : " nodes)");
    std::string flags = takesDims ? DimChoice(module, share.openDims).flags() : "";
    if (!flags.empty())
      warning.help("fix the open dims, for example: " + flags);
    warning.help("--placement-report - says of every node where it runs and why");
    diagnostics.report(std::move(warning));
  }
}

} // namespace dmxc::driver
