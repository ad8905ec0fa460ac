//===- TorchFrontend.cpp - exported PyTorch programs to DMIR --------------===//
#include "TorchFrontend.h"
#include "AtenContext.h"
#include "InputShapes.h"
#include "ProgramFunction.h"
#include "ProgramImporter.h"
#include "SymbolicExpr.h"
#include "reader/ModelFile.h"
#include "text/TextImporter.h"

#include <algorithm>

using namespace mlir;

namespace dmxc {
namespace {

using namespace torchfe;

/// The state that says whether the others have values yet.
constexpr const char *kStarted = "started";

/// A buffer that the program changes: a state of the session.
struct State {
  std::string buffer;  ///< its name
  std::string value;   ///< what the graph calls it
  std::string updated; ///< what the graph calls it in the end; the same where an in-place operator changes it
  Payload initial;
};

/// The import of one archive.
class ArchiveImport {
public:
  ArchiveImport(MLIRContext &context, const ImportOptions &options, Diagnostics &diagnostics)
      : context(context), options(options), diagnostics(diagnostics) {}
  std::optional<ImportedModel> run();

private:
  void error(const std::string &id, const std::string &text, ErrorKind kind = ErrorKind::Model,
             const std::string &node = "") {
    diagnostics.report({Severity::Error, id, options.path, node, text, kind, {}});
  }
  bool read();
  const Graph &graph() const { return model->program.graph; }

  bool describeInputs();
  std::optional<ModelInput> inputOf(const InputSpec &spec);
  SymbolBounds boundsOfSymbols() const;
  void bindInputs(Scope &scope);

  std::optional<Payload> payloadOf(const InputSpec &spec);
  void findStates();
  bool bindTensors(Scope &scope);
  void bindStates(Scope &scope);

  bool addOutputs(const Scope &scope);
  bool addStates(const Scope &scope);

