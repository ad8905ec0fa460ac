//===- InferMovement.cpp - result types of data movement ------------------===//
#include "Infer.h"

using namespace dmxc;
using namespace dmxc::dmir;

DMIR_INFER(DimTensorOp) {
  size_t dynamic = countDynamic(op.getValues()), given = op.getDims() ? op.getDims()->getDims().size() : 0;
  if (dynamic != given)
    return emitOptionalError(loc, "C1: ", dynamic, " values are dynamic, and there are ", given, " dims");
  results.push_back(RankedTensorType::get(op.getValues().size(), mlir::IntegerType::get(context, 64)));
  return success();
}

LogicalResult DefineDimsOp::verify() {
  auto type = typeOf(getInput());
  llvm::SmallDenseSet<mlir::Attribute> seen(getSymbols().begin(), getSymbols().end());
  if (type.getRank() != 1 || type.getDimSize(0) != static_cast<int64_t>(getSymbols().size()) ||
      getMax().getDims().size() != getSymbols().size() || seen.size() != getSymbols().size())
    return emitOpError("C1: needs a symbol of its own and a max for each element of ") << type;
  return success();
}

LogicalResult IotaOp::verify() {
  int64_t axis = getAxis();
  if (axis < 0 || axis >= rankOf(getResult()))
    return emitOpError("C1: axis ") << axis << " is not in [0, " << rankOf(getResult()) << ")";
  return success();
}

LogicalResult ReshapeOp::verify() {
  auto from = typeOf(getInput()), to = typeOf(getResult());
  if (from.getElementType() != to.getElementType())
    return emitOpError("C1: element types differ: ") << from << " and " << to;
  if (from.hasStaticShape() && to.hasStaticShape() && from.getNumElements() != to.getNumElements())
    return emitOpError("C2: element counts differ: ") << from << " and " << to;
  return success();
}

LogicalResult BroadcastOp::verify() {
  auto from = typeOf(getInput()), to = typeOf(getResult());
  if (from.getElementType() != to.getElementType())
    return emitOpError("C1: element types differ: ") << from << " and " << to;
  int64_t lead = to.getRank() - from.getRank();
  bool fits = lead >= 0;
  for (int64_t i = 0; fits && i < from.getRank(); ++i)
    fits = from.getDimSize(i) == 1 || dimsAgree(from.getDimSize(i), to.getDimSize(lead + i));
  if (!fits)
    return emitOpError("C2: ") << from << " does not broadcast to " << to;
  return success();
}

LogicalResult RelayoutOp::verify() {
  if (logicalType(getInput().getType()) != logicalType(getType()))
    return emitOpError("C1: operand and result differ in more than their layout: ")
           << getInput().getType() << " and " << getType();
  return success();
}

DMIR_INFER(TransposeOp) {
  auto type = typeOf(op.getInput());
  ArrayRef<int64_t> permutation = op.getPermutation();
  SmallVector<int64_t> sorted(permutation);
  llvm::sort(sorted);
  bool valid = static_cast<int64_t>(sorted.size()) == type.getRank();
  for (int64_t i = 0; valid && i < type.getRank(); ++i)
    valid = sorted[i] == i;
  if (!valid)
    return emitOptionalError(loc, "C1: permutation is not one of 0..", type.getRank() - 1);
  SmallVector<Dim> dims, own = dimsOf(type);
  for (int64_t axis : permutation)
    dims.push_back(own[axis]);
  Type element = type.getElementType();
  if (auto block = dyn_cast<BlockFpType>(element); block && block.hasBlocks()) {
    int64_t rank = type.getRank(), last = rank < 2 ? -1 : permutation.back();
    bool swapped = last == rank - 2 && permutation[rank - 2] == rank - 1;
    if (rank < 2 || (!swapped && (last != rank - 1 || permutation[rank - 2] != rank - 2)))
      return emitOptionalError(loc, "C2: the last two dimensions of ", type, " must stay the last two");
    element = swapped ? block.transposed() : block;
  }
  results.push_back(tensorOf(dims, element));
  return success();
}

