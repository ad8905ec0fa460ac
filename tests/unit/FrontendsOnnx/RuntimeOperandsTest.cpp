//===- RuntimeOperandsTest.cpp - operands that the declared shapes imply --===//
#include "ModelBuilder.h"

#include <gtest/gtest.h>

using namespace dmxc;
using namespace dmxc::test;

namespace {

constexpr int kF32 = 1, kI64 = 7;

Tensor floats(Shape shape, std::vector<float> values) {
  Tensor tensor(DType::F32, std::move(shape));
  std::copy(values.begin(), values.end(), tensor.as<float>());
  return tensor;
}
Tensor ints(std::vector<int64_t> values, bool scalar = false) {
  Tensor tensor(DType::I64, scalar ? Shape{} : Shape{static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.as<int64_t>());
  return tensor;
}
/// 0, 1, 2, ...
Tensor counted(Shape shape) {
  Tensor tensor(DType::F32, std::move(shape));
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    tensor.as<float>()[i] = static_cast<float>(i);
  return tensor;
}

/// One node whose result has a declared shape, imported; run with different operands.
class OneNode {
public:
  OneNode(const std::string &op, int64_t opset, const std::vector<std::pair<std::string, int>> &inputs,
          const std::string &declared)
      : builder(opset), node(builder.node(op, {}, {"y"}, "n")) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      std::string name = "i" + std::to_string(i);
      node.add_input(name);
      builder.input(name, inputs[i].first, inputs[i].second);
    }
    ModelBuilder::setType(*builder.graph().add_output(), "y", declared);
  }
  OneNode &attr(const std::string &name, int64_t value) {
    ModelBuilder::setInt(node, name, value);
    return *this;
  }
  OneNode &attr(const std::string &name, const std::string &value) {
    auto &attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::STRING);
    attribute.set_s(value);
    return *this;
  }
  /// The result's numbers, or the error's text where running fails.
  std::pair<std::vector<float>, std::string> operator()(const std::vector<Tensor> &inputs) {
    TempDir dir;
    ImportRun run(optionsFor(dir.write("m.onnx", builder.bytes())));
    if (!run.imported)
      return {{}, "refused: " + run.text()};
    auto function = *run.imported->module->getOps<mlir::func::FuncOp>().begin();
    Result<std::vector<Tensor>> results = reference::evaluateFunction(function, inputs);
    if (!results)
      return {{}, results.error().message};
    std::vector<float> numbers;
    for (int64_t i = 0; i < results->front().numElements(); ++i)
      numbers.push_back(static_cast<float>(results->front().asDouble(i)));
    return {numbers, ""};
  }

private:
  ModelBuilder builder;
  onnx::NodeProto &node;
};

using Numbers = std::vector<float>;

#define EXPECT_GIVES(node, numbers, ...)                                                                               \
  do {                                                                                                                 \
    auto outcome = node({__VA_ARGS__});                                                                                \
    EXPECT_EQ(outcome.second, "");                                                                                     \
    EXPECT_EQ(outcome.first, Numbers numbers);                                                                         \
  } while (0)
/// The run must fail, not give what was declared, and name the node and what it asks for.
#define EXPECT_FAILS(node, ...)                                                                                        \
  do {                                                                                                                 \
    auto outcome = node({__VA_ARGS__});                                                                                \
    EXPECT_NE(outcome.second.find("node 'n: what is known at run time only must be valid"), std::string::npos)         \
        << outcome.second;                                                                                             \
  } while (0)

TEST(RuntimeOperands, ReduceChoosesAmongTheAxesThatFit) {
  OneNode sum("ReduceSum", 13, {{"2,2", kF32}, {"1", kI64}}, "2");
  sum.attr("keepdims", 0);
  EXPECT_GIVES(sum, ({2, 4}), counted({2, 2}), ints({0}));
  EXPECT_GIVES(sum, ({1, 5}), counted({2, 2}), ints({1}));
  EXPECT_GIVES(sum, ({1, 5}), counted({2, 2}), ints({-1}));
  EXPECT_FAILS(sum, counted({2, 2}), ints({2}));
  EXPECT_FAILS(sum, counted({2, 2}), ints({-3}));
  OneNode two("ReduceMax", 18, {{"2,3,2", kF32}, {"2", kI64}}, "1,3,1");
  EXPECT_GIVES(two, ({7, 9, 11}), counted({2, 3, 2}), ints({2, 0}));
  EXPECT_FAILS(two, counted({2, 3, 2}), ints({0, 1})); // would be 1x1x2
  EXPECT_FAILS(two, counted({2, 3, 2}), ints({0, 0}));
}

TEST(RuntimeOperands, AnEmptyOperandIsKnown) {
  OneNode all("ReduceSum", 13, {{"2,2", kF32}, {"0", kI64}}, "1,1");
  EXPECT_GIVES(all, ({6}), counted({2, 2}), ints({}));
}

TEST(RuntimeOperands, ShapesAreHeldToWhatIsDeclared) {
  OneNode reshape("Reshape", 14, {{"2,3", kF32}, {"2", kI64}}, "2,3");
  EXPECT_GIVES(reshape, ({0, 1, 2, 3, 4, 5}), counted({2, 3}), ints({0, -1}));
  EXPECT_FAILS(reshape, counted({2, 3}), ints({3, 2}));
  EXPECT_FAILS(reshape, counted({2, 3}), ints({-1, -1}));
  OneNode expand("Expand", 13, {{"2,1", kF32}, {"2", kI64}}, "2,2");
  EXPECT_GIVES(expand, ({0, 0, 1, 1}), counted({2, 1}), ints({1, 2}));
  EXPECT_FAILS(expand, counted({2, 1}), ints({2, 1}));
  OneNode unsqueeze("Unsqueeze", 13, {{"1,3", kF32}, {"1", kI64}}, "1,3,1");
  EXPECT_GIVES(unsqueeze, ({0, 1, 2}), counted({1, 3}), ints({-1}));
  EXPECT_FAILS(unsqueeze, counted({1, 3}), ints({0})); // would be 1x1x3
  OneNode tile("Tile", 13, {{"2", kF32}, {"1", kI64}}, "4");
  EXPECT_GIVES(tile, ({0, 1, 0, 1}), counted({2}), ints({2}));
  EXPECT_FAILS(tile, counted({2}), ints({3}));
}