  MLIRContext &context;
  const ImportOptions &options;
  Diagnostics &diagnostics;
  std::optional<ModelFile> model;
  std::vector<ModelInput> inputs;
  SymbolBounds bounds;
  std::vector<State> states;
  Val started; ///< false in a session's first run; null where no state needs it
  std::unique_ptr<ProgramFunction> function;
  std::unique_ptr<ProgramImporter> importer;
};

std::string nameOf(const Argument &argument) {
  return argument.elements.size() == 1 && argument.elements[0].kind == Element::Kind::Name ? argument.elements[0].text
                                                                                           : "";
}

bool ArchiveImport::read() {
  Result<std::shared_ptr<const MappedFile>> opened = MappedFile::open(options.path);
  if (!opened) {
    diagnostics.report(opened.error(), "torch-file", options.path);
    return false;
  }
  Result<ModelFile> file = readModelFile(*opened, options.entry);
  if (!file) {
    diagnostics.report(file.error(), "torch-file", options.path);
    return false;
  }
  model = std::move(*file);
  return true;
}

//===--- Inputs --------------------------------------------------------------------===//

/// An input that a run brings: a tensor, or a number that may change; nothing for None and literals.
std::optional<ModelInput> ArchiveImport::inputOf(const InputSpec &spec) {
  std::string name = nameOf(spec.argument);
  if (name.empty())
    return std::nullopt;
  if (spec.argument.kind == Argument::Kind::Int)
    return ModelInput{name, DType::I64, {Dim(1)}};
  auto found = graph().tensors.find(name);
  if (spec.argument.kind != Argument::Kind::Tensor || found == graph().tensors.end()) {
    error("torch-program", "the input '" + name + "' is no tensor that the program describes");
    return std::nullopt;
  }
  const TensorMeta &meta = found->second;
  std::optional<DType> type = dtypeOfSchema(meta.dtype);
  if (!type || meta.layout != 7) {
    error("op-dtype", "the input '" + name + "' has " +
                          (type ? "a sparse layout" : "element type " + schemaTypeName(meta.dtype)) +
                          ", which has no tensor meaning here");
    return std::nullopt;
  }
  ModelInput input{name, *type, {}};
  for (const SymInt &size : meta.sizes) {
    std::string problem;
    std::optional<Dim> dim = parseSize(size, problem);
    if (!dim || dim->valueOr(0) < 0) {
      error("torch-program", "the input '" + name + "': " + (dim ? "a size is negative" : problem));
      return std::nullopt;
    }
    input.dims.push_back(*dim);
  }
  return input;
}

SymbolBounds ArchiveImport::boundsOfSymbols() const {
  constexpr int64_t unbounded = int64_t(1) << 62; // exporters write the largest integers they know
  SymbolBounds result;
  for (const auto &[symbol, range] : model->program.ranges) {
    int64_t min = std::max<int64_t>(range.min.value_or(0), 0), max = range.max.value_or(INT64_MAX);
    result[symbol] = {min, max >= unbounded ? INT64_MAX : std::max(max, min)};
  }
  return result;
}

bool ArchiveImport::describeInputs() {
  std::vector<ModelInput> declared;
  std::set<std::string> names;
  size_t before = diagnostics.errorCount();
  for (const InputSpec &spec : model->program.inputs)
    if (spec.kind == InputSpec::Kind::User)
      if (std::optional<ModelInput> input = inputOf(spec)) {
        if (!names.insert(input->name).second)
          error("torch-program", "the input '" + input->name + "' stands twice");
        declared.push_back(std::move(*input));
      }
  if (diagnostics.errorCount() > before)
    return false;
  bounds = boundsOfSymbols();
  auto resolved = resolveInputs(std::move(declared), bounds, options, diagnostics);
  if (resolved)
    inputs = std::move(resolved->inputs);
  return resolved.has_value();
}

void ArchiveImport::bindInputs(Scope &scope) {
  for (const ModelInput &input : inputs) {
    scope.values[input.name] = Arg::tensor(function->addInput(input));
    scope.defined.insert(input.name);
    scope.given.insert(input.name);
    scope.kept.insert(input.name);
  }
  for (const InputSpec &spec : model->program.inputs)
    if (spec.kind == InputSpec::Kind::User && spec.argument.kind == Argument::Kind::Int)
      if (std::string name = nameOf(spec.argument); !name.empty())
        scope.values[name] = Arg::integer(function->emitter().dimsOf(scope.values[name].tensors[0])[0]);
}

//===--- Parameters, buffers, constants -----------------------------------------------===//

std::optional<Payload> ArchiveImport::payloadOf(const InputSpec &spec) {
  bool isWeight = spec.kind == InputSpec::Kind::Parameter || (spec.kind == InputSpec::Kind::Buffer && spec.persistent);
  const Payloads &payloads = isWeight ? model->weights : model->constants;
  if (!payloads.has(spec.name)) {
    Diagnostic diagnostic{Severity::Error,
                          "torch-tensor",
                          options.path,
                          nameOf(spec.argument),
                          "the archive has no tensor '" + spec.name + "'",
                          ErrorKind::Model,
                          {}};
    if (std::string near = nearestName(spec.name, payloads.names()); !near.empty())
      diagnostic.note("it has '" + near + "'");
    diagnostics.report(std::move(diagnostic));
    return std::nullopt;
  }
  Result<Payload> payload = payloads.read(spec.name);
  if (!payload) {
    error("torch-tensor", payload.error().message, payload.error().kind, nameOf(spec.argument));
    return std::nullopt;
  }
  return std::move(*payload);
}

/// Buffers that an output or an in-place operator changes.
void ArchiveImport::findStates() {
  auto add = [&](const std::string &value, const std::string &updated) {
    for (const InputSpec &spec : model->program.inputs) {
      bool keeps = spec.kind == InputSpec::Kind::Buffer || spec.kind == InputSpec::Kind::Parameter;
      bool known = std::any_of(states.begin(), states.end(), [&](const State &s) { return s.value == value; });
      if (keeps && !known && nameOf(spec.argument) == value)
        states.push_back({spec.name, value, updated, {}});
    }
  };
  auto valueOf = [&](const std::string &name) {
    for (const InputSpec &spec : model->program.inputs)
      if (spec.kind != InputSpec::Kind::User && spec.name == name)
        return nameOf(spec.argument);
    return std::string();
  };
  for (const OutputSpec &spec : model->program.outputs)
    if (spec.kind == OutputSpec::Kind::BufferMutation || spec.kind == OutputSpec::Kind::ParameterMutation)
      add(valueOf(spec.name), nameOf(spec.argument));
  for (const std::string &value : changedValues(graph()))
    add(value, value);
}

bool ArchiveImport::bindTensors(Scope &scope) {
  size_t before = diagnostics.errorCount();
  for (const InputSpec &spec : model->program.inputs) {
    if (spec.kind == InputSpec::Kind::User || spec.kind == InputSpec::Kind::Literal)
      continue;
    if (spec.kind == InputSpec::Kind::Token) {
      scope.values[nameOf(spec.argument)] = Arg::none();
      continue;
    }
    std::string name = nameOf(spec.argument);
    if (!scope.defined.insert(name).second) {
      error("torch-program", "the input '" + name + "' stands twice");
      continue;
    }
    scope.kept.insert(name);
    scope.given.insert(name);
    std::optional<Payload> payload = payloadOf(spec);
    if (!payload)
      continue;
    for (State &state : states)
      if (state.value == name) {
        if (payload->isComplex)
          error("op-dtype", "the complex buffer '" + spec.name + "' is changed by a run; keep its parts as a real one");
        state.initial = *payload;
      }
    Val value =
        function->emitter().stored(payload->tensor, payload->mapped ? options.path : "", payload->offset, spec.name);
    if (payload->isComplex) {
      ComplexParts parts = partsOf(function->emitter(), value);
      value = Val::complexOf(parts.re, parts.im);
    }
    scope.values[name] = Arg::tensor(value);
  }
  return diagnostics.errorCount() == before;
}

/// A session's states are zeros at first. One that is something else takes its first value from the program.
void ArchiveImport::bindStates(Scope &scope) {
  auto isZero = [](const Tensor &tensor) {
    auto bytes = tensor.raw();
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{}; });
  };
  Emitter &e = function->emitter();
  for (const State &state : states) {
    Val initial = scope.values[state.value].tensors[0];
    e.setNode(state.buffer);
    Val current = function->addArgument(initial.type(), state.buffer, /*state=*/true);
    if (!isZero(state.initial.tensor)) {
      if (!started)
        started = function->addArgument(e.typeOf(DType::Bool, {}), kStarted, /*state=*/true);
      current = e.select(started, current, initial);
    }
    scope.values[state.value] = Arg::tensor(current);
  }
}

