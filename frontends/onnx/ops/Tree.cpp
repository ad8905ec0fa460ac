//===- Tree.cpp - decision trees of ai.onnx.ml ----------------------------===//
//
// All trees of all rows walk down together: the place of each is an index into tables of nodes, and a step takes every
// one to a child. Leaves lead to themselves, so as many steps as the deepest tree has nodes on a path are enough.
//
//===----------------------------------------------------------------------===//
#include "../Differences.h"
#include "MlScores.h"

#include <algorithm>
#include <limits>
#include <set>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

/// The numbers of nodes_modes; a leaf has none.
enum Mode : int64_t { Leq = 0, Lt, Gte, Gt, Eq, Neq, Member, Leaf };
enum class Aggregate { Average, Sum, Min, Max };

struct Forest {
  std::vector<int64_t> feature, mode, onTrue, onFalse; ///< of each node; leaves are nodes
  std::vector<double> split;
  std::vector<bool> missingIsTrue;
  std::vector<std::vector<double>> members; ///< of Member nodes
  std::vector<int64_t> roots;
  int64_t targets = 1;
  std::vector<double> weights; ///< [node][target]
  std::vector<bool> votes;     ///< whether a weight is one

  int64_t addNode(int64_t featureId, int64_t modeNumber, double value) {
    feature.push_back(featureId);
    mode.push_back(modeNumber);
    split.push_back(value);
    missingIsTrue.push_back(false);
    members.emplace_back();
    onTrue.push_back(count() - 1);
    onFalse.push_back(count() - 1);
    weights.resize(count() * targets);
    votes.resize(count() * targets);
    return count() - 1;
  }
  void addWeight(int64_t node, int64_t target, double weight) {
    weights[node * targets + target] += weight;
    votes[node * targets + target] = true;
  }
  int64_t count() const { return static_cast<int64_t>(feature.size()); }
  /// Steps from the roots to the farthest leaf; nullopt when some path has no end.
  std::optional<int64_t> depth() const {
    std::set<int64_t> level(roots.begin(), roots.end());
    for (int64_t steps = 0; steps <= count(); ++steps) {
      std::set<int64_t> next;
      for (int64_t node : level)
        if (mode[node] != Leaf)
          next.insert({onTrue[node], onFalse[node]});
      if (next.empty())
        return steps;
      level = std::move(next);
    }
    return std::nullopt;
  }
};

/// What conditions need of the nodes, as tables by the node's number.
struct Conditions {
  std::set<int64_t> modes; ///< that occur
  Val mode, missing, split, members;

  /// The last two in the type of the features.
  Conditions(Emitter &e, const Forest &forest, DType type) : modes(forest.mode.begin(), forest.mode.end()) {
    modes.erase(Leaf);
    mode = e.ints(forest.mode);
    if (std::find(forest.missingIsTrue.begin(), forest.missingIsTrue.end(), true) != forest.missingIsTrue.end())
      missing = e.ints(std::vector<int64_t>(forest.missingIsTrue.begin(), forest.missingIsTrue.end()));
    split = e.floats(type, {forest.count()}, forest.split);
    if (!modes.count(Member))
      return;
    size_t most = 1;
    for (const std::vector<double> &list : forest.members)
      most = std::max(most, list.size());
    std::vector<double> table(forest.count() * most, std::numeric_limits<double>::quiet_NaN()); // equal to nothing
    for (int64_t node = 0; node < forest.count(); ++node)
      std::copy(forest.members[node].begin(), forest.members[node].end(), table.begin() + node * most);
    members = e.floats(type, {forest.count(), static_cast<int64_t>(most)}, table);
  }
};

