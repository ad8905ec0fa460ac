//===- Composite.cpp - operators that torch composes of others ------------===//
//
// What torch.export leaves whole although other operators make it up (CompositeImplicitAutograd), as torch composes it.
//
//===----------------------------------------------------------------------===//
#include "Math.h"
#include "View.h"

#include <cmath>
#include <optional>

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

void importBroadcastTensors(AtenContext &c) { c.result(broadcastTogether(c, c.tensors("tensors"))); }
//===--- Shapes ---------------------------------------------------------------------===//

/// With axes of 1 so that there are `rank` of them: torch puts the second in front and the third behind.
Val atLeast(Emitter &e, const Val &x, int64_t rank) {
  if (x.rank() >= rank)
    return x;
  if (x.rank() == 0)
    return e.reshape(x, Dims(rank, 1));
  Dims dims = x.dims();
  if (x.rank() == 1 && rank > 1)
    dims.insert(dims.begin(), 1);
  if (rank == 3)
    dims.push_back(1);
  return e.reshape(x, dims);
}
template <int rank> void importAtLeast(AtenContext &c) { c.result(atLeast(c.e, c.tensor("self"), rank)); }
template <int rank> void importAtLeastAll(AtenContext &c) {
  std::vector<Val> tensors = c.tensors("tensors");
  for (Val &tensor : tensors)
    tensor = atLeast(c.e, tensor, rank);
  c.result(tensors);
}

/// vstack, hstack and dstack: joined along the first, second and third axis.
template <int axis> void importStackAlong(AtenContext &c) {
  std::vector<Val> tensors = c.tensors("tensors");
  c.require(!tensors.empty(), "there must be at least one tensor");
  for (Val &tensor : tensors)
    tensor = atLeast(c.e, tensor, axis == 0 ? 2 : axis == 1 ? 1 : 3);
  int64_t along = axis == 1 && tensors[0].rank() == 1 ? 0 : axis;
  c.result(called(c, "cat.default", {Arg::tensorList(tensors), Arg::integer(along)}));
}
void importColumnStack(AtenContext &c) {
  std::vector<Val> tensors = c.tensors("tensors");
  for (Val &tensor : tensors)
    if (tensor.rank() <= 1)
      tensor = c.e.reshape(tensor, {tensor.elements(), 1});
  c.result(called(c, "cat.default", {Arg::tensorList(tensors), Arg::integer(1)}));
}

/// hsplit, vsplit and dsplit. `sections` must divide the axis, unlike those of tensor_split.
template <int given> void importSplitAlong(AtenContext &c) {
  Val x = c.tensor("self");
  c.requireShape(x.rank() > (given == 1 ? 0 : given), "the tensor has too few axes to be split so");
  int64_t axis = given == 1 && x.rank() == 1 ? 0 : given;
  if (!c.given("sections"))
    return c.result(call(c, "tensor_split.indices", {Arg::tensor(x), c.arg("indices"), Arg::integer(axis)})[0]);
  int64_t sections = c.integer("sections");
  c.require(sections > 0 && sections <= 4096, "there must be 1 to 4096 sections");
  std::optional<Dim> size = Dim::divideExactly(x.extent(axis), sections);
  c.requireShape(size.has_value(), "an axis of " + x.extent(axis).str() + " does not divide into " +
                                       std::to_string(sections) + " sections");
  std::vector<Val> parts;
  for (int64_t i = 0; i < sections; ++i)
    parts.push_back(c.e.sliceAxis(x, axis, *size * i, *size));
  c.result(parts);
}

void importFlipLine(AtenContext &c, int64_t axis) {
  c.requireShape(c.tensor("self").rank() > axis, "the tensor has too few axes");
  c.result(called(c, "flip.default", {c.arg("self"), Arg::intList({axis})}));
}
void importFlipUpDown(AtenContext &c) { importFlipLine(c, 0); }
void importFlipLeftRight(AtenContext &c) { importFlipLine(c, 1); }
void importRavel(AtenContext &c) { c.result(c.e.reshape(c.tensor("self"), {c.tensor("self").elements()})); }

void importLinalgDiagonal(AtenContext &c) {
  c.result(called(c, "diagonal.default", {c.arg("A"), c.arg("offset"), c.arg("dim1"), c.arg("dim2")}));
}

