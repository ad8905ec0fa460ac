//===- MlLinear.cpp - linear models and support vector machines -----------===//
#include "../Differences.h"
#include "MlScores.h"

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

/// x [rows, features] times weights given as [columns][features].
Val product(NodeContext &c, const Val &x, const std::vector<double> &weights, int64_t columns) {
  const int64_t features = x.dim(1);
  c.requireAttr(columns > 0 && static_cast<int64_t>(weights.size()) == columns * features,
                std::to_string(weights.size()) + " coefficients do not fit " + std::to_string(columns) + " times " +
                    std::to_string(features) + " features");
  Val matrix = c.e.floats(x.dtype(), {columns, features}, weights);
  return c.e.matmul(x, c.e.transpose(matrix, {1, 0}));
}

Val withIntercepts(NodeContext &c, const Val &scores) {
  std::vector<double> intercepts = c.attrFloats("intercepts").value_or(std::vector<double>());
  if (intercepts.empty())
    return scores;
  return c.e.add(scores, c.e.floats(scores.dtype(), {scores.dim(1)}, floatsOfLength(c, "intercepts", scores.dim(1))));
}

void importLinearRegressor(NodeContext &c) {
  Val x = rowsOfFeatures(c, 0);
  Val scores = product(c, x, c.attrFloats("coefficients").value_or(std::vector<double>()), c.attrInt("targets", 1));
  c.result(c.e.cast(transformed(c.e, withIntercepts(c, scores), postTransformOf(c)), DType::F32));
}

/// Scores [rows, 1] of the second of two classes as scores of both.
Val bothClasses(Emitter &e, const Val &scores) { return e.concat({e.emit<NegOp>({scores}), scores}, 1); }

void importLinearClassifier(NodeContext &c) {
  Emitter &e = c.e;
  const ClassLabels labels(c, "classlabels_ints");
  std::vector<double> weights = c.attrFloats("coefficients").value_or(std::vector<double>());
  Val x = rowsOfFeatures(c, 0);
  const int64_t columns = weights.size() / std::max<int64_t>(x.dim(1), 1);
  Val scores = withIntercepts(c, product(c, x, weights, columns));
  c.requireAttr(columns == labels.count() || (columns == 1 && labels.count() <= 2),
                std::to_string(labels.count()) + " labels do not fit scores of " + std::to_string(columns) +
                    " classes");
  const PostTransform transform = postTransformOf(c);
  if (columns == 1 && labels.count() == 2)
    scores = bothClasses(e, scores);
  scores = transformed(e, scores, transform);
  c.result(1, e.cast(scores, DType::F32));
  if (scores.dim(1) > 1)
    return labels.setResult(c, placeOfLargest(e, scores));
  // One class: its label, or 0 where it is not that class.
  Val isMember = e.compare(Compare::ge, e.reshape(scores, {scores.extent(0)}),
                           e.scalarLike(scores, transform == PostTransform::None ? 0 : 0.5));
  std::vector<int64_t> own = c.attrInts("classlabels_ints", {1});
  if (c.hasAttr("classlabels_strings"))
    return labels.setResult(c, Val());
  c.result(0, e.select(isMember, e.intScalar(DType::I64, own.front()), e.intScalar(DType::I64, 0)));
}

/// The kernel function between each row of x and each support vector: [rows, vectors].
Val kernelOf(NodeContext &c, const Val &x, const std::vector<double> &vectors, int64_t count) {
  Emitter &e = c.e;
  const std::string kind = c.attrString("kernel_type", "LINEAR");
  std::vector<double> parameters = c.attrFloats("kernel_params").value_or(std::vector<double>());
  parameters.resize(3);
  auto [gamma, coef0, degree] = std::tuple(parameters[0], parameters[1], parameters[2]);
  if (kind != "RBF") {
    Val dot = product(c, x, vectors, count);
    if (kind == "LINEAR")
      return dot;
    Val scaled = e.add(e.mul(dot, gamma), coef0);
    if (kind == "POLY")
      return e.emit<PowOp>({scaled, e.scalarLike(scaled, degree)});
    c.requireAttr(kind == "SIGMOID", "kernel_type '" + kind + "' is unknown");
    return e.emit<TanhOp>({scaled});
  }
  c.requireAttr(static_cast<int64_t>(vectors.size()) == count * x.dim(1), "support_vectors does not fit the features");
  Val rows = e.reshape(x, {x.extent(0), 1, x.extent(1)});
  Val difference = e.sub(rows, e.floats(x.dtype(), {1, count, x.dim(1)}, vectors));
  Val distance = e.reduce(Reduction::sum, e.mul(difference, difference), {2}, /*keepDims=*/false);
  return e.emit<ExpOp>({e.mul(distance, -gamma)});
}

