//===- ModelMutator.cpp - other models from a model -----------------------===//
#include "ModelMutator.h"

#include "onnx/OpTable.h"

#include <climits>
#include <iterator>

namespace dmxfuzz {
namespace {

int below(int64_t count, Random &random) { return static_cast<int>(random() % static_cast<uint64_t>(count)); }

/// A random element of a repeated field that is not empty.
template <typename Field> auto *pick(Field &field, Random &random) {
  return field.Mutable(below(field.size(), random));
}

void changeShape(onnx::TensorShapeProto &shape, Random &random) {
  if (shape.dim_size() == 0 || random() % 4 == 0) {
    shape.add_dim()->set_dim_value(oddNumber(random));
    return;
  }
  switch (auto &dim = *pick(*shape.mutable_dim(), random); random() % 4) {
  case 0:
    dim.set_dim_param(random() % 2 ? "n" : "m");
    break;
  case 1:
    dim.clear_value();
    break;
  case 2:
    shape.mutable_dim()->RemoveLast();
    break;
  default:
    dim.set_dim_value(oddNumber(random));
  }
}

void changeType(onnx::ValueInfoProto &info, Random &random) {
  auto &tensor = *info.mutable_type()->mutable_tensor_type();
  if (random() % 3 == 0)
    tensor.set_elem_type(below(28, random));
  else if (random() % 16 == 0)
    tensor.clear_shape();
  else
    changeShape(*tensor.mutable_shape(), random);
}

void changeInts(onnx::AttributeProto &attribute, Random &random) {
  if (attribute.ints_size() && random() % 3)
    attribute.set_ints(below(attribute.ints_size(), random), oddNumber(random));
  else if (attribute.ints_size() && random() % 2)
    attribute.mutable_ints()->RemoveLast();
  else
    attribute.add_ints(oddNumber(random));
}

void changeModelGraph(onnx::GraphProto &graph, Random &random);

void changeAttribute(onnx::AttributeProto &attribute, Random &random) {
  static const char *const words[] = {"",       "linear",        "cubic",    "nearest",    "reflect",
                                      "edge",   "wrap",          "constant", "SAME_UPPER", "VALID",
                                      "NOTSET", "bidirectional", "reverse",  "Tanh",       "DCR",
                                      "CRD",    "mean",          "none",     "ij,jk->ik",  "asymmetric"};
  switch (random() % 8) {
  case 0:
    attribute.set_i(oddNumber(random));
    break;
  case 1:
    attribute.set_f(static_cast<float>(oddNumber(random)) / 3);
    break;
  case 2:
    attribute.set_s(words[random() % std::size(words)]);
    break;
  case 3:
    attribute.set_type(static_cast<onnx::AttributeProto::AttributeType>(1 + random() % 14));
    break;
  case 4:
    if (attribute.floats_size())
      attribute.set_floats(below(attribute.floats_size(), random), static_cast<float>(oddNumber(random)));
    else
      attribute.add_floats(static_cast<float>(oddNumber(random)));
    break;
  case 5:
    if (attribute.has_t())
      return changeTensor(*attribute.mutable_t(), random);
    if (attribute.has_g())
      return changeModelGraph(*attribute.mutable_g(), random);
    [[fallthrough]];
  default:
    changeInts(attribute, random);
  }
}

/// Gives a node an attribute that its operator has, or another operator.
void changeOperator(onnx::NodeProto &node, Random &random) {
  const auto &rows = dmxc::onnxfe::OpTable::get().rows();
  if (random() % 2) {
    const dmxc::onnxfe::OpRow &row = rows[random() % rows.size()];
    node.set_op_type(row.name);
    node.set_domain(row.domain);
    return;
  }
  for (const dmxc::onnxfe::OpRow &row : rows) {
    std::string list = row.attributes;
    if (node.op_type() != row.name || list.empty() || random() % 2)
      continue;
    size_t start = list.rfind(',', random() % list.size()) + 1; // npos + 1 = 0
    auto &attribute = *node.add_attribute();
    attribute.set_name(list.substr(start, list.find(',', start) - start));
    static constexpr int types[] = {onnx::AttributeProto::INT, onnx::AttributeProto::FLOAT,
                                    onnx::AttributeProto::STRING, onnx::AttributeProto::INTS,
                                    onnx::AttributeProto::FLOATS};
    attribute.set_type(static_cast<onnx::AttributeProto::AttributeType>(types[random() % std::size(types)]));
    return changeAttribute(attribute, random);
  }
}

std::string someName(const onnx::GraphProto &graph, Random &random) {
  if (graph.node_size() && random() % 3 == 0) {
    const auto &node = graph.node(below(graph.node_size(), random));
    return node.output_size() ? node.output(0) : "";
  }
  if (graph.initializer_size() && random() % 3 == 0)
    return graph.initializer(below(graph.initializer_size(), random)).name();
  return graph.input_size() && random() % 4 ? graph.input(below(graph.input_size(), random)).name() : "";
}

void changeNode(onnx::NodeProto &node, const onnx::GraphProto &graph, Random &random) {
  switch (random() % 8) {
  case 0:
    if (node.input_size())
      node.set_input(below(node.input_size(), random), someName(graph, random));
    break;
  case 1:
    if (node.input_size() && random() % 2)
      node.mutable_input()->RemoveLast();
    else
      node.add_input(someName(graph, random));
    break;
  case 2:
    if (node.attribute_size())
      node.mutable_attribute()->DeleteSubrange(below(node.attribute_size(), random), 1);
    break;
  case 3:
    changeOperator(node, random);
    break;
  case 4:
    if (node.output_size() && random() % 2)
      node.mutable_output()->RemoveLast();
    else
      node.add_output("extra" + std::to_string(random() % 4));
    break;
  default:
    if (node.attribute_size())
      changeAttribute(*pick(*node.mutable_attribute(), random), random);
  }
}

/// An input becomes a constant with odd numbers, so that shape operands are known.
void freezeInput(onnx::GraphProto &graph, Random &random) {
  if (graph.input_size() == 0)
    return;
  const auto &input = graph.input(below(graph.input_size(), random));
  const auto &type = input.type().tensor_type();
  int64_t count = 1;
  for (const auto &dim : type.shape().dim())
    count = dim.dim_value() > 0 && dim.dim_value() < 64 ? count * dim.dim_value() : 0;
  if (count == 0 || count > 64 || (type.elem_type() != 7 && type.elem_type() != 1))
    return;
  onnx::TensorProto &tensor = *graph.add_initializer();
  tensor.set_name(input.name());
  tensor.set_data_type(type.elem_type());
  for (const auto &dim : type.shape().dim())
    tensor.add_dims(dim.dim_value());
  for (int64_t k = 0; k < count; ++k)
    type.elem_type() == 7 ? tensor.add_int64_data(oddNumber(random))
                          : tensor.add_float_data(static_cast<float>(oddNumber(random)));
}

void changeModelGraph(onnx::GraphProto &graph, Random &random) {
  switch (random() % 8) {
  case 0:
    if (graph.input_size())
      return changeType(*pick(*graph.mutable_input(), random), random);
    break;
  case 1:
    if (graph.output_size())
      return changeType(*pick(*graph.mutable_output(), random), random);
    break;
  case 2:
    if (graph.initializer_size())
      return changeTensor(*pick(*graph.mutable_initializer(), random), random);
    break;
  case 3:
    return freezeInput(graph, random);
  case 4: // a computed value becomes the result
    if (graph.output_size() && graph.node_size() && random() % 4 == 0)
      return graph.mutable_output(0)->set_name(someName(graph, random));
    break;
  default:
    break;
  }
  if (graph.node_size())
    changeNode(*pick(*graph.mutable_node(), random), graph, random);
}

/// The field of `tensor` that holds its values gets as many as its dims ask for, where that is not much.
void fitData(onnx::TensorProto &tensor) {
  static const uint8_t bits[] = {0, 32, 8, 8, 16, 16, 32, 64, 0, 8, 16, 64, 32, 64, 0, 0, 16, 8, 8, 8, 8, 4, 4, 4};
  int64_t count = 1;
  for (int64_t dim : tensor.dims())
    count = dim < 0 || dim > 4096 || count > 4096 ? 4097 : count * dim;
  size_t type = static_cast<size_t>(tensor.data_type());
  if (count > 4096 || type >= std::size(bits))
    return;
  if (tensor.has_raw_data() || bits[type] < 32)
    tensor.mutable_raw_data()->resize((static_cast<size_t>(count) * bits[type] + 7) / 8, '\1');
  else if (type == 1)
    tensor.mutable_float_data()->Resize(static_cast<int>(count), 1);
  else if (type == 7)
    tensor.mutable_int64_data()->Resize(static_cast<int>(count), 1);
}

} // namespace

void changeTensor(onnx::TensorProto &tensor, Random &random) {
  switch (random() % 8) {
  case 0:
    tensor.set_data_type(below(28, random));
    break;
  case 1:
    for (int64_t &value : *tensor.mutable_int64_data())
      value = oddNumber(random);
    break;
  case 2: // other numbers in the same bytes
    if (tensor.raw_data().size() >= 8) {
      int64_t value = oddNumber(random);
      tensor.mutable_raw_data()->replace(random() % (tensor.raw_data().size() / 8) * 8, 8,
                                         reinterpret_cast<char *>(&value), 8);
    }
    break;
  case 3:
    tensor.add_dims(oddNumber(random));
    break;
  case 4:
    if (tensor.dims_size())
      tensor.set_dims(below(tensor.dims_size(), random), oddNumber(random));
    break;
  case 5:
    if (tensor.dims_size())
      tensor.mutable_dims()->RemoveLast();
    break;
  case 6:
    tensor.mutable_raw_data()->resize(random() % 600, '\1');
    break;
  default: {
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    static const char *const entries[][2] = {{"location", "weights.bin"},
                                             {"location", "../weights.bin"},
                                             {"offset", "8"},
                                             {"length", "64"},
                                             {"offset", "18446744073709551615"},
                                             {"length", "-1"}};
    auto [key, value] = entries[random() % std::size(entries)];
    auto &entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
  }
  if (random() % 2)
    fitData(tensor);
}

void changeModel(onnx::ModelProto &model, Random &random) {
  if (random() % 32 == 0 && model.opset_import_size())
    model.mutable_opset_import(0)->set_version(below(30, random));
  else if (model.functions_size() && random() % 4 == 0) {
    auto &function = *pick(*model.mutable_functions(), random);
    if (function.node_size())
      changeNode(*pick(*function.mutable_node(), random), model.graph(), random);
  } else
    changeModelGraph(*model.mutable_graph(), random);
}

void joinModels(onnx::ModelProto &model, const onnx::ModelProto &other, Random &random) {
  const onnx::GraphProto &from = other.graph();
  onnx::GraphProto &to = *model.mutable_graph();
  for (const auto &node : from.node())
    if (random() % 4)
      *to.add_node() = node;
  for (const auto &input : from.input())
    if (random() % 8)
      *to.add_input() = input;
  for (const auto &tensor : from.initializer())
    *to.add_initializer() = tensor;
  for (const auto &output : from.output())
    if (random() % 2)
      *to.add_output() = output;
  for (const auto &function : other.functions())
    *model.add_functions() = function;
  // What the first model computes becomes what the second reads.
  if (to.node_size() > 1)
    changeNode(*pick(*to.mutable_node(), random), to, random);
}

} // namespace dmxfuzz
