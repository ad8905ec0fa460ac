//===- StageWriter.cpp - a kernel over quads to tasks ---------------------===//
//
// A buffer's type says what a DeviceTensor is. Loops over tiles are products whose tiles come in the order of the
// loops; an op on whole buffers is one of the vector device.
//
//===----------------------------------------------------------------------===//
#include "StageWriter.h"
#include "../KernelFunctions.h"
#include "../Views.h"
#include "TileForms.h"

#include "dmxc/Dialect/DMIR/BlockFp.h"
#include "targets/corsair/decide/Ops.h"
#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

#include "schemas/corsair/SimdFunctions.h"

#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;
using affine_ext::VecExtType;

StageWriter::StageWriter(func::FuncOp function, int quads, const hw::Machine &machine, bool fromDdr)
    : KernelWriter(function, quads, machine, fromDdr), function(function) {}

Result<std::unique_ptr<KernelWriter>> StageWriter::create(Operation *op, const hw::Machine &machine, bool fromDdr) {
  auto function = dyn_cast<func::FuncOp>(op);
  auto quads = op->getAttrOfType<IntegerAttr>(kQuadsAttr);
  const std::string name = SymbolTable::getSymbolName(op).str();
  if (!function || !function.getBody().hasOneBlock())
    return modelError("kernel '" + name +
                      "' is no function that the stages of the device made: run corsair-kernel-functions to "
                      "corsair-outline-spmd before");
  if (!quads || quads.getInt() < 1 || quads.getInt() > machine.quadCount())
    return modelError("kernel '" + name + "' has no '" + kQuadsAttr.str() + "' from 1 to " +
                      std::to_string(machine.quadCount()) + ", the size of its team");
  return std::unique_ptr<KernelWriter>(new StageWriter(function, static_cast<int>(quads.getInt()), machine, fromDdr));
}

Status StageWriter::fail(Operation *op, const Twine &why) {
  return Error{ErrorKind::Model,
               ("node '" + dmir::nodeName(op) + "': '" + op->getName().getStringRef() + "' " + why).str()};
}

