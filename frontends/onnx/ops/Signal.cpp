//===- Signal.cpp - Fourier transforms and what surrounds them ------------===//
#include "../NodeContext.h"

#include "frontends/common/ops/Order.h"

#include <algorithm>
#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

/// Transforms are products with a matrix of sines and cosines; longer ones
/// would make it too large.
constexpr int64_t kMaxMatrix = int64_t(1) << 24;

/// 2 pi i / n for i in [0, count), in double.
Val angles(Emitter &e, Dim count, Dim n) {
  return e.div(e.mul(e.iota(DType::F64, {count}, 0), 2 * M_PI), e.size(Dim::max(n, 1), DType::F64));
}

/// [rows, columns] of scale[row] * f(2 pi row column / n) for the cosine or the sine as f; scale is [rows, 1].
template <typename Wave> Val waves(Emitter &e, DType type, Dim rows, Dim columns, Dim n, const Val &scale) {
  Val table = e.emit<Wave>({angles(e, n, n)});
  Val index = e.mul(e.iota(DType::I64, {rows, 1}, 0), e.iota(DType::I64, {1, columns}, 1));
  return e.cast(e.mul(e.gather(table, e.emit<ModOp>({index, e.size(n)}), 0), scale), type);
}

/// Cuts or pads with zeros to `length` along an axis.
Val fitted(Emitter &e, const Val &x, int64_t axis, Dim length) {
  Dims low(x.rank(), 0), high(x.rank(), 0);
  high[axis] = Dim::max(length - x.extent(axis), 0);
  return e.sliceAxis(e.pad(x, e.scalarLike(x, 0), low, high), axis, 0, length);
}

/// Real or imaginary part with the transformed axis last.
Val part(Emitter &e, const Val &x, int64_t axis, int64_t which) {
  Dims shape = x.dims();
  shape.pop_back();
  Val plain = e.reshape(e.sliceAxis(x, x.rank() - 1, which, 1), shape);
  std::vector<int64_t> order;
  for (int64_t i = 0; i < plain.rank(); ++i)
    if (i != axis)
      order.push_back(i);
  order.push_back(axis);
  return e.transpose(plain, order);
}

/// The inverse of `part`: moves the last axis back and appends an axis of
/// size 1.
Val restored(Emitter &e, const Val &value, int64_t axis) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i + 1 < value.rank(); ++i)
    order.push_back(i);
  order.insert(order.begin() + axis, value.rank() - 1);
  Val moved = e.transpose(value, order);
  Dims shape = moved.dims();
  shape.push_back(1);
  return e.reshape(moved, shape);
}

/// The size of a transform without a length of its own, of an axis of `dim` elements.
Dim ownLength(Dim dim, bool inverse, bool onesided) { return inverse && onesided ? (dim - 1) * 2 : dim; }

/// The factor of each row, [rows, 1]: an inverse transform is a mean, and half a spectrum stands for both halves.
Val rowScale(Emitter &e, Dim rows, Dim n, bool inverse, bool halfInput) {
  if (!inverse)
    return e.scalar(DType::F64, 1);
  Val scale = e.div(e.scalar(DType::F64, 1), e.size(n, DType::F64));
  if (!halfInput)
    return scale;
  Val row = e.iota(DType::I64, {rows, 1}, 0), both = e.mul(row, e.size(2));
  Val twice = e.emit<AndOp>({e.compare(Compare::gt, row, e.size(0)), e.compare(Compare::ne, both, e.size(n))});
  return e.select(twice, e.mul(scale, 2.0), scale);
}

