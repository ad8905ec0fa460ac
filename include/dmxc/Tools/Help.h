//===- Help.h - what programs say of themselves -----------------*- C++ -*-===//
//
// --help, man pages and completion of shells, all from a program's option rows (CLI::App) and its page: what they say
// cannot differ.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Support/Result.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace dmxc::tools {

/// A command, or the name of something, and what it is.
struct Explained {
  std::string name, what;
};

/// What is too long for the list of options: `--help NAME`.
struct HelpTopic {
  std::string name, title; ///< "targets", "what a bundle can be compiled for"
  std::string text;        ///< paragraphs, an empty line between them
  std::vector<Explained> rows, examples;
};

struct HelpPage {
  std::vector<std::string> usage; ///< without the program's name
  std::vector<Explained> examples;
  std::string more; ///< a paragraph below the examples
  std::string exitCodes;
  std::vector<HelpTopic> topics;
  std::vector<Explained> commands;                        ///< the words that the first argument may be
  std::map<std::string, std::vector<std::string>> values; ///< of options whose type does not list them: "--target"
  std::set<std::string> singleDash;                       ///< names that CLI11 knows with two: "MD"
};

/// Makes app.help() print the page and the options group by group, and adds -h,--help to `group`. Last of all options.
void setHelp(CLI::App &app, HelpPage page, const std::string &group);

/// The text that --help among these arguments (without the program's name) asks for: --help, --help TOPIC, or
/// --help=man, bash, zsh, fish. Nothing where it is not there; a usage error names the topics.
Result<std::optional<std::string>> helpAskedFor(const CLI::App &app, const std::vector<std::string> &arguments);

/// Columns of the lines of --help: COLUMNS, else the terminal's, else 80.
size_t helpWidth();

} // namespace dmxc::tools
