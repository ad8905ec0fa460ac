//===- Tensors.cpp - kernels of tensors -----------------------------------===//
//
// Ops of a region under what partition decided of them, a function with formats, loops over tiles of tensors. What one
// function of the vector device computes of several ops is computed as that: the values between them are not rounded.
//
//===----------------------------------------------------------------------===//
#include "Arrays.h"
#include "Indices.h"
#include "Interpreter.h"
#include "Kept.h"
#include "VectorDevice.h"

#include "dmxc/Dialect/DMIR/BlockFp.h"
#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Kernels.h"
#include "dmxc/Target/TargetBackend.h"
#include "targets/corsair/decide/Constants.h"
#include "targets/corsair/decide/Functions.h"
#include "targets/corsair/decide/Ops.h"
#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;
using namespace dmxc::corsair::stages;

namespace {

class Tensors {
public:
  /// `areHosts`: floats of the text are the host's.
  Tensors(Block &body, bool areHosts) : body(body), areHosts(areHosts), functions(body, areHosts) {}

  void set(Value value, View view) { views[value] = std::move(view); }

  Result<SmallVector<View>> run() {
    if (Status done = runBlock(body); !done)
      return done.takeError();
    SmallVector<View> results;
    for (Value value : body.getTerminator()->getOperands())
      results.push_back(views.lookup(value));
    return results;
  }

private:
  Status runBlock(Block &block) {
    for (Operation &op : block.without_terminator())
      if (!functions.isUnused(&op))
        if (Status done = evaluate(&op); !done)
          return done;
    return Status::ok();
  }

  hw::ElemKind kindOf(Value value) const {
    const Type element = elementOf(value);
    return (areHosts ? deviceKindOf(element) : stages::kindOf(element)).value_or(hw::ElemKind::Raw);
  }
  View made(Value value) const { return View::zeros(kindOf(value), shapeOf(value)); }
  View viewOf(Value value) const { return views.lookup(value); }

  Status evaluate(Operation *op) {
    for (Value result : op->getResults())
      if (isa<TensorType>(result.getType()) &&
          (!isa<RankedTensorType>(result.getType()) || kindOf(result) == hw::ElemKind::Raw))
        return notEvaluated(op, "makes numbers that the device does not have");
    const DeviceFunction *function = functions.at(op);
    const SmallVector<Value> read(function ? ValueRange(function->operands) : ValueRange(op->getOperands()));
    for (Value operand : read)
      if (isa<TensorType>(operand.getType()) && !views.contains(operand) && !isPending(operand))
        return errorAt(op, "reads a value that nothing has made");
    if (function)
      return at(op, evaluateAs(*function, op));
    return TypeSwitch<Operation *, Status>(op)
        .Case<dmir::ConstantOp, dmir::UndefOp, dmir::CastOp, dmir::AddOp, dmir::MatMulOp, dmir::ConvOp, dmir::GatherOp,
              dmir::PadOp, dmir::ConcatOp, dmir::SliceOp, dmir::ScatterElementsOp, dmir::MaskOp, lldmir::ConvOp,
              lldmir::GatherOp, lldmir::SumOp, affine::AffineForOp, tensor::ExtractSliceOp, tensor::InsertSliceOp>(
            [&](auto typed) { return lower(typed); })
        .Case<affine::AffineApplyOp, arith::ConstantOp>([](auto) { return Status::ok(); }) // where it is read
        .Case([&](dmir::ExternOp) {
          return notEvaluated(op, "is a kernel that a user wrote; what it does says the program that it becomes");
        })
        .Case([&](dmir::TransposeOp typed) {
          return put(op, viewOf(typed.getInput()).transposed(typed.getPermutation()));
        })
        .Case([&](dmir::ReshapeOp typed) {
          return put(op, viewOf(typed.getInput()).reshaped(shapeOf(op->getResult(0))));
        })
        .Case([&](dmir::BroadcastOp typed) {
          return put(op, viewOf(typed.getInput()).broadcast(shapeOf(op->getResult(0))));
        })
        .Case([&](dmir::PadBlocksOp typed) {
          View whole = made(typed.getResult()), from = viewOf(typed.getInput());
          copyInto(from, cornerOf(whole, from.shape));
          return put(op, whole);
        })
        .Default([&](Operation *) { return lowerUnit(op); });
  }

