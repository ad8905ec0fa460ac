//===- Shape.cpp - operators that give a tensor another shape -------------===//
#include "../NodeContext.h"

#include <numeric>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

Shape shapeOf(const Val &x) { return Shape(x.shape().begin(), x.shape().end()); }

void importReshape(NodeContext &c) {
  Val x = c.operand(0);
  Shape wanted = c.since() == 1 ? c.attrInts("shape", {}) : c.constantInts(1, "new shape");
  bool allowZero = c.attrInt("allowzero", 0) != 0;
  int64_t known = 1, unknown = -1;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == 0 && !allowZero) {
      c.requireShape(static_cast<int64_t>(i) < x.rank(), "the new shape copies dim " + std::to_string(i) +
                                                             " of a tensor of rank " + std::to_string(x.rank()));
      wanted[i] = x.dim(i);
    }
    c.requireShape(wanted[i] >= -1, "the new shape has the dim " + std::to_string(wanted[i]));
    if (wanted[i] == -1) {
      c.requireShape(unknown < 0, "the new shape has more than one -1");
      unknown = i;
    } else {
      c.requireShape(!wanted[i] || known < (int64_t(1) << 46) / wanted[i], "the new shape is too large");
      known *= wanted[i];
    }
  }
  if (unknown >= 0) {
    c.requireShape(known > 0 && x.numElements() % known == 0,
                   std::to_string(x.numElements()) + " elements do not divide into groups of " + std::to_string(known));
    wanted[unknown] = x.numElements() / known;
  }
  c.result(c.e.reshape(x, wanted));
}

void importFlatten(NodeContext &c) {
  Val x = c.operand(0);
  int64_t axis = c.attrInt("axis", 1);
  c.requireAttr(axis >= -x.rank() && axis <= x.rank(),
                "axis " + std::to_string(axis) + " is outside the rank " + std::to_string(x.rank()));
  if (axis < 0)
    axis += x.rank();
  auto product = [&](int64_t from, int64_t to) {
    return std::accumulate(x.shape().begin() + from, x.shape().begin() + to, int64_t(1), std::multiplies<>());
  };
  c.result(c.e.reshape(x, {product(0, axis), product(axis, x.rank())}));
}

/// Axes as an attribute (before opset 13) or as an operand.
std::optional<std::vector<int64_t>> axesOf(NodeContext &c) {
  if (c.since() < 13)
    return c.attrInts("axes");
  if (!c.has(1))
    return std::nullopt;
  return c.constantInts(1, "axes");
}

void importSqueeze(NodeContext &c) {
  Val x = c.operand(0);
  std::optional<std::vector<int64_t>> axes = axesOf(c);
  if (axes)
    axes = c.normalizeAxes(*axes, x.rank());
  Shape shape;
  for (int64_t i = 0; i < x.rank(); ++i) {
    bool named = axes && std::find(axes->begin(), axes->end(), i) != axes->end();
    c.requireShape(!named || x.dim(i) == 1,
                   "axis " + std::to_string(i) + " has " + std::to_string(x.dim(i)) + " elements, not 1");
    if (axes ? !named : x.dim(i) != 1)
      shape.push_back(x.dim(i));
  }
  c.result(c.e.reshape(x, shape));
}

void importUnsqueeze(NodeContext &c) {
  Val x = c.operand(0);
  std::optional<std::vector<int64_t>> given = axesOf(c);
  c.requireAttr(given.has_value(), "the axes are missing");
  int64_t rank = x.rank() + given->size();
  std::vector<int64_t> axes = c.normalizeAxes(*given, rank);
  c.requireAttr(axes.size() == given->size(), "an axis stands twice");
  Shape shape;
  for (int64_t i = 0, from = 0; i < rank; ++i)
    shape.push_back(std::find(axes.begin(), axes.end(), i) != axes.end() ? 1 : x.dim(from++));
  c.result(c.e.reshape(x, shape));
}

void importTranspose(NodeContext &c) {
  Val x = c.operand(0);
  std::vector<int64_t> reversed(x.rank());
  for (int64_t i = 0; i < x.rank(); ++i)
    reversed[i] = x.rank() - 1 - i;
  c.result(c.e.transpose(x, c.attrInts("perm", reversed)));
}

