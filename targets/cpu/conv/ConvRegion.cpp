//===- ConvRegion.cpp - regions around dmir.conv ------------------------------===//

#include "ConvRegion.h"

#include "ConvDecisions.h"
#include "ConvPlan.h"
#include "ConvSegment.h"
#include "Convolution.h"
#include "targets/common/roots/Terms.h"
#include "targets/cpu/product/MatmulRegion.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Target/WholeBlocks.h"

#include "mlir/IR/TypeUtilities.h"

#include <array>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

/// The operands of a commutative op as (one, other), in both orders.
template <typename OpTy> static std::array<std::pair<Value, Value>, 2> bothOrders(OpTy op) {
  return {{{op.getLhs(), op.getRhs()}, {op.getRhs(), op.getLhs()}}};
}

/// x and s of an ungrouped 1x1 convolution of x * s, s one factor for each channel of one image: what the kernel of a
/// region may do with the weights. Null elsewhere.
static std::pair<Value, Value> scaledInput(dmir::ConvOp op) {
  auto scaling = op.getInput().getDefiningOp<dmir::MulOp>();
  auto weights = typeOf(op.getWeights());
  if (!scaling || !typeOf(op.getResult()).hasStaticShape() || !elementOf(op.getInput()).isF32() ||
      op.getGroups() != 1 || weights.getNumElements() != weights.getDimSize(0) * weights.getDimSize(1))
    return {};
  for (auto [x, s] : bothOrders(scaling)) {
    if (x.getType() != scaling.getResult().getType()) // a number, say: it has no axes
      continue;
    SmallVector<int64_t> factors(typeOf(x).getRank(), 1);
    factors[1] = typeOf(x).getDimSize(1);
    if (shapeOf(x)[0] == 1 && shapeOf(s) == ArrayRef(factors))
      return {x, s};
  }
  return {};
}

/// The other operand of a min or max with a constant within [-1, 1]; null elsewhere.
template <typename OpTy> static Value boundedInput(Value value) {
  auto op = value ? value.getDefiningOp<OpTy>() : OpTy();
  if (!op)
    return {};
  for (auto [x, bound] : bothOrders(op)) {
    std::optional<Tensor> tensor = dmir::constantTensor(bound);
    if (tensor && tensor->numElements() == 1 && std::abs(tensor->as<float>()[0]) <= 1)
      return x;
  }
  return {};
}

/// Whether all elements of an f32 tensor are known to be within [-1, 1].
static bool isFactor(Value value) {
  while (auto relayout = value.getDefiningOp<dmir::RelayoutOp>())
    value = relayout.getInput();
  return value.getDefiningOp<dmir::SigmoidOp>() || boundedInput<dmir::MinOp>(boundedInput<dmir::MaxOp>(value)) ||
         boundedInput<dmir::MaxOp>(boundedInput<dmir::MinOp>(value));
}

dmir::MulOp dmxc::cpu::scalingOfInput(dmir::ConvOp op) {
  auto [image, factors] = scaledInput(op);
  if (!image || !op.getInput().hasOneUse() || !dmir::layoutOf(image.getType()) || !dmir::isConstant(op.getWeights()) ||
      !isFactor(factors))
    return {};
  // Each thread scales all weights.
  constexpr int64_t threads = 4;
  int64_t channels = shapeOf(op.getWeights())[0];
  bool pays = channels * channels * threads <= typeOf(op.getResult()).getNumElements();
  return pays ? op.getInput().getDefiningOp<dmir::MulOp>() : dmir::MulOp();
}

Convolution::Convolution(const RegionBody &body)
    : body(body), op(cast<dmir::ConvOp>(body.root)), spec(Contraction(op)), element(elementOf(op.getResult())) {
  auto [image, factors] = scaledInput(op);
  if (factors)
    scaleBuffer = cast<BlockArgument>(factors).getArgNumber();
  inputBuffer = cast<BlockArgument>(image ? image : op.getInput()).getArgNumber();
  weightsBuffer = cast<BlockArgument>(op.getWeights()).getArgNumber();
  spec.input = dmir::layoutOf(op.getInput().getType()) ? ConvLayout::Blocked16 : ConvLayout::Plain;
  spec.heavyEpilogue = heavyEpilogue(body);
  spec.turned = !dmir::layoutOf(op.getResult().getType()) && writesRows(op, spec.input == ConvLayout::Blocked16);
}

