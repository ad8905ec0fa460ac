//===- Formulas.cpp - small formulas that many operators share ------------===//
#include "Formulas.h"

#include <cmath>
#include <numeric>

using namespace dmxc::dmir;

namespace dmxc::frontend {

Val square(Emitter &e, const Val &x) { return e.mul(x, x); }
Val widened(Emitter &e, const Val &x) {
  return x.dtype() == DType::F16 || x.dtype() == DType::BF16 ? e.cast(x, DType::F32) : x;
}
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

Val polynomial(Emitter &e, const Val &x, llvm::ArrayRef<double> coefficients) {
  Val sum = e.scalarLike(x, coefficients.front());
  for (double coefficient : coefficients.drop_front())
    sum = e.add(e.mul(sum, x), coefficient);
  return sum;
}

Val logAddExp(Emitter &e, const Val &x, const Val &y) {
  Val same = e.compare(Compare::eq, x, y); // of two infinities too
  Val distance = e.select(same, e.scalarLike(x, 0), absOf(e, e.sub(x, y)));
  return e.add(e.max(x, y), e.emit<Log1pOp>({expOf(e, negOf(e, distance))}));
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

Val logSumExp(Emitter &e, const Val &x, llvm::ArrayRef<int64_t> axes) {
  Val highest = e.reduce(Reduction::max, x, axes, true);
  // inf - inf would be NaN: an infinite maximum is not subtracted.
  highest = e.select(e.emit<IsInfOp>({highest}), e.scalarLike(x, 0), highest);
  Val sum = sumOver(e, expOf(e, e.sub(x, highest)), axes, true);
  return e.add(logOf(e, sum), highest);
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

Val moveAxis(Emitter &e, const Val &x, int64_t from, int64_t to) {
  std::vector<int64_t> order = axesFrom(0, x.rank());
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, from);
  return e.transpose(x, order);
}

Val channelsFirst(Emitter &e, const Val &x) { return x.rank() < 2 ? x : moveAxis(e, x, x.rank() - 1, 1); }
Val channelsLast(Emitter &e, const Val &x) { return x.rank() < 2 ? x : moveAxis(e, x, 1, x.rank() - 1); }

/// The last three axes split as `split`, transposed by `order`, joined as `joined`.
static Val rearranged(Emitter &e, const Val &x, const Dims &split, llvm::ArrayRef<int64_t> order, const Dims &joined) {
  int64_t front = x.rank() - 3;
  Dims parts(llvm::ArrayRef<Dim>(x.dims()).take_front(front)), whole = parts;
  parts.append(split.begin(), split.end());
  whole.append(joined.begin(), joined.end());
  std::vector<int64_t> axes = axesFrom(0, front);
  for (int64_t axis : order)
    axes.push_back(front + axis);
  return e.reshape(e.transpose(e.reshape(x, parts), axes), whole);
}

Val pixelShuffle(Emitter &e, const Val &x, int64_t r) {
  Dim channels = Dim::floorDiv(x.extent(-3), r * r), h = x.extent(-2), w = x.extent(-1);
  return rearranged(e, x, {channels, r, r, h, w}, {0, 3, 1, 4, 2}, {channels, h * r, w * r});
}

Val pixelUnshuffle(Emitter &e, const Val &x, int64_t r) {
  Dim channels = x.extent(-3), h = Dim::floorDiv(x.extent(-2), r), w = Dim::floorDiv(x.extent(-1), r);
  return rearranged(e, x, {channels, h, r, w, r}, {0, 2, 4, 1, 3}, {channels * (r * r), h, w});
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
