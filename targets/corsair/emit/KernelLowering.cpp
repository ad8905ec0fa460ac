//===- KernelLowering.cpp - a region's ops to instructions ----------------===//
//
// Every op reads and writes values in GM. softmax(relu(x * w + b)) for a team of two quads that share the rows of x
// (16 x 64; w is 64 x 32, constant, and lies in ST):
//
//     op            GM of quad 0 (rows 0..7)     queues of quad 0, those of quad 1 do the same for rows 8..15
//     x: argument   x f16, 8 rows                copy x[0:8] from DDR
//     matmul, add   y f16, 8 x 32                emitProduct: x to IB, b into OB, sums to y
//     relu          z f16, in the order of y     emitSimd Relu, split at dim 0
//     softmax       s f16                        emitSimd Softmax, a row after the other
//     return                                     copy s to its rows of the result in DDR
//
// `deal` (Distribution) says how each value is split over quads; where an op needs all of one, its parts are gathered
// first (makeWhole). An add whose vector the product takes as a bias emits nothing. What is permanent (weights, states)
// and temporaries get their places when all kernels of an image are known (placePermanent, finish); what the init
// program copies once is not copied in main.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "dmxc/Target/TargetBackend.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

//===----------------------------------------------------------------------===//
// A kernel
//===----------------------------------------------------------------------===//

DictionaryAttr dmxc::corsair::packedForm(dlir::KernelOp kernel, BlockArgument argument) {
  auto packed = kernel.getStrategy().getAs<DictionaryAttr>(strategy::kPacked);
  return packed ? packed.getAs<DictionaryAttr>(std::to_string(argument.getArgNumber())) : DictionaryAttr();
}

Result<Distribution> dmxc::corsair::distributionOf(dlir::KernelOp kernel, const hw::Machine &machine) {
  auto quads = kernel.getStrategy().getAs<IntegerAttr>(kQuadsKey);
  if (quads && (quads.getInt() < 1 || quads.getInt() > machine.quadCount()))
    return modelError("kernel '" + kernel.getSymName().str() + "': '" + kQuadsKey.str() + "' is " +
                      std::to_string(quads.getInt()) + ", the machine has " + std::to_string(machine.quadCount()));
  Result<Distribution> deal =
      Distribution::read(kernel.getBlock(), quads ? static_cast<int>(quads.getInt()) : 1,
                         kernel.getStrategy().getAs<DictionaryAttr>(kDealsKey),
                         [&](BlockArgument argument) { return static_cast<bool>(packedForm(kernel, argument)); });
  if (!deal)
    return deal;
  for (Operation &op : kernel.getBlock()->without_terminator())
    if (auto plan = op.getAttrOfType<lldmir::PlanAttr>(lldmir::kPlanAttr); plan && isProduct(&op))
      if (std::optional<std::string> why = unfit(plan, dimsOf(&op, *deal), machine))
        return modelError("node '" + dmir::nodeName(&op) + "': '" + lldmir::kPlanAttr.str() + "' cannot be: " + *why);
  auto constant = [&](unsigned number) {
    return static_cast<bool>(packedForm(kernel, kernel.getBlock()->getArgument(number)));
  };
  const DictionaryAttr wanted = packedForms(kernel.getBlock(), *deal, constant);
  for (NamedAttribute form : wanted)
    if (kernel.getStrategy().getAs<DictionaryAttr>(strategy::kPacked).get(form.getName()) != form.getValue())
      return modelError("kernel '" + kernel.getSymName().str() + "': the form of its argument " + form.getName().str() +
                        " in '" + strategy::kPacked.str() + "' is not that of its reader's plan and deal");
  return deal;
}

KernelLowering::KernelLowering(dlir::KernelOp kernel, Distribution given, const hw::Machine &machine, bool fromDdr)
    : KernelWriter(kernel, given.quads, machine, fromDdr), kernel(kernel), deal(std::move(given)) {}

