//===- Index.cpp - reading and writing by index ---------------------------===//
#include "Math.h"
#include "View.h"

#include "frontends/common/ops/Counting.h"
#include "frontends/common/ops/Order.h"

#include <algorithm>
#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

Val asIndex(AtenContext &c, const Val &index) {
  c.require(isInt(index.dtype()), "an index must be integers");
  return index.dtype() == DType::I32 ? index : c.cast(index, DType::I64);
}

//===--- Nonzero elements -----------------------------------------------------------===//

/// The position on each axis of the true elements, in order.
std::vector<Val> positionsOf(AtenContext &c, const Val &mask) {
  Counting n(c.e);
  Val found = n.whereTrue(n.flat(mask));
  std::vector<Val> index(mask.rank());
  for (int64_t axis = mask.rank(); axis-- > 0;) {
    index[axis] = axis ? n.rest(found, mask.extent(axis)) : found;
    found = axis ? n.divide(found, mask.extent(axis)) : found;
  }
  return index;
}
void importNonzero(AtenContext &c) {
  Counting n(c.e);
  Val mask = c.truth(c.tensor("self"));
  if (mask.rank() == 0) // one row or none, without a column
    return c.result(c.e.splat(DType::I64, {n.whereTrue(n.flat(mask)).extent(0), 0}, 0));
  c.result(n.stacked(positionsOf(c, mask), 1));
}
/// A vector an axis.
void importNonzeroVectors(AtenContext &c) {
  Val mask = c.truth(c.tensor("self"));
  c.result(positionsOf(c, mask.rank() ? mask : c.e.reshape(mask, {1})));
}
void importMaskedSelect(AtenContext &c) {
  Counting n(c.e);
  Val x = c.tensor("self"), mask = c.truth(c.tensor("mask"));
  auto joined = broadcastDims(x.dims(), mask.dims());
  c.requireShape(joined.has_value(), x.describe() + " and the mask " + mask.describe() + " do not broadcast");
  Dims dims(*joined);
  c.result(c.e.gather(n.flat(c.e.broadcast(x, dims)), n.whereTrue(n.flat(c.e.broadcast(mask, dims))), 0));
}
void importMaskedScatter(AtenContext &c) {
  Counting n(c.e);
  Val x = c.tensor("self"), source = n.flat(c.tensor("source"));
  Val mask = c.e.broadcast(c.truth(c.tensor("mask")), x.dims());
  Val place = c.e.max(c.e.add(n.runningCount(n.flat(mask)), -1.0), c.e.intScalar(DType::I64, 0));
  Val limit = c.e.size(Dim::max(source.extent(0) - 1, 0));
  Val taken = c.e.gather(source, c.e.min(place, limit), 0);
  c.result(c.e.select(mask, c.e.reshape(taken, x.dims()), x));
}

//===--- Lists of indices -------------------------------------------------------------===//

/// Tensor?[] indices: one an axis, None where the whole axis is meant.
struct Indices {
  std::vector<int64_t> axes; ///< that are indexed
  std::vector<Val> index;    ///< i64, broadcast to one shape
  Dims shape;                ///< of the indices
  bool together = true;      ///< the axes are neighbours: their result stands where they stood
};

Indices indicesOf(AtenContext &c, const Val &x) {
  Indices result;
  int64_t axis = 0;
  for (const Val &given : c.tensors("indices")) {
    if (!given) {
      ++axis;
      continue;
    }
    if (given.dtype() == DType::Bool || given.dtype() == DType::U8) { // a mask over as many axes as it has
      for (const Val &position : positionsOf(c, c.truth(given))) {
        result.axes.push_back(axis++);
        result.index.push_back(position);
      }
      continue;
    }
    result.axes.push_back(axis++);
    result.index.push_back(c.cast(asIndex(c, given), DType::I64));
  }
  c.requireShape(axis <= x.rank(), "there are more indices than axes");
  c.require(!result.index.empty(), "there is no index");
  for (const Val &index : result.index) {
    auto joined = broadcastDims(result.shape, index.dims());
    c.requireShape(joined.has_value(), "the indices do not broadcast");
    result.shape = Dims(*joined);
  }
  for (Val &index : result.index)
    index = c.e.broadcast(index, result.shape);
  for (size_t i = 1; i < result.axes.size(); ++i)
    result.together &= result.axes[i] == result.axes[i - 1] + 1;
  return result;
}

