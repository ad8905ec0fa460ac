//===- StageWriter.cpp - a kernel over quads to tasks ---------------------===//
//
// A buffer's type says what a DeviceTensor is. Loops over tiles are one product, whose order of rows and columns is
// that of the loops; an op on whole buffers is one of the vector device.
//
//===----------------------------------------------------------------------===//
#include "StageWriter.h"
#include "KernelFunctions.h"
#include "Views.h"

#include "dmxc/Dialect/DMIR/BlockFp.h"
#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"
#include "targets/corsair/emit/KernelLowering.h"

#include "schemas/corsair/SimdFunctions.h"

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
    return modelError("kernel '" + name + "' is no function that the stages of the device made");
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
  const bool multiplies = kernel.walk([](lldmir::MatMulOp) { return WalkResult::interrupt(); }).wasInterrupted();
  if (Status s = begin(multiplies); !s)
    return s;
  SmallVector<int> inputs;
  for (BlockArgument argument : function.getArguments()) {
    if (Status s = addArgument(argument); !s)
      return s;
    if (!tensors.lookup(argument).split)
      inputs.push_back(tensors.lookup(argument).address.buffer);
  }
  meetAfterInputs(inputs);
  for (Operation &op : kernel.getBody().front().without_terminator())
    if (Status s = lower(&op); !s)
      return s;
  unsigned index = 0;
  for (Value value : function.getBody().front().getTerminator()->getOperands()) {
    Result<DeviceTensor> found = returned(value);
    auto type = function.getResultAttrOfType<TypeAttr>(index, kTypeAttr);
    if (!found)
      return found.takeError();
    if (!type)
      return fail(function, "has no host's type of result " + Twine(index));
    DeviceTensor tensor = *found;
    tensor.split = {};
    if (auto deal = function.getResultAttrOfType<lldmir::DealAttr>(index, lldmir::kDealAttr)) {
      tensor.split = splitOf(deal, tensor.shape);
      if (!tensor.split)
        return fail(function, "has a '" + lldmir::kDealAttr + "' of result " + Twine(index) + " that gives no parts");
    }
    storeResult(tensor, type.getValue(), index++);
  }
  return Status::ok();
}

Split StageWriter::splitOf(lldmir::DealAttr deal, ArrayRef<int64_t> shape) const {
  const int64_t dim = deal.getDim();
  if (dim < 0 || dim >= static_cast<int64_t>(shape.size()) || deal.getQuads() != quads || quads < 2 || !shape[dim] ||
      shape[dim] % quads)
    return {};
  return {static_cast<int>(dim), shape[dim] / quads};
}

Status StageWriter::addArgument(BlockArgument argument) {
  const unsigned number = argument.getArgNumber();
  const std::string name = node = "arg" + std::to_string(number);
  auto given = function.getArgAttrOfType<TypeAttr>(number, kTypeAttr);
  auto type = given ? dyn_cast<RankedTensorType>(given.getValue()) : RankedTensorType();
  if (!type)
    return fail(function, "has no host's type of argument " + Twine(number));
  auto form = function.getArgAttrOfType<DictionaryAttr>(number, kFormAttr);
  if (!type.hasStaticShape() || !deviceKind(type.getElementType()))
    return fail(function, "has a host's type of argument " + Twine(number) + " that the device has no numbers of");
  if (!form) {
    Split split;
    if (auto deal = function.getArgAttrOfType<lldmir::DealAttr>(number, lldmir::kDealAttr))
      split = splitOf(deal, type.getShape());
    if (function.getArgAttr(number, lldmir::kDealAttr) && !split)
      return fail(function, "has a '" + lldmir::kDealAttr + "' of argument " + Twine(number) + " that gives no parts");
    if (auto rows = function.getArgAttrOfType<IntegerAttr>(number, kTilesAttr)) {
      const int64_t part = rows.getInt();
      const bool fits = type.getRank() == 2 && type.getNumElements() > 0 && part > 0 && type.getDimSize(0) % part == 0;
      if (!fits || (split && (split.dim == 0 ? split.part != part : split.part % 64 != 0)))
        return fail(function, "has a '" + kTilesAttr + "' that does not fit argument " + Twine(number));
      tensors[argument] = addTiles(name, type, part, split);
      return Status::ok();
    }
    tensors[argument] = addInput(name, type, rowMajor(type.getRank()), split);
    return Status::ok();
  }
  auto packing = form.getAs<StringAttr>("form");
  auto size = form.getAs<IntegerAttr>("size");
  const bool isTiles = packing && packing.getValue() == forms::kTiles;
  if (!packing || !size || size.getInt() < 0 || (isTiles && !TileForm::parse(form, machine)))
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
  return deviceKind(element);
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
  return tensors[value] = allocate(type.getShape(), *kind, layoutOf(type).order());
}

