//===- main.cpp - dmx-inspect: shows, checks and compares bundles ---------===//
#include "dmxc/Tools/CommandLine.h"
#include "dmxc/Tools/Inspect.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

using namespace dmxc;
using namespace dmxc::tools;

namespace {

HelpPage helpPage() {
  HelpPage page;
  page.usage = {"BUNDLE [flags]"};
  page.examples = {{"dmx-inspect m.bundle", ""},
                   {"dmx-inspect m.bundle --what memory --json", ""},
                   {"dmx-inspect m.bundle --what kernels --kernel k0_conv", ""},
                   {"dmx-inspect m.bundle --verify", ""},
                   {"dmx-inspect old.bundle --diff new.bundle", ""},
                   {"dmx-inspect m.bundle --html m.html --report run.json --report trace.json", ""}};
  return page;
}

std::string known(const std::vector<std::string> &views) {
  std::string text;
  for (const std::string &view : views)
    text += (text.empty() ? "" : ", ") + view;
  return text;
}

void addFlags(CLI::App &app, InspectOptions &options) {
  std::string views;
  for (const std::string &view : inspectViews())
    views += (views.empty() ? "" : "|") + view;
  app.add_option("bundle", options.bundle, "The bundle: a file or a directory; or what dmxc tune --db wrote")
      ->required();
  app.add_option("--what", options.what, "What to show; summary when nothing else is asked for")
      ->group("Views")
      ->type_name(views);
  app.add_option("--kernel", options.kernel,
                 "Show this kernel only; means --what kernels, which disassembles device code")
      ->group("Views")
      ->type_name("NAME");
  app.add_flag("--json", options.json, "Print JSON instead of text")->group("Views");
  app.add_option("--html", options.htmlFile, "Write a page with memory maps, device code and tables")
      ->group("Views")
      ->type_name("OUT");
  app.add_option(
         "--report", options.reportFiles,
         "Add to the page what a run wrote: a device's report or trace (dmx-run --device-opt), a --profile, or a "
         "--report of dmxc tune; "
         "may be repeated")
      ->group("Views")
      ->type_name("FILE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_flag("--check", options.check,
               "Check structure and code, and lay out runs at the smallest, usual and largest dims; exit code 5 when "
               "something is wrong")
      ->group("Checks");
  app.add_flag("--verify", options.verify, "Check everything, weights and every checksum included")->group("Checks");
  app.add_option("--diff", options.diffWith,
                 "Compare with another bundle, device code by instructions; exit code 5 when they differ")
      ->group("Checks")
      ->type_name("BUNDLE2");
}

} // namespace

static int run(int argc, char **argv) {
  CLI::App app("Shows, checks and compares bundles.", "dmx-inspect");
  InspectOptions options;
  addFlags(app, options);
  prepareApp(app, helpPage()); // last, so that its flags end the help
  if (std::optional<int> code = parseCommandLine(app, argc, argv))
    return *code;
  const std::vector<std::string> &views = inspectViews();
  if (!options.what.empty() && std::find(views.begin(), views.end(), options.what) == views.end())
    return reportError("dmx-inspect", usageError("--what " + options.what + ": unknown view" +
                                                 didYouMean(options.what, views) + "; known are " + known(views)));
  if (!options.kernel.empty() && !options.what.empty() && options.what != "kernels")
    return reportError("dmx-inspect", usageError("--kernel goes with --what kernels, not with --what " + options.what));
  if (!options.kernel.empty())
    options.what = "kernels";
  if (!options.reportFiles.empty() && options.htmlFile.empty())
    return reportError("dmx-inspect", usageError("--report adds to the page of --html, which is not there"));
  std::ios::sync_with_stdio(false);
  Status done = inspectBundle(options, std::cout);
  std::cout.flush();
  return done ? 0 : reportError("dmx-inspect", done.error());
}

int main(int argc, char **argv) {
  return runTool("dmx-inspect", [&] { return run(argc, argv); });
}
