//===- StageUnits.cpp - ops on whole buffers to tasks ---------------------===//
#include "../ElementFunctions.h"
#include "StageWriter.h"

#include "targets/corsair/decide/Ops.h"
#include "targets/corsair/user/UserBody.h"
#include "targets/corsair/user/UserTasks.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

Result<SmallVector<DeviceTensor>> StageWriter::operandsOf(Operation *op, ValueRange inputs, ValueRange outs) {
  if (outs.size() != 1)
    return fail(op, "fills no buffer").takeError();
  SmallVector<DeviceTensor> all;
  for (ValueRange values : {inputs, outs})
    for (Value value : values) {
      Result<DeviceTensor> tensor = tensorOf(op, value);
      if (!tensor)
        return tensor.takeError();
      all.push_back(*tensor);
    }
  return all;
}

Status StageWriter::move(lldmir::ReshapeOp op) {
  task(op);
  auto all = operandsOf(op, op.getInputs(), op.getOuts());
  if (!all)
    return all.takeError();
  auto axis = op.getParametersAttr() ? op.getParametersAttr().getAs<IntegerAttr>("axis") : IntegerAttr();
  const bool scatters = op.getFunction() == lldmir::kScatterRows;
  if ((op.getFunction() != lldmir::kGatherRows && !scatters) || all->size() != 3 || !axis)
    return fail(op, "names no movement that the reshape engine has");
  if (scatters)
    return scatter(op, *all, axis.getInt());
  const DeviceTensor &data = (*all)[0], &indices = (*all)[1], &to = (*all)[2];
  const auto rank = static_cast<int64_t>(data.rank());
  const bool isInteger = indices.kind == hw::ElemKind::I64 || indices.kind == hw::ElemKind::I32;
  if (axis.getInt() < 0 || axis.getInt() >= rank || !isInteger || data.kind != to.kind || !data.shape[axis.getInt()] ||
      data.elements() / data.shape[axis.getInt()] * indices.elements() != to.elements())
    return fail(op, "gathers other rows than its result has");
  for (const DeviceTensor *dense : {&data, &indices, &to})
    if (!dense->isRowMajor())
      return fail(op, "needs buffers that lie row by row");
  KernelWriter::gatherRows(data, indices, to, axis.getInt());
  return Status::ok();
}

/// A row of updates for each index.
Status StageWriter::scatter(Operation *op, ArrayRef<DeviceTensor> all, int64_t axis) {
  const DeviceTensor &updates = all[0], &indices = all[1], &to = all[2];
  const bool isInteger = indices.kind == hw::ElemKind::I64 || indices.kind == hw::ElemKind::I32;
  bool fits = isInteger && updates.kind == to.kind && updates.shape == indices.shape && updates.rank() == to.rank() &&
              axis >= 0 && axis < static_cast<int64_t>(to.rank());
  for (size_t dim = 0; fits && dim < to.rank(); ++dim)
    fits = updates.shape[dim] == to.shape[dim] ||
           (static_cast<int64_t>(dim) == axis && updates.shape[dim] <= to.shape[dim]);
  if (!fits)
    return fail(op, "scatters other rows than its buffer has");
  return scatterRows(updates, indices, to, static_cast<size_t>(axis));
}

Status StageWriter::addUp(lldmir::SumOp op) {
  task(op);
  auto all = operandsOf(op, op.getParts(), op.getOut() ? ValueRange(op.getOut()) : ValueRange());
  if (!all)
    return all.takeError();
  const DeviceTensor &sums = (*all)[0], &to = (*all)[1];
  if (sums.kind != hw::ElemKind::F32 || to.kind != hw::ElemKind::F16 || sums.shape.front() != quads ||
      !sums.isRowMajor() || !to.isRowMajor())
    return fail(op, "does not add up a part of each quad of the team");
  KernelWriter::addUp(sums, to);
  return Status::ok();
}

