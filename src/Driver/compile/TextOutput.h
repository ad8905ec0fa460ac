//===- TextOutput.h - text files that are never half written ----*- C++ -*-===//
#pragma once

#include "dmxc/Support/Result.h"

#include <string>
#include <string_view>
#include <vector>

namespace dmxc::driver {

/// A whole file, never half of one; "-" is stdout. Missing folders are not
/// made.
Status writeText(const std::string &path, std::string_view text);
/// Makes a folder and its parents.
Status makeFolder(const std::string &path);

/// A make rule `target: inputs` in GNU make's quoting, with an empty rule per
/// input so that deleted ones do no harm.
std::string dependencyRule(const std::string &target, const std::vector<std::string> &inputs);

} // namespace dmxc::driver
