//===- Slice.cpp - parts of tensors, padding, masks over positions --------===//
#include "RuntimeSlice.h"

#include <algorithm>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

struct AxisSlice {
  Dim start, size;
};

/// The same where a bound, of known sign, or the dim is symbolic.
AxisSlice clampSymbolic(Dim start, Dim end, int64_t step, Dim dim) {
  constexpr int64_t far = int64_t(1) << 46; // INT64_MAX and the like stand for the end
  auto within = [&](Dim at, Dim low, Dim high) {
    if (at.valueOr(0) > far)
      return high;
    if (at.valueOr(0) < -far)
      return low;
    bool fromStart = at.isStatic() ? *at.known() >= 0 : at.neverNegative();
    return Dim::min(Dim::max(fromStart ? at : at + dim, low), high);
  };
  auto count = [](Dim distance, int64_t by) {
    Dim size = Dim::ceilDiv(distance, by);
    return size.neverNegative() ? size : Dim::max(size, 0);
  };
  if (step > 0) {
    start = within(start, 0, dim);
    return {start, count(within(end, 0, dim) - start, step)};
  }
  start = within(start, -1, dim - 1);
  return {start, count(start - within(end, -1, dim - 1), -step)};
}

/// numpy's clamping of one axis.
AxisSlice clampSlice(int64_t start, int64_t end, int64_t step, int64_t dim) {
  auto fromEnd = [&](int64_t at) { return at < 0 ? (at < -dim ? -1 : at + dim) : at; };
  if (step > 0) {
    start = std::clamp<int64_t>(start < -dim ? 0 : fromEnd(start), 0, dim);
    end = std::clamp<int64_t>(end < -dim ? 0 : fromEnd(end), 0, dim);
    return {start, end > start ? (end - start - 1) / step + 1 : 0};
  }
  start = std::clamp<int64_t>(fromEnd(start), -1, dim - 1);
  end = std::clamp<int64_t>(fromEnd(end), -1, dim - 1);
  if (start <= end)
    return {0, 0};
  // Unsigned: -step overflows for the smallest integer.
  return {start,
          static_cast<int64_t>((static_cast<uint64_t>(start - end) - 1) / (uint64_t(0) - static_cast<uint64_t>(step))) +
              1};
}

/// True if one of the operands that are there is known at run time only.
bool anyAtRun(NodeContext &c, std::initializer_list<int> operands) {
  return llvm::any_of(operands, [&](int i) { return c.has(i) && !c.isConstant(i); });
}

/// Whether a bound is seen to count from the start, or from the end.
bool hasKnownSign(Dim bound) { return bound.isStatic() || bound.neverNegative() || (Dim(-1) - bound).neverNegative(); }

void importSlice(NodeContext &c) {
  Val x = c.operand(0);
  bool attributes = c.since() < 10;
  if (!attributes && anyAtRun(c, {1, 2, 3, 4}))
    return importRuntimeSlice(c, c.declaredShape());
  Dims starts = attributes ? Dims(c.attrInts("starts", {})) : c.knownSizes(1, "starts");
  Dims ends = attributes ? Dims(c.attrInts("ends", {})) : c.knownSizes(2, "ends");
  if (!llvm::all_of(starts, hasKnownSign) || !llvm::all_of(ends, hasKnownSign))
    return importRuntimeSlice(c, c.declaredShape());
  std::vector<int64_t> axes(starts.size()), steps(starts.size(), 1);
  for (size_t i = 0; i < axes.size(); ++i)
    axes[i] = i;
  if (attributes)
    axes = c.attrInts("axes", axes);
  else if (c.has(3))
    axes = c.constantInts(3, "axes");
  if (!attributes && c.has(4))
    steps = c.constantInts(4, "steps");
  c.requireShape(starts.size() == ends.size() && starts.size() == axes.size() && starts.size() == steps.size(),
                 "starts, ends, axes and steps differ in length");
  Dims from(x.rank(), 0), sizes = x.dims();
  Shape by(x.rank(), 1);
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t axis = c.normalizeAxis(axes[i], x.rank());
    c.requireShape(steps[i] != 0 && steps[i] > -(int64_t(1) << 62), "a step is " + std::to_string(steps[i]));
    Dim dim = x.extent(axis);
    bool known = starts[i].isStatic() && ends[i].isStatic() && dim.isStatic();
    AxisSlice slice = known ? clampSlice(*starts[i].known(), *ends[i].known(), steps[i], *dim.known())
                            : clampSymbolic(starts[i], ends[i], steps[i], dim);
    from[axis] = slice.size.is(0) ? Dim(0) : slice.start;
    sizes[axis] = slice.size;
    by[axis] = slice.size.is(0) || slice.size.is(1) ? 1 : steps[i]; // one element: the step does not matter
  }
  c.result(c.e.slice(x, from, sizes, by));
}

