//===- ModelFunction.cpp - the function that a model becomes --------------===//
#include "ModelFunction.h"

#include "dmxc/Dialect/DMIR/Constraints.h"

#include "mlir/IR/Verifier.h"

#include <filesystem>
#include <set>

using namespace mlir;

namespace dmxc::torchfe {

ModelFunction::ModelFunction(MLIRContext &context, const ImportOptions &options, Diagnostics &diagnostics)
    : context(context), options(options), diagnostics(diagnostics), b(&context) {
  context.loadDialect<dmir::DMIRDialect, func::FuncDialect>();
  owned = ModuleOp::create(b.getUnknownLoc());
  std::string name = std::filesystem::path(options.path).stem().string();
  (*owned)->setAttr(dmir::kModelNameAttr, b.getStringAttr(name));
  b.setInsertionPointToEnd(owned->getBody());
  function = func::FuncOp::create(b, b.getUnknownLoc(), "main", b.getFunctionType({}, {}));
  function.addEntryBlock();
  e = std::make_unique<Emitter>(&function.getBody().front(), options.fold);
}

Val ModelFunction::addArgument(RankedTensorType type, const std::string &name, bool state) {
  unsigned number = function.getNumArguments();
  StringAttr text = b.getStringAttr(name);
  (void)function.insertArgument(number, type, b.getDictionaryAttr({}), NameLoc::get(text));
  function.setArgAttr(number, dmir::kNameAttr, text);
  if (state)
    function.setArgAttr(number, dmir::kStateAttr, text);
  return e->fromSSA(function.getArgument(number));
}

Val ModelFunction::addInput(const ProgramInput &input) {
  Dims plain = input.dims;
  for (size_t i = 0; i < plain.size(); ++i)
    if (!plain[i].isStatic() && !plain[i].symbolName()) {
      std::string symbol = nameOfDim(input, i);
      plain[i] = Dim::symbol(symbol);
      bounds.try_emplace(symbol, DimBounds{0, INT64_MAX});
    }
  Val argument = addArgument(dmir::tensorOf(plain, dmir::elementTypeOf(input.type, &context)), input.name);
  e->setNode(input.name);
  return e->expectDims(argument, input.dims);
}

void ModelFunction::error(const std::string &id, const std::string &text, ErrorKind kind, const std::string &node) {
  diagnostics.report({Severity::Error, id, options.path, node, text, kind, {}});
}

bool ModelFunction::addResult(const Arg &value, const std::string &name, bool state) {
  e->setNode(name);
  try {
    Val tensor;
    if (value.kind == Arg::Kind::Int && value.ints.size() == 1 && !value.list)
      tensor = e->size(value.ints[0]);
    else if (value.tensors.size() == 1 && !value.list)
      tensor = value.tensors[0];
    else if (value.numbers.size() == 1 && !value.list)
      tensor = e->scalar(value.kind == Arg::Kind::Bool ? DType::Bool : DType::F32, value.numbers[0]);
    if (!tensor)
      fail("torch-graph", "the output is " + value.describe() + "; only tensors and numbers can be outputs");
    if (tensor.isPoison())
      return false;
    results.push_back({e->ssa(tensor), name, state});
    return true;
  } catch (const NodeFailure &failure) {
    error(failure.id, failure.text, ErrorKind::Model, name);
    return false;
  }
}

bool ModelFunction::verifies() {
  std::string text;
  ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    text += (text.empty() ? "" : "; ") + diagnostic.str();
    return success();
  });
  if (succeeded(verify(*owned)))
    return true;
  error("internal", "the imported module is not valid (a bug of dmxc): " + text, ErrorKind::Internal);
  return false;
}

std::optional<ImportedModel> ModelFunction::finish() {
  SmallVector<Value> values;
  SmallVector<Type> types;
  for (const Result &result : results) {
    values.push_back(result.value);
    types.push_back(result.value.getType());
  }
  OpBuilder end = OpBuilder::atBlockEnd(&function.getBody().front());
  func::ReturnOp::create(end, end.getUnknownLoc(), values);
  function.setFunctionType(b.getFunctionType(function.getBody().getArgumentTypes(), types));
  std::set<std::string> taken;
  for (size_t i = 0; i < results.size(); ++i) {
    std::string name = results[i].name;
    for (int suffix = 1; !taken.insert(name).second; ++suffix)
      name = results[i].name + "_" + std::to_string(suffix);
    function.setResultAttr(i, dmir::kNameAttr, b.getStringAttr(name));
    if (results[i].state)
      function.setResultAttr(i, dmir::kStateAttr, b.getStringAttr(results[i].name));
  }
  dmir::setSymbolBounds(*owned, bounds);
  if (ArrayAttr computed = e->computedDims(); !computed.empty())
    (*owned)->setAttr(dmir::kComputedDimsAttr, computed);
  if (!verifies())
    return std::nullopt;
  ImportedModel imported;
  imported.module = std::move(owned);
  imported.files = {options.path};
  return imported;
}

} // namespace dmxc::torchfe
