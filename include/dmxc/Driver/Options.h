//===- Options.h - what a compile is asked to do ----------------*- C++ -*-===//
//
// The command line of dmxc as a plain struct, so that tests and tools can ask
// for a compile without one.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DMIR/Import.h"
#include "dmxc/Phases/Phases.h"

#include "dmxc/Support/Result.h"

#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace dmxc::driver {

struct DecoderConfig;

/// -t NAME[:LEVEL+LEVEL..]
struct TargetChoice {
  std::string name;
  std::vector<std::string> levels; ///< empty = the target's default
};

/// NAME[:LEVEL+..] of -t. Errors are ErrorKind::Usage.
Result<TargetChoice> parseTarget(const std::string &text);
/// INPUT=OUTPUT of --state.
Result<std::pair<std::string, std::string>> parseState(const std::string &text);
/// NAME=on|off|auto of --ukernels.
Result<std::pair<std::string, std::string>> parseUkernel(const std::string &text);

/// --require-target T[:PCT]: at least that share of the ops must run there.
struct RequireTarget {
  std::string target;
  double percent = 100;
};

enum class ProgressMode { Auto, Plain, None };
enum class ColorMode { Auto, Always, Never };
enum class TimeReport { None, Text, Json };
enum class Query { None, Version, Targets, TargetInfo, Ops, Phases, Forms };

struct Options {
  //--- common
  std::string model;                       ///< "-" = stdin, until `readStdin` gave it a file
  std::string stdinFile;                   ///< that file where messages are to say <stdin>
  std::string folder;                      ///< the last part of its path, where that was a folder, which has `model`
  std::vector<std::string> configurations; ///< files of that folder that were read
  std::shared_ptr<const DecoderConfig> decoder; ///< what they say, null: nothing
  std::string output;                           ///< "" = the model's stem + ".bundle"; "-" = stdout
  std::vector<TargetChoice> targets;            ///< empty = all registered targets' first
  int optLevel = 2;
  unsigned jobs = 1;
  bool bundleDirectory = false; ///< --bundle-format=dir
  std::string cache;            ///< --cache; "": DMXC_CACHE's, or none
  uint64_t cacheLimit = 1024;   ///< --cache-limit, in MiB

  //--- input
  std::string inputFormat = "auto";
  std::map<std::string, DimBounds> dims;
  std::map<std::string, std::vector<int64_t>> shapes;
  std::set<std::string> absent; ///< --shape NAME=none
  std::string entry;
  std::vector<std::string> externalDataDirs;
  std::vector<std::pair<std::string, std::string>> states; ///< --state INPUT=OUTPUT
  std::vector<std::string> kernelFiles;                    ///< --kernels
  std::map<std::string, std::string> ukernels;             ///< --ukernels: "on", "off" or "auto" by name
  bool noStates = false;                                   ///< --state none
  std::string stateType;                                   ///< --state-type; empty: as the model has them

  //--- placement
  std::vector<PlaceRule> place; ///< --place, in order
  std::vector<RequireTarget> require;
  std::string placementReport;
  bool plansAgain = true; ///< without the nodes that do not fit their target; else that is an error

  //--- pipeline
  std::string emit = "bundle"; ///< a phase's name or "bundle"
  std::string from;            ///< the phase whose text `model` is; "" = a model file
  std::string dumpPhases, saveTemps;
  bool showCommands = false;              ///< --show-invoked-commands
  std::vector<std::string> schedules;     ///< transform scripts, in their order
  std::vector<std::string> schedulePaths; ///< folders of files that scripts include
  std::string scheduleLog;                ///< where the forms that scripts needed are listed; "" = nowhere
  std::vector<std::pair<std::string, std::string>> knobs; ///< --set NAME=VALUE, each name once
  std::string saveSchedule; ///< where a script that decides all that was decided is written; "" = nowhere
  bool explainDecisions = false;
  std::vector<std::string> tuningDatabases; ///< files of records that `dmxc tune` wrote
  std::vector<std::string> tuningRecords;   ///< such records themselves, one a string

  //--- dmxc tune
  bool tune = false;
  bool listCandidates = false; ///< print the space and stop
  int64_t trials = 0;          ///< most candidates that are measured; 0 = not given
  std::string database;        ///< --db: read before, written after
  std::string tuneReport;      ///< where what was found is written as JSON; "" = nowhere

  //--- masks
  std::vector<std::pair<std::string, std::string>> masks; ///< --mask INPUT=RULE
  std::string sparsity = "on";                            ///< or "off": kernels look at what masks leave out, too
  std::string sparsityReport;
  std::optional<std::pair<int64_t, int64_t>> sparsityTile; ///< rows and columns that the report counts in

  //--- numbers
  std::string numerics;                   ///< "": each target's own
  std::vector<std::string> keepPrecision; ///< globs of nodes whose weights the mode leaves
  std::optional<double> maxError;         ///< of weights that the mode rounds

  //--- diagnostics
  bool quiet = false, verbose = false;
  ColorMode color = ColorMode::Auto;
  bool jsonDiagnostics = false, warningsAsErrors = false;
  bool allErrors = false; ///< each by itself, however many are equal
  ProgressMode progress = ProgressMode::Auto;
  TimeReport timeReport = TimeReport::None;
  std::string reproducer;

  //--- build systems
  bool depfile = false;
  std::string depfilePath, depfileTarget;

  //--- query
  Query query = Query::None;
  std::string queryTarget;
  bool opsAsJson = false;
};

/// Where messages name the model.
inline const char *shownModel(const Options &options) {
  return options.stdinFile.empty() ? options.model.c_str() : "<stdin>";
}

/// Parses a command line (without the program's name). On success nothing is
/// returned and `options` is filled. Otherwise the exit code: 0 after --help
/// (text on `out`), 2 after a usage error and 3 for an unreadable response file
/// (sentence on `err`).
std::optional<int> parseOptions(const std::vector<std::string> &arguments, Options &options, std::ostream &out,
                                std::ostream &err);

} // namespace dmxc::driver
