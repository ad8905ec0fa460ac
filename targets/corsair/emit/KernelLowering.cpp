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

#include <limits>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

//===----------------------------------------------------------------------===//
// A kernel
//===----------------------------------------------------------------------===//

static DictionaryAttr packedForm(dlir::KernelOp kernel, BlockArgument argument) {
  auto packed = kernel.getStrategy().getAs<DictionaryAttr>(strategy::kPacked);
  return packed ? packed.getAs<DictionaryAttr>(std::to_string(argument.getArgNumber())) : DictionaryAttr();
}

Result<Distribution> dmxc::corsair::distributionOf(dlir::KernelOp kernel) {
  auto quads = kernel.getStrategy().getAs<IntegerAttr>(kQuadsKey);
  return Distribution::read(kernel.getBlock(), quads ? static_cast<int>(quads.getInt()) : 1,
                            [&](BlockArgument argument) { return static_cast<bool>(packedForm(kernel, argument)); });
}

KernelLowering::KernelLowering(dlir::KernelOp kernel, Distribution given, const hw::Machine &machine, bool fromDdr)
    : kernel(kernel), machine(machine), fromDdr(fromDdr), deal(std::move(given)), registers(launchRegisters()),
      builder(kernel), writer(builder, kernel.getLoc(), kernel.getSymName()), buffers(writer, machine) {}

/// The programs' shape is fixed; a machine may be described that cannot run them.
static std::optional<std::string> machineLacks(Block *body, const hw::Machine &machine) {
  if (machine.queuesPerQuad < kQueues)
    return "dispatch.queues_per_quad is " + std::to_string(machine.queuesPerQuad) + ", programs need " +
           std::to_string(kQueues);
  return llvm::any_of(*body, [](Operation &op) { return isProduct(&op); }) ? lacksForProducts(machine) : std::nullopt;
}

