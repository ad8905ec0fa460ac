//===- Tune.h - dmxc tune ---------------------------------------*- C++ -*-===//
#pragma once

#include "dmxc/Driver/Options.h"
#include "dmxc/Support/Diagnostic.h"

namespace dmxc::driver {

/// Lists the candidates of a model, or measures some and keeps the best; the exit code.
int tune(const Options &options, Diagnostics &diagnostics);

} // namespace dmxc::driver
