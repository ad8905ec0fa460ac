//===- Dims.cpp - shapes of the model's inputs ----------------------------===//
#include "Dims.h"

#include <algorithm>

namespace dmxc::onnxfe {
namespace {

/// One dim of an input as the model declares it.
struct InputDim {
  std::string symbol; ///< "" for a number
  int64_t value = -1; ///< -1 while unknown
};

struct Input {
  std::string name;
  DType type;
  bool ranked;
  std::vector<InputDim> dims;
};

class Resolver {
public:
  Resolver(const ImportOptions &options, Diagnostics &diagnostics) : options(options), diagnostics(diagnostics) {}

  void read(const onnx::ValueInfoProto &info) { read(info.name(), info.type()); }
  void checkNames(const std::set<std::string> &constants);
  void applyShapes();
  void applyDims();
  GraphInputs finish();
  bool failed = false;

private:
  Diagnostic &error(const std::string &id, const std::string &text, ErrorKind kind) {
    failed = true;
    pending.push_back({Severity::Error, id, options.path, "", text, kind, {}});
    return pending.back();
  }
  void flush() {
    for (Diagnostic &diagnostic : pending)
      diagnostics.report(std::move(diagnostic));
    pending.clear();
  }
  void fix(InputDim &dim, int64_t value, const std::string &by);
  void read(const std::string &name, const onnx::TypeProto &type);
  void readTensor(const std::string &name, const onnx::TypeProto::Tensor &tensor);
  void readSequence(const std::string &name, const onnx::TypeProto &item);
  void readOptional(const std::string &name, const onnx::TypeProto &value);

