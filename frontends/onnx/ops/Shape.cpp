//===- Shape.cpp - operators that give a tensor another shape -------------===//
#include "../NodeContext.h"

#include "frontends/common/ops/Formulas.h"
#include "frontends/common/ops/Order.h"

#include <numeric>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

Shape shapeOf(const Val &x) { return Shape(x.shape().begin(), x.shape().end()); }

/// A new shape known at run time only must come to the declared one, with -1 and 0 for what they stand for.
void importRuntimeReshape(NodeContext &c, const Shape &declared) {
  Emitter &e = c.e;
  Val x = c.operand(0), shape = c.cast64(1);
  c.requireShape(shape.rank() == 1 && shape.dim(0) == static_cast<int64_t>(declared.size()),
                 "the new shape has " + std::to_string(shape.numElements()) + " dims and the declared one " +
                     std::to_string(declared.size()));
  Val inferred = e.compare(Compare::eq, shape, e.intScalar(DType::I64, -1));
  std::vector<int64_t> copied;
  for (size_t i = 0; i < declared.size(); ++i) {
    bool copies = !c.attrInt("allowzero", 0) && static_cast<int64_t>(i) < x.rank() && x.dim(i) == declared[i];
    copied.push_back(copies ? 0 : declared[i]);
  }
  Val given =
      e.emit<OrOp>({e.compare(Compare::eq, shape, e.ints(declared)), e.compare(Compare::eq, shape, e.ints(copied))});
  c.requireAtRun(e.emit<OrOp>({given, inferred}));
  c.requireAtRun(e.compare(Compare::le, e.reduce(Reduction::sum, e.cast(inferred, DType::I64), {0}, false),
                           e.intScalar(DType::I64, 1)));
  c.result(e.reshape(x, declared));
}

/// A new shape that the run brings: -1 and 0 are replaced by what they stand for, then the numbers are dims.
void reshapeAtRun(NodeContext &c) {
  Emitter &e = c.e;
  Val x = c.operand(0), shape = c.vector(1, "new shape", c.declaredRank()), zero = e.size(0), one = e.size(1);
  int64_t rank = shape.dim(0);
  if (!c.attrInt("allowzero", 0)) {
    Dims own = x.dims();
    own.resize(rank, 0);
    shape = e.select(e.compare(Compare::eq, shape, zero), e.sizes(own), shape);
  }
  Val inferred = e.compare(Compare::lt, shape, zero), known = e.select(inferred, one, shape);
  Val others = e.reduce(Reduction::prod, known, {0}, false);
  Val rest = e.div(e.size(x.elements()), e.max(others, one));
  c.result(e.reshape(x, e.dimsOf(e.select(inferred, rest, shape))));
}

void importReshape(NodeContext &c) {
  Val x = c.operand(0);
  if (c.since() > 1 && !c.isConstant(1)) {
    if (std::optional<Shape> declared = c.declaredShape())
      return importRuntimeReshape(c, *declared);
    return reshapeAtRun(c);
  }
  Dims wanted = c.since() == 1 ? Dims(c.attrInts("shape", {})) : c.knownSizes(1, "new shape");
  bool allowZero = c.attrInt("allowzero", 0) != 0;
  Dim known = 1;
  int64_t unknown = -1;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].is(0) && !allowZero) {
      c.requireShape(static_cast<int64_t>(i) < x.rank(), "the new shape copies dim " + std::to_string(i) +
                                                             " of a tensor of rank " + std::to_string(x.rank()));
      wanted[i] = x.extent(i);
    }
    c.requireShape(wanted[i].valueOr(0) >= -1, "the new shape has the dim " + wanted[i].str());
    if (wanted[i].is(-1)) {
      c.requireShape(unknown < 0, "the new shape has more than one -1");
      unknown = i;
    } else {
      known *= wanted[i];
    }
  }
  if (unknown >= 0) {
    Dim elements = x.elements();
    bool divides = !elements.isStatic() || !known.isStatic() || (!known.is(0) && Dim::mod(elements, known).is(0));
    c.requireShape(divides, elements.str() + " elements do not divide into groups of " + known.str());
    wanted[unknown] = Dim::floorDiv(elements, known);
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
  Dims dims = x.dims();
  c.result(c.e.reshape(
      x, {product(llvm::ArrayRef<Dim>(dims).take_front(axis)), product(llvm::ArrayRef<Dim>(dims).drop_front(axis))}));
}