Value StageWriter::outside(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && argument.getOwner()->getParentOp() == kernel ? launch.getKernelOperand(argument.getArgNumber())
                                                                  : Value();
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

Status StageWriter::lower() {
  for (auto op : function.getOps<gpu::LaunchFuncOp>())
    launch = op;
  kernel = launch ? SymbolTable::lookupNearestSymbolFrom<gpu::GPUFuncOp>(launch, launch.getKernel()) : gpu::GPUFuncOp();
  if (!kernel || !kernel.getBody().hasOneBlock())
    return fail(function, "launches no kernel of one block");
  auto sizes = kernel.getKnownBlockSize();
  if (!sizes || sizes->size() != 3 || (*sizes)[0] != quads)
    return fail(kernel, "has other threads than the " + Twine(quads) + " quads of its team");
  const WalkResult found = kernel.walk([](Operation *op) {
    return isa<lldmir::MatMulOp, lldmir::ConvOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
  });
  const bool multiplies = found.wasInterrupted();
  if (Status s = begin(multiplies); !s)
    return s;
  if (Attribute macs = function->getAttr(kRepeatedMacs))
    writer.program()->setAttr(kRepeatedMacs, macs);
  if (Status s = addArguments(); !s)
    return s;
  if (Status s = addLeaving(); !s)
    return s;
  for (Operation &op : kernel.getBody().front().without_terminator())
    if (Status s = lower(&op); !s)
      return s;
  for (auto &[matrix, done] : filled)
    if (Status s = checkFilled(kernel, done); !s)
      return s;
  finishBands();
  if (Status s = checkCrossed(); !s)
    return s;
  for (auto [index, value] : llvm::enumerate(function.getBody().front().getTerminator()->getOperands()))
    if (Status s = addResult(value, index); !s)
      return s;
  return Status::ok();
}

Result<StageWriter::HostResult> StageWriter::hostResult(unsigned index) {
  auto type = function.getResultAttrOfType<TypeAttr>(index, kTypeAttr);
  if (!type)
    return fail(function, "has no host's type of result " + Twine(index)).takeError();
  HostResult host{dyn_cast<RankedTensorType>(type.getValue()), {}};
  if (!host.type)
    return fail(function, "has a '" + kTypeAttr + "' of result " + Twine(index) + " that is no tensor").takeError();
  if (auto deal = function.getResultAttrOfType<lldmir::DealAttr>(index, lldmir::kDealAttr)) {
    host.split = splitOf(deal, host.type.getShape(), quads);
    if (!host.split || (deal.getFolded() && host.split.part % 2))
      return fail(function, "has a '" + lldmir::kDealAttr + "' of result " + Twine(index) + " that gives no parts")
          .takeError();
    host.split.folded = deal.getFolded();
  }
  return host;
}

Status StageWriter::addResult(Value value, unsigned index) {
  Result<DeviceTensor> found = returned(value);
  if (!found)
    return found.takeError();
  Result<HostResult> host = hostResult(index);
  if (!host)
    return host.takeError();
  if (found->shape != shareOf(host->type.getShape(), host->split))
    return fail(function, "has a '" + kTypeAttr + "' of result " + Twine(index) + " that is not the result's shape");
  auto state = states.find(index);
  if (state == states.end() && found->elements() &&
      (!found->isDense() || buffers[found->address.buffer].memory != hw::Memory::GM))
    return fail(function, "returns result " + Twine(index) + " with gaps; a copy in GM has none");
  if (state != states.end())
    keepState(*found, state->second, host->type, index, host->split);
  else if (auto leaves = left.find(index); leaves != left.end())
    declareResult(leaves->second, host->type, index, host->split);
  else
    storeResult(*found, host->type, index, host->split);
  return Status::ok();
}

Status StageWriter::addArguments() {
  SmallVector<int> inputs;
  for (BlockArgument argument : function.getArguments()) {
    if (Status s = addArgument(argument); !s)
      return s;
    const bool isLate =
        function.getArgAttr(argument.getArgNumber(), kTypeAttr) && isLateInput(tensors.lookup(argument).address.buffer);
    if (!isLate && !function.getArgAttr(argument.getArgNumber(), lldmir::kDealAttr))
      inputs.push_back(tensors.lookup(argument).address.buffer);
  }
  meetAfterInputs(inputs);
  return Status::ok();
}

Status StageWriter::addArgument(BlockArgument argument) {
  const unsigned number = argument.getArgNumber();
  node = "arg" + std::to_string(number);
  auto given = function.getArgAttrOfType<TypeAttr>(number, kTypeAttr);
  auto type = given ? dyn_cast<RankedTensorType>(given.getValue()) : RankedTensorType();
  if (!type)
    return fail(function, "has no host's type of argument " + Twine(number));
  auto form = function.getArgAttrOfType<DictionaryAttr>(number, kFormAttr);
  if (!type.hasStaticShape() || !deviceKind(type.getElementType()))
    return fail(function, "has a host's type of argument " + Twine(number) + " that the device has no numbers of");
  if (auto next = function.getArgAttrOfType<IntegerAttr>(number, kStateAttr)) {
    const auto of = static_cast<unsigned>(next.getInt());
    if (form || next.getInt() < 0 || of >= function.getNumResults() || states.count(of) ||
        function.getResultAttrOfType<TypeAttr>(of, kTypeAttr) != given)
      return fail(function,
                  "has a '" + kStateAttr + "' of argument " + Twine(number) + " that is no result of its type");
    tensors[argument] = states[of] = addState(number, type);
    return Status::ok();
  }
  return form ? addConstant(argument, type, form) : addFetched(argument, type);
}

Status StageWriter::addFetched(BlockArgument argument, RankedTensorType type) {
  const unsigned number = argument.getArgNumber();
  const std::string &name = node;
  Split split;
  if (auto deal = function.getArgAttrOfType<lldmir::DealAttr>(number, lldmir::kDealAttr)) {
    split = splitOf(deal, type.getShape(), quads);
    if (split && deal.getFolded() && (split.part % 2 || function.getArgAttr(number, kTilesAttr)))
      split = {};
    split.folded = split && deal.getFolded();
  }
  if (function.getArgAttr(number, lldmir::kDealAttr) && !split)
    return fail(function, "has a '" + lldmir::kDealAttr + "' of argument " + Twine(number) + " that gives no parts");
  const bool inBands = static_cast<bool>(function.getArgAttr(number, lldmir::kBandsAttr));
  Address ddr;
  if (inBands && (type.getRank() != 2 || split.folded || (quads > 1 && split.dim != 0)))
    return fail(function, "has '" + lldmir::kBandsAttr + "' of argument " + Twine(number) +
                              ", of which no quad has rows of its own");
  if (auto rows = function.getArgAttrOfType<IntegerAttr>(number, kTilesAttr)) {
    const int64_t part = rows.getInt();
    const bool fits = type.getRank() == 2 && type.getNumElements() > 0 && part > 0 && type.getDimSize(0) % part == 0;
    if (!fits || (split && (split.dim == 0 ? split.part != part : split.part % 64 != 0)))
      return fail(function, "has a '" + kTilesAttr + "' that does not fit argument " + Twine(number));
    tensors[argument] = addTiles(name, type, part, split, inBands ? &ddr : nullptr);
    if (inBands)
      arriving[tensors[argument].address.buffer] = {
          number, ddr, (tensors[argument].shape[0] + 63) / 64 * 64 * tensors[argument].strides[0]};
    return Status::ok();
  }
  std::optional<SmallVector<unsigned>> order = orderOfDims(function, number, type.getRank());
  if (!order)
    return fail(function, "has a '" + kOrderAttr + "' of argument " + Twine(number) + " that is no order of its dims");
  auto buffer = dyn_cast<MemRefType>(argument.getType());
  if (!buffer || buffer.getShape() != ArrayRef(shareOf(type.getShape(), split)))
    return fail(function, "has a '" + kTypeAttr + "' of argument " + Twine(number) + " that is not its shape");
  const bool isLate = quads > 1 && !split && isValuesOfBands(argument);
  tensors[argument] =
      isLate ? addLateInput(name, type, *order) : addInput(name, type, *order, split, inBands ? &ddr : nullptr);
  if (inBands && !isLate)
    arriving[tensors[argument].address.buffer] = {number, ddr,
                                                  tensors[argument].elements() * tensors[argument].elementSize()};
  return Status::ok();
}

Status StageWriter::addConstant(BlockArgument argument, RankedTensorType type, DictionaryAttr form) {
  const unsigned number = argument.getArgNumber();
  const std::string &name = node;
  auto packing = form.getAs<StringAttr>("form");
  auto size = form.getAs<IntegerAttr>("size");
  const bool isTiles = packing && packing.getValue() == forms::kTiles;
  if (!packing || !size || size.getInt() < 0 || (isTiles && !corsair::TileForm::parse(form, machine)))
    return fail(function, "has a '" + kFormAttr + "' of argument " + Twine(number) + " that is no packed form");
  if (isTiles)
    weights[argument] = addPackedConstant(name, form);
  else if (packing.getValue() == forms::kBias)
    tensors[argument] = addPlainConstant(name, hw::ElemKind::Bfp32, size.getInt() / 4, /*inDdr=*/false);
  else
    tensors[argument] = addPlainConstant(name, *deviceKind(type.getElementType()), type.getShape(),
                                         static_cast<bool>(function.getArgAttr(number, kTableAttr)));
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

static std::optional<hw::ElemKind> kindOf(Type element) {
  if (auto tile = dyn_cast<VecExtType>(element))
    return dmir::isBfp32(tile.getElementType()) ? std::optional(hw::ElemKind::Bfp32) : std::nullopt;
  return element.isF32() ? std::optional(hw::ElemKind::F32) : deviceKind(element); // f32: sums that go on
}

Result<DeviceTensor> StageWriter::tensorOf(Operation *user, Value memref) {
  Value value = memref;
  if (Value given = outside(value))
    value = given;
  if (auto found = tensors.find(value); found != tensors.end())
    return found->second;
  auto type = cast<MemRefType>(value.getType());
  std::optional<hw::ElemKind> kind = kindOf(type.getElementType());
  if (!value.getDefiningOp<memref::AllocOp>() || !kind)
    return fail(user, "reads or writes a buffer that nothing makes").takeError();
  DeviceTensor &tensor = tensors[value] = allocate(type.getShape(), *kind, layoutOf(type).order());
  for (auto [stride, elements] : llvm::zip(tensor.strides, layoutOf(type).strides))
    stride = elements * tensor.elementSize();
  return tensor;
}

Result<DeviceTensor> StageWriter::returned(Value value) {
  if (auto found = tensors.find(value); found != tensors.end())
    return found->second;
  Operation *op = value.getDefiningOp();
  if (cast<MemRefType>(value.getType()).getNumElements() == 0 && isa_and_present<memref::AllocOp>(op))
    return tensorOf(op, value); // there is nothing to fill
  if (!isBufferView(op))
    return fail(function, "returns what its kernel does not fill").takeError();
  if (auto cast = dyn_cast<memref::ReinterpretCastOp>(op))
    return recast(cast);
  Result<DeviceTensor> source = returned(op->getOperand(0));
  return source ? viewOf(op, *source) : std::move(source);
}

std::optional<StageWriter::Index> StageWriter::indexOf(OpFoldResult given) const {
  Index index;
  index.trips.assign(batch.size(), 0);
  if (std::optional<int64_t> constant = getConstantIntValue(given)) {
    index.first = *constant;
    return index;
  }
  auto value = cast<Value>(given);
  if (value.getDefiningOp<gpu::ThreadIdOp>()) {
    index.quad = 1;
    return index;
  }
  for (auto [trips, loop] : llvm::zip(index.trips, batch))
    if (value == affine::AffineForOp(loop).getInductionVar()) {
      trips = 1;
      return index;
    }
  auto apply = value.getDefiningOp<affine::AffineApplyOp>();
  SmallVector<int64_t> factors; // of the operands, then the constant
  if (!apply ||
      failed(getFlattenedAffineExpr(apply.getAffineMap().getResult(0), apply.getAffineMap().getNumDims(),
                                    apply.getAffineMap().getNumSymbols(), &factors)) ||
      factors.size() != apply.getMapOperands().size() + 1)
    return std::nullopt;
  index.first = factors.back();
  for (auto [factor, operand] : llvm::zip(factors, apply.getMapOperands())) {
    std::optional<Index> part = indexOf(operand);
    if (!part)
      return std::nullopt;
    index.first += factor * part->first, index.quad += factor * part->quad;
    for (auto [sum, trips] : llvm::zip(index.trips, part->trips))
      sum += factor * trips;
  }
  return index;
}

Status StageWriter::view(Operation *op) {
  Value source = op->getOperand(0), made = op->getResult(0);
  if (Value given = outside(source); given && weights.contains(given)) {
    weights[made] = weights.lookup(given); // each quad has its tiles at the same place
    return Status::ok();
  }
  node = dmir::nodeName(op); // of the op that a view is made for
  writer.loc = op->getLoc();
  Result<DeviceTensor> from = tensorOf(op, source);
  if (!from)
    return from.takeError();
  auto cast = dyn_cast<memref::ReinterpretCastOp>(op);
  Result<DeviceTensor> tensor = cast ? recast(cast) : viewOf(op, *from);
  if (!tensor)
    return tensor.takeError();
  tensors[made] = *tensor;
  return Status::ok();
}

Result<DeviceTensor> StageWriter::viewOf(Operation *op, DeviceTensor tensor) {
  if (static_cast<int64_t>(tensor.rank()) != cast<MemRefType>(op->getOperand(0).getType()).getRank())
    return fail(op, "looks at a buffer of another rank than it has").takeError();
  if (auto transpose = dyn_cast<memref::TransposeOp>(op)) {
    SmallVector<int64_t> permutation;
    for (unsigned dim = 0; dim < tensor.rank(); ++dim)
      permutation.push_back(transpose.getPermutation().getDimPosition(dim));
    tensor = tensor.transposed(permutation);
  }
  auto cut = dyn_cast<memref::SubViewOp>(op);
  if (!cut) { // a grid of tiles, or a transpose
    trips[op->getResult(0)] = trips.lookup(op->getOperand(0));
    return tensor;
  }
  auto type = cast<MemRefType>(cut.getSource().getType());
  const int64_t unit = tensor.kind == hw::ElemKind::Bfp16R ? 64 : 1; // a grid's indices are those of tiles
  SmallVector<int64_t> &steps = trips[cut.getResult()] = trips.lookup(cut.getSource());
  steps.resize(batch.size(), 0);
  for (auto [dim, offset, size, step] :
       llvm::enumerate(cut.getMixedOffsets(), cut.getMixedSizes(), cut.getMixedStrides())) {
    std::optional<Index> at = indexOf(offset);
    std::optional<int64_t> extent = getConstantIntValue(size), every = getConstantIntValue(step);
    bool known = at && extent && every && *extent > 0 && at->quad >= 0;
    int64_t moved = known ? at->quad * (quads - 1) : 0;
    for (size_t i = 0; known && i < batch.size(); ++i) {
      known = at->trips[i] >= 0;
      moved += at->trips[i] * (affine::AffineForOp(batch[i]).getConstantUpperBound() - 1);
    }
    const int64_t last = known ? at->first + (*extent - 1) * *every : 0;
    if (!known || std::min(at->first, last) < 0 || std::max(at->first, last) + moved >= type.getDimSize(dim))
      return fail(op, "is no part of its buffer").takeError();
    const int64_t stride = unit * tensor.strides[dim];
    if (*extent != type.getDimSize(dim))
      tensor.shape[dim] = *extent * unit;
    tensor.strides[dim] *= *every;
    tensor.address = tensor.address.plus(at->first * stride).plusQuad(at->quad * stride);
    for (auto [sum, count] : llvm::zip(steps, at->trips))
      sum += count * stride;
  }
  const llvm::SmallBitVector dropped = cut.getDroppedDims();
  for (size_t dim = tensor.rank(); dim-- > 0;)
    if (dropped.test(dim)) {
      tensor.shape.erase(tensor.shape.begin() + dim);
      tensor.strides.erase(tensor.strides.begin() + dim);
    }
  return tensor;
}

Result<DeviceTensor> StageWriter::recast(memref::ReinterpretCastOp op) {
  Value root = op.getSource();
  while (isBufferView(root.getDefiningOp()))
    root = root.getDefiningOp()->getOperand(0);
  Result<DeviceTensor> whole = tensorOf(op, root);
  if (!whole)
    return whole;
  DeviceTensor tensor = *whole;
  const int64_t elements = tensor.elements();
  const DeviceTensor layout = layoutOf(op.getType());
  int64_t last = layout.address.offset;
  if (layout.elements() == 0 && elements == 0) {
    tensor.shape = layout.shape, tensor.strides.assign(layout.rank(), 0);
    return tensor;
  }
  // Strides may be negative (of what is turned around), and that of one element is never taken: it may be anything.
  constexpr int64_t kWidest = int64_t(1) << 40; // whose bytes are a number still
  int64_t first = last;
  bool fits = last >= 0 && last < elements && layout.elements() > 0 && tensor.kind != hw::ElemKind::Bfp16R;
  for (auto [extent, stride] : llvm::zip(layout.shape, layout.strides)) {
    fits &= std::abs(stride) <= (extent == 1 ? kWidest : elements);
    if (fits)
      (stride < 0 ? first : last) += (extent - 1) * stride;
  }
  if (!fits || first < 0 || last >= elements)
    return fail(op, "is no view of its buffer").takeError();
  tensor.shape = layout.shape, tensor.strides = layout.strides;
  for (int64_t &stride : tensor.strides)
    stride *= tensor.elementSize();
  tensor.address = tensor.address.plus(layout.address.offset * tensor.elementSize());
  return tensor;
}

Status StageWriter::lower(Operation *op) {
  if (auto load = dyn_cast<affine::AffineLoadOp>(op); load && isOfNestBehind(load))
    return Status::ok();
  const bool mayGoOn =
      isa<affine::AffineForOp, memref::AllocOp, affine::AffineApplyOp, affine_ext::TilesOp>(op) || isBufferView(op);
  if (!mayGoOn || (isa<affine::AffineForOp>(op) && !hasBands(op)))
    finishBands();
  if (!mayGoOn)
    for (Value operand : op->getOperands())
      if (Status s = checkFilled(op, operand); !s)
        return s;
  if (Status s = checkWritten(op); !s)
    return s;
  return llvm::TypeSwitch<Operation *, Status>(op)
      .Case<gpu::ThreadIdOp, gpu::BarrierOp, memref::AllocOp, affine::AffineApplyOp, arith::ConstantOp>(
          [](auto) { return Status::ok(); }) // places come with the first use, a barrier with what is sent
      .Case<memref::SubViewOp, memref::ReinterpretCastOp, memref::TransposeOp, affine_ext::TilesOp>(
          [&](auto) { return view(op); })
      .Case([&](affine::AffineForOp loop) { return product(loop); })
      .Case([&](affine::AffineIfOp condition) { return taken(condition); })
      .Case([&](lldmir::SimdOp) { return vectorOp(op); })
      .Case([&](lldmir::ReshapeOp reshape) { return move(reshape); })
      .Case([&](lldmir::SumOp sum) { return addUp(sum); })
      .Case([&](lldmir::ConvOp conv) { return convolve(conv); })
      .Case([&](lldmir::ExternOp user) { return userKernel(user); })
      .Case([&](lldmir::GatherOp gather) -> Status {
        if (!isa_and_present<gpu::BarrierOp>(op->getNextNode()))
          return fail(op, "needs a gpu.barrier behind it: what one quad sends the others read");
        task(op);
        std::vector<Shares> all;
        for (auto [part, out, deal] : llvm::zip(gather.getParts(), gather.getOuts(), gather.getDeals())) {
          Result<DeviceTensor> share = tensorOf(op, part), whole = tensorOf(op, out);
          for (Result<DeviceTensor> *each : {&share, &whole})
            if (!*each)
              return each->takeError();
          const Split split = splitOf(cast<lldmir::DealAttr>(deal), whole->shape, quads);
          if (!split || share->kind != whole->kind || whole->local(split).shape != share->shape)
            return fail(op, "gathers a buffer that is not dealt so");
          all.push_back({*share, *whole, split});
        }
        exchange(all);
        return Status::ok();
      })
      .Default([&](Operation *other) { return fail(other, "is made by no stage, and has no tasks"); });
}
