//===- main.cpp - dmx-generate: tokens of a bundle that is a decoder ------===//
#include "dmxc/Tools/CommandLine.h"
#include "dmxc/Tools/Generate.h"

#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>

using namespace dmxc;
using namespace dmxc::tools;

namespace {

HelpPage helpPage() {
  HelpPage page;
  page.usage = {"BUNDLE [flags]"};
  page.examples = {{"dmx-generate llm.bundle --prompt '1 15043 3186'", "the best tokens"},
                   {"dmx-generate llm.bundle --prompts ids.txt --temperature 0.8 --top-p 0.95 --seed 1", ""},
                   {"dmx-generate llm.bundle --random-prompt 512 --max-tokens 64 --benchmark", ""},
                   {"python3 -m dmxrt.generate llm.bundle --tokenizer DIR", "text"}};
  page.more = "Takes and prints token ids, a line a prompt, each as it comes. The bundle is a decoder that takes token "
              "ids and gives logits; what it remembers are caches that are inputs and outputs of a run, or states, or "
              "nothing. SIGINT, SIGTERM and SIGHUP end it behind the run that computes: what was said is written, and "
              "then it dies of the signal.";
  return page;
}

/// One value each time it is given.
CLI::Option *repeatable(CLI::Option *option) { return option->expected(1)->allow_extra_args(false)->take_all(); }

void addPromptFlags(CLI::App &app, GenerateOptions &options) {
  const std::string group = "Prompts";
  repeatable(app.add_option("--prompt", options.prompts, "Token ids, between spaces or commas (repeatable)"))
      ->group(group)
      ->type_name("IDS");
  app.add_option("--prompts", options.promptsFile, "A prompt a line, answered one by one; - is stdin, as lines come")
      ->group(group)
      ->type_name("FILE");
  app.add_option("--random-prompt", options.randomPrompt, "A prompt of N random ids, the same for each --seed")
      ->group(group)
      ->type_name("N")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 24));
}

void addChoiceFlags(CLI::App &app, GenerateOptions &options) {
  const std::string group = "Choice of tokens";
  SamplingOptions &sampling = options.sampling;
  app.add_option("--temperature", sampling.temperature, "Logits are divided by T before one is drawn; 0: the best one")
      ->group(group)
      ->type_name("T")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--top-k", sampling.topK, "Draw among the best K; 0: all")
      ->group(group)
      ->type_name("K")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--top-p", sampling.topP, "Draw among the best that have this share of the probability")
      ->group(group)
      ->type_name("P")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--repetition-penalty", sampling.repetitionPenalty,
                 "Logits of tokens that were there are divided by it, negative ones multiplied")
      ->group(group)
      ->type_name("R")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", sampling.seed, "The same tokens each time; else others each time (--json says the seed)")
      ->group(group)
      ->type_name("N");
  app.add_option("--max-tokens", options.maxTokens, "Most tokens of an answer")
      ->group(group)
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  repeatable(app.add_option("--stop", options.stopIds,
                            "A token that ends an answer, and is not printed (repeatable); instead of the bundle's"))
      ->group(group)
      ->type_name("ID");
  app.add_flag("--ignore-stop", options.ignoreStops, "Go on behind the tokens that the bundle says end an answer")
      ->group(group);
  app.add_option("--lookup", options.lookup,
                 "Guess up to N tokens from what followed the last ones before, and check them in one run: the same "
                 "tokens in fewer runs where texts repeat themselves; 0: none")
      ->group(group)
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
}

void addDecoderFlags(CLI::App &app, GenerateOptions &options, std::vector<std::string> &caches) {
  const std::string group = "Decoder";
  DecoderNames &names = options.names;
  app.add_option("--ids", names.ids, "The input that is token ids; what is not said is found by name and shape")
      ->group(group)
      ->type_name("NAME");
  app.add_option("--mask", names.mask, "The input that is the mask of attention")->group(group)->type_name("NAME");
  app.add_option("--positions", names.positions, "The input that is positions of tokens")
      ->group(group)
      ->type_name("NAME");
  app.add_option("--logits", names.logits, "The output that is logits")->group(group)->type_name("NAME");
  repeatable(app.add_option("--cache", caches,
                            "An input and the output that it is in the next run; a * on both sides stands for the same "
                            "text: 'past.*=present.*' (repeatable)"))
      ->group(group)
      ->type_name("INPUT=OUTPUT");
  app.add_option("--context", options.context, "Most tokens, prompt and answer together; else as the bundle says")
      ->group(group)
      ->type_name("N")
      ->check(CLI::PositiveNumber);
}

void addExecutionFlags(CLI::App &app, GenerateOptions &options) {
  std::string group = "Execution";
  app.add_option("--threads", options.session.threads, "Threads of a run; 0: all CPUs allowed")
      ->group(group)
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  app.add_option("--entry", options.session.entryPoint, "Entry point; the first when absent")
      ->group(group)
      ->type_name("NAME");
  repeatable(app.add_option("--device-opt", options.session.deviceOptions,
                            "Option of the devices, TARGET.KEY=VALUE or KEY=VALUE for all that know the key "
                            "(repeatable)"))
      ->group(group)
      ->type_name("K=V");
  repeatable(app.add_option("--trusted-key", options.session.trustedKeys,
                            "Run the bundle only if it is signed by this key, or another one given (repeatable); exit "
                            "code 5 when not"))
      ->group(group)
      ->type_name("KEY.pub");
  group = "Measurement";
  app.add_flag("--benchmark", options.benchmark,
               "Print tokens a second and GB/s of weights and caches, of prompts and of answers, instead of ids")
      ->group(group);
  app.add_option("--json", options.jsonFile, "Write ids and figures as JSON; - is stdout, instead of ids")
      ->group(group)
      ->type_name("FILE");
  app.add_flag("-q,--quiet", options.quiet, "Print ids only")->group("General");
}

std::optional<Error> readCaches(const std::vector<std::string> &texts, GenerateOptions &options) {
  for (const std::string &text : texts) {
    auto pair = splitPair(text);
    auto stars = [](const std::string &side) { return std::count(side.begin(), side.end(), '*'); };
    if (!pair || stars(pair->first) > 1 || stars(pair->first) != stars(pair->second))
      return usageError("--cache " + text + ": expected INPUT=OUTPUT, with one * on both sides or none");
    options.names.caches.push_back(*pair);
  }
  return std::nullopt;
}

} // namespace

static int run(int argc, char **argv) {
  CLI::App app("Generates tokens with a bundle that is a decoder.", "dmx-generate");
  GenerateOptions options;
  std::vector<std::string> caches;
  app.add_option("bundle", options.bundle, "The bundle: a file or a directory")->required();
  addPromptFlags(app, options);
  addChoiceFlags(app, options);
  addDecoderFlags(app, options, caches);
  addExecutionFlags(app, options);
  prepareApp(app, helpPage()); // last, so that its flags end the help
  if (std::optional<int> code = parseCommandLine(app, argc, argv))
    return *code;
  if (std::optional<Error> error = readCaches(caches, options))
    return reportError("dmx-generate", *error);
  std::ios::sync_with_stdio(false);
  Result<int> signal = generate(options, std::cout);
  std::cout.flush();
  if (!signal)
    return reportError("dmx-generate", signal.error());
  if (*signal)
    std::raise(*signal);
  return 0;
}

int main(int argc, char **argv) {
  return runTool("dmx-generate", [&] { return run(argc, argv); });
}