Result<DeviceTensor> StageWriter::returned(Value value) {
  if (auto found = tensors.find(value); found != tensors.end())
    return found->second;
  Operation *op = value.getDefiningOp();
  if (!isBufferView(op))
    return fail(function, "returns what its kernel does not fill").takeError();
  if (auto cast = dyn_cast<memref::ReinterpretCastOp>(op))
    return recast(cast);
  Result<DeviceTensor> source = returned(op->getOperand(0));
  return source ? viewOf(op, *source) : std::move(source);
}

/// The number of the quad times this; nullopt for another offset.
static std::optional<std::pair<int64_t, int64_t>> offsetOf(OpFoldResult offset) {
  if (std::optional<int64_t> constant = getConstantIntValue(offset))
    return std::pair(*constant, int64_t(0));
  Value value = cast<Value>(offset);
  auto apply = value.getDefiningOp<affine::AffineApplyOp>();
  AffineExpr expr = apply ? apply.getAffineMap().getResult(0) : AffineExpr();
  if (!apply || apply.getMapOperands().size() != 1 || !apply.getMapOperands()[0].getDefiningOp<gpu::ThreadIdOp>())
    return value.getDefiningOp<gpu::ThreadIdOp>() ? std::optional(std::pair(int64_t(0), int64_t(1))) : std::nullopt;
  auto at = [&](int64_t quad) {
    MLIRContext *context = expr.getContext();
    AffineExpr number = getAffineConstantExpr(quad, context);
    return cast<AffineConstantExpr>(simplifyAffineExpr(expr.replaceDimsAndSymbols(number, number), 0, 0)).getValue();
  };
  return std::pair(at(0), at(1) - at(0));
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
  if (auto transpose = dyn_cast<memref::TransposeOp>(op)) {
    const DeviceTensor before = tensor;
    for (unsigned dim = 0; dim < before.rank(); ++dim) {
      const unsigned from = transpose.getPermutation().getDimPosition(dim);
      tensor.shape[dim] = before.shape[from], tensor.strides[dim] = before.strides[from];
    }
  }
  auto cut = dyn_cast<memref::SubViewOp>(op);
  if (!cut)
    return tensor; // a grid of tiles
  auto type = cast<MemRefType>(cut.getSource().getType());
  if (type.getRank() != cut.getType().getRank())
    return fail(op, "drops dims of its buffer").takeError();
  const int64_t unit = tensor.kind == hw::ElemKind::Bfp16R ? 64 : 1; // a grid's indices are those of tiles
  for (auto [dim, offset, size, step] :
       llvm::enumerate(cut.getMixedOffsets(), cut.getMixedSizes(), cut.getMixedStrides())) {
    std::optional<std::pair<int64_t, int64_t>> at = offsetOf(offset);
    std::optional<int64_t> extent = getConstantIntValue(size), every = getConstantIntValue(step);
    const bool known = at && extent && every && at->second >= 0;
    const int64_t last = known ? at->first + (*extent - 1) * *every : 0, moved = known ? at->second * (quads - 1) : 0;
    if (!known || *extent < 1 || std::min(at->first, last) < 0 ||
        std::max(at->first, last) + moved >= type.getDimSize(dim))
      return fail(op, "is no part of its buffer").takeError();
    const int64_t stride = unit * tensor.strides[dim];
    if (*extent != type.getDimSize(dim))
      tensor.shape[dim] = *extent * unit;
    tensor.strides[dim] *= *every;
    tensor.address = tensor.address.plus(at->first * stride).plusQuad(at->second * stride);
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
  bool fits = last >= 0 && layout.elements() > 0 && tensor.kind != hw::ElemKind::Bfp16R;
  for (auto [extent, stride] : llvm::zip(layout.shape, layout.strides)) {
    fits &= stride >= 0 && stride <= elements;
    last += fits ? (extent - 1) * stride : 0;
  }
  if (!fits || last >= elements)
    return fail(op, "is no view of its buffer").takeError();
  tensor.shape = layout.shape, tensor.strides = layout.strides;
  for (int64_t &stride : tensor.strides)
    stride *= tensor.elementSize();
  tensor.address = tensor.address.plus(layout.address.offset * tensor.elementSize());
  return tensor;
}

Status StageWriter::lower(Operation *op) {
  return llvm::TypeSwitch<Operation *, Status>(op)
      .Case<gpu::ThreadIdOp, gpu::BarrierOp, memref::AllocOp, affine::AffineApplyOp, arith::ConstantOp>(
          [](auto) { return Status::ok(); }) // places come with the first use, a barrier with what is sent
      .Case<memref::SubViewOp, memref::ReinterpretCastOp, memref::TransposeOp, affine_ext::TilesOp>(
          [&](auto) { return view(op); })
      .Case([&](affine::AffineForOp loop) { return product(loop); })
      .Case([&](lldmir::SimdOp) { return vectorOp(op); })
      .Case([&](lldmir::ReshapeOp reshape) { return gatherRows(reshape); })
      .Case([&](lldmir::GatherOp gather) -> Status {
        if (!isa_and_present<gpu::BarrierOp>(op->getNextNode()))
          return fail(op, "needs a gpu.barrier behind it: what one quad sends the others read");
        task(op);
        SmallVector<DeviceTensor> parts;
        for (auto [part, deal] : llvm::zip(gather.getParts(), gather.getDeals())) {
          Result<DeviceTensor> tensor = tensorOf(op, part);
          auto attribute = dyn_cast<lldmir::DealAttr>(deal);
          if (!tensor)
            return tensor.takeError();
          tensor->split = attribute ? splitOf(attribute, tensor->shape) : Split();
          if (!tensor->split)
            return fail(op, "gathers a buffer that is not dealt so");
          parts.push_back(*tensor);
        }
        SmallVector<DeviceTensor *> pointers;
        for (DeviceTensor &part : parts)
          pointers.push_back(&part);
        exchange(pointers);
        return Status::ok();
      })
      .Default([&](Operation *other) { return fail(other, "is made by no stage, and has no tasks"); });
}

//===----------------------------------------------------------------------===//
// The vector device
//===----------------------------------------------------------------------===//

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

Status StageWriter::gatherRows(lldmir::ReshapeOp op) {
  task(op);
  auto all = operandsOf(op, op.getInputs(), op.getOuts());
  if (!all)
    return all.takeError();
  auto axis = op.getParametersAttr() ? op.getParametersAttr().getAs<IntegerAttr>("axis") : IntegerAttr();
  if (op.getFunction() != lldmir::kGatherRows || all->size() != 3 || !axis)
    return fail(op, "names no movement that the reshape engine has");
  const DeviceTensor &data = (*all)[0], &indices = (*all)[1], &to = (*all)[2];
  const auto rank = static_cast<int64_t>(data.rank());
  const bool isInteger = indices.kind == hw::ElemKind::I64 || indices.kind == hw::ElemKind::I32;
  if (axis.getInt() < 0 || axis.getInt() >= rank || !isInteger || data.kind != to.kind || !data.shape[axis.getInt()] ||
      data.elements() / data.shape[axis.getInt()] * indices.elements() != to.elements())
    return fail(op, "gathers other rows than its result has");
  for (const DeviceTensor *dense : {&data, &indices, &to})
    if (!dense->isDense() || dense->order() != rowMajor(dense->rank()))
      return fail(op, "needs buffers that lie row by row");
  KernelWriter::gatherRows(data, indices, to, axis.getInt());
  return Status::ok();
}

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
    copyInto(inputs[0], out, {});
    return Status::ok();
  }
  // The function is the DMIR op's: what it is asked of the op with these attributes.
  OperationState state(op->getLoc(), ("dmir." + simd.getFunction()).str());
  state.addAttributes(parameters ? parameters.getValue() : ArrayRef<NamedAttribute>());
  std::optional<RegisteredOperationName> known =
      RegisteredOperationName::lookup(state.name.getStringRef(), op->getContext());
  if (!known)
    return fail(op, "names the function '" + simd.getFunction() + "', which the vector device does not have");
  Type unknown = RankedTensorType::get({}, builder.getF16Type());
  state.addTypes(unknown);
  OwningOpRef<Operation *> named = Operation::create(state);
  if (std::optional<RowsOp> rowsOf = rowsOp(named.get())) {
    if (inputs.size() != 1)
      return fail(op, "takes one buffer of rows");
    const int64_t rank = static_cast<int64_t>(inputs[0].rank());
    if (llvm::any_of(rowsOf->axes, [&](int64_t axis) { return axis < 0 || axis >= rank; }))
      return fail(op, "has rows along dims that its buffer does not have");
    rows(rowsOf->function, inputs[0], out, rowsOf->axes, rowsOf->imm0, {});
    return Status::ok();
  }
  std::optional<hw::SimdFunction> function = elementwiseFunction(named.get());
  if (!function)
    return fail(op, "names the function '" + simd.getFunction() + "', which the vector device does not have");
  map(*function, out, inputs, {});
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

