//===- Image.cpp - sampling images at computed places ---------------------===//
#include "../Differences.h"
#include "Window.h"

#include "frontends/common/ops/Formulas.h"
#include "frontends/common/ops/Order.h"
#include "frontends/common/ops/vision/Deformed.h"
#include "frontends/common/ops/vision/GridSample.h"

#include <algorithm>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

void importGridSample(NodeContext &c) {
  Val x = c.operand(0), grid = c.operand(1);
  std::string mode = c.attrString("mode", c.since() < 20 ? "bilinear" : "linear"),
              padding = c.attrString("padding_mode", "zeros");
  if (mode == "bilinear" || mode == "bicubic")
    mode = mode.substr(2); // the names before opset 20
  c.requireAttr(mode == "linear" || mode == "cubic" || mode == "nearest", "mode '" + mode + "' is unknown");
  c.requireAttr(padding == "zeros" || padding == "border" || padding == "reflection",
                "padding_mode '" + padding + "' is unknown");
  Sampler sampler{c.e, mode,
                  padding == "zeros"    ? Padding::Zeros
                  : padding == "border" ? Padding::Border
                                        : Padding::Reflection,
                  c.attrInt("align_corners", 0) != 0};
  if (mode == "cubic" && padding == "border")
    c.noteDifference("gridsample-cubic-border");
  c.result(gridSample(sampler, x, grid));
}

void importAffineGrid(NodeContext &c) {
  Emitter &e = c.e;
  Val theta = c.operand(0);
  std::optional<std::vector<int64_t>> implied =
      c.declaredShape(); // the grid's: no channels, a last axis of coordinates
  if (implied && implied->size() >= 2) {
    implied->pop_back();
    implied->insert(implied->begin() + 1, NodeContext::kAny);
  }
  Dims size = c.sizes(1, "size", implied, c.declaredRank());
  bool corners = c.attrInt("align_corners", 0) != 0;
  int64_t axes = static_cast<int64_t>(size.size()) - 2;
  c.requireShape((axes == 2 || axes == 3) && theta.rank() == 3 && mayEqual(theta.extent(1), axes) &&
                     mayEqual(theta.extent(2), axes + 1),
                 "expected a size of 4 or 5 dims and matching affine matrices");
  Dims spatial(llvm::ArrayRef<Dim>(size).drop_front(2)), shape{theta.extent(0)};
  for (Dim n : spatial)
    c.requireShape(n.valueOr(0) >= 0 && n.valueOr(0) < (int64_t(1) << 20), "a size of " + n.str());
  if (corners && llvm::any_of(spatial, [](Dim n) { return n.is(1); }))
    c.noteDifference("affinegrid-one");
  Dim points = product(spatial);
  c.requireShape(points.valueOr(0) < (int64_t(1) << 26), "the grid is too large");
  std::vector<Val> base; // x first; a last column of ones
  for (int64_t axis = axes; axis-- > 0;) {
    Dim n = spatial[axis];
    Val twice = e.mul(e.iota(DType::F64, {n}, 0), 2.0);
    // From -1 to 1: at the first and last element, or at the borders around them.
    Val at = corners ? e.div(e.sub(twice, e.size(n - 1, DType::F64)), e.size(Dim::max(n - 1, 1), DType::F64))
                     : e.div(e.sub(twice, e.size(n - 1, DType::F64)), e.size(n, DType::F64));
    base.push_back(e.reshape(e.broadcast(alongAxis(e, at, axis, axes), spatial), {points, 1}));
  }
  base.push_back(e.splat(DType::F64, {points, 1}, 1));
  Val grid = e.matmul(e.cast(e.concat(base, 1), theta.dtype()), e.transposeLast(theta));
  shape.append(spatial.begin(), spatial.end());
  shape.push_back(axes);
  c.result(e.reshape(grid, shape));
}

/// What Col2Im has but its block: sizes an axis.
struct Columns {
  Dims image, padded;
  std::vector<int64_t> strides, dilations, pads;
  size_t axes() const { return image.size(); }
  Dim reach(size_t i, Dim block) const { return (block - 1) * dilations[i] + 1; }
  Dim steps(size_t i, Dim block) const { return Dim::floorDiv(padded[i] - reach(i, block), strides[i]) + 1; }
};

