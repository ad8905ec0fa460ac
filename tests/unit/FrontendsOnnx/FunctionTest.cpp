//===- FunctionTest.cpp - functions that a model brings along ---------------===//
#include "ModelBuilder.h"

#include <gtest/gtest.h>

using namespace dmxc;
using namespace dmxc::test;

namespace {

// Fields that the ONNX library of this system does not know yet.
constexpr int kNodeOverload = 8, kFunctionAttributeProto = 11, kFunctionOverload = 13;

void addUnknown(google::protobuf::Message &message, int field, const std::string &bytes) {
  message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(field, bytes);
}

onnx::FunctionProto &addFunction(ModelBuilder &b, const std::string &name, int inputs = 1) {
  onnx::FunctionProto &function = *b.model.add_functions();
  function.set_name(name);
  function.set_domain("local");
  for (int i = 0; i < inputs; ++i)
    function.add_input("a" + std::to_string(i));
  function.add_output("r");
  function.add_opset_import()->set_version(17);
  auto &own = *function.add_opset_import();
  own.set_domain("local");
  own.set_version(1);
  return function;
}

onnx::NodeProto &addNode(onnx::FunctionProto &function, const std::string &op, const std::vector<std::string> &inputs,
                         const std::string &output, const std::string &domain = "") {
  onnx::NodeProto &node = *function.add_node();
  node.set_op_type(op);
  node.set_domain(domain);
  for (const std::string &input : inputs)
    node.add_input(input);
  node.add_output(output);
  return node;
}

void addReference(onnx::NodeProto &node, const std::string &name, const std::string &from) {
  ModelBuilder::attribute(node, name, onnx::AttributeProto::FLOAT).set_ref_attr_name(from);
}

/// x [2] -> y by one call.
ModelBuilder callOf(const std::string &op) {
  ModelBuilder b;
  b.domain("local", 1).input("x", "2").output("y");
  b.node(op, {"x"}, {"y"}, "call").set_domain("local");
  return b;
}

onnx::NodeProto &call(ModelBuilder &b) { return *b.graph().mutable_node(0); }

std::vector<double> resultOf(const ModelBuilder &b) {
  Result<std::vector<Tensor>> results = evaluate(b, {floatTensor({2}, {-4, 8})});
  EXPECT_TRUE(bool(results)) << results.error().message;
  return results ? numbersOf(results->front()) : std::vector<double>();
}

} // namespace

TEST(Functions, CallFunctionsAndPassTheirAttributesOn) {
  ModelBuilder b = callOf("Outer");
  auto &outer = addFunction(b, "Outer");
  outer.add_attribute("slope");
  addReference(addNode(outer, "Inner", {"a0"}, "t", "local"), "alpha", "slope");
  addNode(outer, "Add", {"t", "a0"}, "r");
  auto &inner = addFunction(b, "Inner");
  inner.add_attribute("alpha");
  addReference(addNode(inner, "LeakyRelu", {"a0"}, "r"), "alpha", "alpha");
  ModelBuilder::setFloat(call(b), "slope", 0.25F);
  EXPECT_EQ(resultOf(b), (std::vector<double>{-5, 16}));
}

TEST(Functions, AttributesThatCallersLeaveOutHaveDefaults) {
  ModelBuilder b = callOf("Leaky");
  auto &function = addFunction(b, "Leaky");
  addReference(addNode(function, "LeakyRelu", {"a0"}, "r"), "alpha", "slope");
  onnx::AttributeProto slope;
  slope.set_name("slope");
  slope.set_type(onnx::AttributeProto::FLOAT);
  slope.set_f(0.5F);
  addUnknown(function, kFunctionAttributeProto, slope.SerializeAsString());
  EXPECT_EQ(resultOf(b), (std::vector<double>{-2, 8}));
  ModelBuilder::setFloat(call(b), "slope", 0.25F);
  EXPECT_EQ(resultOf(b), (std::vector<double>{-1, 8}));
}

