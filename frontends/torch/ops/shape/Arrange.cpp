//===- Arrange.cpp - turned tensors, products of lists, batches of lists --===//
#include "../Math.h"

#include "frontends/common/ops/Order.h"

#include <algorithm>

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

/// A quarter turn is a reflection of one axis and an exchange of both.
void importRot90(AtenContext &c) {
  Val x = c.tensor("self");
  std::vector<int64_t> axes = c.integers("dims");
  c.require(axes.size() == 2, "dims must name two axes");
  c.requireShape(x.rank() >= 2, "expected two axes or more");
  const int64_t first = AtenContext::normalizeAxis(axes[0], x.rank()),
                second = AtenContext::normalizeAxis(axes[1], x.rank()), turns = (c.integer("k") % 4 + 4) % 4;
  c.require(first != second, "the two axes are one");
  auto flipped = [&](Dims names) {
    return called(c, "flip.default", {Arg::tensor(x), Arg::intList(std::move(names))});
  };
  if (turns % 2 == 0)
    return c.result(turns ? flipped({first, second}) : x);
  std::vector<int64_t> order = axesFrom(0, x.rank());
  std::swap(order[first], order[second]);
  c.result(c.e.transpose(flipped({turns == 1 ? second : first}), order));
}

/// All tuples of one element of each list, as rows.
void importCartesianProd(AtenContext &c) {
  std::vector<Val> lists = c.tensors("tensors");
  c.require(!lists.empty(), "there must be at least one tensor");
  for (const Val &list : lists)
    c.requireShape(list.rank() == 1, "the tensors have one axis");
  if (lists.size() == 1)
    return c.result(lists[0]);
  Arg grid = call(c, "meshgrid.indexing", {Arg::tensorList(lists), Arg::string("ij")})[0];
  Dim rows = grid.tensors[0].elements();
  for (Val &column : grid.tensors)
    column = c.e.reshape(column, {rows, 1});
  c.result(c.e.concat(grid.tensors, 1));
}

constexpr size_t kMaxTuples = size_t(1) << 22; ///< numbers of them

/// The next of the tuples of `n` in order; false behind the last.
bool advance(std::vector<int64_t> &tuple, int64_t n, bool repeated) {
  for (int64_t i = tuple.size(), last = n - 1; i-- > 0; last -= !repeated)
    if (tuple[i] < last) {
      ++tuple[i];
      for (size_t j = i + 1; j < tuple.size(); ++j)
        tuple[j] = tuple[j - 1] + !repeated;
      return true;
    }
  return false;
}
void importCombinations(AtenContext &c) {
  Val x = c.tensor("self");
  c.requireShape(x.rank() == 1, "the tensor must have one axis");
  if (!x.extent(0).isStatic())
    failOpen("op-size", "how many combinations there are depends on an axis of " + x.extent(0).str(), x.extent(0));
  const int64_t n = *x.extent(0).known(), r = c.integer("r");
  const bool repeated = c.flag("with_replacement");
  c.require(r >= 0 && r <= 64, "r must be 0 to 64");
  if (r == 0)
    return c.result(c.e.splat(x.dtype(), {0}, 0));
  std::vector<int64_t> tuple(r, 0), all;
  for (int64_t i = 0; i < r && !repeated; ++i)
    tuple[i] = i;
  if (repeated ? n > 0 : r <= n)
    do {
      all.insert(all.end(), tuple.begin(), tuple.end());
      c.require(all.size() <= kMaxTuples, "there are too many combinations");
    } while (advance(tuple, n, repeated));
  Dim rows = static_cast<int64_t>(all.size()) / r;
  c.result(c.e.gather(x, c.e.reshape(c.e.ints(all), {rows, r}), 0));
}

/// Sequences as one batch, those that are shorter filled up.
void importPadSequence(AtenContext &c) {
  Emitter &e = c.e;
  std::vector<Val> sequences = c.tensors("sequences");
  c.require(!sequences.empty(), "there must be at least one sequence");
  const std::string side = c.text("padding_side", "right");
  c.require(side == "right" || side == "left", "padding_side is 'left' or 'right', not '" + side + "'");
  Dim longest = 0;
  for (const Val &sequence : sequences) {
    c.requireShape(sequence.rank() > 0, "a sequence has an axis");
    longest = Dim::max(longest, sequence.extent(0));
  }
  Val fill = e.scalar(sequences[0].dtype(), c.number("padding_value"));
  for (Val &sequence : sequences) {
    c.require(sequence.dtype() == fill.dtype(), "the sequences differ in type");
    Dims none(sequence.rank(), 0), missing = none;
    missing[0] = longest - sequence.extent(0);
    sequence = side == "right" ? e.pad(sequence, fill, none, missing) : e.pad(sequence, fill, missing, none);
  }
  c.result(called(c, "stack.default", {Arg::tensorList(sequences), Arg::integer(c.flag("batch_first") ? 0 : 1)}));
}

void importFlattenDense(AtenContext &c) {
  std::vector<Val> lines;
  for (const Val &tensor : c.tensors("tensors"))
    lines.push_back(c.e.reshape(tensor, {tensor.elements()}));
  c.result(called(c, "cat.default", {Arg::tensorList(lines)}));
}
void importUnflattenDense(AtenContext &c) {
  Val flat = c.tensor("flat");
  c.requireShape(flat.rank() == 1, "the tensor must have one axis");
  Dim at = 0;
  std::vector<Val> parts;
  for (const Val &like : c.tensors("tensors")) {
    parts.push_back(c.e.reshape(c.e.sliceAxis(flat, 0, at, like.elements()), like.dims()));
    at += like.elements();
  }
  c.result(parts);
}