void importSvmRegressor(NodeContext &c) {
  Emitter &e = c.e;
  Val x = rowsOfFeatures(c, 0);
  const int64_t count = c.attrInt("n_supports", 0);
  std::vector<double> coefficients = c.attrFloats("coefficients").value_or(std::vector<double>());
  const double rho = floatsOfLength(c, "rho", 1).front();
  Val score;
  if (count > 0) {
    Val kernel = kernelOf(c, x, c.attrFloats("support_vectors").value_or(std::vector<double>()), count);
    score = product(c, kernel, coefficients, 1);
  } else {
    score = product(c, x, coefficients, 1);
  }
  score = e.add(score, rho);
  if (c.attrInt("one_class", 0)) {
    Val inside = e.compare(Compare::gt, score, e.scalarLike(score, 0));
    score = e.select(inside, e.scalarLike(score, 1), e.scalarLike(score, -1));
  }
  c.result(e.cast(transformed(e, score, postTransformOf(c)), DType::F32));
}

/// Support vectors of all classes: each pair of classes is decided, and the class that wins most pairs is taken.
struct Pairs {
  Val scores; ///< [rows, pairs]
  Val votes;  ///< [rows, classes]
};

Pairs decidePairs(NodeContext &c, const Val &x, const std::vector<int64_t> &perClass) {
  Emitter &e = c.e;
  const int64_t classes = perClass.size();
  std::vector<int64_t> starts{0};
  for (int64_t count : perClass) {
    c.requireAttr(count >= 0 && count < (1 << 24), "vectors_per_class has a number out of range");
    starts.push_back(starts.back() + count);
  }
  const int64_t vectors = starts.back();
  Val kernel = kernelOf(c, x, c.attrFloats("support_vectors").value_or(std::vector<double>()), vectors);
  std::vector<double> coefficients = floatsOfLength(c, "coefficients", (classes - 1) * vectors);
  std::vector<double> rho = floatsOfLength(c, "rho", classes * (classes - 1) / 2), matrix, firstWins, secondWins;
  // One column of weights a pair (i, j): those of i's vectors against j, and of j's against i.
  for (int64_t i = 0; i < classes; ++i)
    for (int64_t j = i + 1; j < classes; ++j) {
      for (int64_t v = 0; v < vectors; ++v) {
        const bool ofFirst = v >= starts[i] && v < starts[i + 1], ofSecond = v >= starts[j] && v < starts[j + 1];
        matrix.push_back(ofFirst ? coefficients[(j - 1) * vectors + v] : ofSecond ? coefficients[i * vectors + v] : 0);
      }
      for (int64_t k = 0; k < classes; ++k) {
        firstWins.push_back(k == i);
        secondWins.push_back(k == j);
      }
    }
  const int64_t pairs = rho.size();
  Val scores = e.add(product(c, kernel, matrix, pairs), e.floats(x.dtype(), {pairs}, rho));
  Val won = e.cast(e.compare(Compare::gt, scores, e.scalarLike(scores, 0)), DType::F32);
  Val lost = e.sub(e.scalarLike(won, 1), won);
  Val votes = e.add(e.matmul(won, e.floats(DType::F32, {pairs, classes}, firstWins)),
                    e.matmul(lost, e.floats(DType::F32, {pairs, classes}, secondWins)));
  return {scores, votes};
}

