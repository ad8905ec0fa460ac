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

int KernelLowering::addDdr(hw::Argument record, int64_t bytes) {
  int buffer = buffers.add(hw::Memory::DDR, bytes, /*permanent=*/true);
  pieceBuffers.push_back({static_cast<int>(kernel.arguments.size()), buffer});
  kernel.arguments.push_back(std::move(record));
  return buffer;
}

/// Channels last for what convolutions read.
static SmallVector<unsigned> preferredOrder(Value value, size_t rank) {
  bool image = rank == 4 && llvm::any_of(value.getUsers(), [&](Operation *user) {
                 return isa<dmir::ConvOp, dmir::PoolOp>(user) && user->getOperand(0) == value;
               });
  return image ? SmallVector<unsigned>{0, 2, 3, 1} : rowMajor(rank);
}

static hw::Argument hostTensor(std::string name, hw::Role role, Type type, ArrayRef<unsigned> order) {
  auto tensor = cast<RankedTensorType>(type);
  hw::Argument record;
  record.name = std::move(name);
  record.role = role;
  record.type = *hostType(tensor.getElementType());
  record.shape.assign(tensor.getShape().begin(), tensor.getShape().end());
  record.form = *deviceKind(tensor.getElementType());
  for (unsigned dim : order)
    record.perm.push_back(static_cast<uint8_t>(dim));
  return record;
}

Status KernelLowering::addArgument(BlockArgument argument, DictionaryAttr form) {
  std::string name = "arg" + std::to_string(argument.getArgNumber());
  if (form) {
    if (form.getAs<StringAttr>("form").getValue() == forms::kTiles)
      addPackedConstant(argument, form, name);
    else
      addPlainConstant(argument, name);
    return Status::ok();
  }
  if (stateResults.contains(argument.getArgNumber())) {
    addState(argument);
    return Status::ok();
  }
  auto type = cast<RankedTensorType>(argument.getType());
  SmallVector<unsigned> order = preferredOrder(argument, type.getRank());
  DeviceTensor tensor = allocate(type.getShape(), *deviceKind(type.getElementType()), order);
  hw::Argument record = hostTensor(name, hw::Role::Input, type, order);
  record.pieces = piecesOf(tensor, order);
  DeviceTensor ddr = tensor;
  ddr.address = {addDdr(std::move(record), tensor.elements() * tensor.elementSize()), 0, {}};
  main.task(name);
  if (deal.quads == 1)
    moveTensor(Queue::Load, hw::Memory::DDR, ddr, hw::Memory::GM, tensor, {});
  else
    fetchOnce(ddr, tensor);
  values[argument] = tensor;
  return Status::ok();
}

/// Every byte leaves a chiplet's DDR once, for all of its quads: each quad fetches a part, or the first everything.
void KernelLowering::fetchOnce(DeviceTensor ddr, DeviceTensor tensor) {
  const hw::Term all = hw::registerTerm(kChipletMask);
  const int64_t quads = std::min(deal.quads, machine.quadsPerChiplet());
  for (unsigned dim : tensor.order()) {
    if (tensor.shape[dim] < quads || tensor.shape[dim] % quads)
      continue;
    const int64_t part = tensor.shape[dim] / quads;
    for (DeviceTensor *end : {&ddr, &tensor}) {
      end->shape[dim] = part;
      end->address = end->address.plus(hw::registerTerm(kQuadInChiplet, part * end->strides[dim]));
    }
    return moveTensor(Queue::Load, hw::Memory::DDR, ddr, hw::Memory::GM, tensor, all);
  }
  main.when(kLeadsChiplet, [&] { moveTensor(Queue::Load, hw::Memory::DDR, ddr, hw::Memory::GM, tensor, all); });
}

/// Nothing but rows of it are read: they are fetched from DDR, where the table may be larger than GM.
static bool isTable(BlockArgument argument) {
  return llvm::all_of(argument.getUses(), [](OpOperand &use) {
    auto gather = dyn_cast<dmir::GatherOp>(use.getOwner());
    return gather && gather.getData() == use.get() && gather.getIndices() != use.get();
  });
}

/// Bytes in the DDR of every chiplet, or the chiplet's share of them when each of its quads has its own.
static hw::Argument constantBytes(std::string name, hw::ElemKind kind, int64_t bytes, int chiplets, int64_t share) {
  hw::Argument record;
  record.name = std::move(name);
  record.role = hw::Role::Const;
  record.type = hw::HostType::U8;
  record.shape = {bytes};
  record.form = kind;
  for (int64_t chiplet = 0; chiplet < chiplets; ++chiplet) {
    int64_t begin = share ? chiplet * share : 0, extent = share ? std::min(share, bytes - begin) : bytes;
    record.pieces.push_back({hw::Memory::DDR, static_cast<uint32_t>(chiplet), 0, {begin}, {extent}, {}});
  }
  return record;
}

void KernelLowering::addPlainConstant(BlockArgument argument, const std::string &name) {
  auto type = cast<RankedTensorType>(argument.getType());
  DeviceTensor tensor =
      DeviceTensor::dense(*deviceKind(type.getElementType()), type.getShape(), rowMajor(type.getRank()));
  int64_t bytes = tensor.elements() * tensor.elementSize();
  int ddr = addDdr(constantBytes(name, tensor.kind, bytes, chiplets(), 0), bytes);
  if (isTable(argument)) {
    tensor.memory = hw::Memory::DDR;
    tensor.address = {ddr, 0, {}};
  } else {
    tensor.address = {buffers.add(hw::Memory::GM, bytes, /*permanent=*/true), 0, {}};
    init.task(name);
    QueueCode &load = init.on(Queue::Load);
    int slot = load.config(hw::Unit::GM, {{ConfigKey::Unit, bytes}});
    hw::Instruction &move = load.emit(hw::Opcode::Move);
    move.set("src", static_cast<int64_t>(hw::Memory::DDR)).set("dst", static_cast<int64_t>(hw::Memory::GM));
    move.set("slot", slot);
    load.address("saddr", {ddr, 0, {}});
    load.address("daddr", tensor.address);
  }
  values[argument] = tensor;
}

