//===- Import.h - what a frontend is ----------------------------*- C++ -*-===//
//
// A frontend turns one model file into a DMIR module. It knows no target and no phase; what it
// needs from elsewhere (constant folding) is handed in.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Support/Diagnostic.h"
#include "dmxc/Support/Tensor.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace dmxc {
namespace frontend {
class OperatorSet; // frontends/common/OperatorSet.h
} // namespace frontend

/// Evaluates a DMIR op on host tensors; nullopt when it cannot (unknown op, run-time error such as an index
/// out of range: `why` says which).
using FoldFunction = std::function<std::optional<std::vector<Tensor>>(
    mlir::Operation *op, llvm::ArrayRef<Tensor> operands, std::string &why)>;

struct ImportOptions {
  std::string path;                                   ///< the model file
  std::map<std::string, DimBounds> dims;              ///< --dim NAME=.. by symbolic name
  std::map<std::string, std::vector<int64_t>> shapes; ///< --shape INPUT=..
  std::set<std::string> absent;                       ///< --shape INPUT=none: an optional or a sequence that is empty
  std::string entry;                                  ///< --entry; "" = the only one
  std::vector<std::string> externalDataDirs;          ///< --allow-external-data; none: the model's own folder
  /// Inputs that a session keeps and the outputs that they become (--state), with '*' for any text (Support/Stars.h).
  std::vector<std::pair<std::string, std::string>> states;
  FoldFunction fold; ///< may be empty: nothing is folded
  /// Operators that models of other formats may name, by the front end that has them.
  std::map<std::string, const frontend::OperatorSet *> operators;
};

/// A module with one func.func per entry point, and the files it was read from (for -MD).
struct ImportedModel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<std::string> files;
  std::set<std::string> nodes; ///< names of the file's nodes, as dmir::nodeName says them
};

/// One frontend; registers itself in the registry that CMake generates from DMXC_FRONTENDS.
struct Frontend {
  std::string name;        ///< value of --input-format
  std::string description; ///< one line for --help
  /// True if the file's first bytes or its extension are this frontend's.
  bool (*recognises)(const std::string &path, llvm::ArrayRef<char> head);
  /// Reads the file. nullopt after at least one error was reported to `diagnostics`; reports all errors it can find.
  std::optional<ImportedModel> (*import)(mlir::MLIRContext &context, const ImportOptions &options,
                                         Diagnostics &diagnostics);
  /// Prints the format's own table of operators for --print-ops --input-format NAME; null = it has none.
  void (*printOps)(llvm::raw_ostream &os, bool json) = nullptr;
  const frontend::OperatorSet *operators = nullptr; ///< for ImportOptions of other front ends; null = it has none
};

} // namespace dmxc