Status KernelLowering::lower() {
  const bool multiplies = llvm::any_of(*kernel.getBlock(), [](Operation &op) { return isProduct(&op); });
  if (Status s = begin(multiplies); !s)
    return s;
  if (auto pairs = kernel.getStrategy().getAs<DenseI64ArrayAttr>(kStatesKey))
    for (int64_t i = 0; i + 1 < pairs.size(); i += 2)
      stateResults[pairs[i]] = pairs[i + 1];
  Block *body = kernel.getBlock();
  for (BlockArgument argument : body->getArguments())
    if (Status s = addArgument(argument, packedForm(kernel, argument)); !s)
      return s;
  SmallVector<int> inputs;
  for (BlockArgument argument : body->getArguments())
    if (!deal.at(argument))
      inputs.push_back(values[argument].address.buffer);
  meetAfterInputs(inputs);
  for (Operation &op : body->without_terminator()) {
    task(&op);
    auto parts = deal.gathers.find(&op);
    if (parts != deal.gathers.end())
      makeWhole(parts->second);
    main->task(node);
    if (Status s = lower(&op); !s)
      return s;
    for (Value result : op.getResults())
      values[result].split = deal.at(result);
  }
  unsigned index = 0;
  for (Value result : body->getTerminator()->getOperands())
    if (Status s = addResult(result, index++); !s)
      return s;
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

DeviceTensor KernelLowering::allocate(Value result, const DeviceTensor *like) {
  auto type = cast<RankedTensorType>(result.getType());
  SmallVector<unsigned> order = rowMajor(type.getRank());
  if (like && like->rank() == order.size())
    order = like->order();
  return allocate(type.getShape(), *deviceKind(type.getElementType()), order);
}

Status KernelLowering::lowerConstant(Operation *op) {
  auto constant = cast<dmir::ConstantOp>(op);
  auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
  if (!splat)
    return Error{ErrorKind::Internal, "a constant inside a region of the device has more than one value"};
  DeviceTensor tensor = allocate(constant.getResult());
  Type element = splat.getElementType();
  double value = isa<FloatType>(element) ? splat.getSplatValue<APFloat>().convertToDouble()
                                         : static_cast<double>(splat.getSplatValue<APInt>().getSExtValue());
  fill(tensor, value);
  values[constant.getResult()] = tensor;
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Ops on the vector device
//===----------------------------------------------------------------------===//

Status KernelLowering::lowerElementwise(Operation *op, hw::SimdFunction function) {
  for (Value operand : op->getOperands())
    if (Operation *product = operand.getDefiningOp(); product && deal.biases.lookup(product) == op) {
      DeviceTensor sums = values[operand]; // with the vector in them
      values[op->getResult(0)] = std::move(sums);
      return Status::ok();
    }
  SmallVector<DeviceTensor> operands;
  for (Value operand : op->getOperands())
    operands.push_back(values[operand]);
  // The result lies in memory as its largest operand does.
  const DeviceTensor *like = llvm::max_element(
      operands, [](const DeviceTensor &a, const DeviceTensor &b) { return a.elements() < b.elements(); });
  DeviceTensor result = allocate(op->getResult(0), like);
  values[op->getResult(0)] = result;
  map(function, result, operands, deal.at(op->getResult(0)));
  return Status::ok();
}

/// Infinities are the largest magnitude here, which they saturate to.
Status KernelLowering::lowerIsInf(Operation *op) {
  const DeviceTensor source = values[op->getOperand(0)];
  const Split split = deal.at(op->getResult(0));
  DeviceTensor sizes = allocate(source.shape, source.kind, source.order()), largest = allocate({}, source.kind, {});
  fill(largest, 65504);
  map(hw::SimdFunction::Abs, sizes, source, split);
  DeviceTensor result = allocate(op->getResult(0), &source);
  values[op->getResult(0)] = result;
  map(hw::SimdFunction::Ge, result, {sizes, largest}, split);
  return Status::ok();
}

Status KernelLowering::lowerRows(Operation *op, const RowsOp &rowsOp) {
  DeviceTensor source = values[op->getOperand(0)];
  bool reduces = shapeOf(op->getResult(0)) != ArrayRef<int64_t>(source.shape);
  DeviceTensor result = reduces ? allocate(op->getResult(0)) : allocate(op->getResult(0), &source);
  values[op->getResult(0)] = result;
  rows(rowsOp.function, source, result, rowsOp.axes, rowsOp.imm0, deal.at(op->getResult(0)));
  return Status::ok();
}

void KernelLowering::makeWhole(ArrayRef<Value> parts) {
  SmallVector<DeviceTensor *> tensors;
  for (Value value : parts)
    tensors.push_back(&values[value]);
  exchange(tensors);
}