  Status put(Operation *op, View view) {
    views[op->getResult(0)] = std::move(view);
    return Status::ok();
  }
  static View cornerOf(const View &whole, ArrayRef<int64_t> shape) {
    return whole.part(Dims(whole.rank(), 0), shape, Dims(whole.rank(), 1));
  }

  //===--- the vector device ----------------------------------------------------------===//

  Status lowerUnit(Operation *op) {
    if (op->getName().getDialectNamespace() != "dmir" || op->getNumResults() != 1)
      return notEvaluated(op, "is not known to the interpreter of tensors");
    SmallVector<View> inputs;
    for (Value operand : op->getOperands())
      inputs.push_back(viewOf(operand));
    View out = made(op->getResult(0));
    if (out.elements() || rowsOp(op))
      if (Status done = vectorOp(op, out, inputs); !done)
        return at(op, std::move(done));
    return put(op, out);
  }

  Status evaluateAs(const DeviceFunction &function, Operation *op) {
    SmallVector<View> inputs;
    for (Value operand : function.operands)
      inputs.push_back(viewOf(operand));
    View out = made(op->getResult(0));
    views[op->getResult(0)] = out;
    const auto [lower, upper] = function.diagonals;
    if (lower || upper || function.function == hw::SimdFunction::CausalMask) {
      const bool weighs = function.function == hw::SimdFunction::Softmax;
      return masked({weighs, upper, lower, 0, std::nullopt, function.imm0}, inputs[0], out);
    }
    if (!function.axes.empty())
      return rows(function.function, inputs[0], out, function.axes, function.imm0);
    const bool rotates =
        function.function == hw::SimdFunction::Rope || function.function == hw::SimdFunction::RopeInterleaved;
    if (rotates && inputs[0].shape.back() > out.shape.back())
      inputs[0] = inputs[0].slice(out.rank() - 1, function.first, out.shape.back());
    return mapped({function.function, function.imm0, function.imm1, rotates ? 1 : 0}, out, inputs);
  }

  /// Scores of which softmax leaves out what a mask does keep all of it.
  Status lower(dmir::MaskOp op) {
    return diagonalsOf(op) ? put(op, viewOf(op.getInput()))
                           : Status(notEvaluated(op, "masks by a rule that is no diagonal"));
  }

  //===--- values ---------------------------------------------------------------------===//

  Status lower(dmir::ConstantOp op) {
    if (dmir::blockFpOf(op.getType()))
      return notEvaluated(op, "is a constant of blocks");
    Result<Tensor> tensor = dmir::constantTensor(op.getValue());
    return tensor ? put(op, fromHost(*tensor, kindOf(op.getResult()))) : Status(errorAt(op, tensor.error().message));
  }

  Status lower(dmir::UndefOp op) { return put(op, made(op.getResult())); }

  Status lower(dmir::CastOp op) {
    const hw::ElemKind kind = kindOf(op.getResult());
    View from = viewOf(op.getInput());
    return put(op, from.kind == kind ? from : from.copy(kind));
  }

  Status lower(dmir::SliceOp op) {
    View part = viewOf(op.getInput()).part(op.getStarts(), op.getSizes(), op.getSteps());
    return part.isInside() ? put(op, part) : Status(errorAt(op, "reads beyond its operand"));
  }

  Status lower(dmir::ConcatOp op) {
    View whole = made(op.getResult());
    int64_t first = 0;
    for (Value input : op.getInputs()) {
      const View part = viewOf(input);
      copyInto(part, whole.slice(op.getAxis(), first, part.shape[op.getAxis()]));
      first += part.shape[op.getAxis()];
    }
    return put(op, whole);
  }

  Status lower(dmir::PadOp op) {
    if (op.getMode() != dmir::PadMode::constant)
      return notEvaluated(op, "pads by other than a number");
    View whole = made(op.getResult()), from = viewOf(op.getInput());
    copyInto(viewOf(op.getValue()).broadcast(whole.shape), whole);
    Dims steps;
    for (int64_t interior : op.getInterior())
      steps.push_back(1 + interior);
    copyInto(from, whole.part(op.getLow(), from.shape, steps));
    return put(op, whole);
  }

  Status lower(dmir::GatherOp op) {
    View out = made(op.getResult());
    if (out.elements())
      if (Status done = gathered(viewOf(op.getData()), viewOf(op.getIndices()), out, op.getAxis()); !done)
        return at(op, std::move(done));
    return put(op, out);
  }