void KernelLowering::addPackedConstant(BlockArgument argument, DictionaryAttr form, const std::string &name) {
  Tiles packed{TileForm::read(form), -1, {}};
  const bool shared = packed.form.quads == 1;
  packed.ddr = addDdr(constantBytes(name, hw::ElemKind::Bfp16C, packed.form.bytes(), chiplets(),
                                    shared ? 0 : machine.quadsPerChiplet() * packed.form.quadBytes()),
                      packed.form.bytes());
  if (!fromDdr) {
    packed.home = {buffers.add(hw::Memory::ST, packed.form.sliceBytes(), /*permanent=*/true), 0, {}};
    init.task(name);
    loadTiles(init, packed, packed.home);
  }
  tiles[argument] = packed;
}

/// One slice's part to each slice, or the same to all; a quad's part to each quad, or the same to all.
void KernelLowering::loadTiles(Program &program, const Tiles &packed, const Address &home) {
  QueueCode &load = program.on(Queue::Load);
  const int64_t slice = packed.form.sliceBytes();
  const bool dealt = packed.form.slices > 1;
  int slot = load.config(hw::Unit::ST, {{ConfigKey::Unit, slice}, {ConfigKey::SrcSlice, dealt ? slice : 0}});
  hw::Instruction &move = load.emit(hw::Opcode::Move);
  move.set("src", static_cast<int64_t>(hw::Memory::DDR)).set("dst", static_cast<int64_t>(hw::Memory::ST));
  move.set("slot", slot).set("slices", (1 << (dealt ? packed.form.slices : machine.slices)) - 1);
  Address from{packed.ddr, 0, {}};
  load.address("saddr",
               packed.form.quads == 1 ? from : from.plus(hw::registerTerm(kQuadInChiplet, packed.form.quadBytes())));
  load.address("daddr", home);
}

Address KernelLowering::residentTiles(Value constant) {
  const Tiles &packed = tiles.find(constant)->second;
  if (!fromDdr)
    return packed.home;
  Address home{buffers.add(hw::Memory::ST, packed.form.sliceBytes()), 0, {}};
  main.task(node);
  loadTiles(main, packed, home);
  return home;
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

/// Every quad of the team has a copy in its GM, and all keep theirs up to date.
hw::Argument KernelLowering::stateRecord(Type type, const DeviceTensor &state, const std::string &name) {
  SmallVector<unsigned> order = rowMajor(state.rank());
  hw::Argument record = hostTensor(name, hw::Role::State, type, order);
  hw::Piece piece = wholePiece(state, order);
  piece.memory = hw::Memory::GM;
  for (int quad = 0; quad < deal.quads; ++quad) {
    piece.unit = quad;
    record.pieces.push_back(piece);
  }
  return record;
}

void KernelLowering::addState(BlockArgument argument) {
  auto type = cast<RankedTensorType>(argument.getType());
  DeviceTensor tensor =
      DeviceTensor::dense(*deviceKind(type.getElementType()), type.getShape(), rowMajor(type.getRank()));
  tensor.address = {buffers.add(hw::Memory::GM, tensor.elements() * tensor.elementSize(), /*permanent=*/true), 0, {}};
  pieceBuffers.push_back({static_cast<int>(kernel.arguments.size()), tensor.address.buffer});
  kernel.arguments.push_back(stateRecord(type, tensor, "state" + std::to_string(argument.getArgNumber())));
  values[argument] = tensor;
  states[stateResults[argument.getArgNumber()]] = tensor;
}

/// A state's next value: it is in place already, or is copied there.
Status KernelLowering::keepState(Value value, const DeviceTensor &state, const std::string &name) {
  if (values[value].address.buffer != state.address.buffer) {
    if (values[value].split)
      makeWhole(value);
    copyInto(values[value], state, {});
  }
  pieceBuffers.push_back({static_cast<int>(kernel.arguments.size()), state.address.buffer});
  kernel.arguments.push_back(stateRecord(value.getType(), state, name));
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

Status KernelLowering::addResult(Value value, unsigned index) {
  if (auto state = states.find(index); state != states.end()) {
    node = "state";
    return keepState(value, state->second, "state_result" + std::to_string(index));
  }
  DeviceTensor tensor = values[value];
  main.task("result" + std::to_string(index));
  node = "result" + std::to_string(index);
  if (!tensor.isDense() || tensor.memory != hw::Memory::GM)
    tensor = copied(tensor, tensor.order());
  SmallVector<unsigned> order = tensor.order();
  tensor.strides = denseStrides(tensor.shape, order, tensor.elementSize());
  hw::Argument record = hostTensor(node, hw::Role::Output, value.getType(), order);
  record.form = tensor.kind;
  record.pieces = piecesOf(tensor, order);
  if (!tensor.split)
    record.pieces.resize(1);
  DeviceTensor ddr = tensor;
  ddr.address = {addDdr(std::move(record), tensor.elements() * tensor.elementSize()), 0, {}};
  main.task(node);
  auto store = [&] {
    moveTensor(Queue::Store, hw::Memory::GM, tensor.local(tensor.split), hw::Memory::DDR, ddr.local(tensor.split), {});
  };
  if (deal.quads == 1 || tensor.split)
    store();
  else
    main.when(kIsFirst, store);
  return Status::ok();
}
