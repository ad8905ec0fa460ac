//===- QuadUnits.cpp - whole buffers of one quad --------------------------===//
#include "Quad.h"
#include "VectorDevice.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair::stages;
using hw::SimdFunction;

/// Which dim of an input a dim of the result is; -1: none.
static int64_t dimOfInput(lldmir::SimdOp op, const View &input, const View &out, int64_t dim) {
  DictionaryAttr parameters = op.getParametersAttr();
  auto several = parameters ? parameters.getAs<DenseI64ArrayAttr>("axes") : DenseI64ArrayAttr();
  auto one = parameters ? parameters.getAs<IntegerAttr>("axis") : IntegerAttr();
  Dims axes(several ? several.asArrayRef() : ArrayRef<int64_t>());
  if (one)
    axes.push_back(one.getInt());
  if (input.rank() <= out.rank() || axes.empty())
    return dim - static_cast<int64_t>(out.rank() - input.rank());
  for (int64_t i = 0; i < static_cast<int64_t>(input.rank()); ++i) // what is reduced away is missing in front
    if (!llvm::is_contained(axes, i) && dim-- == 0)
      return i;
  return -1;
}

Result<SmallVector<View>> Quad::dealt(Operation *op, ValueRange inputs, const View &out) const {
  auto deal = op->getAttrOfType<lldmir::DealAttr>(lldmir::kDealAttr);
  SmallVector<View> all;
  for (auto [i, value] : llvm::enumerate(inputs)) {
    Result<View> view = viewOf(op, value);
    if (!view)
      return view.takeError();
    all.push_back(*view);
    if (!deal || deal.getDim() < 0 || deal.getDim() >= static_cast<int64_t>(out.rank()))
      continue;
    auto simd = dyn_cast<lldmir::SimdOp>(op);
    const int64_t dim = simd ? dimOfInput(simd, *view, out, deal.getDim()) : i == 1 ? deal.getDim() : -1;
    const int64_t part = out.shape[deal.getDim()];
    if (dim >= 0 && dim < static_cast<int64_t>(view->rank()) && quads > 1 && view->shape[dim] == part * quads)
      all.back() = view->slice(dim, number * part, part);
  }
  return all;
}

/// The op of DMIR whose name a function is; null for the device's own.
static OwningOpRef<Operation *> namedOp(lldmir::SimdOp op) {
  OperationState state(op->getLoc(), ("dmir." + op.getFunction()).str());
  if (!RegisteredOperationName::lookup(state.name.getStringRef(), op->getContext()))
    return {};
  if (DictionaryAttr parameters = op.getParametersAttr())
    state.addAttributes(parameters.getValue());
  state.addTypes(RankedTensorType::get({}, Float16Type::get(op->getContext())));
  return Operation::create(state);
}

static float numberOf(lldmir::SimdOp op, StringRef key) {
  auto given = op.getParametersAttr() ? op.getParametersAttr().getAs<FloatAttr>(key) : FloatAttr();
  return given ? static_cast<float>(given.getValueAsDouble()) : 0.0F;
}

static Status fill(lldmir::SimdOp op, const View &out) {
  Attribute value = op.getParametersAttr() ? op.getParametersAttr().get("value") : Attribute();
  if (auto number = dyn_cast_if_present<FloatAttr>(value))
    return filled(out, number.getValueAsDouble());
  if (auto number = dyn_cast_if_present<IntegerAttr>(value))
    return filled(out, static_cast<double>(number.getValue().getSExtValue()));
  return modelError("has no 'value' to fill with");
}

