//===- Driver.h - dmxc as a library -----------------------------*- C++ -*-===//
#pragma once

#include "dmxc/Driver/Options.h"
#include "dmxc/Support/Diagnostic.h"

namespace dmxc::driver {

/// A whole compile: import to bundle (or to the text of a phase) with all
/// reports. Returns the exit code of README.md; messages went to `diagnostics`,
/// reports to stdout and stderr as the options say. Same input and options give
/// the same bytes.
int compile(const Options &options, Diagnostics &diagnostics);

/// Answers --version and the --print-* options on stdout.
int answerQuery(const Options &options);

/// From now on a failed allocation, here or in LLVM, or a thread that cannot be
/// started, ends the process: temporaries are removed, "out of memory" is said,
/// the exit code is 3. Other errors that nobody handles end it as crashes do.
void installMemoryHandlers();

/// The whole of dmxc: signals, options, queries, compile.
int dmxcMain(int argc, char **argv);

} // namespace dmxc::driver
