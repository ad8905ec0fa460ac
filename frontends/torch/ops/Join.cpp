//===- Join.cpp - tensors put together, padded and rearranged -------------===//
#include "Math.h"
#include "View.h"

#include "frontends/common/ops/Order.h"

#include <algorithm>

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

std::vector<Val> joinedTypes(AtenContext &c, const std::vector<Val> &tensors) {
  c.require(!tensors.empty(), "there must be at least one tensor");
  std::vector<Operand> operands;
  for (const Val &tensor : tensors) {
    c.require(static_cast<bool>(tensor), "a tensor of the list is None");
    operands.push_back({tensor, false});
  }
  return promote(c, operands);
}

void importCat(AtenContext &c) {
  std::vector<Val> parts = joinedTypes(c, c.tensors("tensors"));
  Val first = parts.front();
  std::erase_if(parts, [](const Val &part) { return part.rank() == 1 && part.extent(0).is(0); }); // join with any shape
  if (parts.empty())
    return c.result(first);
  c.requireShape(parts[0].rank() > 0, "scalars cannot be joined");
  c.result(c.e.concat(parts, c.axis("dim", parts[0].rank())));
}
void importStack(AtenContext &c) {
  std::vector<Val> parts = joinedTypes(c, c.tensors("tensors"));
  int64_t axis = c.axis("dim", parts[0].rank() + 1);
  for (Val &part : parts)
    part = unsqueeze(c.e, part, axis);
  c.result(c.e.concat(parts, axis));
}

/// Each tensor, a line, over the grid of all of them; "xy" exchanges the grid's first two axes.
void importMeshgrid(AtenContext &c) {
  std::vector<Val> lines = joinedTypes(c, c.tensors("tensors"));
  std::string indexing = c.text("indexing", "ij");
  c.require(indexing == "ij" || indexing == "xy", "indexing is 'ij' or 'xy', not '" + indexing + "'");
  Dims grid;
  for (Val &line : lines) {
    c.requireShape(line.rank() <= 1, "the tensors of a grid have one axis");
    line = c.e.reshape(line, {line.elements()});
    grid.push_back(line.extent(0));
  }
  std::vector<int64_t> order = axesFrom(0, static_cast<int64_t>(grid.size()));
  if (indexing == "xy" && order.size() > 1)
    std::swap(order[0], order[1]);
  for (size_t i = 0; i < lines.size(); ++i) {
    Dims one(grid.size(), 1);
    one[i] = grid[i];
    lines[i] = c.e.transpose(c.e.broadcast(c.e.reshape(lines[i], one), grid), order);
  }
  c.result(lines);
}

//===--- Padding --------------------------------------------------------------------===//