/// Squeeze and Unsqueeze by axes known at run time only: the declared shape tells the result; which axes give it does
/// not matter.
void importRuntimeAxes(NodeContext &c, const Shape &declared, bool squeeze) {
  Val x = c.operand(0);
  Shape longer = squeeze ? shapeOf(x) : declared, shorter = squeeze ? declared : shapeOf(x);
  int64_t rank = longer.size();
  c.requireShape(rank == static_cast<int64_t>(shorter.size()) + c.operand(1).numElements(),
                 "the declared shape " + shapeString(declared) + " does not fit the number of axes");
  auto fits = [&](const std::vector<int64_t> &named) {
    Shape rest;
    for (int64_t i = 0; i < rank; ++i) {
      if (named[i] && longer[i] != 1)
        return false;
      if (!named[i])
        rest.push_back(longer[i]);
    }
    return rest == shorter;
  };
  c.chosen(c.namedAxes(1, rank), NodeContext::axisSets(rank, c.operand(1).numElements(), fits),
           [&](const std::vector<int64_t> &) { return Val(); });
  c.result(c.e.reshape(x, declared));
}

/// Axes as an attribute (before opset 13) or as an operand.
std::optional<std::vector<int64_t>> axesOf(NodeContext &c) {
  if (c.since() < 13)
    return c.attrInts("axes");
  if (!c.has(1))
    return std::nullopt;
  return c.constantInts(1, "axes");
}

bool hasRuntimeAxes(NodeContext &c) { return c.since() >= 13 && c.has(1) && !c.isConstant(1); }

/// The result's dims, made by the run: those of the axes that are not named, or with a 1 for each that is.
void squeezeAtRun(NodeContext &c) {
  Emitter &e = c.e;
  Val x = c.operand(0);
  int64_t rank = x.rank(), left = c.declaredRank().value_or(-1);
  if (c.operand(1).hasStaticShape())
    left = rank - c.operand(1).numElements();
  c.requireShape(left >= 0 && left <= rank, "the rank of the result is not known, or does not fit the axes");
  Val kept = e.sub(e.size(1), c.namedAxes(1, rank));
  Val order = sorted(e, kept, 0, left, /*largest=*/true)[1];
  c.result(e.reshape(x, e.dimsOf(e.gather(e.sizes(x.dims()), order, 0))));
}

void unsqueezeAtRun(NodeContext &c) {
  Emitter &e = c.e;
  Val x = c.operand(0);
  int64_t rank = c.declaredRank().value_or(-1);
  if (c.operand(1).hasStaticShape())
    rank = x.rank() + c.operand(1).numElements();
  c.requireShape(rank >= x.rank(), "the rank of the result is not known, or does not fit the axes");
  Val named = c.namedAxes(1, rank), one = e.size(1);
  Val from = cumulativeSum(e, e.sub(one, named), 0, /*exclusive=*/true);
  Dims own = x.dims();
  own.push_back(1); // what an axis behind the last one reads
  Val dims = e.gather(e.sizes(own), from, 0);
  c.result(e.reshape(x, e.dimsOf(e.select(e.compare(Compare::eq, named, one), one, dims))));
}

/// Without axes open dims stay: what is always 1 would be declared so. A run in which one is 1 would give another rank,
/// and is refused. Declared ranks are no guide: converters write them for one frame, or as they guess.
void squeezeOpen(NodeContext &c) {
  Emitter &e = c.e;
  Val x = c.operand(0);
  Dims dims;
  for (const Dim &dim : x.dims()) {
    if (dim.is(1))
      continue;
    if (!dim.isStatic())
      c.requireAtRun(e.compare(Compare::ne, e.size(dim), e.size(1)));
    dims.push_back(dim);
  }
  c.result(e.reshape(x, dims));
}

