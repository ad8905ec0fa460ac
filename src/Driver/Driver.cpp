//===- Driver.cpp - a whole compile ---------------------------------------===//
#include "dmxc/Driver/Driver.h"
#include "compile/CacheScope.h"
#include "compile/Commands.h"
#include "compile/Streams.h"
#include "compile/TextOutput.h"
#include "compile/Work.h"
#include "reports/Facts.h"
#include "reports/Formats.h"
#include "reports/Placement.h"
#include "reports/Reports.h"
#include "reports/Sparsity.h"
#include "schedule/Schedule.h"

#include "dmxc/Driver/Compilation.h"
#include "dmxc/Phases/PhaseTable.h"
#include "dmxc/Support/Visible.h"
#include "dmxc/Target/TargetHelp.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <spdlog/spdlog.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <unistd.h>

namespace dmxc::driver {

namespace {

class Job {
public:
  Job(const Options &options, Diagnostics &diagnostics)
      : options(options), diagnostics(diagnostics), progress(progressForm(options), lastPhase() + 3),
        cache(options, diagnostics) {}

  int run() {
    bool good = compileAll();
    progress.finish();
    cache.finish();
    if (compilation && options.timeReport != TimeReport::None)
      std::fputs(visibleLines(timeReport(compilation->times(), takeWorkTimes(), cache.counts(),
                                         options.timeReport == TimeReport::Json))
                     .c_str(),
                 stderr);
    int code = diagnostics.exitCode();
    return good || code ? code : exitCodeOf(ErrorKind::Internal);
  }

private:
  /// Position of the last phase to run.
  size_t lastPhase() const { return options.emit == "bundle" ? phases().size() - 1 : phaseIndex(options.emit); }

  bool fail(const Error &error, const std::string &file = "") {
    const char *id = error.kind == ErrorKind::IO ? "io" : error.kind == ErrorKind::Usage ? "usage" : "internal";
    diagnostics.report(error, id, file);
    return false;
  }

  bool compileAll() {
    if (!prepareFolders() || !checkOutput())
      return false;
    compilation = Compilation::create(options, diagnostics);
    if (!compilation)
      return false;
    progress.step("import", shownModel(options));
    if (!compilation->import())
      return false;
    log([&] { return shownModel(options) + (": " + std::to_string(countOps())) + " op(s) at import"; });
    if (!runPhases())
      return false;
    // An error that was reported without stopping (-Werror) must not leave a
    // bundle that looks good.
    if (diagnostics.errorCount())
      return false;
    if (!options.scheduleLog.empty())
      if (Status written = writeText(options.scheduleLog, visibleLines(compilation->scheduleLog())); !written)
        return fail(written.error());
    return options.emit == "bundle" ? finishBundle() : finishText();
  }

  bool prepareFolders() {
    for (const std::string &folder : {options.dumpPhases, options.saveTemps})
      if (!folder.empty())
        if (Status made = makeFolder(folder); !made)
          return fail(made.error());
    return true;
  }

  /// What would only show after the work is done: a folder that cannot be
  /// written or that is in the output's place, a model that its own output would replace.
  bool checkOutput() {
    std::string path = outputPath();
    if (path == "-" && options.emit == "bundle" && isatty(STDOUT_FILENO))
      return fail(usageError("a bundle is not for a terminal; give -o FILE, or redirect stdout"));
    if (path == "-")
      return true;
    if (llvm::sys::fs::is_directory(path) && !(options.emit == "bundle" && options.bundleDirectory))
      return fail(ioError("cannot write '" + path + "': it is a directory; give the name of a file"));
    llvm::StringRef folder = llvm::sys::path::parent_path(path);
    std::string where = folder.empty() ? "." : folder.str();
    if (access(where.c_str(), W_OK) != 0)
      return fail(ioError("cannot write '" + path + "': folder '" + where + "': " + std::strerror(errno)));
    bool same = false;
    if (!llvm::sys::fs::equivalent(path, options.model, same) && same)
      return fail(usageError("the output '" + path + "' is the model itself; give another -o"));
    return true;
  }

  /// Where the result goes; "-" is stdout.
  std::string outputPath() const {
    if (!options.output.empty())
      return options.output;
    std::string name = options.folder.empty() ? llvm::sys::path::stem(options.model).str() : options.folder;
    return options.emit == "bundle" ? name + ".bundle" : "-";
  }

  size_t countOps() {
    size_t count = 0;
    compilation->module().walk([&](mlir::Operation *) { ++count; });
    return count;
  }

