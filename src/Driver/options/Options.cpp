//===- Options.cpp - the command line of dmxc -----------------------------===//
#include "dmxc/Driver/Options.h"
#include "HelpTopics.h"
#include "OptionValues.h"

#include "dmxc/Driver/MaskText.h"
#include "dmxc/Driver/Registry.h"
#include "dmxc/Phases/PhaseTable.h"

#include <CLI/CLI.hpp>

#include <ostream>
#include <sched.h>

namespace dmxc::driver {

static unsigned availableProcessors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return 1;
  return std::max(1, CPU_COUNT(&set));
}

namespace {

/// Texts as they come from the command line; `convert` gives them meaning.
struct RawOptions {
  std::vector<std::string> targets, shapes, dims, states, masks, place, require, knobs, ukernels;
  std::string color = "auto", diagnostics = "text", progress = "auto", timeReport, sparsityTile, bundleFormat = "zip",
              format = "md";
  bool version = false, printTargets = false, printOps = false, printPhases = false, printForms = false, werror = false;
};

/// The options; groups are those of --help.
class CommandLine {
public:
  CommandLine(Options &options, RawOptions &raw) : options(options), raw(raw) {
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    app.add_option("model", options.model, "The model file, a folder with one, or with --from a phase's text")
        ->type_name("FILE")
        ->group("");
    addCommon();
    addInput();
    addPlacement();
    addMasks();
    addPipeline();
    addTuning();
    addDiagnostics();
    addQuery();
  }

  CLI::App app{"Turns a model file into a bundle that libdmxrt (dmx-run) executes.", "dmxc"};

  std::vector<std::string> optionNames() const {
    std::vector<std::string> names{"-MD", "-MF", "-MT", "-Werror"};
    for (const CLI::Option *option : app.get_options()) {
      for (const std::string &name : option->get_lnames())
        if (name.size() > 2)
          names.push_back("--" + name);
      for (const std::string &name : option->get_snames())
        names.push_back("-" + name);
    }
    return names;
  }

private:
  CLI::Option *text(const char *flags, std::string &value, const char *type, const std::string &help,
                    const char *group) {
    return app.add_option(flags, value, help)->type_name(type)->group(group);
  }
  CLI::Option *list(const char *flags, std::vector<std::string> &value, const char *type, const std::string &help,
                    const char *group) {
    return app.add_option(flags, value, help)
        ->type_name(type)
        ->expected(1)
        ->take_all()
        ->allow_extra_args(false)
        ->group(group);
  }
  /// `hidden` are taken too, and named by the help's words alone.
  CLI::Option *choice(const char *flags, std::string &value, std::vector<std::string> names, const char *help,
                      const char *group, const std::vector<std::string> &hidden = {}) {
    std::string type;
    for (const std::string &name : names)
      type += (type.empty() ? "" : "|") + name;
    names.insert(names.end(), hidden.begin(), hidden.end());
    auto check = [names, flags = std::string(flags)](std::string &text) -> std::string {
      if (std::find(names.begin(), names.end(), text) != names.end())
        return "";
      return "'" + text + "' is not one of " + joined(names) + didYouMean(text, names);
    };
    return app.add_option(flags, value, help)->type_name(type)->check(CLI::Validator(check, ""))->group(group);
  }

  void addCommon() {
    text("-o,--output", options.output, "PATH", "Where to write; default: the model's name with .bundle; - for stdout",
         "common");
    list("-t,--target", raw.targets, "NAME[:LEVEL+..]",
         "Target, repeatable; default " + (targetNames().empty() ? "none" : targetNames().front()) +
             ". --help targets has the levels of each",
         "common");
    app.add_option("-O", options.optLevel, "Optimisation, 0 to 3; default 2")
        ->type_name("LEVEL")
        ->check(CLI::Range(0, 3).description(""))
        ->group("common");
    app.add_option("-j,--jobs", options.jobs,
                   "Threads of the compiler; default: all processors. The "
                   "bundle does not depend on it")
        ->type_name("N")
        ->check(CLI::Range(1, 1024).description(""))
        ->group("common");
    choice("--bundle-format", raw.bundleFormat, {"zip", "dir"}, "One file, or a directory with the same tree",
           "common");
    text("--cache", options.cache, "DIR",
         "Keep compiled code there, and take it from there where it is the same; default: what DMXC_CACHE names, else "
         "none",
         "common");
    app.add_option("--cache-limit", options.cacheLimit,
                   "Most that is kept there; what was used longest ago goes; default 1024")
        ->type_name("MIB")
        ->check(CLI::Range(uint64_t(0), uint64_t(1) << 40).description(""))
        ->group("common");
  }

