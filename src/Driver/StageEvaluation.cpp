//===- StageEvaluation.cpp - entry points at any stop ---------------------===//
#include "dmxc/Driver/StageEvaluation.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/Lengths.h"
#include "dmxc/Target/TargetBackend.h"
#include "dmxc/Tools/Compare.h"
#include "dmxc/Tools/Runtime.h"

using namespace mlir;

namespace dmxc::driver {

reference::KernelEvaluators stageEvaluators(const PhaseContext &context) {
  reference::KernelEvaluators evaluators;
  for (const TargetBackend *target : context.targets)
    if (target->evaluatesStages())
      evaluators[target->name().str()] = [target](Operation *kernel, ArrayRef<Tensor> operands) {
        return target->evaluate(kernel, operands);
      };
  return evaluators;
}

/// A declaration with the names and types of a program's inputs and outputs.
static OwningOpRef<func::FuncOp> declarationOf(dlir::ProgramOp program) {
  OpBuilder builder(program.getContext());
  auto typesOf = [](ArrayAttr values) {
    SmallVector<Type> types;
    for (auto value : values.getAsRange<DictionaryAttr>())
      types.push_back(value.getAs<TypeAttr>("type").getValue());
    return types;
  };
  auto function =
      func::FuncOp::create(program.getLoc(), program.getSymName(),
                           builder.getFunctionType(typesOf(program.getInputs()), typesOf(program.getOutputs())));
  function.addEntryBlock();
  for (auto [i, value] : llvm::enumerate(program.getInputs().getAsRange<DictionaryAttr>()))
    function.setArgAttr(i, dmir::kNameAttr, value.get("name"));
  for (auto [i, value] : llvm::enumerate(program.getOutputs().getAsRange<DictionaryAttr>()))
    function.setResultAttr(i, dmir::kNameAttr, value.get("name"));
  return function;
}

func::FuncOp entryAtAnyStop(ModuleOp module, StringRef entry, OwningOpRef<func::FuncOp> &declared) {
  auto isMeant = [&](StringRef name) { return entry.empty() || name == entry; };
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPublic() && !function->hasAttr(dlir::kDeviceAttr) && isMeant(function.getSymName()))
      return function;
  for (auto program : module.getOps<dlir::ProgramOp>())
    if (!program.getOwned() && isMeant(program.getSymName())) {
      declared = declarationOf(program);
      return *declared;
    }
  return {};
}

std::string inputName(func::FuncOp function, unsigned number) {
  auto name = function.getArgAttrOfType<StringAttr>(number, dmir::kNameAttr);
  return name ? name.getValue().str() : "input" + std::to_string(number);
}

Result<Tensor> randomInput(func::FuncOp function, unsigned number, uint64_t seed) {
  auto type = dyn_cast<RankedTensorType>(function.getArgument(number).getType());
  std::optional<DType> dtype = type ? dmir::dtypeOf(type.getElementType()) : std::nullopt;
  const std::string what = "input '" + inputName(function, number) + "'";
  if (!dtype)
    return modelError(what + " is no tensor that the host could make");
  Shape shape;
  for (Dim dim : dmir::callersDims(function, true, number)) {
    auto extent = dim.evaluate([&](std::string_view name) -> std::optional<int64_t> {
      return std::max<int64_t>(dmir::symbolBounds(function, {name.data(), name.size()}).min, 1);
    });
    shape.push_back(extent.value_or(1));
  }
  Result<Tensor> tensor = tools::newTensor(*dtype, shape, what);
  if (tensor)
    tools::fillRandom(*tensor, seed * 1000 + number);
  return tensor;
}

} // namespace dmxc::driver
