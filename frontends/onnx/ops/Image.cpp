//===- Image.cpp - sampling images at computed places ---------------------===//
#include "Window.h"

#include <algorithm>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

enum class Padding { Zeros, Border, Reflection };

struct Sampler {
  NodeContext &c;
  std::string mode;
  Padding padding;
  bool alignCorners;
};

/// Triangle wave between low and high: what reflecting at both ends over and
/// over gives.
Val reflected(Emitter &e, const Val &x, double low, double high) {
  double range = high - low;
  if (range <= 0)
    return e.mul(x, 0.0);
  Val phase = e.emit<ModOp>({e.add(x, -low), e.scalarLike(x, 2 * range)});
  Val mirrored = e.sub(e.scalarLike(x, 2 * range), phase);
  return e.add(e.min(phase, mirrored), low);
}

/// The place on an axis of `size` elements that a grid coordinate in [-1, 1]
/// stands for.
Val place(const Sampler &s, const Val &grid, int64_t size) {
  Emitter &e = s.c.e;
  double n = static_cast<double>(size);
  Val at = s.alignCorners ? e.mul(e.add(grid, 1.0), (n - 1) / 2) : e.mul(e.add(e.mul(e.add(grid, 1.0), n), -1.0), 0.5);
  if (s.mode == "nearest")
    at = e.emit<RoundOp>({at});
  if (s.padding == Padding::Border)
    return e.min(e.max(at, e.scalarLike(at, 0)), e.scalarLike(at, n - 1));
  if (s.padding == Padding::Reflection)
    return s.alignCorners ? reflected(e, at, 0, n - 1) : reflected(e, at, -0.5, n - 0.5);
  return at;
}

/// One tap on one axis: its weight (null for 1), its index, and where it lies
/// inside (null for everywhere).
struct Tap {
  Val weight, index, inside;
};

Tap tapAt(const Sampler &s, const Val &at, const Val &weight, int64_t size) {
  Emitter &e = s.c.e;
  double n = static_cast<double>(size);
  Tap tap{weight, at, Val()};
  if (s.padding == Padding::Reflection)
    tap.index = s.alignCorners ? reflected(e, at, 0, n - 1) : reflected(e, at, -0.5, n - 0.5);
  else if (s.padding == Padding::Zeros)
    tap.inside = e.emit<AndOp>(
        {e.compare(Compare::ge, at, e.scalarLike(at, 0)), e.compare(Compare::le, at, e.scalarLike(at, n - 1))});
  tap.index = e.min(e.max(tap.index, e.scalarLike(at, 0)), e.scalarLike(at, n - 1));
  tap.index = e.cast(tap.index, DType::I64);
  return tap;
}

/// The cubic convolution weight of a tap at distance |d|, as a polynomial in d.
Val cubicWeight(Emitter &e, const Val &d, bool inner) {
  constexpr double a = -0.75;
  if (inner) // (a + 2) d^3 - (a + 3) d^2 + 1
    return e.add(e.mul(e.mul(d, d), e.add(e.mul(d, a + 2), -(a + 3))), 1.0);
  return e.add(e.mul(e.add(e.mul(e.add(e.mul(d, a), -5 * a), d), 8 * a), d), -4 * a);
}

std::vector<Tap> tapsOf(const Sampler &s, const Val &at, int64_t size) {
  Emitter &e = s.c.e;
  if (s.mode == "nearest")
    return {tapAt(s, at, Val(), size)};
  Val base = e.emit<FloorOp>({at}), ratio = e.sub(at, base), rest = e.sub(e.scalarLike(at, 1), ratio);
  auto shifted = [&](double by) { return e.add(base, by); };
  if (s.mode == "linear")
    return {tapAt(s, base, rest, size), tapAt(s, shifted(1), ratio, size)};
  return {tapAt(s, shifted(-1), cubicWeight(e, e.add(ratio, 1.0), false), size),
          tapAt(s, base, cubicWeight(e, ratio, true), size), tapAt(s, shifted(1), cubicWeight(e, rest, true), size),
          tapAt(s, shifted(2), cubicWeight(e, e.add(rest, 1.0), false), size)};
}

/// Sums image elements over all combinations of taps.
struct TapSum {
  const Sampler &s;
  const Val &image; ///< [N, C, elements]
  const std::vector<std::vector<Tap>> &taps;
  Val total;

