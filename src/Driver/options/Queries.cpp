//===- Queries.cpp - --version and the --print-* options ------------------===//
#include "OpTable.h"

#include "dmxc/Bundle/Manifest.h"
#include "dmxc/Dialect/Transform/Forms.h"
#include "dmxc/Driver/Driver.h"
#include "dmxc/Driver/Registry.h"
#include "dmxc/Phases/PhaseTable.h"

#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_os_ostream.h"

#include <iostream>

namespace dmxc::driver {

/// What is asked for goes where all of this program's output goes, which is looked after at its end.
static llvm::raw_ostream &out() {
  static llvm::raw_os_ostream stream(std::cout);
  stream.SetUnbuffered();
  return stream;
}

static int printTargets() {
  for (const TargetInfo &target : registeredTargets())
    out() << target.name << "\t" << target.summary << "\n";
  return 0;
}

static int printTargetInfo(const std::string &name) {
  Result<std::unique_ptr<TargetBackend>> target = findTarget(name)->create(TargetOptions());
  if (!target) {
    llvm::errs() << "dmxc: error: " << target.error().message << "\n";
    return exitCodeOf(target.error().kind);
  }
  std::string text = (*target)->describe();
  out() << text << (text.empty() || text.back() != '\n' ? "\n" : "");
  return 0;
}

/// With the stages of the targets that are asked for, or of all.
static int printPhases(const Options &options) {
  std::vector<llvm::ArrayRef<TargetStage>> stages;
  for (const TargetInfo &target : registeredTargets()) {
    const bool asked = options.targets.empty() ||
                       llvm::any_of(options.targets, [&](const TargetChoice &t) { return t.name == target.name; });
    stages.push_back(asked && target.stages ? target.stages() : llvm::ArrayRef<TargetStage>());
  }
  for (const Stop &stop : stops(stages)) {
    auto [in, result] =
        stop.stage ? std::pair(stop.stage->in, stop.stage->out) : std::pair(stop.phase->in, stop.phase->out);
    out() << llvm::formatv("{0,-17} {1} -> {2}: {3}", stop.name, in, result, stop.summary());
    if (stop.stage)
      out() << " (target " << registeredTargets()[stop.target].name << ")";
    out() << "\n";
  }
  return 0;
}

static int printOps(const Options &options) {
  if (options.inputFormat != "auto") {
    const Frontend *frontend = findFrontend(options.inputFormat);
    if (frontend && frontend->printOps) {
      frontend->printOps(out(), options.opsAsJson);
      return 0;
    }
  }
  Result<OpTable> table = makeOpTable(options);
  if (!table) {
    llvm::errs() << "dmxc: error: " << table.error().message << "\n";
    return exitCodeOf(table.error().kind);
  }
  out() << (options.opsAsJson ? toJson(*table) : toMarkdown(*table));
  return 0;
}

int answerQuery(const Options &options) {
  switch (options.query) {
  case Query::Version:
    out() << "dmxc " DMXC_VERSION " (bundle format " << bundle::formatMajor << "." << bundle::formatMinor
          << ", MLIR " LLVM_VERSION_STRING ")\n";
    return 0;
  case Query::Targets:
    return printTargets();
  case Query::TargetInfo:
    return printTargetInfo(options.queryTarget);
  case Query::Ops:
    return printOps(options);
  case Query::Phases:
    return printPhases(options);
  case Query::Forms:
    out() << transform::describeForms();
    return 0;
  case Query::None:
    break;
  }
  return exitCodeOf(ErrorKind::Internal);
}

} // namespace dmxc::driver
