//===- Main.cpp - dmxc from argv to exit code -----------------------------===//
#include "Crash.h"
#include "compile/ModelFolder.h"
#include "compile/Streams.h"
#include "tune/Tune.h"

#include "dmxc/Driver/Driver.h"
#include "dmxc/Driver/Messages.h"
#include "dmxc/Tools/CommandLine.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <iostream>
#include <unistd.h>

namespace dmxc::driver {

static bool useColor(const Options &options) {
  if (options.color != ColorMode::Auto)
    return options.color == ColorMode::Always;
  const char *noColor = std::getenv("NO_COLOR");
  return isatty(STDERR_FILENO) && !(noColor && *noColor);
}

static void setUpLogging(const Options &options) {
  auto logger = std::make_shared<spdlog::logger>("dmxc", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("dmxc: %v");
  logger->set_level(options.verbose ? spdlog::level::info : spdlog::level::off);
  spdlog::set_default_logger(std::move(logger));
}

/// Takes the notes off; false when nothing is left.
static bool withoutNotes(Diagnostic &diagnostic) {
  std::erase_if(diagnostic.attached, [](const auto &line) { return line.first == Severity::Note; });
  return diagnostic.severity == Severity::Warning || diagnostic.severity == Severity::Error;
}

/// Gives a model from stdin, or in a folder, its file.
static Status readModel(Options &options, std::unique_ptr<TemporaryFile> &spooled) {
  if (options.model != "-")
    return resolveFolder(options);
  auto path = fileOfStdin(spooled);
  if (!path)
    return path.takeError();
  options.model = *path;
  if (spooled)
    options.stdinFile = *path;
  return Status::ok();
}

#ifndef __SANITIZE_ADDRESS__ // which must be ready first
/// Before the constructors of LLVM's libraries, which allocate much.
__attribute__((section(".preinit_array"), used)) static void (*const beforeLibraries)(int,
                                                                                      char **) = installSignalHandlers;
#endif

static int runDmxc(int argc, char **argv) {
  Options options;
  if (std::optional<int> code = parseOptions({argv + 1, argv + argc}, options, std::cout, std::cerr))
    return *code;
  if (options.query != Query::None)
    return answerQuery(options);
  setUpLogging(options);
  Messages messages(options, useColor(options));
  Diagnostics diagnostics([&](Diagnostic diagnostic) {
    if (!options.quiet || withoutNotes(diagnostic))
      messages.take(diagnostic);
  });
  diagnostics.setWarningsAsErrors(options.warningsAsErrors);
  std::unique_ptr<TemporaryFile> spooled;
  if (Status read = readModel(options, spooled); !read) {
    diagnostics.report(read.error(), read.error().kind == ErrorKind::IO ? "io" : "model-folder");
    return diagnostics.exitCode();
  }
  prepareReproducer(options);
  int code = options.tune ? tune(options, diagnostics) : compile(options, diagnostics);
  bool leftOut = messages.flush();
  if (code == exitCodeOf(ErrorKind::Internal))
    writeReproducer();
  else if (diagnostics.errorCount() > 1 && !options.quiet && !options.jsonDiagnostics)
    std::fprintf(stderr, "dmxc: %zu errors%s\n", diagnostics.errorCount(),
                 leftOut ? "; --all-errors says each by itself, with its operands" : "");
  else if (leftOut && !options.quiet)
    std::fputs("dmxc: --all-errors says each message by itself, with its notes\n", stderr);
  return code;
}

int dmxcMain(int argc, char **argv) {
  installSignalHandlers(argc, argv);
  return tools::endOutput("dmxc", runDmxc(argc, argv));
}

} // namespace dmxc::driver
