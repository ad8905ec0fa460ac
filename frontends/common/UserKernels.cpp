//===- UserKernels.cpp - nodes that users wrote kernels for ---------------===//
#include "UserKernels.h"

using namespace mlir;

namespace dmxc::frontend {

std::vector<Val> callKernel(Emitter &e, const std::string &node, const dmir::KernelDecl &kernel, ArrayRef<Val> operands,
                            const std::map<std::string, int64_t> &numbers) {
  SmallVector<RankedTensorType> types;
  for (const Val &operand : operands) {
    if (!operand || !operand.isTensor())
      fail("op-kernel", "the kernel '" + kernel.name + "' takes tensors, and " +
                            (operand ? "a " + operand.describe() + " stands for one" : "an operand is left out"));
    types.push_back(operand.type());
  }
  Result<dmir::KernelUse> use = dmir::bindKernel(kernel, types, numbers);
  if (!use)
    fail("op-kernel", use.error().message);
  SmallVector<Val> given(operands);
  for (const auto &[operand, dims] : use->expected)
    given[operand] = e.expectDims(given[operand], Dims(dims));
  SmallVector<Value> values;
  for (const Val &operand : given)
    values.push_back(e.ssa(operand));
  for (Type type : use->results) // which are not too large
    e.typeOf(*dmir::dtypeOf(mlir::cast<RankedTensorType>(type).getElementType()), Dims(dmir::dimsOf(type)));
  OpBuilder builder = OpBuilder::atBlockEnd(values.front().getParentBlock());
  auto op = dmir::makeExtern(builder, NameLoc::get(builder.getStringAttr(node)), kernel, *use, values);
  std::vector<Val> results;
  for (Value result : op.getResults())
    results.push_back(e.fromSSA(result));
  return results;
}

} // namespace dmxc::frontend
