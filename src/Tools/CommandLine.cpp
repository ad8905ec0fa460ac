//===- CommandLine.cpp - what all command lines share ---------------------===//
#include "dmxc/Tools/CommandLine.h"

#include "dmx/dmx.h"
#include "dmxc/Support/OutputFile.h"
#include "dmxc/Support/Visible.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <numeric>
#include <unistd.h>

namespace dmxc::tools {

namespace {

size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j + 1] + 1, row[j] + 1, replaced});
    }
  }
  return row.back();
}

constexpr const char *const exitCodeHelp =
    "0 ok; 1 the model or bundle is invalid or unsupported; 2 usage; 3 file, I/O "
    "or out of memory; 5 verification or comparison failed; 70 internal error.";

std::vector<std::string> flagNames(const CLI::App &app) {
  std::vector<std::string> names;
  for (const CLI::Option *option : app.get_options()) {
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
    for (const std::string &name : option->get_snames())
      names.push_back("-" + name);
  }
  return names;
}

} // namespace

std::string closest(std::string_view name, const std::vector<std::string> &known) {
  std::string best;
  size_t least = name.size() / 3 + 1;
  for (const std::string &candidate : known) {
    size_t distance = editDistance(name, candidate);
    if (distance <= least && distance < std::max(name.size(), candidate.size()) &&
        (best.empty() || distance < editDistance(name, best)))
      best = candidate;
  }
  return best;
}

std::string didYouMean(std::string_view name, const std::vector<std::string> &known) {
  std::string best = closest(name, known);
  return best.empty() ? "" : " (did you mean '" + best + "'?)";
}

std::optional<std::pair<std::string, std::string>> splitPair(const std::string &text, bool first) {
  size_t at = first ? text.find('=') : text.rfind('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size())
    return std::nullopt;
  return std::pair(text.substr(0, at), text.substr(at + 1));
}

std::string modelTakenForBundle(const std::string &path) {
  size_t dot = path.rfind('.');
  std::string ending = dot == std::string::npos ? "" : path.substr(dot);
  if ((ending != ".onnx" && ending != ".pt2" && ending != ".mlir") || access(path.c_str(), R_OK) != 0)
    return "";
  return "'" + path + "' is a model, not a bundle; compile it first: dmxc " + path + " -o " + path.substr(0, dot) +
         ".bundle";
}

void prepareApp(CLI::App &app, HelpPage page) {
  if (page.exitCodes.empty())
    page.exitCodes = exitCodeHelp;
  setHelp(app, std::move(page), "General");
  app.set_version_flag("--version", app.get_name() + " " + dmx_version_string(), "Print the version and exit")
      ->group("General");
  app.allow_extras();
}

std::optional<int> parseCommandLine(CLI::App &app, int argc, char **argv) {
  auto usageFailure = [&](const std::string &message) {
    reportError(app.get_name(), usageError(message + "\nRun '" + app.get_name() + " --help' for the flags."));
    return exitCodeOf(ErrorKind::Usage);
  };
  Result<std::optional<std::string>> help = helpAskedFor(app, {argv + 1, argv + argc});
  if (!help)
    return usageFailure(help.error().message);
  if (*help) {
    std::cout << **help;
    return 0;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0)
      return app.exit(error);
    // A misspelt flag often is the reason for a missing argument.
    for (const std::string &extra : app.remaining())
      if (extra.starts_with("-"))
        return usageFailure("unknown flag '" + extra + "'" + didYouMean(extra, flagNames(app)));
    return usageFailure(error.what());
  }
  for (const std::string &extra : app.remaining()) {
    std::string flag = extra.substr(0, extra.find('='));
    return usageFailure(extra.starts_with("-") && extra.size() > 1
                            ? "unknown flag '" + flag + "'" + didYouMean(flag, flagNames(app))
                            : "unexpected argument '" + extra + "'");
  }
  return std::nullopt;
}

bool wantsColor(int fd) {
  const char *none = std::getenv("NO_COLOR"), *term = std::getenv("TERM");
  return !(none && *none) && !(term && std::string_view(term) == "dumb") && isatty(fd);
}

/// Until a tool runs there is nobody to catch what the constructors of libraries throw.
[[noreturn]] static void endAtStart() {
  constexpr std::string_view text = "error: out of memory at start-up\n";
  _exit(write(STDERR_FILENO, text.data(), text.size()) < 0 ? 3 : exitCodeOf(ErrorKind::IO));
}
#ifndef __SANITIZE_ADDRESS__ // which must be ready first
static void installAtStart() { std::set_new_handler(endAtStart); }
__attribute__((section(".preinit_array"), used)) static void (*const beforeLibraries)() = installAtStart;
#endif

/// Nothing is allocated to say that there is no memory.
static void say(std::string_view tool, std::string_view what) {
  for (std::string_view part : {tool, std::string_view(": error: "), what, std::string_view("\n")})
    if (write(STDERR_FILENO, part.data(), part.size()) < 0)
      return;
}

int endOutput(std::string_view tool, int code) {
  bool isWhole = !std::cout.fail();
  std::cout.clear(); // what is left is tried again, which says why
  errno = 0;
  isWhole = std::cout.flush() && isWhole;
  if (isWhole || code)
    return code;
  if (errno == 0 && write(STDOUT_FILENO, "\n", 1) > 0) // nothing was left: what is lost was tried before
    errno = EIO;
  if (errno != EPIPE) // whoever closes a pipe has read enough
    say(tool, std::string("cannot write to stdout: ") + std::strerror(errno));
  return exitCodeOf(ErrorKind::IO);
}

int runTool(std::string_view tool, const std::function<int()> &body) {
  if (std::get_new_handler() == endAtStart)
    std::set_new_handler(nullptr);
  installInterruptCleanup();
  try {
    return endOutput(tool, body());
  } catch (const std::bad_alloc &) {
    say(tool, "out of memory; smaller inputs (--dim) or fewer threads need less of it");
    return exitCodeOf(ErrorKind::IO);
  } catch (const std::exception &error) {
    say(tool, error.what());
    return exitCodeOf(ErrorKind::Internal);
  }
}

int reportError(std::string_view tool, const Error &error) {
  bool color = wantsColor(STDERR_FILENO);
  std::cerr << tool << ": " << (color ? "\033[1;31merror:\033[0m " : "error: ") << visibleLines(error.message) << "\n";
  return exitCodeOf(error.kind);
}

} // namespace dmxc::tools
