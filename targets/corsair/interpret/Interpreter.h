//===- Interpreter.h - what kernels mean, stop by stop ----------*- C++ -*-===//
//
// Evaluates a kernel from its text at any stop, in the numbers of schemas/corsair: the bits that the simulated card
// gives. It reads nothing but the text, so that a stage that changes what is computed differs from the one before it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "View.h"

#include "dmxc/Dialect/DLIR/Device.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc::corsair::stages {

/// A dmir.region or dlir.kernel with what partition decided, the function that stages have made of one, or its program
/// of queues; host's tensors in and out. What is not evaluated is ErrorKind::Constraint, what has no meaning
/// ErrorKind::Model, both by op.
Result<std::vector<Tensor>> evaluateKernel(mlir::Operation *kernel, llvm::ArrayRef<Tensor> operands);

// By the form of the text:
/// Ops in a region, whose floats are the host's.
Result<llvm::SmallVector<View>> evaluateRegion(mlir::Block &body, mlir::DictionaryAttr strategy,
                                               llvm::ArrayRef<Tensor> operands);
/// A function of tensors: `formats`, `tiles`.
Result<llvm::SmallVector<View>> evaluateTensors(mlir::func::FuncOp function, llvm::ArrayRef<Tensor> operands);
/// A function of buffers, of which each quad of the team has its own, or one that launches a kernel over quads.
Result<llvm::SmallVector<View>> evaluateBuffers(mlir::func::FuncOp function, llvm::ArrayRef<Tensor> operands);
/// A program of queues, whose arguments the host converts: `schedule`.
Result<std::vector<Tensor>> evaluateProgram(dlir::DeviceProgramOp program, llvm::ArrayRef<Tensor> operands);

} // namespace dmxc::corsair::stages
