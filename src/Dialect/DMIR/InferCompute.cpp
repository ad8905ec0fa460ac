//===- InferCompute.cpp - result types of reductions, products, windows ---===//
#include "Infer.h"

using namespace dmxc;
using namespace dmxc::dmir;

namespace {

RankedTensorType reducedType(RankedTensorType type, ArrayRef<int64_t> axes, bool keepDims, Type element) {
  SmallVector<Dim> dims;
  for (auto [i, dim] : llvm::enumerate(dimsOf(type))) {
    bool reduced = llvm::is_contained(axes, static_cast<int64_t>(i));
    if (!reduced || keepDims)
      dims.push_back(reduced ? Dim(1) : dim);
  }
  return tensorOf(dims, element);
}

LogicalResult checkAxis(OptLoc loc, int64_t axis, int64_t rank) {
  if (axis < 0 || axis >= rank)
    return emitOptionalError(loc, "C1: axis ", axis, " is not in [0, ", rank, ")");
  return success();
}

Type indexType(MLIRContext *context) { return mlir::IntegerType::get(context, 64); }

} // namespace

DMIR_INFER(ReduceOp) {
  auto type = typeOf(op.getInput());
  if (!axesValid(op.getAxes(), type.getRank()))
    return emitOptionalError(loc, "C1: axes must be sorted, unique and in [0, ", type.getRank(), ")");
  results.push_back(reducedType(type, op.getAxes(), op.getKeepDims(), type.getElementType()));
  return success();
}

DMIR_INFER(ArgReduceOp) {
  auto type = typeOf(op.getInput());
  if (failed(checkAxis(loc, op.getAxis(), type.getRank())))
    return failure();
  RankedTensorType result =
      reducedType(type, {static_cast<int64_t>(op.getAxis())}, op.getKeepDims(), indexType(context));
  if (type.getDimSize(op.getAxis()) == 0 && !elementsOf(result).is(0))
    return emitOptionalError(loc, "C2: axis ", op.getAxis(), " of ", type, " is empty");
  results.push_back(result);
  return success();
}

DMIR_INFER(CumSumOp) {
  if (failed(checkAxis(loc, op.getAxis(), rankOf(op.getInput()))))
    return failure();
  results.push_back(logicalType(op.getInput().getType()));
  return success();
}

DMIR_INFER(TopKOp) {
  auto type = typeOf(op.getInput());
  int64_t axis = op.getAxis(), number = op.getK();
  if (failed(checkAxis(loc, axis, type.getRank())))
    return failure();
  Dim k = mixDims(number, op.getDims())[0];
  if (k.valueOr(0) < 0 || (!type.isDynamicDim(axis) && k.valueOr(0) > type.getDimSize(axis)))
    return emitOptionalError(loc, "C2: k = ", k.str(), " is not in [0, ", type.getDimSize(axis), "]");
  SmallVector<Dim> dims = dimsOf(type);
  dims[axis] = k;
  results.push_back(tensorOf(dims, type.getElementType()));
  results.push_back(tensorOf(dims, indexType(context)));
  return success();
}

DMIR_INFER(GreedySelectOp) {
  SmallVector<Dim> candidates = dimsOf(op.getCandidates()), excludes = dimsOf(op.getExcludes());
  bool fits = candidates.size() == 2 && excludes.size() == 3 && rankOf(op.getLimit()) == 0;
  auto agree = [](Dim a, Dim b) { return a == b || !a.isStatic() || !b.isStatic(); };
  if (!fits || !agree(candidates[0], excludes[0]) || !agree(candidates[1], excludes[1]) ||
      !agree(candidates[1], excludes[2]))
    return emitOptionalError(loc, "C1: needs candidates [b, n], excludes [b, n, n] and a scalar limit, got ",
                             op.getCandidates().getType(), ", ", op.getExcludes().getType(), " and ",
                             op.getLimit().getType());
  results.push_back(logicalType(op.getCandidates().getType()));
  return success();
}

