//===- Transform.cpp - a case's model, asked in another way ---------------===//
#include "Transform.h"

#include "dmxc/Tools/TensorDirectory.h"

#include <onnx/onnx-data_pb.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace dmxc::conformance {
namespace {

constexpr std::pair<std::string_view, Transform> names[] = {
    {"dynamic", Transform::Dynamic}, {"dynamic-named", Transform::DynamicNamed}, {"constant", Transform::Constant}};

std::set<std::string> initializersOf(const onnx::GraphProto &graph) {
  std::set<std::string> constants;
  for (const auto &tensor : graph.initializer())
    constants.insert(tensor.name());
  for (const auto &tensor : graph.sparse_initializer())
    constants.insert(tensor.values().name());
  return constants;
}

//===--- Dynamic
//---------------------------------------------------------------------===//

class DimEraser {
public:
  explicit DimEraser(bool named) : named(named) {}

  void erase(onnx::GraphProto &graph) {
    std::set<std::string> constants = initializersOf(graph);
    for (auto &input : *graph.mutable_input())
      if (!constants.count(input.name()))
        erase(*input.mutable_type());
    for (auto *values : {graph.mutable_output(), graph.mutable_value_info()})
      for (auto &value : *values)
        erase(*value.mutable_type());
    for (auto &node : *graph.mutable_node())
      for (auto &attribute : *node.mutable_attribute()) {
        if (attribute.has_g())
          erase(*attribute.mutable_g());
        for (auto &body : *attribute.mutable_graphs())
          erase(body);
      }
  }

private:
  void erase(onnx::TypeProto &type) {
    if (type.has_sequence_type())
      return erase(*type.mutable_sequence_type()->mutable_elem_type());
    if (type.has_optional_type())
      return erase(*type.mutable_optional_type()->mutable_elem_type());
    if (!type.has_tensor_type() || !type.tensor_type().has_shape())
      return;
    for (auto &dim : *type.mutable_tensor_type()->mutable_shape()->mutable_dim()) {
      dim.Clear();
      if (named)
        dim.set_dim_param("dim" + std::to_string(count++));
    }
  }

  bool named;
  int64_t count = 0;
};

//===--- Constant
//---------------------------------------------------------------------===//

onnx::TensorProto protoOf(const Tensor &tensor, int32_t type, const std::string &name) {
  onnx::TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(type);
  for (int64_t dim : tensor.shape())
    proto.add_dims(dim);
  proto.set_raw_data(tensor.data(), tensor.byteSize());
  return proto;
}

template <typename Message> bool parseFile(const std::string &path, Message &message) {
  std::ifstream file(path, std::ios::binary);
  return file && message.ParseFromIstream(&file);
}

/// Adds what computes the values of sequences and optionals in front of a graph's nodes.
class ValueBuilder {
public:
  explicit ValueBuilder(onnx::GraphProto &graph) : graph(graph) {}
  ~ValueBuilder() {
    for (const auto &node : graph.node())
      *nodes.Add() = node;
    graph.mutable_node()->Swap(&nodes);
  }

  void tensor(onnx::TensorProto proto, const std::string &name) {
    proto.set_name(name);
    *graph.add_initializer() = std::move(proto);
  }
  bool sequence(const onnx::SequenceProto &proto, const onnx::TypeProto &type, const std::string &name) {
    if (proto.sequence_values_size() || proto.map_values_size() || proto.optional_values_size())
      return false;
    if (!proto.tensor_values_size()) {
      add("SequenceEmpty", {}, name)->set_i(type.sequence_type().elem_type().tensor_type().elem_type());
      return true;
    }
    std::vector<std::string> items;
    for (const auto &item : proto.tensor_values()) {
      items.push_back(name + "/" + std::to_string(items.size()));
      tensor(item, items.back());
    }
    add("SequenceConstruct", items, name);
    return true;
  }
  bool optional(const onnx::OptionalProto &proto, const onnx::TypeProto &type, const std::string &name) {
    if (proto.has_tensor_value())
      tensor(proto.tensor_value(), name + "/value");
    else if (proto.has_sequence_value()) {
      if (!sequence(proto.sequence_value(), type.optional_type().elem_type(), name + "/value"))
        return false;
    } else {
      onnx::AttributeProto *attribute = add("Optional", {}, name);
      attribute->set_type(onnx::AttributeProto::TYPE_PROTO);
      *attribute->mutable_tp() = type.optional_type().elem_type();
      attribute->clear_i();
      return true;
    }
    add("Optional", {name + "/value"}, name);
    return true;
  }

private:
  /// The node has one attribute when it has no operands: the element type.
  onnx::AttributeProto *add(const char *op, const std::vector<std::string> &operands, const std::string &result) {
    onnx::NodeProto &node = *nodes.Add();
    node.set_op_type(op);
    node.add_output(result);
    for (const std::string &operand : operands)
      node.add_input(operand);
    if (!operands.empty())
      return nullptr;
    onnx::AttributeProto *attribute = node.add_attribute();
    attribute->set_name(std::string_view(op) == "Optional" ? "type" : "dtype");
    attribute->set_type(onnx::AttributeProto::INT);
    return attribute;
  }

