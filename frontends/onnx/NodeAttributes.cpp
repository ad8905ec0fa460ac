//===- NodeAttributes.cpp - attributes of a node --------------------------===//
#include "NodeAttributes.h"

namespace dmxc::onnxfe {
namespace {

/// What an attribute is; of one without a type, what it has.
onnx::AttributeProto::AttributeType typeOf(const onnx::AttributeProto &proto) {
  using Proto = onnx::AttributeProto;
  if (proto.has_type() && proto.type() != Proto::UNDEFINED)
    return proto.type();
  return proto.has_i()               ? Proto::INT
         : proto.has_f()             ? Proto::FLOAT
         : proto.has_s()             ? Proto::STRING
         : proto.ints_size()         ? Proto::INTS
         : proto.floats_size()       ? Proto::FLOATS
         : proto.strings_size()      ? Proto::STRINGS
         : proto.has_t()             ? Proto::TENSOR
         : proto.has_g()             ? Proto::GRAPH
         : proto.has_sparse_tensor() ? Proto::SPARSE_TENSOR
                                     : Proto::UNDEFINED;
}

template <typename T, typename Field> std::vector<T> listOf(const Field &field) {
  return std::vector<T>(field.begin(), field.end());
}

} // namespace

NodeAttribute attributeOf(const onnx::AttributeProto &proto) {
  switch (typeOf(proto)) {
  case onnx::AttributeProto::UNDEFINED:
    return std::monostate();
  case onnx::AttributeProto::INT:
    return proto.i();
  case onnx::AttributeProto::FLOAT:
    return static_cast<double>(proto.f());
  case onnx::AttributeProto::STRING:
    return proto.s();
  case onnx::AttributeProto::INTS:
    return listOf<int64_t>(proto.ints());
  case onnx::AttributeProto::FLOATS:
    return listOf<double>(proto.floats());
  case onnx::AttributeProto::STRINGS:
    return listOf<std::string>(proto.strings());
  case onnx::AttributeProto::TENSOR:
    return &proto.t();
  case onnx::AttributeProto::GRAPH:
    return &proto.g();
  case onnx::AttributeProto::SPARSE_TENSOR:
    return &proto.sparse_tensor();
  case onnx::AttributeProto::TYPE_PROTO:
    return TypeAttribute();
  default:
    return OtherAttribute();
  }
}

std::optional<AttributeKind> kindOf(const NodeAttribute &attribute) {
  using Kind = AttributeKind;
  constexpr std::optional<Kind> kinds[] = {std::nullopt, Kind::Int,     Kind::Float,  Kind::String, Kind::Ints,
                                           Kind::Floats, Kind::Strings, Kind::Tensor, Kind::Tensor, Kind::SparseTensor,
                                           Kind::Graph,  Kind::Type,    std::nullopt};
  static_assert(std::size(kinds) == std::variant_size_v<NodeAttribute>);
  return kinds[attribute.index()];
}

NodeAttribute attributeOf(const frontend::OperatorAttribute &attribute) {
  if (const auto *number = std::get_if<double>(&attribute))
    return static_cast<double>(static_cast<float>(*number));
  if (const auto *numbers = std::get_if<std::vector<double>>(&attribute)) {
    std::vector<double> rounded = *numbers;
    for (double &number : rounded)
      number = static_cast<float>(number);
    return rounded;
  }
  return std::visit([](const auto &value) -> NodeAttribute { return value; }, attribute);
}

} // namespace dmxc::onnxfe