void importConcat(NodeContext &c) {
  std::vector<Val> values;
  for (int i = 0; i < c.numOperands(); ++i)
    values.push_back(c.operand(i));
  if (values.empty())
    fail("op-operand", "operand 0 is missing");
  int64_t axis = c.since() == 1 ? c.attrInt("axis", 1) : c.attrInt("axis");
  c.result(c.e.concat(values, c.normalizeAxis(axis, values.front().rank())));
}

void importShape(NodeContext &c) {
  Val x = c.operand(0);
  auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + x.rank() : at, 0, x.rank()); };
  int64_t start = clamp(c.attrInt("start", 0)), end = clamp(c.attrInt("end", x.rank()));
  Shape shape = shapeOf(x);
  c.result(c.e.ints(start < end ? Shape(shape.begin() + start, shape.begin() + end) : Shape()));
}

void importSize(NodeContext &c) { c.result(c.e.intScalar(DType::I64, c.operand(0).numElements())); }

void importExpand(NodeContext &c) {
  Val x = c.operand(0);
  Shape wanted = c.constantInts(1, "new shape");
  for (int64_t dim : wanted)
    c.requireShape(dim >= 0, "the new shape has the dim " + std::to_string(dim));
  auto joined = broadcastShapes(x.shape(), wanted);
  c.requireShape(joined.has_value(), x.describe() + " does not broadcast with " + shapeString(wanted));
  c.result(c.e.broadcast(x, *joined));
}

/// Repeats whole axes: each axis is split off, broadcast and joined again.
Val tile(NodeContext &c, const Val &x, const std::vector<int64_t> &repeats) {
  Shape split, wide, joined;
  for (int64_t i = 0; i < x.rank(); ++i) {
    c.requireShape(repeats[i] >= 0 && repeats[i] < (int64_t(1) << 40),
                   "a repeat count of " + std::to_string(repeats[i]));
    if (repeats[i] != 1) {
      split.push_back(1);
      wide.push_back(repeats[i]);
    }
    split.push_back(x.dim(i));
    wide.push_back(x.dim(i));
    c.requireShape(!repeats[i] || x.dim(i) < (int64_t(1) << 46) / repeats[i], "the result is too large");
    joined.push_back(x.dim(i) * repeats[i]);
  }
  return c.e.reshape(c.e.broadcast(c.e.reshape(x, split), wide), joined);
}

void importTile1(NodeContext &c) {
  Val x = c.operand(0);
  std::vector<int64_t> repeats(x.rank(), 1);
  // Version 1 takes both as tensors of the operand's type.
  int64_t axis = c.normalizeAxis(static_cast<int64_t>(c.constantDouble(2, "axis")), x.rank());
  repeats[axis] = static_cast<int64_t>(c.constantDouble(1, "tile count"));
  c.result(tile(c, x, repeats));
}

void importTile(NodeContext &c) {
  Val x = c.operand(0);
  std::vector<int64_t> repeats = c.constantInts(1, "repeats");
  c.requireShape(static_cast<int64_t>(repeats.size()) == x.rank(),
                 std::to_string(repeats.size()) + " repeats for rank " + std::to_string(x.rank()));
  c.result(tile(c, x, repeats));
}

void importDepthToSpace(NodeContext &c) {
  Val x = c.operand(0);
  int64_t block = c.attrInt("blocksize");
  std::string mode = c.attrString("mode", "DCR");
  c.requireAttr(mode == "DCR" || mode == "CRD", "mode must be 'DCR' or 'CRD', not '" + mode + "'");
  c.requireShape(x.rank() == 4 && block > 0 && block < 65536 && x.dim(1) % (block * block) == 0,
                 "expected rank 4 and channels divisible by blocksize squared");
  int64_t n = x.dim(0), depth = x.dim(1) / (block * block), h = x.dim(2), w = x.dim(3);
  Val split =
      mode == "DCR" ? c.e.reshape(x, {n, block, block, depth, h, w}) : c.e.reshape(x, {n, depth, block, block, h, w});
  Val moved = mode == "DCR" ? c.e.transpose(split, {0, 3, 4, 1, 5, 2}) : c.e.transpose(split, {0, 1, 4, 2, 5, 3});
  c.result(c.e.reshape(moved, {n, depth, h * block, w * block}));
}

