//===- TaskSyntax.h - text form and rules of tasks --------------*- C++ -*-===//
//
// All tasks read alike: what leads, buffers with their places, a descriptor, then clauses. Each op has a table of its
// words; DMXC_TASK_SYNTAX defines its parser and printer by it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DLIR/Device.h"

#include "mlir/IR/OpImplementation.h"

namespace dmxc::dlir {

struct Clause {
  /// What follows the name.
  enum Value : uint8_t { Integer, String, Map, Array, Float, Dictionary, Nothing };
  llvm::StringLiteral name;
  Value value;
};

struct TaskSyntax {
  /// What stands before the buffers: "text", @symbol, or FROM -> TO in the attributes `from` and `to`.
  enum Lead : uint8_t { None, Text, Symbol, Route };
  Lead lead = None;
  llvm::StringLiteral leadName;               ///< the attribute of a text or symbol
  llvm::ArrayRef<llvm::StringLiteral> places; ///< the word before each buffer; '?' before it: it and the rest may miss
  llvm::ArrayRef<Clause> clauses;
  llvm::StringLiteral leadMap = ""; ///< the map in brackets that may follow a symbol
};

/// What a task consists of.
struct TaskParts {
  mlir::Operation *op;
  mlir::ValueRange buffers;
  mlir::Value descriptor;
  mlir::ValueRange indices;
  mlir::ArrayAttr places;
};
template <typename OpTy> TaskParts partsOf(OpTy op) {
  return {op, op.getBuffers(), op.getDescriptor(), op.getIndices(), op.getPlaces()};
}

mlir::ParseResult parseTask(mlir::OpAsmParser &parser, mlir::OperationState &state, const TaskSyntax &syntax);
void printTask(mlir::OpAsmPrinter &printer, const TaskParts &task, const TaskSyntax &syntax);
/// `[expressions]` over the names of the indices.
void printPlaces(mlir::OpAsmPrinter &printer, mlir::AffineMap map, mlir::ValueRange indices);

/// What all tasks keep: they stand in a group, their buffers are the program's, and their maps fit. The attribute
/// `several` is a map of so many expressions, the others have one.
mlir::LogicalResult verifyTask(const TaskParts &task, llvm::StringRef several = {}, unsigned results = 2);

} // namespace dmxc::dlir

#define DMXC_TASK_SYNTAX(OP, SYNTAX)                                                                                   \
  ::mlir::ParseResult OP::parse(::mlir::OpAsmParser &parser, ::mlir::OperationState &state) {                          \
    return ::dmxc::dlir::parseTask(parser, state, SYNTAX);                                                             \
  }                                                                                                                    \
  void OP::print(::mlir::OpAsmPrinter &printer) {                                                                      \
    ::dmxc::dlir::printTask(printer, ::dmxc::dlir::partsOf(*this), SYNTAX);                                            \
  }