Status StageWriter::convolve(lldmir::ConvOp op) {
  task(op);
  auto all = operandsOf(op, op.getImage(), op.getOut() ? ValueRange(op.getOut()) : ValueRange());
  if (!all)
    return all.takeError();
  const DeviceTensor &image = (*all)[0], &out = (*all)[1];
  auto plan = op->getAttrOfType<lldmir::PlanAttr>(lldmir::kPlanAttr);
  Value packed = outside(op.getWeights()) ? outside(op.getWeights()) : op.getWeights();
  auto tiles = weights.find(packed);
  if (!plan || tiles == weights.end())
    return fail(op, "is no convolution by packed weights with a plan");
  Split split;
  SmallVector<int64_t> whole = out.shape; // of all quads
  if (auto deal = op->getAttrOfType<lldmir::DealAttr>(lldmir::kDealAttr)) {
    if (deal.getDim() >= 0 && deal.getDim() < static_cast<int64_t>(whole.size()))
      whole[deal.getDim()] *= quads;
    split = splitOf(deal, whole, quads);
    if (!split || split.dim > 2)
      return fail(op, "has a '" + lldmir::kDealAttr + "' that gives no parts");
  }
  const auto groups = static_cast<int64_t>(op.getGroups());
  const bool byChannels = split.dim == 1;
  const hw::Window window =
      windowOf(image.shape, whole, op.getKernel(), op.getStrides(), op.getDilations(), op.getLow());
  if (image.shape[1] % groups || whole[1] % groups || image.shape[0] != whole[0] || (byChannels && groups > 1) ||
      out.kind != hw::ElemKind::F16 || image.kind != hw::ElemKind::F16)
    return fail(op, "has an image, a result and groups that do not fit each other");
  const int64_t pixels = ShapedType::getNumElements(ArrayRef(whole).drop_front(2)),
                own = ShapedType::getNumElements(ArrayRef(out.shape).drop_front(2));
  Spread product = Spread::ofWindow(own, out.shape[1] / groups, window, image.shape[1] / groups);
  if (std::optional<std::string> why = unfit(product, plan, machine))
    return fail(op, "has the plan of a convolution that no slice computes: " + *why);
  product = product.by(plan);
  const TileForm &form = tiles->second.form, wanted = TileForm::of(product);
  if (form.n != wanted.n || form.kChunks != wanted.kChunks || form.rounds != wanted.rounds ||
      form.slices != wanted.slices || form.groups != wanted.groups || form.products != groups || !form.kept.empty())
    return fail(op, "does not fit the packed form of its weights");
  Address bias;
  if (op.getBias()) {
    Result<DeviceTensor> vector = tensorOf(op, op.getBias());
    if (!vector)
      return vector.takeError();
    bias = vector->address.plusQuad(byChannels ? 4 * split.part : 0);
  }
  Result<Epilogues> epilogues = epiloguesOf(op, out);
  if (!epilogues)
    return epilogues.takeError();
  KernelWriter::convolve(image, out, split,
                         {window, pixels, groups, &tiles->second, bias, product, epilogues->all, epilogues->beside});
  return Status::ok();
}

Status StageWriter::userKernel(lldmir::ExternOp op) {
  node = dmir::nodeName(op);
  writer.loc = op->getLoc();
  auto all = operandsOf(op, op.getInputs(), op.getOuts());
  if (!all)
    return all.takeError();
  Result<UserText> text =
      readUserText(op.getParametersAttr(), op.getInputs().getTypes(), op.getOuts().getTypes(), machine);
  if (!text)
    return fail(op, text.error().message);
  if (!llvm::all_of(*all, [](const DeviceTensor &tensor) { return tensor.isRowMajor(); }))
    return fail(op, "needs buffers that lie row by row");
  noteBody(op.getParametersAttr(), program());
  const DeviceTensor result = all->pop_back_val();
  return UserWriter(*this, *text).run(*all, result);
}

/// Whether each tensor, aligned right, has the shape's dim or 1 on each axis.
static bool broadcast(ArrayRef<DeviceTensor> tensors, ArrayRef<int64_t> shape) {
  return llvm::all_of(tensors, [&](const DeviceTensor &tensor) {
    if (tensor.rank() > shape.size())
      return false;
    ArrayRef<int64_t> wanted = shape.take_back(tensor.rank());
    return llvm::all_of(llvm::zip(tensor.shape, wanted),
                        [](auto dims) { return std::get<0>(dims) == 1 || std::get<0>(dims) == std::get<1>(dims); });
  });
}

static constexpr const char *kApart =
    "has rows over more than four dims apart; a copy whose rows lie together has them";

