//===- Tune.cpp - dmxc tune -----------------------------------------------===//
#include "Tune.h"
#include "../compile/Streams.h"
#include "../options/OptionValues.h"
#include "Journal.h"
#include "Space.h"
#include "TuningDatabase.h"

#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/Lengths.h"
#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Driver/Driver.h"
#include "dmxc/Support/MappedFile.h"
#include "dmxc/Support/Sha256.h"
#include "dmxc/Tools/Run.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Path.h"
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <unistd.h>

using nlohmann::json;
namespace fs = std::filesystem;

namespace dmxc::driver {

namespace {

/// Outputs of candidates must come this near to the default's: what another order of sums may change.
constexpr double kLeastSqnr = 50;

Error noClock() {
  return usageError(
      "nothing of this model runs on a device with a simulated clock, which is what tuning measures; choose "
      "another target with -t");
}

/// ", 3 members refused" of scripts' parameters.
std::string refusedText(size_t count) {
  return count ? ", " + std::to_string(count) + (count == 1 ? " member refused" : " members refused") : "";
}

class Tuner {
public:
  Tuner(const Options &options, Diagnostics &diagnostics) : options(options), diagnostics(diagnostics) {}

  int run() {
    bool good = tuneAll();
    int code = diagnostics.exitCode();
    return good || code ? code : exitCodeOf(ErrorKind::Internal);
  }

private:
  bool fail(const Error &error, const std::string &file = "") {
    const char *id = error.kind == ErrorKind::IO ? "io" : error.kind == ErrorKind::Usage ? "usage" : "tune";
    diagnostics.report(error, id, file);
    return false;
  }

  bool tuneAll();
  bool partition();
  bool checkSizes();
  bool list();
  bool prepare();
  bool tune();
  bool tuneScripts(const Space<Schedule::Values> &space);
  bool tuneRegions();
  bool tuneRegion(const TunedRegion &region, size_t trials);
  bool writeDatabase();
  bool finish();

  /// Compiles and runs a candidate; its clocks, or why there are none.
  Result<int64_t> measure(const std::vector<std::string> &records, const Schedule::Values &knobs, bool isDefault);
  std::optional<double> trial(const std::string &name, const std::vector<std::string> &records,
                              const Schedule::Values &knobs);
  Options trialOptions() const;
  /// Where what was measured is kept, for the end of a sentence.
  std::string goesOn() const { return journal ? journal->advice() : ""; }

