//===- ProgramFunction.cpp - the function that a program becomes ----------===//
#include "ProgramFunction.h"

#include <filesystem>

namespace dmxc::torchfe {

ProgramFunction::ProgramFunction(mlir::MLIRContext &context, const ImportOptions &options, Diagnostics &diagnostics)
    : ModelFunction(context, options, diagnostics, std::filesystem::path(options.path).stem().string()) {}

Val ProgramFunction::addInput(const ModelInput &input) {
  Dims plain = input.dims;
  for (size_t i = 0; i < plain.size(); ++i)
    if (!plain[i].isStatic() && !plain[i].symbolName()) {
      std::string symbol = nameOfDim(input.name, i);
      plain[i] = Dim::symbol(symbol);
      bounds.try_emplace(symbol, DimBounds{0, INT64_MAX});
    }
  Val argument = addArgument(dmir::tensorOf(plain, dmir::elementTypeOf(input.type, &context)), input.name);
  emitter().setNode(input.name);
  return emitter().expectDims(argument, input.dims);
}

bool ProgramFunction::addResult(const Arg &value, const std::string &name, bool state) {
  Emitter &e = emitter();
  e.setNode(name);
  try {
    Val tensor;
    if (value.kind == Arg::Kind::Int && value.ints.size() == 1 && !value.list)
      tensor = e.size(value.ints[0]);
    else if (value.tensors.size() == 1 && !value.list)
      tensor = value.tensors[0];
    else if (value.numbers.size() == 1 && !value.list)
      tensor = e.scalar(value.kind == Arg::Kind::Bool ? DType::Bool : DType::F32, value.numbers[0]);
    if (!tensor)
      fail("torch-graph", "the output is " + value.describe() + "; only tensors and numbers can be outputs");
    if (tensor.isPoison())
      return false;
    if (tensor.isComplex())
      fail("torch-graph", "the output is a " + tensor.describe() +
                              "; outputs are real: return torch.view_as_real of it, or its parts");
    ModelFunction::addResult(tensor, name, state);
    return true;
  } catch (const NodeFailure &failure) {
    error(failure.id, failure.text, ErrorKind::Model, name);
    return false;
  }
}

} // namespace dmxc::torchfe
