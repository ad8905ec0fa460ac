//===- View.cpp - other shapes of the same elements -----------------------===//
//
// In an exported program a view is a value like any other; what shares storage with it matters to in-place operators
// alone (ProgramImporter.cpp).
//
//===----------------------------------------------------------------------===//
#include "View.h"
#include "Math.h"

#include <algorithm>
#include <numeric>

using namespace dmxc::dmir;

namespace dmxc::torchfe {

Val diagonalOf(Emitter &e, const Val &x, int64_t offset, int64_t first, int64_t second) {
  // Both axes last, flattened: every (columns + 1)-th element from the offset's start.
  std::vector<int64_t> order;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != first && i != second)
      order.push_back(i);
  order.push_back(first);
  order.push_back(second);
  int64_t rows = x.dim(first), columns = x.dim(second);
  int64_t count =
      std::max<int64_t>(std::min(rows + std::min<int64_t>(offset, 0), columns - std::max<int64_t>(offset, 0)), 0);
  Dims flat = Dims(llvm::ArrayRef<Dim>(e.transpose(x, order).dims()).drop_back(2));
  flat.push_back(rows * columns);
  int64_t start = count == 0 ? 0 : offset >= 0 ? offset : -offset * columns;
  return e.sliceAxis(e.reshape(e.transpose(x, order), flat), flat.size() - 1, start, count, columns + 1);
}

Val strided(Emitter &e, const Val &x, const Dims &sizes, llvm::ArrayRef<int64_t> strides, int64_t offset) {
  Val index = e.intScalar(DType::I64, offset);
  int64_t rank = static_cast<int64_t>(sizes.size());
  for (int64_t i = 0; i < rank; ++i) {
    Dims line(rank, 1);
    line[i] = sizes[i];
    index = e.add(index, e.mul(e.iota(DType::I64, line, i), e.intScalar(DType::I64, strides[i])));
  }
  return e.gather(e.reshape(x, {x.elements()}), e.broadcast(index, sizes), 0);
}

Val select(Emitter &e, const Val &x, int64_t axis, Dim index) {
  Val line = e.sliceAxis(x, axis, index, 1);
  Dims dims = x.dims();
  dims.erase(dims.begin() + axis);
  return e.reshape(line, dims);
}

/// Whether a position counts from the end: a number below 0, or an expression like -s ("the last s"). Exported sizes
/// are 2 or more unless a file says otherwise, so that -s is not the -0 which stands for the front.
static bool fromTheEnd(Dim position) { return !position.is(0) && (0 - position).neverNegative(); }

/// A position in [0, dim], from one that may count from the end or lie outside.
static Dim clampedPosition(Dim position, Dim dim) {
  if (fromTheEnd(position))
    return Dim::max(dim + position, 0);
  return position.valueOr(0) >= int64_t(1) << 62 ? dim : Dim::min(position, dim);
}

SliceRange sliceRange(AtenContext &c, Dim dim) {
  SliceRange range;
  range.start = c.given("start") ? clampedPosition(c.dim("start"), dim) : Dim(0);
  Dim end = c.given("end") ? clampedPosition(c.dim("end"), dim) : dim;
  range.step = c.integer("step");
  c.require(range.step > 0, "the step must be positive");
  range.size = Dim::max(Dim::ceilDiv(end - range.start, range.step), 0);
  return range;
}

namespace {

/// The wanted shape with its -1 worked out.
Dims completed(AtenContext &c, const Val &x, Dims shape) {
  std::optional<size_t> open;
  Dim rest = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!shape[i].is(-1)) {
      c.requireShape(shape[i].valueOr(0) >= 0, "the shape has the size " + shape[i].str());
      rest *= shape[i];
      continue;
    }
    c.requireShape(!open, "the shape has more than one -1");
    open = i;
  }
  if (!open)
    return shape;
  c.requireShape(!rest.is(0), "-1 beside a size of 0 is ambiguous");
  std::optional<Dim> exact = Dim::divideExactly(x.elements(), rest);
  shape[*open] = exact ? *exact : Dim::floorDiv(x.elements(), rest);
  return shape;
}