/// The convolution as one that minimal filtering computes.
static std::optional<WinogradSpec> winogradSpec(dmir::ConvOp op, bool blocked) {
  auto all = [](ArrayRef<int64_t> values, int64_t value) {
    return llvm::all_of(values, [&](int64_t v) { return v == value; });
  };
  ArrayRef<int64_t> weights = shapeOf(op.getWeights());
  int64_t stride = op.getStrides()[0];
  bool fits = weights.size() == 4 && all(weights.drop_front(2), 3) && stride <= 2 && all(op.getStrides(), stride) &&
              all(op.getDilations(), 1) && op.getGroups() == 1 && weights[1] % 16 == 0 &&
              elementOf(op.getInput()).isF32() && elementOf(op.getWeights()).isF32() &&
              elementOf(op.getResult()).isF32() && blocked;
  if (!fits)
    return std::nullopt;
  SmallVector<WindowAxis> axes = windowsOf(op);
  WinogradSpec spec{Float32Type::get(op.getContext()),
                    weights[1],
                    weights[0],
                    dmir::dimOf(op.getInput(), 0),
                    axes[0].in,
                    axes[1].in,
                    axes[0].out,
                    axes[1].out,
                    axes[0].low,
                    axes[1].low};
  spec.stride = stride;
  return spec;
}

void Convolution::pack(Packing packing) {
  packed = true;
  bool asked = packing == Packing::Winograd,
       allowed = packing != Packing::Plain && packing != Packing::Fours && packing != Packing::Pairs;
  const bool blocked = spec.input == ConvLayout::Blocked16, pairs = isPairConv(op);
  std::optional<WinogradSpec> filtering = allowed ? winogradSpec(op, blocked) : std::nullopt;
  if (filtering && (asked || winogradPays(*filtering))) {
    winograd = filtering;
    winograd->heavyEpilogue = spec.heavyEpilogue;
    return;
  }
  if (packing == Packing::Plain || !(pairs || isByteConv(op)) || !hasWholeBlocks(op) || !blocked)
    return;
  if (pairs && spec.groupIc() % 2) // what is beyond the last channel of a block may be NaN
    return;
  spec.fours = !pairs;
  spec.pairs = pairs;
  spec.ic = pairs ? spec.ic / 2 : foursOf(spec.groupIc()) * spec.groups;
  spec.aType = spec.bType = spec.accType;
}

ConvWriter::ConvWriter(CpuBuilder &b, const Convolution &conv)
    : conv(conv), e(b, conv.body.block), writer(e, conv.body),
      rank(cast<RankedTensorType>(conv.op.getResult().getType()).getRank()) {
  // The position counts through all spatial axes: they are one axis for the epilogue if every access joins them.
  if (writer.acceptsJoined())
    positionAxis = joinedAxis(writer.values(), conv.op->getResult(0), 2, rank - 1);
}

void ConvWriter::write(Value n, Value oc, Value position, Value sums, Value mask) {
  auto vector = dyn_cast<VectorType>(sums.getType());
  int64_t lanes = vector ? vector.getNumElements() : 1;
  ElementExpr::Lanes scope(e, lanes, mask);
  e.forget();
  e.bindValue(conv.op.getResult(), fromAccumulator(e, sums, conv.element));
  writeAt(n, e.at(oc, lanes, lanes > 1), e.at(position));
}

void ConvWriter::writePixels(Value n, Value oc, Value position, Value sums, Value mask) {
  ElementExpr::Lanes scope(e, cast<VectorType>(sums.getType()).getNumElements(), mask);
  e.forget();
  e.bindValue(conv.op.getResult(), fromAccumulator(e, sums, conv.element));
  writeAt(n, e.at(oc), e.at(position, 1, 1));
}