void importSqueeze(NodeContext &c) {
  Val x = c.operand(0);
  if (hasRuntimeAxes(c))
    return c.declaredShape() ? importRuntimeAxes(c, *c.declaredShape(), true) : squeezeAtRun(c);
  std::optional<std::vector<int64_t>> axes = axesOf(c);
  if (axes)
    axes = c.normalizeAxes(*axes, x.rank());
  if (!axes && !x.hasStaticShape())
    return squeezeOpen(c);
  Dims dims;
  for (int64_t i = 0; i < x.rank(); ++i) {
    bool named = axes && std::find(axes->begin(), axes->end(), i) != axes->end();
    c.requireShape(!named || x.extent(i).valueOr(1) == 1,
                   "axis " + std::to_string(i) + " has " + x.extent(i).str() + " elements, not 1");
    if (axes ? !named : x.dim(i) != 1)
      dims.push_back(x.extent(i));
  }
  c.result(c.e.reshape(x, dims));
}

void importUnsqueeze(NodeContext &c) {
  Val x = c.operand(0);
  if (hasRuntimeAxes(c))
    return c.declaredShape() ? importRuntimeAxes(c, *c.declaredShape(), false) : unsqueezeAtRun(c);
  std::optional<std::vector<int64_t>> given = axesOf(c);
  c.requireAttr(given.has_value(), "the axes are missing");
  int64_t rank = x.rank() + given->size();
  std::vector<int64_t> axes = c.normalizeAxes(*given, rank);
  c.requireAttr(axes.size() == given->size(), "an axis stands twice");
  Dims dims;
  for (int64_t i = 0, from = 0; i < rank; ++i)
    dims.push_back(std::find(axes.begin(), axes.end(), i) != axes.end() ? Dim(1) : x.extent(from++));
  c.result(c.e.reshape(x, dims));
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
  Dims dims = x.dims();
  c.result(c.e.sizes(start < end ? Dims(llvm::ArrayRef<Dim>(dims).slice(start, end - start)) : Dims()));
}

void importSize(NodeContext &c) { c.result(c.e.size(c.operand(0).elements())); }

/// A shape known at run time only must broadcast with the operand to the declared one.
void importRuntimeExpand(NodeContext &c, const Shape &declared) {
  Val x = c.operand(0), shape = c.cast64(1);
  int64_t rank = declared.size(), count = shape.numElements();
  c.requireShape(shape.rank() == 1 && rank == std::max(x.rank(), count),
                 "the declared shape " + shapeString(declared) + " does not fit the new shape's length");
  std::vector<int64_t> same, one; // a dim that the operand has already may be asked for as 1
  for (int64_t i = rank - count; i < rank; ++i) {
    int64_t from = i - (rank - x.rank());
    same.push_back(declared[i]);
    one.push_back((from < 0 ? 1 : x.dim(from)) == declared[i] ? 1 : declared[i]);
  }
  c.requireAtRun(c.e.emit<OrOp>(
      {c.e.compare(Compare::eq, shape, c.e.ints(same)), c.e.compare(Compare::eq, shape, c.e.ints(one))}));
  for (int64_t i = 0; i < rank - count; ++i)
    c.requireShape(x.dim(i) == declared[i], "the declared shape " + shapeString(declared) + " does not fit");
  c.result(c.e.broadcast(x, declared));
}

/// A new shape of at most the operand's rank whose length the run brings: ones are put before it.
void expandAtRun(NodeContext &c) {
  Emitter &e = c.e;
  Val x = c.operand(0), shape = c.cast64(1);
  c.requireShape(shape.rank() == 1, "the new shape must be a vector");
  Val from = e.add(e.iota(DType::I64, {x.rank()}, 0), e.sub(e.size(shape.extent(0)), e.size(x.rank())));
  Val padded = e.concat({shape, e.ints({1})}, 0); // where nothing stands, the 1 behind the end is read
  Val index = e.select(e.compare(Compare::lt, from, e.size(0)), e.size(shape.extent(0)), from);
  Dims wanted = e.dimsOf(e.gather(padded, index, 0));
  auto joined = broadcastDims(x.dims(), wanted);
  c.requireShape(joined.has_value(), x.describe() + " does not broadcast to " + dimsString(wanted));
  c.result(e.broadcast(x, Dims(*joined)));
}

