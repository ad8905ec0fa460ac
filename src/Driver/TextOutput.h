//===- TextOutput.h - text files that are never half written ----*- C++ -*-===//
#pragma once

#include "dmxc/Support/Result.h"

#include <string>
#include <string_view>
#include <vector>

namespace dmxc::driver {

/// Writes to a temporary name and renames; "-" is stdout. Missing folders are
/// not made.
Status writeText(const std::string &path, std::string_view text);
/// Makes a folder and its parents.
Status makeFolder(const std::string &path);
/// Removes the temporary that is being written now; async-signal-safe.
void removeTextTemporaryFromSignal();

/// A make rule `target: inputs` in GNU make's quoting, with an empty rule per
/// input so that deleted ones do no harm.
std::string dependencyRule(const std::string &target, const std::vector<std::string> &inputs);

} // namespace dmxc::driver