/// x [..., m, ..., 1 or 2] along `axis`, cut or padded to fit a transform of size n.
Val transform(NodeContext &c, Val x, int64_t axis, Dim n, bool inverse, bool onesided) {
  Emitter &e = c.e;
  c.requireShape(x.rank() >= 3 && (mayEqual(x.extent(-1), 1) || mayEqual(x.extent(-1), 2)) && axis != x.rank() - 1,
                 "expected a last axis of 1 or 2 (real and imaginary part) and "
                 "another axis to transform");
  if (n.is(0) && !onesided) {
    Dims none = x.dims();
    none[axis] = 0;
    none.back() = 2;
    return e.broadcast(e.scalarLike(x, 0), none);
  }
  c.requireShape(n.valueOr(1) > 0 && n.valueOr(1) <= kMaxMatrix / n.valueOr(1),
                 "a transform of length " + n.str() + " is not supported");
  bool halfInput = inverse && onesided, isReal = x.extent(-1).is(1);
  Dim half = Dim::floorDiv(n, 2) + 1, in = halfInput ? half : n, out = onesided && !inverse ? half : n;
  x = fitted(e, x, axis, in);
  if (!x.extent(-1).isStatic()) { // whether there is an imaginary part is known at run time
    Dims low(x.rank(), 0), high(x.rank(), 0);
    high.back() = 2 - x.extent(-1);
    x = e.pad(x, e.scalarLike(x, 0), low, high);
  }
  Val re = part(e, x, axis, 0), scale = rowScale(e, in, n, inverse, halfInput);
  Val cosine = waves<CosOp>(e, x.dtype(), in, out, n, scale), sine = waves<SinOp>(e, x.dtype(), in, out, n, scale);
  Val real = e.matmul(re, cosine), imaginary = e.matmul(re, sine);
  if (!inverse)
    imaginary = e.emit<NegOp>({imaginary});
  if (!isReal) {
    Val im = part(e, x, axis, 1), cross = e.matmul(im, sine);
    real = inverse ? e.sub(real, cross) : e.add(real, cross);
    imaginary = e.add(imaginary, e.matmul(im, cosine));
  }
  if (halfInput)
    return restored(e, real, axis);
  return e.concat({restored(e, real, axis), restored(e, imaginary, axis)}, x.rank() - 1);
}

/// A transform along the axis that a run names: the tensor becomes [before, axis, after, parts].
Val transformNamed(NodeContext &c, std::optional<Dim> length, bool inverse, bool onesided) {
  Emitter &e = c.e;
  Val x = c.operand(0), one = e.size(1), named = c.namedAxes(2, x.rank());
  c.requireShape(x.rank() >= 3, "expected a last axis of 1 or 2 and another one to transform");
  Val own = e.sizes(x.dims()), isNamed = e.compare(Compare::eq, named, one);
  Val passed = cumulativeSum(e, named, 0); // 1 from the named axis on
  Val before = e.compare(Compare::eq, passed, e.size(0));
  Val isParts = e.compare(Compare::eq, e.iota(DType::I64, {x.rank()}, 0), e.size(x.rank() - 1));
  c.requireAtRun(e.emit<NotOp>({e.emit<AndOp>({isNamed, isParts})}));
  auto productOf = [&](const Val &which) { return e.reduce(Reduction::prod, e.select(which, own, one), {0}, true); };
  Val after = e.emit<NotOp>({e.emit<OrOp>({e.emit<OrOp>({before, isNamed}), isParts})});
  Dims flat = e.dimsOf(e.concat({productOf(before), productOf(isNamed), productOf(after)}, 0));
  flat.push_back(x.extent(-1));
  Dim n = length ? *length : ownLength(flat[1], inverse, onesided);
  Val y = transform(c, e.reshape(x, flat), 1, n, inverse, onesided);
  Dims result = e.dimsOf(e.select(isNamed, e.size(y.extent(1)), own));
  result.back() = y.extent(-1);
  return e.reshape(y, result);
}

/// A transform along an axis known at run time only: those that give the declared shape are computed.
void importRuntimeDFT(NodeContext &c, const Shape &declared, std::optional<Dim> length, bool inverse, bool onesided) {
  Val x = c.operand(0);
  auto sizeAlong = [&](int64_t axis) { return length ? *length : ownLength(x.dim(axis), inverse, onesided); };
  auto axisOf = [](const std::vector<int64_t> &named) {
    return std::find(named.begin(), named.end(), 1) - named.begin();
  };
  auto fits = [&](const std::vector<int64_t> &named) {
    int64_t axis = axisOf(named);
    if (axis == x.rank() - 1)
      return false;
    Dims shape = x.dims();
    Dim n = sizeAlong(axis);
    shape[axis] = onesided && !inverse ? Dim::floorDiv(n, 2) + 1 : n;
    shape.back() = inverse && onesided ? 1 : 2;
    return shape == Dims(declared);
  };
  c.result(c.chosen(c.namedAxes(2, x.rank()), NodeContext::axisSets(x.rank(), 1, fits),
                    [&](const std::vector<int64_t> &named) {
                      return transform(c, x, axisOf(named), sizeAlong(axisOf(named)), inverse, onesided);
                    }));
}