/// The indexed axes first, then the others.
std::vector<int64_t> indexedFirst(const Indices &at, int64_t rank) {
  std::vector<int64_t> order = at.axes;
  for (int64_t axis = 0; axis < rank; ++axis)
    if (std::find(at.axes.begin(), at.axes.end(), axis) == at.axes.end())
      order.push_back(axis);
  return order;
}
/// Tuples along a new last axis.
Val tuplesOf(AtenContext &c, const Indices &at) {
  std::vector<Val> columns;
  for (const Val &index : at.index)
    columns.push_back(unsqueeze(c.e, index, index.rank()));
  return c.e.concat(columns, static_cast<int64_t>(at.shape.size()));
}
/// Moves the `count` axes of the indices from the front to `place`; the permutation of the result.
std::vector<int64_t> frontTo(int64_t place, int64_t count, int64_t rank) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < place; ++i)
    order.push_back(count + i);
  for (int64_t i = 0; i < count; ++i)
    order.push_back(i);
  for (int64_t i = count + place; i < rank; ++i)
    order.push_back(i);
  return order;
}

void importIndex(AtenContext &c) {
  Val x = c.tensor("self");
  Indices at = indicesOf(c, x);
  if (at.index.size() == 1)
    return c.result(c.e.gather(x, at.index[0], at.axes[0]));
  Val moved = c.e.transpose(x, indexedFirst(at, x.rank()));
  Val taken = c.e.emit<GatherNDOp>({moved, tuplesOf(c, at)}, {c.e.attr("batchDims", int64_t(0))});
  int64_t place = at.together ? at.axes[0] : 0;
  c.result(c.e.transpose(taken, frontTo(place, at.shape.size(), taken.rank())));
}

std::vector<int64_t> inverseOf(const std::vector<int64_t> &order) {
  std::vector<int64_t> inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    inverse[order[i]] = i;
  return inverse;
}

void importIndexPut(AtenContext &c) {
  Val x = c.tensor("self"), values = c.cast(c.tensor("values"), x.dtype());
  bool accumulate = c.flag("accumulate");
  std::vector<Val> given = c.tensors("indices");
  bool masked = given.size() == 1 && given[0] && given[0].dtype() == DType::Bool && values.elements().is(1);
  if (masked && !accumulate) { // no positions are needed
    Dims wide = given[0].dims();
    wide.resize(x.rank(), 1);
    return c.result(c.e.select(c.e.reshape(given[0], wide), c.e.reshape(values, {}), x));
  }
  Indices at = indicesOf(c, x);
  std::vector<int64_t> order = indexedFirst(at, x.rank());
  Val moved = c.e.transpose(x, order);
  // The values have the shape that reading there would give.
  int64_t count = at.shape.size(), place = at.together ? at.axes[0] : 0;
  Dims front = at.shape, rest(llvm::ArrayRef<Dim>(moved.dims()).drop_front(at.axes.size()));
  front.append(rest.begin(), rest.end());
  std::vector<int64_t> layout = frontTo(place, count, front.size());
  Dims shape;
  for (int64_t axis : layout)
    shape.push_back(front[axis]);
  Val updates = c.e.transpose(c.e.broadcast(values, shape), inverseOf(layout));
  Val written = scatterND(c.e, moved, tuplesOf(c, at), updates, accumulate ? ScatterMode::add : ScatterMode::replace);
  c.result(c.e.transpose(written, inverseOf(order)));
}

//===--- Along one axis ---------------------------------------------------------------===//