  void addInput() {
    std::vector<std::string> formats{"auto"};
    for (const std::string &name : frontendNames())
      formats.push_back(name);
    choice("--input-format", options.inputFormat, formats, "What the model file is; auto looks at it", "input");
    list("--shape", raw.shapes, "NAME=1x3x224x224",
         "Fix the shape of an input (x=none: an optional or sequence without a value), repeatable", "input");
    list("--dim", raw.dims, "NAME=8 | NAME=1..512", "Fix or bound a symbolic dim, repeatable", "input");
    list("--state", raw.states, "INPUT=OUTPUT | none",
         "The output of a run is the input of the next, and both leave the signature, '*' for any text, repeatable; "
         "none: of no caches of a decoder's folder either; see --help dims",
         "input");
    choice("--state-type", options.stateType, {"bf16", "f16", "f32"},
           "What states with a length are kept in; default: as the model has them", "input");
    list("--kernels", options.kernelFiles, "FILE",
         "Kernels of your own, for operators that it names or in the place of ops, repeatable; see --help kernels",
         "input");
    list("--ukernels", raw.ukernels, "NAME=on|off|auto",
         "Whether products call a micro-kernel of --kernels where it fits; auto, the default: if its file prefers it; "
         "repeatable",
         "input");
    text("--entry", options.entry, "NAME", "Entry point, where the model has several", "input");
    list("--allow-external-data", options.externalDataDirs, "DIR",
         "Folder that data beside the model may be read from, repeatable; default: the model's own, which a DMIR text "
         "has besides",
         "input");
  }

  void addPlacement() {
    list("--place", raw.place, "GLOB=TARGET", "Nodes whose names match run there, repeatable; the last match counts",
         "placement");
    list("--require-target", raw.require, "T[:PCT]",
         "Fail (exit 4) unless at least PCT % of the ops run on T; default 100", "placement");
    text("--placement-report", options.placementReport, "FILE",
         "Write which target computes each node, in which numbers and why (- for stdout)", "placement");
  }

  void addMasks() {
    list("--mask", raw.masks, "INPUT=RULE",
         "An input that is always this mask: 'mask=(b, h, i, j): j <= i'. It leaves the signature; repeatable",
         "masks");
    choice("--sparsity", options.sparsity, {"on", "off"},
           "Whether kernels leave out what masks of attention leave out; default on. See --help masks", "masks");
    text("--sparsity-report", options.sparsityReport, "FILE",
         "Write the rule of each attention's mask, what is known to be zero of products, and what is left out (- for "
         "stdout; .json)",
         "masks");
    text("--sparsity-tile", raw.sparsityTile, "ROWSxCOLUMNS", "Tiles that the report counts in; default: the kernel's",
         "masks");
  }

