//===- Tune.cpp - dmxc tune -----------------------------------------------===//
#include "Tune.h"
#include "../compile/Streams.h"
#include "../compile/TextOutput.h"
#include "../options/OptionValues.h"
#include "../schedule/TuningDatabase.h"
#include "Clocks.h"
#include "Descent.h"
#include "Journal.h"
#include "PairedTimes.h"
#include "Space.h"
#include "TuneReport.h"

#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/Lengths.h"
#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Driver/Driver.h"
#include "dmxc/Support/MappedFile.h"
#include "dmxc/Support/Sha256.h"
#include "dmxc/Tools/Run.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <unistd.h>

namespace fs = std::filesystem;

namespace dmxc::driver {

namespace {

/// Of times on a processor: for a candidate, and for what is kept, with samples of its own.
constexpr size_t kPairs = 16, kConfirming = 32;

/// Outputs of candidates must come this near to the default's: what another order of sums may change.
constexpr double kLeastSqnr = 50;

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
  bool say();

  /// Compiles and runs a candidate; its clocks, or why there are none.
  Result<int64_t> measure(const std::vector<std::string> &records, const Schedule::Values &knobs, bool isDefault,
                          size_t pairs = kPairs);
  Result<int64_t> timeOf(bool isDefault, size_t pairs);
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
  bool onDevices = false;             ///< whose clocks are exact; else a processor's times are compared in pairs
  std::unique_ptr<PairedTimes> times; ///< of the processor
  std::string beside;                 ///< what of the default's speed the last candidate had, where that was measured
  TuneReport report;
};

bool Tuner::tuneAll() {
  if (!partition())
    return false;
  if (options.listCandidates)
    return list();
  if (!checkSizes() || !prepare())
    return false;
  return tune() && say() && finish();
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
    std::vector<TunedRegion> regions = tunedRegions(options, *compilation, /*onDevicesAlone=*/false);
    for (const TunedRegion &region : regions)
      for (const Decision &decision : region.decisions)
        std::cout << "'" << region.node << "' " << (decision.scope.empty() ? "" : decision.scope + ".") << decision.name
                  << ": " << decision.domain.str() << "\n";
    std::cout << regions.size() << " regions with something free\n";
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
  onDevices = false;
  compilation->module().walk([&](dmir::RegionOp region) {
    const TargetBackend *target = compilation->phaseContext().target(region.getDevice());
    onDevices |= target && !target->runsOnHost();
  });
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
  report = {shownModel(options), onDevices ? "clocks" : "ns", {}};
  return true;
}

//===----------------------------------------------------------------------===//
// Measuring
//===----------------------------------------------------------------------===//

Options Tuner::trialOptions() const {
  Options trial = options;
  trial.tune = trial.explainDecisions = trial.depfile = false;
  trial.quiet = true;
  trial.plansAgain = false; // less on the device is no faster
  trial.progress = ProgressMode::None;
  trial.timeReport = TimeReport::None;
  trial.placementReport.clear();
  trial.tuneReport.clear();
  trial.saveSchedule.clear();
  trial.dumpPhases.clear();
  trial.saveTemps.clear();
  trial.bundleDirectory = false;
  trial.output = bundle->path();
  return trial;
}

Result<int64_t> Tuner::measure(const std::vector<std::string> &records, const Schedule::Values &knobs, bool isDefault,
                               size_t pairs) {
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
  if (onDevices)
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
  return onDevices ? clocksOf(folder + "/report.json") : timeOf(isDefault, pairs);
}

/// Nanoseconds of the candidate, by its ratio to the default; what does not gain for sure takes as long as that.
Result<int64_t> Tuner::timeOf(bool isDefault, size_t pairs) {
  if (isDefault) {
    auto opened = PairedTimes::open(bundle->path());
    if (!opened)
      return opened.takeError();
    times = std::move(*opened);
    return static_cast<int64_t>(times->defaultNs());
  }
  Result<Ratios> ratios = times->compare(bundle->path(), pairs);
  if (!ratios)
    return ratios.takeError();
  const double ratio = medianOf(ratios->candidate);
  const bool isSure = gains(*ratios);
  beside = llvm::formatv(", {0:f2} of the default's speed{1}", ratio, isSure ? "" : ": no sure gain").str();
  return static_cast<int64_t>(times->defaultNs() / (isSure ? ratio : 1));
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
  beside.clear();
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
    std::cout << "  " << name << ": " << (clocks ? std::to_string(*clocks) + " " + report.unit + beside : "dropped")
              << '\n'
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
            << static_cast<int64_t>(best->value) << " " << report.unit << ", default " << defaultClocks << "\n";
  std::string values = "{";
  for (const auto &[name, value] : space.candidates[best->best])
    values += (values.size() > 1 ? ",\"" : "\"") + name + "\":" + valueText(value);
  report.rows.push_back(
      {"scripts", "", values + "}", static_cast<double>(defaultClocks), best->value, best->trials, {}, ""});
  return true;
}

bool Tuner::tuneRegions() {
  std::vector<TunedRegion> regions = tunedRegions(options, *compilation, onDevices);
  if (regions.empty())
    std::cout
        << "nothing is free of this model's regions: the default is all there is, and nothing was measured beside "
           "it\n";
  size_t all = options.trials ? options.trials : kDefaultTrials * std::max<size_t>(regions.size(), 1);
  for (size_t i = 0; i < regions.size(); ++i) {
    size_t share = all / (regions.size() - i);
    all -= share;
    if (!tuneRegion(regions[i], share))
      return false;
  }
  return writeDatabase();
}

bool Tuner::tuneRegion(const TunedRegion &region, size_t trials) {
  auto leave = [&](const char *why) {
    report.rows.push_back({region.node, region.device, "", 0, 0, 0, {}, why});
    std::cout << "'" << region.node << "': " << why << "\n";
    return true;
  };
  if (known.has(region.fingerprint, region.device, region.level))
    return leave("the database has it");
  if (llvm::all_of(region.decisions, [](const Decision &decision) { return decision.domain.count() < 2; }))
    return leave("nothing is free");
  if (trials < 2)
    return leave("no trials are left for it");
  std::cout << "'" << region.node << "' on " << region.device << ": " << region.decisions.size() << " decisions\n";
  TuningRecord record{region.fingerprint, familyOf(region.op), region.device, region.level, "", "bits", 0, 0};
  for (const Decision &decision : region.decisions)
    if (effectName(decision.effect) != "bits")
      record.effect = effectName(decision.effect);
  // Code of other levels than the one that runs here cannot be measured here.
  auto isMeasured = [&](const Decision &decision) {
    return onDevices || decision.scope.empty() || decision.scope == times->level();
  };
  Descent descent(*compilation->phaseContext().target(region.device), region.op, trials, isMeasured,
                  [&](mlir::DictionaryAttr decided) -> std::optional<double> {
                    record.decided = jsonOf(decided);
                    std::vector<std::string> records = winners;
                    records.push_back(record.line());
                    return trial("'" + region.node + "' " + record.decided, records, {});
                  });
  std::optional<Descent::Found> best = descent.run();
  if (broken)
    return fail(*broken);
  if (!best)
    return fail(modelError("none of the candidates of node '" + region.node + "' could be measured"),
                shownModel(options));
  record.decided = jsonOf(best->decided);
  if (!onDevices && best->value < best->first) { // chosen as the best of many, and so by luck, too
    std::vector<std::string> records = winners;
    records.push_back(record.line());
    Result<int64_t> again = measure(records, {}, /*isDefault=*/false, kConfirming);
    best->value = again ? static_cast<double>(*again) : best->first;
  }
  if (!onDevices && best->value >= best->first) {
    report.rows.push_back(
        {region.node, region.device, "", best->first, best->first, best->trials, std::move(best->measured), ""});
    return true; // no record: another day's measure may find more
  }
  record.clocks = static_cast<int64_t>(best->value);
  record.defaultClocks = static_cast<int64_t>(best->first);
  winners.push_back(record.line());
  report.rows.push_back({region.node, region.device, record.decided, best->first, best->value, best->trials,
                         std::move(best->measured), ""});
  return true;
}

/// What was found, as a table and where --report says.
bool Tuner::say() {
  if (!report.rows.empty())
    std::cout << report.table() << std::flush;
  if (options.tuneReport.empty())
    return true;
  Status written = writeText(options.tuneReport, report.json());
  return written || fail(written.error());
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
