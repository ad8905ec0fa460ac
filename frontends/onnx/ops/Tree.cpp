//===- Tree.cpp - decision trees of ai.onnx.ml ----------------------------===//
//
// All trees of all rows walk down together: the place of each is an index into tables of nodes, and a step takes every
// one to a child. Leaves lead to themselves, so as many steps as the deepest tree has nodes on a path are enough.
//
//===----------------------------------------------------------------------===//
#include "../NodeContext.h"

#include <algorithm>
#include <limits>
#include <set>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

/// The numbers of nodes_modes; a leaf has none.
enum Mode : int64_t { Leq = 0, Lt, Gte, Gt, Eq, Neq, Member, Leaf };
enum class Aggregate { Average, Sum, Min, Max };
enum class PostTransform { None, Softmax, Logistic, SoftmaxZero };

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
      Val same = e.compare(Compare::eq, e.broadcast(e.reshape(x, {x.dim(0), x.dim(1), 1}), list.shape()), list);
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
  const int64_t rows = x.dim(0), trees = static_cast<int64_t>(forest.roots.size());
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
                         e.select(votingHere, weights, e.broadcast(e.scalarLike(weights, none), weights.shape())), {1},
                         /*keepDims=*/false);
  Val any = e.reduce(Reduction::max, voting, {1}, /*keepDims=*/false);
  return e.select(e.compare(Compare::gt, any, e.scalarLike(any, 0)), extreme,
                  e.broadcast(e.scalarLike(extreme, 0), extreme.shape()));
}

Val transformed(NodeContext &c, const Val &scores, PostTransform transform) {
  Emitter &e = c.e;
  switch (transform) {
  case PostTransform::None:
    return scores;
  case PostTransform::Softmax:
    return e.softmax(scores, 1);
  case PostTransform::Logistic:
    return e.emit<SigmoidOp>({scores});
  case PostTransform::SoftmaxZero: {
    Val largest = e.reduce(Reduction::max, scores, {1}, /*keepDims=*/true);
    Val power = e.emit<ExpOp>({e.sub(scores, largest)}), zero = e.scalarLike(scores, 0);
    power = e.select(e.compare(Compare::eq, scores, zero), e.broadcast(zero, power.shape()), power);
    return e.div(power, e.reduce(Reduction::sum, power, {1}, /*keepDims=*/true));
  }
  }
  return scores;
}

std::vector<int64_t> intsOfLength(NodeContext &c, const char *name, size_t length) {
  std::vector<int64_t> values = c.attrInts(name, {});
  c.requireAttr(values.size() == length, std::string(name) + " has " + std::to_string(values.size()) +
                                             " numbers, not " + std::to_string(length));
  return values;
}

Forest emptyForest(NodeContext &c) {
  Forest forest;
  forest.targets = c.attrInt("n_targets", 1);
  c.requireAttr(forest.targets >= 1 && forest.targets <= (1 << 20), "n_targets is not positive");
  return forest;
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
    while (at < values.size() && values[at] == values[at])
      forest.members[node].push_back(values[at++]);
    c.requireAttr(!forest.members[node].empty(), "membership_values has no members for a BRANCH_MEMBER node");
    ++at;
  }
}

