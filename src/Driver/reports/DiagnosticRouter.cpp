//===- DiagnosticRouter.cpp - MLIR's messages become ours -----------------===//
#include "DiagnosticRouter.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

#include "mlir/IR/Location.h"

using namespace mlir;

namespace dmxc::driver {

DiagnosticRouter::DiagnosticRouter(MLIRContext &context, Diagnostics &diagnostics, std::string file)
    : diagnostics(diagnostics), file(std::move(file)),
      handler(&context, [this](mlir::Diagnostic &diagnostic) { collect(diagnostic); }) {}

/// The position in a text file, for messages about .mlir input.
static std::string filePosition(Location loc) {
  std::string position;
  loc->walk([&](Location part) {
    auto line = dyn_cast<FileLineColLoc>(part);
    if (!line)
      return WalkResult::advance();
    position = line.getFilename().str() + ":" + std::to_string(line.getLine()) + ":" + std::to_string(line.getColumn());
    return WalkResult::interrupt();
  });
  return position;
}

/// Cuts " [some-id]" off the end of a message.
static std::string takeId(std::string &text) {
  size_t open = text.rfind(" [");
  if (text.empty() || text.back() != ']' || open == std::string::npos)
    return "";
  std::string id = text.substr(open + 2, text.size() - open - 3);
  bool kebab = !id.empty() &&
               llvm::all_of(id, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
  if (!kebab || !llvm::is_contained(id, '-'))
    return "";
  text.resize(open);
  return id;
}

static Severity severityOf(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Error:
    return Severity::Error;
  case DiagnosticSeverity::Warning:
    return Severity::Warning;
  case DiagnosticSeverity::Note:
  case DiagnosticSeverity::Remark:
    break;
  }
  return Severity::Note;
}

void DiagnosticRouter::collect(mlir::Diagnostic &diagnostic) {
  Diagnostic ours;
  ours.severity = severityOf(diagnostic.getSeverity());
  ours.node = dmir::nodeName(diagnostic.getLocation());
  std::string position = ours.node.empty() ? filePosition(diagnostic.getLocation()) : "";
  ours.file = position.empty() ? file : position;
  ours.text = diagnostic.str();
  ours.id = takeId(ours.text);
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    // MLIR attaches a print of the op to verifier messages; it may hold
    // megabytes and says nothing to a user.
    if (std::string text = note.str(); !llvm::StringRef(text).starts_with("see current operation"))
      ours.note(std::move(text));
  std::lock_guard lock(mutex);
  // ODS adds this to every message of an op's inference, which said what is
  // wrong.
  if (!pending.empty() && llvm::StringRef(ours.text).ends_with("failed to infer returned types"))
    return;
  pending.push_back(std::move(ours));
}

size_t DiagnosticRouter::flush(ErrorKind kind, const std::string &step) {
  std::lock_guard lock(mutex);
  size_t errors = 0;
  for (Diagnostic &diagnostic : pending) {
    diagnostic.kind = kind;
    if (diagnostic.id.empty())
      diagnostic.id = step;
    errors += diagnostic.severity == Severity::Error;
    if (kind == ErrorKind::Internal && diagnostic.severity == Severity::Error)
      diagnostic.note("this is an error of dmxc, not of the model");
    diagnostics.report(std::move(diagnostic));
  }
  pending.clear();
  return errors;
}

void DiagnosticRouter::drop() {
  std::lock_guard lock(mutex);
  pending.clear();
}

} // namespace dmxc::driver
