//===- OnnxFrontend.cpp - ONNX models to DMIR -----------------------------===//
#include "OnnxFrontend.h"
#include "Dims.h"
#include "GraphImporter.h"
#include "OnnxOperators.h"
#include "reader/WireReader.h"

#include "frontends/common/ModelFunction.h"

#include <filesystem>

using namespace mlir;

namespace dmxc {
namespace {

using namespace onnxfe;

/// The import of one file.
class ModelImport {
public:
  ModelImport(MLIRContext &context, const ImportOptions &options, Diagnostics &diagnostics)
      : context(context), options(options), diagnostics(diagnostics) {}
  std::optional<ImportedModel> run();

private:
  void error(const std::string &id, const std::string &text, const std::string &node = "",
             ErrorKind kind = ErrorKind::Model) {
    diagnostics.report({Severity::Error, id, options.path, node, text, kind, {}});
  }
  bool read();
  bool checkRequest();
  bool collectOutputs(std::vector<std::pair<std::string, Val>> &outputs, const Scope &scope);
  void checkDeclared(const onnx::ValueInfoProto &output, const Val &value);
  void noteConstantInputs(const std::set<std::string> &constants);
  void noteMaps() const;
  std::string modelName() const;
  void describe(frontend::ModelFunction &function) const;

  MLIRContext &context;
  const ImportOptions &options;
  Diagnostics &diagnostics;
  std::shared_ptr<const MappedFile> file;
  onnx::ModelProto model;
};

bool ModelImport::read() {
  Result<std::shared_ptr<const MappedFile>> opened = MappedFile::open(options.path);
  if (!opened) {
    diagnostics.report(opened.error(), "onnx-file", options.path);
    return false;
  }
  file = *opened;
  Result<std::string> slim = slimModel(file->bytes());
  if (!slim) {
    diagnostics.report(slim.error(), "onnx-file", options.path);
    return false;
  }
  if (!model.ParsePartialFromArray(slim->data(), static_cast<int>(slim->size()))) {
    error("onnx-file", "not a valid ONNX file: libprotobuf cannot parse it as a ModelProto");
    return false;
  }
  if (!model.has_graph()) {
    error("onnx-file", "not an ONNX model: it has no graph");
    return false;
  }
  return true;
}

/// The newest opset that some operator of the domain was changed in, as far as is known here; 0 of another domain.
int newestOpset(const std::string &domain) {
  int newest = 0;
  for (const OpRow &row : OpTable::get().rows())
    if (domain == row.domain || (domain == "ai.onnx" && !*row.domain))
      newest = std::max(newest, row.since);
  return newest;
}

/// An ONNX file has one graph that runs. A newer opset is read as the newest that is known.
bool ModelImport::checkRequest() {
  if (!options.entry.empty() && options.entry != "main") {
    error("entry-unknown", "there is no entry point '" + options.entry + "': an ONNX file has one, 'main'", "",
          ErrorKind::Usage);
    return false;
  }
  for (const auto &import : model.opset_import())
    if (int known = newestOpset(import.domain()); known && import.version() > known)
      diagnostics.report({Severity::Warning,
                          "onnx-opset",
                          options.path,
                          "",
                          "the model imports opset " + std::to_string(import.version()) + " of " +
                              (import.domain().empty() ? "ai.onnx" : import.domain()) +
                              ", the newest that is known is " + std::to_string(known) +
                              ": operators that changed since are read as they were then",
                          ErrorKind::Model,
                          {}});
  return true;
}

std::string ModelImport::modelName() const {
  std::string name = model.graph().name();
  return name.empty() ? std::filesystem::path(options.path).stem().string() : name;
}

/// The labels of a ZipMap's columns; "" of another node.
std::string classLabels(const onnx::NodeProto &node) {
  if (node.op_type() != "ZipMap" || node.output_size() != 1)
    return "";
  std::string labels;
  auto add = [&](const std::string &label) { labels += (labels.empty() ? "" : ", ") + label; };
  for (const onnx::AttributeProto &attribute : node.attribute()) {
    for (int64_t label : attribute.ints())
      add(std::to_string(label));
    for (const std::string &label : attribute.strings())
      add("'" + label + "'");
  }
  return labels;
}

/// What the file says for people. An input or output has a text, or at least a denotation ("IMAGE").
void ModelImport::describe(frontend::ModelFunction &function) const {
  for (const onnx::StringStringEntryProto &entry : model.metadata_props())
    function.addMetadata(entry.key(), entry.value());
  const std::string &version = model.producer_version();
  function.addMetadata("onnx.producer", model.producer_name() + (version.empty() ? "" : " " + version));
  function.addMetadata("onnx.domain", model.domain());
  function.addMetadata("onnx.version", model.model_version() ? std::to_string(model.model_version()) : "");
  function.addMetadata("onnx.description", model.doc_string());
  for (const auto *values : {&model.graph().input(), &model.graph().output()})
    for (const onnx::ValueInfoProto &value : *values)
      function.describe(value.name(), value.doc_string().empty() ? value.type().denotation() : value.doc_string());
  for (const onnx::NodeProto &node : model.graph().node())
    if (std::string labels = classLabels(node); !labels.empty())
      function.describe(node.output(0), "columns: " + labels);
}

/// Exporters often declare symbolic or wrong shapes; the inferred type counts,
/// a contradiction is worth a word.
void ModelImport::checkDeclared(const onnx::ValueInfoProto &output, const Val &value) {
  if (!output.type().has_tensor_type())
    return;
  const auto &declared = output.type().tensor_type();
  std::string text;
  if (declared.elem_type() && declared.elem_type() != onnxTypeOf(value.dtype()))
    text = "is declared as " + onnxTypeName(declared.elem_type());
  bool fits = !declared.has_shape() || declared.shape().dim_size() == value.rank();
  for (int i = 0; fits && declared.has_shape() && i < declared.shape().dim_size(); ++i)
    if (declared.shape().dim(i).has_dim_value() && declared.shape().dim(i).dim_value() > 0)
      fits &= declared.shape().dim(i).dim_value() == value.extent(i).valueOr(declared.shape().dim(i).dim_value());
  if (!fits)
    text += std::string(text.empty() ? "is" : " and") + " declared with another shape";
  if (!text.empty())
    diagnostics.report({Severity::Warning,
                        "onnx-output-type",
                        options.path,
                        "",
                        "the output '" + output.name() + "' " + text + ", but the graph computes " + value.describe(),
                        ErrorKind::Model,
                        {}});
}

/// Files of IR version 3 list their weights as inputs too; those stay
/// constants.
void ModelImport::noteConstantInputs(const std::set<std::string> &constants) {
  constexpr size_t most = 3; // old models list all of their weights
  std::string names;
  size_t count = 0;
  for (const auto &input : model.graph().input())
    if (constants.count(input.name()) && ++count <= most)
      names += (names.empty() ? "'" : ", '") + input.name() + "'";
  if (count > most)
    names += " and " + std::to_string(count - most) + " more";
  if (!names.empty())
    diagnostics.report({Severity::Note,
                        "onnx-graph",
                        options.path,
                        "",
                        "inputs with a value in the file are constants: " + names,
                        ErrorKind::Model,
                        {}});
}

/// scikit-learn's converters end a classifier with a map of class to probability for each row.
void ModelImport::noteMaps() const {
  for (const onnx::NodeProto &node : model.graph().node())
    for (const onnx::ValueInfoProto &output : model.graph().output())
      if (std::string labels = classLabels(node); !labels.empty() && node.output(0) == output.name())
        diagnostics.report({Severity::Note,
                            "onnx-maps",
                            options.path,
                            node.name(),
                            "the output '" + output.name() + "' is a tensor with a column for each class: " + labels +
                                "; in the file it is a map for each row",
                            ErrorKind::Model,
                            {}});
}

/// The tensors of a sequence `y` are the outputs `y.0`, `y.1` and so on.
bool ModelImport::collectOutputs(std::vector<std::pair<std::string, Val>> &outputs, const Scope &scope) {
  std::set<std::string> names;
  auto add = [&](const std::string &name, const Val &value) {
    outputs.push_back({name, value});
    if (!names.insert(name).second)
      error("onnx-graph", "the name '" + name + "' stands for two outputs");
  };
  for (const auto &output : model.graph().output()) {
    Val value = scope.lookup(output.name());
    if (!value) {
      error("onnx-graph", "the output '" + output.name() + "' is computed by no node");
      return false;
    }
    if (value.isPoison())
      return false;
    if (value.pieces()) {
      error("onnx-graph", "the output '" + output.name() + "' is a " + value.describe() +
                              "; its tensors cannot be outputs, what is made of them can");
      return false;
    }
    if (value.isSequence()) {
      for (size_t i = 0; i < value.items().size(); ++i)
        if (value.items()[i].isPoison())
          return false;
        else
          add(output.name() + "." + std::to_string(i), value.items()[i]);
    } else if (value.isTensor()) {
      checkDeclared(output, value);
      add(output.name(), value);
    }
  }
  bool none = outputs.empty() && model.graph().output_size();
  if (none)
    error("onnx-graph", "the output '" + model.graph().output(0).name() +
                            "' and all others are sequences without a tensor or optionals without a value");
  return !none;
}

std::optional<ImportedModel> ModelImport::run() {
  size_t errorsBefore = diagnostics.errorCount();
  if (!read() || !checkRequest())
    return std::nullopt;
  std::set<std::string> constants;
  for (const auto &tensor : model.graph().initializer())
    constants.insert(tensor.name());
  for (const auto &sparse : model.graph().sparse_initializer())
    constants.insert(sparse.values().name());
  std::optional<GraphInputs> graph = resolveInputs(model.graph(), constants, options, diagnostics);
  if (!graph)
    return std::nullopt;
  noteConstantInputs(constants);

  frontend::ModelFunction function(context, options, diagnostics, modelName(),
                                   options.entry.empty() ? "main" : options.entry);
  function.bounds = graph->symbols;
  std::vector<Val> arguments;
  for (const ModelInput &input : graph->inputs)
    arguments.push_back(
        function.addArgument(dmir::tensorOf(input.dims, dmir::elementTypeOf(input.type, &context)), input.name));
  TensorReader tensors(file, options.path, options.externalDataDirs);
  GraphImporter importer(model, options, tensors, function.emitter(), diagnostics);
  Scope scope = importer.mainScope();
  importer.bindInitializers(model.graph(), scope);
  for (size_t i = 0; i < arguments.size(); ++i)
    scope.values[graph->inputs[i].name] = arguments[i];
  for (const InputContainer &container : graph->containers) {
    std::vector<Val> items;
    for (const std::string &item : container.items)
      items.push_back(scope.values.at(item));
    scope.values[container.name] = container.isNone ? Val::none() : Val::sequenceOf(std::move(items));
  }
  importer.importNodes(model.graph().node(), model.graph().output(), scope);
  std::vector<std::pair<std::string, Val>> outputs;
  if (!collectOutputs(outputs, scope) || diagnostics.errorCount() > errorsBefore)
    return std::nullopt;
  noteMaps();
  importer.reportDifferences();
  for (const auto &[name, value] : outputs)
    function.addResult(value, name);
  describe(function);
  function.nodes = importer.nodeNames();
  std::vector<std::string> files = tensors.files();
  files.insert(files.begin(), options.path);
  return function.finish(std::move(files));
}

bool recognises(const std::string &path, llvm::ArrayRef<char> head) {
  if (StringRef(path).ends_with(".onnx"))
    return true;
  // ir_version, the first field writers emit, then another low field.
  return head.size() >= 3 && head[0] == 0x08 && head[1] > 0 && head[1] < 0x40 && (head[2] == 0x12 || head[2] == 0x3a);
}

std::optional<ImportedModel> importOnnx(MLIRContext &context, const ImportOptions &options, Diagnostics &diagnostics) {
  try {
    return ModelImport(context, options, diagnostics).run();
  } catch (const std::bad_alloc &) {
    diagnostics.report({Severity::Error,
                        "onnx-memory",
                        options.path,
                        "",
                        "out of memory: it does not suffice to import the model",
                        ErrorKind::IO,
                        {}});
  } catch (const std::exception &exception) { // libprotobuf and std::filesystem throw
    diagnostics.report({Severity::Error,
                        "onnx-file",
                        options.path,
                        "",
                        std::string("the model cannot be read: ") + exception.what(),
                        ErrorKind::Model,
                        {}});
  }
  return std::nullopt;
}

} // namespace

const Frontend &onnxFrontend() {
  static const Frontend frontend{"onnx",
                                 "ONNX models (.onnx), any IR version and opset",
                                 recognises,
                                 importOnnx,
                                 onnxfe::printOpTable,
                                 &onnxfe::onnxOperators()};
  return frontend;
}

} // namespace dmxc
