//===- ModelFunction.cpp - the function that a model becomes --------------===//
#include "ModelFunction.h"

#include "dmxc/Dialect/DMIR/Model.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/JSON.h"

#include <set>

using namespace mlir;

namespace dmxc::frontend {

ModelFunction::ModelFunction(MLIRContext &context, const ImportOptions &options, Diagnostics &diagnostics,
                             const std::string &model, const std::string &name)
    : context(context), options(options), diagnostics(diagnostics), b(&context) {
  context.loadDialect<dmir::DMIRDialect, func::FuncDialect>();
  owned = ModuleOp::create(b.getUnknownLoc());
  (*owned)->setAttr(dmir::kModelNameAttr, b.getStringAttr(model));
  b.setInsertionPointToEnd(owned->getBody());
  function = func::FuncOp::create(b, b.getUnknownLoc(), name, b.getFunctionType({}, {}));
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

void ModelFunction::error(const std::string &id, const std::string &text, ErrorKind kind, const std::string &node) {
  diagnostics.report({Severity::Error, id, options.path, node, text, kind, {}});
}

void ModelFunction::addResult(const Val &value, const std::string &name, bool state) {
  e->setNode(name);
  results.push_back({e->ssa(value), name, state});
}

bool ModelFunction::says(const std::string &what, const std::string &text) {
  if (text.empty())
    return false;
  bool isText = llvm::json::isUTF8(text) && text.find('\0') == std::string::npos;
  if (!isText)
    diagnostics.report({Severity::Warning,
                        "model-text",
                        options.path,
                        "",
                        what + " is not text (UTF-8 without a byte 0): the bundle goes without it",
                        ErrorKind::Model,
                        {}});
  return isText;
}

void ModelFunction::addMetadata(const std::string &key, const std::string &text) {
  if (says("a key of the metadata", key) && says("the metadata under '" + key + "'", text))
    metadata.set(key, b.getStringAttr(text));
}

void ModelFunction::describe(const std::string &tensor, const std::string &text) {
  if (says("the description of '" + tensor + "'", text))
    descriptions[tensor] = text;
}

void ModelFunction::setDescriptions() {
  auto describedBy = [&](Attribute name) -> StringAttr {
    auto found = descriptions.find(cast<StringAttr>(name).getValue().str());
    return found == descriptions.end() ? StringAttr() : b.getStringAttr(found->second);
  };
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (StringAttr text = describedBy(function.getArgAttr(i, dmir::kNameAttr)))
      function.setArgAttr(i, dmir::kDescriptionAttr, text);
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (StringAttr text = describedBy(function.getResultAttr(i, dmir::kNameAttr)))
      function.setResultAttr(i, dmir::kDescriptionAttr, text);
  if (!metadata.empty())
    (*owned)->setAttr(dmir::kMetadataAttr, metadata.getDictionary(&context));
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

std::optional<ImportedModel> ModelFunction::finish(std::vector<std::string> files) {
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
  setDescriptions();
  dmir::setSymbolBounds(*owned, bounds);
  if (ArrayAttr computed = e->computedDims(); !computed.empty())
    (*owned)->setAttr(dmir::kComputedDimsAttr, computed);
  std::set<std::string> names = dmir::nodeNames(*owned, nodes);
  dmir::setNodeCount(*owned, names);
  if (!verifies())
    return std::nullopt;
  ImportedModel imported;
  imported.module = std::move(owned);
  imported.files = std::move(files);
  imported.nodes = std::move(names);
  return imported;
}

} // namespace dmxc::frontend