constexpr int64_t kMaxColumns = int64_t(1) << 26;

Columns columnsOf(NodeContext &c) {
  Columns k;
  std::optional<std::vector<int64_t>> implied = c.declaredShape();
  if (implied && implied->size() >= 2)
    implied->erase(implied->begin(), implied->begin() + 2);
  std::optional<int64_t> length;
  if (std::optional<int64_t> rank = c.declaredRank())
    length = *rank - 2;
  k.image = c.sizes(1, "image shape", implied, length);
  size_t axes = k.image.size();
  c.requireShape(c.operand(0).rank() == 3 && axes >= 1 && mayEqual(c.operand(2).elements(), static_cast<int64_t>(axes)),
                 "expected rank 3 and image and block shapes of one length");
  k.strides = c.attrInts("strides", std::vector<int64_t>(axes, 1));
  k.dilations = c.attrInts("dilations", std::vector<int64_t>(axes, 1));
  k.pads = c.attrInts("pads", std::vector<int64_t>(2 * axes, 0));
  c.requireAttr(k.strides.size() == axes && k.dilations.size() == axes && k.pads.size() == 2 * axes,
                "an attribute has the wrong length");
  for (size_t i = 0; i < axes; ++i) {
    for (int64_t value : {k.image[i].valueOr(1), k.strides[i], k.dilations[i]})
      c.requireShape(value > 0 && value < kMaxColumns, "a size, stride or dilation of " + std::to_string(value));
    c.requireShape(k.pads[i] >= 0 && k.pads[i] < kMaxColumns && k.pads[i + axes] >= 0 && k.pads[i + axes] < kMaxColumns,
                   "a pad is out of range");
    k.padded.push_back(k.image[i] + k.pads[i] + k.pads[i + axes]);
  }
  return k;
}

/// Where in the flat padded image each element of the columns lands: block elements times columns.
Val columnTargets(Emitter &e, const Columns &k, const Dims &block, const Dims &steps) {
  size_t axes = k.axes();
  Val index;
  Dim scale = 1;
  for (size_t i = axes; i-- > 0;) {
    auto part = [&](Dim count, int64_t by, size_t axis) {
      return alongAxis(e, e.mul(e.mul(e.iota(DType::I64, {count}, 0), e.size(by)), e.size(scale)), axis, 2 * axes);
    };
    Val at = e.add(part(block[i], k.dilations[i], i), part(steps[i], k.strides[i], axes + i));
    index = index ? e.add(index, at) : at;
    scale *= k.padded[i];
  }
  return e.reshape(index, {index.elements()});
}

/// Adds columns of blocks into the image they were cut from.
Val imageOf(NodeContext &c, const Columns &k, const Dims &block) {
  Val x = c.operand(0);
  size_t axes = k.axes();
  Dims steps;
  for (size_t i = 0; i < axes; ++i) {
    c.requireShape(block[i].valueOr(1) > 0 && block[i].valueOr(1) < kMaxColumns, "a block size of " + block[i].str());
    c.requireShape((k.padded[i] - k.reach(i, block[i])).valueOr(0) >= 0, "the block is larger than the image");
    steps.push_back(k.steps(i, block[i]));
  }
  Dim blockSize = product(block), columns = product(steps), area = product(k.padded), count = blockSize * columns;
  c.requireShape(count.valueOr(0) < kMaxColumns && area.valueOr(0) < kMaxColumns, "the image is too large");
  Dim n = x.extent(0), channels = Dim::floorDiv(x.extent(1), blockSize);
  c.requireShape(mayEqual(x.dims(), Dims{n, channels * blockSize, columns}),
                 "expected " + columns.str() + " columns of blocks of " + blockSize.str());
  Emitter &e = c.e;
  x = e.expectDims(x, {n, channels * blockSize, columns});
  Dims flat{n, channels, count}, whole{n, channels}, starts{0, 0}, cropped{n, channels};
  for (size_t i = 0; i < axes; ++i) {
    whole.push_back(k.padded[i]);
    starts.push_back(k.pads[i]);
    cropped.push_back(k.image[i]);
  }
  Val zeros = e.splat(x.dtype(), {n, channels, area}, 0);
  Val targets = e.broadcast(columnTargets(e, k, block, steps), flat);
  Val sum = scatterElements(e, zeros, targets, e.reshape(x, flat), 2, ScatterMode::add);
  return e.slice(e.reshape(sum, whole), starts, cropped, Shape(axes + 2, 1));
}