  Status lower(dmir::ScatterElementsOp op) {
    View out = viewOf(op.getData()).copy();
    if (Status done = scattered(viewOf(op.getUpdates()), viewOf(op.getIndices()), out, op.getAxis()); !done)
      return at(op, std::move(done));
    return put(op, out);
  }

  //===--- products -------------------------------------------------------------------===//

  /// A product to which a bias is added: computed there, since its sums begin with it.
  bool isPending(Value value) const {
    Operation *op = value.getDefiningOp();
    if (!op || !isa<dmir::MatMulOp, dmir::ConvOp>(op) || !value.hasOneUse())
      return false;
    auto add = dyn_cast<dmir::AddOp>(*value.user_begin());
    return add && (add->hasAttr(lldmir::kBiasAttr) || dmir::isBfp32(elementOf(value)));
  }

  static int64_t atOnce(Operation *op) {
    auto plan = op->getAttrOfType<lldmir::PlanAttr>(lldmir::kPlanAttr);
    auto tree = op->getAttrOfType<IntegerAttr>(dmir::kTreeTilesAttr);
    return plan ? plan.getNumImc() : tree ? tree.getInt() : 16;
  }

  static bool byWindows(Operation *op) {
    auto plan = op->getAttrOfType<lldmir::PlanAttr>(lldmir::kPlanAttr);
    return plan && plan.getWindows();
  }

  Status lower(dmir::MatMulOp op) {
    return isPending(op.getResult()) ? Status::ok() : multiply(op, std::nullopt, op.getResult());
  }

  Status lower(dmir::AddOp op) {
    for (Value product : op->getOperands())
      if (isPending(product)) {
        View bias = viewOf(product == op.getLhs() ? op.getRhs() : op.getLhs());
        bias = bias.reshaped({bias.elements()}); // of a convolution [o, 1, 1]
        if (auto matmul = product.getDefiningOp<dmir::MatMulOp>())
          return multiply(matmul, bias, op.getResult());
        return convolve(product.getDefiningOp<dmir::ConvOp>(), bias, op.getResult());
      }
    return lowerUnit(op);
  }

  /// Fills `result`, which is the product or its sum with a bias.
  Status multiply(dmir::MatMulOp op, const std::optional<View> &bias, Value result) {
    const View left = viewOf(op.getLhs()), right = viewOf(op.getRhs());
    View out = made(result);
    Dims batch(ArrayRef(out.shape).drop_back(2));
    auto all = [&](const View &view) {
      Dims shape(batch);
      llvm::append_range(shape, ArrayRef(view.shape).take_back(2));
      return view.broadcast(shape);
    };
    const View a = all(left), b = all(right);
    for (int64_t number = 0, count = elementCount(batch); number < count; ++number)
      if (Status done = multiplyOne(op, matrixOf(a, number), matrixOf(b, number), bias, matrixOf(out, number)); !done)
        return at(op, std::move(done));
    views[result] = out;
    return Status::ok();
  }

  static View matrixOf(const View &all, int64_t number) {
    View matrix = all;
    for (size_t dim = all.rank() - 2; dim-- > 0; number /= all.shape[dim])
      matrix = matrix.slice(dim, number % all.shape[dim], 1);
    matrix.shape.erase(matrix.shape.begin(), matrix.shape.end() - 2);
    matrix.steps.erase(matrix.steps.begin(), matrix.steps.end() - 2);
    return matrix;
  }

  static Status multiplyOne(dmir::MatMulOp op, const View &a, const View &b, const std::optional<View> &bias,
                            const View &out) {
    auto deal = op->getAttrOfType<lldmir::DealAttr>(lldmir::kDealAttr);
    if (deal && deal.isSums())
      return multiplyParts(deal.getQuads(), atOnce(op), a, b, out);
    Sums sums;
    sums.parts.push_back({a, b, atOnce(op)});
    sums.bias = bias;
    return op->hasAttr(lldmir::kKeptAttr) || op->hasAttr(lldmir::kBlocksAttr) ? multiplyKept(op, sums, out)
                                                                              : sumsInto(sums, out);
  }

