//===- ModelFunction.h - the function that a model becomes ------*- C++ -*-===//
#pragma once

#include "InputShapes.h"
#include "Schema.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc::torchfe {

/// A module with one function, which grows: arguments, ops, results.
class ModelFunction {
public:
  ModelFunction(mlir::MLIRContext &context, const ImportOptions &options, Diagnostics &diagnostics);

  Emitter &emitter() { return *e; }
  mlir::OpBuilder &builder() { return b; }
  mlir::ModuleOp module() { return *owned; }

  /// A new argument; with `state`, it is what the result of the same name was in the session's last run.
  Val addArgument(mlir::RankedTensorType type, const std::string &name, bool state = false);
  /// A user's input. A dim that is no lone symbol gets one of its own for the argument's type; a run checks that it has
  /// the size that it must have.
  Val addInput(const ProgramInput &input);
  /// A result, in order. Names that are taken get a number. False after an error was reported.
  bool addResult(const Arg &value, const std::string &name, bool state = false);

  /// The finished module; nothing after an error.
  std::optional<ImportedModel> finish();

  SymbolBounds bounds; ///< of the symbols in the arguments' types

private:
  struct Result {
    mlir::Value value;
    std::string name;
    bool state;
  };
  void error(const std::string &id, const std::string &text, ErrorKind kind, const std::string &node = "");
  bool verifies();

  mlir::MLIRContext &context;
  const ImportOptions &options;
  Diagnostics &diagnostics;
  mlir::OpBuilder b;
  mlir::OwningOpRef<mlir::ModuleOp> owned;
  mlir::func::FuncOp function;
  std::unique_ptr<Emitter> e;
  std::vector<Result> results;
};

} // namespace dmxc::torchfe
