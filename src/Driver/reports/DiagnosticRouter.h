//===- DiagnosticRouter.h - MLIR's messages become ours ---------*- C++ -*-===//
#pragma once

#include "dmxc/Support/Diagnostic.h"

#include "mlir/IR/Diagnostics.h"

namespace dmxc::driver {

/// Collects what MLIR reports about the modules of one context until it is
/// known whether a failure is the model's or ours, then hands it on.
/// Thread-safe.
class DiagnosticRouter {
public:
  DiagnosticRouter(mlir::MLIRContext &context, Diagnostics &diagnostics, std::string file);

  /// Hands on everything collected; errors get this kind. `step` is the id of
  /// messages that carry none: a pass gives one by ending its text in "
  /// [some-id]". Returns the number of errors handed on.
  size_t flush(ErrorKind kind, const std::string &step);
  /// Forgets what was collected.
  void drop();

private:
  void collect(mlir::Diagnostic &diagnostic);

  Diagnostics &diagnostics;
  std::string file;
  std::mutex mutex;
  std::vector<Diagnostic> pending;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace dmxc::driver