  void addPipeline() {
    std::vector<std::string> names = phaseNames();
    std::vector<std::string> emits = names;
    emits.push_back("bundle");
    std::vector<std::string> stages;
    for (const TargetInfo &target : registeredTargets())
      for (const Stop &stop : stops(target.stages ? target.stages() : llvm::ArrayRef<TargetStage>()))
        if (stop.stage)
          stages.push_back(stop.name);
    choice("--emit", options.emit, emits,
           "Stop after a phase, or a stage (--print-phases), and write its text; default bundle", "pipeline", stages);
    names.pop_back(); // codegen's result is bytes, nothing resumes from it
    choice("--from", options.from, names, "MODEL is that phase's, or stage's, text; go on after it", "pipeline",
           stages);
    text("--dump-phases", options.dumpPhases, "DIR",
         "Write every phase's and stage's text there, one numbered file each", "pipeline");
    text("--save-temps", options.saveTemps, "DIR",
         "Keep the kernels' texts there: .mlir, .ll, .s and what else a target has", "pipeline");
    app.add_flag(
           "--show-invoked-commands", options.showCommands,
           "Print a command a step that a tool would do, on files of --save-temps; pasted, they make the same code")
        ->group("pipeline");
    list("--schedule", options.schedules, "FILE",
         "MLIR transform script applied behind partition, or the stop that it names, repeatable; see --help schedules",
         "pipeline");
    list("--schedule-path", options.schedulePaths, "DIR",
         "Folder in which files are looked for that scripts include, before those that targets ship; repeatable",
         "pipeline");
    text("--schedule-log", options.scheduleLog, "FILE",
         "Which form each op of the scripts needed, and what was done for it (- for stdout)", "pipeline");
    text("--save-schedule", options.saveSchedule, "FILE",
         "Write a script that decides all that was decided, and says by whom: it makes the same bundle (- for stdout)",
         "pipeline");
    list("--tuning-db", options.tuningDatabases, "FILE", "What 'dmxc tune' found, obeyed; repeatable", "pipeline");
    list("--set", raw.knobs, "NAME=VALUE", "The value of a parameter of the scripts, repeatable", "pipeline");
    app.add_flag("--explain-decisions", options.explainDecisions,
                 "Print every free choice, its values, and who made it")
        ->group("pipeline");
    text("--numerics", options.numerics, "MODE",
         "In which numbers a target computes; its own by default. --help numerics has the modes of each", "numbers");
    list("--keep-precision", options.keepPrecision, "GLOB",
         "Nodes whose names match keep the weights and operands that --numerics would round, repeatable", "numbers");
    app.add_option("--max-error", options.maxError,
                   "Keep weights whose rounding to blocks has a larger relative RMS error; fail where that leaves none")
        ->type_name("E")
        ->check(CLI::PositiveNumber.description(""))
        ->group("numbers");
  }

  void addTuning() {
    app.add_option("--trials", options.trials, "Most candidates that are measured, the default among them; default 64")
        ->type_name("N")
        ->check(CLI::Range(1, 1000000).description(""))
        ->group("tuning (dmxc tune)");
    text("--db", options.database, "FILE",
         "Where the best decisions are kept; what it has stays and is not measured again", "tuning (dmxc tune)");
    text("--report", options.tuneReport, "FILE", "Write what was found and each measure as JSON (- for stdout)",
         "tuning (dmxc tune)");
    app.add_flag("--list", options.listCandidates, "Print all candidates and their number, measure none")
        ->group("tuning (dmxc tune)");
  }

  void addDiagnostics() {
    const char *group = "diagnostics";
    app.add_flag("-q,--quiet", options.quiet, "Errors and warnings only, without their notes")->group(group);
    app.add_flag("-v,--verbose", options.verbose, "Say what is being done")->group(group);
    choice("--color", raw.color, {"auto", "always", "never"}, "Colours in messages; NO_COLOR turns auto off", group);
    choice("--diagnostics", raw.diagnostics, {"text", "json"}, "Form of messages: one JSON object a line with json",
           group);
    app.add_flag("--Werror", raw.werror, "Warnings are errors")->group(group);
    app.add_flag("--all-errors", options.allErrors,
                 "Each error and warning by itself, with its notes, however many are equal")
        ->group(group);
    choice("--progress", raw.progress, {"auto", "plain", "none"}, "Progress on stderr", group);
    choice("--time-report", raw.timeReport, {"text", "json"},
           "What each phase and pass took, on stderr; text may be left out", group);
    text("--reproducer", options.reproducer, "DIR", "Where to write what a bug report needs after an internal error",
         group);
    app.add_flag("--MD", options.depfile, "Write a dependency file: model, external data, scripts")
        ->group("build systems");
    text("--MF", options.depfilePath, "FILE", "The dependency file's name; default: the output with .d",
         "build systems");
    text("--MT", options.depfileTarget, "TARGET", "The rule's target in it; default: the output", "build systems");
  }

