//===- OptionChecks.cpp - which options go together -----------------------===//
#include "OptionValues.h"

#include "dmxc/Phases/PhaseTable.h"

namespace dmxc::driver {

/// What belongs to `dmxc tune` alone, and what it needs.
static Status checkTuning(const Options &options) {
  for (auto [given, flag] : {std::pair(options.trials != 0, "--trials"),
                             {!options.database.empty(), "--db"},
                             {!options.tuneReport.empty(), "--report"},
                             {options.listCandidates, "--list"}})
    if (given && !options.tune)
      return usageError(std::string(flag) + " is for 'dmxc tune MODEL'");
  if (!options.tune)
    return Status::ok();
  if (!options.from.empty() || options.emit != "bundle")
    return usageError("'dmxc tune' compiles whole models: leave --from and --emit away");
  if (options.database.empty() && !options.listCandidates && options.schedules.empty())
    return usageError("'dmxc tune' needs --db FILE, for what it finds; --list prints what it would try");
  return Status::ok();
}

/// A model from stdin has no name that texts could name, and a bundle on stdout none that a rule could.
static Status checkStreams(const Options &options) {
  bool bundle = options.emit == "bundle";
  if (options.output == "-" && bundle && options.bundleDirectory)
    return usageError("a directory cannot be written to stdout; leave --bundle-format away");
  if (options.output == "-" && options.depfile && options.depfileTarget.empty())
    return usageError("-MD needs -MT for a rule of what is written to stdout");
  if (options.output == "-" && options.depfile && options.depfilePath.empty())
    return usageError("-MD needs -MF for output that is written to stdout");
  if (options.model != "-")
    return Status::ok();
  if (options.output.empty())
    return usageError("a model from stdin has no name to derive the output's from; give -o FILE, or -o - for stdout");
  if (!bundle || !options.dumpPhases.empty() || options.depfile)
    return usageError("a model from stdin: the texts of phases and dependency files name the model's file; give one");
  return Status::ok();
}

Status checkKept(const Options &options, bool mayKeepNodes, bool mayLimitError) {
  const std::string what = options.numerics.empty() ? "" : "; '" + options.numerics + "' is not one";
  if (!options.keepPrecision.empty() && !mayKeepNodes)
    return usageError("--keep-precision is for a mode of --numerics that rounds operands or weights, for example bf16" +
                      what);
  if (options.maxError && !mayLimitError)
    return usageError("--max-error is for a mode of --numerics with blocks, for example int8-weights" + what);
  return Status::ok();
}

/// What belongs to phases that do not run would be ignored.
static Status checkResumed(const Options &options) {
  if (!options.from.empty())
    for (auto [given, flag] : {std::pair(!options.dims.empty(), "--dim"),
                               {!options.shapes.empty() || !options.absent.empty(), "--shape"},
                               {!options.entry.empty(), "--entry"},
                               {options.inputFormat != "auto", "--input-format"},
                               {!options.states.empty() || options.noStates, "--state"},
                               {!options.stateType.empty(), "--state-type"},
                               {!options.masks.empty(), "--mask"}})
      if (given)
        return usageError(std::string(flag) + " is for model files; --from " + options.from +
                          " takes up a phase's text");
  int partition = phaseIndex("partition");
  bool runs = (options.from.empty() || phaseIndex(options.from) < partition) &&
              (options.emit == "bundle" || phaseIndex(options.emit) >= partition);
  for (auto [given, flag] : {std::pair(!options.place.empty(), "--place"),
                             {!options.from.empty() && !options.kernelFiles.empty(), "--kernels"},
                             {!options.require.empty(), "--require-target"},
                             {!options.placementReport.empty(), "--placement-report"},
                             {!options.keepPrecision.empty(), "--keep-precision"},
                             {options.maxError.has_value(), "--max-error"},
                             {options.sparsity == "off", "--sparsity off"},
                             {!options.sparsityReport.empty(), "--sparsity-report"},
                             {!options.tuningDatabases.empty(), "--tuning-db"},
                             {!options.saveSchedule.empty(), "--save-schedule"},
                             {options.explainDecisions, "--explain-decisions"}})
    if (given && !runs)
      return usageError(std::string(flag) + " belongs to the phase partition, which does not run with " +
                        (options.from.empty() ? "--emit " + options.emit : "--from " + options.from));
  const bool strict = options.numerics.empty() || options.numerics == "strict";
  return strict ? checkKept(options, false, false) : Status::ok();
}

/// Position of a stop in a compile for these targets; -1 for a stage that none of them has.
static int stopIndex(const Options &options, llvm::StringRef name) {
  std::vector<llvm::ArrayRef<TargetStage>> stages;
  for (const TargetInfo &info : registeredTargets()) {
    bool chosen = llvm::any_of(options.targets, [&](const TargetChoice &choice) { return choice.name == info.name; });
    if (info.stages && (chosen || (options.targets.empty() && &info == registeredTargets().begin())))
      stages.push_back(info.stages());
  }
  const std::vector<Stop> all = stops(stages);
  auto found = llvm::find_if(all, [&](const Stop &stop) { return stop.name == name; });
  return found == all.end() ? -1 : static_cast<int>(found - all.begin());
}

static Status checkStops(const Options &options) {
  const bool resumes = !options.from.empty(), stops = options.emit != "bundle";
  for (const auto &[given, flag, name] :
       {std::tuple(resumes, "--from ", options.from), {stops, "--emit ", options.emit}})
    if (given && stopIndex(options, name) < 0) {
      for (const TargetInfo &info : registeredTargets())
        for (const TargetStage &stage : info.stages ? info.stages() : llvm::ArrayRef<TargetStage>())
          if (llvm::StringRef(name).split('.').second == stage.name)
            return usageError(flag + name + " is a stage of the target " + info.name + "; give -t " + info.name);
    }
  if (resumes && stops && stopIndex(options, options.emit) <= stopIndex(options, options.from))
    return usageError("--emit " + options.emit + " does not come after --from " + options.from);
  return Status::ok();
}

Status checkOptions(const Options &options) {
  if (options.query != Query::None)
    return Status::ok();
  if (Status s = checkTuning(options); !s)
    return s;
  if (options.model.empty())
    return usageError("no model given; usage: dmxc MODEL -o OUT.bundle [-t "
                      "TARGET]... (see --help)");
  if (Status s = checkStops(options); !s)
    return s;
  if (Status s = checkStreams(options); !s)
    return s;
  if (Status s = checkResumed(options); !s)
    return s;
  if (options.showCommands && (options.saveTemps.empty() || options.emit != "bundle"))
    return usageError(
        "--show-invoked-commands is about the files of a whole compile; give --save-temps DIR, and no --emit");
  if (!options.ukernels.empty() && options.kernelFiles.empty())
    return usageError("--ukernels is about micro-kernels of a kernel file; give --kernels FILE");
  if (options.sparsityTile && options.sparsityReport.empty())
    return usageError("--sparsity-tile is what --sparsity-report counts in, which is not there");
  if (options.quiet && options.verbose)
    return usageError("-q and -v contradict each other");
  if (!options.depfile && (!options.depfilePath.empty() || !options.depfileTarget.empty()))
    return usageError("-MF and -MT need -MD");
  return Status::ok();
}

} // namespace dmxc::driver
