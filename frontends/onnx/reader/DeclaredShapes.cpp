//===- DeclaredShapes.cpp - shapes that the model states ----------------===//
#include "DeclaredShapes.h"

#include <set>

namespace dmxc::onnxfe {
namespace {

void declare(DeclaredShapes &shapes, const onnx::ValueInfoProto &info) {
  if (!info.type().has_tensor_type() || !info.type().tensor_type().has_shape())
    return;
  Shape shape;
  for (const auto &dim : info.type().tensor_type().shape().dim()) {
    if (!dim.has_dim_value() || dim.dim_value() < 0)
      return;
    shape.push_back(dim.dim_value());
  }
  shapes.emplace(info.name(), std::move(shape));
}

/// Operators whose first result has the shape of their first operand.
bool keepsShape(const onnx::NodeProto &node) {
  static const std::set<std::string> ops = {"Abs",       "Neg",      "Exp",     "Log",      "Sqrt",        "Reciprocal",
                                            "Cast",      "Identity", "Floor",   "Ceil",     "Sin",         "Cos",
                                            "Tan",       "Tanh",     "Sigmoid", "Relu",     "Not",         "Sign",
                                            "Erf",       "Round",    "IsNaN",   "IsInf",    "Softmax",     "LogSoftmax",
                                            "LeakyRelu", "Elu",      "Clip",    "CastLike", "HardSigmoid", "Softplus"};
  return node.domain().empty() && ops.count(node.op_type()) && node.input_size() > 0 && node.output_size() > 0;
}

/// Operators whose two operands broadcast.
bool isBinary(const onnx::NodeProto &node) {
  static const std::set<std::string> ops = {"Add", "Sub", "Mul",  "Div",     "Pow",   "And",
                                            "Or",  "Xor", "Less", "Greater", "Equal", "Mod"};
  return node.domain().empty() && ops.count(node.op_type()) && node.input_size() == 2 && node.output_size() == 1;
}

bool isNumber(const onnx::NodeProto &node) {
  if (node.op_type() == "Constant")
    for (const auto &attribute : node.attribute())
      if (attribute.name() == "value_float" || attribute.name() == "value_int" ||
          (attribute.name() == "value" && attribute.t().dims_size() == 0))
        return true;
  return false;
}

/// Values that have one shape, whatever it is, each by the name of the first of them; numbers (rank 0) have the name
/// "".
class SameShapes {
public:
  explicit SameShapes(const onnx::GraphProto &graph) {
    for (const auto &input : graph.input())
      if (input.type().has_tensor_type() && input.type().tensor_type().has_shape() &&
          input.type().tensor_type().shape().dim_size() == 0)
        first[input.name()] = "";
    for (const auto &tensor : graph.initializer())
      if (tensor.dims_size() == 0)
        first[tensor.name()] = "";
    for (const auto &node : graph.node()) // out of order, a value is only not found
      add(node);
  }
  const std::string &of(const std::string &value) const {
    auto found = first.find(value);
    return found == first.end() ? value : found->second;
  }
  const std::map<std::string, std::string> &all() const { return first; }

private:
  void add(const onnx::NodeProto &node) {
    if (isNumber(node) && node.output_size() == 1) {
      first[node.output(0)] = "";
    } else if (keepsShape(node) && !node.input(0).empty()) {
      first[node.output(0)] = std::string(of(node.input(0)));
    } else if (isBinary(node)) {
      std::string a = of(node.input(0)), b = of(node.input(1));
      if (a.empty() || b.empty() || a == b)
        first[node.output(0)] = a.empty() ? b : a;
    }
  }
  std::map<std::string, std::string> first;
};

/// Adds what follows from `declared` for the values that have the shape of a declared one.
template <typename T> void spread(const onnx::GraphProto &graph, std::map<std::string, T> &declared) {
  SameShapes same(graph);
  std::map<std::string, T> known;
  for (const auto &[name, value] : declared)
    if (const std::string &first = same.of(name); !first.empty())
      known.emplace(first, value);
  for (const auto &[first, value] : known)
    declared.emplace(first, value);
  for (const auto &[name, first] : same.all())
    if (auto found = known.find(first); found != known.end())
      declared.emplace(name, found->second);
}

} // namespace

DeclaredShapes declaredShapes(const onnx::GraphProto &graph) {
  DeclaredShapes shapes;
  for (const auto &output : graph.output())
    declare(shapes, output);
  for (const auto &info : graph.value_info())
    declare(shapes, info);
  spread(graph, shapes);
  return shapes;
}

std::map<std::string, int64_t> declaredRanks(const onnx::GraphProto &graph) {
  std::map<std::string, int64_t> ranks;
  auto add = [&](const auto &infos) {
    for (const auto &info : infos)
      if (info.type().has_tensor_type() && info.type().tensor_type().has_shape())
        ranks.emplace(info.name(), info.type().tensor_type().shape().dim_size());
  };
  add(graph.output());
  add(graph.value_info());
  spread(graph, ranks);
  return ranks;
}

} // namespace dmxc::onnxfe
