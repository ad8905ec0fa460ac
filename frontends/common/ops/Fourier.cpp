//===- Fourier.cpp - Fourier transforms -----------------------------------===//
#include "Fourier.h"

#include "Product.h"
#include "Require.h"

#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::frontend {

Val anglesOfCircle(Emitter &e, Dim count, Dim n) {
  return e.div(e.mul(e.iota(DType::F64, {count}, 0), 2 * M_PI), e.size(Dim::max(n, 1), DType::F64));
}

Val fitted(Emitter &e, const Val &x, int64_t axis, Dim length) {
  Dims low(x.rank(), 0), high(x.rank(), 0);
  high[axis] = Dim::max(length - x.extent(axis), 0);
  return e.sliceAxis(e.pad(x, e.scalarLike(x, 0), low, high), axis, 0, length);
}

Val framed(Emitter &e, const Val &signal, int64_t axis, const Val &step, Dim frames, Dim length) {
  Val index = e.add(e.mul(e.iota(DType::I64, {frames, 1}, 0), step), e.iota(DType::I64, {1, length}, 1));
  return e.gather(signal, e.min(index, e.size(signal.extent(axis) - 1)), axis);
}

namespace {

/// [rows, columns] of scale[row] * f(2 pi row column / n) for the cosine or the sine as f; scale is [rows, 1].
template <typename Wave> Val waves(Emitter &e, DType type, Dim rows, Dim columns, Dim n, const Val &scale) {
  Val table = e.emit<Wave>({anglesOfCircle(e, n, n)});
  Val index = e.mul(e.iota(DType::I64, {rows, 1}, 0), e.iota(DType::I64, {1, columns}, 1));
  return e.cast(e.mul(e.gather(table, e.emit<ModOp>({index, e.size(n)}), 0), scale), type);
}

/// Moves an axis to the end, or the last one to where `axis` was.
Val toLast(Emitter &e, const Val &x, int64_t axis) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != axis)
      order.push_back(i);
  order.push_back(axis);
  return e.transpose(x, order);
}
Val fromLast(Emitter &e, const Val &x, int64_t axis) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i + 1 < x.rank(); ++i)
    order.push_back(i);
  order.insert(order.begin() + axis, x.rank() - 1);
  return e.transpose(x, order);
}

/// The factor of each row, [rows, 1] or a scalar: half a spectrum stands for both halves.
Val rowScale(Emitter &e, Dim rows, Dim n, const FourierKind &kind) {
  Val scale = e.scalar(DType::F64, 1);
  if (kind.scale != FourierKind::Scale::None) {
    Val size = e.size(n, DType::F64);
    scale = e.div(scale, kind.scale == FourierKind::Scale::Root ? e.emit<SqrtOp>({size}) : size);
  }
  if (!kind.inverse || !kind.half)
    return scale;
  Val row = e.iota(DType::I64, {rows, 1}, 0), both = e.mul(row, e.size(2));
  Val twice = e.emit<AndOp>({e.compare(Compare::gt, row, e.size(0)), e.compare(Compare::ne, both, e.size(n))});
  return e.select(twice, e.mul(scale, 2.0), scale);
}

} // namespace

ComplexParts fourier(Emitter &e, const ComplexParts &x, int64_t axis, Dim n, const FourierKind &kind) {
  requireShape(n.valueOr(1) > 0 && n.valueOr(1) <= kMaxFourierMatrix / n.valueOr(1),
               "a transform of length " + n.str() + " is not supported");
  const Dim half = Dim::floorDiv(n, 2) + 1, in = kind.inverse && kind.half ? half : n,
            out = !kind.inverse && kind.half ? half : n;
  Val re = toLast(e, fitted(e, x.re, axis, in), axis), scale = rowScale(e, in, n, kind);
  const DType type = re.dtype();
  Val cosine = waves<CosOp>(e, type, in, out, n, scale), sine = waves<SinOp>(e, type, in, out, n, scale);
  Val real = numpyMatMul(e, re, cosine), imaginary = numpyMatMul(e, re, sine);
  if (!kind.inverse)
    imaginary = e.emit<NegOp>({imaginary});
  if (x.im) {
    Val im = toLast(e, fitted(e, x.im, axis, in), axis), cross = numpyMatMul(e, im, sine);
    real = kind.inverse ? e.sub(real, cross) : e.add(real, cross);
    imaginary = e.add(imaginary, numpyMatMul(e, im, cosine));
  }
  return {fromLast(e, real, axis), kind.inverse && kind.half ? Val() : fromLast(e, imaginary, axis)};
}

} // namespace dmxc::frontend