void importIndexSelect(AtenContext &c) {
  Val x = c.tensor("self"), index = asIndex(c, c.tensor("index"));
  if (x.rank() == 0)
    return c.result(x);
  c.result(c.e.gather(x, c.e.reshape(index, {index.elements()}), c.axis("dim", x.rank())));
}
void importTake(AtenContext &c) {
  Val x = c.tensor("self");
  c.result(c.e.gather(c.e.reshape(x, {x.elements()}), asIndex(c, c.tensor("index")), 0));
}
void importEmbedding(AtenContext &c) { c.result(c.e.gather(c.tensor("weight"), asIndex(c, c.tensor("indices")), 0)); }
void importEmbeddingBackward(AtenContext &c) {
  Val grad = c.tensor("grad_output"), indices = c.cast(c.tensor("indices"), DType::I64);
  c.require(!c.flag("scale_grad_by_freq"), "scale_grad_by_freq is not known here");
  c.requireShape(grad.rank() > 0, "the gradient is a scalar");
  Dim count = indices.elements(), width = grad.extent(-1);
  Val rows = c.e.reshape(grad, {count, width}), column = c.e.reshape(indices, {count, 1});
  Val padding = c.e.compare(Compare::eq, column, c.e.intScalar(DType::I64, c.integer("padding_idx")));
  rows = c.e.select(padding, c.like(rows, 0), rows);
  column = c.e.select(padding, c.e.intScalar(DType::I64, 0), column); // may lie outside
  c.result(scatterND(c.e, c.e.splat(grad.dtype(), {c.dim("num_weights"), width}, 0), column, rows, ScatterMode::add));
}

/// Scalars as vectors of one element.
Val atLeastVector(Emitter &e, const Val &x) { return x.rank() ? x : e.reshape(x, {1}); }

void importGather(AtenContext &c) {
  Val given = c.tensor("self"), x = atLeastVector(c.e, given), index = asIndex(c, c.tensor("index"));
  Dims dims = index.dims();
  index = atLeastVector(c.e, index);
  int64_t axis = c.axis("dim", x.rank());
  c.result(c.e.reshape(c.e.emit<GatherElementsOp>({x, index}, {c.e.attr("axis", axis)}), dims));
}

/// self, index and the part of src that the index uses.
struct ScatterOperands {
  Val data, index, updates;
  Dims dims;
  int64_t axis;
};
ScatterOperands scatterOperands(AtenContext &c, const char *source) {
  Val x = c.tensor("self");
  ScatterOperands o{atLeastVector(c.e, x), atLeastVector(c.e, asIndex(c, c.tensor("index"))), {}, x.dims(), 0};
  o.axis = c.axis("dim", o.data.rank());
  if (c.arg(source).kind == Arg::Kind::Tensor && std::string(source) != "value") {
    o.updates = atLeastVector(c.e, c.cast(c.tensor(source), x.dtype()));
    c.requireShape(o.updates.rank() == o.index.rank(), "index and " + std::string(source) + " differ in rank");
    o.updates = c.e.slice(o.updates, Dims(o.index.rank(), 0), o.index.dims(), std::vector<int64_t>(o.index.rank(), 1));
  } else {
    o.updates = c.e.broadcast(c.cast(c.operand(source).value, x.dtype()), o.index.dims());
  }
  return o;
}
void importScatter(AtenContext &c) {
  ScatterOperands o = scatterOperands(c, c.given("src") ? "src" : "value");
  c.result(c.e.reshape(scatterElements(c.e, o.data, o.index, o.updates, o.axis, ScatterMode::replace), o.dims));
}
void importScatterAdd(AtenContext &c) {
  ScatterOperands o = scatterOperands(c, "src");
  c.result(c.e.reshape(scatterElements(c.e, o.data, o.index, o.updates, o.axis, ScatterMode::add), o.dims));
}

