//===- RandomGraph.cpp - graphs with masks and sparse constants in them ---===//
#include "RandomGraph.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/masks/Where.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::dmir;

namespace dmxc::graphs {

static constexpr int64_t kLow = 2, kHigh = 9;

RandomGraph::RandomGraph(MLIRContext &context, unsigned seed)
    : engine(seed), context(context), b(&context), loc(b.getUnknownLoc()) {
  module = ModuleOp::create(loc);
  b.setInsertionPointToEnd(module->getBody());
  SmallVector<Type> types;
  for (int64_t i = number(1, 3); i > 0; --i) {
    SmallVector<int64_t> shape{number(kLow, kHigh), number(kLow, kHigh)};
    if (number(0, 2) == 0)
      shape.insert(shape.begin(), number(1, 3));
    types.push_back(type(shape));
  }
  auto function = func::FuncOp::create(b, loc, "main", b.getFunctionType(types, {}));
  Block *body = function.addEntryBlock();
  b.setInsertionPointToEnd(body);
  values.assign(body->args_begin(), body->args_end());
  for (int64_t i = number(4, 14); i > 0; --i)
    if (V made = step())
      values.push_back(made);
  for (int64_t i = number(0, 2); i > 0; --i) // parts of the last one
    if (V made = number(0, 1) ? moved(values.back()) : masked(values.back()))
      values.push_back(made);
  SmallVector<V> results;
  for (int64_t i = number(1, 3); i > 0; --i)
    results.push_back(i == 1 ? values.back() : pick());
  func::ReturnOp::create(b, loc, results);
  function.setFunctionType(b.getFunctionType(types, ValueRange(results).getTypes()));
}

std::vector<Tensor> RandomGraph::inputs() {
  std::vector<Tensor> all;
  for (Type type : function().getArgumentTypes()) {
    auto shape = cast<RankedTensorType>(type).getShape();
    Tensor tensor(DType::F32, Shape(shape.begin(), shape.end()));
    for (int64_t i = 0; i < tensor.numElements(); ++i)
      tensor.setDouble(i, static_cast<double>(number(-4, 4)) / 2);
    all.push_back(tensor);
  }
  return all;
}

RankedTensorType RandomGraph::type(ArrayRef<int64_t> shape) { return RankedTensorType::get(shape, b.getF32Type()); }
RandomGraph::V RandomGraph::pick() { return values[number(0, static_cast<int64_t>(values.size()) - 1)]; }

RandomGraph::V RandomGraph::matrix() {
  for (int tries = 0; tries < 8; ++tries)
    if (V x = pick(); typeOf(x).getRank() >= 2)
      return x;
  return {};
}

RandomGraph::V RandomGraph::constant(ArrayRef<int64_t> shape, llvm::function_ref<double(int64_t, int64_t)> at) {
  Tensor tensor(DType::F32, Shape(shape.begin(), shape.end()));
  int64_t columns = shape.empty() ? 1 : shape.back(), rows = shape.size() < 2 ? 1 : shape[shape.size() - 2];
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    tensor.setDouble(i, at(i / columns % rows, i % columns));
  return ConstantOp::create(b, loc, constantAttr(tensor, type(shape)));
}

RandomGraph::V RandomGraph::scalar(double value) {
  return constant({}, [&](int64_t, int64_t) { return value; });
}

/// A constant matrix with zeros as weights have them.
RandomGraph::V RandomGraph::sparse(int64_t rows, int64_t columns) {
  int64_t form = number(0, 9), n = number(-2, 3), m = number(1, 3), of = number(2, 3), first = number(0, rows - 1);
  return constant({rows, columns}, [&](int64_t i, int64_t j) -> double {
    bool kept[] = {j <= i + n,
                   j >= i + n,
                   std::abs(i - j) <= m,
                   rows % of == 0 && columns % of == 0 ? i / (rows / of) == j / (columns / of) : i / of == j / of,
                   i >= first,
                   j % of == 0,
                   false,
                   (i - j) % of == 0,
                   number(0, 3) == 0,
                   true};
    double values[] = {-2, -1, -0.5, 0.5, 1, 2};
    return kept[form] ? values[number(0, 5)] : number(0, 1) ? 0.0 : -0.0;
  });
}

/// A comparison of indices of the last two axes, as bools.
RandomGraph::V RandomGraph::rule(ArrayRef<int64_t> shape) {
  int64_t rows = shape[shape.size() - 2], columns = shape.back();
  auto i = IotaOp::create(b, loc, RankedTensorType::get({rows, 1}, b.getI64Type()), 0);
  V row = i, column = IotaOp::create(b, loc, RankedTensorType::get({1, columns}, b.getI64Type()), 1);
  Tensor shift(DType::I64, Shape{});
  shift.setInt(0, number(-2, 3));
  V by = ConstantOp::create(b, loc, constantAttr(shift, RankedTensorType::get({}, b.getI64Type())));
  row = AddOp::create(b, loc, row, by);
  Compare kinds[] = {Compare::lt, Compare::le, Compare::gt, Compare::ge, Compare::eq, Compare::ne};
  V result = CompareOp::create(b, loc, kinds[number(0, 5)], column, row);
  if (number(0, 3) == 0)
    result = NotOp::create(b, loc, result);
  if (number(0, 3) == 0)
    result = OrOp::create(b, loc, result, CompareOp::create(b, loc, Compare::lt, column, by));
  return result;
}

ArrayAttr RandomGraph::keep(int64_t rank, int64_t rows, int64_t columns) {
  AffineExpr i = getAffineDimExpr(rank - 2, &context), j = getAffineDimExpr(rank - 1, &context);
  SmallVector<Attribute> cases;
  for (int64_t count = number(1, 2); count > 0; --count) {
    AffineExpr exprs[] = {i - j + number(0, 2), j - i + number(0, 2), i.floorDiv(2) - j.floorDiv(2),
                          -j + number(0, columns), i - number(0, rows - 1)};
    int64_t which = number(0, 4);
    Conditions conditions{{exprs[which], which == 2}};
    if (number(0, 2) == 0)
      conditions.push_back({j - i + number(1, 3), false});
    cases.push_back(IntegerSetAttr::get(caseOf(rank, 0, conditions)));
  }
  return b.getArrayAttr(cases);
}

RandomGraph::V RandomGraph::like(V x) {
  for (int tries = 0; tries < 6; ++tries)
    if (V y = pick(); y.getType() == x.getType())
      return y;
  ArrayRef<int64_t> shape = shapeOf(x);
  return shape.size() >= 2 ? sparse(shape[shape.size() - 2], shape.back()) : scalar(2);
}

RandomGraph::V RandomGraph::step() {
  V x = pick();
  switch (number(0, 9)) {
  case 0:
  case 1:
    return elementwise(x);
  case 2:
  case 3:
    return masked(x);
  case 4:
  case 5:
    return product(x);
  case 6:
    return reduced(x);
  case 7:
    return joined(x);
  default:
    return moved(x);
  }
}

RandomGraph::V RandomGraph::elementwise(V x) {
  switch (number(0, 10)) {
  case 0:
    return ReluOp::create(b, loc, x);
  case 1:
    return NegOp::create(b, loc, x);
  case 2:
    return AbsOp::create(b, loc, x);
  case 3:
    return TanhOp::create(b, loc, x);
  case 4:
    return GeluOp::create(b, loc, x);
  case 5:
    return AddOp::create(b, loc, x, like(x));
  case 6:
    return SubOp::create(b, loc, x, like(x));
  case 7:
    return MaxOp::create(b, loc, x, like(x));
  case 8:
    return AddOp::create(b, loc, x, scalar(number(0, 2)));
  case 9:
    return SigmoidOp::create(b, loc, x);
  default:
    return MulOp::create(b, loc, x, like(x));
  }
}

RandomGraph::V RandomGraph::masked(V x) {
  ArrayRef<int64_t> shape = shapeOf(x);
  int64_t rank = static_cast<int64_t>(shape.size());
  if (rank < 2)
    return {};
  int64_t rows = shape[rank - 2], columns = shape.back();
  auto fill = [&](double value) { return b.getFloatAttr(b.getF32Type(), value); };
  switch (number(0, 5)) {
  case 0: // rows that see nothing are NaN, and may not be said to be anything else
  case 1: {
    V scores = MaskOp::create(b, loc, x.getType(), x, ValueRange(), keep(rank, rows, columns),
                              fill(-std::numeric_limits<double>::infinity()), DimsAttr(), nullptr, nullptr);
    return SoftmaxOp::create(b, loc, scores, rank - 1);
  }
  case 2:
    return MaskOp::create(b, loc, x.getType(), x, ValueRange(), keep(rank, rows, columns), fill(0), DimsAttr(), nullptr,
                          nullptr);
  case 3:
    return SelectOp::create(b, loc, rule(shape), x, scalar(number(0, 1)));
  case 4: {
    V condition = rule(shape);
    return SelectOp::create(b, loc, condition, scalar(0), x);
  }
  default:
    return MulOp::create(b, loc, x, CastOp::create(b, loc, type({rows, columns}), rule({rows, columns})));
  }
}

RandomGraph::V RandomGraph::product(V x) {
  ArrayRef<int64_t> shape = shapeOf(x);
  if (shape.size() < 2)
    return {};
  int64_t own = shape.back(), other = number(kLow, kHigh);
  if (V y = matrix(); y && shapeOf(y)[shapeOf(y).size() - 2] == own && (shape.size() == 2 || shapeOf(y).size() == 2))
    return MatMulOp::create(b, loc, x, y);
  if (number(0, 2) == 0)
    return MatMulOp::create(b, loc, sparse(other, shape[shape.size() - 2]), x);
  return MatMulOp::create(b, loc, x, sparse(own, number(0, 1) ? own : other));
}

RandomGraph::V RandomGraph::reduced(V x) {
  int64_t rank = typeOf(x).getRank();
  if (rank < 2)
    return {};
  int64_t axis = number(0, rank - 1);
  if (number(0, 3) == 0)
    return NormalizeOp::create(b, loc, Normalization::rms, x, ArrayRef<int64_t>{axis}, APFloat(1e-5));
  Reduction kinds[] = {Reduction::sum, Reduction::mean, Reduction::max, Reduction::min};
  return ReduceOp::create(b, loc, kinds[number(0, 3)], x, ArrayRef<int64_t>{axis}, number(0, 1) == 0);
}

RandomGraph::V RandomGraph::joined(V x) {
  V y = like(x);
  if (y.getType() != x.getType())
    return {};
  return ConcatOp::create(b, loc, ValueRange{x, y}, number(0, typeOf(x).getRank() - 1));
}

RandomGraph::V RandomGraph::moved(V x) {
  SmallVector<int64_t> shape(shapeOf(x));
  int64_t rank = static_cast<int64_t>(shape.size());
  if (rank < 1)
    return {};
  int64_t axis = number(0, rank - 1);
  switch (number(0, 4)) {
  case 0: {
    SmallVector<int64_t> order(rank);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), engine);
    return TransposeOp::create(b, loc, x, order);
  }
  case 1: { // split, or join
    if (rank > 1 && number(0, 1)) {
      int64_t at = number(0, rank - 2);
      shape[at] *= shape[at + 1];
      shape.erase(shape.begin() + at + 1);
    } else if (shape[axis] % 2 == 0 && rank < 4) {
      shape[axis] /= 2;
      shape.insert(shape.begin() + axis + 1, 2);
    }
    return ReshapeOp::create(b, loc, type(shape), x);
  }
  case 2: {
    SmallVector<int64_t> wider(shape);
    wider.insert(wider.begin(), number(1, 2));
    return rank < 4 ? V(BroadcastOp::create(b, loc, type(wider), x)) : V();
  }
  case 3: {
    Tensor picks(DType::I64, Shape{number(1, 3)});
    for (int64_t i = 0; i < picks.numElements(); ++i)
      picks.setInt(i, number(0, shape[axis] - 1));
    return GatherOp::create(
        b, loc, x,
        ConstantOp::create(b, loc, constantAttr(picks, RankedTensorType::get(picks.shape(), b.getI64Type()))), axis);
  }
  default: {
    SmallVector<int64_t> starts(rank, 0), steps(rank, 1), sizes(shape);
    steps[axis] = number(0, 3) == 0 ? -1 : number(1, 2);
    starts[axis] = steps[axis] < 0 ? shape[axis] - 1 : number(0, shape[axis] - 1);
    int64_t room = steps[axis] < 0 ? shape[axis] : (shape[axis] - starts[axis] + steps[axis] - 1) / steps[axis];
    sizes[axis] = number(1, room);
    return SliceOp::create(b, loc, type(sizes), x, starts, sizes, steps, DimsAttr());
  }
  }
}

} // namespace dmxc::graphs