DMIR_INFER(SliceOp) {
  auto type = typeOf(op.getInput());
  ArrayRef<int64_t> starts = op.getStarts(), sizes = op.getSizes(), steps = op.getSteps();
  size_t rank = type.getRank();
  if (starts.size() != rank || sizes.size() != rank || steps.size() != rank)
    return emitOptionalError(loc, "C1: needs one start, size and step for each of the ", rank, " axes");
  size_t dynamic = countDynamic(starts) + countDynamic(sizes),
         given = op.getDims() ? op.getDims()->getDims().size() : 0;
  if (dynamic != given)
    return emitOptionalError(loc, "C1: ", dynamic, " starts and sizes are dynamic, and there are ", given, " dims");
  for (size_t i = 0; i < rank; ++i) {
    int64_t dim = type.getDimSize(i);
    if (steps[i] == 0)
      return emitOptionalError(loc, "C2: the step of axis ", i, " is 0");
    if (sizes[i] == 0 || ShapedType::isDynamic(dim) || ShapedType::isDynamic(sizes[i]) ||
        ShapedType::isDynamic(starts[i]))
      continue;
    // Division, so that hostile attributes cannot overflow.
    int64_t first = starts[i], step = steps[i];
    bool inside = sizes[i] > 0 && step != 0 && first >= 0 && first < dim;
    if (inside && sizes[i] > 1)
      inside = step > 0 ? (dim - 1 - first) / step >= sizes[i] - 1 : step != INT64_MIN && first / -step >= sizes[i] - 1;
    if (!inside)
      return emitOptionalError(loc, "C2: axis ", i, " of ", type, " is read outside its range: start ", first,
                               ", size ", sizes[i], ", step ", step);
  }
  if (int64_t axis = blockedDim(type); axis >= 0) {
    int64_t block = cast<BlockFpType>(type.getElementType()).getBlock(), dim = type.getDimSize(axis);
    bool whole = sizes[axis] % block == 0 || (!ShapedType::isDynamic(dim) && sizes[axis] == dim - starts[axis]);
    if (starts[axis] % block || !whole || (steps[axis] != 1 && sizes[axis] > 1))
      return emitOptionalError(loc, "C3: axis ", axis, " of ", type, " is cut between multiples of its block of ",
                               block, ": start ", starts[axis], ", size ", sizes[axis], ", step ", steps[axis]);
  }
  results.push_back(tensorOf(mixDims(sizes, op.getDims(), countDynamic(starts)), type.getElementType()));
  return success();
}

LogicalResult PadBlocksOp::verify() {
  auto from = typeOf(getInput()), to = typeOf(getResult());
  BlockFpType block = blockFpOf(from);
  if (!block || !block.hasBlocks() || from.getElementType() != to.getElementType() || from.getRank() != to.getRank())
    return emitOpError("C1: needs one block_fp type and one rank, got ") << from << " and " << to;
  for (RankedTensorType type : {from, to})
    if (failed(checkWireFormat([&] { return emitOpError(); }, "C1", type)))
      return failure();
  for (int64_t i = 0; i < from.getRank(); ++i)
    if (i < from.getRank() - 2 ? from.getDimSize(i) != to.getDimSize(i) : from.getDimSize(i) > to.getDimSize(i))
      return emitOpError("C2: dimension ") << i << " of " << from << " does not become that of " << to;
  return success();
}

/// Whether a tensor has the dims of an operand that serves blocks: 1, or those of `whole`.
static bool servesBlocks(ArrayRef<Dim> dims, ArrayRef<Dim> whole) {
  return dims.size() == whole.size() && llvm::all_of(llvm::zip(dims, whole), [](auto pair) {
           return std::get<0>(pair).is(1) || std::get<0>(pair) == std::get<1>(pair);
         });
}

LogicalResult DequantizeOp::verify() {
  SmallVector<Dim> dims = dimsOf(getResult()), blocks = dims, scales = dimsOf(getScale());
  int64_t bits = getBits(), axis = getAxis(), block = getBlock(), rank = dims.size();
  auto bytesOf = [&](Dim elements) { return Dim::ceilDiv(elements * bits, 8); };
  SmallVector<Dim> bytes = dims;
  if (rank)
    bytes.back() = bytesOf(dims.back());
  if ((bits != 2 && bits != 4 && bits != 8) || dimsOf(getInput()) != bytes)
    return emitOpError("C1: ") << bits << " bits an element of " << getType() << " do not lie in "
                               << getInput().getType();
  if (axis < 0 || axis >= rank || block <= 0)
    return emitOpError("C2: blocks of ") << block << " along axis " << axis << " of " << getType();
  blocks[axis] = Dim::ceilDiv(dims[axis], block);
  if (elementOf(getScale()).isF64() != getType().getElementType().isF64() || !servesBlocks(scales, blocks))
    return emitOpError("C2: a scale of ")
           << getScale().getType() << " for blocks of " << block << " along axis " << axis << " of " << getType();
  if (!getZeroPoints())
    return success();
  SmallVector<Dim> packed = scales;
  packed.back() = bytesOf(scales.back());
  bool isFloat = getZeroPoints().getType() == getScale().getType();
  if (!isFloat && (elementOf(getZeroPoints()) != elementOf(getInput()) || dimsOf(getZeroPoints()) != packed))
    return emitOpError("C3: zero points of ")
           << getZeroPoints().getType() << " for a scale of " << getScale().getType();
  return success();
}