void ConvWriter::writeAt(Value n, Index oc, Index position) {
  Indices index(rank, e.at(0));
  index[0] = e.at(n);
  index[1] = oc;
  for (size_t axis = rank - 1; axis > 2 && !positionAxis; --axis)
    std::tie(position, index[axis]) = e.divRem(position, Dim::max(dmir::dimOf(conv.op.getResult(), axis), 1));
  index[positionAxis.value_or(2)] = position;
  writer.write(index);
}

/// Packs run-time weights into this thread's scratch, in the order of packConvWeights.
static Value packWeights(CpuBuilder &b, const Convolution &conv) {
  const ConvKernel &s = conv.spec;
  int64_t channels = s.groupIc(), taps = s.taps(), block = weightBlock(s);
  Value source = b.buffer(conv.weightsBuffer), target = b.scratch();
  b.forLoop(0, (s.oc + 15) / 16, 1, [&](Value panel) {
    b.forLoop(0, channels, 1, [&](Value channel) {
      b.forLoop(0, taps, 1, [&](Value tap) {
        // Within a block of channels the taps come before the channels.
        Value blockStart = b.mulC(b.floorDiv(channel, b.idx(block)), block);
        Value width = b.minS(b.idx(block), b.sub(b.idx(channels), blockStart));
        Value row = b.add(b.add(b.mulC(blockStart, taps), b.mul(tap, width)), b.sub(channel, blockStart));
        Value to = b.mulC(b.add(b.mulC(panel, channels * taps), row), 16);
        b.forLoop(0, 16, 1, [&](Value lane) {
          Value oc = b.add(b.mulC(panel, 16), lane);
          Value inside = b.minS(oc, b.idx(s.oc - 1)); // lanes beyond the last channel are never stored
          Value from = b.add(b.mulC(b.add(b.mulC(inside, channels), channel), taps), tap);
          b.store(b.load(s.bType, source, from), target, b.add(to, lane));
        });
      });
    });
  });
  return target;
}

/// Multiplies packed 1x1 weights by the factors of their input channels, into this thread's scratch.
static void scaleWeights(CpuBuilder &b, const Convolution &conv, Value source) {
  constexpr int64_t lanes = 16;
  const ConvKernel &s = conv.spec;
  Value scale = b.buffer(*conv.scaleBuffer), target = b.scratch();
  b.forLoop(0, (s.oc + lanes - 1) / lanes, 1, [&](Value panel) {
    b.forLoop(0, s.ic, 1, [&](Value channel) {
      Value at = b.mulC(b.add(b.mulC(panel, s.ic), channel), lanes);
      Value factor = b.splat(b.load(s.bType, scale, channel), lanes);
      b.store(arith::MulFOp::create(b, b.load(s.bType, source, at, lanes), factor), target, at);
    });
  });
}

Value dmxc::cpu::packedWeights(CpuBuilder &b, const Convolution &conv) {
  if (packedWeightScratch(conv) == 0)
    return b.buffer(conv.weightsBuffer);
  b.ifThen(b.cmp(arith::CmpIPredicate::slt, b.kept(), b.idx(0)), [&] {
    Value weights = conv.packed ? b.buffer(conv.weightsBuffer) : packWeights(b, conv);
    if (conv.scaleBuffer)
      scaleWeights(b, conv, weights);
    b.keep(b.idx(0));
  });
  return b.scratch();
}

int64_t dmxc::cpu::packedWeightScratch(const Convolution &conv) {
  bool inPlace = conv.packed && !conv.scaleBuffer;
  return inPlace ? 0 : (packedConvWeightBytes(conv.spec) + 63) / 64 * 64;
}

/// Results through the region's epilogue, for the emitters of static shapes.
static ConvCallbacks callbacksOf(CpuBuilder &b, const Convolution &conv) {
  ConvCallbacks callbacks;
  auto writer = std::make_shared<ConvWriter>(b, conv);
  auto calls = [&](void (ConvWriter::*write)(Value, Value, Value, Value, Value)) {
    return [writer, write](Value n, Value oc, Value position, Value value, Value mask) {
      ((*writer).*write)(n, oc, position, value, mask);
    };
  };
  callbacks.store = calls(&ConvWriter::write);
  callbacks.storePixels = calls(&ConvWriter::writePixels);
  return callbacks;
}

