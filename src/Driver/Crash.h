//===- Crash.h - signals, crashes and reproducers ---------------*- C++ -*-===//
#pragma once

#include "dmxc/Driver/Options.h"

namespace dmxc::driver {

/// SIGINT, SIGTERM and SIGHUP remove what is half written before the process
/// dies of them; crashes (SIGSEGV, SIGABRT, ...) and fatal errors of LLVM end it
/// with 70 after a reproducer was written, and a lack of memory with 3 and one
/// sentence (installMemoryHandlers). `argv` must stay alive.
void installSignalHandlers(int argc, char **argv);

/// Tells the crash handler where the reproducer goes and which compile it is
/// for.
void prepareReproducer(const Options &options);

/// Writes the reproducer: the command line, the version, and the text of the
/// last good phase, made by running this program again up to there.
/// Async-signal-safe. Says on stderr where it is.
void writeReproducer();

} // namespace dmxc::driver