/// The halves of axes exchanged; `up` elements of an odd axis' middle go to the front or the back.
template <int up> void importHalves(AtenContext &c) {
  Val x = c.tensor("self");
  std::vector<int64_t> axes = c.axes("dim", x.rank());
  Dims shifts;
  for (int64_t axis : axes)
    shifts.push_back(Dim::floorDiv(x.extent(axis) + up, 2));
  c.result(called(c, "roll.default", {Arg::tensor(x), Arg::intList(shifts), Arg::intList(Dims(axes))}));
}

void importTakeAlong(AtenContext &c) {
  Val x = c.tensor("self"), index = c.cast(c.tensor("indices"), DType::I64);
  int64_t axis = 0;
  if (!c.given("dim")) {
    x = c.e.reshape(x, {x.elements()});
    index = c.e.reshape(index, {index.elements()});
  } else {
    axis = c.axis("dim", x.rank());
    c.requireShape(index.rank() == x.rank(), "self and indices must have one rank");
    Dims all = x.dims(), places = index.dims();
    for (int64_t i = 0; i < x.rank(); ++i)
      if (i != axis)
        all[i] = places[i] = Dim::broadcast(x.extent(i), index.extent(i));
    x = c.e.broadcast(x, all);
    index = c.e.broadcast(index, places);
  }
  c.result(called(c, "gather.default", {Arg::tensor(x), Arg::integer(axis), Arg::tensor(index)}));
}

//===--- Products -------------------------------------------------------------------===//

/// Sums over pairs of axes: what stays of the first, then what stays of the second.
Val contracted(AtenContext &c, const Val &a, const Val &b, const std::vector<int64_t> &first,
               const std::vector<int64_t> &second) {
  c.require(first.size() == second.size(), "the two lists of axes differ in length");
  std::vector<int64_t> orderA, orderB;
  Dims kept;
  Dim rows = 1, columns = 1, depth = 1;
  for (size_t i = 0; i < first.size(); ++i) {
    c.requireShape(mayEqual(a.extent(first[i]), b.extent(second[i])), "axes of " + a.extent(first[i]).str() + " and " +
                                                                          b.extent(second[i]).str() +
                                                                          " are to be summed together");
    depth *= a.extent(first[i]);
  }
  for (int64_t i = 0; i < a.rank(); ++i)
    if (llvm::find(first, i) == first.end()) {
      orderA.push_back(i);
      kept.push_back(a.extent(i));
      rows *= a.extent(i);
    }
  orderA.insert(orderA.end(), first.begin(), first.end());
  orderB = second;
  for (int64_t i = 0; i < b.rank(); ++i)
    if (llvm::find(second, i) == second.end()) {
      orderB.push_back(i);
      kept.push_back(b.extent(i));
      columns *= b.extent(i);
    }
  c.require(static_cast<int64_t>(orderA.size()) == a.rank() && static_cast<int64_t>(orderB.size()) == b.rank(),
            "an axis stands twice");
  Val left = c.e.reshape(c.e.transpose(a, orderA), {rows, depth});
  Val right = c.e.reshape(c.e.transpose(b, orderB), {depth, columns});
  return c.e.reshape(c.e.matmul(left, right), kept);
}
std::vector<int64_t> axesOf(AtenContext &c, const char *name, int64_t rank) {
  std::vector<int64_t> axes = c.integers(name);
  for (int64_t &axis : axes)
    axis = AtenContext::normalizeAxis(axis, rank);
  return axes;
}
void importTensordot(AtenContext &c) {
  Val a = c.tensor("self"), b = c.tensor("other");
  c.require(a.dtype() == b.dtype(), "the operands differ in type");
  c.result(contracted(c, a, b, axesOf(c, "dims_self", a.rank()), axesOf(c, "dims_other", b.rank())));
}
void importInner(AtenContext &c) {
  Val a = c.tensor("self"), b = c.tensor("other");
  c.require(a.dtype() == b.dtype(), "the operands differ in type");
  if (a.rank() == 0 || b.rank() == 0)
    return c.result(c.e.mul(a, b));
  c.result(contracted(c, a, b, {a.rank() - 1}, {b.rank() - 1}));
}
void importVecdot(AtenContext &c) {
  std::vector<Val> v = broadcastTogether(c, promote(c, {{c.tensor("x"), false}, {c.tensor("y"), false}}));
  c.result(sumOver(c.e, c.e.mul(v[0], v[1]), {c.axis("dim", v[0].rank())}, false));
}
void importKron(AtenContext &c) {
  std::vector<Val> v = promote(c, {{c.tensor("self"), false}, {c.tensor("other"), false}});
  int64_t rank = std::max(v[0].rank(), v[1].rank());
  Dims dims(rank, 1);
  for (int side = 0; side < 2; ++side) {
    Dims wide(2 * rank, 1);
    for (int64_t i = 0, skip = rank - v[side].rank(); i < v[side].rank(); ++i) {
      wide[2 * (skip + i) + side] = v[side].extent(i);
      dims[skip + i] *= v[side].extent(i);
    }
    v[side] = c.e.reshape(v[side], wide);
  }
  c.result(c.e.reshape(c.e.mul(v[0], v[1]), dims));
}