  void add(size_t axis, const Val &index, const Val &weight, const Val &inside, llvm::ArrayRef<int64_t> spatial) {
    Emitter &e = s.c.e;
    if (axis == taps.size()) {
      Shape row{index.dim(0), 1, index.dim(1)}, full{index.dim(0), image.dim(1), index.dim(1)};
      Val picked =
          e.emit<GatherElementsOp>({image, e.broadcast(e.reshape(index, row), full)}, {e.attr("axis", int64_t(2))});
      if (inside)
        picked = e.select(e.reshape(inside, row), picked, e.scalarLike(picked, 0));
      if (weight)
        picked = e.mul(picked, e.reshape(weight, row));
      total = total ? e.add(total, picked) : picked;
      return;
    }
    for (const Tap &tap : taps[axis]) {
      Val nextIndex = index ? e.add(e.mul(index, static_cast<double>(spatial[axis])), tap.index) : tap.index;
      Val nextWeight = weight && tap.weight ? e.mul(weight, tap.weight) : tap.weight;
      Val nextInside = inside && tap.inside ? e.emit<AndOp>({inside, tap.inside}) : tap.inside;
      add(axis + 1, nextIndex, nextWeight, nextInside, spatial);
    }
  }
};

void importGridSample(NodeContext &c) {
  Val x = c.operand(0), grid = c.operand(1);
  std::string mode = c.attrString("mode", c.since() < 20 ? "bilinear" : "linear"),
              padding = c.attrString("padding_mode", "zeros");
  if (mode == "bilinear" || mode == "bicubic")
    mode = mode.substr(2); // the names before opset 20
  c.requireAttr(mode == "linear" || mode == "cubic" || mode == "nearest", "mode '" + mode + "' is unknown");
  c.requireAttr(padding == "zeros" || padding == "border" || padding == "reflection",
                "padding_mode '" + padding + "' is unknown");
  int64_t axes = x.rank() - 2;
  c.requireShape(axes >= 1 && axes <= 3 && grid.rank() == x.rank() && grid.dim(-1) == axes && grid.dim(0) == x.dim(0),
                 "expected an image of 1 to 3 spatial axes and a grid with as "
                 "many coordinates");
  c.requireShape(std::find(x.shape().begin(), x.shape().end(), 0) == x.shape().end(), "the image is empty");
  Sampler sampler{c, mode,
                  padding == "zeros"    ? Padding::Zeros
                  : padding == "border" ? Padding::Border
                                        : Padding::Reflection,
                  c.attrInt("align_corners", 0) != 0};
  Emitter &e = c.e;
  Val wide = e.cast(grid, DType::F32); // half precision cannot tell the pixels
                                       // of a large image apart
  if (grid.dtype() == DType::F64)
    wide = grid;
  Shape result{x.dim(0), x.dim(1)};
  int64_t points = 1;
  for (int64_t i = 1; i <= axes; ++i) {
    result.push_back(grid.dim(i));
    points *= grid.dim(i);
  }
  std::vector<std::vector<Tap>> taps;
  for (int64_t axis = 0; axis < axes; ++axis) { // the last coordinate belongs to the first spatial axis
    Val coordinate = e.reshape(e.sliceAxis(wide, grid.rank() - 1, axes - 1 - axis, 1), {x.dim(0), points});
    taps.push_back(tapsOf(sampler, place(sampler, coordinate, x.dim(axis + 2)), x.dim(axis + 2)));
  }
  llvm::ArrayRef<int64_t> spatial = x.shape().drop_front(2);
  int64_t elements = 1;
  for (int64_t dim : spatial)
    elements *= dim;
  Val image = e.cast(e.reshape(x, {x.dim(0), x.dim(1), elements}), wide.dtype());
  TapSum sum{sampler, image, taps, Val()};
  sum.add(0, Val(), Val(), Val(), spatial);
  c.result(e.cast(e.reshape(sum.total, result), x.dtype()));
}