static void emitDirectConv(CpuBuilder &b, const Convolution &conv, DictionaryAttr strategy, Dim nominalItems,
                           int64_t scratchOffset) {
  ConvTiles tiles = readConvTiles(levelTiles(strategy, b.isa()), conv.spec, b.isa());
  Dim images = conv.images();
  mapRange(b, nominalItems, convWorkItems(conv.spec, tiles) * (conv.spec.n < 0 ? images : Dim(1)));
  Value weights = packedWeights(b, conv), n = b.idx(images);
  emitConv(b, conv.spec, tiles, b.buffer(conv.inputBuffer), weights, callbacksOf(b, conv), n, scratchOffset);
}

static void emitWinogradConv(CpuBuilder &b, const Convolution &conv, DictionaryAttr strategy, Dim nominalItems) {
  WinogradTiles tiles = readWinogradTiles(levelTiles(strategy, b.isa()), *conv.winograd, b.isa());
  mapRange(b, nominalItems, winogradWorkItems(*conv.winograd, tiles));
  emitWinograd(b, *conv.winograd, tiles, b.buffer(conv.inputBuffer), b.buffer(conv.weightsBuffer),
               callbacksOf(b, conv));
}

static DictionaryAttr packedForm(const Convolution &conv) {
  Builder b(conv.op.getContext());
  NamedAttrList form;
  const ConvKernel &s = conv.spec;
  bool filtering = conv.winograd.has_value();
  int64_t bytes = filtering ? winogradWeightBytes(s.oc, s.ic) : packedConvWeightBytes(s);
  form.set("form", b.getStringAttr(filtering ? "convwinograd16"
                                   : s.fours ? "convquads16"
                                   : s.pairs ? "convpairs16"
                                             : "convpanel16"));
  form.set("size", b.getI64IntegerAttr(bytes));
  form.set("oc", b.getI64IntegerAttr(s.oc));
  form.set("ic", b.getI64IntegerAttr(shapeOf(conv.op.getInput())[1]));
  form.set("groups", b.getI64IntegerAttr(s.groups));
  form.set("kernel", b.getDenseI64ArrayAttr(s.kernel));
  if (filtering)
    form.set("stride", b.getI64IntegerAttr(conv.winograd->stride));
  form.set("blocked_input", b.getBoolAttr(s.input == ConvLayout::Blocked16));
  form.set("element", TypeAttr::get(s.bType));
  return form.getDictionary(conv.op.getContext());
}

bool dmxc::cpu::isByteConv(dmir::ConvOp op) {
  return elementOf(op.getResult()).isInteger(32) && elementOf(op.getInput()).isUnsignedInteger(8) &&
         elementOf(op.getWeights()).isSignlessInteger(8);
}

bool dmxc::cpu::writesRows(dmir::ConvOp op, bool isBlocked) {
  constexpr int64_t fewestChannels = 8, fewestPixels = 8;
  if (!typeOf(op.getResult()).hasStaticShape() || !typeOf(op.getInput()).hasStaticShape() ||
      !typeOf(op.getWeights()).hasStaticShape() || !elementOf(op.getResult()).isF32() ||
      !elementOf(op.getInput()).isF32())
    return false;
  ConvKernel spec = normalized(ConvKernel(Contraction(op)));
  if (spec.groups > 1 && spec.groupOc() % 16) // lanes are channels of groups of their own
    return false;
  // Of a row-major image adjacent channels are on pages of their own, which pays where all pixels are one row.
  const bool readsAsItLies = isBlocked || spec.groupIc() < 16 || spec.out[2] == spec.outPositions();
  return readsAsItLies && spec.oc >= fewestChannels && spec.out[2] >= fewestPixels;
}

bool dmxc::cpu::isPairConv(dmir::ConvOp op) {
  return elementOf(op.getResult()).isF32() && elementOf(op.getInput()).isBF16() && elementOf(op.getWeights()).isBF16();
}

