//===- ProgramFunction.h - the function that a program becomes --*- C++ -*-===//
#pragma once

#include "reader/Schema.h"

#include "frontends/common/ModelFunction.h"

namespace dmxc::torchfe {

/// The function of a program: inputs and results as torch has them.
class ProgramFunction : public ModelFunction {
public:
  ProgramFunction(mlir::MLIRContext &context, const ImportOptions &options, Diagnostics &diagnostics);

  /// A user's input. A dim that is no lone symbol gets one of its own for the argument's type; a run checks that it has
  /// the size that it must have.
  Val addInput(const ModelInput &input);
  /// A result, in order. False after an error was reported.
  bool addResult(const Arg &value, const std::string &name, bool state = false);

  std::optional<ImportedModel> finish() { return ModelFunction::finish({options.path}); }
};

} // namespace dmxc::torchfe
