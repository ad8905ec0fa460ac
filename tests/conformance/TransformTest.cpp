//===- TransformTest.cpp - what the transforms leave of a model -----------===//
#include "Transform.h"

#include "dmxc/Tools/TensorFile.h"

#include <gtest/gtest.h>
#include <onnx/onnx-data_pb.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <unistd.h>

using namespace dmxc;
using namespace dmxc::conformance;

namespace {

void declare(onnx::ValueInfoProto &info, const std::string &name, const std::vector<int64_t> &dims) {
  info.set_name(name);
  auto &tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(onnx::TensorProto::FLOAT);
  tensor.mutable_shape(); // also of rank 0
  for (int64_t dim : dims)
    tensor.mutable_shape()->add_dim()->set_dim_value(dim);
}

/// Inputs a [2,3], w [3] (with an initializer), number []; a value m [2]; a subgraph with an output [4]; y [6].
onnx::ModelProto sample() {
  onnx::ModelProto model;
  auto &graph = *model.mutable_graph();
  declare(*graph.add_input(), "a", {2, 3});
  declare(*graph.add_input(), "w", {3});
  declare(*graph.add_input(), "number", {});
  graph.add_initializer()->set_name("w");
  declare(*graph.add_value_info(), "m", {2});
  declare(*graph.add_output(), "y", {6});
  auto &attribute = *graph.add_node()->add_attribute();
  declare(*attribute.mutable_g()->add_output(), "inner", {4});
  return model;
}

const onnx::TensorShapeProto &shapeOf(const onnx::ValueInfoProto &info) { return info.type().tensor_type().shape(); }

struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("dmxc-transform-" + std::to_string(getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  void write(const std::string &name, const google::protobuf::Message &message) const {
    std::ofstream file(path / name, std::ios::binary);
    message.SerializeToOstream(&file);
  }
};

onnx::TensorProto numbers(const std::string &name, const std::vector<float> &values) {
  onnx::TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(onnx::TensorProto::FLOAT);
  proto.add_dims(static_cast<int64_t>(values.size()));
  for (float value : values)
    proto.add_float_data(value);
  return proto;
}

} // namespace

TEST(Transform, DynamicErasesEveryDeclaredDim) {
  onnx::ModelProto model = sample();
  makeDynamic(model, /*named=*/false);
  const auto &graph = model.graph();
  const auto &inner = graph.node(0).attribute(0).g();
  for (const auto *info : {&graph.input(0), &graph.value_info(0), &graph.output(0), &inner.output(0)})
    for (const auto &dim : shapeOf(*info).dim())
      EXPECT_EQ(dim.value_case(), onnx::TensorShapeProto::Dimension::VALUE_NOT_SET) << info->name();
  EXPECT_EQ(shapeOf(graph.input(0)).dim_size(), 2); // the rank stays
  EXPECT_EQ(shapeOf(graph.input(1)).dim(0).dim_value(), 3) << "an input with a value is a constant";
  EXPECT_TRUE(graph.input(2).type().tensor_type().has_shape());
}

TEST(Transform, DynamicNamedGivesEachDimItsOwnName) {
  onnx::ModelProto model = sample();
  makeDynamic(model, /*named=*/true);
  const auto &graph = model.graph();
  std::set<std::string> names;
  size_t count = 0;
  for (const auto *info : {&graph.input(0), &graph.value_info(0), &graph.output(0)})
    for (const auto &dim : shapeOf(*info).dim()) {
      EXPECT_TRUE(dim.has_dim_param());
      names.insert(dim.dim_param());
      ++count;
    }
  EXPECT_EQ(names.size(), count);
  EXPECT_EQ(count, 4u);
}

TEST(Transform, ConstantTakesTheDataSetsValues) {
  onnx::ModelProto model = sample();
  Folder folder;
  folder.write("input_0.pb", numbers("a", {1, 2}));
  folder.write("input_1.pb", numbers("number", {3}));
  Status made = makeConstant(model, folder.path);
  ASSERT_TRUE(made) << made.error().message;
  const auto &graph = model.graph();
  EXPECT_EQ(graph.input_size(), 0);
  ASSERT_EQ(graph.initializer_size(), 3);
  EXPECT_EQ(graph.initializer(1).name(), "a");
  ASSERT_EQ(graph.initializer(1).raw_data().size(), 8u);
  EXPECT_EQ(reinterpret_cast<const float *>(graph.initializer(1).raw_data().data())[1], 2);
  EXPECT_EQ(graph.initializer(2).name(), "number");
}

TEST(Transform, ConstantBuildsSequencesAndOptionals) {
  onnx::ModelProto model;
  auto &graph = *model.mutable_graph();
  graph.add_node()->set_op_type("SequenceLength");
  auto &sequence = *graph.add_input();
  sequence.set_name("s");
  sequence.mutable_type()->mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type()->set_elem_type(1);
  auto &optional = *graph.add_input();
  optional.set_name("o");
  *optional.mutable_type()->mutable_optional_type()->mutable_elem_type() = sequence.type();
  Folder folder;
  onnx::SequenceProto items;
  *items.add_tensor_values() = numbers("", {1});
  *items.add_tensor_values() = numbers("", {2, 3});
  folder.write("input_0.pb", items);
  folder.write("input_1.pb", onnx::OptionalProto()); // without a value
  Status made = makeConstant(model, folder.path);
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_EQ(graph.node_size(), 3);
  EXPECT_EQ(graph.node(0).op_type(), "SequenceConstruct");
  EXPECT_EQ(graph.node(0).input_size(), 2);
  EXPECT_EQ(graph.node(0).output(0), "s");
  EXPECT_EQ(graph.node(1).op_type(), "Optional");
  EXPECT_EQ(graph.node(1).attribute(0).tp().sequence_type().elem_type().tensor_type().elem_type(), 1);
  EXPECT_EQ(graph.node(2).op_type(), "SequenceLength");
  EXPECT_EQ(graph.initializer_size(), 2);
}

TEST(Transform, ConstantSaysWhichValueIsMissing) {
  onnx::ModelProto model = sample();
  Folder folder;
  folder.write("input_0.pb", numbers("a", {1, 2}));
  Status made = makeConstant(model, folder.path);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("'number'"), std::string::npos);
}