void importAffineGrid(NodeContext &c) {
  Val theta = c.operand(0);
  std::optional<std::vector<int64_t>> implied =
      c.declaredShape(); // the grid's: no channels, a last axis of coordinates
  if (implied && implied->size() >= 2) {
    implied->pop_back();
    implied->insert(implied->begin() + 1, NodeContext::kAny);
  }
  std::vector<int64_t> size = c.impliedInts(1, "size", implied);
  bool corners = c.attrInt("align_corners", 0) != 0;
  int64_t axes = static_cast<int64_t>(size.size()) - 2;
  c.requireShape((axes == 2 || axes == 3) && theta.rank() == 3 && theta.dim(1) == axes && theta.dim(2) == axes + 1,
                 "expected a size of 4 or 5 dims and matching affine matrices");
  int64_t points = 1;
  for (int64_t i = 2; i < axes + 2; ++i) {
    c.requireShape(size[i] >= 0 && size[i] < (int64_t(1) << 20), "a size of " + std::to_string(size[i]));
    points *= size[i];
  }
  c.requireShape(points < (int64_t(1) << 26), "the grid is too large");
  std::vector<double> base(points * (axes + 1), 1);
  for (int64_t p = 0; p < points; ++p) {
    int64_t rest = p;
    for (int64_t axis = axes - 1; axis >= 0; --axis) {
      int64_t n = size[axis + 2], i = rest % n;
      rest /= n;
      double at = corners ? (n > 1 ? -1 + 2.0 * static_cast<double>(i) / static_cast<double>(n - 1) : 0)
                          : (2.0 * static_cast<double>(i) + 1) / static_cast<double>(n) - 1;
      base[p * (axes + 1) + (axes - 1 - axis)] = at;
    }
  }
  Val product = c.e.matmul(c.e.floats(theta.dtype(), {points, axes + 1}, base), c.e.transposeLast(theta));
  Shape shape(size.begin(), size.end());
  shape.erase(shape.begin() + 1);
  shape[0] = theta.dim(0);
  shape.push_back(axes);
  c.result(c.e.reshape(product, shape));
}

/// Where in the flat padded image each element of the columns lands.
std::vector<int64_t> columnTargets(int64_t count, int64_t columns, const std::vector<int64_t> &block,
                                   const std::vector<int64_t> &steps, const std::vector<int64_t> &strides,
                                   const std::vector<int64_t> &dilations, const std::vector<int64_t> &padded) {
  size_t axes = block.size();
  std::vector<int64_t> index(count, 0);
  for (int64_t k = 0; k < count; ++k) {
    int64_t inBlock = k / columns, column = k % columns, scale = 1;
    for (size_t i = axes; i-- > 0;) {
      index[k] += (column % steps[i] * strides[i] + inBlock % block[i] * dilations[i]) * scale;
      column /= steps[i];
      inBlock /= block[i];
      scale *= padded[i];
    }
  }
  return index;
}

/// What Col2Im has but its block: sizes an axis.
struct Columns {
  std::vector<int64_t> image, strides, dilations, pads, padded;
  size_t axes() const { return image.size(); }
  int64_t reach(size_t i, int64_t block) const { return dilations[i] * (block - 1) + 1; }
  int64_t steps(size_t i, int64_t block) const { return (padded[i] - reach(i, block)) / strides[i] + 1; }
};

constexpr int64_t kMaxColumns = int64_t(1) << 26;

Columns columnsOf(NodeContext &c) {
  Columns k;
  std::optional<std::vector<int64_t>> implied = c.declaredShape();
  if (implied && implied->size() >= 2)
    implied->erase(implied->begin(), implied->begin() + 2);
  k.image = c.impliedInts(1, "image shape", implied);
  size_t axes = k.image.size();
  c.requireShape(c.operand(0).rank() == 3 && axes >= 1 && c.operand(2).numElements() == static_cast<int64_t>(axes),
                 "expected rank 3 and image and block shapes of one length");
  k.strides = c.attrInts("strides", std::vector<int64_t>(axes, 1));
  k.dilations = c.attrInts("dilations", std::vector<int64_t>(axes, 1));
  k.pads = c.attrInts("pads", std::vector<int64_t>(2 * axes, 0));
  c.requireAttr(k.strides.size() == axes && k.dilations.size() == axes && k.pads.size() == 2 * axes,
                "an attribute has the wrong length");
  for (size_t i = 0; i < axes; ++i) {
    for (int64_t value : {k.image[i], k.strides[i], k.dilations[i]})
      c.requireShape(value > 0 && value < kMaxColumns, "a size, stride or dilation of " + std::to_string(value));
    c.requireShape(k.pads[i] >= 0 && k.pads[i] < kMaxColumns && k.pads[i + axes] >= 0 && k.pads[i + axes] < kMaxColumns,
                   "a pad is out of range");
    k.padded.push_back(k.image[i] + k.pads[i] + k.pads[i + axes]);
  }
  return k;
}