  void addQuery() {
    app.add_flag("--version", raw.version, "Versions of dmxc, the bundle format and MLIR")->group("query");
    app.add_flag("--print-targets", raw.printTargets, "Targets of this build")->group("query");
    text("--print-target-info", options.queryTarget, "T", "What is known of a target", "query");
    app.add_flag("--print-ops", raw.printOps, "DMIR ops x {verifier, interpreter, targets}")->group("query");
    choice("--format", raw.format, {"md", "json"}, "Form of --print-ops", "query");
    app.add_flag("--print-phases", raw.printPhases, "The phases, and the stages of -t's targets, or of all")
        ->group("query");
    app.add_flag("--print-forms", raw.printForms, "Forms of loops that scripts may ask for")->group("query");
    tools::setHelp(app, helpPage(), "query"); // last of all options
  }

  Options &options;
  RawOptions &raw;
};

/// Converts every text of a repeatable option; stops at the first bad one.
template <typename Parse, typename Keep>
Status convertAll(const std::vector<std::string> &texts, Parse parse, Keep keep) {
  for (const std::string &text : texts) {
    auto value = parse(text);
    if (!value)
      return value.takeError();
    keep(std::move(*value));
  }
  return Status::ok();
}

} // namespace

static Query queryOf(const RawOptions &raw, const Options &options) {
  if (raw.version)
    return Query::Version;
  if (raw.printTargets)
    return Query::Targets;
  if (!options.queryTarget.empty())
    return Query::TargetInfo;
  if (raw.printOps)
    return Query::Ops;
  if (raw.printForms)
    return Query::Forms;
  return raw.printPhases ? Query::Phases : Query::None;
}

/// What is given for one name twice is a slip, even where both are the same.
static Status convertShapes(const RawOptions &raw, Options &options) {
  std::map<std::string, std::string> shapes, dims; // by name, as given
  for (const std::string &text : raw.shapes) {
    auto shape = parseShape(text);
    if (!shape)
      return shape.takeError();
    if (auto [before, isNew] = shapes.try_emplace(shape->first, text); !isNew)
      return usageError("the shape of '" + shape->first + "' is given twice: --shape " + before->second + ", --shape " +
                        text);
    if (shape->second)
      options.shapes[shape->first] = *shape->second;
    else
      options.absent.insert(shape->first);
  }
  for (const std::string &text : raw.dims) {
    auto dim = parseDim(text);
    if (!dim)
      return dim.takeError();
    if (auto [before, isNew] = dims.try_emplace(dim->first, text); !isNew)
      return usageError("the dim '" + dim->first + "' is given twice: --dim " + before->second + ", --dim " + text);
    options.dims[dim->first] = dim->second;
  }
  return Status::ok();
}

static Status convertUkernels(const RawOptions &raw, Options &options) {
  for (const std::string &text : raw.ukernels) {
    auto use = parseUkernel(text);
    if (!use)
      return use.takeError();
    if (!options.ukernels.insert(*use).second)
      return usageError("--ukernels: '" + use->first + "' is given twice");
  }
  return Status::ok();
}