namespace {

bool isByte(Type type) { return type.isInteger(8); }

/// The sum's type of a product of plain elements: theirs, or i32 for bytes of different signs.
Type productElement(Type lhs, Type rhs) {
  if (lhs == rhs)
    return lhs;
  return isByte(lhs) && isByte(rhs) ? Type(mlir::IntegerType::get(lhs.getContext(), 32)) : Type();
}

/// Whether the sum of products of such elements may be the result, as it is.
bool isSumOf(Type sum, Type element) {
  return isByte(element) ? sum.isSignlessInteger(32) : (element.isF16() || element.isBF16()) && sum.isF32();
}

/// compatible(), but bytes may be summed in i32, and floats of 16 bits in f32, where their own type was inferred.
bool compatibleProduct(TypeRange inferred, TypeRange actual) {
  auto x = inferred.size() == 1 ? dyn_cast<RankedTensorType>(inferred[0]) : RankedTensorType();
  auto y = actual.size() == 1 ? dyn_cast<RankedTensorType>(actual[0]) : RankedTensorType();
  if (x && y && isSumOf(y.getElementType(), x.getElementType()))
    return compatible(TypeRange(RankedTensorType::get(x.getShape(), y.getElementType())), actual);
  return compatible(inferred, actual);
}

bool isBfp32OrFloat(Type type) { return isBfp32(type) || type.isF16() || type.isF32(); }

LogicalResult checkBlockProduct(OptLoc loc, BlockFpType lhs, BlockFpType rhs) {
  if (!lhs.hasBlocks() || lhs.getColumns() || !rhs.hasBlocks() || !rhs.getColumns())
    return emitOptionalError(loc, "C5: blocks must run along k, so operand 0 must be R and operand 1 C, got ", lhs,
                             " and ", rhs, "; cast or transpose");
  dmx::blockfp::BlockFormat a = lhs.getFormat(), b = rhs.getFormat();
  bool multiplied =
      a.kind == dmx::blockfp::FormatKind::Bfp && (a.precision == 4 || a.precision == 8 || a.precision == 16);
  if (a.kind != b.kind || a.precision != b.precision || a.block != b.block || !multiplied)
    return emitOptionalError(loc, "C6: the array has no product of ", lhs, " and ", rhs,
                             "; both need the same mantissa bits (4, 8 or 16) and block, so cast them");
  return success();
}

} // namespace

/// The inferred BFP32_1 of a block product may also leave the array as f16 or f32.
bool MatMulOp::isCompatibleReturnTypes(TypeRange a, TypeRange b) {
  if (a.size() != 1 || b.size() != 1)
    return false;
  auto x = dyn_cast<RankedTensorType>(a[0]), y = dyn_cast<RankedTensorType>(b[0]);
  if (x && y && (isBfp32(x.getElementType()) || isBfp32(y.getElementType())) && isBfp32OrFloat(x.getElementType()) &&
      isBfp32OrFloat(y.getElementType()))
    return compatible(TypeRange(x), TypeRange(RankedTensorType::get(y.getShape(), x.getElementType())));
  return compatibleProduct(a, b);
}

LogicalResult MatMulOp::verify() {
  bool blocks = static_cast<bool>(blockFpOf(getLhs().getType()));
  if (Type element = elementOf(getResult()); blocks && !isBfp32OrFloat(element))
    return emitOpError("C7: the product of block_fp is BFP32_1, f32 or f16, not ") << element;
  mlir::Attribute tiles = (*this)->getAttr(kTreeTilesAttr);
  auto integer = mlir::dyn_cast_or_null<mlir::IntegerAttr>(tiles);
  if (tiles && (!integer || !integer.getType().isSignlessInteger(64) || integer.getInt() < 1 || integer.getInt() > 64))
    return emitOpError("C8: '") << kTreeTilesAttr << "' must be an i64 from 1 to 64, got " << tiles;
  return success();
}

