//===- CommandLine.h - what all command lines share -------------*- C++ -*-===//
#pragma once

#include "dmxc/Support/Result.h"
#include "dmxc/Tools/Help.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace dmxc::tools {

/// The closest of `known` by edit distance when it is close enough to be a
/// slip of the fingers; empty otherwise.
std::string closest(std::string_view name, const std::vector<std::string> &known);

/// " (did you mean 'x'?)" or nothing.
std::string didYouMean(std::string_view name, const std::vector<std::string> &known);

/// "NAME=VALUE" in two, at the first '=' when `first`, else at the last.
/// Nothing when there is no '=' or a side is empty.
std::optional<std::pair<std::string, std::string>> splitPair(const std::string &text, bool first = true);

/// What to say where a bundle was expected and a readable file has a model's name; "" of others.
std::string modelTakenForBundle(const std::string &path);

/// Gives a program its page and adds --help and --version, which end the list of flags: last of all. Exit codes that
/// the page does not say are those of all tools.
void prepareApp(CLI::App &app, HelpPage page);

/// Parses the command line. Nothing when the tool goes on; else its exit code
/// (0 after --help and --version, 2 after a message about a wrong flag with
/// "did you mean").
std::optional<int> parseCommandLine(CLI::App &app, int argc, char **argv);

/// Runs a tool's `body`, which gives its exit code. Memory that does not suffice ends it with exit code 3 and a
/// sentence, SIGINT, SIGTERM and SIGHUP remove what is half written.
int runTool(std::string_view tool, const std::function<int()> &body);

/// The end of what a tool printed to std::cout: `code`, or where that was 0 and the output could not be written, the
/// exit code and the sentence for that. A pipe whose reader went away needs no sentence.
int endOutput(std::string_view tool, int code);

/// Prints "tool: error: message" on stderr, in colour where allowed, and
/// returns the exit code.
int reportError(std::string_view tool, const Error &error);

/// Whether a stream (1 stdout, 2 stderr) is a terminal that wants colour:
/// NO_COLOR and TERM=dumb are honoured.
bool wantsColor(int fd);

} // namespace dmxc::tools