/// Pads are pairs from the last axis on. Negative ones crop.
void padWith(AtenContext &c, Val x, const Dims &pairs, PadMode mode, const Val &fill) {
  c.require(pairs.size() % 2 == 0 && static_cast<int64_t>(pairs.size() / 2) <= x.rank(),
            "the padding has " + std::to_string(pairs.size()) + " numbers for rank " + std::to_string(x.rank()));
  Dims low(x.rank(), 0), high(x.rank(), 0);
  for (size_t i = 0; i < pairs.size() / 2; ++i) {
    int64_t axis = x.rank() - 1 - static_cast<int64_t>(i);
    Dim front = pairs[2 * i], back = pairs[2 * i + 1];
    int64_t cutFront = std::max<int64_t>(-front.valueOr(0), 0), cutBack = std::max<int64_t>(-back.valueOr(0), 0);
    if (cutFront || cutBack) {
      c.requireShape(x.extent(axis).valueOr(INT64_MAX) >= cutFront + cutBack,
                     "negative padding cuts off more than there is");
      x = c.e.sliceAxis(x, axis, cutFront, x.extent(axis) - cutFront - cutBack);
    }
    low[axis] = cutFront ? Dim(0) : front;
    high[axis] = cutBack ? Dim(0) : back;
  }
  c.result(c.e.pad(x, fill, low, high, {}, mode));
}
void importConstantPad(AtenContext &c) {
  Val x = c.tensor("self");
  padWith(c, x, c.dims("pad"), PadMode::constant, c.cast(c.operand("value").value, x.dtype()));
}
template <PadMode mode> void importPadBy(AtenContext &c) {
  Val x = c.tensor("self");
  padWith(c, x, c.dims("padding"), mode, c.e.scalar(x.dtype(), 0));
}
/// `mode` by its name or, of _pad_enum, as a number.
void importPad(AtenContext &c) {
  Val x = c.tensor("self");
  const char *numbered[] = {"reflect", "replicate", "circular", "constant"};
  const bool isNumber = c.arg("mode").kind == Arg::Kind::Int;
  c.require(!isNumber || (c.integer("mode") >= 0 && c.integer("mode") < 4), "mode must be 0 to 3");
  std::string mode = isNumber ? numbered[c.integer("mode")] : c.text("mode");
  c.require(mode == "constant" || mode == "reflect" || mode == "replicate" || mode == "circular",
            "the mode '" + mode + "' is unknown");
  padWith(c, x, c.dims("pad"),
          mode == "constant"    ? PadMode::constant
          : mode == "reflect"   ? PadMode::reflect
          : mode == "replicate" ? PadMode::edge
                                : PadMode::wrap,
          c.e.scalar(x.dtype(), c.number("value", 0)));
}

//===--- Rearrangements ---------------------------------------------------------------===//

void importFlip(AtenContext &c) {
  Val x = c.tensor("self");
  Dims starts(x.rank(), 0);
  std::vector<int64_t> steps(x.rank(), 1);
  for (int64_t axis : c.integers("dims")) {
    c.requireShape(x.rank() > 0, "a scalar has no axis");
    axis = AtenContext::normalizeAxis(axis, x.rank());
    starts[axis] = x.extent(axis) - 1;
    steps[axis] = -1;
  }
  c.result(x.elements().is(0) ? x : c.e.slice(x, starts, x.dims(), steps));
}

Val rolled(AtenContext &c, const Val &x, int64_t axis, Dim shift) {
  Dim dim = x.extent(axis);
  if (dim.is(0))
    return x;
  Dim by = Dim::mod(shift, dim); // the last `by` elements come first
  if (by.is(0))
    return x;
  return c.e.concat({c.e.sliceAxis(x, axis, dim - by, by), c.e.sliceAxis(x, axis, 0, dim - by)}, axis);
}
void importRoll(AtenContext &c) {
  Val x = c.tensor("self");
  Dims shifts = c.dims("shifts");
  std::vector<int64_t> axes = c.integers("dims");
  if (axes.empty()) {
    c.require(shifts.size() == 1, "a roll of the flat tensor has one shift");
    return c.result(c.e.reshape(rolled(c, c.e.reshape(x, {x.elements()}), 0, shifts[0]), x.dims()));
  }
  c.require(axes.size() == shifts.size() && x.rank() > 0, "shifts and dims differ in length");
  for (size_t i = 0; i < axes.size(); ++i)
    x = rolled(c, x, AtenContext::normalizeAxis(axes[i], x.rank()), shifts[i]);
  c.result(x);
}