/// The value that a reduction starts from.
Val identityOf(Emitter &e, const std::string &kind, DType type) {
  const bool least = kind == "amax", most = kind == "amin";
  if (isFloat(type))
    return e.scalar(type, kind == "prod" ? 1 : least ? -INFINITY : most ? INFINITY : 0);
  const unsigned bits = type == DType::Bool ? 1 : dtypeBits(type) - isSignedInt(type);
  const int64_t high = static_cast<int64_t>(~uint64_t(0) >> (64 - bits)), low = isSignedInt(type) ? -high - 1 : 0;
  return e.intScalar(type, kind == "prod" ? 1 : least ? low : most ? high : 0);
}
void importScatterReduce(AtenContext &c) {
  ScatterOperands o = scatterOperands(c, "src");
  std::string kind = c.text("reduce");
  bool known = kind == "sum" || kind == "prod" || kind == "mean" || kind == "amax" || kind == "amin";
  c.require(known, "the reduction '" + kind + "' is unknown");
  ScatterMode mode = kind == "prod"   ? ScatterMode::mul
                     : kind == "amax" ? ScatterMode::max
                     : kind == "amin" ? ScatterMode::min
                                      : ScatterMode::add;
  bool include = c.flag("include_self");
  Val ones = c.e.splat(DType::I64, o.index.dims(), 1), zeros = c.e.splat(DType::I64, o.data.dims(), 0);
  Val hits = scatterElements(c.e, zeros, o.index, ones, o.axis, ScatterMode::add);
  Val touched = c.e.compare(Compare::gt, hits, c.e.intScalar(DType::I64, 0)), start = o.data;
  if (!include)
    start = c.e.select(touched, identityOf(c.e, kind, o.data.dtype()), start);
  Val reduced = scatterElements(c.e, start, o.index, o.updates, o.axis, mode);
  if (kind == "mean") {
    Val count = include ? c.e.add(hits, 1.0) : c.e.max(hits, c.e.intScalar(DType::I64, 1));
    count = c.cast(count, o.data.dtype());
    reduced = c.e.div(isFloat(o.data.dtype()) ? reduced : c.e.sub(reduced, c.e.emit<ModOp>({reduced, count})), count);
  }
  c.result(c.e.reshape(reduced, o.dims));
}

/// Rows along an axis added or copied to positions of self.
template <ScatterMode mode> void importIndexAdd(AtenContext &c) {
  Val x = c.tensor("self"), index = c.cast(c.tensor("index"), DType::I64),
      source = c.cast(c.tensor("source"), x.dtype());
  c.requireShape(x.rank() > 0 && source.rank() == x.rank(), "self and source must have one rank");
  int64_t axis = c.axis("dim", x.rank());
  if (c.given("alpha"))
    source = c.e.mul(source, c.cast(c.operand("alpha").value, x.dtype()));
  Dims line(x.rank(), 1);
  line[axis] = index.elements();
  c.result(scatterElements(c.e, x, c.e.broadcast(c.e.reshape(index, line), source.dims()), source, axis, mode));
}

void importOneHot(AtenContext &c) {
  Val x = c.cast(c.tensor("self"), DType::I64);
  int64_t classes = c.integer("num_classes");
  c.require(classes > 0, "num_classes must be given; the largest index is known at run time only");
  Dims line(x.rank() + 1, 1);
  line[x.rank()] = classes;
  c.result(
      c.cast(c.e.compare(Compare::eq, unsqueeze(c.e, x, x.rank()), c.e.iota(DType::I64, line, x.rank())), DType::I64));
}