void importDFT(NodeContext &c) {
  Val x = c.operand(0);
  bool inverse = c.attrInt("inverse", 0) != 0, onesided = c.attrInt("onesided", 0) != 0;
  bool named = c.since() >= 20 && c.has(2) && !c.isConstant(2);
  int64_t axis = c.since() < 20 ? c.attrInt("axis", 1) : c.has(2) && !named ? c.constantInt(2, "axis") : -2;
  axis = c.normalizeAxis(axis, x.rank());
  std::optional<Dim> length;
  if (c.has(1)) {
    // Half a spectrum does not tell whether the length was even.
    std::optional<int64_t> implied = named || (onesided && !inverse) ? std::nullopt : c.declaredDim(0, axis);
    length = c.size(1, "length", implied);
    c.requireShape(length->valueOr(1) > 0, "a length of " + length->str());
  }
  if (!named)
    return c.result(
        transform(c, x, axis, length ? *length : ownLength(x.extent(axis), inverse, onesided), inverse, onesided));
  std::optional<Shape> declared = c.declaredShape();
  if (declared && x.hasStaticShape() && (!length || length->isStatic()))
    return importRuntimeDFT(c, *declared, length, inverse, onesided);
  c.result(transformNamed(c, length, inverse, onesided));
}

/// The transforms of `frames` frames that begin `step` elements apart, each `length` long.
Val framesOf(NodeContext &c, const Val &step, Dim frames, Dim length, bool onesided) {
  Emitter &e = c.e;
  Val signal = c.operand(0);
  Val index = e.add(e.mul(e.iota(DType::I64, {frames, 1}, 0), step), e.iota(DType::I64, {1, length}, 1));
  // Frames that are computed for a length that is not the one asked for may reach over the end.
  Val framed = e.gather(signal, e.min(index, e.size(signal.extent(1) - 1)), 1);
  if (Val window = c.optional(2)) {
    c.requireShape(window.rank() == 1 && mayEqual(window.extent(0), length), "the window must have the frame length");
    framed = e.mul(framed, e.reshape(e.expectDims(window, {length}), {length, 1}));
  }
  return transform(c, framed, 2, length, false, onesided);
}

/// Step or length known at run time only, with the number of frames declared.
void importRuntimeSTFT(NodeContext &c, const Shape &declared) {
  Emitter &e = c.e;
  Val signal = c.operand(0);
  c.requireShape(signal.dim(1) > 0 && declared.size() == 4, "expected a signal that is not empty");
  bool onesided = c.attrInt("onesided", 1) != 0;
  Val step = e.reshape(c.cast64(1), {}), one = e.intScalar(DType::I64, 1);
  Val length = c.has(3) ? e.reshape(c.cast64(3), {}) : e.intScalar(DType::I64, c.operand(2).numElements());
  Val room = e.sub(e.intScalar(DType::I64, signal.dim(1)), length);
  c.requireAtRun(e.compare(Compare::ge, step, one));
  c.requireAtRun(e.compare(Compare::ge, room, e.intScalar(DType::I64, 0)));
  c.requireAtRun(
      e.compare(Compare::eq, e.add(e.div(room, e.max(step, one)), one), e.intScalar(DType::I64, declared[1])));
  std::vector<std::vector<int64_t>> lengths; // half a spectrum does not tell whether the length was even
  for (int64_t n :
       onesided ? std::vector<int64_t>{2 * (declared[2] - 1), 2 * declared[2] - 1} : std::vector<int64_t>{declared[2]})
    if (n > 0 && n <= signal.dim(1) && (!c.has(2) || n == c.operand(2).numElements()))
      lengths.push_back({n});
  step = e.max(step, one);
  c.result(c.chosen(e.reshape(length, {1}), lengths,
                    [&](const std::vector<int64_t> &n) { return framesOf(c, step, declared[1], n[0], onesided); }));
}

void importSTFT(NodeContext &c) {
  Val signal = c.operand(0);
  c.requireShape(signal.rank() == 3 && (c.has(2) || c.has(3)),
                 "expected a signal of rank 3 and a window or a frame length");
  if (std::optional<Shape> declared = c.declaredShape(); declared && signal.hasStaticShape() &&
                                                         (!c.has(2) || c.operand(2).hasStaticShape()) &&
                                                         (!c.isConstant(1) || (c.has(3) && !c.isConstant(3))))
    return importRuntimeSTFT(c, *declared);
  Dim step = c.size(1, "frame step"), length = c.has(3) ? c.size(3, "frame length") : c.operand(2).elements();
  Dim room = signal.extent(1) - length;
  c.requireShape(step.valueOr(1) > 0 && length.valueOr(1) > 0 && room.valueOr(0) >= 0,
                 "the frames do not fit the signal");
  Dim frames = Dim::floorDiv(room, step) + 1;
  c.requireShape((frames * length).valueOr(0) <= kMaxMatrix, "there are too many frames");
  c.result(framesOf(c, c.e.size(step), frames, length, c.attrInt("onesided", 1) != 0));
}

