//===- main.cpp - dmx-compare, the interpreter against a bundle -----------===//
#include "dmxc/Driver/Compare.h"
#include "dmxc/Driver/Driver.h"
#include "dmxc/Driver/Messages.h"
#include "dmxc/Tools/CommandLine.h"

#include <CLI/CLI.hpp>

#include <iostream>
#include <unistd.h>

static dmxc::tools::HelpPage helpPage() {
  dmxc::tools::HelpPage page;
  page.usage = {"MODEL [BUNDLE] --inputs DIR [--per-node | --stages] [-- DMXC OPTIONS]"};
  page.examples = {{"dmx-compare model.onnx --inputs data", "compile, run and compare the outputs"},
                   {"dmx-compare model.onnx model.bundle --inputs data", "compare a bundle that exists"},
                   {"dmx-compare model.onnx --inputs data --per-node", "name the first node that differs"},
                   {"dmx-compare model.onnx --random-inputs 1", "the same without inputs at hand"},
                   {"dmx-compare model.onnx --inputs data --numerics bf16 --per-node", "how far each node is from f32"},
                   {"dmx-compare model.onnx --random-inputs 1 --stages -- -t corsair",
                    "name the first stage of the compile that computes something else"},
                   {"dmx-compare model.onnx --inputs data -- --dim batch=8 -O0", "options of dmxc after --"}};
  return page;
}

/// The largest relative RMS error that a mode of --numerics may bring to an output, by how its name begins: logits of
/// decoders of random weights are 1.9e-2 off in int8-weights and 0.3 in int4-weights, and 8 bits of operands stay below
/// the last.
static double mostRms(const std::string &numerics) {
  for (auto [prefix, most] : {std::pair("int4-", 0.5), {"int8", 5e-2}})
    if (numerics.starts_with(prefix))
      return most;
  return 1.5e-2;
}

static void addFlags(CLI::App &app, dmxc::driver::CompareRequest &request, std::string &model, std::string &numerics) {
  auto option = [&](const char *flag, auto &value, const char *type, const char *help) {
    return app.add_option(flag, value, help)->type_name(type)->group("Options");
  };
  app.add_option("model", model, "The model file")->required();
  app.add_option("bundle", request.bundle, "Its bundle; compiled when not given");
  option("--inputs", request.inputs, "DIR", "Folder with the inputs, as dmx-run takes it");
  option("--random-inputs", request.randomSeed, "SEED",
         "Make inputs instead: floats in [-1, 1), integers 0 or 1; open dims as -- --dim says, else smallest");
  app.add_flag("--per-node", request.perNode,
               "Compare the value of every node and name the first that differs; with --max-rms the error of each")
      ->group("Options");
  app.add_flag("--stages", request.stages,
               "Evaluate the text of every stop of the compile (dmxc --print-phases) in the target's own numbers and "
               "name the first that differs from the one before it; of targets that evaluate their stages, as corsair")
      ->group("Options");
  option("--stage-texts", request.stageTexts, "DIR",
         "With --stages: texts of --dump-phases, changed or not, in the place of the compile's");
  option("--numerics", numerics, "MODE",
         "In which numbers the bundle computes, as dmxc --numerics; the reference stays as the model is. Outputs are "
         "judged by --max-rms then");
  option("--max-rms", request.maxRms, "RMS",
         "Judge floats as a whole: their relative RMS error may be this; default 0.015 with --numerics but strict, "
         "0.05 with int8 modes, 0.5 with int4 modes")
      ->check(CLI::PositiveNumber);
  option("--rtol", request.rtol, "R",
         "Compare by |error| <= R |expected| + A; without both as dmx-run: floats by 2e-3 of their value + 2e-4 of the "
         "tensor's largest one, integers equal. R is 1e-3 where --atol alone is given")
      ->check(CLI::NonNegativeNumber);
  option("--atol", request.atol, "A",
         "The A of --rtol, of a node at least a millionth of its largest element; 1e-7 where --rtol alone is given")
      ->check(CLI::NonNegativeNumber);
  option("--threads", request.threads, "N", "Threads of the run; default all");
}

static int run(int argc, char **argv) {
  // What stands after "--" is dmxc's.
  std::vector<std::string> compilerArguments;
  for (int i = 1; i < argc; ++i)
    if (std::string(argv[i]) == "--") {
      compilerArguments.assign(argv + i + 1, argv + argc);
      argc = i;
    }
  dmxc::driver::CompareRequest request;
  std::string model, numerics;
  CLI::App app("Runs a model in the reference interpreter and as a bundle on "
               "the same inputs, and compares.",
               "dmx-compare");
  addFlags(app, request, model, numerics);
  dmxc::tools::prepareApp(app, helpPage()); // last, so that its flags end the help
  if (std::optional<int> code = dmxc::tools::parseCommandLine(app, argc, argv))
    return *code;
  if (request.inputs.empty() == !request.randomSeed)
    return dmxc::tools::reportError(
        "dmx-compare", dmxc::usageError(request.randomSeed ? "--inputs and --random-inputs exclude each other"
                                                           : "no inputs to compare with: give --inputs DIR, as dmx-run "
                                                             "takes it, or --random-inputs SEED"));
  if (request.stages && (!request.bundle.empty() || request.perNode || !numerics.empty() || request.maxRms))
    return dmxc::tools::reportError(
        "dmx-compare",
        dmxc::usageError("--stages compiles the model itself and compares its stops to the bit: leave out "
                         "BUNDLE, --per-node, --numerics and --max-rms"));
  if (!request.stageTexts.empty() && !request.stages)
    return dmxc::tools::reportError("dmx-compare", dmxc::usageError("--stage-texts is for --stages"));
  if (!numerics.empty() && !request.bundle.empty())
    return dmxc::tools::reportError(
        "dmx-compare", dmxc::usageError("--numerics is for a bundle that is compiled here; the one that is given has "
                                        "its own: leave the option out, or give --max-rms"));
  if (!numerics.empty())
    compilerArguments.insert(compilerArguments.begin(), {"--numerics", numerics});
  if (!numerics.empty() && numerics != "strict" && !request.maxRms)
    request.maxRms = mostRms(numerics);
  compilerArguments.insert(compilerArguments.begin(), model);
  if (std::optional<int> code = dmxc::driver::parseOptions(compilerArguments, request.options, std::cout, std::cerr))
    return *code;
  dmxc::driver::Messages messages(request.options, dmxc::tools::wantsColor(STDERR_FILENO));
  dmxc::Diagnostics diagnostics([&](const dmxc::Diagnostic &diagnostic) { messages.take(diagnostic); });
  int code = dmxc::driver::compareWithReference(request, diagnostics, std::cout);
  messages.flush();
  return code;
}

int main(int argc, char **argv) {
  dmxc::driver::installMemoryHandlers(); // the compiler is in here
  return dmxc::tools::runTool("dmx-compare", [&] { return run(argc, argv); });
}
