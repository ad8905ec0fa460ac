//===- main.cpp - dmx-run: runs a bundle ----------------------------------===//
#include "Flags.h"

#include "dmxc/Tools/CommandLine.h"

#include <iostream>
#include <unistd.h>

using namespace dmxc;
using namespace dmxc::tools;

namespace {

HelpPage helpPage() {
  HelpPage page;
  page.usage = {"BUNDLE [flags]"};
  page.examples = {{"dmx-run m.bundle --inputs test_data_set_0 --expect test_data_set_0", ""},
                   {"dmx-run m.bundle --input x=photo.npy --output y=scores.npy", ""},
                   {"dmx-run m.bundle --benchmark --threads 1 --per-task", ""},
                   {"dmx-run m.bundle --random-inputs 1 --profile trace.json", ""}};
  return page;
}

} // namespace

static int run(int argc, char **argv) {
  CLI::App app("Runs a bundle, compares its outputs, measures it.", "dmx-run");
  RunOptions options;
  PairFlags pairs;
  addFlags(app, options, pairs);
  prepareApp(app, helpPage()); // last, so that its flags end the help
  if (std::optional<int> code = parseCommandLine(app, argc, argv))
    return *code;
  if (std::optional<Error> error = readPairs(pairs, options))
    return reportError("dmx-run", *error);
  options.color = wantsColor(STDOUT_FILENO);
  std::ios::sync_with_stdio(false);
  Status done = runBundle(options, std::cout);
  std::cout.flush();
  return done ? 0 : reportError("dmx-run", done.error());
}

int main(int argc, char **argv) {
  return runTool("dmx-run", [&] { return run(argc, argv); });
}