TEST(Functions, ReferencesWithoutAValueLeaveTheOperatorsDefault) {
  ModelBuilder b = callOf("Leaky");
  auto &function = addFunction(b, "Leaky");
  function.add_attribute("slope");
  addReference(addNode(function, "LeakyRelu", {"a0"}, "r"), "alpha", "slope");
  std::vector<double> result = resultOf(b);
  ASSERT_EQ(result.size(), 2u);
  EXPECT_FLOAT_EQ(static_cast<float>(result[0]), -0.04F); // alpha is 0.01
}

TEST(Functions, AreChosenByTheirOverload) {
  ModelBuilder b = callOf("F");
  addNode(addFunction(b, "F"), "Neg", {"a0"}, "r");
  auto &other = addFunction(b, "F");
  addUnknown(other, kFunctionOverload, "twice");
  addNode(other, "Add", {"a0", "a0"}, "r");
  EXPECT_EQ(resultOf(b), (std::vector<double>{4, -8}));
  addUnknown(call(b), kNodeOverload, "twice");
  EXPECT_EQ(resultOf(b), (std::vector<double>{-8, 16}));
  ModelBuilder missing = callOf("F");
  addNode(addFunction(missing, "F"), "Neg", {"a0"}, "r");
  addUnknown(call(missing), kNodeOverload, "thrice");
  Result<std::vector<Tensor>> refused = evaluate(missing, {floatTensor({2}, {-4, 8})});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("op-unknown"), std::string::npos) << refused.error().message;
}

TEST(Functions, GiveOperatorsThatAreUnknownAMeaning) {
  // Also of the standard domain: an operator newer than this compiler comes with its body.
  ModelBuilder b;
  b.input("x", "2").output("y");
  b.node("HalfOfIt", {"x"}, {"y"}, "call");
  auto &function = addFunction(b, "HalfOfIt");
  function.set_domain("");
  addNode(function, "Constant", {}, "half");
  ModelBuilder::setFloat(*function.mutable_node(0), "value_float", 0.5F);
  addNode(function, "Mul", {"a0", "half"}, "r");
  EXPECT_EQ(resultOf(b), (std::vector<double>{-2, 4}));
}

TEST(Functions, AttributesReachTheGraphsOfTheirNodes) {
  ModelBuilder b = callOf("F");
  auto &function = addFunction(b, "F");
  function.add_attribute("slope");
  addNode(function, "Constant", {}, "yes");
  auto &value = ModelBuilder::attribute(*function.mutable_node(0), "value", onnx::AttributeProto::TENSOR);
  value.mutable_t()->set_data_type(onnx::TensorProto::BOOL);
  value.mutable_t()->add_int32_data(1);
  onnx::NodeProto &branch = addNode(function, "If", {"yes"}, "r");
  for (const char *name : {"then_branch", "else_branch"}) {
    onnx::GraphProto &body = *ModelBuilder::attribute(branch, name, onnx::AttributeProto::GRAPH).mutable_g();
    body.set_name(name);
    body.add_output()->set_name("inside");
    onnx::NodeProto &node = *body.add_node();
    node.set_op_type("LeakyRelu");
    node.add_input("a0"); // of the function around it
    node.add_output("inside");
    addReference(node, "alpha", "slope");
  }
  ModelBuilder::setFloat(call(b), "slope", 0.75F);
  EXPECT_EQ(resultOf(b), (std::vector<double>{-3, 8}));
}

TEST(Functions, OperandsMayBeLeftOut) {
  ModelBuilder b = callOf("Clamp");
  addNode(addFunction(b, "Clamp", 3), "Clip", {"a0", "a1", "a2"}, "r");
  EXPECT_EQ(resultOf(b), (std::vector<double>{-4, 8}));
  b.weights("limit", {}, 5);
  call(b).add_input("");
  call(b).add_input("limit");
  EXPECT_EQ(resultOf(b), (std::vector<double>{-4, 5}));
}

TEST(Functions, SeeNothingOfTheirCallers) {
  ModelBuilder b = callOf("F");
  addNode(addFunction(b, "F"), "Add", {"a0", "x"}, "r");
  Result<std::vector<Tensor>> refused = evaluate(b, {floatTensor({2}, {-4, 8})});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("the operand 'x' is defined nowhere"), std::string::npos)
      << refused.error().message;
}