namespace {

/// Loops over the tiles of one product, read.
struct ProductNest {
  affine::AffineForOp outer, inner;
  affine::AffineStoreOp store;
  SmallVector<lldmir::MatMulOp> chain; ///< in the order in which they are added
  affine::AffineLoadOp bias;
  bool columnsOutside = false;
  std::string problem;

  bool read(affine::AffineForOp loop) {
    outer = loop;
    for (Operation &op : *loop.getBody())
      if (auto found = dyn_cast<affine::AffineForOp>(op))
        inner = found;
      else if (!isa<affine::AffineYieldOp>(op))
        return refuse("'" + op.getName().getStringRef().str() + "' stands between its loops");
    if (!inner)
      return refuse("its loops are not two");
    for (Operation &op : *inner.getBody())
      if (auto found = dyn_cast<affine::AffineStoreOp>(op)) {
        if (store)
          return refuse("it stores two tiles");
        store = found;
      } else if (!isa<affine::AffineLoadOp, lldmir::MatMulOp, lldmir::SimdOp, affine::AffineYieldOp>(op)) {
        return refuse("'" + op.getName().getStringRef().str() + "' is not known in it");
      }
    return store ? readStore() && readChain() : refuse("it stores no tile");
  }

private:
  bool refuse(const std::string &why) {
    problem = why;
    return false;
  }

