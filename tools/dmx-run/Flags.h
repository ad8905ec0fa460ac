//===- Flags.h - the flags of dmx-run ---------------------------*- C++ -*-===//
#pragma once

#include "dmxc/Tools/Run.h"

#include <CLI/CLI.hpp>

namespace dmxc::tools {

/// The texts of repeatable NAME=VALUE flags before they are taken apart.
struct PairFlags {
  std::vector<std::string> inputs, outputs, dims;
};

void addFlags(CLI::App &app, RunOptions &options, PairFlags &pairs);
/// Takes the texts apart; an error names the flag and the form that is expected.
std::optional<Error> readPairs(const PairFlags &texts, RunOptions &options);

} // namespace dmxc::tools
