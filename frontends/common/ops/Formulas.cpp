//===- Formulas.cpp - small formulas that many operators share ------------===//
#include "Formulas.h"

#include <cmath>
#include <numeric>

using namespace dmxc::dmir;

namespace dmxc::frontend {

Val square(Emitter &e, const Val &x) { return e.mul(x, x); }
Val sigmoid(Emitter &e, const Val &x) { return e.emit<SigmoidOp>({x}); }
Val tanhOf(Emitter &e, const Val &x) { return e.emit<TanhOp>({x}); }
Val expOf(Emitter &e, const Val &x) { return e.emit<ExpOp>({x}); }
Val logOf(Emitter &e, const Val &x) { return e.emit<LogOp>({x}); }
Val sqrtOf(Emitter &e, const Val &x) { return e.emit<SqrtOp>({x}); }
Val absOf(Emitter &e, const Val &x) { return e.emit<AbsOp>({x}); }
Val negOf(Emitter &e, const Val &x) { return e.emit<NegOp>({x}); }
Val reciprocal(Emitter &e, const Val &x) { return e.emit<ReciprocalOp>({x}); }
Val isNaN(Emitter &e, const Val &x) { return e.emit<IsNaNOp>({x}); }
Val both(Emitter &e, const Val &a, const Val &b) { return e.emit<AndOp>({a, b}); }
Val either(Emitter &e, const Val &a, const Val &b) { return e.emit<OrOp>({a, b}); }
Val notOf(Emitter &e, const Val &x) { return e.emit<NotOp>({x}); }

Val powerOf(Emitter &e, const Val &x, double p) {
  if (p == 1)
    return x;
  if (p == 2)
    return e.mul(x, x);
  if (p == 3)
    return e.mul(e.mul(x, x), x);
  if (isFloat(x.dtype()) && p == 0.5)
    return sqrtOf(e, x);
  if (isFloat(x.dtype()) && p == -0.5)
    return reciprocal(e, sqrtOf(e, x));
  if (isFloat(x.dtype()) && p == -1)
    return reciprocal(e, x);
  return e.emit<PowOp>({x, e.scalarLike(x, p)});
}

Val normalCdf(Emitter &e, const Val &x) { return e.mul(e.add(e.emit<ErfOp>({e.mul(x, std::sqrt(0.5))}), 1.0), 0.5); }
Val normalPdf(Emitter &e, const Val &x) { return e.mul(expOf(e, e.mul(square(e, x), -0.5)), 1 / std::sqrt(2 * M_PI)); }

Val whereOrZero(Emitter &e, const Val &condition, const Val &value) {
  return e.select(condition, value, e.scalarLike(value, 0));
}

Val sumOver(Emitter &e, const Val &x, llvm::ArrayRef<int64_t> axes, bool keep) {
  return e.reduce(Reduction::sum, x, axes, keep);
}
Val meanOver(Emitter &e, const Val &x, llvm::ArrayRef<int64_t> axes, bool keep) {
  return e.reduce(Reduction::mean, x, axes, keep);
}

std::vector<int64_t> axesFrom(int64_t first, int64_t rank) {
  std::vector<int64_t> axes(std::max<int64_t>(rank - first, 0));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

Val sumTo(Emitter &e, Val x, const Dims &dims) {
  int64_t extra = x.rank() - static_cast<int64_t>(dims.size());
  if (extra > 0)
    x = sumOver(e, x, axesFrom(0, extra), false);
  std::vector<int64_t> axes;
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i].is(1) && !x.extent(i).is(1))
      axes.push_back(i);
  return e.expectDims(sumOver(e, x, axes, true), dims);
}

Val unsqueeze(Emitter &e, const Val &x, int64_t axis) {
  Dims dims = x.dims();
  dims.insert(dims.begin() + axis, 1);
  return e.reshape(x, dims);
}

Val alongAxis(Emitter &e, const Val &vector, int64_t axis, int64_t rank) {
  Dims shape(rank, 1);
  shape[axis] = vector.elements();
  return e.reshape(vector, shape);
}

Val perChannel(Emitter &e, const Val &value, int64_t rank) {
  return alongAxis(e, value, 0, std::max<int64_t>(rank - 1, 1));
}

} // namespace dmxc::frontend