Status Quad::lowerMask(lldmir::SimdOp op, const View &out, const View &input) {
  Masked mask;
  mask.weighs = op.getFunction() == "softmax";
  if (!mask.weighs && op.getFunction() != "causal_mask")
    return modelError("masks no rows of scores that the vector device knows");
  if (IntegerAttr upper = op.getBound(lldmir::kUpper))
    mask.upper = upper.getInt();
  if (IntegerAttr lower = op.getBound(lldmir::kLower))
    mask.lower = lower.getInt();
  if (IntegerAttr folded = op.getBound(lldmir::kFolded))
    mask.folded = folded.getInt();
  mask.fill = numberOf(op, "imm0");
  auto deal = op->getAttrOfType<lldmir::DealAttr>(lldmir::kDealAttr);
  if (op.getRow()) {
    std::optional<int64_t> row = indices.at(op.getRow());
    if (!row)
      return modelError("begins at no row that its loops give");
    mask.row = *row;
  } else if (deal && deal.getDim() + 2 == static_cast<int64_t>(out.rank())) { // the rows are a quad's share
    const int64_t part = out.shape[deal.getDim()];
    mask.row = number * (deal.getFolded() ? part / 2 : part);
    if (deal.getFolded())
      mask.folded = part * quads;
  }
  return masked(mask, input, out);
}

Status Quad::deviceFunction(lldmir::SimdOp op, const View &out, ArrayRef<View> inputs) {
  using F = SimdFunction;
  static constexpr F known[] = {F::Fma,         F::Affine,          F::Clip, F::LeakyRelu,
                                F::HardSigmoid, F::ReduceSumSquare, F::Rope, F::RopeInterleaved};
  std::optional<F> function = hw::simdFunctionFromName(op.getFunction());
  if (!function || !llvm::is_contained(known, *function))
    return modelError("names the function '" + op.getFunction().str() + "', which the vector device does not have");
  if (*function == F::ReduceSumSquare) {
    auto axes = op.getParametersAttr() ? op.getParametersAttr().getAs<DenseI64ArrayAttr>("axes") : DenseI64ArrayAttr();
    return axes && inputs.size() == 1 ? rows(*function, inputs[0], out, axes.asArrayRef(), 0)
                                      : Status(modelError("has no rows to add up"));
  }
  const bool rotates = *function == F::Rope || *function == F::RopeInterleaved;
  return mapped({*function, numberOf(op, "imm0"), numberOf(op, "imm1"), rotates ? 1 : 0}, out, inputs);
}

Status Quad::function(lldmir::SimdOp op, const View &out, ArrayRef<View> inputs) {
  if (op.getFunction() == lldmir::kCopy && inputs.size() == 1)
    return mapped({SimdFunction::Copy}, out, inputs);
  OwningOpRef<Operation *> named = namedOp(op);
  return named ? vectorOp(named.get(), out, inputs) : deviceFunction(op, out, inputs);
}

/// Of tiles of numbers, each by itself.
Status Quad::functionOfTiles(lldmir::SimdOp op, hw::ElemKind kind) {
  SmallVector<View> inputs;
  for (Value input : op.getInputs()) {
    if (sums.contains(input))
      return errorAt(op, "is of sums that no cast has made numbers of");
    Result<View> tile = viewOf(op, input);
    if (!tile)
      return tile.takeError();
    inputs.push_back(*tile);
  }
  View made = View::zeros(kind, Dims(cast<affine_ext::VecExtType>(op.getResults()[0].getType()).getShape()));
  Status done = function(op, made, inputs);
  return done ? put(op, made) : at(op, std::move(done));
}

Status Quad::lower(lldmir::SimdOp op) {
  if (op.getOuts().empty())
    return lowerTile(op);
  Result<View> out = viewOf(op, op.getOuts()[0]);
  if (!out)
    return out.takeError();
  Result<SmallVector<View>> inputs = dealt(op, op.getInputs(), *out);
  if (!inputs)
    return inputs.takeError();
  auto compute = [&]() -> Status {
    if (op.getFunction() == "fill")
      return fill(op, *out);
    if (op.masks())
      return inputs->size() == 1 ? lowerMask(op, *out, inputs->front()) : Status(modelError("masks one buffer"));
    return function(op, *out, *inputs);
  };
  return at(op, compute());
}

