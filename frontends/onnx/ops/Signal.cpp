//===- Signal.cpp - Fourier transforms and what surrounds them ------------===//
#include "../Differences.h"
#include "../NodeContext.h"

#include "frontends/common/ops/Fourier.h"
#include "frontends/common/ops/Order.h"

#include <algorithm>
#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

/// Real or imaginary part of a tensor whose last axis holds them.
Val part(Emitter &e, const Val &x, int64_t which) {
  Dims shape = x.dims();
  shape.pop_back();
  return e.reshape(e.sliceAxis(x, x.rank() - 1, which, 1), shape);
}
/// The inverse of `part`: appends an axis of size 1.
Val asPart(Emitter &e, const Val &value) {
  Dims shape = value.dims();
  shape.push_back(1);
  return e.reshape(value, shape);
}

/// The size of a transform without a length of its own, of an axis of `dim` elements.
Dim ownLength(Dim dim, bool inverse, bool onesided) { return inverse && onesided ? (dim - 1) * 2 : dim; }

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
  bool isReal = x.extent(-1).is(1);
  if (!x.extent(-1).isStatic()) { // whether there is an imaginary part is known at run time
    Dims low(x.rank(), 0), high(x.rank(), 0);
    high.back() = 2 - x.extent(-1);
    x = e.pad(x, e.scalarLike(x, 0), low, high);
  }
  using Scale = FourierKind::Scale;
  FourierKind kind{inverse, onesided, inverse ? Scale::Mean : Scale::None};
  ComplexParts y = fourier(e, {part(e, x, 0), isReal ? Val() : part(e, x, 1)}, axis, n, kind);
  return y.im ? e.concat({asPart(e, y.re), asPart(e, y.im)}, x.rank() - 1) : asPart(e, y.re);
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
  // Frames that are computed for a length that is not the one asked for may reach over the end.
  Val each = framed(e, c.operand(0), 1, step, frames, length);
  if (Val window = c.optional(2)) {
    c.requireShape(window.rank() == 1 && mayEqual(window.extent(0), length), "the window must have the frame length");
    each = e.mul(each, e.reshape(e.expectDims(window, {length}), {length, 1}));
  }
  return transform(c, each, 2, length, false, onesided);
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
  c.requireShape((frames * length).valueOr(0) <= kMaxFourierMatrix, "there are too many frames");
  c.result(framesOf(c, c.e.size(step), frames, length, c.attrInt("onesided", 1) != 0));
}

/// a - b cos(2 pi i / n) + d cos(4 pi i / n).
void cosineWindow(NodeContext &c, double a, double b, double d) {
  Emitter &e = c.e;
  Dim size = c.size(0, "size", c.declaredDim(0, 0));
  c.requireShape(size.valueOr(0) >= 0 && size.valueOr(0) <= kMaxFourierMatrix, "a size of " + size.str());
  Val angle = anglesOfCircle(e, size, c.attrInt("periodic", 1) != 0 ? size : size - 1);
  Val window = e.sub(e.scalar(DType::F64, a), e.mul(e.emit<CosOp>({angle}), b));
  if (d != 0)
    window = e.add(window, e.mul(e.emit<CosOp>({e.mul(angle, 2.0)}), d));
  bool periodic = c.attrInt("periodic", 1) != 0;
  if (!periodic && size.is(1))
    c.noteDifference("window-one");
  if (!periodic) // of one element: 1, as torch and numpy have it; the formula divides by 0
    window = e.select(e.compare(Compare::eq, e.size(size), e.size(1)), e.scalar(DType::F64, 1), window);
  c.result(e.cast(window, c.attrType("output_datatype", DType::F32)));
}
void importHann(NodeContext &c) { cosineWindow(c, 0.5, 0.5, 0); }
void importHamming(NodeContext &c) {
  c.noteDifference("hamming-coefficients");
  double a = c.isFromPytorch() ? 0.54 : 25.0 / 46; // Hamming's own number, and the rounded one that torch has
  cosineWindow(c, a, 1 - a, 0);
}
void importBlackman(NodeContext &c) { cosineWindow(c, 0.42, 0.5, 0.08); }

/// Triangles of height 1 over the bins of a spectrum, which overlap and are equally wide on the mel scale.
void importMelWeights(NodeContext &c) {
  Emitter &e = c.e;
  Dim bands = c.size(0, "number of bands", c.declaredDim(0, 1)), length = c.size(1, "length");
  c.requireShape(bands.valueOr(1) >= 0 && length.valueOr(1) > 0 && bands.valueOr(1) < 65536 &&
                     length.valueOr(1) < kMaxFourierMatrix / std::max<int64_t>(bands.valueOr(1), 1),
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
      {"DFT", {17}, "..>1", importDFT, "axis,inverse,onesided", {Float, Index}, "a product with a matrix"},
      {"DFT", {20}, "...>1", importDFT, "inverse,onesided", {Float, Index, Index}, "a product with a matrix"},
      {"STFT", {17}, "TUTU>1", importSTFT, "onesided", {Float, Index, Float, Index}, "a product with a matrix"},
      {"HannWindow", {17}, ".>1", importHann, "output_datatype,periodic", {Index}},
      {"HammingWindow", {17}, ".>1", importHamming, "output_datatype,periodic", {Index}},
      {"BlackmanWindow", {17}, ".>1", importBlackman, "output_datatype,periodic", {Index}},
      {"MelWeightMatrix", {17}, "TTTUU>1", importMelWeights, "output_datatype", {Index, Index, Index, Float}},
  };
}

std::vector<Difference> signalDifferences() {
  return {
      {"hamming-coefficients", "HammingWindow", "all", "0.543478 = 25 / 46", "0.543478 = 25 / 46", "0.54",
       "0.543478 = 25 / 46", "files of PyTorch mean what torch does", "0.54", true},
      {"window-one", "HannWindow, HammingWindow, BlackmanWindow", "one element, not periodic", "NaN", "NaN", "1", "1",
       "the formula divides by 0; numpy has 1 too", "", true},
  };
}

} // namespace dmxc::onnxfe
