//===- ContainerTest.cpp - sequences and optionals as inputs and outputs ------===//
#include "ModelBuilder.h"

#include <gtest/gtest.h>

using namespace dmxc;
using namespace dmxc::test;

namespace {

onnx::TypeProto tensorType() {
  onnx::TypeProto type;
  type.mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  return type;
}
onnx::TypeProto sequenceType() {
  onnx::TypeProto type;
  *type.mutable_sequence_type()->mutable_elem_type() = tensorType();
  return type;
}
onnx::TypeProto optionalType(const onnx::TypeProto &of) {
  onnx::TypeProto type;
  *type.mutable_optional_type()->mutable_elem_type() = of;
  return type;
}

void addInput(ModelBuilder &b, const std::string &name, const onnx::TypeProto &type) {
  auto &input = *b.graph().add_input();
  input.set_name(name);
  *input.mutable_type() = type;
}

ImportOptions withShapes(std::map<std::string, std::vector<int64_t>> shapes, std::set<std::string> absent = {}) {
  ImportOptions options;
  options.shapes = std::move(shapes);
  options.absent = std::move(absent);
  return options;
}

/// x (a sequence) -> y: x with a tensor more.
ModelBuilder insertModel() {
  ModelBuilder b;
  addInput(b, "x", sequenceType());
  b.weights("w", {2}, 7);
  b.output("y");
  b.node("SequenceInsert", {"x", "w"}, {"y"}, "insert");
  return b;
}

ModelBuilder hasElementModel(const onnx::TypeProto &type) {
  ModelBuilder b(18);
  addInput(b, "x", type);
  b.output("y").node("OptionalHasElement", {"x"}, {"y"}, "has");
  return b;
}

} // namespace

TEST(Containers, SequencesAreTensorsOfTheirOwn) {
  ImportOptions options = withShapes({{"x.0", {3}}, {"x.1", {1, 2}}});
  Result<std::vector<Tensor>> y =
      evaluate(insertModel(), {floatTensor({3}, {1, 2, 3}), floatTensor({1, 2}, {4, 5})}, options);
  ASSERT_TRUE(bool(y)) << y.error().message;
  ASSERT_EQ(y->size(), 3u);
  EXPECT_EQ(numbersOf((*y)[0]), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ((*y)[1].shape(), (Shape{1, 2}));
  EXPECT_EQ(numbersOf((*y)[2]), (std::vector<double>{7, 7}));
}

TEST(Containers, SequencesMayBeEmpty) {
  Result<std::vector<Tensor>> y = evaluate(insertModel(), {}, withShapes({}, {"x"}));
  ASSERT_TRUE(bool(y)) << y.error().message;
  ASSERT_EQ(y->size(), 1u);
}

TEST(Containers, HowManyTensorsThereAreMustBeKnown) {
  Result<std::vector<Tensor>> refused = evaluate(insertModel(), {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("--shape x.0=DIMS"), std::string::npos) << refused.error().message;
  refused = evaluate(insertModel(), {}, withShapes({{"x.0", {3}}}, {"other"}));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("--shape other=none"), std::string::npos) << refused.error().message;
}

TEST(Containers, OptionalsHaveAValueOrNone) {
  for (bool present : {true, false}) {
    ImportOptions options = present ? withShapes({{"x", {2}}}) : withShapes({}, {"x"});
    std::vector<Tensor> inputs;
    if (present)
      inputs.push_back(floatTensor({2}, {1, 2}));
    Result<std::vector<Tensor>> y = evaluate(hasElementModel(optionalType(tensorType())), inputs, options);
    ASSERT_TRUE(bool(y)) << y.error().message;
    EXPECT_EQ(y->front().asInt(0), present);
  }
  Result<std::vector<Tensor>> y =
      evaluate(hasElementModel(optionalType(sequenceType())), {floatTensor({2}, {1, 2})}, withShapes({{"x.0", {2}}}));
  ASSERT_TRUE(bool(y)) << y.error().message;
  EXPECT_EQ(y->front().asInt(0), 1);
  Result<std::vector<Tensor>> refused = evaluate(hasElementModel(optionalType(tensorType())), {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("whether it has a value is not known"), std::string::npos)
      << refused.error().message;
}

TEST(Containers, AnOptionalWithoutAValueGivesNone) {
  ModelBuilder b(18);
  addInput(b, "x", optionalType(tensorType()));
  b.output("y").node("OptionalGetElement", {"x"}, {"y"}, "get");
  Result<std::vector<Tensor>> y = evaluate(b, {floatTensor({2}, {1, 2})}, withShapes({{"x", {2}}}));
  ASSERT_TRUE(bool(y)) << y.error().message;
  EXPECT_EQ(numbersOf(y->front()), (std::vector<double>{1, 2}));
  Result<std::vector<Tensor>> refused = evaluate(b, {}, withShapes({}, {"x"}));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("the optional has no value"), std::string::npos) << refused.error().message;
}

TEST(Containers, ATensorIsNoPlaceForThem) {
  ModelBuilder b;
  addInput(b, "x", sequenceType());
  b.output("y").node("Relu", {"x"}, {"y"}, "relu");
  Result<std::vector<Tensor>> refused = evaluate(b, {}, withShapes({{"x.0", {2}}}));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("operand 0 is a sequence of 1; expected a tensor"), std::string::npos)
      << refused.error().message;
}

TEST(Containers, NamesMustNotMeet) {
  ModelBuilder b = insertModel();
  b.input("x.0", "2");
  Result<std::vector<Tensor>> refused = evaluate(b, {}, withShapes({{"x.0", {2}}}));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("the name 'x.0' stands for two inputs"), std::string::npos)
      << refused.error().message;
}
