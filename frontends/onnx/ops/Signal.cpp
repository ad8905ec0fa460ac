//===- Signal.cpp - Fourier transforms and what surrounds them ------------===//
#include "../NodeContext.h"

#include <algorithm>
#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

/// Transforms are products with a matrix of sines and cosines; longer ones
/// would make it too large.
constexpr int64_t kMaxMatrix = int64_t(1) << 24;

/// [rows, columns] of scale(row) * cos or sin of 2 pi row column / n.
template <typename Scale>
Val waves(NodeContext &c, DType type, int64_t rows, int64_t columns, int64_t n, bool sine, Scale scale) {
  std::vector<double> values(rows * columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < columns; ++k) {
      double angle = 2 * M_PI * static_cast<double>(i * k % n) / static_cast<double>(n);
      values[i * columns + k] = scale(i) * (sine ? std::sin(angle) : std::cos(angle));
    }
  return c.e.floats(type, {rows, columns}, values);
}

/// Cuts or pads with zeros to `length` along an axis.
Val fitted(Emitter &e, const Val &x, int64_t axis, int64_t length) {
  if (x.dim(axis) > length)
    return e.sliceAxis(x, axis, 0, length);
  Shape low(x.rank(), 0), high(x.rank(), 0);
  high[axis] = length - x.dim(axis);
  return e.pad(x, e.scalarLike(x, 0), low, high);
}

/// Real or imaginary part with the transformed axis last; null when there is no
/// imaginary part.
Val part(Emitter &e, const Val &x, int64_t axis, int64_t which) {
  if (which >= x.dim(-1))
    return Val();
  Shape shape(x.shape().begin(), x.shape().end() - 1);
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
  Shape shape(moved.shape().begin(), moved.shape().end());
  shape.push_back(1);
  return e.reshape(moved, shape);
}

/// x [..., n, ..., 1 or 2] along `axis`. With `length` < 0: the axis' own
/// length.
Val transform(NodeContext &c, Val x, int64_t axis, int64_t length, bool inverse, bool onesided) {
  Emitter &e = c.e;
  c.requireShape(x.rank() >= 3 && (x.dim(-1) == 1 || x.dim(-1) == 2) && axis != x.rank() - 1,
                 "expected a last axis of 1 or 2 (real and imaginary part) and "
                 "another axis to transform");
  bool halfInput = inverse && onesided;
  int64_t n = length >= 0 ? length : halfInput ? 2 * (x.dim(axis) - 1) : x.dim(axis);
  c.requireShape(n > 0 && n <= kMaxMatrix / n, "a transform of length " + std::to_string(n) + " is not supported");
  int64_t in = halfInput ? n / 2 + 1 : n, out = onesided && !inverse ? n / 2 + 1 : n;
  x = fitted(e, x, axis, in);
  Val re = part(e, x, axis, 0), im = part(e, x, axis, 1);
  auto scale = [&](int64_t row) { // the half spectrum stands for both halves
    bool twice = halfInput && row != 0 && !(n % 2 == 0 && row == n / 2);
    return (inverse ? 1.0 / static_cast<double>(n) : 1.0) * (twice ? 2 : 1);
  };
  Val cosine = waves(c, x.dtype(), in, out, n, false, scale), sine = waves(c, x.dtype(), in, out, n, true, scale);
  Val real = e.matmul(re, cosine), imaginary = e.matmul(re, sine);
  if (!inverse)
    imaginary = e.emit<NegOp>({imaginary});
  if (im) {
    Val cross = e.matmul(im, sine);
    real = inverse ? e.sub(real, cross) : e.add(real, cross);
    imaginary = e.add(imaginary, e.matmul(im, cosine));
  }
  if (halfInput)
    return restored(e, real, axis);
  return e.concat({restored(e, real, axis), restored(e, imaginary, axis)}, x.rank() - 1);
}