/// Rows of a table reduced in bags: bag b has the indices from offsets[b] on, of which those that are padding do not
/// count.
void importEmbeddingBag(AtenContext &c) {
  Val table = c.tensor("weight"), indices = c.cast(c.tensor("indices"), DType::I64);
  Val offsets = c.cast(c.tensor("offsets"), DType::I64);
  int64_t mode = c.integer("mode");
  c.require(mode >= 0 && mode <= 2, "the mode " + std::to_string(mode) + " is unknown");
  c.requireShape(table.rank() == 2 && indices.rank() == 1 && offsets.rank() == 1,
                 "the table must be a matrix, indices and offsets vectors");
  if (c.flag("include_last_offset"))
    offsets = c.e.sliceAxis(offsets, 0, 0, offsets.extent(0) - 1);
  Dim count = indices.extent(0), bags = offsets.extent(0), width = table.extent(1);
  Val position = c.e.iota(DType::I64, {1, count}, 1);
  Val begun = c.e.compare(Compare::le, c.e.reshape(offsets, {bags, 1}), position);
  Val bag = c.e.add(sumOver(c.e, c.cast(begun, DType::I64), {0}, false), -1.0);
  Val rows = c.e.gather(table, indices, 0);
  if (c.given("per_sample_weights"))
    rows = c.e.mul(rows, c.e.reshape(c.cast(c.tensor("per_sample_weights"), table.dtype()), {count, 1}));
  Val place = c.e.reshape(bag, {count, 1});
  Val ones = c.e.splat(DType::I64, {count}, 1);
  const double none = mode == 2 ? -INFINITY : 0;
  if (int64_t padding = c.integer("padding_idx"); padding >= 0) {
    Val counted = c.e.compare(Compare::ne, indices, c.e.intScalar(DType::I64, padding));
    ones = c.cast(counted, DType::I64);
    rows = c.e.select(c.e.reshape(counted, {count, 1}), rows, c.like(rows, none));
  }
  Val sizes = scatterND(c.e, c.e.splat(DType::I64, {bags}, 0), place, ones, ScatterMode::add);
  Val start = c.e.splat(table.dtype(), {bags, width}, none);
  Val result = scatterND(c.e, start, place, rows, mode == 2 ? ScatterMode::max : ScatterMode::add);
  Val filled = c.e.reshape(c.e.max(sizes, c.e.intScalar(DType::I64, 1)), {bags, 1});
  if (mode == 1)
    result = c.e.div(result, c.cast(filled, table.dtype()));
  if (mode == 2)
    result = c.e.select(c.e.compare(Compare::eq, c.e.reshape(sizes, {bags, 1}), c.e.intScalar(DType::I64, 0)),
                        c.like(result, 0), result);
  c.result(0, result);
}

} // namespace

std::vector<AtenRow> indexOps() {
  return {
      {"nonzero(Tensor self) -> Tensor", importNonzero},
      {"nonzero_numpy(Tensor self) -> Tensor[]", importNonzeroVectors},
      {"masked_select(Tensor self, Tensor mask) -> Tensor", importMaskedSelect},
      {"masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", importMaskedScatter},
      {"index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", importIndex},
      {"_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", importIndex},
      {"index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor", importIndexPut},
      {"_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
       importIndexPut},
      {"index_select(Tensor self, int dim, Tensor index) -> Tensor", importIndexSelect},
      {"take(Tensor self, Tensor index) -> Tensor", importTake},
      {"index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
       importIndexAdd<ScatterMode::add>},
      {"index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", importIndexAdd<ScatterMode::replace>},
      {"embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool "
       "sparse=False) "
       "-> Tensor",
       importEmbedding},
      {"embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool "
       "scale_grad_by_freq) -> Tensor",
       importEmbeddingBackward},
      {"_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool "
       "sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, "
       "Tensor, Tensor, Tensor)",
       importEmbeddingBag, "the first result alone"},
      {"_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int "
       "mode=0, bool "
       "sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, "
       "Tensor, Tensor, Tensor)",
       importEmbeddingBag, "the first result alone"},
      {"gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor", importGather},
      {"scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", importScatter},
      {"scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", importScatter},
      {"scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", importScatterAdd},
      {"scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> "
       "Tensor",
       importScatterReduce},
      {"one_hot(Tensor self, int num_classes=-1) -> Tensor", importOneHot, "num_classes must be given"},
  };
}

} // namespace dmxc::torchfe