/// Whether the nodes' conditions hold: x is [rows, trees], places the nodes' numbers.
Val condition(Emitter &e, const Conditions &nodes, const Val &x, const Val &places) {
  static constexpr Compare kinds[] = {Compare::le, Compare::lt, Compare::ge, Compare::gt, Compare::eq, Compare::ne};
  Val split = e.gather(nodes.split, places, 0), result;
  Val own = nodes.modes.size() > 1 ? e.gather(nodes.mode, places, 0) : Val();
  for (int64_t mode : nodes.modes) {
    Val holds;
    if (mode != Member) {
      holds = e.compare(kinds[mode], x, split);
    } else {
      Val list = e.gather(nodes.members, places, 0);
      Val same = e.compare(Compare::eq, e.broadcast(e.reshape(x, {x.extent(0), x.extent(1), 1}), list.dims()), list);
      Val found = e.reduce(Reduction::max, e.cast(same, DType::I32), {2}, /*keepDims=*/false);
      holds = e.compare(Compare::gt, found, e.scalarLike(found, 0));
    }
    if (own)
      holds = e.emit<AndOp>({holds, e.compare(Compare::eq, own, e.scalarLike(own, static_cast<double>(mode)))});
    result = result ? e.emit<OrOp>({result, holds}) : holds;
  }
  if (!nodes.missing)
    return result;
  Val taken = e.gather(nodes.missing, places, 0);
  Val missing = e.emit<AndOp>({e.emit<IsNaNOp>({x}), e.compare(Compare::gt, taken, e.scalarLike(taken, 0))});
  return e.emit<OrOp>({result, missing});
}

/// The sums (or others) of the leaves' weights that rows come to: [rows, targets].
Val evaluate(NodeContext &c, const Val &x, const Forest &forest, Aggregate aggregate) {
  Emitter &e = c.e;
  c.requireShape(x.rank() == 2, "expected rows of features");
  for (int64_t node = 0; node < forest.count(); ++node)
    c.requireAttr(forest.mode[node] == Leaf || (forest.feature[node] >= 0 && forest.feature[node] < x.dim(1)),
                  "a node asks for feature " + std::to_string(forest.feature[node]) + " of " +
                      std::to_string(x.dim(1)));
  std::optional<int64_t> depth = forest.depth();
  c.requireAttr(depth.has_value(), "the trees have a cycle");
  const Dim rows = x.extent(0);
  const int64_t trees = static_cast<int64_t>(forest.roots.size());
  Val places = e.broadcast(e.reshape(e.ints(forest.roots), {1, trees}), {rows, trees});
  const Conditions conditions(e, forest, x.dtype());
  const Val feature = e.ints(forest.feature), onTrue = e.ints(forest.onTrue), onFalse = e.ints(forest.onFalse);
  for (int64_t step = 0; step < *depth; ++step) {
    Val value = e.emit<GatherElementsOp>({x, e.gather(feature, places, 0)}, {e.attr("axis", int64_t(1))});
    places =
        e.select(condition(e, conditions, value, places), e.gather(onTrue, places, 0), e.gather(onFalse, places, 0));
  }
  const Shape table{forest.count(), forest.targets};
  Val weights = e.gather(e.floats(x.dtype(), table, forest.weights), places, 0);
  if (aggregate == Aggregate::Sum || aggregate == Aggregate::Average) {
    Val sum = e.reduce(Reduction::sum, weights, {1}, /*keepDims=*/false);
    return aggregate == Aggregate::Sum ? sum : e.div(sum, e.scalarLike(sum, static_cast<double>(trees)));
  }
  // Of those trees that vote for a target; 0 where none does.
  const bool least = aggregate == Aggregate::Min;
  std::vector<double> votes(forest.votes.begin(), forest.votes.end());
  Val voting = e.gather(e.floats(DType::F32, table, votes), places, 0);
  Val votingHere = e.compare(Compare::gt, voting, e.scalarLike(voting, 0));
  const double none = (least ? 1 : -1) * std::numeric_limits<double>::infinity();
  Val extreme = e.reduce(least ? Reduction::min : Reduction::max,
                         e.select(votingHere, weights, e.broadcast(e.scalarLike(weights, none), weights.dims())), {1},
                         /*keepDims=*/false);
  Val any = e.reduce(Reduction::max, voting, {1}, /*keepDims=*/false);
  return e.select(e.compare(Compare::gt, any, e.scalarLike(any, 0)), extreme,
                  e.broadcast(e.scalarLike(extreme, 0), extreme.dims()));
}