/// The blocks of `size` elements from axis block.size() on that give `columns` columns; the image's dims are numbers.
void findBlocks(const Columns &k, int64_t size, int64_t columns, std::vector<int64_t> &block,
                std::vector<std::vector<int64_t>> &found) {
  size_t i = block.size();
  if (i == k.axes()) {
    if (size == 1 && columns == 1)
      found.push_back(block);
    return;
  }
  for (int64_t b = 1; b <= size && (k.padded[i] - k.reach(i, b)).neverNegative(); ++b) {
    int64_t steps = *k.steps(i, b).known();
    if (size % b || columns % steps)
      continue;
    block.push_back(b);
    findBlocks(k, size / b, columns / steps, block, found);
    block.pop_back();
  }
}

void importCol2Im(NodeContext &c) {
  Columns k = columnsOf(c);
  std::optional<int64_t> channels = c.declaredDim(0, 1);
  Val x = c.operand(0);
  std::optional<int64_t> size = x.extent(1).known(), columns = x.extent(2).known();
  bool sized = channels && *channels > 0 && size && *size % *channels == 0 && columns && *columns > 0;
  if (c.isConstant(2) || !sized || !product(k.padded).isStatic())
    return c.result(imageOf(c, k, c.sizes(2, "block shape", std::nullopt, k.axes())));
  // A block known at run time only is one of those that fit the declared channels and the columns.
  std::vector<std::vector<int64_t>> blocks;
  std::vector<int64_t> block;
  findBlocks(k, *size / *channels, *columns, block, blocks);
  c.result(c.chosen(c.e.reshape(c.cast64(2), {static_cast<int64_t>(k.axes())}), blocks,
                    [&](const std::vector<int64_t> &candidate) { return imageOf(c, k, Dims(candidate)); }));
}

void importDeformConv(NodeContext &c) {
  Val x = c.operand(0), weights = c.operand(1);
  c.requireShape(weights.rank() == x.rank() && x.rank() >= 3, "expected input and weights of one rank from 3 to 5");
  Window w = windowOf(c, x.dims(), Dims(llvm::ArrayRef<Dim>(weights.dims()).drop_front(2)));
  DeformedConvolution d{weights, c.operand(2),          c.has(4) ? c.operand(4) : Val(), c.optional(3),
                        w,       c.attrInt("group", 1), c.attrInt("offset_group", 1)};
  c.result(deformedConvolution(c.e, x, d));
}

} // namespace

std::vector<OpRows> imageOps() {
  using namespace types;
  return {
      {"GridSample", {16, 20, 22}, "..>1", importGridSample, "align_corners,mode,padding_mode", {Float, Float}},
      {"AffineGrid",
       {20},
       "..>1",
       importAffineGrid,
       "align_corners",
       {Float, Index},
       "the size must be known at compile time or declared"},
      {"DeformConv",
       {19, 22},
       "TTTTT>1",
       importDeformConv,
       "dilations,group,kernel_shape,offset_group,pads,strides",
       {Float}},
      {"Col2Im",
       {18},
       "...>1",
       importCol2Im,
       "dilations,pads,strides",
       {Number, Index, Index},
       "image and block shape must be known at compile time or the result's declared"},
  };
}

std::vector<Difference> imageDifferences() {
  return {
      {"gridsample-cubic-border", "GridSample", "mode cubic and padding border",
       "clamps the point among the sixteen pixels", "clamps each pixel", "clamps each pixel", "clamps each pixel",
       "those that run models agree", "", true},
      {"gridsample-nan", "GridSample", "padding border or reflection, coordinates that are NaN or infinite", "fails",
       "the first element for all of them", "the first element for NaN and -infinity, the last for infinity",
       "the first element for NaN and -infinity, the last for infinity", "as torch"},
      {"affinegrid-one", "AffineGrid", "align_corners and an axis of one element", "-1", "1", "0", "0",
       "the middle, as torch", "", true},
  };
}

} // namespace dmxc::onnxfe
