//===- MlCoupling.cpp - probabilities of classes from those of pairs ------===//
//
// The iteration of libsvm's multiclass_probability (Wu, Lin and Weng, "Probability estimates for multi-class
// classification by pairwise coupling", algorithm 2), for all rows at once: rows that have settled keep their values.
//
//===----------------------------------------------------------------------===//
#include "MlScores.h"

#include "frontends/common/ops/Formulas.h"

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

constexpr int64_t kMostRounds = 100;

/// r[i][j], the probability that class i wins against j, as [rows, classes, classes]; 0 on the diagonal.
Val pairMatrix(Emitter &e, const Val &firstWins, int64_t classes) {
  std::vector<double> base(classes * classes), factor(classes * classes);
  std::vector<int64_t> pair(classes * classes);
  for (int64_t i = 0, next = 0; i < classes; ++i)
    for (int64_t j = i + 1; j < classes; ++j, ++next) {
      pair[i * classes + j] = pair[j * classes + i] = next;
      factor[i * classes + j] = 1;
      base[j * classes + i] = 1, factor[j * classes + i] = -1;
    }
  auto numbers = [&](const std::vector<double> &values) {
    return e.floats(firstWins.dtype(), {classes * classes}, values);
  };
  Val all = e.add(e.mul(e.gather(firstWins, e.ints(pair), 1), numbers(factor)), numbers(base));
  return e.reshape(all, {firstWins.extent(0), classes, classes});
}

/// One round over all classes, of rows p [rows, classes] where Q p is `qp` and p Q p is `total`.
Val nextRound(Emitter &e, const Val &q, Val p, Val qp, Val total) {
  const int64_t classes = p.dim(1);
  const Dim rows = p.extent(0);
  for (int64_t t = 0; t < classes; ++t) {
    std::vector<double> unit(classes);
    unit[t] = 1;
    Val line = e.reshape(e.sliceAxis(q, 1, t, 1), {rows, classes}), own = e.sliceAxis(line, 1, t, 1);
    Val qpOwn = e.sliceAxis(qp, 1, t, 1), step = e.div(e.sub(total, qpOwn), own), scale = e.add(step, 1.0);
    total = e.div(e.div(e.add(total, e.mul(step, e.add(e.mul(step, own), e.mul(qpOwn, 2.0)))), scale), scale);
    qp = e.div(e.add(qp, e.mul(step, line)), scale);
    p = e.div(e.add(p, e.mul(step, e.floats(p.dtype(), {classes}, unit))), scale);
  }
  return p;
}

} // namespace

Val coupledProbabilities(Emitter &e, const Val &firstWins, int64_t classes) {
  const Dim rows = firstWins.extent(0);
  const DType type = firstWins.dtype();
  Val r = pairMatrix(e, firstWins, classes), turned = e.transpose(r, {0, 2, 1});
  std::vector<double> identity(classes * classes);
  for (int64_t i = 0; i < classes; ++i)
    identity[i * (classes + 1)] = 1;
  Val diagonal = e.mul(sumOver(e, square(e, turned), {2}, true), e.floats(type, {classes, classes}, identity));
  Val q = e.sub(diagonal, e.mul(turned, r));
  auto round = [&](const Val &, const Val &, llvm::ArrayRef<Val> carried) -> std::vector<Val> {
    const Val &p = carried[0];
    Val qp = e.reshape(e.matmul(q, e.reshape(p, {rows, classes, 1})), {rows, classes});
    Val total = sumOver(e, e.mul(p, qp), {1}, true);
    Val error = e.reduce(Reduction::max, absOf(e, e.sub(qp, total)), {1}, true);
    Val settled = e.compare(Compare::lt, error, e.scalar(type, 0.005 / static_cast<double>(classes)));
    Val open = e.reduce(Reduction::max, e.cast(notOf(e, settled), DType::I32), {0, 1}, false);
    return {e.cast(open, DType::Bool), e.select(settled, p, nextRound(e, q, p, qp, total))};
  };
  Val start = e.splat(type, {rows, classes}, 1.0 / static_cast<double>(classes));
  return e.loop(e.intScalar(DType::I64, kMostRounds), Val(), {start}, round).front();
}

} // namespace dmxc::onnxfe