std::vector<int64_t> intsOfLength(NodeContext &c, const char *name, size_t length) {
  std::vector<int64_t> values = c.attrInts(name, {});
  c.requireAttr(values.size() == length, std::string(name) + " has " + std::to_string(values.size()) +
                                             " numbers, not " + std::to_string(length));
  return values;
}

int64_t targetCountOf(NodeContext &c) {
  const int64_t count = c.attrInt("n_targets", 1);
  c.requireAttr(count >= 1 && count <= (1 << 20), "n_targets is not positive");
  return count;
}

/// Of the nodes that are there so far.
void readMissing(NodeContext &c, Forest &forest) {
  if (!c.hasAttr("nodes_missing_value_tracks_true"))
    return;
  std::vector<int64_t> tracks = intsOfLength(c, "nodes_missing_value_tracks_true", forest.count());
  forest.missingIsTrue.assign(tracks.begin(), tracks.end());
}

std::vector<double> numbersOf(NodeContext &c, const char *name) {
  Val tensor = c.attrTensor(name);
  std::vector<double> values(tensor.numElements());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = tensor.constant().asDouble(static_cast<int64_t>(i));
  return values;
}

//===----------------------------------------------------------------------===//
// TreeEnsemble: inner nodes and leaves apart
//===----------------------------------------------------------------------===//

/// Lists of members, one for each Member node in order, ended by NaNs.
void readMembers(NodeContext &c, Forest &forest) {
  std::vector<double> values =
      c.hasAttr("membership_values") ? numbersOf(c, "membership_values") : std::vector<double>();
  size_t at = 0;
  for (int64_t node = 0; node < forest.count(); ++node) {
    if (forest.mode[node] != Member)
      continue;
    while (at < values.size() && !std::isnan(values[at]))
      forest.members[node].push_back(values[at++]);
    c.requireAttr(!forest.members[node].empty(), "membership_values has no members for a BRANCH_MEMBER node");
    ++at;
  }
}

Forest readForest(NodeContext &c) {
  Forest forest;
  forest.targets = targetCountOf(c);
  std::vector<double> modes = numbersOf(c, "nodes_modes"), splits = numbersOf(c, "nodes_splits");
  const size_t nodes = modes.size();
  c.requireAttr(nodes >= 1 && splits.size() == nodes, "nodes_splits and nodes_modes differ in length");
  std::vector<int64_t> features = intsOfLength(c, "nodes_featureids", nodes);
  for (size_t i = 0; i < nodes; ++i) {
    bool known = modes[i] >= static_cast<double>(Leq) && modes[i] <= static_cast<double>(Member);
    c.requireAttr(known, "nodes_modes has the unknown mode " + std::to_string(modes[i]));
    forest.addNode(features[i], static_cast<int64_t>(modes[i]), splits[i]);
  }
  readMembers(c, forest);
  readMissing(c, forest);
  std::vector<double> weights = numbersOf(c, "leaf_weights");
  std::vector<int64_t> targets = intsOfLength(c, "leaf_targetids", weights.size());
  for (size_t leaf = 0; leaf < weights.size(); ++leaf) {
    c.requireAttr(targets[leaf] >= 0 && targets[leaf] < forest.targets, "leaf_targetids leaves n_targets");
    forest.addWeight(forest.addNode(0, Leaf, 0), targets[leaf], weights[leaf]);
  }
  auto link = [&](std::vector<int64_t> &children, const char *ids, const char *leafs) {
    std::vector<int64_t> numbers = intsOfLength(c, ids, nodes), isLeaf = intsOfLength(c, leafs, nodes);
    for (size_t i = 0; i < nodes; ++i) {
      const int64_t bound = isLeaf[i] ? static_cast<int64_t>(weights.size()) : static_cast<int64_t>(nodes);
      c.requireAttr(numbers[i] >= 0 && numbers[i] < bound, std::string(ids) + " names what does not exist");
      children[i] = numbers[i] + (isLeaf[i] ? static_cast<int64_t>(nodes) : 0);
    }
  };
  link(forest.onTrue, "nodes_truenodeids", "nodes_trueleafs");
  link(forest.onFalse, "nodes_falsenodeids", "nodes_falseleafs");
  forest.roots = c.attrInts("tree_roots", {});
  c.requireAttr(!forest.roots.empty(), "tree_roots is empty");
  for (int64_t root : forest.roots)
    c.requireAttr(root >= 0 && root < static_cast<int64_t>(nodes), "tree_roots names what does not exist");
  return forest;
}

