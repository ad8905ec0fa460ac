//===- Interpreter.h - the meaning of DMIR, executable ----------*- C++ -*-===//
//
// Evaluates DMIR ops on host tensors exactly as their definitions say. It is the oracle of tests, the engine of constant
// folding and one side of dmx-compare. Layout encodings are ignored: values are logical. Clarity
// comes before speed, but large constants are folded with it, so elementwise ops run over typed arrays.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Support/Result.h"
#include "dmxc/Support/Tensor.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Operation.h"

#include <functional>
#include <vector>

namespace dmxc::reference {

/// True if evaluateOp knows the op. Constants, views and regions are known too.
bool canEvaluate(mlir::OperationName name);

/// The results of one op. Operand and result types must be static. Fails with
/// the node's name on run-time errors (index out of range, integer division by zero).
Result<std::vector<Tensor>> evaluateOp(mlir::Operation *op, llvm::ArrayRef<Tensor> operands);

/// Called after each op of a function (regions are entered) with its results; for dmx-compare --per-node.
using OpObserver = std::function<void(mlir::Operation *op, llvm::ArrayRef<Tensor> results)>;

/// Runs a whole function; inputs and results in the function's order.
Result<std::vector<Tensor>> evaluateFunction(mlir::func::FuncOp function, llvm::ArrayRef<Tensor> inputs,
                                             const OpObserver &observer = {});

} // namespace dmxc::reference
