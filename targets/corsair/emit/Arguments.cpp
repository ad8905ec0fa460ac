//===- Arguments.cpp - between the host's buffers and GM ------------------===//

#include "Constants.h"
#include "KernelLowering.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;
using hw::ConfigKey;

static std::optional<hw::HostType> hostType(Type element) {
  std::optional<DType> dtype = dmir::dtypeOf(element);
  return dtype ? hw::hostTypeFromName(dtypeName(*dtype)) : std::nullopt;
}

int KernelLowering::addDdr(int64_t bytes) { return buffers.add(hw::Memory::DDR, bytes, /*permanent=*/true); }

/// A linear copy of everything between two buffers.
void KernelLowering::copyBytes(Program &program, Queue queue, const std::string &task, hw::Memory source, Address from,
                               hw::Memory target, Address to, int64_t bytes) {
  program.task(task);
  QueueCode &code = program.on(queue);
  int slot = code.config(hw::Unit::GM, {{ConfigKey::Unit, bytes}});
  hw::Instruction &move = code.emit(hw::Opcode::Move);
  move.set("src", static_cast<int64_t>(source)).set("dst", static_cast<int64_t>(target)).set("slot", slot);
  code.address("saddr", from);
  code.address("daddr", to);
}

/// Channels last for what convolutions read.
static SmallVector<unsigned> preferredOrder(Value value, size_t rank) {
  SmallVector<unsigned> order;
  bool image = rank == 4 && llvm::any_of(value.getUsers(), [&](Operation *user) {
                 return isa<dmir::ConvOp, dmir::PoolOp>(user) && user->getOperand(0) == value;
               });
  for (unsigned i = 0; i < rank; ++i)
    order.push_back(i);
  if (image)
    order = {0, 2, 3, 1};
  return order;
}

/// The piece that a dense tensor in this order is, all of it on the first chiplet.
static hw::Piece wholePiece(const DeviceTensor &tensor, ArrayRef<unsigned> order) {
  hw::Piece piece;
  for (unsigned dim : order) {
    piece.begin.push_back(0);
    piece.extent.push_back(tensor.shape[dim]);
    piece.strides.push_back(tensor.strides[dim]);
  }
  return piece;
}

Status KernelLowering::addArgument(BlockArgument argument, DictionaryAttr form) {
  auto type = cast<RankedTensorType>(argument.getType());
  hw::Argument record;
  record.name = "arg" + std::to_string(argument.getArgNumber());
  if (form) {
    if (form.getAs<StringAttr>("form").getValue() == forms::kTiles)
      addPackedConstant(argument, form, record);
    else
      addPlainConstant(argument, record);
    return Status::ok();
  }
  record.role = hw::Role::Input;
  record.type = *hostType(type.getElementType());
  record.shape.assign(type.getShape().begin(), type.getShape().end());
  record.form = *deviceKind(type.getElementType());
  SmallVector<unsigned> order = preferredOrder(argument, record.shape.size());
  for (unsigned dim : order)
    record.perm.push_back(static_cast<uint8_t>(dim));
  DeviceTensor tensor = allocate(type.getShape(), record.form, order);
  record.pieces.push_back(wholePiece(tensor, order));
  int64_t bytes = tensor.elements() * tensor.elementSize();
  if (bytes) {
    int ddr = addDdr(bytes);
    pieceBuffers.push_back({static_cast<int>(kernel.arguments.size()), 0, ddr});
    copyBytes(main, Queue::Load, record.name, hw::Memory::DDR, {ddr, 0, {}}, hw::Memory::GM, tensor.address, bytes);
  }
  kernel.arguments.push_back(std::move(record));
  values[argument] = tensor;
  return Status::ok();
}

/// Nothing but rows of it are read: they are fetched from DDR, where the table may be larger than GM.
static bool isTable(BlockArgument argument) {
  return llvm::all_of(argument.getUses(), [](OpOperand &use) {
    auto gather = dyn_cast<dmir::GatherOp>(use.getOwner());
    return gather && gather.getData() == use.get() && gather.getIndices() != use.get();
  });
}