void importExpand(NodeContext &c) {
  Val x = c.operand(0);
  if (std::optional<Shape> declared = c.declaredShape(); !c.isConstant(1) && declared)
    return importRuntimeExpand(c, *declared);
  std::optional<int64_t> length; // of a vector that may be shorter than the result's rank: known where it is longer
  if (!c.operand(1).hasStaticShape() && c.declaredRank() > std::optional(x.rank()))
    length = c.declaredRank();
  if (!c.isConstant(1) && !c.operand(1).hasStaticShape() && !length)
    return expandAtRun(c);
  Dims wanted = c.sizes(1, "new shape", std::nullopt, length);
  for (Dim dim : wanted)
    c.requireShape(dim.valueOr(0) >= 0, "the new shape has the dim " + dim.str());
  auto joined = broadcastDims(x.dims(), wanted);
  c.requireShape(joined.has_value(), x.describe() + " does not broadcast with " + dimsString(wanted));
  c.result(c.e.broadcast(x, Dims(*joined)));
}

/// Repeats whole axes: each axis is split off, broadcast and joined again.
Val tile(NodeContext &c, const Val &x, const Dims &repeats) {
  Dims split, wide, joined;
  for (int64_t i = 0; i < x.rank(); ++i) {
    int64_t count = repeats[i].valueOr(0);
    c.requireShape(count >= 0 && count < (int64_t(1) << 40), "a repeat count of " + repeats[i].str());
    if (!repeats[i].is(1)) {
      split.push_back(1);
      wide.push_back(repeats[i]);
    }
    split.push_back(x.extent(i));
    wide.push_back(x.extent(i));
    joined.push_back(x.extent(i) * repeats[i]);
  }
  return c.e.reshape(c.e.broadcast(c.e.reshape(x, split), wide), joined);
}

void importTile1(NodeContext &c) {
  Val x = c.operand(0);
  Dims repeats(x.rank(), 1);
  // Version 1 takes both as tensors of the operand's type.
  int64_t axis = c.normalizeAxis(static_cast<int64_t>(c.constantDouble(2, "axis")), x.rank());
  repeats[axis] = static_cast<int64_t>(c.constantDouble(1, "tile count"));
  c.result(tile(c, x, repeats));
}

void importTile(NodeContext &c) {
  Val x = c.operand(0);
  std::optional<Shape> implied = c.isConstant(1) ? std::nullopt : c.declaredShape();
  for (int64_t i = 0; implied && i < x.rank(); ++i) {
    bool fits = static_cast<int64_t>(implied->size()) == x.rank() && x.dim(i) > 0 && (*implied)[i] % x.dim(i) == 0;
    if (fits)
      (*implied)[i] /= x.dim(i);
    else
      implied.reset();
  }
  Dims repeats = c.sizes(1, "repeats", implied, x.rank());
  c.requireShape(static_cast<int64_t>(repeats.size()) == x.rank(),
                 std::to_string(repeats.size()) + " repeats for rank " + std::to_string(x.rank()));
  c.result(tile(c, x, repeats));
}

void importDepthToSpace(NodeContext &c) {
  Val x = c.operand(0);
  int64_t block = c.attrInt("blocksize");
  std::string mode = c.attrString("mode", "DCR");
  c.requireAttr(mode == "DCR" || mode == "CRD", "mode must be 'DCR' or 'CRD', not '" + mode + "'");
  c.requireShape(x.rank() == 4 && block > 0 && block < 65536 && Dim::mod(x.extent(1).valueOr(0), block * block).is(0),
                 "expected rank 4 and channels divisible by blocksize squared");
  if (mode == "CRD")
    return c.result(pixelShuffle(c.e, x, block));
  Dim n = x.extent(0), depth = Dim::floorDiv(x.extent(1), block * block), h = x.extent(2), w = x.extent(3);
  Val moved = c.e.transpose(c.e.reshape(x, {n, block, block, depth, h, w}), {0, 3, 4, 1, 5, 2});
  c.result(c.e.reshape(moved, {n, depth, h * block, w * block}));
}

