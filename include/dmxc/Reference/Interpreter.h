//===- Interpreter.h - the meaning of DMIR, executable ----------*- C++ -*-===//
//
// Evaluates DMIR ops on host tensors exactly as their definitions say. It is the oracle of tests, the engine of
// constant folding and one side of dmx-compare. Layout encodings are ignored: values are logical. Clarity comes before
// speed, but large constants are folded with it, so elementwise ops run over typed arrays.
//
// Numbers: f32 and f64 arithmetic is IEEE, one rounding an op. f16, bf16, f8 and f4 are computed in f32 and rounded
// once an op (to f8 and f4 a finite overflow saturates). f32 functions (exp, erf, ..) are computed in f64 and rounded
// once. Sums, products, convolutions, softmax and normalisations accumulate in f64 and round once, so a result does not
// depend on an order of summation. Integers wrap; bool computes as integers do, then x != 0. Where an op's definition
// leaves a case open (NaN in top_k, a window of padding alone, float to integer out of range), the comment at the head
// of the family's file in src/Reference says what is chosen.
//
// Thread-safe: no state but a constant table. Tensors are not copied where an op only changes the shape.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Reference/Stops.h"
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
/// the node's name on run-time errors (index out of range, integer division by zero), and as ErrorKind::IO where
/// memory does not suffice.
Result<std::vector<Tensor>> evaluateOp(mlir::Operation *op, llvm::ArrayRef<Tensor> operands);

/// Called after each op of a function (regions are entered) with its results, which it may replace by tensors of the
/// same types.
using OpObserver = std::function<void(mlir::Operation *op, llvm::MutableArrayRef<Tensor> results)>;

/// Runs a whole function; inputs and results in the function's order. The body is one block of DMIR ops; a value's
/// tensor is dropped after its last use. Fails when an input's type is not the declared one, on a type that is not
/// static, on an op that is not DMIR, and as evaluateOp does. Regions of `devices` are theirs to evaluate.
Result<std::vector<Tensor>> evaluateFunction(mlir::func::FuncOp function, llvm::ArrayRef<Tensor> inputs,
                                             const OpObserver &observer = {}, const KernelEvaluators &devices = {});
/// The same of a block that no function has, as that of a dlir.kernel.
Result<std::vector<Tensor>> evaluateBlock(mlir::Block &block, llvm::ArrayRef<Tensor> inputs);

} // namespace dmxc::reference
