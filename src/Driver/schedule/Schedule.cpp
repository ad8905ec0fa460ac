//===- Schedule.cpp - the --schedule transform scripts --------------------===//
#include "Schedule.h"

#include "HeldMessages.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/Transform/Forms.h"
#include "dmxc/Dialect/Transform/Passes.h"
#include "dmxc/Driver/Registry.h"
#include "dmxc/Phases/Decisions.h"
#include "dmxc/Phases/PhaseTable.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/SaveAndRestore.h"

#include <mutex>

using namespace mlir;

namespace dmxc::driver {

/// The context of the compile whose script runs, for the passes that it names.
static thread_local const PhaseContext *running = nullptr;

/// MLIR's passes that a script may name. Others write files, print graphs, take names away, or cannot work on regions.
static void registerPasses() {
  registerCanonicalizerPass();
  registerCSEPass();
  registerControlFlowSinkPass();
  registerInlinerPass();
  registerLoopInvariantCodeMotionPass();
  registerPrintIRPassPass();
  registerPrintOpStatsPass();
  registerSCCPPass();
  registerSymbolDCEPass();
  registerTopologicalSortPass();
  transform::registerAffinePasses();
  registerPhasePasses([]() -> const PhaseContext & { return *running; });
  DialectRegistry unused;
  for (const TargetInfo &target : registeredTargets())
    if (target.registerPasses)
      target.registerPasses(unused);
}

std::vector<std::string> Schedule::passNames() const {
  std::vector<std::string> names = {"canonicalize",
                                    "control-flow-sink",
                                    "cse",
                                    "inline",
                                    "print-ir",
                                    "loop-invariant-code-motion",
                                    "print-op-stats",
                                    "sccp",
                                    "symbol-dce",
                                    "topological-sort",
                                    "affine-permute-trip",
                                    "affine-promote-single",
                                    "affine-normalize-fuse",
                                    "affine-tile-scalrep"};
  llvm::append_range(names, phasePassNames(phases));
  return names;
}

Schedule::Schedule(MLIRContext &context, const PhaseContext &phases, Diagnostics &diagnostics)
    : context(context), phases(phases), diagnostics(diagnostics) {
  DialectRegistry registry;
  transform::registerTransformExtension(registry);
  context.appendDialectRegistry(registry);
  context.getOrLoadDialect<mlir::transform::TransformDialect>();
  llvm::SaveAndRestore<const PhaseContext *> mine(running, &phases);
  static std::once_flag once;
  std::call_once(once, registerPasses);
}

Schedule::~Schedule() = default;

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

mlir::transform::NamedSequenceOp Schedule::Script::at(StringRef stop) const {
  auto entry = llvm::find_if(entries, [&](const Entry &each) { return each.stop == stop; });
  return entry == entries.end() ? mlir::transform::NamedSequenceOp() : entry->sequence;
}

bool Schedule::hasScriptsAt(StringRef stop) const {
  return llvm::any_of(scripts, [&](const Script &script) { return bool(script.at(stop)); });
}

LogicalResult Schedule::interpret(mlir::transform::NamedSequenceOp entry, ModuleOp module,
                                  std::vector<mlir::Diagnostic> &messages) {
  Held held(context);
  llvm::SaveAndRestore<const PhaseContext *> mine(running, &phases);
  LogicalResult done = mlir::transform::applyTransforms(
      module, cast<mlir::transform::TransformOpInterface>(entry.getOperation()), {},
      mlir::transform::TransformOptions().enableExpensiveChecks(), /*enforceToplevelTransformOp=*/false,
      [&](mlir::transform::TransformState &state) { state.addExtension<transform::ScheduleExtension>(*this); });
  for (mlir::Diagnostic &message : held.take()) {
    StringRef text;
    std::string all = message.str();
    text = all;
    if (message.getSeverity() == DiagnosticSeverity::Remark && text.consume_back(transform::kLogMark))
      log += placeText(message.getLocation()) + ": " + text.str() + "\n";
    else
      messages.push_back(std::move(message));
  }
  return done;
}

bool Schedule::apply(ModuleOp module, StringRef stop) {
  seen.clear();
  open.reset();
  refused.reset();
  for (Script &script : scripts) {
    mlir::transform::NamedSequenceOp sequence = script.at(stop);
    if (!sequence)
      continue;
    std::vector<mlir::Diagnostic> messages;
    LogicalResult done = interpret(sequence, module, messages);
    if (refused && llvm::none_of(messages, [&](mlir::Diagnostic &message) {
          return StringRef(message.str()).contains(refused->text);
        }))
      refused.reset(); // the script has an alternative
    if (!open && !refused)
      for (mlir::Diagnostic &message : messages)
        rewrite(message);
    if (failed(done))
      return false;
  }
  return true;
}

bool Schedule::run(ModuleOp module, StringRef stop) {
  enumerates = false;
  values.clear();
  if (stop == kPartition)
    decidedBefore = decidingLines(module, phases, *this, diagnostics, SavedValues::Decided);
  Entries before = entriesOf(module);
  OwningOpRef<ModuleOp> untouched(module.clone());
  return apply(module, stop) && (stop != kPartition || checkKnobs()) && checkModel(module, before, *untouched, stop);
}

bool Schedule::runUpTo(ModuleOp module, const Values &given, std::optional<Parameter> &next,
                       std::optional<Refusal> &why) {
  enumerates = true;
  values = given;
  bool whole = apply(module);
  next = open;
  why = !open && !whole ? refused : std::nullopt;
  return open || why || (whole && checkKnobs());
}

/// The values that a decision may rest on: those whose parameters it reads, something before it, or another part of the
/// scripts.
Schedule::Values Schedule::reasonsOf(transform::DecideOp by) const {
  Values reasons;
  for (const auto &value : values) {
    auto row = seen.find(value.first);
    Operation *parameter = row == seen.end() ? nullptr : row->second.op;
    if (parameter && llvm::any_of(parameter->getUsers(), [&](Operation *user) {
          return user->getBlock() != by->getBlock() || !by->isBeforeInBlock(user);
        }))
      reasons.push_back(value);
  }
  return reasons;
}

void forgetDerived(Operation *op) {
  for (NamedAttribute attribute : op->getDiscardableAttrDictionary())
    if (attribute.getNameDialect() && attribute.getNameDialect()->getNamespace() != "dmir")
      op->removeDiscardableAttr(attribute.getName());
}

/// Regions that read a constant which `region` reads: how one has it packed may be what another one relies on.
static llvm::SetVector<Operation *> sharers(dmir::RegionOp region) {
  llvm::SetVector<Operation *> others;
  for (Value input : region.getInputs())
    if (dmir::isConstant(input))
      for (Operation *user : input.getUsers())
        if (isa<dmir::RegionOp>(user) && user != region)
          others.insert(user);
  return others;
}

/// Derives a region's strategy anew from what is decided of it, and what its target writes to ops besides.
static Status derive(const PhaseContext &phases, dmir::RegionOp region, DictionaryAttr decided) {
  DictionaryAttr before = region.getStrategyAttr();
  SmallVector<std::pair<Operation *, DictionaryAttr>> ops;
  for (Operation &op : *region.getBlock()) {
    ops.emplace_back(&op, op.getDiscardableAttrDictionary());
    forgetDerived(&op);
  }
  Builder b(region.getContext());
  region.setStrategyAttr(b.getDictionaryAttr(b.getNamedAttr(strategy::kDecided, decided)));
  Result<DictionaryAttr> strategy = completeStrategy(*phases.target(region.getDevice()), region);
  region.setStrategyAttr(strategy ? *strategy : before);
  if (!strategy)
    for (auto [op, attributes] : ops)
      op->setDiscardableAttrs(attributes);
  return strategy ? Status::ok() : Status(strategy.takeError());
}

/// What is decided of a product, as its region has it: a name that the region has is the region's; others are the
/// product's own, by its node, where there are several.
static DictionaryAttr ofProduct(const TargetBackend *target, dmir::RegionOp region, Operation *product,
                                DictionaryAttr decided) {
  if (!target || llvm::count_if(*region.getBlock(), [](Operation &op) { return transform::isProduct(&op); }) < 2)
    return decided;
  std::vector<Decision> known = target->decisions(region, decidedOf(region));
  NamedAttrList all, own;
  for (NamedAttribute entry : decided) {
    bool ofRegion = llvm::any_of(known, [&](const Decision &decision) {
      return decision.scope.empty() && decision.name == entry.getName().getValue();
    });
    (ofRegion || isa<DictionaryAttr>(entry.getValue()) ? all : own).push_back(entry);
  }
  if (!own.empty())
    all.set(dmir::nodeName(product), own.getDictionary(region.getContext()));
  return all.getDictionary(region.getContext());
}

Status Schedule::decide(Operation *op, DictionaryAttr decided, transform::DecideOp by) {
  auto region = dyn_cast<dmir::RegionOp>(op);
  if (!region) {
    region = op->getParentOfType<dmir::RegionOp>();
    decided = ofProduct(phases.target(region.getDevice()), region, op, decided);
  }
  std::string place = placeText(by.getLoc());
  Status done = decide(region, decided, place);
  if (Values reasons = enumerates && !done ? reasonsOf(by) : Values(); !reasons.empty())
    refused = Refusal{place, done.error().message, std::move(reasons)};
  return done;
}

Status Schedule::decide(dmir::RegionOp region, DictionaryAttr decided, const std::string &who) {
  const TargetBackend *target = phases.target(region.getDevice());
  if (!target)
    return modelError("node '" + dmir::nodeName(region) + "' is for the device '" + region.getDevice().str() +
                      "', which is no target of this compile");
  if (!decidedOf(region))
    return modelError("'decided' of the strategy of node '" + dmir::nodeName(region) + "' is no dictionary");
  if (Status s = derive(phases, region, mergeDecided(decidedOf(region), decided)); !s)
    return s;
  for (Operation *op : sharers(region))
    if (auto other = cast<dmir::RegionOp>(op); phases.target(other.getDevice()) && decidedOf(other))
      if (Status s = derive(phases, other, decidedOf(other)); !s)
        return s;
  for (NamedAttribute entry : decided)
    if (auto scope = dyn_cast<DictionaryAttr>(entry.getValue()))
      for (NamedAttribute inner : scope)
        deciders[{region, entry.getName().str() + "." + inner.getName().str()}] = who;
    else
      deciders[{region, "." + entry.getName().str()}] = who;
  return Status::ok();
}

std::string Schedule::decider(dmir::RegionOp region, const std::string &scope, const std::string &name) const {
  for (const std::string &key : {scope + "." + name, "." + name})
    if (auto found = deciders.find({region, key}); found != deciders.end())
      return found->second;
  return "";
}

/// A value as --set has it: a number, true, false, or else a text.
static Attribute valueOf(StringRef text, MLIRContext *context) {
  Builder b(context);
  int64_t number = 0;
  if (!text.getAsInteger(10, number))
    return b.getI64IntegerAttr(number);
  if (text == "true" || text == "false")
    return b.getBoolAttr(text == "true");
  return b.getStringAttr(text);
}

Result<Attribute> Schedule::parameter(transform::ParamOp op, const Domain &domain, Attribute preferred) {
  std::string name = op.getName().str();
  auto [row, isNew] = seen.try_emplace(name, Parameter{name, domain, op});
  if (!isNew && row->second.op != op)
    return modelError("'" + name + "' is the parameter at " + placeText(row->second.op->getLoc()) +
                      " already; give this one another name");
  auto checked = [&](Attribute value, const std::string &what) -> Result<Attribute> {
    if (domain.contains(value))
      return chosen[name] = domainValue(value);
    return modelError("'" + name + "' cannot be " + valueText(value) + what + "; its values are " + domain.str());
  };
  for (const auto &[known, text] : set)
    if (known == name)
      return checked(valueOf(text, &context), ", as --set says");
  for (const auto &[known, value] : values)
    if (known == name)
      return checked(value, "");
  if (enumerates) {
    open = Parameter{name, domain, op};
    return Error{ErrorKind::Constraint, "the parameter '" + name + "' is open"};
  }
  return checked(preferred ? preferred : domain.at(0), ", its default");
}

} // namespace dmxc::driver
