//===- Commands.h - what tools would do of a compile ------------*- C++ -*-===//
#pragma once

#include "dmxc/Driver/Options.h"
#include "dmxc/Support/Result.h"

namespace dmxc::driver {

/// The steps of a finished compile as commands, a line each, on files of --save-temps: dmx-opt from one stop to the
/// next, then what each target says of its code ("commands.TARGET" there).
Result<std::string> invokedCommands(const Options &options, const PhaseContext &context);

} // namespace dmxc::driver
