//===- Interpreter.cpp - what kernels mean, stop by stop ------------------===//
#include "Interpreter.h"
#include "Indices.h"

#include "dmxc/Dialect/DLIR/DLIR.h"
#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Target/TargetBackend.h"
#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair::stages;

using Results = Result<SmallVector<View>>;

/// The results as the host has them, of the types that the kernel's text names.
static Result<std::vector<Tensor>> handedOver(Operation *kernel, Results made, ArrayRef<Type> types) {
  if (!made)
    return made.takeError();
  if (made->size() != types.size())
    return errorAt(kernel, "gives another number of results than it says");
  std::vector<Tensor> tensors;
  for (auto [view, type] : llvm::zip(*made, types)) {
    auto tensor = dyn_cast_if_present<RankedTensorType>(type);
    std::optional<DType> dtype = tensor ? dmir::dtypeOf(tensor.getElementType()) : std::nullopt;
    if (!dtype || tensor.getShape() != ArrayRef(view.shape))
      return errorAt(kernel, "gives a result of another type than the host has");
    tensors.push_back(toHost(view, *dtype));
  }
  return tensors;
}

static Result<std::vector<Tensor>> evaluateFunction(func::FuncOp function, ArrayRef<Tensor> operands) {
  if (!function.getBody().hasOneBlock() || function.getNumArguments() != operands.size())
    return errorAt(function, "is no function of one block and as many arguments as its task has");
  const bool onTensors = llvm::all_of(function.getArgumentTypes(), llvm::IsaPred<TensorType>) &&
                         llvm::all_of(function.getResultTypes(), llvm::IsaPred<TensorType>);
  SmallVector<Type> types;
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    auto type = function.getResultAttrOfType<TypeAttr>(i, lldmir::kTypeAttr);
    types.push_back(type ? type.getValue() : Type());
  }
  return handedOver(function, onTensors ? evaluateTensors(function, operands) : evaluateBuffers(function, operands),
                    types);
}

Result<std::vector<Tensor>> dmxc::corsair::stages::evaluateKernel(Operation *kernel, ArrayRef<Tensor> operands) {
  if (auto region = dyn_cast<dmir::RegionOp>(kernel))
    return handedOver(kernel, evaluateRegion(*region.getBlock(), region.getStrategyAttr(), operands),
                      SmallVector<Type>(region.getResultTypes()));
  if (auto outlined = dyn_cast<dlir::KernelOp>(kernel))
    return handedOver(kernel, evaluateRegion(*outlined.getBlock(), outlined.getStrategy(), operands),
                      SmallVector<Type>(outlined.getBlock()->getTerminator()->getOperandTypes()));
  if (auto function = dyn_cast<func::FuncOp>(kernel))
    return evaluateFunction(function, operands);
  if (auto program = dyn_cast<dlir::DeviceProgramOp>(kernel))
    return evaluateProgram(program, operands);
  return notEvaluated(kernel, "is a kernel in no form that the interpreter knows");
}