  const ImportOptions &options;
  Diagnostics &diagnostics;
  std::vector<Diagnostic> pending;
  std::vector<Input> inputs;
  std::vector<InputContainer> containers;
  std::map<std::string, int64_t> symbols; ///< sizes by --shape and --dim
};

std::string kindName(const onnx::TypeProto &type) {
  switch (type.value_case()) {
  case onnx::TypeProto::kSequenceType:
    return "a sequence";
  case onnx::TypeProto::kMapType:
    return "a map";
  case onnx::TypeProto::kOptionalType:
    return "an optional";
  case onnx::TypeProto::kSparseTensorType:
    return "a sparse tensor";
  case onnx::TypeProto::kTensorType:
    return "a tensor";
  default:
    return "of no known type";
  }
}

void Resolver::read(const std::string &name, const onnx::TypeProto &type) {
  if (type.has_tensor_type())
    return readTensor(name, type.tensor_type());
  if (type.has_sequence_type())
    return readSequence(name, type.sequence_type().elem_type());
  if (type.has_optional_type())
    return readOptional(name, type.optional_type().elem_type());
  error("onnx-graph", "the input '" + name + "' is " + kindName(type) + "; only tensors can be inputs",
        ErrorKind::Model);
  flush();
}

/// As many tensors as --shape names.
void Resolver::readSequence(const std::string &name, const onnx::TypeProto &item) {
  InputContainer container{name, /*isSequence=*/true};
  while (options.shapes.count(name + "." + std::to_string(container.items.size())))
    container.items.push_back(name + "." + std::to_string(container.items.size()));
  if (!item.has_tensor_type())
    error("onnx-graph",
          "the input '" + name + "' is a sequence of what is " + kindName(item) +
              "; only sequences of tensors can be inputs",
          ErrorKind::Model);
  else if (container.items.empty() && !options.absent.count(name))
    error("onnx-dim", "the input '" + name + "' is a sequence, of how many tensors is not known", ErrorKind::Model)
        .help("--shape " + name + ".0=DIMS --shape " + name + ".1=DIMS and so on name them; --shape " + name +
              "=none makes it empty");
  for (const std::string &own : container.items) {
    read(own, item);
    if (inputs.empty() || inputs.back().name != own)
      continue;
    for (size_t i = 0; i < inputs.back().dims.size(); ++i) // a dim named in the type may differ between the tensors
      if (InputDim &dim = inputs.back().dims[i]; !dim.symbol.empty())
        dim.symbol = own + "_d" + std::to_string(i);
  }
  containers.push_back(std::move(container));
  flush();
}

void Resolver::readOptional(const std::string &name, const onnx::TypeProto &value) {
  InputContainer container{name, value.has_sequence_type(), options.absent.count(name) != 0};
  if (container.isNone) {
    container.isSequence = false;
    containers.push_back(std::move(container));
  } else if (value.has_sequence_type() && options.shapes.count(name + ".0")) {
    readSequence(name, value.sequence_type().elem_type());
  } else if (value.has_tensor_type() && options.shapes.count(name)) {
    readTensor(name, value.tensor_type());
  } else {
    error("onnx-dim", "the input '" + name + "' is an optional; whether it has a value is not known", ErrorKind::Model)
        .help("--shape " + name + (value.has_sequence_type() ? ".0" : "") + "=DIMS gives it one, --shape " + name +
              "=none gives it none");
    flush();
  }
}

void Resolver::readTensor(const std::string &name, const onnx::TypeProto::Tensor &tensor) {
  std::optional<DType> type = dtypeOfOnnx(tensor.elem_type());
  if (!type) {
    error("op-dtype",
          "the input '" + name + "' has element type " + onnxTypeName(tensor.elem_type()) +
              ", which has no tensor meaning here",
          ErrorKind::Model);
    return flush();
  }
  Input input{name, *type, tensor.has_shape(), {}};
  for (const auto &proto : tensor.shape().dim()) {
    InputDim dim;
    if (proto.has_dim_value() && proto.dim_value() >= 0)
      dim.value = proto.dim_value();
    else if (proto.has_dim_param() && !proto.dim_param().empty())
      dim.symbol = proto.dim_param();
    else // older exporters write -1 for unknown
      dim.symbol = name + "_d" + std::to_string(input.dims.size());
    input.dims.push_back(std::move(dim));
  }
  inputs.push_back(std::move(input));
}

void Resolver::checkNames(const std::set<std::string> &constants) {
  std::vector<std::string> inputNames, dimNames;
  for (const Input &input : inputs) {
    inputNames.push_back(input.name);
    for (const InputDim &dim : input.dims)
      if (!dim.symbol.empty())
        dimNames.push_back(dim.symbol);
  }
  auto unknown = [&](const std::string &flag, const std::string &name, const std::string &what,
                     const std::vector<std::string> &names) {
    std::string text = flag + " " + name + ": the model has no " + what + " of this name";
    if (names.empty())
      text += " (it has none at all)";
    Diagnostic &diagnostic = error("onnx-dim", text, ErrorKind::Usage);
    if (std::string near = nearestName(name, names); !near.empty())
      diagnostic.help("did you mean '" + near + "'?");
  };
  for (const auto &[name, bounds] : options.dims)
    if (std::find(dimNames.begin(), dimNames.end(), name) == dimNames.end())
      unknown("--dim", name, "symbolic dim", dimNames);
  for (const auto &[name, shape] : options.shapes) {
    if (constants.count(name))
      error("onnx-dim", "--shape " + name + ": the input has a value in the file and is a constant", ErrorKind::Usage);
    else if (std::find(inputNames.begin(), inputNames.end(), name) == inputNames.end())
      unknown("--shape", name, "input", inputNames);
  }
  for (const std::string &name : options.absent)
    if (std::none_of(containers.begin(), containers.end(),
                     [&](const InputContainer &container) { return container.name == name; }))
      error("onnx-dim", "--shape " + name + "=none: the model has no sequence or optional of this name as an input",
            ErrorKind::Usage);
  std::sort(inputNames.begin(), inputNames.end());
  if (auto twice = std::adjacent_find(inputNames.begin(), inputNames.end()); twice != inputNames.end())
    error("onnx-graph", "the name '" + *twice + "' stands for two inputs", ErrorKind::Model);
  flush();
}

void Resolver::fix(InputDim &dim, int64_t value, const std::string &by) {
  if (value < 0) {
    error("onnx-dim", by + ": a dim cannot be " + std::to_string(value), ErrorKind::Usage);
    return;
  }
  if (dim.symbol.empty()) {
    if (dim.value != value)
      error("onnx-dim", by + ": the model fixes this dim to " + std::to_string(dim.value), ErrorKind::Usage);
    return;
  }
  auto [place, isNew] = symbols.try_emplace(dim.symbol, value);
  if (!isNew && place->second != value)
    error("onnx-dim",
          by + ": the dim '" + dim.symbol + "' is given both as " + std::to_string(place->second) + " and as " +
              std::to_string(value),
          ErrorKind::Usage);
}

void Resolver::applyShapes() {
  for (Input &input : inputs) {
    auto given = options.shapes.find(input.name);
    if (given == options.shapes.end())
      continue;
    std::string by = "--shape " + input.name + "=" + shapeString(given->second);
    if (!input.ranked) {
      input.ranked = true;
      input.dims.resize(given->second.size());
      for (size_t i = 0; i < input.dims.size(); ++i)
        input.dims[i].symbol = input.name + "_d" + std::to_string(i);
    }
    if (input.dims.size() != given->second.size()) {
      error("onnx-dim", by + ": the input has " + std::to_string(input.dims.size()) + " dims", ErrorKind::Usage);
      continue;
    }
    for (size_t i = 0; i < input.dims.size(); ++i)
      fix(input.dims[i], given->second[i], by);
  }
  flush();
}

void Resolver::applyDims() {
  for (Input &input : inputs)
    for (InputDim &dim : input.dims) {
      auto given = options.dims.find(dim.symbol);
      if (!dim.symbol.empty() && given != options.dims.end() && given->second.min == given->second.max)
        fix(dim, given->second.min, "--dim " + dim.symbol + "=" + std::to_string(given->second.min));
    }
  flush();
}

GraphInputs Resolver::finish() {
  GraphInputs result;
  for (Input &input : inputs) {
    GraphInput out{input.name, input.type, {}};
    if (!input.ranked)
      error("onnx-dim", "the rank of input '" + input.name + "' is unknown", ErrorKind::Model)
          .help("--shape " + input.name + "=1x3x224x224 (its dims) fixes it");
    for (InputDim &dim : input.dims) {
      auto size = symbols.find(dim.symbol);
      if (!dim.symbol.empty() && size != symbols.end())
        dim.value = size->second;
      if (dim.value >= 0) {
        out.dims.push_back(dim.value);
        continue;
      }
      out.dims.push_back(Dim::symbol(dim.symbol));
      auto given = options.dims.find(dim.symbol);
      // A cache that is empty at first has a dim of 0.
      result.symbols[dim.symbol] = given == options.dims.end() ? DimBounds{0, INT64_MAX} : given->second;
    }
    result.inputs.push_back(std::move(out));
  }
  result.containers = std::move(containers);
  flush();
  return result;
}

} // namespace

std::optional<GraphInputs> resolveInputs(const onnx::GraphProto &graph, const std::set<std::string> &constants,
                                         const ImportOptions &options, Diagnostics &diagnostics) {
  Resolver resolver(options, diagnostics);
  for (const auto &info : graph.input())
    if (!constants.count(info.name()))
      resolver.read(info);
  resolver.checkNames(constants);
  resolver.applyShapes();
  resolver.applyDims();
  GraphInputs inputs = resolver.finish();
  if (resolver.failed)
    return std::nullopt;
  return inputs;
}

} // namespace dmxc::onnxfe