void importRepeat(AtenContext &c) {
  Val x = c.tensor("self");
  Dims repeats = c.dims(c.given("dims") ? "dims" : "repeats");
  if (c.target() == "tile.default" && static_cast<int64_t>(repeats.size()) < x.rank())
    repeats.insert(repeats.begin(), x.rank() - repeats.size(), Dim(1));
  c.requireShape(static_cast<int64_t>(repeats.size()) >= x.rank(), "there are fewer repeats than axes");
  // [r0, d0, r1, d1, ..], broadcast and joined.
  Dims single, wide, joined;
  size_t extra = repeats.size() - x.rank();
  for (size_t i = 0; i < repeats.size(); ++i) {
    Dim dim = i < extra ? Dim(1) : x.extent(i - extra);
    single.append({Dim(1), dim});
    wide.append({repeats[i], dim});
    joined.push_back(repeats[i] * dim);
  }
  c.result(c.e.reshape(c.e.broadcast(c.e.reshape(x, single), wide), joined));
}
void importRepeatInterleave(AtenContext &c) {
  Val x = c.tensor("self");
  if (!c.given("dim"))
    x = c.e.reshape(x, {x.elements()});
  int64_t axis = c.given("dim") ? c.axis("dim", x.rank()) : 0;
  Dim times = c.dim("repeats");
  Dims wide = x.dims(), joined = x.dims();
  wide.insert(wide.begin() + axis + 1, times);
  joined[axis] *= times;
  c.result(c.e.reshape(c.e.broadcast(unsqueeze(c.e, x, axis + 1), wide), joined));
}

void importPixelShuffle(AtenContext &c) {
  Val x = c.tensor("self");
  int64_t r = c.integer("upscale_factor"), n = x.rank();
  c.requireShape(n >= 3 && r > 0 && r < 32768 && x.extent(n - 3).valueOr(0) % (r * r) == 0,
                 "the channels must divide by r*r");
  c.result(pixelShuffle(c.e, x, r));
}
void importPixelUnshuffle(AtenContext &c) {
  Val x = c.tensor("self");
  int64_t r = c.integer("downscale_factor"), n = x.rank();
  c.requireShape(n >= 3 && r > 0 && r < 32768 && x.extent(n - 2).valueOr(0) % r == 0 &&
                     x.extent(n - 1).valueOr(0) % r == 0,
                 "height and width must divide by r");
  c.result(pixelUnshuffle(c.e, x, r));
}
void importChannelShuffle(AtenContext &c) {
  Val x = c.tensor("self");
  int64_t groups = c.integer("groups");
  c.requireShape(x.rank() >= 3 && groups > 0 && x.extent(1).valueOr(0) % groups == 0,
                 "the channels must divide into groups");
  Dims split = x.dims();
  split[1] = Dim::floorDiv(x.extent(1), groups);
  split.insert(split.begin() + 1, groups);
  std::vector<int64_t> order = axesFrom(0, x.rank() + 1);
  std::swap(order[1], order[2]);
  c.result(c.e.reshape(c.e.transpose(c.e.reshape(x, split), order), x.dims()));
}

/// Elements on one side of a diagonal.
template <bool upper> void importTriangle(AtenContext &c) {
  Val x = c.tensor("self");
  c.requireShape(x.rank() >= 2, "expected a matrix");
  Dim rows = x.extent(-2), columns = x.extent(-1);
  Val row = c.e.iota(DType::I64, {rows, 1}, 0), column = c.e.iota(DType::I64, {1, columns}, 1);
  Val limit = c.e.add(row, c.e.intScalar(DType::I64, c.integer("diagonal")));
  c.result(whereOrZero(c.e, c.e.compare(upper ? Compare::ge : Compare::le, column, limit), x));
}

//===--- Writing into a part ------------------------------------------------------------===//