Forest readForest(NodeContext &c) {
  Forest forest = emptyForest(c);
  std::vector<double> modes = numbersOf(c, "nodes_modes"), splits = numbersOf(c, "nodes_splits");
  const size_t nodes = modes.size();
  c.requireAttr(nodes >= 1 && splits.size() == nodes, "nodes_splits and nodes_modes differ in length");
  std::vector<int64_t> features = intsOfLength(c, "nodes_featureids", nodes);
  for (size_t i = 0; i < nodes; ++i) {
    c.requireAttr(modes[i] >= Leq && modes[i] <= Member,
                  "nodes_modes has the unknown mode " + std::to_string(modes[i]));
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
  c.requireAttr(transform >= 0 && transform <= 3, "the probit transform is not supported");
  Val scores = evaluate(c, c.operand(0), readForest(c), static_cast<Aggregate>(aggregate));
  c.result(transformed(c, scores, static_cast<PostTransform>(transform)));
}

//===----------------------------------------------------------------------===//
// TreeEnsembleRegressor: nodes by the numbers of their trees
//===----------------------------------------------------------------------===//

/// An attribute of floats, or its form as a tensor.
std::vector<double> floatsOrTensor(NodeContext &c, const std::string &name) {
  if (c.hasAttr((name + "_as_tensor").c_str()))
    return numbersOf(c, (name + "_as_tensor").c_str());
  return c.attrFloats(name.c_str()).value_or(std::vector<double>());
}

Forest readNodes(NodeContext &c) {
  static constexpr const char *names[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                          "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  Forest forest = emptyForest(c);
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
  std::vector<double> weights = floatsOrTensor(c, "target_weights");
  std::vector<int64_t> targetTrees = intsOfLength(c, "target_treeids", weights.size());
  std::vector<int64_t> targetNodes = intsOfLength(c, "target_nodeids", weights.size());
  std::vector<int64_t> targets = intsOfLength(c, "target_ids", weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    c.requireAttr(targets[i] >= 0 && targets[i] < forest.targets, "target_ids leaves n_targets");
    forest.addWeight(placeOf(targetTrees[i], targetNodes[i]), targets[i], weights[i]);
  }
  return forest;
}

void importTreeEnsembleRegressor(NodeContext &c) {
  static const std::map<std::string, Aggregate> aggregates = {
      {"AVERAGE", Aggregate::Average}, {"SUM", Aggregate::Sum}, {"MIN", Aggregate::Min}, {"MAX", Aggregate::Max}};
  static const std::map<std::string, PostTransform> transforms = {{"NONE", PostTransform::None},
                                                                  {"SOFTMAX", PostTransform::Softmax},
                                                                  {"LOGISTIC", PostTransform::Logistic},
                                                                  {"SOFTMAX_ZERO", PostTransform::SoftmaxZero}};
  auto aggregate = aggregates.find(c.attrString("aggregate_function", "SUM"));
  auto transform = transforms.find(c.attrString("post_transform", "NONE"));
  c.requireAttr(aggregate != aggregates.end(), "aggregate_function is unknown");
  c.requireAttr(transform != transforms.end(), "the probit transform is not supported");
  Val x = c.operand(0);
  if (!isFloat(x.dtype()))
    x = c.e.cast(x, DType::F32);
  Forest forest = readNodes(c);
  Val scores = evaluate(c, x, forest, aggregate->second);
  if (std::vector<double> base = floatsOrTensor(c, "base_values"); !base.empty()) {
    c.requireAttr(static_cast<int64_t>(base.size()) == forest.targets, "base_values has not one number a target");
    scores = c.e.add(scores, c.e.floats(scores.dtype(), {forest.targets}, base));
  }
  c.result(c.e.cast(transformed(c, scores, transform->second), DType::F32));
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
  constexpr TypeSet Plain = bitOf(DType::F32) | bitOf(DType::F64);
  return {
      {"TreeEnsemble",
       {5},
       importTreeEnsemble,
       "aggregate_function,leaf_targetids,leaf_weights,membership_values,n_targets,nodes_falseleafs,nodes_falsenodeids,"
       "nodes_featureids,nodes_hitrates,nodes_missing_value_tracks_true,nodes_modes,nodes_splits,nodes_trueleafs,"
       "nodes_truenodeids,post_transform,tree_roots",
       {Plain | bitOf(DType::F16)},
       "without the probit transform",
       ml},
      {"TreeEnsembleRegressor",
       {1},
       importTreeEnsembleRegressor,
       nodes,
       {Plain | Index},
       "without the probit transform",
       ml},
      {"TreeEnsembleRegressor",
       {3},
       importTreeEnsembleRegressor,
       withTensors,
       {Plain | Index},
       "without the probit transform",
       ml},
  };
}

} // namespace dmxc::onnxfe