template <bool fromSize> void importView(AtenContext &c) {
  Val x = c.tensor("self");
  c.result(c.e.reshape(x, completed(c, x, c.dims(fromSize ? "size" : "shape"))));
}
void importViewAs(AtenContext &c) { c.result(c.e.reshape(c.tensor("self"), c.tensor("other").dims())); }
void importSame(AtenContext &c) { c.result(c.tensor("self")); }

void importFlatten(AtenContext &c) {
  Val x = c.tensor("self");
  if (x.rank() == 0)
    return c.result(c.e.reshape(x, {1}));
  int64_t first = c.axis("start_dim", x.rank()), last = c.axis("end_dim", x.rank());
  c.require(first <= last, "start_dim lies behind end_dim");
  Dims dims = x.dims(), flat(llvm::ArrayRef<Dim>(dims).take_front(first));
  flat.push_back(product(llvm::ArrayRef<Dim>(dims).slice(first, last - first + 1)));
  flat.append(dims.begin() + last + 1, dims.end());
  c.result(c.e.reshape(x, flat));
}
void importUnflatten(AtenContext &c) {
  Val x = c.tensor("self");
  int64_t axis = c.axis("dim", x.rank());
  Dims sizes = c.dims("sizes");
  Dim rest = 1;
  for (Dim size : sizes)
    rest *= size.is(-1) ? Dim(1) : size;
  c.requireShape(!rest.is(0), "-1 beside a size of 0 is ambiguous");
  for (Dim &size : sizes)
    if (size.is(-1))
      size = Dim::divideExactly(x.extent(axis), rest).value_or(Dim::floorDiv(x.extent(axis), rest));
  Dims dims = x.dims();
  dims.erase(dims.begin() + axis);
  dims.insert(dims.begin() + axis, sizes.begin(), sizes.end());
  c.result(c.e.reshape(x, dims));
}

void importPermute(AtenContext &c) {
  Val x = c.tensor("self");
  std::vector<int64_t> order = c.integers("dims"), seen;
  for (int64_t &axis : order)
    axis = AtenContext::normalizeAxis(axis, x.rank());
  seen = order;
  std::sort(seen.begin(), seen.end());
  for (size_t i = 0; i < seen.size(); ++i)
    c.require(seen[i] == static_cast<int64_t>(i), "dims is no permutation");
  c.require(static_cast<int64_t>(order.size()) == x.rank(), "dims must name every axis");
  c.result(c.e.transpose(x, order));
}
void swapAxes(AtenContext &c, const char *first, const char *second) {
  Val x = c.tensor("self");
  std::vector<int64_t> order = axesFrom(0, x.rank());
  if (x.rank() == 0)
    return c.result(x);
  std::swap(order[c.axis(first, x.rank())], order[c.axis(second, x.rank())]);
  c.result(c.e.transpose(x, order));
}
void importTranspose(AtenContext &c) { swapAxes(c, "dim0", "dim1"); }
void importSwapAxes(AtenContext &c) { swapAxes(c, "axis0", "axis1"); }
void importT(AtenContext &c) {
  Val x = c.tensor("self");
  c.requireShape(x.rank() <= 2, "t takes a matrix or less");
  c.result(x.rank() == 2 ? c.e.transposeLast(x) : x);
}
void importMT(AtenContext &c) { c.result(c.e.transposeLast(c.tensor("self"))); }
void importMovedim(AtenContext &c) {
  Val x = c.tensor("self");
  std::vector<int64_t> from = c.integers("source"), to = c.integers("destination");
  c.require(from.size() == to.size(), "source and destination differ in length");
  c.requireShape(x.rank() > 0 || from.empty(), "a scalar has no axis");
  std::vector<int64_t> order(x.rank(), -1), rest;
  for (size_t i = 0; i < from.size(); ++i) {
    from[i] = AtenContext::normalizeAxis(from[i], x.rank());
    int64_t place = AtenContext::normalizeAxis(to[i], x.rank());
    c.require(order[place] < 0, "destination names an axis twice");
    order[place] = from[i];
  }
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    if (std::find(from.begin(), from.end(), axis) == from.end())
      rest.push_back(axis);
  size_t next = 0;
  for (int64_t &axis : order)
    if (axis < 0)
      axis = rest.at(next++);
  c.result(c.e.transpose(x, order));
}