Status StageWriter::vectorOp(Operation *op) {
  auto simd = cast<lldmir::SimdOp>(op);
  task(op);
  DictionaryAttr parameters = simd.getParametersAttr();
  auto all = operandsOf(op, simd.getInputs(), simd.getOuts());
  if (!all)
    return all.takeError();
  const DeviceTensor out = all->pop_back_val();
  const SmallVector<DeviceTensor> &inputs = *all;
  if (simd.getFunction() == "fill") {
    Attribute value = parameters ? parameters.get("value") : Attribute();
    if (auto number = dyn_cast_or_null<FloatAttr>(value))
      fill(out, number.getValueAsDouble());
    else if (auto number = dyn_cast_or_null<IntegerAttr>(value))
      fill(out, static_cast<double>(number.getValue().getSExtValue()));
    else
      return fail(op, "has no 'value' to fill with");
    return Status::ok();
  }
  if (simd.getFunction() == lldmir::kCopy && inputs.size() == 1) {
    copyInto(inputs[0], out);
    return Status::ok();
  }
  if (simd.masks())
    return inputs.size() == 1 ? masked(simd, inputs[0], out) : fail(op, "masks one buffer");
  // The function is the DMIR op's: what it is asked of the op with these attributes.
  OwningOpRef<Operation *> named = namedOp(simd);
  if (!named)
    return deviceFunction(simd, inputs, out);
  if (std::optional<RowsOp> rowsOf = rowsOp(named.get())) {
    if (inputs.size() != 1)
      return fail(op, "takes one buffer of rows");
    const int64_t rank = static_cast<int64_t>(inputs[0].rank());
    if (llvm::any_of(rowsOf->axes, [&](int64_t axis) { return axis < 0 || axis >= rank; }))
      return fail(op, "has rows along dims that its buffer does not have");
    return rows(rowsOf->function, inputs[0], out, rowsOf->axes, rowsOf->imm0) ? Status::ok() : fail(op, kApart);
  }
  if (isa<dmir::PoolOp, dmir::ConvOp>(named.get()))
    return windowed(named.get(), op, inputs, out);
  std::optional<hw::SimdFunction> function = elementwiseFunction(named.get());
  if (!function)
    return fail(op, "names the function '" + simd.getFunction() + "', which the vector device does not have");
  if (!broadcast(inputs, out.shape))
    return fail(op, "has operands that do not broadcast to its buffer");
  map(*function, out, inputs, {});
  return Status::ok();
}

Result<StageWriter::MaskedRows> StageWriter::maskedRows(lldmir::SimdOp op, int64_t rows, int64_t columns,
                                                        bool lowerHalf) {
  IntegerAttr upper = op.getBound(lldmir::kUpper), lower = op.getBound(lldmir::kLower);
  const bool weighs = op.getFunction() == "softmax";
  std::optional<Index> row = op.getRow() ? indexOf(op.getRow()) : Index{0, 0, SmallVector<int64_t>(batch.size(), 0)};
  if (!row || (!weighs && op.getFunction() != "causal_mask") || (weighs && !upper))
    return fail(op, "masks no rows of scores that the vector device knows").takeError();
  if (lowerHalf) {
    row->first = op.getBound(lldmir::kFolded).getInt() - rows - row->first, row->quad = -row->quad;
    for (int64_t &trip : row->trips)
      trip = -trip;
  }
  if (upper) {
    row->first += upper.getInt() + weighs;
  } else { // the upper bound of what is turned round
    row->first = columns - rows - row->first - lower.getInt(), row->quad = -row->quad;
    for (int64_t &trip : row->trips)
      trip = -trip;
  }
  auto fill = op.getParametersAttr().getAs<FloatAttr>("imm0");
  return MaskedRows{weighs ? hw::SimdFunction::Softmax : hw::SimdFunction::CausalMask, *row, !upper,
                    fill ? static_cast<float>(fill.getValueAsDouble()) : 0};
}

Status StageWriter::masked(lldmir::SimdOp op, const DeviceTensor &input, const DeviceTensor &out) {
  if (input.rank() < 2 || input.shape != out.shape)
    return fail(op, "masks no rows of scores");
  const auto dim = static_cast<int>(out.rank()) - 2;
  const bool folded = static_cast<bool>(op.getBound(lldmir::kFolded));
  if (folded && out.shape[dim] % 2)
    return fail(op, "folds an odd number of rows");
  for (const bool lower : {false, true}) {
    if (lower && !folded)
      break;
    const DeviceTensor from = !folded ? input
                              : lower ? input.halves(dim).second
                                      : input.halves(dim).first,
                       to = !folded ? out
                            : lower ? out.halves(dim).second
                                    : out.halves(dim).first;
    Result<MaskedRows> rows = maskedRows(op, to.shape[dim], to.shape.back(), lower);
    if (!rows)
      return rows.takeError();
    const Address index = Address{-1, rows->index.first, {}}.plusQuad(rows->index.quad);
    if (!KernelWriter::masked(rows->function, from, to, index, rows->turned, rows->fill))
      return fail(op, kApart);
  }
  return Status::ok();
}

