//===- Norm.cpp - parts of normalisations ---------------------------------===//
#include "Norm.h"
#include "Formulas.h"

using namespace dmxc::dmir;

namespace dmxc::frontend {

Val normalize(Emitter &e, Normalization kind, const Val &x, const std::vector<int64_t> &axes, double epsilon) {
  return e.emit<NormalizeOp>({x}, {e.attr("kind", NormalizationAttr::get(e.context(), kind)), e.attr("axes", axes),
                                   e.attr("epsilon", epsilon)});
}

Moments momentsOf(Emitter &e, const Val &x, const std::vector<int64_t> &axes) {
  Val mean = meanOver(e, x, axes, true), centered = e.sub(x, mean);
  return {mean, centered, meanOver(e, square(e, centered), axes, true)};
}

Moments momentsOfChannels(Emitter &e, const Val &x) {
  std::vector<int64_t> axes = axesBesideChannels(x.rank());
  Val mean = meanOver(e, x, axes, false);
  Val centered = e.sub(x, perChannel(e, mean, x.rank()));
  return {mean, centered, meanOver(e, square(e, centered), axes, false)};
}

std::vector<int64_t> axesBesideChannels(int64_t rank) {
  std::vector<int64_t> axes = axesFrom(2, rank);
  axes.insert(axes.begin(), 0);
  return axes;
}

Val inverseDeviation(Emitter &e, const Val &variance, double epsilon) {
  return reciprocal(e, sqrtOf(e, e.add(variance, epsilon)));
}

} // namespace dmxc::frontend
