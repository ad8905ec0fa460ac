//===- Attention.cpp - parts of attention ---------------------------------===//
#include "Attention.h"
#include "Formulas.h"

#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::frontend {

Val repeatHeads(Emitter &e, const Val &x, Dim heads) {
  int64_t axis = x.rank() - 3;
  if (x.extent(axis) == heads)
    return x;
  Dims wide = x.dims(), joined = x.dims();
  wide.insert(wide.begin() + axis + 1, Dim::floorDiv(heads, x.extent(axis)));
  joined[axis] = heads;
  return e.reshape(e.broadcast(unsqueeze(e, x, axis + 1), wide), joined);
}

Val rootOfScale(Emitter &e, std::optional<double> scale, Dim size) {
  if (!scale && !size.isStatic())
    return sqrtOf(e, reciprocal(e, sqrtOf(e, e.size(size, DType::F64))));
  return e.scalar(DType::F64, std::sqrt(scale.value_or(1 / std::sqrt(static_cast<double>(size.valueOr(1))))));
}

Val scaledScores(Emitter &e, const Val &q, const Val &k, const Val &rootOfQ, const Val &rootOfK) {
  Val keys = e.transposeLast(e.mul(k, rootOfK));
  return e.matmul(e.mul(q, rootOfQ), keys);
}

Val additiveMask(Emitter &e, const Val &mask, DType type, const Val &zero, const Val &masked) {
  return mask.dtype() == DType::Bool ? e.select(mask, zero, masked) : e.cast(mask, type);
}

} // namespace dmxc::frontend