void importSqueeze(AtenContext &c) {
  Val x = c.tensor("self");
  std::vector<int64_t> axes = c.integers("dim");
  if (!c.given("dim"))
    axes = axesFrom(0, x.rank());
  for (int64_t &axis : axes)
    axis = AtenContext::normalizeAxis(axis, x.rank());
  Dims dims;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end() || !x.extent(i).is(1))
      dims.push_back(x.extent(i));
  c.result(c.e.reshape(x, dims));
}
void importUnsqueeze(AtenContext &c) {
  Val x = c.tensor("self");
  c.result(unsqueeze(c.e, x, c.axis("dim", x.rank() + 1)));
}

void importExpand(AtenContext &c) {
  Val x = c.tensor("self");
  Dims size = c.dims("size");
  c.requireShape(static_cast<int64_t>(size.size()) >= x.rank(), "the size has fewer axes than the tensor");
  size_t extra = size.size() - x.rank();
  for (size_t i = 0; i < size.size(); ++i)
    if (size[i].is(-1)) {
      c.requireShape(i >= extra, "-1 stands for an axis that the tensor does not have");
      size[i] = x.extent(i - extra);
    }
  c.result(c.e.broadcast(x, size));
}
void importExpandAs(AtenContext &c) { c.result(c.e.broadcast(c.tensor("self"), c.tensor("other").dims())); }

//===--- Parts --------------------------------------------------------------------===//

void importSlice(AtenContext &c) {
  Val x = c.tensor("self");
  int64_t axis = c.axis("dim", x.rank());
  SliceRange range = sliceRange(c, x.extent(axis));
  c.result(c.e.sliceAxis(x, axis, range.start, range.size, range.step));
}
/// An index that may count from the end.
Dim indexOf(AtenContext &c, const char *name, Dim dim) {
  Dim index = c.dim(name);
  if (fromTheEnd(index))
    index += dim;
  c.requireShape(!index.isStatic() || !dim.isStatic() || (*index.known() >= 0 && *index.known() < *dim.known()),
                 "the index " + c.dim(name).str() + " lies outside of an axis of " + dim.str());
  return index;
}
void importSelect(AtenContext &c) {
  Val x = c.tensor("self");
  c.requireShape(x.rank() > 0, "a scalar has no axis to select from");
  int64_t axis = c.axis("dim", x.rank());
  c.result(select(c.e, x, axis, indexOf(c, "index", x.extent(axis))));
}
void importNarrow(AtenContext &c) {
  Val x = c.tensor("self");
  int64_t axis = c.axis("dim", x.rank());
  Dim start = c.dim("start");
  if (fromTheEnd(start))
    start += x.extent(axis);
  c.result(c.e.sliceAxis(x, axis, start, c.dim("length")));
}
void importDiagonal(AtenContext &c) {
  Val x = c.tensor("self");
  int64_t first = c.axis("dim1", x.rank()), second = c.axis("dim2", x.rank()), offset = c.integer("offset");
  c.requireShape(first != second, "the two axes are one");
  constexpr int64_t limit = int64_t(1) << 46;
  c.require(-limit <= offset && offset <= limit, "the offset is too large");
  c.result(diagonalOf(c.e, x, offset, first, second));
}

/// Only of a tensor whose storage is its elements in row-major order.
void importAsStrided(AtenContext &c) {
  Dims size = c.dims("size");
  std::vector<int64_t> stride = c.integers("stride");
  c.require(size.size() == stride.size(), "size and stride differ in length");
  c.result(strided(c.e, c.tensor("self"), size, stride, c.given("storage_offset") ? c.integer("storage_offset") : 0));
}

void importUnfold(AtenContext &c) {
  Val x = c.tensor("self");
  int64_t axis = c.axis("dimension", x.rank()), size = c.integer("size"), step = c.integer("step");
  c.require(size > 0 && step > 0, "size and step must be positive");
  Dim windows = Dim::floorDiv(x.extent(axis) - size, step) + 1;
  // [.., windows, .., size]: the positions in each window, gathered along the axis.
  Val starts = c.e.mul(c.e.iota(DType::I64, {windows, 1}, 0), c.e.intScalar(DType::I64, step));
  Val at = c.e.add(starts, c.e.iota(DType::I64, {1, size}, 1));
  Val taken = c.e.gather(x, at, axis);
  std::vector<int64_t> order = axesFrom(0, taken.rank());
  order.erase(order.begin() + axis + 1);
  order.push_back(axis + 1);
  c.result(c.e.transpose(taken, order));
}