static Status convert(const RawOptions &raw, Options &options) {
  options.query = queryOf(raw, options);
  options.bundleDirectory = raw.bundleFormat == "dir";
  options.warningsAsErrors = raw.werror;
  options.color = raw.color == "always" ? ColorMode::Always : raw.color == "never" ? ColorMode::Never : ColorMode::Auto;
  options.jsonDiagnostics = raw.diagnostics == "json";
  options.progress = raw.progress == "plain"  ? ProgressMode::Plain
                     : raw.progress == "none" ? ProgressMode::None
                                              : ProgressMode::Auto;
  options.timeReport = raw.timeReport == "json"   ? TimeReport::Json
                       : raw.timeReport == "text" ? TimeReport::Text
                                                  : TimeReport::None;
  options.opsAsJson = raw.format == "json";
  if (options.showCommands && options.dumpPhases.empty()) // which the commands are about, too
    options.dumpPhases = options.saveTemps;
  if (Status s = convertAll(raw.targets, parseTarget, [&](TargetChoice t) { options.targets.push_back(std::move(t)); });
      !s)
    return s;
  if (Status s = convertShapes(raw, options); !s)
    return s;
  if (Status s = convertKnobs(raw.knobs, options); !s)
    return s;
  if (Status s = convertUkernels(raw, options); !s)
    return s;
  if (raw.states == std::vector<std::string>{"none"})
    options.noStates = true;
  else if (Status s = convertAll(raw.states, parseState, [&](auto p) { options.states.push_back(std::move(p)); }); !s)
    return s;
  if (Status s = convertAll(raw.place, parsePlace, [&](PlaceRule r) { options.place.push_back(std::move(r)); }); !s)
    return s;
  if (Status s =
          convertAll(raw.require, parseRequire, [&](RequireTarget r) { options.require.push_back(std::move(r)); });
      !s)
    return s;
  if (Status s = convertAll(raw.masks, parsePromise, [&](auto p) { options.masks.push_back(std::move(p)); }); !s)
    return s;
  if (!raw.sparsityTile.empty()) {
    auto tile = parseTile(raw.sparsityTile);
    if (!tile)
      return tile.takeError();
    options.sparsityTile = *tile;
  }
  options.queryTarget = targetOf(options.queryTarget);
  if (options.query == Query::TargetInfo && !findTarget(options.queryTarget))
    return usageError("unknown target '" + options.queryTarget + "'; this build has: " + joined(targetNames()) +
                      didYouMean(options.queryTarget, targetNames()));
  return checkOptions(options);
}

/// CLI11 knows no long options with one dash: those of compilers get a second
/// one. -O2 needs nothing. An option whose value may be left out would swallow
/// the next argument, so it gets its value here.
static void respell(std::vector<std::string> &arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string &argument = arguments[i];
    if (argument == "--time-report") {
      bool hasForm = i + 1 < arguments.size() && (arguments[i + 1] == "json" || arguments[i + 1] == "text");
      argument += "=" + (hasForm ? arguments[i + 1] : "text");
      if (hasForm)
        arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
    for (const char *name : {"-MD", "-MF", "-MT", "-Werror"})
      if (arguments[i] == name || arguments[i].rfind(std::string(name) + "=", 0) == 0)
        arguments[i].insert(0, "-");
  }
}

static std::string unknownArguments(const std::vector<std::string> &extra, const std::vector<std::string> &names) {
  std::string argument = extra.empty() ? "" : extra.front();
  std::string name = argument.substr(0, argument.find('='));
  if (name.empty() || name[0] != '-')
    return "unexpected argument '" + argument + "': one model a run; see --help";
  return "unknown option '" + name + "'" + didYouMean(name, names) + " (see --help)";
}

std::optional<int> parseOptions(const std::vector<std::string> &arguments, Options &options, std::ostream &out,
                                std::ostream &err) {
  auto refuse = [&](const Error &error) {
    err << "dmxc: error: " << error.message << " [usage]\n";
    return exitCodeOf(error.kind);
  };
  Result<std::vector<std::string>> expanded = expandResponseFiles(arguments);
  if (!expanded)
    return refuse(expanded.error());
  respell(*expanded);
  if (Status isModel = checkFirstArgument(*expanded); !isModel)
    return refuse(isModel.error());
  if (!expanded->empty() && expanded->front() == "tune") { // a model of that name is ./tune
    options.tune = true;
    expanded->erase(expanded->begin());
  }
  options.jobs = availableProcessors();
  RawOptions raw;
  CommandLine line(options, raw);
  Result<std::optional<std::string>> help = tools::helpAskedFor(line.app, *expanded);
  if (!help)
    return refuse(help.error());
  if (*help) {
    out << **help;
    return 0;
  }
  std::reverse(expanded->begin(),
               expanded->end()); // CLI11 wants them last first
  line.app.allow_extras();
  try {
    line.app.parse(*expanded);
  } catch (const CLI::ParseError &error) {
    return refuse(usageError(error.what()));
  }
  if (std::vector<std::string> extra = line.app.remaining(); !extra.empty())
    return refuse(usageError(unknownArguments(extra, line.optionNames())));
  if (Status status = convert(raw, options); !status)
    return refuse(status.error());
  return std::nullopt;
}

} // namespace dmxc::driver