  /// Each quad's part along K, and the sums of all.
  static Status multiplyParts(int64_t quads, int64_t atOnce, const View &a, const View &b, const View &out) {
    const int64_t part = quads > 0 ? a.shape[1] / quads : 0;
    if (quads < 2 || part * quads != a.shape[1])
      return modelError("gives its quads no equal parts along K");
    View parts = View::zeros(hw::ElemKind::F32, {quads, out.shape[0], out.shape[1]});
    for (int64_t quad = 0; quad < quads; ++quad) {
      Sums sums;
      sums.parts.push_back({a.slice(1, quad * part, part), b.slice(0, quad * part, part), atOnce});
      Result<View> made = addedUp(sums);
      if (!made)
        return made.takeError();
      copyInto(*made, matrixOf(parts, quad));
    }
    return summed(parts, out);
  }

  Status lower(dmir::ConvOp op) {
    if (isPending(op.getResult()))
      return Status::ok();
    return isDepthwise(op) ? lowerUnit(op) : convolve(op, std::nullopt, op.getResult());
  }

  Status convolve(dmir::ConvOp op, const std::optional<View> &bias, Value result) {
    const View weights = viewOf(op.getWeights());
    const Convolution conv{Dims(ArrayRef(weights.shape).drop_front(2)),
                           Dims(op.getStrides()),
                           Dims(op.getDilations()),
                           Dims(op.getLow()),
                           static_cast<int64_t>(op.getGroups()),
                           atOnce(op),
                           byWindows(op)};
    View out = made(result);
    views[result] = out;
    return at(op, stages::convolve(conv, viewOf(op.getInput()), weights, bias, out));
  }

  Status lower(lldmir::ConvOp op) {
    if (!op.getResult())
      return errorAt(op, "gives no tensor");
    const Convolution conv{Dims(op.getKernel()),
                           Dims(op.getStrides()),
                           Dims(op.getDilations()),
                           Dims(op.getLow()),
                           static_cast<int64_t>(op.getGroups()),
                           atOnce(op),
                           byWindows(op)};
    View out = made(op.getResult());
    views[op.getResult()] = out;
    return at(op, stages::convolve(conv, viewOf(op.getImage()), viewOf(op.getWeights()),
                                   op.getBias() ? std::optional(viewOf(op.getBias())) : std::nullopt, out));
  }

  //===--- quads, loops and tiles -----------------------------------------------------===//

  /// Of tensors every quad has all parts.
  Status lower(lldmir::GatherOp op) {
    for (auto [part, whole] : llvm::zip(op.getParts(), op.getWholes()))
      views[whole] = viewOf(part);
    return Status::ok();
  }

  Status lower(lldmir::SumOp op) {
    if (!op.getResult())
      return errorAt(op, "gives no tensor");
    View out = made(op.getResult());
    views[op.getResult()] = out;
    return at(op, summed(viewOf(op.getParts()), out));
  }

  /// What is inserted into in place: a value with elements of its own, which nothing else reads.
  View owned(Value value) const {
    Operation *op = isa<BlockArgument>(value) ? value.getParentBlock()->getParentOp() : value.getDefiningOp();
    const bool mayWrite = value.hasOneUse() && isa<dmir::UndefOp, affine::AffineForOp, tensor::InsertSliceOp>(op);
    return mayWrite ? viewOf(value) : viewOf(value).copy();
  }

  Status lower(affine::AffineForOp op) {
    auto bounds = indices.bounds(op);
    if (!bounds)
      return notEvaluated(op, "is a loop whose bounds are no numbers");
    SmallVector<View> carried;
    for (Value init : op.getInits())
      carried.push_back(owned(init));
    for (int64_t i = bounds->first; i < bounds->second; i += op.getStepAsInt()) {
      indices.set(op.getInductionVar(), i);
      for (auto [argument, view] : llvm::zip(op.getRegionIterArgs(), carried))
        views[argument] = view;
      if (Status done = runBlock(*op.getBody()); !done)
        return done;
      for (auto [view, yielded] : llvm::zip(carried, op.getBody()->getTerminator()->getOperands()))
        view = viewOf(yielded);
    }
    for (auto [result, view] : llvm::zip(op.getResults(), carried))
      views[result] = view;
    return Status::ok();
  }