  bool runPhases() {
    compilation->afterStops([this](const Stop &stop) { return afterStop(stop); });
    bool begun = options.from.empty();
    for (const Stop &stop : stops(compilation->phaseContext())) {
      if (!begun) {
        begun = stop.name == options.from;
        continue;
      }
      if (!runTo(stop)) {
        release();
        return false;
      }
      // Until its end nothing of a device's share is final, so a text that is asked for before is not either.
      const bool isFinal = stop.name == "schedule" || !compilation->mayPlanAgain();
      if (isFinal && !release())
        return false;
      if (isFinal && position(stop.name) >= position(options.emit))
        break;
    }
    return true;
  }

  bool runTo(const Stop &stop) {
    const Phase &phase = *stop.phase;
    setCurrentWork(stop.name);
    if (stop.opensPhase)
      progress.step(phase.name, phase.summary);
    log([&] { return "phase " + stop.name + ": " + stop.summary(); });
    return phase.makesIR() ? compilation->runTo(stop) : compilation->runCodegen() && afterStop(stop);
  }

  /// Of a stop in this compile; that of a bundle is behind all.
  size_t position(const std::string &name) const {
    std::vector<Stop> all = stops(compilation->phaseContext());
    return llvm::find_if(all, [&](const Stop &stop) { return stop.name == name; }) - all.begin();
  }

  bool afterStop(const Stop &stop) {
    if (stop.name == "partition" && !afterPartition())
      return false;
    if (!options.dumpPhases.empty() && position(stop.name) <= position(options.emit) && !dump(stop))
      return false;
    if (stop.name == options.emit)
      emitted = phaseText(*stop.phase);
    return true;
  }

  /// Says what was held back, once.
  bool release() {
    bool good = true;
    for (const auto &said : std::exchange(held, {}))
      good &= said();
    return good;
  }
  void holdText(std::string text) {
    held.push_back([this, text = std::move(text)] {
      say(text);
      return true;
    });
  }
  void holdFile(const std::string &path, const std::string &text) {
    held.push_back([this, path, text = visibleLines(text)] {
      Status written = writeText(path, text);
      return written || fail(written.error());
    });
  }
  void hold(const Diagnostics &messages) {
    for (const Diagnostic &message : messages.all())
      held.push_back([this, message] {
        diagnostics.report(message);
        return true;
      });
  }

  /// Nodes may still turn out not to fit: what is said of the placement is held back until it is final.
  bool afterPartition() {
    held.clear();
    mlir::ModuleOp module = compilation->module();
    const PhaseContext &context = compilation->phaseContext();
    if (options.explainDecisions)
      held.push_back([text = visibleLines(compilation->explainDecisions())] {
        std::cout << text << std::flush;
        return true;
      });
    if (!options.saveSchedule.empty())
      holdFile(options.saveSchedule, compilation->savedSchedule());
    const Placement &placement = *compilation->placement();
    if (!options.placementReport.empty())
      holdFile(options.placementReport, placementReport(module, context, placement));
    std::vector<NodeFormats> formats = nodeFormats(module, context);
    keepFormats(module, formats);
    if (const std::string table = formatTable(formats); !options.numerics.empty() && !table.empty())
      holdText(table.substr(0, table.size() - 1));
    Diagnostics checked, idle;
    const bool good = checkPlacement(module, options, context, placement, checked);
    hold(checked);
    if (!good)
      return false;
    holdText("placement: " + placement.summary());
    for (const std::string &line : misfitLines(context))
      holdText("placement: " + line);
    reportMasks();
    warnOfIdleTargets(module, options, placement, /*takesDims=*/compilation->format() != "mlir", idle);
    compilation->warnOfIdleKernels(idle);
    hold(idle);
    return true;
  }

  void reportMasks() {
    std::optional<dmir::TileSize> tile;
    if (options.sparsityTile)
      tile = {options.sparsityTile->first, options.sparsityTile->second, options.sparsityTile->second};
    std::vector<MaskedAttention> masked = maskedAttentions(compilation->module(), tile);
    keepMasks(compilation->module(), masked);
    if (std::string masks = summaryOf(masked); !masks.empty())
      holdText(masks);
    if (options.sparsityReport.empty())
      return;
    bool json = llvm::StringRef(options.sparsityReport).ends_with(".json");
    holdFile(options.sparsityReport, sparsityReport(masked, productFacts(compilation->module()), json));
  }