void importSpaceToDepth(NodeContext &c) {
  Val x = c.operand(0);
  int64_t block = c.attrInt("blocksize");
  std::string mode = c.attrString("mode", "DCR");
  c.requireAttr(mode == "DCR" || mode == "CRD", "mode must be 'DCR' or 'CRD', not '" + mode + "'");
  c.requireShape(x.rank() == 4 && block > 0 && block < 65536 && x.dim(2) % block == 0 && x.dim(3) % block == 0,
                 "expected rank 4 and a height and width divisible by blocksize");
  int64_t n = x.dim(0), depth = x.dim(1), h = x.dim(2) / block, w = x.dim(3) / block;
  Val split = c.e.reshape(x, {n, depth, h, block, w, block});
  Val moved = mode == "DCR" ? c.e.transpose(split, {0, 3, 5, 1, 2, 4}) : c.e.transpose(split, {0, 1, 3, 5, 2, 4});
  c.result(c.e.reshape(moved, {n, depth * block * block, h, w}));
}

void importDropout(NodeContext &c) {
  Val x = c.operand(0);
  if (c.since() >= 12 && c.has(2) && c.constantInts(2, "training mode") != std::vector<int64_t>{0}) {
    double ratio = c.has(1) ? c.constantDouble(1, "ratio") : 0.5;
    if (ratio != 0)
      fail("op-unsupported", "training mode draws random numbers");
  }
  c.result(0, x);
  if (c.wants(1))
    c.result(1, c.e.splat(c.since() >= 10 ? DType::Bool : x.dtype(), shapeOf(x), 1));
}

} // namespace

std::vector<OpRows> shapeOps() {
  using namespace types;
  const char *constantShape = "the shape must be known at compile time";
  const char *constantAxes = "the axes must be known at compile time";
  return {
      {"Reshape", {1}, importReshape, "shape"},
      {"Reshape", {5, 13}, importReshape, "", {Any, Index}, constantShape},
      {"Reshape", {14, 19, 21, 23, 24, 25}, importReshape, "allowzero", {Any, Index}, constantShape},
      {"Flatten", {1, 9, 11, 13, 21, 23, 24, 25}, importFlatten, "axis"},
      {"Squeeze", {1, 11}, importSqueeze, "axes"},
      {"Squeeze", {13, 21, 23, 24, 25}, importSqueeze, "", {Any, Index}, constantAxes},
      {"Unsqueeze", {1, 11}, importUnsqueeze, "axes"},
      {"Unsqueeze", {13, 21, 23, 24, 25}, importUnsqueeze, "", {Any, Index}, constantAxes},
      {"Transpose", {1, 13, 21, 23, 24, 25}, importTranspose, "perm"},
      {"Concat", {1, 4, 11, 13}, importConcat, "axis"},
      {"Shape", {1, 13}, importShape},
      {"Shape", {15, 19, 21, 23, 24, 25}, importShape, "end,start"},
      {"Size", {1, 13, 19, 21, 23, 24, 25}, importSize},
      {"Expand", {8, 13}, importExpand, "", {Any, Index}, constantShape},
      {"Tile", {1}, importTile1, "", {}, "the count and the axis must be known at compile time"},
      {"Tile", {6, 13}, importTile, "", {Any, Index}, "the repeats must be known at compile time"},
      {"DepthToSpace", {1}, importDepthToSpace, "blocksize"},
      {"DepthToSpace", {11, 13}, importDepthToSpace, "blocksize,mode"},
      {"SpaceToDepth", {1, 13}, importSpaceToDepth, "blocksize"},
      {"SpaceToDepth", {25}, importSpaceToDepth, "blocksize,mode"},
      {"Dropout", {1, 6}, importDropout, "is_test,ratio", {Float}, "imported as in inference"},
      {"Dropout", {7, 10}, importDropout, "ratio", {Float}},
      {"Dropout",
       {12, 13, 22},
       importDropout,
       "seed",
       {Float, Float, Bool},
       "training mode is refused unless the ratio is 0"},
  };
}

} // namespace dmxc::onnxfe