Status Quad::lower(lldmir::ReshapeOp op) {
  if (op.getOuts().size() != 1 || op.getInputs().size() != 2)
    return errorAt(op, "moves nothing by index");
  Result<View> out = viewOf(op, op.getOuts()[0]);
  if (!out)
    return out.takeError();
  Result<SmallVector<View>> inputs = dealt(op, op.getInputs(), *out);
  auto axis = op.getParametersAttr() ? op.getParametersAttr().getAs<IntegerAttr>("axis") : IntegerAttr();
  if (!inputs)
    return inputs.takeError();
  if (!axis || (op.getFunction() != lldmir::kGatherRows && op.getFunction() != lldmir::kScatterRows))
    return errorAt(op, "names no movement that the reshape engine has");
  return at(op, op.getFunction() == lldmir::kGatherRows ? gathered((*inputs)[0], (*inputs)[1], *out, axis.getInt())
                                                        : scattered((*inputs)[0], (*inputs)[1], *out, axis.getInt()));
}

Status Quad::lower(lldmir::ConvOp op) {
  if (!op.getOut())
    return errorAt(op, "fills no buffer");
  Result<View> image = viewOf(op, op.getImage()), weights = viewOf(op, op.getWeights()), out = viewOf(op, op.getOut());
  for (Result<View> *each : {&image, &weights, &out})
    if (!*each)
      return each->takeError();
  std::optional<View> bias;
  if (op.getBias()) {
    Result<View> vector = viewOf(op, op.getBias());
    if (!vector)
      return vector.takeError();
    bias = *vector;
  }
  auto plan = op->getAttrOfType<lldmir::PlanAttr>(lldmir::kPlanAttr);
  Convolution conv{Dims(op.getKernel()),
                   Dims(op.getStrides()),
                   Dims(op.getDilations()),
                   Dims(op.getLow()),
                   static_cast<int64_t>(op.getGroups()),
                   plan ? plan.getNumImc() : 16,
                   plan && plan.getWindows()};
  auto deal = op->getAttrOfType<lldmir::DealAttr>(lldmir::kDealAttr);
  const int64_t dim = deal ? deal.getDim() : -1, part = dim >= 0 && dim < 3 ? out->shape[dim] : 0;
  if (dim == 0 && image->shape[0] == part * quads)
    image = image->slice(0, number * part, part);
  if (dim == 1 && weights->shape[0] == part * quads) { // channels
    weights = weights->slice(0, number * part, part);
    if (bias)
      bias = bias->slice(0, number * part, part);
  }
  if (dim == 2) // rows, which begin further down in the image
    conv.low[0] -= number * part * conv.strides[0];
  if (!op.getEpilogue())
    return at(op, convolve(conv, *image, *weights, bias, *out));
  View sums = View::zeros(hw::ElemKind::F16, out->shape);
  Status done = convolve(conv, *image, *weights, bias, sums);
  return done ? epilogue(op, sums, *out) : at(op, std::move(done));
}

Status Quad::epilogue(lldmir::ConvOp op, const View &sums, const View &out) {
  std::vector<View> values;
  const ArrayRef<Attribute> units = op.getEpilogue()->getValue();
  for (Attribute unit : units) {
    auto all = cast<DictionaryAttr>(unit);
    SmallVector<View> inputs;
    for (int64_t input : all.getAs<DenseI64ArrayAttr>("inputs").asArrayRef()) {
      Result<View> view = input >= 0    ? Result<View>(values[input])
                          : input == -1 ? Result<View>(sums)
                                        : viewOf(op, op.getBeside()[-2 - input]);
      if (!view)
        return view.takeError();
      inputs.push_back(*view);
    }
    OpBuilder builder(op.getContext());
    OwningOpRef<lldmir::SimdOp> made =
        lldmir::SimdOp::create(builder, op.getLoc(), TypeRange(), all.getAs<StringAttr>("function").getValue(),
                               ValueRange(), ValueRange(), all.getAs<DictionaryAttr>("parameters"));
    values.push_back(values.size() + 1 == units.size() ? out : View::zeros(hw::ElemKind::F16, out.shape));
    if (Status done = function(made.get(), values.back(), inputs); !done)
      return at(op, std::move(done));
  }
  return Status::ok();
}

Status Quad::lower(lldmir::SumOp op) {
  if (!op.getOut())
    return errorAt(op, "fills no buffer");
  Result<View> parts = viewOf(op, op.getParts()), out = viewOf(op, op.getOut());
  if (!parts || !out)
    return (parts ? out : parts).takeError();
  return at(op, summed(*parts, *out));
}