void importTreeEnsemble(NodeContext &c) {
  const int64_t aggregate = c.attrInt("aggregate_function", 1), transform = c.attrInt("post_transform", 0);
  c.requireAttr(aggregate >= 0 && aggregate <= 3, "aggregate_function is unknown");
  c.requireAttr(transform >= 0 && transform <= 4, "post_transform is unknown");
  Val scores = evaluate(c, c.operand(0), readForest(c), static_cast<Aggregate>(aggregate));
  c.result(transformed(c.e, scores, static_cast<PostTransform>(transform)));
}

//===----------------------------------------------------------------------===//
// TreeEnsembleRegressor and -Classifier: nodes by the numbers of their trees
//===----------------------------------------------------------------------===//

/// An attribute of floats, or its form as a tensor.
std::vector<double> floatsOrTensor(NodeContext &c, const std::string &name) {
  if (c.hasAttr((name + "_as_tensor").c_str()))
    return numbersOf(c, (name + "_as_tensor").c_str());
  return c.attrFloats(name.c_str()).value_or(std::vector<double>());
}

/// Its weights are the attributes `<kind>_weights`, `<kind>_ids` and so on.
Forest readNodes(NodeContext &c, int64_t targetCount, const std::string &kind) {
  static constexpr const char *names[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                          "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  Forest forest;
  forest.targets = targetCount;
  std::vector<std::string> modes = c.attrStrings("nodes_modes").value_or(std::vector<std::string>());
  const size_t nodes = modes.size();
  std::vector<int64_t> trees = intsOfLength(c, "nodes_treeids", nodes), ids = intsOfLength(c, "nodes_nodeids", nodes);
  std::vector<int64_t> features = intsOfLength(c, "nodes_featureids", nodes);
  std::vector<int64_t> onTrue = intsOfLength(c, "nodes_truenodeids", nodes);
  std::vector<int64_t> onFalse = intsOfLength(c, "nodes_falsenodeids", nodes);
  std::vector<double> values = floatsOrTensor(c, "nodes_values");
  c.requireAttr(nodes >= 1 && values.size() == nodes, "nodes_values and nodes_modes differ in length");
  std::map<std::pair<int64_t, int64_t>, int64_t> places;
  for (size_t i = 0; i < nodes; ++i) {
    const auto *known = std::find(std::begin(names), std::end(names), modes[i]);
    c.requireAttr(modes[i] == "LEAF" || known != std::end(names),
                  "nodes_modes has the unknown mode '" + modes[i] + "'");
    int64_t node = forest.addNode(features[i], modes[i] == "LEAF" ? Leaf : known - std::begin(names), values[i]);
    c.requireAttr(places.insert({{trees[i], ids[i]}, node}).second, "a node stands twice in a tree");
  }
  auto placeOf = [&](int64_t tree, int64_t id) {
    auto found = places.find({tree, id});
    c.requireAttr(found != places.end(), "tree " + std::to_string(tree) + " has no node " + std::to_string(id));
    return found->second;
  };
  std::vector<bool> isChild(nodes);
  for (size_t i = 0; i < nodes; ++i) {
    if (forest.mode[i] == Leaf)
      continue;
    forest.onTrue[i] = placeOf(trees[i], onTrue[i]);
    forest.onFalse[i] = placeOf(trees[i], onFalse[i]);
    isChild[forest.onTrue[i]] = isChild[forest.onFalse[i]] = true;
  }
  for (size_t i = 0; i < nodes; ++i)
    if (!isChild[i])
      forest.roots.push_back(static_cast<int64_t>(i));
  c.requireAttr(forest.roots.size() == std::set<int64_t>(trees.begin(), trees.end()).size(), "a tree has not one root");
  readMissing(c, forest);
  std::vector<double> weights = floatsOrTensor(c, kind + "_weights");
  std::vector<int64_t> targetTrees = intsOfLength(c, (kind + "_treeids").c_str(), weights.size());
  std::vector<int64_t> targetNodes = intsOfLength(c, (kind + "_nodeids").c_str(), weights.size());
  std::vector<int64_t> targets = intsOfLength(c, (kind + "_ids").c_str(), weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    c.requireAttr(targets[i] >= 0 && targets[i] < forest.targets,
                  kind + "_ids has the number " + std::to_string(targets[i]) + " of " + std::to_string(forest.targets));
    forest.addWeight(placeOf(targetTrees[i], targetNodes[i]), targets[i], weights[i]);
  }
  return forest;
}

/// Scores plus base_values, if there are any.
Val withBase(NodeContext &c, const Val &scores) {
  std::vector<double> base = floatsOrTensor(c, "base_values");
  if (base.empty())
    return scores;
  const int64_t targets = scores.dim(1);
  c.requireAttr(static_cast<int64_t>(base.size()) == targets, "base_values has " + std::to_string(base.size()) +
                                                                  " numbers for " + std::to_string(targets) +
                                                                  " scores");
  return c.e.add(scores, c.e.floats(scores.dtype(), {targets}, base));
}

void importTreeEnsembleRegressor(NodeContext &c) {
  static const std::map<std::string, Aggregate> aggregates = {
      {"AVERAGE", Aggregate::Average}, {"SUM", Aggregate::Sum}, {"MIN", Aggregate::Min}, {"MAX", Aggregate::Max}};
  auto aggregate = aggregates.find(c.attrString("aggregate_function", "SUM"));
  c.requireAttr(aggregate != aggregates.end(), "aggregate_function is unknown");
  Val x = rowsOfFeatures(c, 0);
  Forest forest = readNodes(c, targetCountOf(c), "target");
  Val scores = withBase(c, evaluate(c, x, forest, aggregate->second));
  c.result(c.e.cast(transformed(c.e, scores, postTransformOf(c)), DType::F32));
}

/// One score a row that says yes (the second of two classes) or no. Weights that are all positive are probabilities,
/// which only LOGISTIC transforms.
void setBinary(NodeContext &c, const ClassLabels &labels, const Val &score, bool probability) {
  Emitter &e = c.e;
  const PostTransform transform = postTransformOf(c);
  const bool complement = probability && transform != PostTransform::Logistic;
  Val no = complement ? e.sub(e.scalarLike(score, 1), score) : e.emit<NegOp>({score});
  Val both = e.concat({no, score}, 1);
  c.result(1, e.cast(complement ? both : transformed(e, both, transform), DType::F32));
  Val isYes = e.compare(Compare::gt, e.reshape(score, {score.extent(0)}), e.scalarLike(score, probability ? 0.5 : 0));
  labels.setResult(c, e.cast(isYes, DType::I64));
}

void importTreeEnsembleClassifier(NodeContext &c) {
  Emitter &e = c.e;
  const ClassLabels labels(c, "classlabels_int64s");
  c.requireAttr(labels.count() >= 2, "there must be two labels or more");
  std::vector<int64_t> ids = c.attrInts("class_ids", {});
  std::vector<double> weights = floatsOrTensor(c, "class_weights");
  const bool oneScore = labels.count() == 2 && std::set<int64_t>(ids.begin(), ids.end()).size() == 1;
  Forest forest = readNodes(c, labels.count(), "class");
  Val scores = evaluate(c, rowsOfFeatures(c, 0), forest, Aggregate::Sum);
  if (oneScore) {
    const bool probability = std::none_of(weights.begin(), weights.end(), [](double weight) { return weight < 0; });
    return setBinary(c, labels, withBase(c, e.sliceAxis(scores, 1, ids.front(), 1)), probability);
  }
  scores = withBase(c, scores);
  labels.setResult(c, placeOfLargest(e, scores));
  c.result(1, e.cast(transformed(e, scores, postTransformOf(c)), DType::F32));
}

} // namespace