  /// 0: a constant index, 1: the outer loop's, 2: the inner loop's; -1: another.
  int counterOf(AffineMap map, ValueRange operands, unsigned position) {
    AffineExpr expr = map.getResult(position);
    if (auto constant = dyn_cast<AffineConstantExpr>(expr))
      return constant.getValue() == 0 ? 0 : -1;
    auto dim = dyn_cast<AffineDimExpr>(expr);
    Value counter = dim ? operands[dim.getPosition()] : Value();
    return counter == outer.getInductionVar() ? 1 : counter && counter == inner.getInductionVar() ? 2 : -1;
  }

  bool runsOver(int counter, int64_t extent) {
    if (counter == 0)
      return extent == 1;
    affine::AffineForOp loop = counter == 1 ? outer : inner;
    return loop.hasConstantBounds() && loop.getConstantLowerBound() == 0 && loop.getStepAsInt() == 1 &&
           loop.getConstantUpperBound() == extent;
  }

  bool readStore() {
    MemRefType grid = store.getMemRefType();
    if (grid.getRank() != 2)
      return refuse("its result is no grid");
    row = counterOf(store.getAffineMap(), store.getMapOperands(), 0);
    column = counterOf(store.getAffineMap(), store.getMapOperands(), 1);
    if (row < 0 || column < 0 || row == column || !runsOver(row, grid.getDimSize(0)) ||
        !runsOver(column, grid.getDimSize(1)))
      return refuse("its loops do not run over the tiles of its result");
    columnsOutside = column == 1;
    return true;
  }

  bool readChain() {
    Value tile = store.getValueToStore();
    auto unit = tile.getDefiningOp<lldmir::SimdOp>();
    if (unit && unit.getFunction() == "cast" && unit.getInputs().size() == 1) {
      tile = unit.getInputs()[0];
      unit = tile.getDefiningOp<lldmir::SimdOp>();
    }
    if (unit) {
      if (unit.getFunction() != "add" || unit.getInputs().size() != 2)
        return refuse("\"" + unit.getFunction().str() + "\" of a tile has no task");
      tile = unit.getInputs()[0];
      bias = unit.getInputs()[1].getDefiningOp<affine::AffineLoadOp>();
      if (!bias || bias.getMemRefType().getRank() != 1 ||
          counterOf(bias.getAffineMap(), bias.getMapOperands(), 0) != column)
        return refuse("what is added to a tile is no bias of its columns");
    }
    for (auto product = tile.getDefiningOp<lldmir::MatMulOp>(); product;
         product = product.getInit() ? product.getInit().getDefiningOp<lldmir::MatMulOp>() : lldmir::MatMulOp())
      chain.insert(chain.begin(), product);
    if (chain.empty())
      return refuse("what it stores is no product");
    int64_t k = 0;
    for (lldmir::MatMulOp product : chain)
      for (auto [a, w] : llvm::zip(product.getActivations(), product.getWeights())) {
        if (!reads(a, row, k, true) || !reads(w, column, k, false))
          return refuse("tile " + std::to_string(k) + " along K is not loaded in order");
        ++k;
      }
    return k == kTiles ? true : refuse("it multiplies other tiles along K than its operands have");
  }