  onnx::GraphProto &graph;
  google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
};

Status addContainer(ValueBuilder &builder, const onnx::ValueInfoProto &input, const std::string &path) {
  bool done = false;
  if (input.type().has_sequence_type()) {
    onnx::SequenceProto proto;
    done = parseFile(path, proto) && builder.sequence(proto, input.type(), input.name());
  } else if (input.type().has_optional_type()) {
    onnx::OptionalProto proto;
    done = parseFile(path, proto) && builder.optional(proto, input.type(), input.name());
  }
  if (done)
    return Status::ok();
  return Error{ErrorKind::IO, "'" + path + "' has no value for the input '" + input.name() + "'"};
}

} // namespace

bool transformFromName(std::string_view name, Transform &transform) {
  for (auto [known, kind] : names)
    if (known == name) {
      transform = kind;
      return true;
    }
  return false;
}

void makeDynamic(onnx::ModelProto &model, bool named) { DimEraser(named).erase(*model.mutable_graph()); }

Status makeConstant(onnx::ModelProto &model, const std::string &dataSet) {
  onnx::GraphProto &graph = *model.mutable_graph();
  std::set<std::string> constants = initializersOf(graph);
  std::vector<onnx::ValueInfoProto> inputs;
  std::vector<tools::WantedTensor> wanted;
  bool tensorsOnly = true;
  for (const auto &input : graph.input())
    if (!constants.count(input.name())) {
      inputs.push_back(input);
      tensorsOnly &= input.type().has_tensor_type();
      wanted.push_back(
          {input.name(), tools::dtypeFromOnnxCode(input.type().tensor_type().elem_type()).value_or(DType::F32)});
    }
  graph.clear_input();
  ValueBuilder builder(graph);
  if (!tensorsOnly) { // by position: the files of containers carry no names
    for (size_t i = 0; i < inputs.size(); ++i) {
      std::string path = dataSet + "/input_" + std::to_string(i) + ".pb";
      onnx::TensorProto tensor;
      if (inputs[i].type().has_tensor_type() && parseFile(path, tensor))
        builder.tensor(std::move(tensor), inputs[i].name());
      else if (Status added = addContainer(builder, inputs[i], path); !added)
        return added;
    }
    return Status::ok();
  }
  if (inputs.empty())
    return Status::ok();
  Result<std::vector<Tensor>> tensors = tools::readTensorDirectory(dataSet, tools::TensorRole::Input, wanted);
  if (!tensors)
    return tensors.takeError();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if ((*tensors)[i].empty())
      return Error{ErrorKind::IO, "'" + dataSet + "' has no value for the input '" + inputs[i].name() + "'"};
    // The type is the model's: ONNX 1.12 wrote some data under another one of the same width.
    builder.tensor(protoOf((*tensors)[i], inputs[i].type().tensor_type().elem_type(), inputs[i].name()),
                   inputs[i].name());
  }
  return Status::ok();
}

Status transformFile(const std::string &source, Transform transform, const std::string &dataSet,
                     const std::string &path) {
  onnx::ModelProto model;
  if (!parseFile(source, model))
    return Error{ErrorKind::IO, "cannot read '" + source + "'"};
  if (transform == Transform::Constant) {
    if (Status made = makeConstant(model, dataSet); !made)
      return made;
  } else {
    makeDynamic(model, transform == Transform::DynamicNamed);
  }
  std::ofstream file(path, std::ios::binary);
  if (!file || !model.SerializeToOstream(&file))
    return Error{ErrorKind::IO, "cannot write '" + path + "'"};
  return Status::ok();
}

} // namespace dmxc::conformance
