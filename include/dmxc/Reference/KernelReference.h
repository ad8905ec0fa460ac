//===- KernelReference.h - what kernels of users compute --------*- C++ -*-===//
//
// A kernel file may say by a function of DMIR what a kernel computes (`reference`). It is the interpreter's alone: what
// a bundle runs is the kernel's code.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DMIR/Kernels.h"
#include "dmxc/Support/Result.h"
#include "dmxc/Support/Tensor.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace dmxc::reference {

/// The text that a reference names, which has its functions; they hold ops alone that the interpreter computes, and no
/// kernels. Fails, naming kernel and file, where it is another text than was declared or no such one.
Result<mlir::OwningOpRef<mlir::ModuleOp>> readReference(mlir::MLIRContext *context, llvm::StringRef kernel,
                                                        const dmir::KernelReference &reference);

/// "the kernel 'acme.argmax': its reference (argmax.mlir): " + a clause.
Error referenceError(llvm::StringRef kernel, const dmir::KernelReference &reference, const std::string &clause);

/// What a kernel gives by its reference, for operands of known shapes.
Result<std::vector<Tensor>> evaluateKernel(dmir::ExternOp op, llvm::ArrayRef<Tensor> operands);

} // namespace dmxc::reference