/// The product of vectors of three numbers along an axis.
void crossAlong(AtenContext &c, int64_t axis) {
  std::vector<Val> v = broadcastTogether(c, promote(c, {{c.tensor("self"), false}, {c.tensor("other"), false}}));
  c.requireShape(v[0].rank() > axis && v[0].extent(axis).valueOr(3) == 3, "the axis must have three elements");
  auto turned = [&](const Val &x, int64_t by) {
    return c.e.concat({c.e.sliceAxis(x, axis, by, 3 - by), c.e.sliceAxis(x, axis, 0, by)}, axis);
  };
  c.result(c.e.sub(c.e.mul(turned(v[0], 1), turned(v[1], 2)), c.e.mul(turned(v[0], 2), turned(v[1], 1))));
}
void importCross(AtenContext &c) {
  int64_t rank = std::max(c.tensor("self").rank(), c.tensor("other").rank());
  crossAlong(c, c.axis("dim", rank));
}
void importCrossAnywhere(AtenContext &c) {
  if (c.given("dim"))
    return importCross(c);
  Val x = broadcastTogether(c, {c.tensor("self"), c.tensor("other")})[0];
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    if (x.extent(axis).is(3))
      return crossAlong(c, axis);
  c.requireShape(false, "no axis has three elements");
}

/// All real numbers are.
void importIsReal(AtenContext &c) { c.result(c.e.splat(DType::Bool, c.tensor("self").dims(), 1)); }
void importSumToSize(AtenContext &c) { c.result(sumTo(c.e, c.tensor("self"), c.dims("size"))); }
void importFloatPower(AtenContext &c) {
  std::vector<Val> v{c.cast(c.operand("self").value, DType::F64), c.cast(c.operand("exponent").value, DType::F64)};
  c.result(c.e.emit<PowOp>({v[0], v[1]}));
}

//===--- Distances and norms ----------------------------------------------------------===//

void importCosineSimilarity(AtenContext &c) {
  auto [a, b] = floatPair(c, "x1", "x2");
  int64_t axis = c.axis("dim", a.rank());
  Val x = c.wide(a), y = c.wide(b), least = c.like(x, c.number("eps"));
  auto length = [&](const Val &v) { return c.e.max(sqrtOf(c.e, sumOver(c.e, square(c.e, v), {axis}, false)), least); };
  Val product = sumOver(c.e, c.e.mul(x, y), {axis}, false);
  c.result(c.cast(c.e.div(product, c.e.mul(length(x), length(y))), a.dtype()));
}
void importPairwiseDistance(AtenContext &c) {
  auto [a, b] = floatPair(c, "x1", "x2");
  Val difference = c.e.add(c.e.sub(a, b), c.number("eps"));
  c.result(called(c, "linalg_vector_norm.default",
                  {Arg::tensor(difference), c.arg("p"), Arg::intList({-1}), c.arg("keepdim")}));
}
/// Over all axes but one, which -1 does not name.
void importNormExceptDim(AtenContext &c) {
  Val v = c.asFloat(c.tensor("v"));
  const int64_t kept = c.integer("dim") == -1 ? -1 : c.axis("dim", v.rank());
  Dims axes;
  for (int64_t axis = 0; axis < v.rank(); ++axis)
    if (axis != kept)
      axes.push_back(axis);
  if (axes.empty()) // an empty list would be all
    return c.result(absOf(c.e, v));
  c.result(called(c, "linalg_vector_norm.default",
                  {Arg::tensor(v), Arg::number(c.number("pow")), Arg::intList(axes), Arg::flag(kept != -1)}));
}

