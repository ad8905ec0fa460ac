//===- HeldMessages.h - messages that wait ----------------------*- C++ -*-===//
#pragma once

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <vector>

namespace dmxc::driver {

/// Holds messages back, so that they can be said in other words.
class Held {
public:
  explicit Held(mlir::MLIRContext &context)
      : handler(&context, [this](mlir::Diagnostic &diagnostic) {
          held.push_back(std::move(diagnostic));
          return mlir::success();
        }) {}

  std::vector<mlir::Diagnostic> take() { return std::move(held); }

private:
  std::vector<mlir::Diagnostic> held;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace dmxc::driver
