//===- ModelFunction.h - the function that a model becomes ------*- C++ -*-===//
#pragma once

#include "Emitter.h"
#include "SizeOptions.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/StringSet.h"
#include <map>

namespace dmxc::frontend {

/// A module with one function, which grows: arguments, ops, results.
class ModelFunction {
public:
  /// `model`: its name, which the bundle has.
  ModelFunction(mlir::MLIRContext &context, const ImportOptions &options, Diagnostics &diagnostics,
                const std::string &model, const std::string &name = "main");

  Emitter &emitter() { return *e; }
  mlir::OpBuilder &builder() { return b; }
  mlir::ModuleOp module() { return *owned; }

  /// A new argument; with `state`, it is what the result of the same name was in the session's last run.
  Val addArgument(mlir::RankedTensorType type, const std::string &name, bool state = false);
  /// A result, in order. Names that are taken get a number.
  void addResult(const Val &value, const std::string &name, bool state = false);

  /// What the file says of the model under `key`, or of the inputs and outputs of a name. Empty texts say nothing;
  /// what is not text (UTF-8 without a byte 0) is left out, with a warning.
  void addMetadata(const std::string &key, const std::string &text);
  void describe(const std::string &tensor, const std::string &text);

  /// The finished module, read from these files; nothing after an error.
  std::optional<ImportedModel> finish(std::vector<std::string> files);

  SymbolBounds bounds;     ///< of the symbols in the arguments' types
  llvm::StringSet<> nodes; ///< names of the model file's nodes

protected:
  void error(const std::string &id, const std::string &text, ErrorKind kind, const std::string &node = "");
  mlir::MLIRContext &context;
  const ImportOptions &options;

private:
  struct Result {
    mlir::Value value;
    std::string name;
    bool state;
  };
  bool verifies();
  bool says(const std::string &what, const std::string &text);
  void setDescriptions();

  Diagnostics &diagnostics;
  mlir::OpBuilder b;
  mlir::OwningOpRef<mlir::ModuleOp> owned;
  mlir::func::FuncOp function;
  std::unique_ptr<Emitter> e;
  std::vector<Result> results;
  mlir::NamedAttrList metadata;
  std::map<std::string, std::string> descriptions; ///< of inputs and outputs by name
};

} // namespace dmxc::frontend
