//===- HelpRows.h - option rows, as text, man page or completion ---------===//
#pragma once

#include "dmxc/Tools/Help.h"

namespace dmxc::tools {

/// An option as it is typed.
struct HelpRow {
  std::vector<std::string> names; ///< "-o", "--output"; of a positional "model"
  std::string value;              ///< "PATH"; "" of a flag
  std::string given;              ///< its default value, "" = none is shown
  std::string help, group;
  bool positional = false, optionalValue = false, repeatable = false;
};

/// What shells are to offer for a value.
struct HelpValue {
  enum Kind { None, Any, Files, Folders, Words } kind = None;
  std::vector<std::string> words;
};

std::vector<HelpRow> helpRows(const CLI::App &app, const HelpPage &page);
HelpValue helpValue(const HelpRow &row, const HelpPage &page);
/// "PATH" or "N (default 3)", as lists of options have it.
std::string shownValue(const HelpRow &row);

struct HelpSubject {
  std::string program, description, version;
  const HelpPage &page;
  std::vector<HelpRow> rows;
};

std::string manPage(const HelpSubject &subject);
std::string bashCompletion(const HelpSubject &subject);
std::string zshCompletion(const HelpSubject &subject);
std::string fishCompletion(const HelpSubject &subject);

} // namespace dmxc::tools
