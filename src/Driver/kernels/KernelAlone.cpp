//===- KernelAlone.cpp - a model that is one kernel -----------------------===//
#include "dmxc/Driver/KernelFile.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Model.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace dmxc::driver {

/// Tensors of the first types that its operands may have.
static Result<SmallVector<RankedTensorType>> operandTypes(const dmir::KernelDecl &decl, MLIRContext *context) {
  SmallVector<RankedTensorType> types;
  for (const dmir::KernelTensor &operand : decl.operands) {
    for (Dim dim : operand.shape)
      if (!dim.symbolName() && !dim.known())
        return modelError(decl.file + ": the operand '" + operand.name + "' of the kernel '" + decl.name +
                          "' has the axis " + dim.str() + "; compiled alone, operands have axes of numbers and names");
    types.push_back(
        cast<RankedTensorType>(dmir::tensorOf(operand.shape, dmir::elementTypeOf(operand.types.front(), context))));
  }
  return types;
}

Result<OwningOpRef<ModuleOp>> kernelAlone(const dmir::KernelDecl &decl, MLIRContext *context) {
  context->loadDialect<func::FuncDialect>();
  Result<SmallVector<RankedTensorType>> types = operandTypes(decl, context);
  if (!types)
    return types.takeError();
  Result<dmir::KernelUse> use = dmir::bindKernel(decl, *types, {});
  if (!use)
    return modelError(decl.file + ": " + use.error().message);
  if (!use->expected.empty())
    return modelError(decl.file + ": operand '" + decl.operands[use->expected.front().operand].name +
                      "' of the kernel '" + decl.name + "' has an axis that another one's name stands for");
  OpBuilder b(context);
  Location place = NameLoc::get(b.getStringAttr(decl.name));
  OwningOpRef<ModuleOp> module = ModuleOp::create(place);
  b.setInsertionPointToStart(module->getBody());
  auto main = func::FuncOp::create(b, place, "main",
                                   b.getFunctionType(SmallVector<Type>(types->begin(), types->end()), use->results));
  b.setInsertionPointToStart(main.addEntryBlock());
  dmir::ExternOp op = dmir::makeExtern(b, place, decl, *use, main.getArguments());
  func::ReturnOp::create(b, place, op.getResults());
  for (auto [i, operand] : llvm::enumerate(decl.operands))
    main.setArgAttr(static_cast<unsigned>(i), dmir::kNameAttr, b.getStringAttr(operand.name));
  for (auto [i, result] : llvm::enumerate(decl.results))
    main.setResultAttr(static_cast<unsigned>(i), dmir::kNameAttr, b.getStringAttr(result.name));
  dmir::setNodeCount(*module, dmir::nodeNames(*module));
  return module;
}

} // namespace dmxc::driver
