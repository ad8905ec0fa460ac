//===- Norm.cpp - parts of normalisations ---------------------------------===//
#include "Norm.h"
#include "Formulas.h"
#include "Require.h"

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

Val groupsOfChannels(Emitter &e, const Val &x, int64_t groups) {
  requireShape(x.rank() >= 2 && groups > 0 && x.extent(1).valueOr(0) % groups == 0,
               "the channels must divide into num_groups groups");
  Dim positions = product(llvm::ArrayRef<Dim>(x.dims()).drop_front(2));
  Dim each = x.extent(1).isStatic() ? Dim::floorDiv(x.extent(1), groups) * positions
                                    : Dim::floorDiv(x.extent(1) * positions, groups);
  return e.reshape(x, {x.extent(0), groups, each});
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
