//===- MlTest.cpp - ai.onnx.ml against its definitions ------------------------===//
#include "ModelBuilder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace dmxc;
using namespace dmxc::test;

namespace {

using Numbers = std::vector<double>;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// One operator of ai.onnx.ml with operands x, x1 .. and its results.
struct MlNode {
  ModelBuilder builder{17};
  explicit MlNode(const std::string &op, const std::string &dims, int results = 1, int64_t version = 4, int type = 1) {
    builder.domain("ai.onnx.ml", version).input("x", dims, type);
    std::vector<std::string> names;
    for (int i = 0; i < results; ++i) {
      names.push_back("y" + std::to_string(i));
      builder.output(names.back());
    }
    builder.node(op, {"x"}, names, "node").set_domain("ai.onnx.ml");
  }
  onnx::NodeProto &node() { return *builder.graph().mutable_node(0); }
  MlNode &ints(const char *name, const std::vector<int64_t> &values) {
    ModelBuilder::setInts(node(), name, values);
    return *this;
  }
  MlNode &floats(const char *name, const std::vector<float> &values) {
    ModelBuilder::setFloats(node(), name, values);
    return *this;
  }
  MlNode &text(const char *name, const std::string &value) {
    ModelBuilder::setString(node(), name, value);
    return *this;
  }
  MlNode &number(const char *name, int64_t value) {
    ModelBuilder::setInt(node(), name, value);
    return *this;
  }
  MlNode &strings(const char *name, const std::vector<std::string> &values) {
    auto &list = ModelBuilder::attribute(node(), name, onnx::AttributeProto::STRINGS);
    for (const std::string &value : values)
      list.add_strings(value);
    return *this;
  }
  std::vector<Tensor> operator()(const std::vector<Tensor> &inputs) {
    Result<std::vector<Tensor>> results = evaluate(builder, inputs);
    EXPECT_TRUE(bool(results)) << results.error().message;
    return results ? *results : std::vector<Tensor>();
  }
  std::string refusal() {
    TempDir dir;
    ImportRun run(optionsFor(dir.write("m.onnx", builder.bytes())));
    return run.imported ? "accepted" : run.text();
  }
};

void expectNear(const Tensor &tensor, const Numbers &wanted, double tolerance = 1e-5) {
  Numbers got = numbersOf(tensor);
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(got[i], wanted[i], tolerance) << "element " << i;
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

} // namespace

TEST(Ml, LinearRegressorHasATargetARowOfCoefficients) {
  MlNode node("LinearRegressor", "2,3");
  node.floats("coefficients", {1, 2, 3, -1, 0, 0.5F}).floats("intercepts", {10, -10}).number("targets", 2);
  auto y = node({floatTensor({2, 3}, {1, 1, 1, 2, 0, 4})});
  ASSERT_EQ(y.size(), 1u);
  expectNear(y[0], {16, -10.5, 24, -10});
}

TEST(Ml, LinearClassifierOfTwoClassesHasOneScore) {
  MlNode node("LinearClassifier", "3,2", 2);
  node.floats("coefficients", {1, -1}).floats("intercepts", {0.5F}).ints("classlabels_ints", {7, 9});
  node.text("post_transform", "LOGISTIC");
  auto y = node({floatTensor({3, 2}, {0, 3, 2, 1, 0, 0})});
  ASSERT_EQ(y.size(), 2u);
  EXPECT_EQ(numbersOf(y[0]), (Numbers{7, 9, 9}));
  expectNear(y[1], {logistic(2.5), logistic(-2.5), logistic(-1.5), logistic(1.5), logistic(-0.5), logistic(0.5)});
}

TEST(Ml, LinearClassifierTakesTheLargestScore) {
  MlNode node("LinearClassifier", "2,2", 2);
  node.floats("coefficients", {1, 0, 0, 1, -1, -1})
      .ints("classlabels_ints", {-5, 3, 8})
      .text("post_transform", "SOFTMAX");
  auto y = node({floatTensor({2, 2}, {1, 2, -3, -4})});
  ASSERT_EQ(y.size(), 2u);
  EXPECT_EQ(numbersOf(y[0]), (Numbers{3, 8}));
  const double sum = std::exp(1) + std::exp(2) + std::exp(-3), sum2 = std::exp(-3) + std::exp(-4) + std::exp(7);
  expectNear(y[1], {std::exp(1) / sum, std::exp(2) / sum, std::exp(-3) / sum, std::exp(-3) / sum2, std::exp(-4) / sum2,
                    std::exp(7) / sum2});
}

TEST(Ml, LabelsThatAreStringsAreRefusedWhereTheyAreAskedFor) {
  for (int results : {1, 2}) {
    MlNode node("LinearClassifier", "1,2", 2);
    node.floats("coefficients", {1, 0, 0, 1}).strings("classlabels_strings", {"cat", "dog"});
    if (results == 1) {
      node.node().set_output(0, "");
      node.builder.graph().mutable_output()->DeleteSubrange(0, 1);
      auto y = node({floatTensor({1, 2}, {3, 4})});
      ASSERT_EQ(y.size(), 1u);
      EXPECT_EQ(numbersOf(y[0]), (Numbers{3, 4}));
    } else {
      EXPECT_NE(node.refusal().find("its labels are strings"), std::string::npos) << node.refusal();
    }
  }
}

TEST(Ml, SupportVectorsRegressByTheirKernels) {
  // Two support vectors (1, 0) and (0, 2), of coefficients 2 and -1.
  const Tensor x = floatTensor({2, 2}, {1, 1, 0.5F, -1});
  auto run = [&](const char *kernel) {
    MlNode node("SVMRegressor", "2,2");
    node.floats("support_vectors", {1, 0, 0, 2}).floats("coefficients", {2, -1}).floats("rho", {0.25F});
    node.floats("kernel_params", {0.5F, 1, 3}).number("n_supports", 2).text("kernel_type", kernel);
    return node({x}).front();
  };
  expectNear(run("LINEAR"), {2 * 1 - 2 + 0.25, 2 * 0.5 + 2 + 0.25});
  expectNear(run("POLY"), {2 * std::pow(1.5, 3) - std::pow(2, 3) + 0.25, 2 * std::pow(1.25, 3) - 0 + 0.25});
  expectNear(run("SIGMOID"), {2 * std::tanh(1.5) - std::tanh(2.0) + 0.25, 2 * std::tanh(1.25) - std::tanh(0) + 0.25});
  expectNear(run("RBF"), {2 * std::exp(-0.5 * 1) - std::exp(-0.5 * 2) + 0.25,
                          2 * std::exp(-0.5 * 1.25) - std::exp(-0.5 * 9.25) + 0.25});
}

TEST(Ml, OneClassIsInsideOrOutside) {
  MlNode node("SVMRegressor", "3,1");
  node.floats("coefficients", {1}).floats("rho", {-2}).number("one_class", 1);
  EXPECT_EQ(numbersOf(node({floatTensor({3, 1}, {1, 2, 3})}).front()), (Numbers{-1, -1, 1}));
}

TEST(Ml, SupportVectorsVoteInPairs) {
  // One vector a class, (1, 0), (0, 1), (-1, -1); the coefficients of [class against][vector].
  MlNode node("SVMClassifier", "4,2", 2);
  node.floats("support_vectors", {1, 0, 0, 1, -1, -1}).ints("vectors_per_class", {1, 1, 1});
  node.floats("coefficients", {1, -1, -1, 2, 3, -2})
      .floats("rho", {0, 0.5F, -0.5F})
      .ints("classlabels_ints", {4, 5, 6});
  const std::vector<float> rows{3, 1, 1, 3, -2, -1, 0, 0.3F};
  auto y = node({floatTensor({4, 2}, rows)});
  ASSERT_EQ(y.size(), 2u);
  Numbers labels, scores;
  for (size_t row = 0; row < 4; ++row) {
    const double k0 = rows[2 * row], k1 = rows[2 * row + 1], k2 = -k0 - k1;
    const double s01 = 1 * k0 - 1 * k1, s02 = 2 * k0 - 1 * k2 + 0.5, s12 = 3 * k1 - 2 * k2 - 0.5;
    int votes[3] = {};
    ++votes[s01 > 0 ? 0 : 1];
    ++votes[s02 > 0 ? 0 : 2];
    ++votes[s12 > 0 ? 1 : 2];
    labels.push_back(4 + static_cast<double>(std::max_element(votes, votes + 3) - votes));
    scores.insert(scores.end(), {s01, s02, s12});
  }
  EXPECT_EQ(numbersOf(y[0]), labels);
  expectNear(y[1], scores);

  // Probabilities are where (Q p)[t] = p Q p for all classes t (Wu, Lin and Weng), about.
  node.floats("prob_a", {-1, -2, -0.5F}).floats("prob_b", {0, 0.25F, -1});
  const double a[] = {-1, -2, -0.5}, b[] = {0, 0.25, -1};
  Numbers p = numbersOf(node({floatTensor({4, 2}, rows)})[1]);
  ASSERT_EQ(p.size(), 12u);
  for (size_t row = 0; row < 4; ++row) {
    double r[3][3] = {}, q[3][3] = {}, product[3] = {}, total = 0;
    for (size_t pair = 0; pair < 3; ++pair) {
      const size_t i = pair == 2 ? 1 : 0, j = pair == 0 ? 1 : 2;
      r[i][j] = 1 / (1 + std::exp(a[pair] * scores[3 * row + pair] + b[pair]));
      r[j][i] = 1 - r[i][j];
    }
    for (size_t t = 0; t < 3; ++t)
      for (size_t j = 0; j < 3; ++j) {
        q[t][t] += r[j][t] * r[j][t];
        q[t][j] -= t == j ? 0 : r[j][t] * r[t][j];
      }
    for (size_t t = 0; t < 3; ++t) {
      for (size_t j = 0; j < 3; ++j)
        product[t] += q[t][j] * p[3 * row + j];
      total += p[3 * row + t] * product[t];
    }
    for (double each : product)
      EXPECT_NEAR(each, total, 0.0018) << "row " << row;
    EXPECT_NEAR(p[3 * row] + p[3 * row + 1] + p[3 * row + 2], 1, 1e-5);
  }
  node.floats("prob_a", {1, 1});
  EXPECT_NE(node.refusal().find("prob_a"), std::string::npos) << node.refusal();
}

TEST(Ml, ScalerAndNormalizerAndImputer) {
  MlNode scaler("Scaler", "2,2");
  scaler.floats("offset", {1, 2}).floats("scale", {10, 0.5F});
  expectNear(scaler({floatTensor({2, 2}, {1, 2, 3, 4})}).front(), {0, 0, 20, 1});
  for (auto [norm, wanted] : {std::pair{"MAX", Numbers{0.75, -1, 0, 0}},
                              {"L1", Numbers{3 / 7.0, -4 / 7.0, 0, 0}},
                              {"L2", Numbers{0.6, -0.8, 0, 0}}}) {
    MlNode normalizer("Normalizer", "2,2");
    normalizer.text("norm", norm);
    expectNear(normalizer({floatTensor({2, 2}, {3, -4, 0, 0})}).front(), wanted);
  }
  MlNode imputer("Imputer", "2,2");
  imputer.floats("imputed_value_floats", {7, 8});
  ModelBuilder::setFloat(imputer.node(), "replaced_value_float", kNaN);
  expectNear(imputer({floatTensor({2, 2}, {kNaN, kNaN, 1, kNaN})}).front(), {7, 8, 1, 8});
}

TEST(Ml, OneHotEncoderFindsCategories) {
  MlNode node("OneHotEncoder", "3");
  node.ints("cats_int64s", {5, -1, 3});
  Tensor y = node({floatTensor({3}, {3, 4, 5.5F})}).front();
  EXPECT_EQ(y.shape(), (Shape{3, 3}));
  EXPECT_EQ(numbersOf(y), (Numbers{0, 0, 1, 0, 0, 0, 1, 0, 0}));
  MlNode texts("OneHotEncoder", "3");
  texts.strings("cats_strings", {"a"});
  EXPECT_NE(texts.refusal().find("cats_int64s"), std::string::npos) << texts.refusal();
}

TEST(Ml, LabelEncoderTakesTheLastKeyAndKnowsNaN) {
  MlNode node("LabelEncoder", "5");
  node.floats("keys_floats", {1, 2, kNaN, 1}).ints("values_int64s", {10, 20, 30, 40}).number("default_int64", -9);
  Tensor y = node({floatTensor({5}, {1, 2, kNaN, 3, -0.0F})}).front();
  EXPECT_EQ(y.dtype(), DType::I64);
  EXPECT_EQ(numbersOf(y), (Numbers{40, 20, 30, -9, -9}));
  MlNode texts("LabelEncoder", "5");
  texts.strings("keys_strings", {"a"}).ints("values_int64s", {1});
  EXPECT_NE(texts.refusal().find("its keys are strings"), std::string::npos) << texts.refusal();
}

TEST(Ml, FeatureVectorizerPutsFeaturesSideBySide) {
  MlNode node("FeatureVectorizer", "2,2");
  node.builder.input("x1", "2,1");
  node.node().add_input("x1");
  node.ints("inputdimensions", {2, 1});
  Tensor y = node({floatTensor({2, 2}, {1, 2, 3, 4}), floatTensor({2, 1}, {5, 6})}).front();
  EXPECT_EQ(numbersOf(y), (Numbers{1, 2, 5, 3, 4, 6}));
}

/// One tree: x[0] <= 0 leads to node 1, else to node 2.
MlNode treeModel(const std::vector<int64_t> &nodes, const std::vector<int64_t> &classes,
                 const std::vector<float> &weights, const std::vector<int64_t> &labels) {
  MlNode node("TreeEnsembleClassifier", "2,1", 2, 1);
  node.ints("nodes_treeids", {0, 0, 0}).ints("nodes_nodeids", {0, 1, 2}).ints("nodes_featureids", {0, 0, 0});
  node.strings("nodes_modes", {"BRANCH_LEQ", "LEAF", "LEAF"}).floats("nodes_values", {0, 0, 0});
  node.ints("nodes_truenodeids", {1, 0, 0}).ints("nodes_falsenodeids", {2, 0, 0});
  node.ints("class_treeids", std::vector<int64_t>(nodes.size(), 0)).ints("class_nodeids", nodes);
  node.ints("class_ids", classes).floats("class_weights", weights).ints("classlabels_int64s", labels);
  return node;
}

TEST(Ml, TreesClassify) {
  const Tensor x = floatTensor({2, 1}, {-1, 1});
  // Three classes: the largest sum wins.
  MlNode three = treeModel({1, 1, 2, 2}, {0, 2, 1, 2}, {0.75F, 0.25F, 0.5F, 0.25F}, {10, 20, 30});
  auto y = three({x});
  ASSERT_EQ(y.size(), 2u);
  EXPECT_EQ(numbersOf(y[0]), (Numbers{10, 20}));
  expectNear(y[1], {0.75, 0, 0.25, 0, 0.5, 0.25});
  // Two classes with weights of one: probabilities where all are positive, else scores on both sides of 0.
  y = treeModel({1, 2}, {0, 0}, {0.25F, 0.75F}, {10, 20})({x});
  ASSERT_EQ(y.size(), 2u);
  EXPECT_EQ(numbersOf(y[0]), (Numbers{10, 20}));
  expectNear(y[1], {0.75, 0.25, 0.25, 0.75});
  MlNode signedWeights = treeModel({1, 2}, {0, 0}, {-0.25F, 0.25F}, {10, 20});
  signedWeights.text("post_transform", "LOGISTIC");
  y = signedWeights({x});
  ASSERT_EQ(y.size(), 2u);
  EXPECT_EQ(numbersOf(y[0]), (Numbers{10, 20}));
  expectNear(y[1], {logistic(0.25), logistic(-0.25), logistic(-0.25), logistic(0.25)});
}

TEST(Ml, ProbitIsTheQuantileOfTheNormalDistribution) {
  MlNode node("LinearRegressor", "3,1");
  node.floats("coefficients", {1}).text("post_transform", "PROBIT");
  // The approximation that defines it is good to two digits.
  expectNear(node({floatTensor({3, 1}, {0.5F, 0.975F, 0.025F})}).front(), {0, 1.95996, -1.95996}, 5e-3);
}

TEST(Ml, MapsOfClassesAreColumns) {
  MlNode node("ZipMap", "2,3");
  node.strings("classlabels_strings", {"a", "b", "c"});
  Tensor scores = floatTensor({2, 3}, {0.5F, 0.25F, 0.25F, 0, 1, 0});
  EXPECT_EQ(numbersOf(node({scores}).front()), numbersOf(scores));
  TempDir dir;
  ImportRun run(optionsFor(dir.write("m.onnx", node.builder.bytes())));
  EXPECT_NE(run.text().find("'y0' is a tensor with a column for each class: 'a', 'b', 'c'"), std::string::npos)
      << run.text();

  MlNode few("ZipMap", "2,3");
  few.ints("classlabels_int64s", {0, 1});
  EXPECT_NE(few.refusal().find("there are 2 labels"), std::string::npos) << few.refusal();
  EXPECT_NE(MlNode("ZipMap", "2,3").refusal().find("there are 0 labels"), std::string::npos);
}

TEST(Ml, WhatWorksOnMapsIsRefused) {
  MlNode node("CastMap", "2,2");
  EXPECT_NE(node.refusal().find("maps"), std::string::npos) << node.refusal();
}
