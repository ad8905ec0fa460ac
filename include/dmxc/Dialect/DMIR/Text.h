//===- Text.h - MLIR's text form, from a file that may be hostile -*- C++ -*-===//
//
// MLIR's parser recurses with each bracket and reads bytecode, whose reader trusts what it reads. Every text that a
// user gives - a model, a phase's, a script - is parsed by way of these functions, which bound what the parser and all
// that walks over attributes later recurse into.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <optional>
#include <string>

namespace dmxc::dmir {

/// What of a text must not reach the parser, and where it is.
struct TextProblem {
  unsigned line, column;
  std::string what;
};

/// Bytecode, bytes of 0, a text of more than 1 GiB, brackets or operators that nest too deep.
std::optional<TextProblem> problemOfText(llvm::StringRef text);

/// Whether the facts that the dialect keeps on modules, functions and tensors (`dmir.NAME`) are of the kinds that their
/// readers take them for; fails after an error was emitted.
llvm::LogicalResult checkFacts(mlir::ModuleOp module);

/// The module of a text, parsed and, where it `verifies`, verified with its facts; null after an error was emitted.
/// `path` names it in messages.
mlir::OwningOpRef<mlir::ModuleOp> parseText(llvm::StringRef text, llvm::StringRef path, mlir::MLIRContext &context,
                                            bool verifies = true);
/// The same of a file's text.
mlir::OwningOpRef<mlir::ModuleOp> parseTextFile(llvm::StringRef path, mlir::MLIRContext &context);

} // namespace dmxc::dmir