/// Whether sizes are known but for the number of images.
static bool isOfImages(dmir::ConvOp op) {
  return typeOf(op.getWeights()).hasStaticShape() && !op.getDims() &&
         !ShapedType::isDynamicShape(shapeOf(op.getInput()).drop_front());
}

bool dmxc::cpu::paysFiltered(dmir::ConvOp op) {
  std::optional<WinogradSpec> filtering = winogradSpec(op, /*blocked=*/true);
  return filtering && winogradPays(*filtering);
}

bool dmxc::cpu::paysInPairs(dmir::ConvOp op) {
  constexpr int64_t block = 16, fewestOutputs = 8;
  if (!isOfImages(op) || !dmir::isConstant(op.getWeights()))
    return false;
  const int64_t groups = op.getGroups(), channels = shapeOf(op.getWeights())[1], outputs = shapeOf(op.getWeights())[0];
  const bool fits = groups == 1 ? channels >= block && channels % 2 == 0 && outputs >= fewestOutputs
                                : channels % block == 0 && outputs / groups % block == 0;
  return fits && !paysFiltered(op);
}

bool dmxc::cpu::isShortConvOfImages(dmir::ConvOp op) { return (isByteConv(op) || isPairConv(op)) && isOfImages(op); }

bool dmxc::cpu::takesBytes(dmir::ConvOp op) {
  int64_t groups = op.getGroups(), outputs = shapeOf(op.getWeights())[0] / groups,
          channels = shapeOf(op.getWeights())[1];
  // Of fewer channels than are worth blocks no lanes are adjacent.
  bool isDepthwise = groups >= 8 && channels == 1 && outputs == 1;
  return isOfImages(op) && (hasWholeBlocks(op) || isDepthwise);
}

bool dmxc::cpu::isDirectConv(const RegionBody &body) {
  auto op = cast<dmir::ConvOp>(body.root);
  Type element = getElementTypeOrSelf(op.getResult().getType());
  bool tiny = mlir::isa<FloatType>(element) && element.getIntOrFloatBitWidth() == 8;
  // The register tiles are made for shapes that are known; how many images there are makes no difference to them.
  bool known = (typeOf(op.getInput()).hasStaticShape() && typeOf(op.getWeights()).hasStaticShape() && !op.getDims()) ||
               isShortConvOfImages(op);
  auto inMemory = [](Value value) { return mlir::isa_and_nonnull<BlockArgument>(value); };
  auto [image, factors] = scaledInput(op);
  bool input = inMemory(op.getInput()) || (known && inMemory(image) && inMemory(factors));
  return (known || isOpenConv(op)) && !tiny && input && inMemory(op.getWeights());
}