/// Parts of these sizes along an axis.
std::vector<Val> split(AtenContext &c, const Val &x, int64_t axis, const Dims &sizes) {
  std::vector<Val> parts;
  Dim start = 0;
  for (Dim size : sizes) {
    parts.push_back(c.e.sliceAxis(x, axis, start, size));
    start += size;
  }
  return parts;
}
void importSplitWithSizes(AtenContext &c) {
  Val x = c.tensor("self");
  c.result(split(c, x, c.axis("dim", x.rank()), c.dims("split_sizes")));
}
void importSplitSizes(AtenContext &c) {
  Val x = c.tensor("self");
  c.result(split(c, x, c.axis("dim", x.rank()), c.dims("split_size")));
}
/// Parts of `size`, the last of what is left. Of open sizes only where the parts are equal by arithmetic.
void splitInto(AtenContext &c, const Val &x, int64_t axis, Dim size) {
  Dim total = x.extent(axis);
  std::optional<Dim> count = total.isStatic() && size.isStatic() ? std::nullopt : Dim::divideExactly(total, size);
  if (count && count->isStatic()) {
    c.requireShape(*count->known() <= 4096, "a split into more than 4096 parts");
    return c.result(split(c, x, axis, Dims(std::max<int64_t>(*count->known(), 1), size)));
  }
  if (!total.isStatic() || !size.isStatic())
    failOpen("op-size",
             "an axis of " + total.str() + " in parts of " + size.str() + ": how many there are is not known",
             {total, size});
  c.require(*size.known() > 0, "the size of the parts must be positive");
  c.requireShape(*total.known() / *size.known() <= 4096, "a split into more than 4096 parts");
  Dims sizes;
  for (int64_t at = 0; at < *total.known(); at += *size.known())
    sizes.push_back(std::min(*size.known(), *total.known() - at));
  if (sizes.empty())
    sizes.push_back(0);
  c.result(split(c, x, axis, sizes));
}
void importSplit(AtenContext &c) {
  Val x = c.tensor("self");
  splitInto(c, x, c.axis("dim", x.rank()), c.dim("split_size"));
}
void importChunk(AtenContext &c) {
  Val x = c.tensor("self");
  int64_t axis = c.axis("dim", x.rank()), chunks = c.integer("chunks");
  c.require(chunks > 0 && chunks <= 4096, "there must be 1 to 4096 chunks");
  Dim total = x.extent(axis);
  if (total.isStatic())
    return splitInto(c, x, axis, std::max<int64_t>((*total.known() + chunks - 1) / chunks, 1));
  std::optional<Dim> size = Dim::divideExactly(total, chunks);
  if (!size)
    failOpen("op-size",
             "an axis of " + total.str() + " in " + std::to_string(chunks) + " chunks, which need not be equal", total);
  c.result(split(c, x, axis, Dims(static_cast<size_t>(chunks), *size)));
}
void importTensorSplit(AtenContext &c) {
  Val x = c.tensor("self");
  int64_t axis = c.axis("dim", x.rank()), total = x.dim(axis);
  Dims sizes;
  if (c.given("sections")) {
    int64_t sections = c.integer("sections");
    c.require(sections > 0 && sections <= 4096, "there must be 1 to 4096 sections");
    for (int64_t i = 0; i < sections; ++i)
      sizes.push_back(total / sections + (i < total % sections));
    return c.result(split(c, x, axis, sizes));
  }
  std::vector<Val> parts;
  int64_t start = 0;
  std::vector<int64_t> ends = c.integers("indices");
  ends.push_back(total);
  for (int64_t end : ends) {
    end = std::clamp(end < 0 ? end + total : end, int64_t(0), total);
    parts.push_back(c.e.sliceAxis(x, axis, std::min(start, total), std::max<int64_t>(end - start, 0)));
    start = end;
  }
  c.result(parts);
}
void importUnbind(AtenContext &c) {
  Val x = c.tensor("self");
  int64_t axis = c.axis("dim", x.rank());
  c.requireShape(x.dim(axis) <= 4096, "unbind of more than 4096 slices");
  std::vector<Val> parts;
  for (int64_t i = 0; i < x.dim(axis); ++i)
    parts.push_back(select(c.e, x, axis, i));
  c.result(parts);
}

} // namespace

