//===- Stops.h - the meaning of a module at any stop of a compile -*- C++ -*-===//
//
// Graphs with regions, and programs of tasks. What a device computes of them its target says: kernels are handed to an
// evaluator, by the device's name. The reference knows no target.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Support/Result.h"
#include "dmxc/Support/Tensor.h"

#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace dmxc::reference {

/// What a kernel gives for the host's tensors: a dmir.region, a dlir.kernel or what stages have made of one. Fails as
/// ErrorKind::Constraint where it is not evaluated in this form, else where it has no meaning.
using KernelEvaluator =
    std::function<Result<std::vector<Tensor>>(mlir::Operation *kernel, llvm::ArrayRef<Tensor> operands)>;
/// By the device's name. Kernels of other devices are evaluated as the DMIR that they are.
using KernelEvaluators = std::map<std::string, KernelEvaluator, std::less<>>;

/// Runs the entry point of that name, a function or a program (dlir.program) in whose buffers results lie where the
/// text places them. Shapes are static. Fails as evaluateFunction does, at a kernel as its evaluator does, and as
/// ErrorKind::Constraint at a branch, a loop or a state of a program.
Result<std::vector<Tensor>> evaluateEntry(mlir::ModuleOp module, llvm::StringRef entry, llvm::ArrayRef<Tensor> inputs,
                                          const KernelEvaluators &devices);

} // namespace dmxc::reference