DMIR_INFER(RoundBlocksOp) {
  auto type = typeOf(op.getInput());
  if (!type.getElementType().isF32() || type.getRank() == 0)
    return emitOptionalError(loc, "C1: no rows of f32 in ", type);
  if (static_cast<int64_t>(op.getBlock()) <= 0)
    return emitOptionalError(loc, "C2: blocks of ", static_cast<int64_t>(op.getBlock()));
  results.push_back(logicalType(type));
  return success();
}

LogicalResult UndefOp::verify() {
  if (!getType().hasStaticShape())
    return emitOpError("C1: the shape of ") << getType() << " is not static";
  return success();
}

LogicalResult ConstantOp::verify() {
  return checkWireFormat([&] { return emitOpError(); }, "C2", getType());
}

namespace {
LogicalResult checkPadding(OptLoc loc, PadOp::Adaptor op, int64_t axis, int64_t dim) {
  int64_t low = op.getLow()[axis], high = op.getHigh()[axis], interior = op.getInterior()[axis];
  auto negative = [](int64_t pad) { return pad < 0 && !ShapedType::isDynamic(pad); };
  if (negative(low) || negative(high) || interior < 0)
    return emitOptionalError(loc, "C1: negative padding on axis ", axis);
  if (op.getMode() == PadMode::constant || ShapedType::isDynamic(dim) || ShapedType::isDynamic(low) ||
      ShapedType::isDynamic(high))
    return success();
  int64_t most = std::max(low, high);
  bool fits =
      interior == 0 && (op.getMode() == PadMode::reflect ? most < std::max<int64_t>(dim, 1) : dim > 0 || most == 0);
  if (!fits)
    return emitOptionalError(loc, "C3: axis ", axis, " of size ", dim, " cannot be padded by ", low, " and ", high,
                             " in mode ", stringifyPadMode(op.getMode()));
  return success();
}
} // namespace

DMIR_INFER(PadOp) {
  auto type = typeOf(op.getInput());
  size_t rank = type.getRank();
  if (op.getLow().size() != rank || op.getHigh().size() != rank || op.getInterior().size() != rank)
    return emitOptionalError(loc, "C1: needs one low, high and interior padding for each of the ", rank, " axes");
  if (typeOf(op.getValue()).getRank() != 0 || elementOf(op.getValue()) != type.getElementType())
    return emitOptionalError(loc, "C2: the value must be a rank-0 tensor of ", type.getElementType());
  size_t dynamic = countDynamic(op.getLow()) + countDynamic(op.getHigh());
  if (dynamic != (op.getDims() ? op.getDims()->getDims().size() : 0))
    return emitOptionalError(loc, "C1: ", dynamic, " paddings are dynamic, and there are not as many dims");
  SmallVector<Dim> low = mixDims(op.getLow(), op.getDims());
  SmallVector<Dim> high = mixDims(op.getHigh(), op.getDims(), countDynamic(op.getLow()));
  SmallVector<Dim> dims = dimsOf(type);
  for (size_t i = 0; i < rank; ++i) {
    if (failed(checkPadding(loc, op, i, type.getDimSize(i))))
      return failure();
    Dim between = op.getInterior()[i] ? Dim::max(dims[i] - 1, 0) * op.getInterior()[i] : Dim(0);
    dims[i] = dims[i] + low[i] + high[i] + between;
  }
  results.push_back(tensorOf(dims, type.getElementType()));
  return success();
}

DMIR_INFER(ConcatOp) {
  if (op.getInputs().empty())
    return emitOptionalError(loc, "C1: needs at least one operand");
  auto first = typeOf(op.getInputs()[0]);
  int64_t axis = op.getAxis(), rank = first.getRank();
  if (axis < 0 || axis >= rank)
    return emitOptionalError(loc, "C3: axis ", axis, " is not in [0, ", rank, ")");
  SmallVector<Dim> dims = dimsOf(first);
  dims[axis] = 0;
  for (Value input : op.getInputs()) {
    auto type = typeOf(input);
    bool fits = type.getRank() == rank && type.getElementType() == first.getElementType();
    for (int64_t i = 0; fits && i < rank; ++i)
      fits = i == axis || dimsAgree(type.getDimSize(i), first.getDimSize(i));
    int64_t before = dims[axis].valueOr(0);
    if (fits && axis == blockedDim(first) && before % cast<BlockFpType>(first.getElementType()).getBlock())
      return emitOptionalError(loc, "C4: along its blocked dimension ", type, " would be joined after ", before,
                               " elements, which is no multiple of the block");
    if (!fits)
      return emitOptionalError(loc, "C2: ", type, " cannot be joined to ", first, " along axis ", axis);
    dims[axis] += dimOf(type, axis);
    // Off the axis, a number says more than a symbol.
    for (int64_t i = 0; i < rank; ++i)
      if (i != axis && !dims[i].isStatic() && !type.isDynamicDim(i))
        dims[i] = type.getDimSize(i);
  }
  results.push_back(tensorOf(dims, first.getElementType(), commonLayout(op.getInputs(), dimsOf(first))));
  return success();
}