  Result<View> partOf(Operation *op, const View &whole, ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
                      ArrayRef<OpFoldResult> strides, ArrayRef<int64_t> shape) const {
    std::optional<Dims> at = indices.at(offsets), extents = indices.at(sizes), steps = indices.at(strides);
    if (!at || !extents || !steps)
      return errorAt(op, "begins at no number that its loops give");
    for (size_t i = 0; i < whole.rank(); ++i)
      if (const int64_t last = (*at)[i] + ((*extents)[i] - 1) * (*steps)[i];
          (*at)[i] < 0 || (*at)[i] >= std::max<int64_t>(whole.shape[i], 1) || last < 0 || last >= whole.shape[i])
        return errorAt(op, "reaches beyond a tensor, along dim " + std::to_string(i));
    View part = whole.part(*at, *extents, *steps);
    for (size_t i = part.rank(); i-- > 0 && part.rank() > shape.size();)
      if (part.shape[i] == 1 && ArrayRef(part.shape).drop_front(i) != shape.take_back(part.rank() - i)) {
        part.shape.erase(part.shape.begin() + i);
        part.steps.erase(part.steps.begin() + i);
      }
    return ArrayRef(part.shape) == shape ? Result<View>(part)
                                         : errorAt(op, "has a part of another shape than its type");
  }

  Status lower(tensor::ExtractSliceOp op) {
    Result<View> part = partOf(op, viewOf(op.getSource()), op.getMixedOffsets(), op.getMixedSizes(),
                               op.getMixedStrides(), op.getType().getShape());
    return part ? put(op, *part) : Status(part.takeError());
  }

  Status lower(tensor::InsertSliceOp op) {
    View whole = owned(op.getDest());
    Result<View> part = partOf(op, whole, op.getMixedOffsets(), op.getMixedSizes(), op.getMixedStrides(),
                               op.getSourceType().getShape());
    if (!part)
      return part.takeError();
    copyInto(viewOf(op.getSource()), *part);
    return put(op, whole);
  }

  Block &body;
  bool areHosts;
  FunctionChoice functions;
  llvm::DenseMap<Value, View> views;
  Indices indices;
};

} // namespace

/// Zeros go on behind a packed vector.
static View longer(const View &vector, int64_t size) {
  View made = View::zeros(vector.kind, {size});
  copyInto(vector, made.slice(0, 0, vector.elements()));
  return made;
}

Result<SmallVector<View>> dmxc::corsair::stages::evaluateRegion(Block &body, DictionaryAttr strategy,
                                                                ArrayRef<Tensor> operands) {
  auto packed = strategy ? strategy.getAs<DictionaryAttr>(strategy::kPacked) : DictionaryAttr();
  llvm::DenseSet<Value> tiles;
  auto formOf = [&](BlockArgument argument) {
    auto form = packed ? packed.getAs<DictionaryAttr>(std::to_string(argument.getArgNumber())) : DictionaryAttr();
    auto name = form ? form.getAs<StringAttr>("form") : StringAttr();
    return name ? name.getValue() : StringRef();
  };
  for (BlockArgument argument : body.getArguments())
    if (formOf(argument) == forms::kTiles)
      tiles.insert(argument);
  Tensors tensors(body, /*areHosts=*/true);
  for (auto [argument, tensor] : llvm::zip(body.getArguments(), operands)) {
    std::optional<hw::ElemKind> kind = deviceKindOf(elementOf(argument));
    if (!kind)
      return notEvaluated(body.getParentOp(), "takes numbers that the device does not have");
    const StringRef form = formOf(argument);
    if (form == forms::kTiles || (form.empty() && crossesAsTiles(argument, tiles)))
      kind = hw::ElemKind::F32;
    else if (form == forms::kBias)
      kind = hw::ElemKind::Bfp32;
    tensors.set(argument, fromHost(tensor, *kind));
  }
  return tensors.run();
}

Result<SmallVector<View>> dmxc::corsair::stages::evaluateTensors(func::FuncOp function, ArrayRef<Tensor> operands) {
  Tensors tensors(function.getBody().front(), /*areHosts=*/false);
  for (auto [argument, tensor] : llvm::zip(function.getArguments(), operands)) {
    std::optional<hw::ElemKind> kind = kindOf(elementOf(argument));
    if (!kind || !typeOf(argument).hasStaticShape())
      return notEvaluated(function, "takes numbers that the device does not have");
    View view = fromHost(tensor, *kind);
    const bool isVector = *kind == hw::ElemKind::Bfp32;
    if (isVector && view.elements() <= elementsOf(argument))
      view = longer(view.reshaped({view.elements()}), elementsOf(argument));
    if (ArrayRef(view.shape) != shapeOf(argument))
      return errorAt(function, "takes argument " + std::to_string(argument.getArgNumber()) + " in another shape");
    tensors.set(argument, view);
  }
  return tensors.run();
}