Val vectorNorm(AtenContext &c, const Arg &order, const Arg &axes) {
  return called(c, "linalg_vector_norm.default", {c.arg("self"), order, axes, c.arg("keepdim"), c.arg("dtype")});
}
/// `norms` has 1 for both axes of the matrices of x.
Val withoutMatrices(AtenContext &c, const Val &norms, const std::vector<int64_t> &axes) {
  Dims dims;
  for (int64_t i = 0; i < norms.rank(); ++i)
    if (c.flag("keepdim") || (i != axes[0] && i != axes[1]))
      dims.push_back(norms.extent(i));
  return c.e.reshape(norms, dims);
}
/// What `reduction` makes of the singular values.
Val singularNorm(AtenContext &c, const Val &x, const std::vector<int64_t> &axes, Reduction reduction) {
  std::vector<int64_t> order;
  Dims dims = x.dims();
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != axes[0] && i != axes[1])
      order.push_back(i);
  order.insert(order.end(), axes.begin(), axes.end());
  Val values = called(c, "linalg_svdvals.default", {Arg::tensor(c.e.transpose(x, order))});
  dims[axes[0]] = dims[axes[1]] = 1;
  if (values.extent(-1).is(0)) // the norms of no numbers are 0
    reduction = Reduction::sum;
  return c.e.reshape(c.e.reduce(reduction, values, {values.rank() - 1}, false), dims);
}
/// Largest or smallest sum of a row or column, or singular value; of no order the sum of singular values.
void matrixNorm(AtenContext &c, std::optional<double> order, std::vector<int64_t> axes) {
  c.require(!order || std::isinf(*order) || std::abs(*order) == 1 || std::abs(*order) == 2,
            "matrices have norms of the orders 1, 2, infinity and their negatives, not of " +
                std::to_string(order.value_or(0)));
  Val x = c.asFloat(c.tensor("self"));
  x = c.cast(x, c.type("dtype", x.dtype()));
  for (int64_t &axis : axes)
    axis = AtenContext::normalizeAxis(axis, x.rank());
  c.require(axes.size() == 2 && axes[0] != axes[1], "a matrix has two axes");
  Reduction outer = !order ? Reduction::sum : *order > 0 ? Reduction::max : Reduction::min;
  if (!order || std::abs(*order) == 2)
    return c.result(withoutMatrices(c, singularNorm(c, x, axes, outer), axes));
  const auto [first, second] = std::isinf(*order) ? std::pair(axes[1], axes[0]) : std::pair(axes[0], axes[1]);
  Val best = c.e.reduce(outer, sumOver(c.e, absOf(c.e, x), {first}, true), {second}, true);
  c.result(withoutMatrices(c, best, axes));
}
void importMatrixNorm(AtenContext &c) { matrixNorm(c, c.number("ord"), c.integers("dim")); }
std::vector<int64_t> matrixAxes(AtenContext &c) {
  return c.given("dim") ? c.integers("dim") : std::vector<int64_t>{-2, -1};
}
void importNamedNorm(AtenContext &c) {
  const std::string name = c.text("ord");
  c.require(name == "fro" || name == "nuc", "the norm '" + name + "' is unknown");
  if (name == "nuc")
    return matrixNorm(c, std::nullopt, matrixAxes(c));
  c.result(vectorNorm(c, Arg::number(2), c.arg("dim")));
}
void importFrobenius(AtenContext &c) {
  c.result(called(c, "linalg_vector_norm.default", {c.arg("self"), Arg::number(2), c.arg("dim"), c.arg("keepdim")}));
}
void importLinalgNorm(AtenContext &c) {
  Val x = c.tensor("self");
  size_t axes = c.given("dim") ? c.integers("dim").size() : static_cast<size_t>(x.rank());
  if (!c.given("ord") || axes == 1)
    return c.result(vectorNorm(c, c.given("ord") ? c.arg("ord") : Arg::number(2), c.arg("dim")));
  c.requireShape(axes == 2, "a norm with an order is of a vector or a matrix");
  matrixNorm(c, c.number("ord"), matrixAxes(c));
}

