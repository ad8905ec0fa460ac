//===- Names.h - names of values in texts -----------------------*- C++ -*-===//
//
// A value is called as what it is of: a buffer by its name, a region's result by the node of the model that it
// computes. Names are for readers alone; a text with others, or with numbers, means the same.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/OpImplementation.h"

#include <string>

namespace dmxc::dmir {

/// `text`, a name in a model or a program, as a value's name: letters, digits and '_'; `otherwise`, which is one, where
/// nothing of it is left. The printer keeps values of one name apart.
std::string valueName(llvm::StringRef text, llvm::StringRef otherwise);

/// OpAsmOpInterface of an op whose results `name` names.
template <typename Op, void (*name)(Op, mlir::OpAsmSetValueNameFn)>
struct NamesResults : mlir::OpAsmOpInterface::ExternalModel<NamesResults<Op, name>, Op> {
  void getAsmResultNames(mlir::Operation *op, mlir::OpAsmSetValueNameFn setName) const {
    name(llvm::cast<Op>(op), setName);
  }
};

/// The same of the arguments of its regions.
template <typename Op, void (*name)(Op, mlir::OpAsmSetValueNameFn)>
struct NamesArguments : mlir::OpAsmOpInterface::ExternalModel<NamesArguments<Op, name>, Op> {
  void getAsmBlockArgumentNames(mlir::Operation *op, mlir::Region &, mlir::OpAsmSetValueNameFn setName) const {
    name(llvm::cast<Op>(op), setName);
  }
};

} // namespace dmxc::dmir