Status KernelLowering::lower() {
  if (std::optional<std::string> lack = machineLacks(kernel.getBlock(), machine))
    return Error{ErrorKind::Constraint, "kernel '" + kernel.getSymName().str() + "' does not run on the machine '" +
                                            machine.name + "': " + *lack +
                                            "; nodes on the host (--place 'NODE=cpu') may help"};
  init = std::make_unique<Program>(writer, buffers, "init", deal.quads, registers);
  main = std::make_unique<Program>(writer, buffers, "main", deal.quads, registers);
  if (auto pairs = kernel.getStrategy().getAs<DenseI64ArrayAttr>(kStatesKey))
    for (int64_t i = 0; i + 1 < pairs.size(); i += 2)
      stateResults[pairs[i]] = pairs[i + 1];
  Block *body = kernel.getBlock();
  for (BlockArgument argument : body->getArguments())
    if (Status s = addArgument(argument, packedForm(kernel, argument)); !s)
      return s;
  if (deal.quads > 1) {
    meet();
    // Other quads send parts of them up to here, whether an op reads them or not.
    for (BlockArgument argument : body->getArguments())
      if (int buffer = values[argument].address.buffer; buffer >= 0)
        main->reserve(buffer);
  }
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

Status KernelLowering::finish(const MemoryUse &permanent) {
  main->noteUses();
  MemoryUse used = buffers.placeTemporaries(permanent);
  if (std::optional<std::string> full = exceeds(used, machine))
    return Error{ErrorKind::Constraint, "kernel '" + kernel.getSymName().str() + "' does not fit the device: " + *full};
  init->finish();
  main->finish();
  buffers.finish();
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

DeviceTensor KernelLowering::allocate(ArrayRef<int64_t> shape, hw::ElemKind kind, ArrayRef<unsigned> order) {
  DeviceTensor tensor = DeviceTensor::dense(kind, shape, order);
  tensor.address.buffer = buffers.add(hw::Memory::GM, node, tensor.elements() * tensor.elementSize());
  return tensor;
}

DeviceTensor KernelLowering::allocate(Value result, const DeviceTensor *like) {
  auto type = cast<RankedTensorType>(result.getType());
  SmallVector<unsigned> order = rowMajor(type.getRank());
  if (like && like->rank() == order.size())
    order = like->order();
  return allocate(type.getShape(), *deviceKind(type.getElementType()), order);
}

DeviceTensor KernelLowering::copied(const DeviceTensor &tensor, ArrayRef<unsigned> order) {
  DeviceTensor result = allocate(tensor.shape, tensor.kind, order);
  copyInto(tensor, result, tensor.split);
  result.split = tensor.split;
  return result;
}

DeviceTensor KernelLowering::writtenOut(const DeviceTensor &tensor, size_t dim) {
  return tensor.strides[dim] == 0 && tensor.shape[dim] > 1 ? copied(tensor, tensor.order()) : tensor;
}

void KernelLowering::copyInto(const DeviceTensor &from, const DeviceTensor &to, Split split) {
  map(hw::SimdFunction::Copy, to, from, split);
}

void KernelLowering::fill(const DeviceTensor &tensor, double value) {
  SimdOp op{hw::SimdFunction::Fill, tensor.shape};
  op.result = SimdOp::operand(tensor, tensor.shape);
  if (tensor.kind == hw::ElemKind::F16)
    op.imm0 = static_cast<float>(value);
  else
    op.index = static_cast<int64_t>(value);
  simd(std::move(op));
}

void KernelLowering::map(hw::SimdFunction function, const DeviceTensor &result, ArrayRef<DeviceTensor> operands,
                         Split split) {
  SimdOp op{function, result.shape};
  op.result = SimdOp::operand(result, result.shape);
  for (const DeviceTensor &operand : operands)
    op.sources.push_back(SimdOp::operand(operand, result.shape));
  op.split = split;
  simd(std::move(op));
}

void KernelLowering::task(Operation *op) {
  node = dmir::nodeName(op);
  writer.loc = op->getLoc();
  main->task(node);
}

void KernelLowering::simd(SimdOp op) {
  main->task(node);
  // Rows of more than four dims that do not join are refused before: see refusal.
  (void)emitSimd(*main, std::move(op), machine.slices);
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

/// What a row without elements is reduced to; the host has the extremes, which are infinite.
static double reducedNothing(hw::SimdFunction function) {
  if (function == hw::SimdFunction::ReduceMean)
    return std::numeric_limits<double>::quiet_NaN();
  return function == hw::SimdFunction::ReduceProd ? 1 : 0;
}

Status KernelLowering::lowerRows(Operation *op, hw::SimdFunction function, ArrayRef<int64_t> axes, float imm0) {
  DeviceTensor source = values[op->getOperand(0)];
  ArrayRef<int64_t> resultShape = shapeOf(op->getResult(0));
  bool reduces = resultShape != ArrayRef<int64_t>(source.shape);
  DeviceTensor result = reduces ? allocate(op->getResult(0)) : allocate(op->getResult(0), &source);
  if (source.elements() == 0) { // rows without elements
    values[op->getResult(0)] = result;
    fill(result, reducedNothing(function));
    return Status::ok();
  }
  // The axes of a row come last, in the order in which they lie in memory.
  SmallVector<unsigned> dims;
  for (unsigned dim : source.order())
    if (!llvm::is_contained(axes, dim))
      dims.push_back(dim);
  for (unsigned dim : source.order())
    if (llvm::is_contained(axes, dim))
      dims.push_back(dim);
  bool kept = resultShape.size() == source.rank();
  SimdOp simdOp{function, {}, static_cast<unsigned>(axes.size())};
  simdOp.result = {result.kind, result.address, {}};
  simdOp.sources = {{source.kind, source.address, {}}};
  simdOp.imm0 = imm0;
  const Split split = deal.at(op->getResult(0));
  for (unsigned dim : dims) {
    bool isRow = llvm::is_contained(axes, dim);
    unsigned position = dim;
    if (!kept)
      for (int64_t axis : axes)
        position -= axis < dim;
    if (split && !isRow && static_cast<int>(position) == split.dim)
      simdOp.split = {static_cast<int>(simdOp.dims.size()), split.part};
    simdOp.dims.push_back(source.shape[dim]);
    simdOp.sources[0].strides.push_back(source.strides[dim]);
    simdOp.result.strides.push_back(reduces && isRow ? 0 : result.strides[position]);
  }
  values[op->getResult(0)] = result;
  simd(std::move(simdOp));
  return Status::ok();
}
