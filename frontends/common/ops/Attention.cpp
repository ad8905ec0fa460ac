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

Val scaleOrDefault(Emitter &e, double scale, Dim size) {
  if (scale == 0 && !size.isStatic())
    return e.cast(reciprocal(e, sqrtOf(e, e.size(size, DType::F64))), DType::F32);
  return e.scalar(DType::F32, scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(size.valueOr(1))));
}

Val scaledScores(Emitter &e, const Val &q, const Val &k, const Val &rootOfQ, const Val &rootOfK) {
  Val keys = e.transposeLast(e.mul(k, rootOfK));
  return e.matmul(e.mul(q, rootOfQ), keys);
}

Val rotatePairs(Emitter &e, const Val &x, const Val &cosine, const Val &sine, bool neighbours) {
  int64_t last = x.rank() - 1;
  Dim half = cosine.extent(-1), size = x.extent(-1), turning = half * 2;
  if (!size.isStatic() && half == Dim::floorDiv(size, 2))
    turning = size;
  Val first = neighbours ? e.sliceAxis(x, last, 0, half, 2) : e.sliceAxis(x, last, 0, half);
  Val second = neighbours ? e.sliceAxis(x, last, 1, half, 2) : e.sliceAxis(x, last, half, half);
  Val real = e.sub(e.mul(cosine, first), e.mul(sine, second));
  Val imaginary = e.add(e.mul(sine, first), e.mul(cosine, second));
  Val turned;
  if (neighbours) {
    Dims joined = real.dims();
    joined.back() = turning;
    turned = e.reshape(e.concat({unsqueeze(e, real, last + 1), unsqueeze(e, imaginary, last + 1)}, last + 1), joined);
  } else {
    turned = e.concat({real, imaginary}, last);
  }
  return turning == size ? turned : e.concat({turned, e.sliceAxis(x, last, turning, size - turning)}, last);
}

Val rowsWithoutKeys(Emitter &e, const Val &bias) {
  Val best = e.reduce(Reduction::max, bias, {bias.rank() - 1}, true);
  Val blind = e.compare(Compare::eq, best, e.scalar(bias.dtype(), kMasked));
  bool none = blind.isConstant();
  for (int64_t i = 0; none && i < blind.constant().numElements(); ++i)
    none = blind.constant().asInt(i) == 0;
  return none ? Val() : blind;
}

Val additiveMask(Emitter &e, const Val &mask, DType type, const Val &zero, const Val &masked) {
  return mask.dtype() == DType::Bool ? e.select(mask, zero, masked) : e.cast(mask, type);
}

} // namespace dmxc::frontend