  /// Whether a tile is number k along K of the operand's row or column.
  bool reads(Value tile, int counter, int64_t k, bool isLeft) {
    if (auto cast = tile.getDefiningOp<lldmir::SimdOp>(); cast && cast.getFunction() == "cast" && isLeft)
      tile = cast.getInputs()[0];
    auto load = tile.getDefiningOp<affine::AffineLoadOp>();
    if (!load || load.getMemRefType().getRank() != 2)
      return false;
    Value &operand = isLeft ? left : right;
    operand = operand ? operand : load.getMemRef();
    kTiles = load.getMemRefType().getDimSize(isLeft ? 1 : 0);
    auto along = dyn_cast<AffineConstantExpr>(load.getAffineMap().getResult(isLeft ? 1 : 0));
    const int across = counterOf(load.getAffineMap(), load.getMapOperands(), isLeft ? 0 : 1);
    const int64_t extent = load.getMemRefType().getDimSize(isLeft ? 0 : 1);
    return load.getMemRef() == operand && along && along.getValue() == k && (across == counter || extent == 1);
  }

  int row = 0, column = 0;
  int64_t kTiles = 0;

public:
  Value left, right; ///< grids
};

} // namespace

Status StageWriter::product(affine::AffineForOp loop) {
  ProductNest nest;
  if (!nest.read(loop))
    return fail(loop, "is no product that the arrays compute: " + nest.problem);
  task(loop);
  auto plan = nest.chain.front()->getAttrOfType<lldmir::PlanAttr>(lldmir::kPlanAttr);
  Result<DeviceTensor> a = tensorOf(loop, nest.left), out = tensorOf(loop, nest.store.getMemRef());
  Value packed = outside(nest.right) ? outside(nest.right) : nest.right;
  auto tiles = weights.find(packed);
  if (!a)
    return a.takeError();
  if (!out)
    return out.takeError();
  if (tiles == weights.end() || a->rank() != 2 || out->rank() != 2 || !plan)
    return fail(loop, "is no product of a matrix by packed weights with a plan");
  const TileForm &form = tiles->second.form;
  ProductDims dims;
  dims.m = out->shape[0], dims.n = out->shape[1], dims.k = a->shape[1], dims.kChunks = (dims.k + 63) / 64;
  if (a->kind == hw::ElemKind::Bfp16R && (a->shape[0] + 63) / 64 == (dims.m + 63) / 64)
    a->shape[0] = dims.m; // tiles of a part, the last of them ragged
  if (std::optional<std::string> why = unfit(plan, dims, machine))
    return fail(loop, "has the plan of a product that no slice computes: " + *why);
  MatmulPlan chosen = MatmulPlan::read(plan, dims);
  chosen.columnsOutside = nest.columnsOutside;
  const TileForm wanted = TileForm::of(chosen);
  if (dims.m != a->shape[0] || form.n != dims.n || form.kChunks != dims.kChunks || form.rounds != wanted.rounds ||
      form.slices != wanted.slices || form.groups != wanted.groups)
    return fail(loop, "does not fit the packed form of its weights");
  for (lldmir::MatMulOp product : nest.chain)
    if (static_cast<int64_t>(product.getPprMode()) != plan.getPprMode() ||
        (static_cast<int64_t>(product.getNumImc()) != plan.getNumImc() && product != nest.chain.back()))
      return fail(product, "has another num_imc or ppr_mode than its plan");
  MatmulShape shape(writtenOut(*a, 1), *out);
  shape.operands.st = residentTiles(tiles->second);
  if (nest.bias) {
    Result<DeviceTensor> vector = tensorOf(loop, nest.bias.getMemRef());
    if (!vector)
      return vector.takeError();
    shape.operands.bias = vector->address;
  }
  multiplyAll(chosen, shape);
  return Status::ok();
}
