//===- MlScores.h - scores and labels of ai.onnx.ml -------------*- C++ -*-===//
#pragma once

#include "../NodeContext.h"

namespace dmxc::onnxfe {

/// What becomes of scores; the numbers are those of TreeEnsemble's attribute.
enum class PostTransform { None, Softmax, Logistic, SoftmaxZero, Probit };

/// The attribute post_transform as a name.
PostTransform postTransformOf(NodeContext &c);
/// Scores [rows, classes].
Val transformed(Emitter &e, const Val &scores, PostTransform transform);

/// Of each row (i64 [rows]).
Val placeOfLargest(Emitter &e, const Val &scores);

/// Of each class, [rows, classes], from the probabilities [rows, pairs] that the first class of a pair wins: (0, 1),
/// (0, 2),
/// .. (1, 2), ..
Val coupledProbabilities(Emitter &e, const Val &firstWins, int64_t classes);

/// The labels of a classifier, of the attributes `ints` and classlabels_strings.
class ClassLabels {
public:
  ClassLabels(NodeContext &c, const char *ints);
  int64_t count() const { return static_cast<int64_t>(names ? strings : numbers.size()); }
  /// Result 0: the label of each row by its place in the list (i64 [rows]). Strings are refused where they are asked
  /// for.
  void setResult(NodeContext &c, const Val &places) const;

private:
  std::vector<int64_t> numbers;
  size_t strings = 0;
  bool names = false;
};

/// Rows of features as floats: [features] is one row, integers become f32.
Val rowsOfFeatures(NodeContext &c, int operand);
/// `count` numbers of an attribute.
std::vector<double> floatsOfLength(NodeContext &c, const char *name, int64_t count);

} // namespace dmxc::onnxfe