/// The sizes of all parts as the model declares them.
std::optional<std::vector<int64_t>> declaredSizes(NodeContext &c, int64_t axis) {
  std::vector<int64_t> sizes;
  for (int i = 0; i < c.numResults(); ++i) {
    std::optional<int64_t> size = c.declaredDim(i, axis);
    if (!size)
      return std::nullopt;
    sizes.push_back(*size);
  }
  return sizes;
}

void importSplit(NodeContext &c) {
  Val x = c.operand(0);
  int64_t axis = c.normalizeAxis(c.attrInt("axis", 0), x.rank()), parts = c.numResults();
  Dim dim = x.extent(axis);
  std::optional<Dims> sizes;
  if (c.since() >= 13 ? c.has(1) : c.since() == 1 && c.has(1))
    sizes = c.sizes(1, "split sizes", declaredSizes(c, axis), parts);
  else if (c.since() < 13)
    if (std::optional<std::vector<int64_t>> given = c.attrInts("split"))
      sizes = Dims(*given);
  if (!sizes) {
    c.requireAttr(c.attrInt("num_outputs", parts) == parts, "num_outputs differs from the number of results");
    c.requireShape(c.since() >= 18 || dim.valueOr(0) % parts == 0,
                   dim.str() + " elements cannot be split into " + std::to_string(parts) + " equal parts");
    Dim chunk = c.since() >= 18 ? Dim::ceilDiv(dim, parts) : Dim::floorDiv(dim, parts);
    if (c.since() < 18 && !dim.isStatic()) { // the parts must be all there is: a run checks it
      Dims whole = x.dims();
      whole[axis] = chunk * parts;
      x = c.e.expectDims(x, whole);
    }
    sizes.emplace();
    for (int64_t i = 0; i < parts; ++i)
      sizes->push_back(c.since() >= 18 ? Dim::min(Dim::max(dim - chunk * i, 0), chunk) : chunk);
  }
  c.requireShape(static_cast<int64_t>(sizes->size()) == parts,
                 std::to_string(sizes->size()) + " sizes for " + std::to_string(parts) + " results");
  Dim at = 0;
  for (int64_t i = 0; i < parts; ++i) {
    Dim size = (*sizes)[i], left = dim - at - size;
    c.requireShape(size.valueOr(0) >= 0 && left.valueOr(0) >= 0,
                   "the sizes exceed the " + dim.str() + " elements of axis " + std::to_string(axis));
    if (c.wants(i))
      c.result(i, c.e.sliceAxis(x, axis, at, size));
    at += size;
  }
  c.requireShape(mayEqual(at, dim), "the sizes add up to " + at.str() + ", not " + dim.str());
}

PadMode padModeOf(NodeContext &c) {
  std::string mode = c.attrString("mode", "constant");
  if (mode == "constant")
    return PadMode::constant;
  if (mode == "reflect")
    return PadMode::reflect;
  if (mode == "edge")
    return PadMode::edge;
  c.requireAttr(mode == "wrap" && c.since() >= 19, "mode '" + mode + "' is unknown");
  return PadMode::wrap;
}