/// Scores of pairs as probabilities of classes: those of pairs are 1 / (1 + exp(a * score + b)).
Val probabilitiesOf(NodeContext &c, const Val &scores, int64_t classes) {
  Emitter &e = c.e;
  const int64_t pairs = scores.dim(1);
  Val a = e.floats(scores.dtype(), {pairs}, floatsOfLength(c, "prob_a", pairs));
  Val b = e.floats(scores.dtype(), {pairs}, floatsOfLength(c, "prob_b", pairs));
  Val wins = e.emit<SigmoidOp>({e.emit<NegOp>({e.add(e.mul(scores, a), b)})});
  constexpr double kLeast = 1e-7; // as libsvm has it
  wins = e.min(e.max(wins, e.scalarLike(wins, kLeast)), e.scalarLike(wins, 1 - kLeast));
  return coupledProbabilities(e, wins, classes);
}

void importSvmClassifier(NodeContext &c) {
  Emitter &e = c.e;
  const bool asProbabilities = !c.attrFloats("prob_a").value_or(std::vector<double>()).empty();
  const ClassLabels labels(c, "classlabels_ints");
  std::vector<int64_t> perClass = c.attrInts("vectors_per_class", {});
  const int64_t classes = std::max<int64_t>(labels.count(), 1);
  Val x = rowsOfFeatures(c, 0), scores, places;
  bool hasVectors = std::any_of(perClass.begin(), perClass.end(), [](int64_t count) { return count != 0; });
  if (hasVectors) {
    c.requireAttr(static_cast<int64_t>(perClass.size()) == classes && classes >= 2,
                  "vectors_per_class does not have one number a label");
    Pairs pairs = decidePairs(c, x, perClass);
    scores = asProbabilities ? probabilitiesOf(c, pairs.scores, classes) : pairs.scores;
    places = placeOfLargest(e, pairs.votes);
  } else {
    c.requireAttr(!asProbabilities, "prob_a and prob_b need support vectors (vectors_per_class)");
    scores = e.add(product(c, x, c.attrFloats("coefficients").value_or(std::vector<double>()), classes),
                   floatsOfLength(c, "rho", 1).front());
    places = placeOfLargest(e, scores);
  }
  c.requireAttr(scores.dim(1) > 1 || classes == 2, "one class alone is SVMRegressor's");
  if (scores.dim(1) == 1)
    scores = bothClasses(e, scores);
  c.result(1, e.cast(transformed(e, scores, postTransformOf(c)), DType::F32));
  labels.setResult(c, places);
}

} // namespace

std::vector<OpRows> mlLinearOps() {
  using namespace types;
  constexpr const char *ml = "ai.onnx.ml";
  constexpr TypeSet Plain = bitOf(DType::F32) | bitOf(DType::F64) | Index;
  const char *strings = "labels that are strings are refused where they are asked for";
  return {
      {"LinearRegressor",
       {1},
       ".>1",
       importLinearRegressor,
       "coefficients,intercepts,post_transform,targets",
       {Plain},
       "",
       ml},
      {"LinearClassifier",
       {1},
       ".>2",
       importLinearClassifier,
       "classlabels_ints,classlabels_strings,coefficients,intercepts,multi_class,post_transform",
       {Plain},
       strings,
       ml},
      {"SVMRegressor",
       {1},
       ".>1",
       importSvmRegressor,
       "coefficients,kernel_params,kernel_type,n_supports,one_class,post_transform,rho,support_vectors",
       {Plain},
       "",
       ml},
      {"SVMClassifier",
       {1},
       ".>2",
       importSvmClassifier,
       "classlabels_ints,classlabels_strings,coefficients,kernel_params,kernel_type,post_transform,prob_a,prob_b,rho,"
       "support_vectors,vectors_per_class",
       {Plain},
       strings,
       ml},
  };
}

std::vector<Difference> mlLinearDifferences() {
  return {
      {"linearclassifier-one-row", "LinearClassifier", "two classes with the coefficients of one",
       "minus the score, and the score", "1 minus the score, and the score", "", "minus the score, and the score",
       "the margins of both classes"},
  };
}

} // namespace dmxc::onnxfe
