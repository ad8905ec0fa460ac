//===- Prompts.h - token ids to begin with ----------------------*- C++ -*-===//
//
// Private to the Tools room.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Support/OutputFile.h"
#include "dmxc/Tools/Generate.h"

namespace dmxc::tools {

/// Prompts one by one: those of the command line, a random one, lines of a file as they come.
class Prompts {
public:
  Prompts(const GenerateOptions &options, int64_t vocabulary) : options(options), vocabulary(vocabulary) {}
  /// Errors are ErrorKind::IO for a file that cannot be read, Usage for what is no prompt.
  Status open();
  /// Nothing at the end, or where a signal came while it waited. Ids are below the vocabulary.
  Result<std::optional<std::vector<int64_t>>> next();

private:
  Result<std::vector<int64_t>> checked(const std::string &text, const std::string &what) const;
  Result<std::optional<std::string>> nextLine();

  const GenerateOptions &options;
  int64_t vocabulary;
  size_t given = 0, lines = 0;
  bool wasRandom = false;
  Descriptor file;
  std::string buffer;
  bool atEnd = false;
};

} // namespace dmxc::tools
