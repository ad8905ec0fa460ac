//===- KernelFile.h - kernels that a file declares --------------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/Kernels.h"

#include "mlir/IR/BuiltinOps.h"

namespace dmxc::driver {

/// Adds what a kernel file (--kernels; schemas/kernels.schema.json) declares to `kernels`, and all files that it names
/// to `files`, itself first. It may be code whose leading comment is one. Errors name the file and the place in it.
Status readKernelFile(const std::string &path, dmir::KernelSet &kernels, std::vector<std::string> &files);

/// Whether code that begins so has a kernel file as its leading comment.
bool beginsWithKernels(llvm::StringRef head);

/// A model that is one kernel, whose inputs and outputs are the operands and results that it declares.
Result<mlir::OwningOpRef<mlir::ModuleOp>> kernelAlone(const dmir::KernelDecl &decl, mlir::MLIRContext *context);

/// Whether a kernel's reference is there and has the kernel's operands, results, types and dims. Fails with the name of
/// the function and what of it is wrong.
Status checkReference(const dmir::KernelDecl &decl, mlir::MLIRContext *context);

/// Says of each micro-kernel named whether it is "on", "off" or "auto"; fails where there is none of a name.
Status applyUses(const std::map<std::string, std::string> &uses, dmir::KernelSet &kernels);

} // namespace dmxc::driver
