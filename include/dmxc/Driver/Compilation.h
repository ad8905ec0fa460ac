//===- Compilation.h - one model on its way to a bundle ---------*- C++ -*-===//
//
// The steps of a compile, one call each, so that dmxc, dmx-compare and the
// tests stop where they need to.
//
//   auto compilation = Compilation::create(options, diagnostics);
//   if (!compilation || !compilation->import())
//     return diagnostics.exitCode();
//   for (const Phase &phase : phases()) ...
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Driver/Options.h"
#include "dmxc/Phases/Codegen.h"
#include "dmxc/Phases/PhaseTable.h"
#include "dmxc/Support/Diagnostic.h"

#include <future>

namespace llvm {
class ThreadPoolInterface;
} // namespace llvm

namespace dmxc::driver {

class DiagnosticRouter;
class Schedule;
struct Placement;

/// What took how long; rows in the order they were met, passes under their
/// phase.
struct TimeRow {
  std::string phase; ///< a phase's name, "import" or "write"
  std::string pass;  ///< "" for the whole phase
  double seconds = 0;
};

/// One compile. Not thread-safe; several may live at once. Every function that
/// can fail has reported why when it returns false, and the compilation is of
/// no further use then.
class Compilation {
public:
  /// Makes the targets. Null after an error was reported. `options` and
  /// `diagnostics` must outlive the result.
  static std::unique_ptr<Compilation> create(const Options &options, Diagnostics &diagnostics);
  ~Compilation();

  /// Reads the model, or with --from the text of a phase.
  bool import();
  /// Runs one phase; not for codegen.
  bool runPhase(const Phase &phase);
  /// Runs what leads from one stop to the next; not for codegen. Where nodes turn out not to fit the target that
  /// partition chose, they move to the host, and all from partition on runs again.
  bool runTo(const Stop &stop);
  /// Whether what is computed where may still change: nothing before the end of phase schedule is final then.
  bool mayPlanAgain() const;
  /// Called at the end of runTo, and for each stop that it runs again; false ends the compile.
  void afterStops(std::function<bool(const Stop &stop)> work) { atStop = std::move(work); }
  /// The codegen phase; `model()` holds its result afterwards.
  bool runCodegen();
  /// True where something decides besides the targets: records of tuning, scripts.
  bool hasSchedules() const;
  /// Applies the --schedule scripts of a stop to the module, behind it; behind partition the records of tuning before
  /// them. runTo does.
  bool applySchedules(llvm::StringRef stop);
  /// From now on runTo leaves scripts to who calls applySchedules.
  void leaveSchedules() { runsSchedules = false; }
  /// Which forms ops of the scripts needed, and what was done for them.
  std::string scheduleLog() const;
  /// Files that scripts include.
  std::vector<std::string> includedSchedules() const;
  /// Runs `work` as a step of this compile: what MLIR says meanwhile becomes messages about the model.
  bool runStep(const char *name, const std::function<bool()> &work) { return guarded(name, ErrorKind::Model, work); }
  /// What is free of each region's strategy, and who chose what it has; behind applySchedules.
  std::string explainDecisions();
  /// A script that decides all that is decided, and does what else the scripts do; behind applySchedules.
  std::string savedSchedule();
  /// Says which micro-kernels shall be called and are not; behind partition.
  void warnOfIdleKernels(Diagnostics &idle);
  /// Writes the bundle at options.output (`path` if given). Needs runCodegen.
  bool writeBundle(const std::string &path);

  mlir::ModuleOp module() { return *theModule; }
  mlir::MLIRContext &context() { return *mlirContext; }
  const PhaseContext &phaseContext() const { return phaseCtx; }
  /// Which target computes what; null before the phase partition ran.
  const Placement *placement() const { return placed.get(); }
  CompiledModel &model() { return *compiled; }
  /// The model file and everything read besides it.
  const std::vector<std::string> &files() const { return inputs; }
  /// The name of the front end that read the model; "mlir" for a phase's text.
  const std::string &format() const { return sourceFormat; }
  const std::vector<TimeRow> &times() const { return timeRows; }
  /// After writeBundle.
  uint64_t bundleBytes() const { return bytes; }
  /// The module's text with locations, as --emit gives it.
  std::string text();

private:
  Compilation(const Options &options, Diagnostics &diagnostics);
  bool makeTargets();
  /// What the chosen targets refuse the host computes: adds a target for it when none was chosen.
  bool addHostTarget();
  /// A target with the user's options; null after an error was reported.
  std::unique_ptr<TargetBackend> createTarget(const TargetInfo &info, const TargetChoice &choice,
                                              const std::string &numerics);
  void addTarget(std::unique_ptr<TargetBackend> target);
  bool importText();
  /// Reads the kernel files.
  bool loadKernels();
  bool resolveKernels();
  bool importModel(const Frontend &frontend);
  /// Makes a model of the one kernel that the model's file declares and is.
  bool importKernel();
  bool isKernel() const;
  void takeDecoder(const Frontend &frontend, ImportOptions request, ImportedModel &imported);
  bool parsePhaseText();
  bool resolveFiles();
  bool checkRequest();
  bool checkOutputs();
  bool checkNames();
  bool loadSchedules();
  bool applyDatabases();
  /// Names the scripts that changed what a step refuses.
  void noteSchedules(llvm::StringRef stop);
  /// What runTo runs once.
  bool runOnce(const Stop &stop);
  /// Takes nodes from a target that they do not fit; false where there are none, or where that does not help.
  bool moveMisfits(const TargetBackend &target, const Error &error);
  /// From partition on, up to a stop.
  bool planAgain(const Stop &last);
  /// Whether each glob of --place matches some node.
  bool checkPlaces(const std::set<std::string> &nodes);
  /// Tells the phases of --sparsity.
  bool checkSparsity();
  bool chooseSparsity();
  /// Puts what --mask says in the place of inputs.
  bool takePromises();
  const Frontend *chooseFrontend();
  /// Runs `work` with MLIR's messages collected; they become errors of `kind`,
  /// or internal ones when the IR ends up invalid.
  bool guarded(const char *step, ErrorKind kind, const std::function<bool()> &work);
  /// Hashes the model file, a large one beside all that leads to a bundle.
  void beginDigest();
  Result<bundle::Manifest> manifest();

  const Options &options;
  Diagnostics &diagnostics;
  std::vector<std::unique_ptr<TargetBackend>> targets;
  PhaseContext phaseCtx;
  std::vector<std::string> kernelInputs; ///< files of kernels that users brought
  std::unique_ptr<llvm::ThreadPoolInterface> threads;
  std::unique_ptr<mlir::MLIRContext> mlirContext;
  std::unique_ptr<DiagnosticRouter> router;
  mlir::OwningOpRef<mlir::ModuleOp> theModule;
  mlir::OwningOpRef<mlir::ModuleOp> unplanned; ///< as before partition; null where nothing can move
  std::function<bool(const Stop &)> atStop;
  bool movedNodes = false; ///< since runTo began
  bool runsSchedules = true;
  std::unique_ptr<Schedule> schedule; ///< null where there are no scripts
  std::unique_ptr<Placement> placed;
  std::unique_ptr<CompiledModel> compiled;
  std::future<Result<std::string>> digest; ///< the model file's, begun by import
  std::vector<std::string> inputs;
  std::vector<TimeRow> timeRows;
  std::string sourceFormat;
  uint64_t bytes = 0;
};

/// The dialects that modules of any phase may hold.
void registerDialects(mlir::DialectRegistry &registry);

} // namespace dmxc::driver
