//===- OptionValues.h - the texts that options take -------------*- C++ -*-===//
#pragma once

#include "dmxc/Driver/Options.h"
#include "dmxc/Support/Result.h"
#include "dmxc/Support/ShellWord.h"
#include "dmxc/Target/TargetHelp.h"

namespace dmxc::driver {

// Each parses the text after one option. Errors are ErrorKind::Usage, with what
// was expected and an example.
/// Without dims for NAME=none.
Result<std::pair<std::string, std::optional<std::vector<int64_t>>>> parseShape(const std::string &text);
Result<std::pair<std::string, DimBounds>> parseDim(const std::string &text);
Result<PlaceRule> parsePlace(const std::string &text);
Result<RequireTarget> parseRequire(const std::string &text);
/// Rows and columns of --sparsity-tile.
Result<std::pair<int64_t, int64_t>> parseTile(const std::string &text);

/// The target of that name, or that users call so ("gpu"); the name itself where there is none.
std::string targetOf(const std::string &name);
/// Refuses words that elsewhere are commands ("compile", "run"), where no file is called so, with what to type.
Status checkFirstArgument(const std::vector<std::string> &arguments);

/// Replaces every `@file` by the file's arguments: separated by white space,
/// quoted with '…' or "…", backslash takes the next character literally, `#`
/// starts a comment line. Files may name further files; a cycle is an error.
Result<std::vector<std::string>> expandResponseFiles(const std::vector<std::string> &arguments);

/// "; did you mean 'x'?" or "" when nothing is near.
std::string didYouMean(const std::string &text, const std::vector<std::string> &names);
/// "NAME" or "NAME:LEVELS", as -t takes it.
std::string exampleOf(const std::string &target, const TargetHelp::Example &example);
/// The same of the target's first example with levels, or with LEVEL for it.
std::string exampleOf(const std::string &target);
/// "a, b, c"
std::string joined(const std::vector<std::string> &names);

/// The values of --set: each parameter once, of scripts that there are.
Status convertKnobs(const std::vector<std::string> &texts, Options &options);
/// Refuses options that contradict one another, and those that would be ignored.
Status checkOptions(const Options &options);
/// Refuses --keep-precision and --max-error where no target of the compile obeys them in the mode of --numerics.
Status checkKept(const Options &options, bool mayKeepNodes, bool mayLimitError);

} // namespace dmxc::driver
