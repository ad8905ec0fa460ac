//===- Main.cpp - dmxc from argv to exit code -----------------------------===//
#include "Crash.h"

#include "dmxc/Driver/Driver.h"

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

#ifndef __SANITIZE_ADDRESS__ // which must be ready first
/// Before the constructors of LLVM's libraries, which allocate much.
__attribute__((section(".preinit_array"), used)) static void (*const beforeLibraries)(int,
                                                                                      char **) = installSignalHandlers;
#endif

int dmxcMain(int argc, char **argv) {
  installSignalHandlers(argc, argv);
  Options options;
  if (std::optional<int> code = parseOptions({argv + 1, argv + argc}, options, std::cout, std::cerr))
    return *code;
  if (options.query != Query::None)
    return answerQuery(options);
  setUpLogging(options);
  prepareReproducer(options);
  bool color = useColor(options);
  Diagnostics diagnostics([&](Diagnostic diagnostic) {
    if (options.quiet && !withoutNotes(diagnostic))
      return;
    std::string text = options.jsonDiagnostics ? renderJson(diagnostic) : renderText(diagnostic, color);
    std::fprintf(stderr, "%s\n", text.c_str());
  });
  diagnostics.setWarningsAsErrors(options.warningsAsErrors);
  int code = compile(options, diagnostics);
  if (code == exitCodeOf(ErrorKind::Internal))
    writeReproducer();
  else if (diagnostics.errorCount() > 1 && !options.quiet && !options.jsonDiagnostics)
    std::fprintf(stderr, "dmxc: %zu errors\n", diagnostics.errorCount());
  return code;
}

} // namespace dmxc::driver