//===--- Outputs -------------------------------------------------------------------===//

/// "out0" for a position, the label itself for a key.
std::string outputName(const std::vector<std::string> &labels, size_t number) {
  if (number >= labels.size() || labels[number].empty())
    return "out" + std::to_string(number);
  bool position = labels[number][0] >= '0' && labels[number][0] <= '9';
  return (position ? "out" : "") + labels[number];
}

bool ArchiveImport::addOutputs(const Scope &scope) {
  size_t users = 0;
  auto nameFor = [&](const OutputSpec &spec) -> std::string {
    switch (spec.kind) {
    case OutputSpec::Kind::User:
      return outputName(model->program.outputLabels, users++);
    case OutputSpec::Kind::Loss:
      ++users; // the tree of the outputs has it too
      return "loss";
    case OutputSpec::Kind::ParameterGradient:
    case OutputSpec::Kind::InputGradient:
      return "grad." + spec.name;
    default:
      return "mutated." + spec.name;
    }
  };
  for (const OutputSpec &spec : model->program.outputs) {
    if (spec.kind == OutputSpec::Kind::BufferMutation || spec.kind == OutputSpec::Kind::ParameterMutation ||
        spec.kind == OutputSpec::Kind::Token)
      continue;
    std::string name = nameFor(spec);
    try {
      Arg value = importer->resolve(spec.argument, scope);
      if (!value.isNone() && !function->addResult(value, name))
        return false;
    } catch (const NodeFailure &failure) {
      error(failure.id, failure.text, ErrorKind::Model, name);
      return false;
    }
  }
  // What operators change in place in the caller's tensors is a result here.
  for (const std::string &value : changedValues(graph()))
    if (std::any_of(inputs.begin(), inputs.end(), [&](const ModelInput &input) { return input.name == value; }))
      if (!function->addResult(scope.values.at(value), "mutated." + value))
        return false;
  return true;
}

bool ArchiveImport::addStates(const Scope &scope) {
  for (const State &state : states) {
    auto found = scope.values.find(state.updated);
    if (found == scope.values.end() || found->second.tensors.size() != 1) {
      error("torch-graph",
            "the new value '" + state.updated + "' of the buffer '" + state.buffer + "' is computed by no node");
      return false;
    }
    Val value = found->second.tensors[0];
    if (!value.isPoison() && value.type() != function->emitter().constant(state.initial.tensor).type()) {
      error("torch-graph", "the new value of the buffer '" + state.buffer + "' has another type: " + value.describe());
      return false;
    }
    if (!function->addResult(found->second, state.buffer, /*state=*/true))
      return false;
  }
  return !started || function->addResult(Arg::flag(true), kStarted, /*state=*/true);
}

std::optional<ImportedModel> ArchiveImport::run() {
  size_t before = diagnostics.errorCount();
  if (!read() || !describeInputs())
    return std::nullopt;
  function = std::make_unique<ProgramFunction>(context, options, diagnostics);
  function->bounds = bounds;
  importer = std::make_unique<ProgramImporter>(options.path, function->emitter(), diagnostics);
  Scope scope;
  findStates();
  bindInputs(scope);
  if (!bindTensors(scope))
    return std::nullopt;
  bindStates(scope);
  importer->importNodes(graph(), scope);
  if (!addOutputs(scope) || !addStates(scope) || diagnostics.errorCount() > before)
    return std::nullopt;
  function->nodes = importer->nodeNames();
  return function->finish();
}

bool recognises(const std::string &path, llvm::ArrayRef<char> head) {
  return StringRef(path).ends_with(".pt2") || StringRef(head.data(), head.size()).starts_with("PK\x03\x04") ||
         recognisesText(path, head);
}

std::optional<ImportedModel> importTorch(MLIRContext &context, const ImportOptions &options, Diagnostics &diagnostics) {
  try {
    if (StringRef(options.path).ends_with(".mlir"))
      return importText(context, options, diagnostics);
    return ArchiveImport(context, options, diagnostics).run();
  } catch (const std::bad_alloc &) {
    diagnostics.report({Severity::Error,
                        "torch-memory",
                        options.path,
                        "",
                        "out of memory: it does not suffice to import the model",
                        ErrorKind::IO,
                        {}});
  } catch (const NodeFailure &failure) { // of an input's own type
    diagnostics.report({Severity::Error, failure.id, options.path, "", failure.text, ErrorKind::Model, {}});
  }
  return std::nullopt;
}

} // namespace

const Frontend &torchFrontend() {
  static const Frontend frontend{"pt2", "PyTorch: programs of torch.export.save (.pt2), torch-dialect text (.mlir)",
                                 recognises, importTorch, torchfe::printAtenTable};
  return frontend;
}

} // namespace dmxc