  std::string phaseText(const Phase &phase) {
    return phase.makesIR() ? compilation->text() : bundle::toJson(compilation->model().graph);
  }

  bool dump(const Stop &stop) {
    llvm::SmallString<128> path(options.dumpPhases);
    llvm::sys::path::append(path, stop.file);
    Status written = writeText(path.str().str(), phaseText(*stop.phase));
    return written || fail(written.error());
  }

  bool finishText() {
    std::string path = outputPath();
    Status written = writeText(path, emitted);
    if (!written)
      return fail(written.error());
    return path == "-" || writeDepfile(path);
  }

  bool finishBundle() {
    std::string path = outputPath();
    std::unique_ptr<TemporaryFile> toStdout;
    if (path == "-") {
      auto made = TemporaryFile::create("stdout");
      if (!made)
        return fail(made.error());
      toStdout = std::move(*made);
    }
    progress.step("write", toStdout ? "stdout" : path);
    if (!compilation->writeBundle(toStdout ? toStdout->path() : path) || !writeDepfile(path))
      return false;
    if (toStdout)
      if (Status copied = copyToStdout(toStdout->path()); !copied)
        return fail(copied.error());
    progress.finish();
    uint64_t codeBytes = 0;
    for (const CodeEntry &code : compilation->model().code)
      codeBytes += code.bytes.size();
    log([&] {
      return std::to_string(compilation->model().constants.size()) + " constant(s), " + byteText(codeBytes) +
             " of code";
    });
    if (std::string rounding = roundingOf(compilation->model()).summary(); !rounding.empty())
      say(rounding);
    else if (keptFormats(compilation->module()).empty())
      noteNumerics();
    if (std::string states = statesSummary(compilation->model(), compilation->module()); !states.empty())
      say(states);
    if (!showCommands())
      return false;
    say("wrote " + (toStdout ? "stdout" : path) + ": " + byteText(compilation->bundleBytes()));
    return true;
  }

  bool showCommands() {
    if (!options.showCommands)
      return true;
    Result<std::string> lines = invokedCommands(options, compilation->phaseContext());
    if (!lines)
      return fail(lines.error());
    std::fputs(visibleLines(*lines).c_str(), stdout);
    return true;
  }

  /// A mode that was asked for, and that no target had a use for.
  void noteNumerics() {
    for (const TargetBackend *target : compilation->phaseContext().targets)
      if (options.numerics.empty() || helpOf(target->name().str()).defaultNumerics == options.numerics)
        return;
    Diagnostic note;
    note.severity = Severity::Note;
    note.id = "numerics-unused";
    note.file = options.model;
    note.text = "--numerics " + options.numerics + " changes nothing: ";
    const bool chooses = options.from.empty() || phaseIndex(options.from) < phaseIndex("partition");
    note.text += chooses ? "no node and no weight of this model is of a kind that the mode computes or "
                           "keeps in other numbers"
                         : "numbers are chosen in the phase partition, and the text has none that were";
    diagnostics.report(std::move(note));
  }

  bool writeDepfile(const std::string &output) {
    if (!options.depfile)
      return true;
    std::string path = options.depfilePath.empty() ? output + ".d" : options.depfilePath;
    std::vector<std::string> files = compilation->files();
    files.insert(files.end(), options.schedules.begin(), options.schedules.end());
    llvm::append_range(files, compilation->includedSchedules());
    files.insert(files.end(), options.tuningDatabases.begin(), options.tuningDatabases.end());
    Status written =
        writeText(path, dependencyRule(options.depfileTarget.empty() ? output : options.depfileTarget, files));
    return written || fail(written.error());
  }

  /// -v: what is being done. The text is made only when somebody reads it.
  template <typename Text> void log(Text text) {
    if (!options.verbose)
      return;
    auto hold = tools::holdProgress();
    spdlog::info(text());
  }

  void say(const std::string &text) {
    if (options.quiet || options.jsonDiagnostics)
      return;
    auto hold = tools::holdProgress();
    std::fprintf(stderr, "%s\n", visibleLines(text).c_str());
  }

  const Options &options;
  Diagnostics &diagnostics;
  tools::Progress progress;
  CacheScope cache;
  std::unique_ptr<Compilation> compilation;
  std::vector<std::function<bool()>> held; ///< what is said when the placement is final
  std::string emitted;                     ///< the text that --emit asks for
};

} // namespace

int compile(const Options &options, Diagnostics &diagnostics) { return Job(options, diagnostics).run(); }

} // namespace dmxc::driver
