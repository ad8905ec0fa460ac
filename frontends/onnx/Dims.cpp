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
  Resolver(const ImportOptions &options, Diagnostics &diagnostics)
      : options(options), diagnostics(diagnostics), given(options, diagnostics, "onnx-dim") {}

  void read(const onnx::ValueInfoProto &info) { read(info.name(), info.type()); }
  void checkNames(const std::set<std::string> &constants);
  void applyShapes();
  void applyDims();
  GraphInputs finish();
  bool failed() const { return anyError || given.failed(); }

private:
  /// What is wrong with the model.
  void error(const std::string &id, const std::string &text) {
    anyError = true;
    diagnostics.report({Severity::Error, id, options.path, "", text, ErrorKind::Model, {}});
  }
  void fix(const InputDim &dim, int64_t value, const std::string &by);
  void read(const std::string &name, const onnx::TypeProto &type);
  void readTensor(const std::string &name, const onnx::TypeProto::Tensor &tensor);
  void readSequence(const std::string &name, const onnx::TypeProto &item);
  void readOptional(const std::string &name, const onnx::TypeProto &value);

  const ImportOptions &options;
  Diagnostics &diagnostics;
  SizeOptions given;
  bool anyError = false;
  std::vector<Input> inputs;
  std::vector<InputContainer> containers;
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
  error("onnx-graph", "the input '" + name + "' is " + kindName(type) + "; only tensors can be inputs");
}

/// As many tensors as --shape names.
void Resolver::readSequence(const std::string &name, const onnx::TypeProto &item) {
  InputContainer container{name, /*isSequence=*/true};
  while (options.shapes.count(name + "." + std::to_string(container.items.size())))
    container.items.push_back(name + "." + std::to_string(container.items.size()));
  if (!item.has_tensor_type())
    error("onnx-graph", "the input '" + name + "' is a sequence of what is " + kindName(item) +
                            "; only sequences of tensors can be inputs");
  else if (container.items.empty() && !options.absent.count(name))
    given.error("the input '" + name + "' is a sequence, of how many tensors is not known", ErrorKind::Model,
                "--shape " + name + ".0=DIMS --shape " + name + ".1=DIMS and so on name them; --shape " + name +
                    "=none makes it empty");
  for (const std::string &own : container.items) {
    read(own, item);
    if (inputs.empty() || inputs.back().name != own)
      continue;
    for (size_t i = 0; i < inputs.back().dims.size(); ++i) // a dim named in the type may differ between the tensors
      if (InputDim &dim = inputs.back().dims[i]; !dim.symbol.empty())
        dim.symbol = nameOfDim(own, i);
  }
  containers.push_back(std::move(container));
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
    given.error("the input '" + name + "' is an optional; whether it has a value is not known", ErrorKind::Model,
                "--shape " + name + (value.has_sequence_type() ? ".0" : "") + "=DIMS gives it one, --shape " + name +
                    "=none gives it none");
  }
}

void Resolver::readTensor(const std::string &name, const onnx::TypeProto::Tensor &tensor) {
  std::optional<DType> type = dtypeOfOnnx(tensor.elem_type());
  if (!type) {
    error("op-dtype", "the input '" + name + "' has element type " + onnxTypeName(tensor.elem_type()) +
                          ", which has no tensor meaning here");
    return;
  }
  Input input{name, *type, tensor.has_shape(), {}};
  for (const auto &proto : tensor.shape().dim()) {
    InputDim dim;
    if (proto.has_dim_value() && proto.dim_value() >= 0)
      dim.value = proto.dim_value();
    else if (proto.has_dim_param() && !proto.dim_param().empty() && proto.dim_param() != "?")
      dim.symbol = proto.dim_param();
    else // older exporters write -1 for unknown, Paddle's a question mark for each
      dim.symbol = nameOfDim(name, input.dims.size());
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
  for (const auto &[name, bounds] : options.dims)
    if (std::find(dimNames.begin(), dimNames.end(), name) == dimNames.end())
      given.unknown("--dim " + name + ": the model has no symbolic dim of this name", name, dimNames);
  for (const auto &[name, shape] : options.shapes) {
    if (constants.count(name))
      given.error("--shape " + name + ": the input has a value in the file and is a constant");
    else if (std::find(inputNames.begin(), inputNames.end(), name) == inputNames.end())
      given.unknown("--shape " + name + ": the model has no input of this name", name, inputNames);
  }
  for (const std::string &name : options.absent)
    if (std::none_of(containers.begin(), containers.end(),
                     [&](const InputContainer &container) { return container.name == name; }))
      given.error("--shape " + name + "=none: the model has no sequence or optional of this name as an input");
  std::sort(inputNames.begin(), inputNames.end());
  if (auto twice = std::adjacent_find(inputNames.begin(), inputNames.end()); twice != inputNames.end())
    error("onnx-graph", "the name '" + *twice + "' stands for two inputs");
}

void Resolver::fix(const InputDim &dim, int64_t value, const std::string &by) {
  if (value < 0)
    return given.error(by + ": a dim cannot be " + std::to_string(value));
  if (!dim.symbol.empty())
    return given.fix(dim.symbol, value, by);
  if (dim.value != value)
    given.error(by + ": the model fixes this dim to " + std::to_string(dim.value));
}

void Resolver::applyShapes() {
  for (Input &input : inputs) {
    auto option = options.shapes.find(input.name);
    if (option == options.shapes.end())
      continue;
    const std::vector<int64_t> &shape = option->second;
    std::string by = "--shape " + input.name + "=" + shapeString(shape);
    if (!input.ranked) {
      input.ranked = true;
      input.dims.resize(shape.size());
      for (size_t i = 0; i < input.dims.size(); ++i)
        input.dims[i].symbol = nameOfDim(input.name, i);
    }
    if (input.dims.size() != shape.size()) {
      given.error(by + ": the input has " + std::to_string(input.dims.size()) + " dims");
      continue;
    }
    for (size_t i = 0; i < input.dims.size(); ++i)
      fix(input.dims[i], shape[i], by);
  }
}

void Resolver::applyDims() {
  for (const Input &input : inputs)
    for (const InputDim &dim : input.dims) {
      auto option = options.dims.find(dim.symbol);
      if (!dim.symbol.empty() && option != options.dims.end() && option->second.min == option->second.max)
        fix(dim, option->second.min, "--dim " + dim.symbol + "=" + std::to_string(option->second.min));
    }
}

GraphInputs Resolver::finish() {
  GraphInputs result;
  for (const Input &input : inputs) {
    ModelInput out{input.name, input.type, {}};
    if (!input.ranked)
      given.error("the rank of input '" + input.name + "' is unknown", ErrorKind::Model,
                  "--shape " + input.name + "=1x3x224x224 (its dims) fixes it");
    for (const InputDim &dim : input.dims) {
      int64_t size = dim.symbol.empty() ? dim.value : given.sizeOf(dim.symbol).value_or(dim.value);
      if (size >= 0) {
        out.dims.push_back(size);
        continue;
      }
      out.dims.push_back(Dim::symbol(dim.symbol));
      auto option = options.dims.find(dim.symbol);
      // A cache that is empty at first has a dim of 0.
      result.symbols[dim.symbol] = option == options.dims.end() ? DimBounds{0, INT64_MAX} : option->second;
    }
    result.inputs.push_back(std::move(out));
  }
  result.containers = std::move(containers);
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
  if (resolver.failed())
    return std::nullopt;
  return inputs;
}

} // namespace dmxc::onnxfe
