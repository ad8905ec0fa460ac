//===- Compilation.cpp - one model on its way to a bundle -----------------===//
#include "dmxc/Driver/Compilation.h"
#include "../options/OptionValues.h"
#include "../reports/DiagnosticRouter.h"
#include "../reports/PassTimes.h"
#include "../reports/Placement.h"
#include "../schedule/Schedule.h"
#include "ModelFolder.h"
#include "Work.h"

#include "dmxc/Dialect/DLIR/DLIR.h"
#include "dmxc/Dialect/DMIR/DataFiles.h"
#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Dialect/DMIR/Text.h"
#include "dmxc/Driver/PromisedMasks.h"
#include "dmxc/Driver/Registry.h"
#include "dmxc/Phases/Sparsity.h"
#include "dmxc/Reference/Interpreter.h"
#include "dmxc/Support/MappedFile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/ThreadPool.h"

#include <filesystem>

using namespace mlir;

namespace dmxc::driver {

void registerDialects(DialectRegistry &registry) {
  registry.insert<dmir::DMIRDialect, dlir::DLIRDialect, func::FuncDialect>();
}

Compilation::Compilation(const Options &options, Diagnostics &diagnostics)
    : options(options), diagnostics(diagnostics) {
  DialectRegistry registry;
  registerDialects(registry);
  mlirContext = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  mlirContext->loadAllAvailableDialects();
  if (options.jobs > 1) {
    threads = std::make_unique<llvm::DefaultThreadPool>(llvm::hardware_concurrency(options.jobs));
    mlirContext->setThreadPool(*threads);
  }
  router = std::make_unique<DiagnosticRouter>(*mlirContext, diagnostics, options.model);
}

Compilation::~Compilation() = default;

std::unique_ptr<Compilation> Compilation::create(const Options &options, Diagnostics &diagnostics) {
  std::unique_ptr<Compilation> compilation(new Compilation(options, diagnostics));
  return compilation->makeTargets() ? std::move(compilation) : nullptr;
}

bool Compilation::makeTargets() {
  std::vector<TargetChoice> choices = options.targets;
  if (choices.empty() && !registeredTargets().empty())
    choices.push_back({registeredTargets().front().name, {}});
  for (const TargetChoice &choice : choices) {
    const TargetInfo *info = findTarget(choice.name);
    if (!info) {
      diagnostics.report(usageError("unknown target '" + choice.name + "'"), "usage");
      return false;
    }
    if (phaseCtx.target(choice.name)) {
      diagnostics.report(usageError("target '" + choice.name +
                                    "' is given twice; join the levels with '+', for example " +
                                    exampleOf(choice.name)),
                         "usage");
      return false;
    }
    std::unique_ptr<TargetBackend> target = createTarget(*info, choice, options.numerics);
    if (!target)
      return false;
    addTarget(std::move(target));
  }
  auto any = [&](bool (TargetBackend::*obeys)() const) {
    return llvm::any_of(targets, [&](const auto &target) { return (*target.*obeys)(); });
  };
  if (Status s = checkKept(options, any(&TargetBackend::mayKeepNodes), any(&TargetBackend::mayLimitError)); !s) {
    diagnostics.report(s.error(), "usage");
    return false;
  }
  if (!addHostTarget())
    return false;
  DialectRegistry registry; // what targets know is there before any text is read
  for (const auto &target : targets)
    target->registerDialects(registry);
  mlirContext->appendDialectRegistry(registry);
  phaseCtx.optLevel = options.optLevel;
  phaseCtx.jobs = options.jobs;
  phaseCtx.states = options.states;
  phaseCtx.stateType = options.stateType;
  phaseCtx.places = options.place;
  phaseCtx.keptPrecision = options.keepPrecision;
  phaseCtx.maxError = options.maxError;
  phaseCtx.checkStrategies = !options.from.empty() || hasSchedules();
  phaseCtx.report = [this](const TargetBackend &target, const Error &error) {
    if (!moveMisfits(target, error))
      diagnostics.report(error, "schedule", options.model);
  };
  return true;
}

/// The other targets that have a mode, where `one` may lack it.
static std::string whoseNumerics(const TargetInfo &one, const std::string &numerics) {
  std::string names;
  TargetOptions options;
  options.numerics = numerics;
  for (const TargetInfo &other : registeredTargets())
    if (!numerics.empty() && !one.create(options) && other.create(options))
      names += (names.empty() ? "" : ", ") + other.name;
  return names;
}

std::unique_ptr<TargetBackend> Compilation::createTarget(const TargetInfo &info, const TargetChoice &choice,
                                                         const std::string &numerics) {
  TargetOptions targetOptions;
  targetOptions.levels = choice.levels;
  targetOptions.optLevel = options.optLevel;
  targetOptions.jobs = options.jobs;
  targetOptions.numerics = numerics;
  targetOptions.saveTempsDir = options.saveTemps;
  Result<std::unique_ptr<TargetBackend>> target = info.create(targetOptions);
  if (!target) {
    Error error = target.takeError();
    if (std::string others = whoseNumerics(info, numerics); !others.empty())
      error.message += "; of " + others + " it is one";
    diagnostics.report(error, "target-option");
    return nullptr;
  }
  return std::move(*target);
}

void Compilation::addTarget(std::unique_ptr<TargetBackend> target) {
  phaseCtx.targets.push_back(target.get());
  targets.push_back(std::move(target));
}

bool Compilation::addHostTarget() {
  if (llvm::any_of(targets, [](const auto &target) { return target->runsOnHost(); }))
    return true;
  for (const TargetInfo &info : registeredTargets()) {
    std::unique_ptr<TargetBackend> target = createTarget(info, {info.name, {}}, /*numerics=*/"");
    if (!target)
      return false;
    if (!target->runsOnHost())
      continue;
    addTarget(std::move(target));
    return true;
  }
  return true;
}

bool Compilation::guarded(const char *step, ErrorKind kind, const std::function<bool()> &work) {
  setCurrentWork(step);
  size_t before = diagnostics.errorCount();
  auto start = Clock::now();
  size_t row = timeRows.size();
  timeRows.push_back({step, "", 0});
  bool done = work();
  timeRows[row].seconds = secondsSince(start);
  if (done) {
    // A step that succeeded may have warned; an error message beside success is
    // a contradiction of ours.
    return router->flush(ErrorKind::Internal, step) == 0;
  }
  if (diagnostics.errorCount() != before) { // said by the step itself; what
                                            // MLIR said besides follows from it
    router->drop();
    return false;
  }
  ScopedDiagnosticHandler silence(mlirContext.get(), [](mlir::Diagnostic &) { return success(); });
  bool broken = theModule && failed(verify(*theModule));
  if (router->flush(broken ? ErrorKind::Internal : kind, broken ? "internal-verifier" : step) == 0)
    diagnostics.report(Error{ErrorKind::Internal, std::string("step '") + step + "' failed without saying why"},
                       "internal", options.model);
  return false;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static Result<std::string> readHead(const std::string &path) {
  Result<std::shared_ptr<const MappedFile>> file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  auto bytes = (*file)->bytes().first(std::min<size_t>((*file)->bytes().size(), 4096));
  return std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size());
}

const Frontend *Compilation::chooseFrontend() {
  Result<std::string> head = readHead(options.model);
  if (!head) {
    diagnostics.report(head.error(), "io", options.model);
    return nullptr;
  }
  if (options.inputFormat != "auto") {
    if (const Frontend *frontend = findFrontend(options.inputFormat))
      return frontend;
    diagnostics.report(usageError("--input-format " + options.inputFormat + ": this build has no such frontend"),
                       "usage");
    return nullptr;
  }
  for (const Frontend *frontend : registeredFrontends())
    if (frontend->recognises(options.model, llvm::ArrayRef<char>(head->data(), head->size())))
      return frontend;
  Diagnostic unknown;
  unknown.id = "input-format";
  unknown.file = options.model;
  unknown.text = "no frontend recognises this file";
  std::string names;
  for (const std::string &name : frontendNames())
    names += (names.empty() ? "" : ", ") + name;
  unknown.help("name the format with --input-format; this build reads: " + names);
  diagnostics.report(std::move(unknown));
  return nullptr;
}

/// What was given and would be ignored, or only be found after work is done.
bool Compilation::checkRequest() {
  for (const std::string &folder : options.externalDataDirs) {
    std::error_code code;
    if (std::filesystem::is_directory(folder, code))
      continue;
    diagnostics.report(ioError("--allow-external-data '" + folder +
                               "': " + (code ? code.message() : "it is not a folder") +
                               "; give the folder that the model's external data lies in"),
                       "io");
    return false;
  }
  return true;
}

/// A model computes something, or it is not what was meant.
bool Compilation::checkOutputs() {
  for (auto function : theModule->getOps<func::FuncOp>())
    if (function.isPublic() && function.getNumResults() == 0) {
      diagnostics.report(
          modelError("the model has no outputs, so there is nothing to compute; mark the tensors that are "
                     "wanted as its outputs and export it again"),
          "no-outputs", options.model);
      return false;
    }
  return true;
}

bool Compilation::importModel(const Frontend &frontend) {
  ImportOptions request;
  request.path = options.model;
  request.dims = options.dims;
  request.shapes = options.shapes;
  request.absent = options.absent;
  request.entry = options.entry;
  request.states = options.states;
  request.externalDataDirs = options.externalDataDirs;
  request.fold = [](Operation *op, llvm::ArrayRef<Tensor> operands,
                    std::string &why) -> std::optional<std::vector<Tensor>> {
    if (!reference::canEvaluate(op->getName())) {
      why = "'" + op->getName().getStringRef().str() + "' cannot be evaluated at compile time";
      return std::nullopt;
    }
    Result<std::vector<Tensor>> results = reference::evaluateOp(op, operands);
    if (results)
      return std::move(*results);
    if (results.error().kind == ErrorKind::IO)
      llvm::report_bad_alloc_error("constants"); // which ends as every lack of memory does
    why = results.error().message;
    return std::nullopt;
  };
  for (const Frontend *other : registeredFrontends())
    if (other->operators)
      request.operators[other->name] = other->operators;
  std::optional<ImportedModel> imported = frontend.import(*mlirContext, request, diagnostics);
  if (!imported)
    return false;
  if (options.decoder)
    takeDecoder(frontend, request, *imported);
  theModule = std::move(imported->module);
  inputs = std::move(imported->files);
  if (inputs.empty())
    inputs.push_back(options.model);
  inputs.insert(inputs.end(), options.configurations.begin(), options.configurations.end());
  inputs.insert(inputs.end(), kernelInputs.begin(), kernelInputs.end());
  sourceFormat = frontend.name;
  return succeeded(verify(*theModule)) && checkPlaces(imported->nodes);
}

/// Describes a decoder. Where its caches are to be states by themselves, the model is read again as such: for one
/// sequence, if it takes any number.
void Compilation::takeDecoder(const Frontend &frontend, ImportOptions request, ImportedModel &imported) {
  auto describe = [&](ImportedModel &model, Diagnostics &messages) {
    return describeDecoder(*model.module, *options.decoder, options.dims, options.model, messages);
  };
  DecoderStates states = describe(imported, diagnostics);
  const bool host = llvm::all_of(targets, [](const auto &target) { return target->runsOnHost(); });
  if (states.pairs.empty() || !host || !options.states.empty() || options.noStates)
    return;
  phaseCtx.states = request.states = states.pairs;
  phaseCtx.statesMayStay = true;
  request.dims.insert(states.dims.begin(), states.dims.end());
  Diagnostics said; // the same once more
  ScopedDiagnosticHandler silence(mlirContext.get(), [](mlir::Diagnostic &) { return success(); });
  std::optional<ImportedModel> again = frontend.import(*mlirContext, request, said);
  if (!again)
    return;
  imported = std::move(*again);
  describe(imported, said);
  if (states.batch.empty())
    return;
  Diagnostic note;
  note.severity = Severity::Note;
  note.id = "one-sequence";
  note.file = options.model;
  note.text = "the bundle is for one sequence ('" + states.batch + "' is 1), whose caches a session keeps; --dim " +
              states.batch + "=N is for N, --state none for any number";
  diagnostics.report(std::move(note));
}

bool Compilation::parsePhaseText() {
  inputs = {options.model};
  sourceFormat = "mlir";
  dmir::DataFiles::of(mlirContext.get()).admitBeside(options.model, options.externalDataDirs);
  theModule = dmir::parseTextFile(options.model, *mlirContext);
  if (!theModule || !resolveFiles() || !resolveKernels())
    return false;
  inputs.insert(inputs.end(), kernelInputs.begin(), kernelInputs.end());
  bool scheduled = !theModule->getOps<dlir::ProgramOp>().empty();
  bool regions = theModule->walk([](dmir::RegionOp) { return WalkResult::interrupt(); }).wasInterrupted();
  bool fits = StringRef(options.from).starts_with("schedule") ? scheduled
                                                              : !scheduled && (options.from != "frontend" || !regions);
  if (!fits)
    diagnostics.report(modelError("this is not what the phase '" + options.from + "' gives"), "phase-text",
                       options.model);
  return fits && checkPlaces(dmir::nodeNames(*theModule));
}

/// The files of a text's constants.
bool Compilation::resolveFiles() {
  bool good = true;
  std::set<std::string> files = dmir::resolveDataFiles(*theModule, [&](Operation *op, const Error &error) {
    Diagnostic refused;
    refused.severity = Severity::Error;
    refused.id = error.kind == ErrorKind::IO ? "io" : "text-file";
    refused.file = options.model;
    refused.node = dmir::nodeName(op->getLoc());
    refused.text = error.message;
    refused.kind = error.kind;
    diagnostics.report(std::move(refused));
    good = false;
  });
  inputs.insert(inputs.end(), files.begin(), files.end());
  return good;
}

/// Names of tensors, dims and the like end in C strings: of the C API, of tables beside kernels.
bool Compilation::checkNames() {
  llvm::SetVector<StringAttr> bad;
  AttrTypeWalker walker;
  walker.addWalk([&](StringAttr text) {
    if (text.getValue().contains('\0'))
      bad.insert(text);
  });
  theModule->walk([&](Operation *op) {
    walker.walk(op->getAttrDictionary());
    walker.walk(LocationAttr(op->getLoc())); // nodes are named there
  });
  for (StringAttr text : bad) {
    std::string shown;
    llvm::raw_string_ostream(shown).write_escaped(text.getValue());
    diagnostics.report(
        modelError("the name '" + shown + "' holds a byte 0, where every name in a bundle ends; rename it"), "names",
        options.model);
  }
  return bad.empty();
}

/// A text's facts are what targets leave work out by.
bool Compilation::checkSparsity() {
  std::vector<FalseFact> all = falseFacts(*theModule, [&](StringRef device) {
    const TargetBackend *target = phaseCtx.target(device);
    return target && target->stages().empty();
  });
  for (const FalseFact &fact : all) {
    Diagnostic refused;
    refused.severity = Severity::Error;
    refused.id = "sparsity";
    refused.file = options.model;
    refused.node = dmir::nodeName(fact.op);
    refused.text = "'dmir.sparsity' is false: " + fact.what + "; take the attribute away, facts are found anew";
    refused.kind = ErrorKind::Model;
    diagnostics.report(std::move(refused));
  }
  return all.empty();
}

bool Compilation::takePromises() {
  Status taken = promiseMasks(*theModule, options.masks);
  if (!taken)
    diagnostics.report(taken.error(), "usage", options.model);
  return bool(taken);
}

bool Compilation::chooseSparsity() {
  if (options.sparsity == "off")
    (*theModule)->setAttr(dmir::kSparsityAttr, StringAttr::get(mlirContext.get(), options.sparsity));
  return true;
}

bool Compilation::import() {
  if (options.emit == "bundle")
    beginDigest();
  // Scripts of the stop that a text is of run on the text.
  return importText() && (options.from.empty() || applySchedules(options.from));
}

bool Compilation::importText() {
  return guarded("import", ErrorKind::Model, [&] {
    if (!loadKernels())
      return false;
    if (!options.from.empty()) {
      Result<std::string> head = readHead(options.model);
      if (!head)
        diagnostics.report(head.error(), "io", options.model);
      return head && checkRequest() && parsePhaseText() && checkNames() && checkSparsity() && chooseSparsity();
    }
    if (!checkRequest())
      return false;
    const Frontend *frontend = isKernel() ? nullptr : chooseFrontend();
    bool imported = frontend ? importModel(*frontend) : isKernel() && importKernel();
    return imported && resolveKernels() && checkOutputs() && checkNames() && takePromises() && chooseSparsity();
  });
}

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

bool Compilation::runPhase(const Phase &phase) {
  return llvm::all_of(stops(phaseCtx), [&](const Stop &stop) { return stop.phase != &phase || runTo(stop); });
}

bool Compilation::runTo(const Stop &stop) {
  const bool devices = llvm::any_of(targets, [](const auto &target) { return !target->runsOnHost(); });
  if (stop.name == "partition" && !unplanned && devices && options.plansAgain)
    unplanned = theModule->clone();
  movedNodes = false;
  const bool ran = runOnce(stop);
  if (movedNodes)
    return planAgain(stop);
  if (!ran)
    noteSchedules(stop.name);
  if (ran && runsSchedules && !applySchedules(stop.name))
    return false;
  return ran && (!atStop || atStop(stop));
}

bool Compilation::runOnce(const Stop &stop) {
  return guarded(stop.name.c_str(), ErrorKind::Model, [&] {
    PassManager pm(mlirContext.get());
    pm.addInstrumentation(std::make_unique<PassTimes>(stop.name, timeRows));
    stop.build(pm, phaseCtx);
    if (failed(pm.run(*theModule)))
      return movedNodes;
    if (stop.name == "partition") {
      placed = std::make_unique<Placement>(placementOf(*theModule, phaseCtx, options));
      keepPlacement(*theModule, *placed);
    }
    return true;
  });
}

bool Compilation::runCodegen() {
  return guarded("codegen", ErrorKind::Internal, [&] {
    Result<CompiledModel> result = dmxc::runCodegen(*theModule, phaseCtx);
    if (!result) {
      diagnostics.report(result.error(), "codegen", options.model);
      return false;
    }
    compiled = std::make_unique<CompiledModel>(std::move(*result));
    return true;
  });
}

std::string Compilation::text() {
  std::string text;
  llvm::raw_string_ostream stream(text);
  OpPrintingFlags flags;
  flags.enableDebugInfo(/*enable=*/true, /*prettyForm=*/false);
  theModule->print(stream, flags);
  stream << "\n";
  return text;
}

} // namespace dmxc::driver