/// self with `src` in the place of positions start, start + step, ... of an axis.
Val replaced(AtenContext &c, const Val &x, const Val &src, int64_t axis, const SliceRange &range) {
  Dims dims = x.dims();
  dims[axis] = range.size;
  Val update = c.e.broadcast(c.cast(src, x.dtype()), dims);
  if (range.step == 1) {
    Dim end = range.start + range.size;
    return c.e.concat(
        {c.e.sliceAxis(x, axis, 0, range.start), update, c.e.sliceAxis(x, axis, end, x.extent(axis) - end)}, axis);
  }
  Dims line(x.rank(), 1);
  line[axis] = range.size;
  Val at =
      c.e.add(c.e.mul(c.e.iota(DType::I64, line, axis), c.e.intScalar(DType::I64, range.step)), c.e.size(range.start));
  return scatterElements(c.e, x, c.e.broadcast(at, dims), update, axis, ScatterMode::replace);
}
void importSliceScatter(AtenContext &c) {
  Val x = c.tensor("self");
  int64_t axis = c.axis("dim", x.rank());
  c.result(replaced(c, x, c.tensor("src"), axis, sliceRange(c, x.extent(axis))));
}
void importSelectScatter(AtenContext &c) {
  Val x = c.tensor("self");
  int64_t axis = c.axis("dim", x.rank());
  Dim index = c.dim("index");
  if (index.valueOr(0) < 0)
    index += x.extent(axis);
  c.requireShape(index.valueOr(0) >= 0 && index.valueOr(0) < x.extent(axis).valueOr(INT64_MAX),
                 "the index lies outside");
  c.result(replaced(c, x, unsqueeze(c.e, c.tensor("src"), axis), axis, {index, 1, 1}));
}
void importDiff(AtenContext &c) {
  Val x = c.tensor("self");
  int64_t axis = c.axis("dim", x.rank());
  std::vector<Val> parts{x};
  if (c.given("prepend"))
    parts.insert(parts.begin(), c.tensor("prepend"));
  if (c.given("append"))
    parts.push_back(c.tensor("append"));
  x = c.e.concat(joinedTypes(c, parts), axis);
  for (int64_t n = std::min<int64_t>(c.integer("n"), 64); n > 0; --n) {
    Dim rest = Dim::max(x.extent(axis) - 1, 0);
    Val later = c.e.sliceAxis(x, axis, x.extent(axis) - rest, rest), earlier = c.e.sliceAxis(x, axis, 0, rest);
    x = x.dtype() == DType::Bool ? c.e.emit<XorOp>({later, earlier}) : c.e.sub(later, earlier);
  }
  c.result(x);
}

} // namespace

std::vector<AtenRow> joinOps() {
  return {
      {"cat(Tensor[] tensors, int dim=0) -> Tensor", importCat},
      {"concat(Tensor[] tensors, int dim=0) -> Tensor", importCat},
      {"stack(Tensor[] tensors, int dim=0) -> Tensor", importStack},
      {"meshgrid(Tensor[] tensors) -> Tensor[]", importMeshgrid},
      {"meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]", importMeshgrid},
      {"constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor", importConstantPad},
      {"pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor", importPad},
      {"_pad_enum(Tensor self, SymInt[] pad, int mode, float? value=None) -> Tensor", importPad},
      {"reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor", importPadBy<PadMode::reflect>},
      {"reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor", importPadBy<PadMode::reflect>},
      {"reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor", importPadBy<PadMode::reflect>},
      {"replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor", importPadBy<PadMode::edge>},
      {"replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor", importPadBy<PadMode::edge>},
      {"replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor", importPadBy<PadMode::edge>},
      {"_pad_circular(Tensor self, SymInt[] padding) -> Tensor", importPadBy<PadMode::wrap>},
      {"flip(Tensor self, int[] dims) -> Tensor", importFlip},
      {"roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor", importRoll},
      {"repeat(Tensor self, SymInt[] repeats) -> Tensor", importRepeat},
      {"tile(Tensor self, SymInt[] dims) -> Tensor", importRepeat},
      {"repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
       importRepeatInterleave},
      {"pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", importPixelShuffle},
      {"pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", importPixelUnshuffle},
      {"channel_shuffle(Tensor self, SymInt groups) -> Tensor", importChannelShuffle},
      {"tril(Tensor self, int diagonal=0) -> Tensor", importTriangle<false>},
      {"triu(Tensor self, int diagonal=0) -> Tensor", importTriangle<true>},
      {"slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> "
       "Tensor",
       importSliceScatter},
      {"select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor", importSelectScatter},
      {"diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor", importDiff},
  };
}

} // namespace dmxc::torchfe
