//===- TreeTest.cpp - decision trees against a walk down each -------------===//
#include "ModelBuilder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

using namespace dmxc;
using namespace dmxc::test;

namespace {

constexpr int64_t kFeatures = 5, kRows = 23, kTargets = 3, kTrees = 4;
constexpr const char *kModes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"};

struct Node {
  int64_t feature = 0, mode = -1, onTrue = 0, onFalse = 0; ///< mode -1: a leaf
  float split = 0;
  bool missingIsTrue = false;
  std::vector<std::pair<int64_t, float>> weights; ///< of a leaf: target, weight
};
using Tree = std::vector<Node>;

/// Values of few kinds, so that equalities hold now and then; NaN among those of rows.
float number(std::mt19937 &random) { return static_cast<float>(static_cast<int>(random() % 9) - 4) / 2; }

int64_t grow(Tree &tree, std::mt19937 &random, int depth) {
  const auto at = static_cast<int64_t>(tree.size());
  tree.emplace_back();
  if (depth == 0 || (depth < 3 && random() % 4 == 0)) {
    for (int64_t target = 0; target < kTargets; ++target)
      if (random() % 2)
        tree[at].weights.push_back({target, number(random)});
    return at;
  }
  Node node;
  node.feature = random() % kFeatures;
  node.mode = random() % 6;
  node.split = number(random);
  node.missingIsTrue = random() % 2;
  node.onTrue = grow(tree, random, depth - 1);
  node.onFalse = grow(tree, random, depth - 1);
  tree[at] = node;
  return at;
}

const Node &leafOf(const Tree &tree, const float *row) {
  const Node *node = tree.data();
  while (node->mode >= 0) {
    const float x = row[node->feature], s = node->split;
    const bool holds[] = {x <= s, x<s, x >= s, x> s, x == s, x != s};
    node = &tree[holds[node->mode] || (std::isnan(x) && node->missingIsTrue) ? node->onTrue : node->onFalse];
  }
  return *node;
}

double expected(const std::vector<Tree> &trees, const float *row, int64_t target, const std::string &aggregate) {
  double sum = 0, least = INFINITY, most = -INFINITY;
  for (const Tree &tree : trees)
    for (auto [own, weight] : leafOf(tree, row).weights)
      if (own == target) {
        sum += weight;
        least = std::min<double>(least, weight);
        most = std::max<double>(most, weight);
      }
  if (aggregate == "SUM")
    return sum;
  if (aggregate == "AVERAGE")
    return sum / kTrees;
  double extreme = aggregate == "MIN" ? least : most;
  return std::isinf(extreme) ? 0 : extreme;
}

struct NodeWriter {
  onnx::NodeProto &node;
  onnx::AttributeProto &add(const char *name, onnx::AttributeProto::AttributeType type) {
    auto &attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(type);
    return attribute;
  }
  void ints(const char *name, const std::vector<int64_t> &values) {
    auto &attribute = add(name, onnx::AttributeProto::INTS);
    for (int64_t value : values)
      attribute.add_ints(value);
  }
  void floats(const char *name, const std::vector<float> &values) {
    auto &attribute = add(name, onnx::AttributeProto::FLOATS);
    for (float value : values)
      attribute.add_floats(value);
  }
};

/// A model of one TreeEnsembleRegressor.
ModelBuilder modelOf(const std::vector<Tree> &trees, const std::string &aggregate, const std::vector<float> &base) {
  ModelBuilder builder(17);
  auto &domain = *builder.model.add_opset_import();
  domain.set_domain("ai.onnx.ml");
  domain.set_version(3);
  builder.input("x", std::to_string(kRows) + "," + std::to_string(kFeatures)).output("y");
  onnx::NodeProto &node = builder.node("TreeEnsembleRegressor", {"x"}, {"y"}, "trees");
  node.set_domain("ai.onnx.ml");
  NodeWriter writer{node};
  ModelBuilder::setInt(node, "n_targets", kTargets);
  writer.add("aggregate_function", onnx::AttributeProto::STRING).set_s(aggregate);
  std::vector<int64_t> treeIds, ids, features, onTrue, onFalse, tracks, targetTrees, targetNodes, targets;
  std::vector<float> values, weights;
  auto &modes = writer.add("nodes_modes", onnx::AttributeProto::STRINGS);
  for (size_t tree = 0; tree < trees.size(); ++tree)
    for (size_t i = 0; i < trees[tree].size(); ++i) {
      const Node &at = trees[tree][i];
      treeIds.push_back(tree + 7);
      ids.push_back(i);
      features.push_back(at.feature);
      modes.add_strings(at.mode < 0 ? "LEAF" : kModes[at.mode]);
      values.push_back(at.split);
      onTrue.push_back(at.onTrue);
      onFalse.push_back(at.onFalse);
      tracks.push_back(at.missingIsTrue);
      for (auto [target, weight] : at.weights) {
        targetTrees.push_back(tree + 7);
        targetNodes.push_back(i);
        targets.push_back(target);
        weights.push_back(weight);
      }
    }
  writer.ints("nodes_treeids", treeIds);
  writer.ints("nodes_nodeids", ids);
  writer.ints("nodes_featureids", features);
  writer.ints("nodes_truenodeids", onTrue);
  writer.ints("nodes_falsenodeids", onFalse);
  writer.ints("nodes_missing_value_tracks_true", tracks);
  writer.floats("nodes_values", values);
  writer.ints("target_treeids", targetTrees);
  writer.ints("target_nodeids", targetNodes);
  writer.ints("target_ids", targets);
  writer.floats("target_weights", weights);
  if (!base.empty())
    writer.floats("base_values", base);
  return builder;
}

std::string importError(const ModelBuilder &builder) {
  TempDir dir;
  ImportRun run(optionsFor(dir.write("m.onnx", builder.bytes())));
  return run.imported ? "" : run.text();
}

std::vector<Tree> forest(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Tree> trees(kTrees);
  for (Tree &tree : trees)
    grow(tree, random, 4);
  return trees;
}

} // namespace