DMIR_INFER(GatherOp) {
  auto data = typeOf(op.getData());
  int64_t axis = op.getAxis();
  if (axis < 0 || axis >= data.getRank())
    return emitOptionalError(loc, "C1: axis ", axis, " is not in [0, ", data.getRank(), ")");
  SmallVector<Dim> from = dimsOf(data), dims(from.begin(), from.begin() + axis);
  llvm::append_range(dims, dimsOf(op.getIndices()));
  llvm::append_range(dims, ArrayRef<Dim>(from).drop_front(axis + 1));
  results.push_back(tensorOf(dims, data.getElementType()));
  return success();
}

namespace {
LogicalResult checkElementIndices(OptLoc loc, Value data, Value indices, int64_t axis, bool boundOffAxis) {
  int64_t rank = rankOf(data);
  if (rankOf(indices) != rank || axis < 0 || axis >= rank)
    return emitOptionalError(loc, "C1: data ", data.getType(), " and indices ", indices.getType(),
                             " need equal ranks and an axis inside, got ", axis);
  for (int64_t i = 0; boundOffAxis && i < rank; ++i) {
    int64_t have = shapeOf(data)[i], want = shapeOf(indices)[i];
    if (i != axis && !ShapedType::isDynamic(have) && !ShapedType::isDynamic(want) && want > have)
      return emitOptionalError(loc, "C2: indices ", indices.getType(), " reach outside data ", data.getType(),
                               " on axis ", i);
  }
  return success();
}
} // namespace

DMIR_INFER(GatherElementsOp) {
  if (failed(checkElementIndices(loc, op.getData(), op.getIndices(), op.getAxis(), /*boundOffAxis=*/true)))
    return failure();
  results.push_back(tensorOf(dimsOf(op.getIndices()), elementOf(op.getData())));
  return success();
}

DMIR_INFER(GatherNDOp) {
  auto data = typeOf(op.getData()), indices = typeOf(op.getIndices());
  int64_t batch = op.getBatchDims();
  bool valid = batch >= 0 && batch < std::min(data.getRank(), indices.getRank());
  for (int64_t i = 0; valid && i < batch; ++i)
    valid = dimsAgree(data.getDimSize(i), indices.getDimSize(i));
  if (!valid)
    return emitOptionalError(loc, "C1: batchDims ", batch, " does not fit ", data, " and ", indices);
  int64_t tuple = indices.getShape().back();
  if (ShapedType::isDynamic(tuple) || tuple > data.getRank() - batch)
    return emitOptionalError(loc, "C2: index tuples of ", indices, " are longer than the rank of ", data);
  SmallVector<Dim> dims = dimsOf(indices);
  dims.pop_back();
  llvm::append_range(dims, ArrayRef<Dim>(dimsOf(data)).drop_front(batch + tuple));
  results.push_back(tensorOf(dims, data.getElementType()));
  return success();
}

DMIR_INFER(ScatterElementsOp) {
  if (failed(checkElementIndices(loc, op.getData(), op.getIndices(), op.getAxis(), /*boundOffAxis=*/false)))
    return failure();
  if (!compatible(TypeRange(RankedTensorType::get(shapeOf(op.getIndices()), elementOf(op.getUpdates()))),
                  op.getUpdates().getType()))
    return emitOptionalError(loc, "C2: updates ", op.getUpdates().getType(), " and indices ", op.getIndices().getType(),
                             " differ in shape");
  if (elementOf(op.getUpdates()) != elementOf(op.getData()))
    return emitOptionalError(loc, "C3: updates and data differ in element type");
  results.push_back(logicalType(op.getData().getType()));
  return success();
}

DMIR_INFER(ScatterNDOp) {
  auto data = typeOf(op.getData()), indices = typeOf(op.getIndices());
  int64_t tuple = indices.getRank() ? indices.getShape().back() : -1;
  if (tuple < 0 || tuple > data.getRank())
    return emitOptionalError(loc, "C1: index tuples of ", indices, " do not fit the rank of ", data);
  SmallVector<Dim> dims = dimsOf(indices);
  dims.pop_back();
  llvm::append_range(dims, ArrayRef<Dim>(dimsOf(data)).drop_front(tuple));
  auto expected = tensorOf(dims, elementOf(op.getUpdates()));
  if (!compatible(TypeRange(expected), op.getUpdates().getType()))
    return emitOptionalError(loc, "C2: updates must have shape of ", expected, ", got ", op.getUpdates().getType());
  if (elementOf(op.getUpdates()) != data.getElementType())
    return emitOptionalError(loc, "C3: updates and data differ in element type");
  results.push_back(logicalType(data));
  return success();
}