/// a - b cos(2 pi i / n) + d cos(4 pi i / n).
void cosineWindow(NodeContext &c, double a, double b, double d) {
  Emitter &e = c.e;
  Dim size = c.size(0, "size", c.declaredDim(0, 0));
  c.requireShape(size.valueOr(0) >= 0 && size.valueOr(0) <= kMaxMatrix, "a size of " + size.str());
  Val angle = angles(e, size, c.attrInt("periodic", 1) ? size : size - 1);
  Val window = e.sub(e.scalar(DType::F64, a), e.mul(e.emit<CosOp>({angle}), b));
  if (d != 0)
    window = e.add(window, e.mul(e.emit<CosOp>({e.mul(angle, 2.0)}), d));
  c.result(e.cast(window, c.attrType("output_datatype", DType::F32)));
}
void importHann(NodeContext &c) { cosineWindow(c, 0.5, 0.5, 0); }
void importHamming(NodeContext &c) { cosineWindow(c, 25.0 / 46, 21.0 / 46, 0); }
void importBlackman(NodeContext &c) { cosineWindow(c, 0.42, 0.5, 0.08); }

/// Triangles of height 1 over the bins of a spectrum, which overlap and are equally wide on the mel scale.
void importMelWeights(NodeContext &c) {
  Emitter &e = c.e;
  Dim bands = c.size(0, "number of bands", c.declaredDim(0, 1)), length = c.size(1, "length");
  c.requireShape(bands.valueOr(1) >= 0 && length.valueOr(1) > 0 && bands.valueOr(1) < 65536 &&
                     length.valueOr(1) < kMaxMatrix / std::max<int64_t>(bands.valueOr(1), 1),
                 "the parameters are out of range");
  Dim bins = Dim::floorDiv(length, 2) + 1;
  auto number = [&](double value) { return e.scalar(DType::F64, value); };
  auto given = [&](int i) { return e.reshape(e.cast(c.operand(i), DType::F64), {}); };
  Val rate = given(2), low = given(3), high = given(4), zero = number(0);
  c.requireAtRun(e.emit<AndOp>({e.compare(Compare::gt, rate, zero), e.compare(Compare::ge, low, zero)}));
  c.requireAtRun(e.compare(Compare::ge, high, low));
  auto mel = [&](const Val &hertz) {
    return e.mul(e.emit<LogOp>({e.add(e.mul(hertz, 1.0 / 700), 1.0)}), 2595 / M_LN10);
  };
  Val first = mel(low), step = e.div(e.sub(mel(high), first), e.size(bands + 2, DType::F64));
  Val at = e.add(e.mul(e.iota(DType::F64, {bands + 2}, 0), step), first);
  Val hertz = e.mul(e.add(e.emit<PowOp>({number(10), e.mul(at, 1.0 / 2595)}), -1.0), 700.0);
  Val edges = e.emit<FloorOp>({e.div(e.mul(hertz, e.size(length + 1, DType::F64)), rate)});
  // The upper edge lies at or below half of the sample rate.
  c.requireAtRun(e.compare(Compare::lt, edges, e.size(bins, DType::F64)));
  auto edge = [&](int64_t i) { return e.reshape(e.sliceAxis(edges, 0, i, bands), {1, bands}); };
  Val from = edge(0), center = edge(1), to = edge(2), bin = e.iota(DType::F64, {bins, 1}, 0), one = number(1);
  Val rising = e.div(e.sub(bin, from), e.max(e.sub(center, from), one));
  Val falling = e.div(e.sub(to, bin), e.max(e.sub(to, center), one));
  Val sides = e.max(e.select(e.compare(Compare::lt, bin, center), rising, falling), zero);
  Val weights = e.select(e.compare(Compare::eq, bin, center), one, sides);
  c.result(e.cast(weights, c.attrType("output_datatype", DType::F32)));
}

} // namespace

std::vector<OpRows> signalOps() {
  using namespace types;
  return {
      {"DFT", {17}, importDFT, "axis,inverse,onesided", {Float, Index}, "a product with a matrix"},
      {"DFT", {20}, importDFT, "inverse,onesided", {Float, Index, Index}, "a product with a matrix"},
      {"STFT", {17}, importSTFT, "onesided", {Float, Index, Float, Index}, "a product with a matrix"},
      {"HannWindow", {17}, importHann, "output_datatype,periodic", {Index}},
      {"HammingWindow", {17}, importHamming, "output_datatype,periodic", {Index}},
      {"BlackmanWindow", {17}, importBlackman, "output_datatype,periodic", {Index}},
      {"MelWeightMatrix", {17}, importMelWeights, "output_datatype", {Index, Index, Index, Float}},
  };
}

} // namespace dmxc::onnxfe