TEST(Trees, RandomForestsAgreeWithAWalkDownEach) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    const std::vector<Tree> trees = forest(seed);
    std::mt19937 random(seed + 100);
    Tensor x(DType::F32, {kRows, kFeatures});
    for (int64_t i = 0; i < x.numElements(); ++i)
      x.as<float>()[i] = random() % 6 ? number(random) : std::numeric_limits<float>::quiet_NaN();
    for (const char *aggregate : {"SUM", "AVERAGE", "MIN", "MAX"}) {
      const std::vector<float> base = seed % 2 ? std::vector<float>{1, -2, 0.5F} : std::vector<float>();
      TempDir dir;
      ImportRun run(optionsFor(dir.write("m.onnx", modelOf(trees, aggregate, base).bytes())));
      ASSERT_TRUE(run.imported) << run.text();
      auto function = *run.imported->module->getOps<mlir::func::FuncOp>().begin();
      Result<std::vector<Tensor>> results = reference::evaluateFunction(function, {x});
      ASSERT_TRUE(bool(results)) << results.error().message;
      for (int64_t row = 0; row < kRows; ++row)
        for (int64_t target = 0; target < kTargets; ++target)
          EXPECT_NEAR(results->front().asDouble(row * kTargets + target),
                      expected(trees, x.as<float>() + row * kFeatures, target, aggregate) +
                          (base.empty() ? 0 : base[target]),
                      1e-5)
              << aggregate << " of row " << row << ", seed " << seed;
    }
  }
}

TEST(Trees, BrokenForestsAreRefusedByName) {
  std::vector<Tree> trees = forest(1);
  trees[0].front().feature = kFeatures;
  EXPECT_NE(importError(modelOf(trees, "SUM", {})).find("a node asks for feature 5 of 5"), std::string::npos);
  trees = forest(1);
  trees[1].front().onTrue = 4711;
  EXPECT_NE(importError(modelOf(trees, "SUM", {})).find("tree 8 has no node 4711"), std::string::npos);
  trees = forest(1);
  for (Node &node : trees[2]) // a path without an end that the root is not on
    if (node.mode >= 0 && &node != &trees[2].front())
      node.onTrue = &node - trees[2].data();
  const std::string cycle = importError(modelOf(trees, "SUM", {}));
  EXPECT_TRUE(cycle.find("a cycle") != std::string::npos || cycle.find("one root") != std::string::npos) << cycle;
  EXPECT_NE(importError(modelOf(forest(1), "MODE", {})).find("aggregate_function is unknown"), std::string::npos);
  EXPECT_NE(importError(modelOf(forest(1), "SUM", {1})).find("base_values"), std::string::npos);
}