/// Weights that are not packed at compile time are packed by the kernel into scratch at the start of each call.
static KernelPlan planTiles(const RegionBody &body, const Choice &choice) {
  DictionaryAttr strategy = choice.strategy;
  auto conv = std::make_shared<Convolution>(body);
  std::string key = std::to_string(conv->weightsBuffer);
  auto packed = strategy ? strategy.getAs<DictionaryAttr>(strategy::kPacked) : DictionaryAttr();
  auto form = packed ? packed.getAs<DictionaryAttr>(key) : DictionaryAttr();
  bool alone = body.block->getArgument(conv->weightsBuffer).hasOneUse();
  bool filled = typeOf(conv->op.getWeights()).getNumElements() > 0;
  Packing packing = !strategy ? choice.packing : packingOfForm(form ? formName(form) : "");
  if (packing != Packing::None && (strategy || (alone && filled && choice.constant(conv->weightsBuffer))))
    conv->pack(packing);
  KernelPlan plan;
  if (conv->winograd) {
    plan.algorithm = "conv-winograd";
    planWinograd(plan, *conv->winograd, choice);
    plan.emit = [conv, strategy, items = plan.work](KernelBuilder &b) {
      emitWinogradConv(CpuBuilder::of(b), *conv, strategy, items);
    };
    plan.packed.set(key, packedForm(*conv));
    return plan;
  }
  if (conv->spec.pairs) { // tiles have no kernel of theirs: where they are there are vectors
    const Units given = choice.unitsFor(/*bf16=*/true);
    conv->spec.units = {given.dots || given.tiles, false};
  }
  int64_t packBytes = packedWeightScratch(*conv);
  if (isOpenConv(conv->op) && conv->spec.groups > 1 && conv->spec.groupIc() == 1) {
    plan = planOpenLanes(conv, packBytes, choice);
  } else if (isOpenConv(conv->op)) {
    plan = planOpenConv(conv, packBytes, choice);
  } else {
    plan.algorithm = convMode(normalized(conv->spec)) == ConvMode::Lanes ? "conv-depthwise"
                     : conv->spec.fours                                  ? "conv-quads"
                     : conv->spec.pairs                                  ? "conv-pairs"
                                                                         : "conv-direct";
    planDirectConv(plan, conv->spec, conv->images(), choice, packBytes);
    plan.emit = [conv, strategy, items = plan.work, packBytes](KernelBuilder &b) {
      emitDirectConv(CpuBuilder::of(b), *conv, strategy, items, packBytes);
    };
  }
  if (conv->spec.pairs && (conv->spec.units.dots || choice.namesUnits))
    plan.own.set(kUnits, unitNames(conv->spec.units, body.root->getContext()));
  if (conv->packed) {
    plan.packed.set(key, packedForm(*conv));
  } else {
    if (plan.algorithm == "conv-direct")
      plan.algorithm = "conv-unpacked";
    plan.grain = Dim::max(plan.work, 1); // packing again in each thread does not pay
  }
  return plan;
}

static Result<KernelPlan> planConv(const RegionBody &body, const PlanRequest &request) {
  const Choice &choice = Choice::of(request);
  return isDirectConv(body) && !prefersPixels(body) ? planTiles(body, choice)
         : isPixelConv(body) ? planPixelConv(body, choice)
                             : planPlainConvolution(body, choice, "conv-generic", /*chained=*/true);
}

static SmallVector<Operation *> computes(Operation *op) {
  dmir::MulOp scaling = scalingOfInput(cast<dmir::ConvOp>(op));
  return scaling ? SmallVector<Operation *>{scaling} : SmallVector<Operation *>();
}

void dmxc::cpu::registerConv(KernelTable &table) {
  table.add<dmir::ConvOp>(
      {.plan = planConv, .epilogue = true, .operations = operationsOfConvolution, .computes = computes});
}

Status dmxc::cpu::packConvOperand(DictionaryAttr form, const Tensor &constant, std::span<std::byte> out) {
  auto number = [&](StringRef name) { return form.getAs<IntegerAttr>(name).getInt(); };
  ConvKernel spec;
  spec.oc = number("oc");
  spec.ic = number("ic");
  spec.groups = number("groups");
  llvm::copy(form.getAs<DenseI64ArrayAttr>("kernel").asArrayRef(), spec.kernel.begin());
  spec.bType = form.getAs<TypeAttr>("element").getValue();
  spec.input = form.getAs<BoolAttr>("blocked_input").getValue() ? ConvLayout::Blocked16 : ConvLayout::Plain;
  if (formName(form) == "convwinograd16") {
    packWinogradWeights(spec.oc, spec.ic, number("stride"), constant.data(), out);
    return Status::ok();
  }
  std::array<int64_t, 5> strides;
  strides[4] = 1;
  strides[3] = spec.kernel[2];
  strides[2] = strides[3] * spec.kernel[1];
  strides[1] = strides[2] * spec.kernel[0];
  strides[0] = strides[1] * spec.groupIc();
  if (StringRef name = formName(form); name == "convquads16" || name == "convpairs16") {
    int64_t channels = spec.groupIc();
    spec.pairs = name == "convpairs16";
    spec.fours = !spec.pairs;
    spec.ic = spec.pairs ? spec.ic / 2 : foursOf(channels) * spec.groups;
    packConvGroups(spec, channels, constant.data(), strides, out);
    return Status::ok();
  }
  packConvWeights(spec, constant.data(), strides, out);
  return Status::ok();
}