/// What lies at each place of an axis, shortened where its norm is above the limit.
void importRenorm(AtenContext &c) {
  Val given = c.tensor("self"), x = c.wide(given);
  c.requireShape(x.rank() > 1, "renorm takes a tensor of two axes or more");
  int64_t axis = c.axis("dim", x.rank());
  Dims others;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != axis)
      others.push_back(i);
  Val length =
      called(c, "linalg_vector_norm.default", {Arg::tensor(x), c.arg("p"), Arg::intList(others), Arg::flag(true)});
  Val most = c.like(x, c.number("maxnorm")), factor = c.e.div(most, c.e.add(length, 1e-7));
  factor = c.e.select(c.e.compare(Compare::gt, length, most), factor, c.like(x, 1));
  c.result(c.cast(c.e.mul(x, factor), given.dtype()));
}

} // namespace

std::vector<AtenRow> compositeOps() {
#define NORM ", bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"
  return {
      {"broadcast_tensors(Tensor[] tensors) -> Tensor[]", importBroadcastTensors},
      {"atleast_1d(Tensor self) -> Tensor", importAtLeast<1>},
      {"atleast_2d(Tensor self) -> Tensor", importAtLeast<2>},
      {"atleast_3d(Tensor self) -> Tensor", importAtLeast<3>},
      {"atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]", importAtLeastAll<1>},
      {"atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]", importAtLeastAll<2>},
      {"atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]", importAtLeastAll<3>},
      {"vstack(Tensor[] tensors) -> Tensor", importStackAlong<0>},
      {"hstack(Tensor[] tensors) -> Tensor", importStackAlong<1>},
      {"dstack(Tensor[] tensors) -> Tensor", importStackAlong<2>},
      {"column_stack(Tensor[] tensors) -> Tensor", importColumnStack},
      {"vsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", importSplitAlong<0>},
      {"vsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]", importSplitAlong<0>},
      {"hsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", importSplitAlong<1>},
      {"hsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]", importSplitAlong<1>},
      {"dsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", importSplitAlong<2>},
      {"dsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]", importSplitAlong<2>},
      {"flipud(Tensor self) -> Tensor", importFlipUpDown},
      {"fliplr(Tensor self) -> Tensor", importFlipLeftRight},
      {"ravel(Tensor(a) self) -> Tensor(a)", importRavel},
      {"isreal(Tensor self) -> Tensor", importIsReal},
      {"sum_to_size(Tensor self, SymInt[] size) -> Tensor", importSumToSize},
      {"float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", importFloatPower},
      {"float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", importFloatPower},
      {"float_power.Scalar(Scalar self, Tensor exponent) -> Tensor", importFloatPower},
      {"norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor", importNormExceptDim},
      {"frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", importFrobenius},
      {"linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)", importLinalgDiagonal},
      {"fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor", importHalves<0>},
      {"fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor", importHalves<1>},
      {"take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", importTakeAlong},
      {"tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor", importTensordot},
      {"inner(Tensor self, Tensor other) -> Tensor", importInner},
      {"linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", importVecdot},
      {"kron(Tensor self, Tensor other) -> Tensor", importKron},
      {"cross(Tensor self, Tensor other, int? dim=None) -> Tensor", importCrossAnywhere},
      {"linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", importCross},
      {"cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor", importCosineSimilarity},
      {"renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", importRenorm},
      {"pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) -> Tensor",
       importPairwiseDistance},
      {"linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None" NORM, importLinalgNorm},
      {"linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None" NORM, importNamedNorm},
      {"linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1]" NORM, importMatrixNorm},
      {"linalg_matrix_norm.str_ord(Tensor self, str ord=\"fro\", int[] dim=[-2, -1]" NORM, importNamedNorm},
  };
#undef NORM
}

} // namespace dmxc::torchfe