void importPad(NodeContext &c) {
  Val x = c.operand(0);
  bool attributes = c.since() < 11;
  Val fill = c.e.scalarLike(x, attributes ? c.attrFloat("value", 0) : 0);
  if (!attributes && c.has(2)) {
    c.requireShape(mayEqual(c.operand(2).elements(), 1), "the fill value must be one number");
    fill = c.e.reshape(c.operand(2), {});
  }
  if (!attributes && (anyAtRun(c, {1}) || (c.since() >= 18 && anyAtRun(c, {3}))))
    return importRuntimePad(c, c.declaredShape(), fill, padModeOf(c));
  Dims pads = attributes ? Dims(c.attrInts(c.since() == 1 ? "paddings" : "pads", {})) : c.knownSizes(1, "pads");
  std::vector<int64_t> axes(x.rank());
  for (int64_t i = 0; i < x.rank(); ++i)
    axes[i] = i;
  if (c.since() >= 18 && c.has(3))
    axes = c.constantInts(3, "axes");
  c.requireShape(pads.size() == 2 * axes.size(),
                 std::to_string(pads.size()) + " pads for " + std::to_string(axes.size()) + " axes");
  Dims low(x.rank(), 0), high(x.rank(), 0), starts(x.rank(), 0), sizes = x.dims();
  Shape steps(x.rank(), 1);
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t axis = c.normalizeAxis(axes[i], x.rank());
    Dim before = pads[i], after = pads[i + axes.size()];
    constexpr int64_t limit = int64_t(1) << 40;
    for (int64_t pad : {before.valueOr(0), after.valueOr(0)})
      c.requireShape(-limit < pad && pad < limit, "a pad is too large");
    low[axis] = Dim::max(before, 0);
    high[axis] = Dim::max(after, 0);
    starts[axis] = Dim::max(Dim(0) - before, 0); // negative pads cut off
    sizes[axis] += Dim::min(before, 0) + Dim::min(after, 0);
    c.requireShape(sizes[axis].valueOr(0) >= 0,
                   "negative pads cut off more than axis " + std::to_string(axis) + " has");
  }
  c.result(c.e.pad(c.e.slice(x, starts, sizes, steps), fill, low, high, {}, padModeOf(c)));
}

void importCenterCropPad(NodeContext &c) {
  Val x = c.operand(0);
  std::vector<int64_t> axes(x.rank());
  for (int64_t i = 0; i < x.rank(); ++i)
    axes[i] = i;
  axes = c.attrInts("axes", axes);
  std::optional<std::vector<int64_t>> implied;
  if (std::optional<Shape> declared = c.declaredShape(); declared && !c.isConstant(1)) {
    c.requireShape(static_cast<int64_t>(declared->size()) == x.rank(), "the declared shape has another rank");
    implied.emplace();
    for (int64_t axis : axes)
      implied->push_back((*declared)[c.normalizeAxis(axis, x.rank())]);
  }
  Dims wanted = c.sizes(1, "shape", implied, axes.size());
  c.requireShape(wanted.size() == axes.size(),
                 std::to_string(wanted.size()) + " sizes for " + std::to_string(axes.size()) + " axes");
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t axis = c.normalizeAxis(axes[i], x.rank());
    Dim dim = x.extent(axis), size = wanted[i], kept = Dim::min(dim, size), added = Dim::max(size - dim, 0);
    c.requireShape(size.valueOr(0) >= 0 && size.valueOr(0) < (int64_t(1) << 40), "a size of " + size.str());
    x = c.e.sliceAxis(x, axis, Dim::floorDiv(dim - kept, 2), kept);
    Dims low(x.rank(), 0), high(x.rank(), 0);
    low[axis] = Dim::floorDiv(added, 2);
    high[axis] = added - low[axis];
    x = c.e.pad(x, c.e.scalarLike(x, 0), low, high);
  }
  c.result(x);
}

