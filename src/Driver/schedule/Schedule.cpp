//===- Schedule.cpp - the --schedule transform scripts --------------------===//
#include "Schedule.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Text.h"
#include "dmxc/Dialect/Transform/Passes.h"
#include "dmxc/Phases/Decisions.h"
#include "dmxc/Phases/PhaseTable.h"
#include "dmxc/Support/MappedFile.h"

#include "mlir/Dialect/Affine/TransformOps/AffineTransformOps.h"
#include "mlir/Dialect/Bufferization/TransformOps/BufferizationTransformOps.h"
#include "mlir/Dialect/Func/TransformOps/FuncTransformOps.h"
#include "mlir/Dialect/Linalg/TransformOps/DialectExtension.h"
#include "mlir/Dialect/MemRef/TransformOps/MemRefTransformOps.h"
#include "mlir/Dialect/SCF/TransformOps/SCFTransformOps.h"
#include "mlir/Dialect/Transform/LoopExtension/LoopExtension.h"
#include "mlir/Dialect/Transform/TuneExtension/TuneExtension.h"
#include "mlir/Dialect/Vector/TransformOps/VectorTransformOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Transforms/Passes.h"

#include <mutex>

using namespace mlir;

namespace dmxc::driver {

/// The passes that a script may name. Others write files, print graphs, take names away, or cannot work on regions.
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
}

void registerTransformOps(DialectRegistry &registry) {
  transform::registerTransformExtension(registry);
  mlir::transform::registerLoopExtension(registry);
  mlir::transform::registerTuneExtension(registry);
  linalg::registerTransformDialectExtension(registry);
  scf::registerTransformDialectExtension(registry);
  affine::registerTransformDialectExtension(registry);
  vector::registerTransformDialectExtension(registry);
  func::registerTransformDialectExtension(registry);
  memref::registerTransformDialectExtension(registry);
  bufferization::registerTransformDialectExtension(registry);
}

/// Our ops and upstream's, and the passes that a script may name.
static void registerTransforms(MLIRContext &context) {
  DialectRegistry registry;
  registerTransformOps(registry);
  context.appendDialectRegistry(registry);
  context.getOrLoadDialect<mlir::transform::TransformDialect>();
  static std::once_flag once;
  std::call_once(once, registerPasses);
}

std::string placeText(Location place, bool column) {
  auto line = dyn_cast<FileLineColLoc>(place);
  if (!line)
    return "";
  std::string text = line.getFilename().str() + ":" + std::to_string(line.getLine());
  return column ? text + ":" + std::to_string(line.getColumn()) : text;
}

Schedule::Schedule(MLIRContext &context, const PhaseContext &phases, Diagnostics &diagnostics)
    : context(context), phases(phases), diagnostics(diagnostics) {
  registerTransforms(context);
}

Schedule::~Schedule() = default;

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {

/// Holds messages back, so that they can be said in other words.
class Held {
public:
  explicit Held(MLIRContext &context)
      : engine(context.getDiagEngine()), handler(&context, [this](mlir::Diagnostic &diagnostic) {
          held.push_back(std::move(diagnostic));
          return success();
        }) {}

  std::vector<mlir::Diagnostic> take() { return std::move(held); }

private:
  DiagnosticEngine &engine;
  std::vector<mlir::Diagnostic> held;
  ScopedDiagnosticHandler handler;
};

} // namespace

bool Schedule::load(const std::vector<std::string> &paths,
                    const std::vector<std::pair<std::string, std::string>> &given) {
  set = given;
  for (const std::string &path : paths) {
    Script &script = scripts.emplace_back();
    script.path = path;
    if (!read(script) || !findEntry(script) || !guard(script))
      return false;
  }
  return true;
}

/// Inner ops before outer ones: a sequence asks its ops for their effects before MLIR has verified them.
static bool isSound(ModuleOp script) {
  WalkResult inner = script.walk([](Operation *op) {
    bool isOuter = isa<ModuleOp, mlir::transform::NamedSequenceOp>(op);
    return isOuter || succeeded(verify(op, /*verifyRecursively=*/false)) ? WalkResult::advance()
                                                                         : WalkResult::interrupt();
  });
  return !inner.wasInterrupted() && succeeded(verify(script));
}

