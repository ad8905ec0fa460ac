//===- Flags.cpp - the flags of dmx-run -----------------------------------===//
#include "Flags.h"

#include "dmxc/Tools/CommandLine.h"

#include <charconv>

using namespace dmxc;
using namespace dmxc::tools;

namespace {

/// One value each time it is given.
CLI::Option *repeatable(CLI::Option *option) { return option->expected(1)->allow_extra_args(false)->take_all(); }

void addInputFlags(CLI::App &app, RunOptions &options, PairFlags &pairs) {
  const std::string group = "Inputs and outputs";
  app.add_option("--inputs", options.inputsDir,
                 "Directory with all inputs: in_<name>.npy, <name>.npy or "
                 "input_0.pb ...")
      ->group(group)
      ->type_name("DIR");
  repeatable(app.add_option("--input", pairs.inputs, "One input; .npy or ONNX .pb (repeatable)"))
      ->group(group)
      ->type_name("NAME=FILE");
  app.add_option("--random-inputs", options.randomSeed,
                 "Fill inputs that are not given: floats in [-1, 1), integers 0 or 1")
      ->group(group)
      ->type_name("SEED");
  repeatable(app.add_option("--dim", pairs.dims, "Value of a symbolic dim for random inputs (repeatable)"))
      ->group(group)
      ->type_name("NAME=N");
  repeatable(app.add_option("--output", pairs.outputs, "Write one output; .npy or .pb (repeatable)"))
      ->group(group)
      ->type_name("NAME=FILE");
  app.add_option("--output-dir", options.outputDir, "Write all outputs as out_<name>.npy")
      ->group(group)
      ->type_name("DIR");
}

void addComparisonFlags(CLI::App &app, RunOptions &options) {
  const std::string group = "Comparison";
  app.add_option(
         "--expect", options.expectDir,
         "Compare with the outputs in this directory; exit code 5 when they differ: floats by more than 2e-3 of "
         "their value + 2e-4 of the output's largest one, integers at all")
      ->group(group)
      ->type_name("DIR");
  app.add_option("--rtol", options.tolerance.rtol,
                 "Compare by |error| <= R |expected| + A instead; R is 1e-3 where --atol alone is given")
      ->group(group)
      ->type_name("R")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--atol", options.tolerance.atol, "The A of --rtol; 1e-7 where --rtol alone is given")
      ->group(group)
      ->type_name("A")
      ->check(CLI::NonNegativeNumber);
  app.add_option(
         "--min-sqnr", options.tolerance.minSqnr,
         "With --expect: floats match when their signal to noise ratio is at least this many decibels, whatever "
         "single elements do (for targets with block floating point)")
      ->group(group)
      ->type_name("DB");
}

void addExecutionFlags(CLI::App &app, RunOptions &options) {
  std::string group = "Execution";
  app.add_option("--threads", options.session.threads, "Threads of a run; 0: all CPUs allowed")
      ->group(group)
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  app.add_option("--entry", options.session.entryPoint, "Entry point; the first when absent")
      ->group(group)
      ->type_name("NAME");
  app.add_option("--isa", options.session.isa, "ISA level of the code; the best this CPU has when absent")
      ->group(group)
      ->type_name("LEVEL");
  app.add_option_function<std::string>(
         "--load", [&options](const std::string &how) { options.session.copyBundle = how == "copy"; },
         "map: weights are pages of the file, which must not be modified meanwhile; copy: the file is read once "
         "into private memory (default map)")
      ->group(group)
      ->type_name("map|copy")
      ->check(CLI::IsMember({"map", "copy"}));
  app.add_flag("--require-contracts", options.session.requireContracts,
               "Refuse code that does not say what its kernels touch (dmx-inspect: without contracts)")
      ->group(group);
  app.add_flag("--no-user-code", options.session.noUserCode,
               "Refuse a bundle with code that a user wrote (dmx-inspect: user code)")
      ->group(group);
  repeatable(app.add_option("--device-opt", options.session.deviceOptions,
                            "Option of the devices, TARGET.KEY=VALUE or KEY=VALUE for all that know the key "
                            "(repeatable); an unknown one is "
                            "answered with those of the model's devices"))
      ->group(group)
      ->type_name("K=V");

  group = "Trust";
  repeatable(
      app.add_option(
          "--trusted-key", options.session.trustedKeys,
          "Run the bundle only if it is signed by this key, or another one given (repeatable); exit code 5 when not"))
      ->group(group)
      ->type_name("KEY.pub");
  app.add_option("--signature", options.session.signatureFile,
                 "A detached signature, instead of the one in the bundle; goes with --trusted-key")
      ->group(group)
      ->type_name("FILE");
}

void addMeasurementFlags(CLI::App &app, RunOptions &options) {
  const std::string group = "Measurement";
  app.add_flag("--benchmark", options.benchmark, "Run many times and print the latency; inputs not given are random")
      ->group(group);
  app.add_option("--warmup", options.warmup, "Runs before the clock starts")
      ->group(group)
      ->type_name("W")
      ->capture_default_str();
  CLI::Option *iters = app.add_option("--iters", options.iters, "Number of timed runs")
                           ->group(group)
                           ->type_name("N")
                           ->check(CLI::Range(1u, 100000000u));
  app.add_option("--min-time", options.minTimeSeconds, "Seconds to measure for, at least five runs")
      ->group(group)
      ->type_name("S")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber)
      ->excludes(iters);
  app.add_flag("--per-task", options.perTask, "Print the time of each task, from extra runs with profiling on")
      ->group(group);
  app.add_option("--profile", options.profileFile, "Write a Chrome trace: one row a thread, one slice a task")
      ->group(group)
      ->type_name("FILE");
  app.add_option("--json", options.jsonFile, "Write the figures as JSON")->group(group)->type_name("FILE");
}

} // namespace

void dmxc::tools::addFlags(CLI::App &app, RunOptions &options, PairFlags &pairs) {
  app.add_option("bundle", options.bundle, "The bundle: a file or a directory")->required();
  addInputFlags(app, options, pairs);
  addComparisonFlags(app, options);
  addExecutionFlags(app, options);
  addMeasurementFlags(app, options);
  app.add_flag("-q,--quiet", options.quiet, "Print results only")->group("General");
}

std::optional<Error> dmxc::tools::readPairs(const PairFlags &texts, RunOptions &options) {
  auto malformed = [](const char *flag, const std::string &text, const char *form) {
    return usageError(std::string(flag) + " " + text + ": expected " + form);
  };
  for (const std::string &text : texts.inputs) {
    auto pair = splitPair(text, false);
    if (!pair)
      return malformed("--input", text, "NAME=FILE");
    options.inputs.push_back(*pair);
  }
  for (const std::string &text : texts.outputs) {
    auto pair = splitPair(text, false);
    if (!pair)
      return malformed("--output", text, "NAME=FILE");
    options.outputs.push_back(*pair);
  }
  for (const std::string &text : texts.dims) {
    auto pair = splitPair(text, false);
    int64_t value = -1;
    if (pair)
      std::from_chars(pair->second.data(), pair->second.data() + pair->second.size(), value);
    if (!pair || value < 0 || std::to_string(value) != pair->second)
      return malformed("--dim", text, "NAME=N with N an integer of at least 0");
    options.dims.emplace_back(pair->first, value);
  }
  return std::nullopt;
}