/// A transform along an axis known at run time only: those that give the declared shape are computed.
void importRuntimeDFT(NodeContext &c, const Shape &declared, int64_t length, bool inverse, bool onesided) {
  Val x = c.operand(0);
  auto fits = [&](const std::vector<int64_t> &named) {
    int64_t axis = std::find(named.begin(), named.end(), 1) - named.begin();
    if (axis == x.rank() - 1)
      return false;
    Shape shape(x.shape().begin(), x.shape().end());
    bool half = inverse && onesided;
    int64_t n = length >= 0 ? length : half ? 2 * (shape[axis] - 1) : shape[axis];
    shape[axis] = onesided && !inverse ? n / 2 + 1 : n;
    shape.back() = half ? 1 : 2;
    return shape == declared;
  };
  c.result(c.chosen(c.namedAxes(2, x.rank()), NodeContext::axisSets(x.rank(), 1, fits),
                    [&](const std::vector<int64_t> &named) {
                      int64_t axis = std::find(named.begin(), named.end(), 1) - named.begin();
                      return transform(c, x, axis, length, inverse, onesided);
                    }));
}

void importDFT(NodeContext &c) {
  Val x = c.operand(0);
  bool inverse = c.attrInt("inverse", 0) != 0, onesided = c.attrInt("onesided", 0) != 0;
  if (std::optional<Shape> declared = c.declaredShape(); c.since() >= 20 && c.has(2) && !c.isConstant(2) && declared)
    return importRuntimeDFT(c, *declared, c.has(1) ? c.constantInt(1, "length") : -1, inverse, onesided);
  int64_t axis = c.since() >= 20 ? (c.has(2) ? c.constantInt(2, "axis") : -2) : c.attrInt("axis", 1);
  // Half a spectrum does not tell whether the length was even.
  std::optional<int64_t> implied =
      onesided && !inverse ? std::nullopt : c.declaredDim(0, c.normalizeAxis(axis, x.rank()));
  int64_t length = c.has(1) ? c.impliedInt(1, "length", implied) : -1;
  c.requireShape(!c.has(1) || length > 0, "a length of " + std::to_string(length));
  c.result(transform(c, x, c.normalizeAxis(axis, x.rank()), length, inverse, onesided));
}

/// The transforms of `frames` frames that begin `step` elements apart, each `length` long.
Val framesOf(NodeContext &c, const Val &step, int64_t frames, int64_t length, bool onesided) {
  Emitter &e = c.e;
  Val signal = c.operand(0);
  Val index = e.add(e.mul(e.iota(DType::I64, {frames, 1}, 0), step), e.iota(DType::I64, {1, length}, 1));
  // Frames that are computed for a length that is not the one asked for may reach over the end.
  Val framed = e.gather(signal, e.min(index, e.intScalar(DType::I64, signal.dim(1) - 1)), 1);
  if (Val window = c.optional(2)) {
    c.requireShape(window.rank() == 1 && window.dim(0) == length, "the window must have the frame length");
    framed = e.mul(framed, e.reshape(window, {length, 1}));
  }
  return transform(c, framed, 2, -1, false, onesided);
}

/// Step or length known at run time only, with the number of frames declared.
void importRuntimeSTFT(NodeContext &c, const Shape &declared) {
  Emitter &e = c.e;
  Val signal = c.operand(0);
  c.requireShape(signal.rank() == 3 && signal.dim(1) > 0 && declared.size() == 4 && (c.has(2) || c.has(3)),
                 "expected a signal of rank 3 and a window or a frame length");
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
  if (std::optional<Shape> declared = c.declaredShape();
      declared && (!c.isConstant(1) || (c.has(3) && !c.isConstant(3))))
    return importRuntimeSTFT(c, *declared);
  int64_t step = c.constantInt(1, "frame step");
  c.requireShape(signal.rank() == 3 && (c.has(2) || c.has(3)),
                 "expected a signal of rank 3 and a window or a frame length");
  int64_t length = c.has(3) ? c.constantInt(3, "frame length") : c.operand(2).numElements();
  c.requireShape(step > 0 && length > 0 && length <= signal.dim(1), "the frames do not fit the signal");
  int64_t frames = (signal.dim(1) - length) / step + 1;
  c.requireShape(frames <= kMaxMatrix / length, "there are too many frames");
  c.result(framesOf(c, c.e.intScalar(DType::I64, step), frames, length, c.attrInt("onesided", 1) != 0));
}