std::vector<AtenRow> viewOps() {
  return {
      {"view(Tensor(a) self, SymInt[] size) -> Tensor(a)", importView<true>},
      {"view_copy(Tensor self, SymInt[] size) -> Tensor", importView<true>},
      {"_unsafe_view(Tensor self, SymInt[] size) -> Tensor", importView<true>},
      {"reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)", importView<false>},
      {"view_as(Tensor(a) self, Tensor other) -> Tensor(a)", importViewAs},
      {"reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", importViewAs},
      {"alias(Tensor(a) self) -> Tensor(a)", importSame},
      {"alias_copy(Tensor self) -> Tensor", importSame},
      {"detach(Tensor(a) self) -> Tensor(a)", importSame},
      {"detach_(Tensor(a!) self) -> Tensor(a!)", importSame},
      {"detach_copy(Tensor self) -> Tensor", importSame},
      {"lift_fresh_copy(Tensor self) -> Tensor", importSame},
      {"lift_fresh(Tensor(a) self) -> Tensor(a)", importSame},
      {"clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", importSame},
      {"contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)", importSame},
      {"resolve_conj(Tensor(a) self) -> Tensor(a)", importSame},
      {"resolve_neg(Tensor(a) self) -> Tensor(a)", importSame},
      {"flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)", importFlatten},
      {"unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)", importUnflatten},
      {"permute(Tensor(a) self, int[] dims) -> Tensor(a)", importPermute},
      {"permute_copy(Tensor self, int[] dims) -> Tensor", importPermute},
      {"transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", importTranspose},
      {"transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor", importTranspose},
      {"swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)", importSwapAxes},
      {"swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", importTranspose},
      {"t(Tensor(a) self) -> Tensor(a)", importT},
      {"numpy_T(Tensor(a) self) -> Tensor(a)", importT},
      {"mT(Tensor(a) self) -> Tensor(a)", importMT},
      {"movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)", importMovedim},
      {"movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)", importMovedim},
      {"moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)", importMovedim},
      {"moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)", importMovedim},
      {"squeeze(Tensor(a) self) -> Tensor(a)", importSqueeze},
      {"squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)", importSqueeze},
      {"squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", importSqueeze},
      {"squeeze_copy.dims(Tensor self, int[] dim) -> Tensor", importSqueeze},
      {"unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", importUnsqueeze},
      {"unsqueeze_copy(Tensor self, int dim) -> Tensor", importUnsqueeze},
      {"expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)", importExpand},
      {"expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor", importExpand},
      {"broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)", importExpand},
      {"expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", importExpandAs},
      {"slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)",
       importSlice},
      {"slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor",
       importSlice},
      {"select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)", importSelect},
      {"select_copy.int(Tensor self, int dim, SymInt index) -> Tensor", importSelect},
      {"narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)", importNarrow},
      {"narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor", importNarrow},
      {"diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)", importDiagonal},
      {"diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor", importDiagonal},
      {"as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)",
       importAsStrided, "self is taken as contiguous"},
      {"as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor",
       importAsStrided, "self is taken as contiguous"},
      {"unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)", importUnfold},
      {"unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor", importUnfold},
      {"split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]", importSplit},
      {"split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]", importSplit},
      {"split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]", importSplitSizes},
      {"unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]", importSplit},
      {"unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]", importSplitWithSizes},
      {"unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", importChunk},
      {"split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]", importSplitWithSizes},
      {"split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]", importSplitWithSizes},
      {"chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]", importChunk},
      {"tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]", importTensorSplit},
      {"tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]", importTensorSplit},
      {"unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]", importUnbind},
      {"unbind_copy.int(Tensor self, int dim=0) -> Tensor[]", importUnbind},
  };
}

} // namespace dmxc::torchfe