  const Options &options;
  Diagnostics &diagnostics;
  std::unique_ptr<Compilation> compilation; ///< behind partition
  TuningDatabase known;
  std::vector<std::string> winners; ///< records found in this run
  std::unique_ptr<TemporaryFile> bundle;
  std::string folder; ///< the bundle's, with the default's outputs and the report
  std::unique_ptr<Journal> journal;
  std::optional<Error> broken; ///< what ends all trials: no candidate's fault
  std::string identity;        ///< of model and options, in the journal's keys
  int64_t defaultClocks = 0;
};

bool Tuner::tuneAll() {
  if (!partition())
    return false;
  if (options.listCandidates)
    return list();
  if (!checkSizes() || !prepare())
    return false;
  return tune() && finish();
}

/// The model up to its regions.
bool Tuner::partition() {
  compilation = Compilation::create(options, diagnostics);
  if (!compilation || !compilation->import())
    return false;
  compilation->leaveSchedules(); // those of partition run once their parameters have values
  for (const Phase &phase : phases()) {
    if (!compilation->runPhase(phase))
      return false;
    if (llvm::StringRef(phase.name) == "partition")
      return true;
    if (!compilation->applySchedules(phase.name))
      return false;
  }
  return true;
}

bool Tuner::checkSizes() {
  llvm::SetVector<llvm::StringRef> open;
  for (auto function : compilation->module().getOps<mlir::func::FuncOp>())
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (mlir::isa<mlir::RankedTensorType>(function.getArgumentTypes()[i]))
        for (Dim dim : dmir::callersDims(function, true, i))
          dim.forEachSymbol([&](std::string_view symbol) { open.insert(symbol); });
  if (open.empty())
    return true;
  std::string names, flags;
  for (llvm::StringRef symbol : open) {
    if (symbol == "?") { // of hand-written text
      flags += " --shape INPUT=DIMxDIM";
      continue;
    }
    names += (names.empty() ? "'" : ", '") + symbol.str() + "'";
    flags +=
        " --dim " + shellWord(symbol.str() + "=" + std::to_string(dmir::nominalSize(compilation->module(), symbol)));
  }
  return fail(usageError("tuning needs the model's sizes, and of its inputs' dims " + names +
                         (open.size() == 1 ? " is" : " are") + " open; add the sizes that count, for example" + flags),
              shownModel(options));
}

bool Tuner::list() {
  if (options.schedules.empty()) {
    auto regions = tunedRegions(options, *compilation, /*onDevicesAlone=*/false);
    if (!regions)
      return fail(regions.error(), shownModel(options));
    for (const TunedRegion &region : *regions)
      for (const Decision &decision : region.decisions)
        std::cout << "'" << region.node << "' " << (decision.scope.empty() ? "" : decision.scope + ".") << decision.name
                  << ": " << decision.domain.str() << "\n";
    std::cout << regions->size() << " regions with something free\n";
    return true;
  }
  Space<Schedule::Values> space;
  if (!scriptSpace(options, *compilation, diagnostics, space))
    return false;
  for (const Schedule::Values &values : space.candidates)
    std::cout << knobText(values) << "\n";
  std::cout << space.candidates.size() << " candidates" << refusedText(space.refused) << "\n";
  return true;
}

/// The database, the journal and the default's figures.
bool Tuner::prepare() {
  bool onDevices = false;
  compilation->module().walk([&](dmir::RegionOp region) {
    const TargetBackend *target = compilation->phaseContext().target(region.getDevice());
    onDevices |= target && !target->runsOnHost();
  });
  if (!onDevices)
    return fail(noClock(), shownModel(options));
  if (!options.database.empty()) {
    std::string parent = llvm::sys::path::parent_path(options.database).str();
    const std::string &where = parent.empty() ? "." : parent;
    bool isThere = access(options.database.c_str(), F_OK) == 0;
    if (access(where.c_str(), W_OK) != 0 || (isThere && access(options.database.c_str(), R_OK | W_OK) != 0))
      return fail(ioError("cannot write the database '" + options.database + "': " + std::strerror(errno)));
    if (isThere)
      if (Status read = known.read(options.database, diagnostics); !read)
        return fail(read.error());
  }
  auto made = TemporaryFile::create("trial.bundle");
  if (!made)
    return fail(made.error());
  bundle = std::move(*made);
  folder = bundle->folderPath();
  if (!options.database.empty()) {
    auto opened = Journal::open(options.database + ".trials");
    if (!opened)
      return fail(opened.error());
    journal = std::move(*opened);
    if (Status room = journal->reserve(); !room)
      return fail(room.error());
  }
  auto model = MappedFile::open(options.model);
  if (!model)
    return fail(model.error());
  identity = Sha256::hexOf((*model)->bytes());
  for (const TargetChoice &choice : options.targets)
    identity += " " + choice.name + ":" + levelsOf(options, choice.name);
  Result<int64_t> clocks = measure({}, {}, /*isDefault=*/true);
  if (!clocks)
    return fail(clocks.error(), shownModel(options));
  defaultClocks = *clocks;
  return true;
}

//===----------------------------------------------------------------------===//
// Measuring
//===----------------------------------------------------------------------===//

/// Clocks of the last run of all kernels in a device's report.
static Result<int64_t> clocksOf(const std::string &report) {
  std::ifstream in(report);
  json document = json::parse(in, nullptr, /*allow_exceptions=*/false);
  int64_t sum = 0;
  if (document.is_object() && document.contains("last") && document["last"].is_array())
    for (const json &kernel : document["last"])
      if (kernel.is_object() && kernel.contains("main") && kernel["main"].contains("clocks"))
        sum += kernel["main"]["clocks"].get<int64_t>();
  if (sum > 0)
    return sum;
  return noClock();
}

Options Tuner::trialOptions() const {
  Options trial = options;
  trial.tune = trial.explainDecisions = trial.depfile = false;
  trial.quiet = true;
  trial.plansAgain = false; // less on the device is no faster
  trial.progress = ProgressMode::None;
  trial.timeReport = TimeReport::None;
  trial.placementReport.clear();
  trial.saveSchedule.clear();
  trial.dumpPhases.clear();
  trial.saveTemps.clear();
  trial.bundleDirectory = false;
  trial.output = bundle->path();
  return trial;
}

Result<int64_t> Tuner::measure(const std::vector<std::string> &records, const Schedule::Values &knobs, bool isDefault) {
  Options trial = trialOptions();
  trial.tuningRecords = records;
  for (const auto &[name, value] : knobs) {
    auto text = mlir::dyn_cast<mlir::StringAttr>(value);
    trial.knobs.emplace_back(name, text ? text.str() : valueText(value));
  }
  Diagnostics messages;
  if (compile(trial, messages) != 0) {
    auto first = llvm::find_if(messages.all(), [](const Diagnostic &said) { return said.severity == Severity::Error; });
    bool isSaid = first != messages.all().end();
    return Error{isSaid ? first->kind : ErrorKind::Internal,
                 "it does not compile: " + (isSaid ? first->text : "no reason was given")};
  }
  for (const Diagnostic &message : messages.all())
    if (message.severity == Severity::Warning && message.id == "tuning-db")
      return modelError(message.text);
  tools::RunOptions run;
  run.bundle = bundle->path();
  run.randomSeed = 1;
  run.quiet = true;
  run.session.deviceOptions = {"report=" + folder + "/report.json"};
  (isDefault ? run.outputDir : run.expectDir) = folder + "/default";
  run.tolerance.minSqnr = kLeastSqnr;
  std::error_code ignored;
  fs::remove(folder + "/report.json", ignored);
  std::ostringstream out;
  if (Status done = tools::runBundle(run, out); !done)
    return Error{done.error().kind,
                 done.error().kind == ErrorKind::Mismatch
                     ? "it computes something else: " + llvm::StringRef(out.str()).split('\n').first.str()
                     : done.error().message};
  return clocksOf(folder + "/report.json");
}

std::optional<double> Tuner::trial(const std::string &name, const std::vector<std::string> &records,
                                   const Schedule::Values &knobs) {
  if (broken)
    return std::nullopt;
  std::string key = identity + " " + name;
  for (const std::string &record : winners)
    key += " " + record;
  key = Sha256::hexOf(std::as_bytes(std::span(key.data(), key.size())));
  if (journal)
    if (std::optional<int64_t> before = journal->find(key))
      return *before < 0 ? std::nullopt : std::optional<double>(static_cast<double>(*before));
  Status kept = journal ? journal->reserve() : Status::ok();
  Result<int64_t> clocks = kept ? measure(records, knobs, /*isDefault=*/false) : kept.error();
  // Files that cannot be written say nothing of the candidate.
  if (!clocks && clocks.error().kind == ErrorKind::IO) {
    broken = kept ? ioError(name + " could not be measured: " + clocks.error().message + goesOn()) : kept.error();
    return std::nullopt;
  }
  if (journal)
    if (Status added = journal->add(key, clocks ? *clocks : -1); !added)
      broken = added.takeError();
  if (!options.quiet)
    std::cout << "  " << name << ": " << (clocks ? std::to_string(*clocks) + " clocks" : "dropped") << '\n'
              << std::flush;
  if (clocks)
    return static_cast<double>(*clocks);
  // A candidate that its domain has, and that fails, is a fault of the domain: said, and not chosen.
  Diagnostic warning;
  warning.severity = Severity::Warning;
  warning.id = "tune-dropped";
  warning.file = shownModel(options);
  warning.text = name + " was dropped: " + clocks.error().message;
  diagnostics.report(std::move(warning));
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Searching
//===----------------------------------------------------------------------===//

constexpr size_t kDefaultTrials = 64;

/// Parameters of scripts, where there are some; else what the scripts leave open of the regions.
bool Tuner::tune() {
  if (options.schedules.empty())
    return tuneRegions();
  Space<Schedule::Values> space;
  if (!scriptSpace(options, *compilation, diagnostics, space))
    return false;
  if (space.candidates.size() != 1 || !space.candidates.front().empty())
    return tuneScripts(space);
  if (options.database.empty())
    return fail(usageError("the scripts have no parameters, so that regions are tuned, which needs --db FILE"));
  return compilation->applySchedules(Schedule::kPartition) && tuneRegions();
}

bool Tuner::tuneScripts(const Space<Schedule::Values> &space) {
  auto best = searchSpace(space.points, 0, space.promising, options.trials ? options.trials : kDefaultTrials,
                          [&](size_t i) { return trial(knobText(space.candidates[i]), {}, space.candidates[i]); });
  if (broken)
    return fail(*broken);
  if (!best)
    return fail(modelError("none of the candidates could be measured"), shownModel(options));
  std::cout << "best of " << space.candidates.size() << refusedText(space.refused) << " in " << best->trials
            << " trials: " << knobText(space.candidates[best->best], "--set ") << ": "
            << static_cast<int64_t>(best->value) << " clocks, default " << defaultClocks << "\n";
  return true;
}

bool Tuner::tuneRegions() {
  auto regions = tunedRegions(options, *compilation, /*onDevicesAlone=*/true);
  if (!regions)
    return fail(regions.error(), shownModel(options));
  if (regions->empty())
    std::cout << "nothing is free of the regions on devices\n";
  size_t all = options.trials ? options.trials : kDefaultTrials * std::max<size_t>(regions->size(), 1);
  for (size_t i = 0; i < regions->size(); ++i) {
    size_t share = all / (regions->size() - i);
    all -= share;
    if (!tuneRegion((*regions)[i], share))
      return false;
  }
  return writeDatabase();
}

bool Tuner::tuneRegion(const TunedRegion &region, size_t trials) {
  if (known.has(region.fingerprint, region.device, region.level)) {
    std::cout << "'" << region.node << "': the database has it\n";
    return true;
  }
  if (region.space.candidates.size() < 2 || trials == 0)
    return true;
  std::cout << "'" << region.node << "' on " << region.device << ": " << region.space.candidates.size()
            << " candidates\n";
  auto recordOf = [&](size_t i) {
    TuningRecord record{region.fingerprint, region.device, region.level, region.space.candidates[i], "bits", 0, 0};
    for (const Decision &decision : region.decisions)
      if (effectName(decision.effect) != "bits")
        record.effect = effectName(decision.effect);
    return record;
  };
  // Three quarters of the trials are for what the target expects to be fastest.
  std::vector<size_t> first = leastRanked(region.space.ranks, trials - trials / 4);
  auto best =
      searchSpace(region.space.points, region.space.preferred, first, trials, [&](size_t i) -> std::optional<double> {
        std::vector<std::string> records = winners;
        records.push_back(recordOf(i).line());
        return trial("'" + region.node + "' " + region.space.candidates[i], records, {});
      });
  if (broken)
    return fail(*broken);
  if (!best)
    return fail(modelError("none of the candidates of node '" + region.node + "' could be measured"),
                shownModel(options));
  TuningRecord record = recordOf(best->best);
  record.clocks = static_cast<int64_t>(best->value);
  record.defaultClocks = defaultClocks;
  winners.push_back(record.line());
  std::cout << "'" << region.node << "': best of " << best->trials << " trials is " << record.decided << ": "
            << record.clocks << " clocks, default " << defaultClocks << "\n";
  return true;
}

/// What it had and what was found, sorted.
bool Tuner::writeDatabase() {
  std::set<std::string> lines(winners.begin(), winners.end());
  if (access(options.database.c_str(), F_OK) == 0) {
    std::ifstream in(options.database);
    for (std::string line; std::getline(in, line);)
      if (!line.empty())
        lines.insert(line);
  }
  std::string text;
  for (const std::string &line : lines)
    text += line + "\n";
  if (Status written = writeFile(options.database, text, Durability::Disk); !written)
    return fail(ioError(written.error().message + goesOn()));
  journal->remove();
  return true;
}

/// The bundle, where -o asks for one.
bool Tuner::finish() {
  if (options.output.empty())
    return true;
  Options last = options;
  last.tune = false;
  if (!options.database.empty())
    last.tuningDatabases.push_back(options.database);
  return compile(last, diagnostics) == 0;
}

} // namespace

int tune(const Options &options, Diagnostics &diagnostics) { return Tuner(options, diagnostics).run(); }

} // namespace dmxc::driver
