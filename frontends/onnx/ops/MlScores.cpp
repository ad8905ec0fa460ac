//===- MlScores.cpp - scores and labels of ai.onnx.ml ---------------------===//
#include "MlScores.h"

#include "frontends/common/ops/Order.h"

#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

/// e^x over the row's sum, but 0 where x is 0, also where all are.
Val softmaxZero(Emitter &e, const Val &scores) {
  Val largest = e.reduce(Reduction::max, scores, {1}, /*keepDims=*/true);
  Val power = e.emit<ExpOp>({e.sub(scores, largest)}), zero = e.scalarLike(scores, 0);
  power = e.select(e.compare(Compare::eq, scores, zero), zero, power);
  Val sum = e.reduce(Reduction::sum, power, {1}, /*keepDims=*/true);
  return e.div(power, e.select(e.compare(Compare::eq, sum, zero), e.scalarLike(sum, 1), sum));
}

/// The quantile of the normal distribution, with Winitzki's approximation of the inverse error function that the
/// runtimes which define this transform use.
Val probit(Emitter &e, const Val &scores) {
  constexpr double a = 0.147;
  Val x = e.add(e.mul(scores, 2), -1), zero = e.scalarLike(x, 0);
  Val rest = e.mul(e.sub(e.scalarLike(x, 1), x), e.add(x, 1));
  Val log = e.emit<LogOp>({rest}), half = e.add(e.mul(log, 0.5), 2 / (M_PI * a));
  Val square = e.sub(e.mul(half, half), e.mul(log, 1 / a));
  Val root = e.emit<SqrtOp>({e.sub(e.emit<SqrtOp>({square}), half)});
  Val signedRoot = e.select(e.compare(Compare::lt, x, zero), e.emit<NegOp>({root}), root);
  return e.mul(e.select(e.compare(Compare::eq, rest, zero), zero, signedRoot), 1.41421356);
}

} // namespace

PostTransform postTransformOf(NodeContext &c) {
  static const std::map<std::string, PostTransform> names = {{"NONE", PostTransform::None},
                                                             {"SOFTMAX", PostTransform::Softmax},
                                                             {"LOGISTIC", PostTransform::Logistic},
                                                             {"SOFTMAX_ZERO", PostTransform::SoftmaxZero},
                                                             {"PROBIT", PostTransform::Probit}};
  std::string name = c.attrString("post_transform", "NONE");
  auto found = names.find(name);
  c.requireAttr(found != names.end(), "post_transform '" + name + "' is unknown");
  return found->second;
}

Val transformed(Emitter &e, const Val &scores, PostTransform transform) {
  switch (transform) {
  case PostTransform::None:
    return scores;
  case PostTransform::Softmax:
    return e.softmax(scores, 1);
  case PostTransform::Logistic:
    return e.emit<SigmoidOp>({scores});
  case PostTransform::SoftmaxZero:
    return softmaxZero(e, scores);
  case PostTransform::Probit:
    return probit(e, scores);
  }
  return scores;
}

Val placeOfLargest(Emitter &e, const Val &scores) { return argExtremum(e, Extremum::max, scores, 1, /*keep=*/false); }

ClassLabels::ClassLabels(NodeContext &c, const char *ints) : numbers(c.attrInts(ints, {})) {
  if (auto list = c.attrStrings("classlabels_strings"); list && !list->empty()) {
    strings = list->size();
    names = true;
  }
  c.requireAttr(names != !numbers.empty() || count() == 0, "there must be labels of one kind");
}

void ClassLabels::setResult(NodeContext &c, const Val &places) const {
  if (!c.wants(0))
    return;
  if (names)
    fail("op-unsupported", "its labels are strings, which have no tensor meaning here",
         {"leave result 0 out; result 1 has the scores"});
  c.result(0, numbers.empty() ? places : c.e.gather(c.e.ints(numbers), places, 0));
}

Val rowsOfFeatures(NodeContext &c, int operand) {
  Val x = c.operand(operand);
  c.requireShape(x.rank() == 1 || x.rank() == 2, "expected one row or rows of features");
  if (!isFloat(x.dtype()))
    x = c.e.cast(x, DType::F32);
  return x.rank() == 2 ? x : c.e.reshape(x, {1, x.extent(0)});
}

std::vector<double> floatsOfLength(NodeContext &c, const char *name, int64_t count) {
  std::vector<double> values = c.attrFloats(name).value_or(std::vector<double>());
  c.requireAttr(static_cast<int64_t>(values.size()) == count,
                std::string(name) + " has " + std::to_string(values.size()) + " numbers, not " + std::to_string(count));
  return values;
}

} // namespace dmxc::onnxfe