void KernelLowering::addPlainConstant(BlockArgument argument, hw::Argument &record) {
  auto type = cast<RankedTensorType>(argument.getType());
  DeviceTensor tensor{*deviceKind(type.getElementType()), SmallVector<int64_t>(type.getShape()), {}, {}};
  SmallVector<unsigned> order;
  for (unsigned i = 0; i < tensor.rank(); ++i)
    order.push_back(i);
  tensor.strides = denseStrides(tensor.shape, order, tensor.elementSize());
  int64_t bytes = tensor.elements() * tensor.elementSize();
  int ddr = addDdr(bytes);
  record.role = hw::Role::Const;
  record.type = hw::HostType::U8;
  record.shape = {bytes};
  record.form = tensor.kind;
  record.pieces.push_back({hw::Memory::DDR, 0, 0, {0}, {bytes}, {}});
  pieceBuffers.push_back({static_cast<int>(kernel.arguments.size()), 0, ddr});
  if (isTable(argument)) {
    tensor.memory = hw::Memory::DDR;
    tensor.address = {ddr, 0, {}};
  } else {
    tensor.address = {buffers.add(hw::Memory::GM, bytes, /*permanent=*/true), 0, {}};
    copyBytes(init, Queue::Load, record.name, hw::Memory::DDR, {ddr, 0, {}}, hw::Memory::GM, tensor.address, bytes);
  }
  kernel.arguments.push_back(std::move(record));
  values[argument] = tensor;
}

void KernelLowering::addPackedConstant(BlockArgument argument, DictionaryAttr form, hw::Argument &record) {
  TileForm tileForm = TileForm::read(form);
  int64_t bytes = tileForm.bytes(), slice = tileForm.sliceBytes();
  int home = buffers.add(hw::Memory::ST, slice, /*permanent=*/true), ddr = addDdr(bytes);
  record.role = hw::Role::Const;
  record.type = hw::HostType::U8;
  record.shape = {bytes};
  record.form = hw::ElemKind::Bfp16C;
  record.pieces.push_back({hw::Memory::DDR, 0, 0, {0}, {bytes}, {}});
  pieceBuffers.push_back({static_cast<int>(kernel.arguments.size()), 0, ddr});
  // One slice's part in each slice, or the same in all.
  init.task(record.name);
  QueueCode &load = init.on(Queue::Load);
  int slot =
      load.config(hw::Unit::ST, {{ConfigKey::Unit, slice}, {ConfigKey::SrcSlice, tileForm.slices > 1 ? slice : 0}});
  hw::Instruction &move = load.emit(hw::Opcode::Move);
  move.set("src", static_cast<int64_t>(hw::Memory::DDR)).set("dst", static_cast<int64_t>(hw::Memory::ST));
  move.set("slot", slot).set("slices", tileForm.slices > 1 ? (1 << tileForm.slices) - 1 : (1 << machine.slices) - 1);
  load.address("saddr", {ddr, 0, {}});
  load.address("daddr", {home, 0, {}});
  kernel.arguments.push_back(std::move(record));
  tiles[argument] = {home, 0, {}};
}

Status KernelLowering::addResult(Value value, unsigned index) {
  auto type = cast<RankedTensorType>(value.getType());
  DeviceTensor tensor = values[value];
  if (!tensor.isDense())
    tensor = copied(tensor, tensor.order());
  hw::Argument record;
  record.name = "result" + std::to_string(index);
  record.role = hw::Role::Output;
  record.type = *hostType(type.getElementType());
  record.shape.assign(type.getShape().begin(), type.getShape().end());
  record.form = tensor.kind;
  SmallVector<unsigned> order = tensor.order();
  for (unsigned dim : order)
    record.perm.push_back(static_cast<uint8_t>(dim));
  tensor.strides = denseStrides(tensor.shape, order, tensor.elementSize());
  record.pieces.push_back(wholePiece(tensor, order));
  int64_t bytes = tensor.elements() * tensor.elementSize();
  if (bytes) {
    int ddr = addDdr(bytes);
    pieceBuffers.push_back({static_cast<int>(kernel.arguments.size()), 0, ddr});
    copyBytes(main, Queue::Store, record.name, hw::Memory::GM, tensor.address, hw::Memory::DDR, {ddr, 0, {}}, bytes);
  }
  kernel.arguments.push_back(std::move(record));
  return Status::ok();
}