/// Positions along an axis as a tensor that broadcasts against one of `rank`.
Val positions(Emitter &e, int64_t rank, int64_t axis, Dim dim) {
  Dims line(rank, 1);
  line[axis] = dim;
  return e.iota(DType::I64, line, axis);
}

void importTrilu(NodeContext &c) {
  Val x = c.operand(0);
  c.requireShape(x.rank() >= 2, "expected rank 2 or more");
  Val rows = positions(c.e, 2, 0, x.extent(-2)), columns = positions(c.e, 2, 1, x.extent(-1));
  if (Val k = c.optional(1)) {
    c.requireShape(mayEqual(k.elements(), 1), "k must be one number");
    rows = c.e.add(rows, c.e.reshape(c.e.cast(k, DType::I64), {}));
  }
  Val kept = c.e.compare(c.attrInt("upper", 1) ? Compare::ge : Compare::le, columns, rows);
  c.result(c.e.select(kept, x, c.e.scalarLike(x, 0)));
}

void importReverseSequence(NodeContext &c) {
  Val x = c.operand(0), lengths = c.cast64(1);
  int64_t time = c.normalizeAxis(c.attrInt("time_axis", 0), x.rank()),
          batch = c.normalizeAxis(c.attrInt("batch_axis", 1), x.rank());
  c.requireShape(time != batch && lengths.rank() == 1 && mayEqual(lengths.extent(0), x.extent(batch)),
                 "expected one length a batch entry");
  Dims column(x.rank(), 1);
  column[batch] = x.extent(batch);
  Val count = c.e.reshape(lengths, column), at = positions(c.e, x.rank(), time, x.extent(time));
  Val mirrored = c.e.sub(c.e.add(count, -1.0), at);
  Val index = c.e.select(c.e.compare(Compare::lt, at, count), mirrored, at);
  c.result(c.e.emit<GatherElementsOp>({x, c.e.broadcast(index, x.dims())}, {c.e.attr("axis", time)}));
}

} // namespace

std::vector<OpRows> sliceOps() {
  using namespace types;
  return {
      {"Slice", {1}, ".>1", importSlice, "axes,ends,starts"},
      {"Slice",
       {10, 11, 13},
       ".TTTT>1",
       importSlice,
       "",
       {Any, Index},
       "starts, ends, axes and steps must be known at compile time or the shape declared"},
      {"Split", {1}, "TT>*", importSplit, "axis,split"},
      {"Split", {2, 11}, ".>*", importSplit, "axis,split"},
      {"Split", {13}, "..>*", importSplit, "axis", {Any, Index}, "the sizes must be known at compile time or declared"},
      {"Split",
       {18},
       "..>*",
       importSplit,
       "axis,num_outputs",
       {Any, Index},
       "the sizes must be known at compile time or declared"},
      {"Pad", {1}, ".>1", importPad, "mode,paddings,value=float"},
      {"Pad", {2}, ".>1", importPad, "mode,pads,value=float"},
      {"Pad",
       {11, 13},
       "T.T>1",
       importPad,
       "mode",
       {Any, Index, Any, Index},
       "the pads must be known at compile time or the shape declared"},
      {"Pad",
       {18, 19, 21, 23, 24, 25},
       "T.T.>1",
       importPad,
       "mode",
       {Any, Index, Any, Index},
       "the pads must be known at compile time or the shape declared"},
      {"CenterCropPad",
       {18},
       "..>1",
       importCenterCropPad,
       "axes",
       {Any, Index},
       "the shape must be known at compile time or declared"},
      {"Trilu", {14}, "..>1", importTrilu, "upper"},
      {"ReverseSequence", {10}, "..>1", importReverseSequence, "batch_axis,time_axis"},
  };
}

} // namespace dmxc::onnxfe
