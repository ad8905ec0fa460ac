//===- OnnxBridge.cpp - operators by the ONNX table -----------------------===//
#include "OnnxBridge.h"

#include "frontends/onnx/GraphImporter.h"

namespace dmxc::torchfe {
namespace {

onnx::AttributeProto protoOf(const std::string &name, const OnnxAttribute &value) {
  onnx::AttributeProto proto;
  proto.set_name(name);
  if (const auto *number = std::get_if<int64_t>(&value)) {
    proto.set_type(onnx::AttributeProto::INT);
    proto.set_i(*number);
  } else if (const auto *real = std::get_if<double>(&value)) {
    proto.set_type(onnx::AttributeProto::FLOAT);
    proto.set_f(static_cast<float>(*real));
  } else if (const auto *text = std::get_if<std::string>(&value)) {
    proto.set_type(onnx::AttributeProto::STRING);
    proto.set_s(*text);
  } else if (const auto *list = std::get_if<std::vector<int64_t>>(&value)) {
    proto.set_type(onnx::AttributeProto::INTS);
    for (int64_t number : *list)
      proto.add_ints(number);
  } else if (const auto *reals = std::get_if<std::vector<double>>(&value)) {
    proto.set_type(onnx::AttributeProto::FLOATS);
    for (double real : *reals)
      proto.add_floats(static_cast<float>(real));
  } else if (const auto *tensor = std::get_if<Tensor>(&value)) {
    proto.set_type(onnx::AttributeProto::TENSOR);
    proto.mutable_t()->set_data_type(onnxfe::onnxTypeOf(tensor->dtype()));
    for (int64_t dim : tensor->shape())
      proto.mutable_t()->add_dims(dim);
    auto bytes = tensor->raw();
    proto.mutable_t()->set_raw_data(bytes.data(), bytes.size());
  } else {
    proto.set_type(onnx::AttributeProto::STRINGS);
    for (const std::string &text : std::get<std::vector<std::string>>(value))
      proto.add_strings(text);
  }
  return proto;
}

} // namespace

std::vector<Val> emitOnnx(Emitter &e, const std::string &op, std::vector<Val> operands,
                          const std::map<std::string, OnnxAttribute> &attributes, size_t results, int64_t opset) {
  const onnxfe::OpRow *row = onnxfe::OpTable::get().find("", op, opset);
  if (!row)
    fail("op-unknown", "ONNX has no operator " + op + " in opset " + std::to_string(opset));
  if (!row->import)
    fail("op-unsupported", row->note);
  for (const auto &[name, value] : attributes)
    if (!onnxfe::rowHasAttribute(*row, name))
      fail("op-attribute", "ONNX' " + op + " has no attribute '" + name + "'");
  onnx::NodeProto node;
  node.set_op_type(op);
  for (size_t i = 0; i < operands.size(); ++i)
    node.add_input(operands[i] ? "x" + std::to_string(i) : "");
  for (size_t i = 0; i < results; ++i)
    node.add_output("y" + std::to_string(i));
  std::vector<onnx::AttributeProto> protos;
  for (const auto &[name, value] : attributes)
    protos.push_back(protoOf(name, value));
  std::map<std::string, const onnx::AttributeProto *> byName;
  for (const onnx::AttributeProto &proto : protos)
    byName[proto.name()] = &proto;
  onnx::ModelProto model;
  std::string path;
  Diagnostics unused;
  onnxfe::TensorReader tensors(nullptr, path, path);
  onnxfe::GraphImporter importer(model, path, tensors, e, unused);
  onnxfe::Scope scope = importer.mainScope();
  onnxfe::NodeContext context(node, *row, opset, op, std::move(operands), byName, e, tensors, importer, scope);
  row->import(context);
  context.tieRequirements();
  std::vector<Val> values(results);
  for (size_t i = 0; i < results; ++i)
    if (auto found = context.results().find(static_cast<int>(i)); found != context.results().end())
      values[i] = found->second;
  return values;
}

} // namespace dmxc::torchfe