TEST(RuntimeOperands, SliceFollowsNumpy) {
  OneNode slice("Slice", 13, {{"5,4", kF32}, {"1", kI64}, {"1", kI64}, {"1", kI64}, {"1", kI64}}, "2,4");
  auto rows = [](float a, float b) { return Numbers{a, a + 1, a + 2, a + 3, b, b + 1, b + 2, b + 3}; };
  EXPECT_GIVES(slice, (rows(0, 16)), counted({5, 4}), ints({0}), ints({INT64_MAX}), ints({0}), ints({4}));
  EXPECT_GIVES(slice, (rows(16, 4)), counted({5, 4}), ints({-1}), ints({INT64_MIN}), ints({-2}), ints({-3}));
  EXPECT_GIVES(slice, (rows(12, 16)), counted({5, 4}), ints({-2}), ints({100}), ints({0}), ints({1}));
  EXPECT_FAILS(slice, counted({5, 4}), ints({0}), ints({3}), ints({0}), ints({1}));
  EXPECT_FAILS(slice, counted({5, 4}), ints({0}), ints({2}), ints({1}), ints({1}));
  EXPECT_FAILS(slice, counted({5, 4}), ints({0}), ints({2}), ints({0}), ints({0}));
}

TEST(RuntimeOperands, PadReadsWhereItsModeSays) {
  OneNode constant("Pad", 18, {{"3", kF32}, {"2", kI64}, {"", kF32}}, "4");
  EXPECT_GIVES(constant, ({9, 9, 0, 1}), counted({3}), ints({2, -1}), floats({}, {9}));
  EXPECT_GIVES(constant, ({0, 1, 2, 9}), counted({3}), ints({0, 1}), floats({}, {9}));
  EXPECT_FAILS(constant, counted({3}), ints({1, 1}), floats({}, {9}));
  EXPECT_FAILS(constant, counted({3}), ints({5, -4}), floats({}, {9}));
  OneNode reflect("Pad", 18, {{"3", kF32}, {"2", kI64}}, "5");
  reflect.attr("mode", "reflect");
  EXPECT_GIVES(reflect, ({2, 1, 0, 1, 2}), counted({3}), ints({2, 0}));
  EXPECT_GIVES(reflect, ({1, 0, 1, 2, 1}), counted({3}), ints({1, 1}));
  EXPECT_FAILS(reflect, counted({3}), ints({3, -1}));
  OneNode wrap("Pad", 19, {{"3", kF32}, {"2", kI64}}, "5");
  wrap.attr("mode", "wrap");
  EXPECT_GIVES(wrap, ({2, 0, 1, 2, 0}), counted({3}), ints({1, 1}));
}

TEST(RuntimeOperands, ScansPickTheirAxis) {
  OneNode scan("CumSum", 14, {{"2,2", kF32}, {"", kI64}}, "2,2");
  EXPECT_GIVES(scan, ({0, 1, 2, 4}), counted({2, 2}), ints({0}, true));
  EXPECT_GIVES(scan, ({0, 1, 2, 5}), counted({2, 2}), ints({-1}, true));
  EXPECT_FAILS(scan, counted({2, 2}), ints({2}, true));
}

TEST(RuntimeOperands, ResizeComputesItsTaps) {
  OneNode linear("Resize", 19, {{"4", kF32}, {"0", kF32}, {"1", kF32}}, "2");
  linear.attr("mode", "linear");
  EXPECT_GIVES(linear, ({0.5f, 2.5f}), counted({4}), floats({0}, {}), floats({1}, {0.5f}));
  EXPECT_FAILS(linear, counted({4}), floats({0}, {}), floats({1}, {0.8f}));
  EXPECT_FAILS(linear, counted({4}), floats({0}, {}), floats({1}, {-0.5f}));
  OneNode nearest("Resize", 19, {{"2", kF32}, {"0", kF32}, {"1", kF32}}, "4");
  EXPECT_GIVES(nearest, ({0, 0, 1, 1}), counted({2}), floats({0}, {}), floats({1}, {2}));
}

TEST(RuntimeOperands, RangeIsAsLongAsDeclared) {
  OneNode range("Range", 11, {{"", kF32}, {"", kF32}, {"", kF32}}, "3");
  EXPECT_GIVES(range, ({1, 3, 5}), floats({}, {1}), floats({}, {6}), floats({}, {2}));
  EXPECT_FAILS(range, floats({}, {1}), floats({}, {8}), floats({}, {2}));
  EXPECT_FAILS(range, floats({}, {1}), floats({}, {6}), floats({}, {0}));
}

TEST(RuntimeOperands, NothingDeclaredBecomesADim) {
  OneNode open("Tile", 13, {{"2", kF32}, {"1", kI64}}, "n");
  // The interpreter knows static shapes only; what runs is tested with bundles.
  EXPECT_NE(open({counted({2}), ints({2})}).second.find("define_dims"), std::string::npos);
}

} // namespace