/// Powers of each number as a row, from the highest on or up from 0.
void importVander(AtenContext &c) {
  Val x = c.tensor("x");
  c.requireShape(x.rank() == 1, "the tensor must have one axis");
  Dim rows = x.extent(0), columns = c.given("N") ? Dim(c.integer("N")) : rows;
  c.require(columns.valueOr(0) >= 0 && columns.valueOr(0) <= int64_t(1) << 24, "N must be 0 to 2^24");
  if (!isFloat(x.dtype()))
    x = c.cast(x, DType::I64);
  Val ones = c.e.splat(x.dtype(), {rows, Dim::min(columns, 1)}, 1);
  Val each = c.e.broadcast(c.e.reshape(x, {rows, 1}), {rows, columns - Dim::min(columns, 1)});
  Val powers = c.e.concat({ones, cumulativeProduct(c.e, each, 1)}, 1);
  c.result(c.flag("increasing") ? powers : called(c, "flip.default", {Arg::tensor(powers), Arg::intList({1})}));
}
void importDimArange(AtenContext &c) {
  Val like = c.tensor("like");
  c.result(c.e.iota(DType::I64, {like.extent(c.axis("dim", like.rank()))}, 0));
}

//===--- Writing at indices -------------------------------------------------------------===//

/// Indices in [0, size) of those that may count from the end.
Val fromTheFront(AtenContext &c, const Val &index, Dim size) {
  c.require(isInt(index.dtype()), "an index must be integers");
  Val at = c.cast(index, DType::I64);
  return c.e.select(c.e.compare(Compare::lt, at, c.e.intScalar(DType::I64, 0)), c.e.add(at, c.e.size(size)), at);
}

void importIndexFill(AtenContext &c) {
  Emitter &e = c.e;
  Val x = c.tensor("self"), index = c.tensor("index"), value = c.cast(c.operand("value").value, x.dtype());
  c.requireShape(value.rank() == 0 && index.rank() <= 1, "the value is a scalar, the index a vector");
  const int64_t axis = AtenContext::normalizeAxis(c.integer("dim"), x.rank());
  Dims line(std::max<int64_t>(x.rank(), 1), 1);
  line[axis] = x.rank() ? x.extent(axis) : Dim(1);
  Val at = fromTheFront(c, e.reshape(index, {index.elements()}), line[axis]);
  Val marks = scatterElements(e, e.splat(DType::U8, {line[axis]}, 0), at, e.splat(DType::U8, at.dims(), 1), 0,
                              ScatterMode::replace);
  Val marked = e.reshape(e.cast(marks, DType::Bool), x.rank() ? line : Dims());
  c.result(e.select(marked, value, x));
}

/// Rows along an axis combined with those of self that they are to join.
void importIndexReduce(AtenContext &c) {
  Val x = c.tensor("self"), index = c.tensor("index"), source = c.tensor("source");
  c.requireShape(x.rank() > 0 && source.rank() == x.rank(), "self and source must have one rank");
  c.require(c.text("reduce") != "sum", "the reduction is 'prod', 'mean', 'amax' or 'amin'");
  Dims line(x.rank(), 1);
  line[c.axis("dim", x.rank())] = index.elements();
  Val at = c.e.broadcast(c.e.reshape(index, line), source.dims());
  c.result(
      called(c, "scatter_reduce.two",
             {c.arg("self"), c.arg("dim"), Arg::tensor(at), c.arg("source"), c.arg("reduce"), c.arg("include_self")}));
}

/// Elements of the flat tensor replaced, or with `accumulate` added to.
void importPut(AtenContext &c) {
  Emitter &e = c.e;
  Val x = c.tensor("self"), source = c.cast(c.tensor("source"), x.dtype());
  Val at = fromTheFront(c, c.tensor("index"), x.elements());
  c.requireShape(mayEqual(at.elements(), source.elements()), "index and source differ in size");
  Val updates = e.reshape(source, {at.elements()});
  Val flat = scatterElements(e, e.reshape(x, {x.elements()}), e.reshape(at, {at.elements()}), updates, 0,
                             c.flag("accumulate") ? ScatterMode::add : ScatterMode::replace);
  c.result(e.reshape(flat, x.dims()));
}

} // namespace

std::vector<AtenRow> arrangeOps() {
  return {
      {"rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor", importRot90},
      {"cartesian_prod(Tensor[] tensors) -> Tensor", importCartesianProd},
      {"combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor", importCombinations},
      {"pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0.0, str "
       "padding_side=\"right\") -> Tensor",
       importPadSequence},
      {"flatten_dense_tensors(Tensor[] tensors) -> Tensor", importFlattenDense},
      {"unflatten_dense_tensors(Tensor flat, Tensor[] tensors) -> Tensor[]", importUnflattenDense},
      {"vander(Tensor x, int? N=None, bool increasing=False) -> Tensor", importVander},
      {"_dim_arange(Tensor like, int dim) -> Tensor", importDimArange},
      {"index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", importIndexFill},
      {"index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor", importIndexFill},
      {"index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> "
       "Tensor",
       importIndexReduce},
      {"put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor", importPut},
  };
}

} // namespace dmxc::torchfe