/// A function that no op of DMIR is: see FunctionChoice.
Status StageWriter::deviceFunction(lldmir::SimdOp op, ArrayRef<DeviceTensor> inputs, const DeviceTensor &out) {
  using F = hw::SimdFunction;
  std::optional<F> function = hw::simdFunctionFromName(op.getFunction());
  const bool rotates = function == F::Rope || function == F::RopeInterleaved, sums = function == F::ReduceSumSquare;
  const std::optional<ElementFunction> ofElements = elementwise(op);
  if (!function || !(rotates || sums || ofElements))
    return fail(op, "names the function '" + op.getFunction() + "', which the vector device does not have");
  if (static_cast<int>(inputs.size()) != hw::operandCount(*function))
    return fail(op, "has not as many operands as '" + op.getFunction() + "'");
  DictionaryAttr parameters = op.getParametersAttr();
  if (sums) {
    auto axes = parameters ? parameters.getAs<DenseI64ArrayAttr>("axes") : DenseI64ArrayAttr();
    const auto rank = static_cast<int64_t>(inputs[0].rank());
    if (!axes || axes.empty() ||
        llvm::any_of(axes.asArrayRef(), [&](int64_t axis) { return axis < 0 || axis >= rank; }))
      return fail(op, "has rows along dims that its buffer does not have");
    return rows(*function, inputs[0], out, axes.asArrayRef(), 0) ? Status::ok() : fail(op, kApart);
  }
  if (rotates) {
    SmallVector<int64_t> half(out.shape);
    if (half.empty() || half.back() % 2 || inputs[0].shape != out.shape)
      return fail(op, "turns no rows of pairs");
    half.back() /= 2;
    if (!broadcast(inputs.drop_front(), half))
      return fail(op, "turns rows by angles that are not half as many as a row's elements");
    map(*function, out, inputs, 0, 0, /*inner=*/1);
    return Status::ok();
  }
  if (!broadcast(inputs, out.shape))
    return fail(op, "has operands that do not broadcast to its buffer");
  map(*function, out, inputs, ofElements->imm0, ofElements->imm1);
  return Status::ok();
}

Status StageWriter::windowed(Operation *named, Operation *op, ArrayRef<DeviceTensor> inputs, const DeviceTensor &out) {
  auto pool = dyn_cast<dmir::PoolOp>(named);
  const size_t rank = out.rank(), axes = rank - 2;
  auto isRight = [&](StringRef key, int64_t least) {
    auto numbers = named->getAttrOfType<DenseI64ArrayAttr>(key);
    return numbers && numbers.asArrayRef().size() == axes &&
           llvm::all_of(numbers.asArrayRef(), [&](int64_t number) { return number >= least; });
  };
  const bool fits = (rank == 3 || rank == 4) && inputs.size() == (pool ? 1 : 2) && isRight("strides", 1) &&
                    isRight("dilations", 1) && isRight("low", 0) && inputs[0].rank() == rank &&
                    inputs[0].shape[0] == out.shape[0] && inputs[0].shape[1] == out.shape[1] &&
                    llvm::all_of(inputs, [&](const DeviceTensor &each) {
                      return each.rank() == rank && each.kind == hw::ElemKind::F16;
                    });
  if (!fits || (pool ? !isRight("window", 1) || !named->getAttr("kind") : inputs[1].shape[0] != out.shape[1]))
    return fail(op, "has no window over images that fits its buffers");
  if (pool) {
    KernelWriter::pool(pool, inputs[0], out);
    return Status::ok();
  }
  auto conv = cast<dmir::ConvOp>(named);
  convolveEach(inputs[0], inputs[1], out,
               windowOf(inputs[0].shape, out.shape, ArrayRef(inputs[1].shape).drop_front(2), conv.getStrides(),
                        conv.getDilations(), conv.getLow()));
  return Status::ok();
}