/// a - b cos(2 pi i / n) + d cos(4 pi i / n).
void cosineWindow(NodeContext &c, double a, double b, double d) {
  int64_t size = c.impliedInt(0, "size", c.declaredDim(0, 0));
  c.requireShape(size >= 0 && size <= kMaxMatrix, "a size of " + std::to_string(size));
  double n = static_cast<double>(c.attrInt("periodic", 1) ? size : size - 1);
  std::vector<double> values(size);
  for (int64_t i = 0; i < size; ++i) {
    double angle = n == 0 ? 0 : 2 * M_PI * static_cast<double>(i) / n;
    values[i] = a - b * std::cos(angle) + d * std::cos(2 * angle);
  }
  c.result(c.e.floats(c.attrType("output_datatype", DType::F32), {size}, values));
}
void importHann(NodeContext &c) { cosineWindow(c, 0.5, 0.5, 0); }
void importHamming(NodeContext &c) { cosineWindow(c, 25.0 / 46, 21.0 / 46, 0); }
void importBlackman(NodeContext &c) { cosineWindow(c, 0.42, 0.5, 0.08); }

void importMelWeights(NodeContext &c) {
  int64_t bands = c.constantInt(0, "number of bands"), length = c.constantInt(1, "length"),
          rate = c.constantInt(2, "sample rate");
  double low = c.constantDouble(3, "lower edge"), high = c.constantDouble(4, "upper edge");
  c.requireShape(bands > 0 && length > 0 && rate > 0 && bands < 65536 && length < kMaxMatrix / bands && low >= 0 &&
                     high >= low,
                 "the parameters are out of range");
  int64_t bins = length / 2 + 1;
  auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  double step = (mel(high) - mel(low)) / static_cast<double>(bands + 2);
  std::vector<int64_t> edge(bands + 2);
  for (int64_t i = 0; i < bands + 2; ++i) {
    double hertz = 700 * (std::pow(10, (static_cast<double>(i) * step + mel(low)) / 2595) - 1);
    edge[i] = static_cast<int64_t>(std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate)));
    c.requireShape(edge[i] < bins, "the upper edge lies above half of the sample rate");
  }
  std::vector<double> values(bins * bands, 0);
  for (int64_t band = 0; band < bands; ++band) {
    int64_t from = edge[band], center = edge[band + 1], to = edge[band + 2];
    if (center == from)
      values[center * bands + band] = 1;
    for (int64_t j = from; center > from && j <= center; ++j)
      values[j * bands + band] = static_cast<double>(j - from) / static_cast<double>(center - from);
    for (int64_t j = center; j < to; ++j)
      values[j * bands + band] = static_cast<double>(to - j) / static_cast<double>(to - center);
  }
  c.result(c.e.floats(c.attrType("output_datatype", DType::F32), {bins, bands}, values));
}

} // namespace

std::vector<OpRows> signalOps() {
  using namespace types;
  const char *constant = "the size must be known at compile time or declared";
  return {
      {"DFT", {17}, importDFT, "axis,inverse,onesided", {Float, Index}, "a product with a constant matrix"},
      {"DFT",
       {20},
       importDFT,
       "inverse,onesided",
       {Float, Index, Index},
       "a product with a constant matrix; the axis must be known at compile "
       "time or the shape declared"},
      {"STFT",
       {17},
       importSTFT,
       "onesided",
       {Float, Index, Float, Index},
       "frame step and length must be known at compile time or the shape declared"},
      {"HannWindow", {17}, importHann, "output_datatype,periodic", {Index}, constant},
      {"HammingWindow", {17}, importHamming, "output_datatype,periodic", {Index}, constant},
      {"BlackmanWindow", {17}, importBlackman, "output_datatype,periodic", {Index}, constant},
      {"MelWeightMatrix",
       {17},
       importMelWeights,
       "output_datatype",
       {Index, Index, Index, Float},
       "the operands must be known at compile time"},
  };
}

} // namespace dmxc::onnxfe