bool Schedule::read(Script &script) {
  if (StringRef(script.path).ends_with(".py")) {
    diagnostics.report(modelError("is Python, which dmxc does not run; print its script and give that: python3 -m "
                                  "dmxsched " +
                                  script.path + " -o " + StringRef(script.path).drop_back(3).str() + ".mlir"),
                       "schedule-script", script.path);
    return false;
  }
  auto file = MappedFile::open(script.path); // which refuses a pipe, that would be waited for
  if (!file) {
    diagnostics.report(file.error(), "io", script.path);
    return false;
  }
  auto bytes = (*file)->bytes();
  script.text.assign(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  std::vector<mlir::Diagnostic> messages;
  {
    Held held(context);
    script.module = dmir::parseText(script.text, script.path, context, /*verifies=*/false);
    if (script.module && !isSound(*script.module))
      script.module = nullptr;
    messages = held.take();
  }
  for (mlir::Diagnostic &message : messages)
    rewrite(message);
  return bool(script.module);
}

/// Behind which scripts may run, as text.
std::string Schedule::stopNames() const {
  std::string names = "\"" + kPartition.str() + "\"";
  for (const Stop &stop : stops(phases))
    if (stop.stage)
      names += ", \"" + stop.name + "\"";
  return names;
}

bool Schedule::findEntry(Script &script) {
  constexpr StringLiteral main = mlir::transform::TransformDialect::kTransformEntryPointSymbolName;
  auto fail = [&](const std::string &text) {
    diagnostics.report(modelError(text), "schedule-script", script.path);
    return false;
  };
  for (auto sequence : script.module->getOps<mlir::transform::NamedSequenceOp>()) {
    Attribute hook = sequence->getAttr("dmx.at");
    auto name = dyn_cast_or_null<StringAttr>(hook);
    if (const std::string known = stopNames(); hook && (!name || !StringRef(known).contains(valueText(hook))))
      return fail("@" + sequence.getName().str() + " is to run at " + valueText(hook) +
                  "; in this compile scripts run " + "behind " + known);
    if (!hook && sequence.getName() != main)
      continue;
    if (script.entry)
      return fail("the script has two entries, @" + script.entry.getName().str() + " and @" + sequence.getName().str() +
                  "; put one of them into a file of its own: --schedule may be repeated");
    script.entry = sequence;
    if (hook)
      script.stop = name.getValue();
  }
  if (!script.entry)
    return fail("the script has no transform.named_sequence @__transform_main, nor one with {dmx.at = \"partition\"}");
  if (script.entry.getBody().empty() || script.entry.getBody().getNumArguments() != 1)
    return fail("@" + script.entry.getName().str() + " takes one argument, the model: (%m: !transform.any_op)");
  return true;
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

/// How the script calls the value that an op at `place` makes; "" where that cannot be seen.
std::string Schedule::handleAt(Location place) const {
  auto line = dyn_cast<FileLineColLoc>(place);
  for (const Script &script : scripts) {
    if (!line || line.getFilename() != script.path)
      continue;
    StringRef rest(script.text);
    for (unsigned i = 1; i < line.getLine(); ++i)
      rest = rest.split('\n').second;
    StringRef before = rest.split('\n').first.take_front(line.getColumn() ? line.getColumn() - 1 : 0).rtrim();
    if (!before.consume_back("="))
      before = rest.split('\n').first.drop_front(std::min<size_t>(before.size(), rest.size())); // an argument itself
    size_t percent = before.rfind('%');
    StringRef name = percent == StringRef::npos ? StringRef() : before.drop_front(percent + 1);
    return name.take_while([](char c) { return llvm::isAlnum(c) || StringRef("_$.-").contains(c); }).str();
  }
  return "";
}

/// Says what MLIR says of scripts as our messages are; emits it.
void Schedule::rewrite(mlir::Diagnostic &diagnostic) {
  std::string text = diagnostic.str();
  StringRef view = text;
  mlir::Diagnostic better(diagnostic.getLocation(), diagnostic.getSeverity());
  bool keepNotes = true;
  if (view.contains("invalidated by a previously executed transform op")) {
    std::string handle, by, where;
    for (mlir::Diagnostic &note : diagnostic.getNotes()) {
      if (StringRef(note.str()).starts_with("handle to invalidated ops"))
        handle = handleAt(note.getLocation());
      if (StringRef(note.str()).starts_with("invalidated by this transform op")) {
        where = placeText(note.getLocation(), /*column=*/false);
        for (Script &script : scripts)
          script.module->walk([&](Operation *op) {
            if (op->getLoc() == note.getLocation())
              by = op->getName().getStringRef();
          });
      }
    }
    better << "'" << (handle.empty() ? "the handle" : handle) << "' was consumed by '" << by << "' at " << where
           << "; go on with the handles that it returned [schedule-consumed]";
    keepNotes = false;
  } else if (size_t at = view.find("'transform.");
             at != StringRef::npos && (view.contains("is unknown") || view.contains("unregistered"))) {
    StringRef name = view.substr(at + 1).split('\'').first;
    std::vector<std::string> names;
    for (RegisteredOperationName known : context.getRegisteredOperations())
      if (known.getStringRef().starts_with("transform."))
        names.push_back(known.getStringRef().str());
    better << "there is no op '" << name << "'" << transform::nearName(name, names) << " [schedule-script]";
    keepNotes = false;
  } else {
    better << text;
  }
  if (keepNotes)
    for (mlir::Diagnostic &note : diagnostic.getNotes())
      better.attachNote(note.getLocation()) << note.str();
  context.getDiagEngine().emit(std::move(better));
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

bool Schedule::hasScriptsAt(StringRef stop) const {
  return llvm::any_of(scripts, [&](const Script &script) { return script.stop == stop; });
}

bool Schedule::apply(ModuleOp module, StringRef stop) {
  seen.clear();
  open.reset();
  refused.reset();
  for (Script &script : scripts) {
    if (script.stop != stop)
      continue;
    std::vector<mlir::Diagnostic> messages;
    LogicalResult done = failure();
    {
      Held held(context);
      done = mlir::transform::applyTransforms(
          module, cast<mlir::transform::TransformOpInterface>(script.entry.getOperation()), {},
          mlir::transform::TransformOptions().enableExpensiveChecks(), /*enforceToplevelTransformOp=*/false,
          [&](mlir::transform::TransformState &state) { state.addExtension<transform::ScheduleExtension>(*this); });
      messages = held.take();
    }
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
  Entries before = entriesOf(module);
  return apply(module, stop) && (stop != kPartition || checkKnobs()) && checkModel(module, before);
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
      return domainValue(value);
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
  return preferred ? checked(preferred, ", its default") : Result<Attribute>(domain.at(0));
}

} // namespace dmxc::driver