/// Adds columns of blocks into the image they were cut from.
Val imageOf(NodeContext &c, const Columns &k, const std::vector<int64_t> &block) {
  Val x = c.operand(0);
  size_t axes = k.axes();
  int64_t blockSize = 1, columns = 1, area = 1;
  std::vector<int64_t> steps(axes);
  for (size_t i = 0; i < axes; ++i) {
    c.requireShape(block[i] > 0 && block[i] < kMaxColumns, "a block size of " + std::to_string(block[i]));
    c.requireShape(k.padded[i] >= k.reach(i, block[i]), "the block is larger than the image");
    steps[i] = k.steps(i, block[i]);
    blockSize *= block[i];
    columns *= steps[i];
    area *= k.padded[i];
    c.requireShape(blockSize < kMaxColumns && columns < kMaxColumns / blockSize && area < kMaxColumns,
                   "the image is too large");
  }
  c.requireShape(x.dim(1) % blockSize == 0 && x.dim(2) == columns,
                 "expected " + std::to_string(columns) + " columns of blocks of " + std::to_string(blockSize));
  int64_t n = x.dim(0), channels = x.dim(1) / blockSize, count = blockSize * columns;
  std::vector<int64_t> index = columnTargets(count, columns, block, steps, k.strides, k.dilations, k.padded);
  Emitter &e = c.e;
  Shape flat{n, channels, count}, whole{n, channels}, starts{0, 0}, cropped{n, channels}, ones(axes + 2, 1);
  for (size_t i = 0; i < axes; ++i) {
    whole.push_back(k.padded[i]);
    starts.push_back(k.pads[i]);
    cropped.push_back(k.image[i]);
  }
  Val sum = e.emit<ScatterElementsOp>(
      {e.splat(x.dtype(), {n, channels, area}, 0), e.broadcast(e.ints(index), flat), e.reshape(x, flat)},
      {e.attr("axis", int64_t(2)), e.attr("mode", ScatterModeAttr::get(e.context(), ScatterMode::add))});
  return e.slice(e.reshape(sum, whole), starts, cropped, ones);
}

/// The blocks of `size` elements from axis block.size() on that give `columns` columns.
void findBlocks(const Columns &k, int64_t size, int64_t columns, std::vector<int64_t> &block,
                std::vector<std::vector<int64_t>> &found) {
  size_t i = block.size();
  if (i == k.axes()) {
    if (size == 1 && columns == 1)
      found.push_back(block);
    return;
  }
  for (int64_t b = 1; b <= size && k.padded[i] >= k.reach(i, b); ++b) {
    if (size % b || columns % k.steps(i, b))
      continue;
    block.push_back(b);
    findBlocks(k, size / b, columns / k.steps(i, b), block, found);
    block.pop_back();
  }
}

void importCol2Im(NodeContext &c) {
  Columns k = columnsOf(c);
  std::optional<int64_t> channels = c.declaredDim(0, 1);
  Val x = c.operand(0);
  if (c.isConstant(2) || !channels || *channels < 1 || x.dim(1) % *channels || x.dim(2) < 1)
    return c.result(imageOf(c, k, c.constantInts(2, "block shape")));
  // A block known at run time only is one of those that fit the declared channels and the columns.
  std::vector<std::vector<int64_t>> blocks;
  std::vector<int64_t> block;
  findBlocks(k, x.dim(1) / *channels, x.dim(2), block, blocks);
  c.result(c.chosen(c.e.reshape(c.cast64(2), {static_cast<int64_t>(k.axes())}), blocks,
                    [&](const std::vector<int64_t> &candidate) { return imageOf(c, k, candidate); }));
}