void importSpaceToDepth(NodeContext &c) {
  Val x = c.operand(0);
  int64_t block = c.attrInt("blocksize");
  std::string mode = c.attrString("mode", "DCR");
  c.requireAttr(mode == "DCR" || mode == "CRD", "mode must be 'DCR' or 'CRD', not '" + mode + "'");
  c.requireShape(x.rank() == 4 && block > 0 && block < 65536 && x.extent(2).valueOr(0) % block == 0 &&
                     x.extent(3).valueOr(0) % block == 0,
                 "expected rank 4 and a height and width divisible by blocksize");
  if (mode == "CRD")
    return c.result(pixelUnshuffle(c.e, x, block));
  Dim n = x.extent(0), depth = x.extent(1), h = Dim::floorDiv(x.extent(2), block),
      w = Dim::floorDiv(x.extent(3), block);
  Val moved = c.e.transpose(c.e.reshape(x, {n, depth, h, block, w, block}), {0, 3, 5, 1, 2, 4});
  c.result(c.e.reshape(moved, {n, depth * block * block, h, w}));
}

void importDropout(NodeContext &c) {
  Val x = c.operand(0);
  if (c.since() >= 12 && c.has(2) && c.constantOperand(2, "training mode").asInt(0) != 0) {
    double ratio = c.has(1) ? c.constantDouble(1, "ratio") : 0.5;
    if (ratio != 0)
      fail("op-unsupported", "training mode draws random numbers");
  }
  c.result(0, x);
  if (c.wants(1))
    c.result(1, c.e.splat(c.since() >= 10 ? DType::Bool : x.dtype(), x.dims(), 1));
}

} // namespace

std::vector<OpRows> shapeOps() {
  using namespace types;
  const char *constantShape = "the shape must be known at compile time or declared";
  const char *constantAxes = "the axes must be known at compile time or the shape declared";
  return {
      {"Reshape", {1}, ".>1", importReshape, "shape"},
      {"Reshape", {5, 13}, "..>1", importReshape, "", {Any, Index}, constantShape},
      {"Reshape", {14, 19, 21, 23, 24, 25}, "..>1", importReshape, "allowzero", {Any, Index}, constantShape},
      {"Flatten", {1, 9, 11, 13, 21, 23, 24, 25}, ".>1", importFlatten, "axis"},
      {"Squeeze", {1, 11}, ".>1", importSqueeze, "axes"},
      {"Squeeze", {13, 21, 23, 24, 25}, "..>1", importSqueeze, "", {Any, Index}, constantAxes},
      {"Unsqueeze", {1, 11}, ".>1", importUnsqueeze, "axes"},
      {"Unsqueeze", {13, 21, 23, 24, 25}, "..>1", importUnsqueeze, "", {Any, Index}, constantAxes},
      {"Transpose", {1, 13, 21, 23, 24, 25}, ".>1", importTranspose, "perm"},
      {"Concat", {1, 4, 11, 13}, "T*>1", importConcat, "axis"},
      {"Shape", {1, 13}, ".>1", importShape},
      {"Shape", {15, 19, 21, 23, 24, 25}, ".>1", importShape, "end,start"},
      {"Size", {1, 13, 19, 21, 23, 24, 25}, ".>1", importSize},
      {"Expand", {8, 13}, "..>1", importExpand, "", {Any, Index}, constantShape},
      {"Tile", {1}, "TTT>1", importTile1, "", {}, "the count and the axis must be known at compile time"},
      {"Tile",
       {6, 13},
       "..>1",
       importTile,
       "",
       {Any, Index},
       "the repeats must be known at compile time or the shape declared"},
      {"DepthToSpace", {1}, ".>1", importDepthToSpace, "blocksize"},
      {"DepthToSpace", {11, 13}, ".>1", importDepthToSpace, "blocksize,mode"},
      {"SpaceToDepth", {1, 13}, ".>1", importSpaceToDepth, "blocksize"},
      {"SpaceToDepth", {25}, ".>1", importSpaceToDepth, "blocksize,mode"},
      {"Dropout", {1, 6}, ".>2", importDropout, "is_test,ratio", {Float}, "imported as in inference"},
      {"Dropout", {7, 10}, ".>2", importDropout, "ratio", {Float}},
      {"Dropout",
       {12, 13, 22},
       "...>2",
       importDropout,
       "seed",
       {Float, Float, Bool},
       "training mode is refused unless the ratio is 0"},
  };
}

} // namespace dmxc::onnxfe