std::vector<OpRows> treeOps() {
  using namespace types;
  constexpr const char *ml = "ai.onnx.ml";
  constexpr const char *nodes =
      "aggregate_function,base_values,n_targets,nodes_falsenodeids,nodes_featureids,nodes_hitrates,"
      "nodes_missing_value_tracks_true,nodes_modes,nodes_nodeids,nodes_treeids,nodes_truenodeids,nodes_values,"
      "post_transform,target_ids,target_nodeids,target_treeids,target_weights";
  constexpr const char *withTensors =
      "aggregate_function,base_values,base_values_as_tensor,n_targets,nodes_falsenodeids,nodes_featureids,"
      "nodes_hitrates,nodes_hitrates_as_tensor,nodes_missing_value_tracks_true,nodes_modes,nodes_nodeids,nodes_treeids,"
      "nodes_truenodeids,nodes_values,nodes_values_as_tensor,post_transform,target_ids,target_nodeids,target_treeids,"
      "target_weights,target_weights_as_tensor";
  constexpr const char *classNodes =
      "base_values,class_ids,class_nodeids,class_treeids,class_weights,classlabels_int64s,classlabels_strings,"
      "nodes_falsenodeids,nodes_featureids,nodes_hitrates,nodes_missing_value_tracks_true,nodes_modes,nodes_nodeids,"
      "nodes_treeids,nodes_truenodeids,nodes_values,post_transform";
  constexpr const char *classWithTensors =
      "base_values,base_values_as_tensor,class_ids,class_nodeids,class_treeids,class_weights,class_weights_as_tensor,"
      "classlabels_int64s,classlabels_strings,nodes_falsenodeids,nodes_featureids,nodes_hitrates,"
      "nodes_hitrates_as_tensor,nodes_missing_value_tracks_true,nodes_modes,nodes_nodeids,nodes_treeids,"
      "nodes_truenodeids,nodes_values,nodes_values_as_tensor,post_transform";
  constexpr const char *strings = "labels that are strings are refused where they are asked for";
  constexpr TypeSet Plain = bitOf(DType::F32) | bitOf(DType::F64);
  return {
      {"TreeEnsemble",
       {5},
       ".>1",
       importTreeEnsemble,
       "aggregate_function=int,leaf_targetids,leaf_weights,membership_values,n_targets,nodes_falseleafs,"
       "nodes_falsenodeids,nodes_featureids,nodes_hitrates=tensor,nodes_missing_value_tracks_true,nodes_modes=tensor,"
       "nodes_splits,nodes_trueleafs,nodes_truenodeids,post_transform=int,tree_roots",
       {Plain | bitOf(DType::F16)},
       "",
       ml},
      {"TreeEnsembleRegressor", {1}, ".>1", importTreeEnsembleRegressor, nodes, {Plain | Index}, "", ml},
      {"TreeEnsembleRegressor", {3}, ".>1", importTreeEnsembleRegressor, withTensors, {Plain | Index}, "", ml},
      {"TreeEnsembleClassifier", {1}, ".>2", importTreeEnsembleClassifier, classNodes, {Plain | Index}, strings, ml},
      {"TreeEnsembleClassifier",
       {3},
       ".>2",
       importTreeEnsembleClassifier,
       classWithTensors,
       {Plain | Index},
       strings,
       ml},
  };
}

std::vector<Difference> treeDifferences() {
  return {
      {"treeensembleclassifier-unvoted", "TreeEnsembleClassifier",
       "three classes or more, some without a vote in a row, others with negative ones",
       "the largest of all scores, 0 without votes", "the largest of those with votes", "",
       "the largest of all scores, 0 without votes", "the label is that of the largest score in the other result"},
      {"treeensembleclassifier-negative", "TreeEnsembleClassifier",
       "two classes, weights of one of which some are negative", "1 minus the score, and the score",
       "minus the score, and the score", "", "minus the score, and the score",
       "what converters of gradient boosting are tested with"},
      {"treeensembleregressor-transform", "TreeEnsembleRegressor", "one target and a post_transform", "fails",
       "not transformed", "", "transformed", "the definition says so"},
  };
}

} // namespace dmxc::onnxfe