LogicalResult MatMulOp::inferReturnTypes(MLIRContext *context, OptLoc loc, MatMulOp::Adaptor op,
                                         SmallVectorImpl<Type> &results) {
  auto lhs = typeOf(op.getLhs()), rhs = typeOf(op.getRhs());
  if (lhs.getRank() < 2 || rhs.getRank() < 2)
    return emitOptionalError(loc, "C1: both operands need rank 2 or more, got ", lhs, " and ", rhs);
  Type element = lhs.getElementType();
  BlockFpType left = blockFpOf(lhs), right = blockFpOf(rhs);
  if (!left && !right)
    element = productElement(element, rhs.getElementType());
  if (static_cast<bool>(left) != static_cast<bool>(right) || !element)
    return emitOptionalError(loc, "C2: element types differ: ", lhs, " and ", rhs);
  if (left && failed(checkBlockProduct(loc, left, right)))
    return failure();
  if (left)
    element = BlockFpType::getBfp32(context);
  if (!dimsAgree(lhs.getShape().back(), rhs.getShape()[rhs.getRank() - 2]))
    return emitOptionalError(loc, "C3: the inner dims differ: ", lhs, " and ", rhs);
  SmallVector<Dim> leftDims = dimsOf(lhs), rightDims = dimsOf(rhs);
  auto batch = broadcastDims(ArrayRef<Dim>(leftDims).drop_back(2), ArrayRef<Dim>(rightDims).drop_back(2));
  if (!batch)
    return emitOptionalError(loc, "C4: the leading dims do not broadcast: ", lhs, " and ", rhs);
  batch->push_back(leftDims[leftDims.size() - 2]);
  batch->push_back(rightDims.back());
  results.push_back(tensorOf(*batch, element));
  return success();
}

LogicalResult GroupedMatMulOp::verify() {
  if (typeOf(getLhs()).getElementType() != typeOf(getRhs()).getElementType())
    return emitOpError("C2: element types differ: ") << getLhs().getType() << " and " << getRhs().getType();
  return success();
}

DMIR_INFER(GroupedMatMulOp) {
  SmallVector<Dim> lhs = dimsOf(op.getLhs()), rhs = dimsOf(op.getRhs()), ends = dimsOf(op.getEnds());
  if (lhs.size() != 2 || rhs.size() != 3 || ends.size() != 1 || rhs[0].is(0) || ends[0].is(0))
    return emitOptionalError(loc, "C1: needs lhs [m, k], rhs [groups, k, n] and ends [groups] of a group or more, got ",
                             op.getLhs().getType(), ", ", op.getRhs().getType(), " and ", op.getEnds().getType());
  auto agree = [](Dim a, Dim b) { return a == b || !a.isStatic() || !b.isStatic(); };
  if (!agree(lhs[1], rhs[1]) || !agree(rhs[0], ends[0]))
    return emitOptionalError(loc, "C3: the sizes of k or the numbers of groups differ: ", op.getLhs().getType(), ", ",
                             op.getRhs().getType(), " and ", op.getEnds().getType());
  results.push_back(tensorOf({lhs[0], rhs[2]}, elementOf(op.getLhs())));
  return success();
}

namespace {
bool allPositive(ArrayRef<int64_t> values) {
  return llvm::all_of(values, [](int64_t v) { return v > 0 && v <= INT32_MAX; });
}
bool moderate(ArrayRef<int64_t> values) {
  return llvm::all_of(values, [](int64_t v) { return (v >= INT32_MIN && v <= INT32_MAX) || ShapedType::isDynamic(v); });
}

/// The spatial dims of a window op's result.
template <typename Adaptor>
void appendWindows(SmallVectorImpl<Dim> &dims, Adaptor op, RankedTensorType input, ArrayRef<Dim> window) {
  SmallVector<Dim> low = mixDims(op.getLow(), op.getDims());
  SmallVector<Dim> high = mixDims(op.getHigh(), op.getDims(), countDynamic(op.getLow()));
  for (size_t i = 0; i < window.size(); ++i)
    dims.push_back(
        windowExtent(dimOf(input, i + 2), window[i], op.getStrides()[i], op.getDilations()[i], low[i], high[i]));
}
} // namespace

bool ConvOp::isCompatibleReturnTypes(TypeRange a, TypeRange b) { return compatibleProduct(a, b); }