/// The image sampled where DeformConv's kernel positions, moved by the offsets, lie: [n * offset groups, channels of a
/// group, kernel elements * results].
Val deformedSamples(NodeContext &c, const Window &w, int64_t groups, DType wide) {
  Emitter &e = c.e;
  Val x = c.operand(0), offset = e.cast(c.operand(2), wide);
  int64_t axes = x.rank() - 2, taps = 1, points = 1, elements = 1;
  Shape kernel = numbersOf(w.kernel), low = numbersOf(w.low);
  for (int64_t i = 0; i < axes; ++i) {
    taps *= kernel[i];
    points *= offset.dim(i + 2);
    elements *= x.dim(i + 2);
  }
  int64_t n = x.dim(0) * groups;
  Val moved = e.reshape(offset, {n, taps, axes, points});
  Sampler sampler{c, "linear", Padding::Zeros, true};
  std::vector<std::vector<Tap>> sampled;
  for (int64_t axis = 0; axis < axes; ++axis) {
    // Without an offset: -pad + stride * result + dilation * kernel element.
    std::vector<double> rest(taps * points);
    int64_t inner = 1, innerOut = 1;
    for (int64_t i = axis + 1; i < axes; ++i) {
      inner *= kernel[i];
      innerOut *= offset.dim(i + 2);
    }
    for (int64_t k = 0; k < taps; ++k)
      for (int64_t p = 0; p < points; ++p)
        rest[k * points + p] = static_cast<double>(-low[axis] + p / innerOut % offset.dim(axis + 2) * w.strides[axis] +
                                                   k / inner % kernel[axis] * w.dilations[axis]);
    Val place =
        e.add(e.reshape(e.sliceAxis(moved, 2, axis, 1), {n, taps, points}), e.floats(wide, {taps, points}, rest));
    sampled.push_back(tapsOf(sampler, e.reshape(place, {n, taps * points}), x.dim(axis + 2)));
  }
  Val image = e.cast(e.reshape(x, {n, x.dim(1) / groups, elements}), wide);
  TapSum sum{sampler, image, sampled, Val()};
  sum.add(0, Val(), Val(), Val(), x.shape().drop_front(2));
  if (!c.has(4))
    return sum.total;
  c.requireShape(c.operand(4).numElements() == n * taps * points, "the mask does not fit the offsets");
  return e.mul(sum.total, e.reshape(e.cast(c.operand(4), wide), {n, 1, taps * points}));
}

/// A product of the weights with the columns that the moved kernels read.
void importDeformConv(NodeContext &c) {
  Emitter &e = c.e;
  Val x = c.operand(0), weights = c.operand(1), offset = c.operand(2);
  int64_t axes = x.rank() - 2, group = c.attrInt("group", 1), offsets = c.attrInt("offset_group", 1);
  c.requireShape(axes >= 1 && axes <= 3 && weights.rank() == x.rank() && offset.rank() == x.rank() &&
                     x.numElements() > 0,
                 "expected input, weights and offsets of one rank from 3 to 5");
  c.requireAttr(group > 0 && offsets > 0 && x.dim(1) % offsets == 0 && x.dim(1) == weights.dim(1) * group &&
                    weights.dim(0) % group == 0,
                "the channels do not divide into the groups");
  Window w = windowOf(c, x.shape(), weights.shape().drop_front(2));
  int64_t taps = 1, points = 1;
  Shape result{x.dim(0), weights.dim(0)}, kernel = numbersOf(w.kernel), low = numbersOf(w.low),
                                          high = numbersOf(w.high);
  for (int64_t i = 0; i < axes; ++i) {
    int64_t room = x.dim(i + 2) + low[i] + high[i] - w.dilations[i] * (kernel[i] - 1) - 1;
    c.requireShape(room >= 0 && offset.dim(i + 2) == room / w.strides[i] + 1,
                   "the offsets do not have the result's spatial shape");
    taps *= kernel[i];
    points *= offset.dim(i + 2);
    result.push_back(offset.dim(i + 2));
  }
  c.requireShape(offset.dim(0) == x.dim(0) && offset.dim(1) == offsets * taps * axes && taps * points < kMaxColumns,
                 "the offsets do not fit the kernel and offset_group");
  DType wide = x.dtype() == DType::F64 ? DType::F64 : DType::F32; // rounded once, at the end
  Val columns = e.reshape(deformedSamples(c, w, offsets, wide), {x.dim(0), group, weights.dim(1) * taps, points});
  Val rows = e.reshape(e.cast(weights, wide), {group, weights.dim(0) / group, weights.dim(1) * taps});
  Val y = e.reshape(e.matmul(rows, columns), result);
  if (Val bias = c.optional(3))
    y = e.add(y, perChannel(e, e.cast(bias, wide), y.rank()));
  c.result(e.cast(y, x.dtype()));
}

} // namespace

std::vector<OpRows> imageOps() {
  using namespace types;
  return {
      {"GridSample", {16, 20, 22}, importGridSample, "align_corners,mode,padding_mode", {Float, Float}},
      {"AffineGrid",
       {20},
       importAffineGrid,
       "align_corners",
       {Float, Index},
       "the size must be known at compile time or declared"},
      {"DeformConv", {19, 22}, importDeformConv, "dilations,group,kernel_shape,offset_group,pads,strides", {Float}},
      {"Col2Im",
       {18},
       importCol2Im,
       "dilations,pads,strides",
       {Number, Index, Index},
       "image and block shape must be known at compile time or the result's declared"},
  };
}

} // namespace dmxc::onnxfe