LogicalResult ConvOp::inferReturnTypes(MLIRContext *context, OptLoc loc, ConvOp::Adaptor op,
                                       SmallVectorImpl<Type> &results) {
  auto input = typeOf(op.getInput()), weights = typeOf(op.getWeights());
  if (input.getRank() != weights.getRank() || input.getRank() < 3)
    return emitOptionalError(loc, "C1: input and weights need equal ranks of 3 or more, got ", input, " and ", weights);
  size_t spatial = input.getRank() - 2;
  if (op.getStrides().size() != spatial || op.getDilations().size() != spatial || op.getLow().size() != spatial ||
      op.getHigh().size() != spatial || !allPositive(op.getStrides()) || !allPositive(op.getDilations()) ||
      !moderate(op.getLow()) || !moderate(op.getHigh()))
    return emitOptionalError(loc, "C2: needs a positive stride and dilation and a low and high pad for each of the ",
                             spatial, " spatial axes");
  int64_t groups = op.getGroups(), channels = input.getDimSize(1), outputs = weights.getDimSize(0);
  bool known = !ShapedType::isDynamic(channels) && !weights.isDynamicDim(1);
  if (groups < 1 || (known && (channels % groups || channels / groups != weights.getDimSize(1))) ||
      (!weights.isDynamicDim(0) && outputs % groups))
    return emitOptionalError(loc, "C3: ", channels, " input channels and ", outputs,
                             " output channels do not fit weights ", weights, " in ", groups, " groups");
  Type element = productElement(input.getElementType(), weights.getElementType());
  if (!element)
    return emitOptionalError(loc, "C4: element types differ: ", input, " and ", weights);
  SmallVector<Dim> dims{dimOf(input, 0), dimOf(weights, 0)}, kernel = dimsOf(weights);
  appendWindows(dims, op, input, ArrayRef<Dim>(kernel).drop_front(2));
  results.push_back(tensorOf(dims, element));
  return success();
}

namespace {
template <typename Adaptor>
LogicalResult inferPool(OptLoc loc, Adaptor op, RankedTensorType input, Type element, SmallVectorImpl<Type> &results) {
  size_t spatial = input.getRank() < 3 ? 0 : input.getRank() - 2;
  if (!spatial || op.getWindow().size() != spatial || op.getStrides().size() != spatial ||
      op.getDilations().size() != spatial || op.getLow().size() != spatial || op.getHigh().size() != spatial ||
      !moderate(op.getLow()) || !moderate(op.getHigh()))
    return emitOptionalError(
        loc, "C1: needs rank 3 or more and a window, stride, dilation, low and high pad for each spatial axis of ",
        input);
  if (!allPositive(op.getWindow()) || !allPositive(op.getStrides()) || !allPositive(op.getDilations()))
    return emitOptionalError(loc, "C2: window, strides and dilations must be positive");
  SmallVector<Dim> dims{dimOf(input, 0), dimOf(input, 1)};
  appendWindows(dims, op, input, SmallVector<Dim>(op.getWindow().begin(), op.getWindow().end()));
  results.push_back(tensorOf(dims, element));
  return success();
}
} // namespace

DMIR_INFER(PoolOp) {
  auto input = typeOf(op.getInput());
  if (op.getCeilExtra().size() != op.getWindow().size())
    return emitOptionalError(loc, "C1: needs a ceilExtra for each spatial axis of ", input);
  return inferPool(loc, op, input, input.getElementType(), results);
}

DMIR_INFER(ArgMaxPoolOp) { return inferPool(loc, op, typeOf(op.getInput()), indexType(context), results); }

DMIR_INFER(SoftmaxOp) {
  if (failed(checkAxis(loc, op.getAxis(), rankOf(op.getInput()))))
    return failure();
  results.push_back(logicalType(op.getInput().getType()));
  return success();
}

DMIR_INFER(NormalizeOp) {
  if (!axesValid(op.getAxes(), rankOf(op.getInput())))
    return emitOptionalError(loc, "C1: axes must be sorted, unique and in [0, ", rankOf(op.getInput()), ")");
  results.push_back(logicalType(op.getInput().getType()));
  return success();
}
