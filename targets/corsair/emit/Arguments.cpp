//===- Arguments.cpp - between the host's buffers and GM ------------------===//

#include "Constants.h"
#include "KernelLowering.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

/// Channels last for what convolutions read.
static SmallVector<unsigned> preferredOrder(Value value, size_t rank) {
  bool image = rank == 4 && llvm::any_of(value.getUsers(), [&](Operation *user) {
                 return isa<dmir::ConvOp, dmir::PoolOp>(user) && user->getOperand(0) == value;
               });
  return image ? SmallVector<unsigned>{0, 2, 3, 1} : rowMajor(rank);
}

void KernelLowering::declare(dlir::ArgumentRole role, const std::string &name, Type type, hw::ElemKind form,
                             ArrayRef<unsigned> order, int buffer, ArrayRef<hw::Piece> pieces) {
  writer.argument(role, name, type, hw::nameOf(form), SmallVector<int64_t>(order.begin(), order.end()));
  for (const hw::Piece &piece : pieces)
    writer.piece(buffers[buffer].value, name, piece.unit, static_cast<int64_t>(piece.address), piece.begin,
                 piece.extent, piece.strides);
}

Status KernelLowering::addArgument(BlockArgument argument, DictionaryAttr form) {
  const std::string name = node = "arg" + std::to_string(argument.getArgNumber());
  if (form) {
    auto type = cast<RankedTensorType>(argument.getType());
    StringRef packing = form.getAs<StringAttr>("form").getValue();
    const int64_t bytes = form.getAs<IntegerAttr>("size").getInt();
    if (packing == forms::kTiles)
      addPackedConstant(argument, form, name);
    else if (packing == forms::kBias)
      addPlainConstant(argument, name, hw::ElemKind::Bfp32, bytes / 4);
    else
      addPlainConstant(argument, name, *deviceKind(type.getElementType()), type.getShape());
    return Status::ok();
  }
  if (stateResults.contains(argument.getArgNumber())) {
    addState(argument);
    return Status::ok();
  }
  auto type = cast<RankedTensorType>(argument.getType());
  SmallVector<unsigned> order = preferredOrder(argument, type.getRank());
  DeviceTensor tensor = allocate(type.getShape(), *deviceKind(type.getElementType()), order);
  DeviceTensor ddr = tensor;
  ddr.address = {buffers.add(hw::Memory::DDR, name, tensor.elements() * tensor.elementSize(), true), 0, {}};
  declare(dlir::ArgumentRole::input, name, type, tensor.kind, order, ddr.address.buffer, piecesOf(tensor, order));
  main->task(name);
  if (deal.quads == 1)
    moveTensor(Queue::Load, ddr, tensor, {});
  else
    fetchOnce(ddr, tensor);
  values[argument] = tensor;
  return Status::ok();
}

/// Every byte leaves a chiplet's DDR once, for all of its quads: each quad fetches a part, or the first everything.
/// Parts only where all chiplets have as many quads of the team.
void KernelLowering::fetchOnce(DeviceTensor ddr, DeviceTensor tensor) {
  const hw::Term all = hw::registerTerm(kChipletMask);
  const int64_t quads = std::min(deal.quads, machine.quadsPerChiplet());
  for (unsigned dim : tensor.order()) {
    if (deal.quads % quads || tensor.shape[dim] < quads || tensor.shape[dim] % quads)
      continue;
    const int64_t part = tensor.shape[dim] / quads;
    for (DeviceTensor *end : {&ddr, &tensor}) {
      end->shape[dim] = part;
      end->address = end->address.plus(hw::registerTerm(kQuadInChiplet, part * end->strides[dim]));
    }
    return moveTensor(Queue::Load, ddr, tensor, all);
  }
  main->when(kLeadsChiplet, [&] { moveTensor(Queue::Load, ddr, tensor, all); });
}

/// Nothing but rows of it are read: they are fetched from DDR, where the table may be larger than GM.
static bool isTable(BlockArgument argument) {
  return llvm::all_of(argument.getUses(), [](OpOperand &use) {
    auto gather = dyn_cast<dmir::GatherOp>(use.getOwner());
    return gather && gather.getData() == use.get() && gather.getIndices() != use.get();
  });
}

/// Bytes in the DDR of every chiplet, or the chiplet's share of them when each of its quads has its own. Gives the
/// buffer.
int KernelLowering::declareConstant(const std::string &name, hw::ElemKind kind, int64_t bytes, int64_t share) {
  std::vector<hw::Piece> pieces;
  for (int64_t chiplet = 0; chiplet < chiplets(); ++chiplet) {
    int64_t begin = share ? chiplet * share : 0, extent = share ? std::min(share, bytes - begin) : bytes;
    pieces.push_back({hw::Memory::DDR, static_cast<uint32_t>(chiplet), 0, {begin}, {extent}, {}});
  }
  int buffer = buffers.add(hw::Memory::DDR, name, bytes, /*permanent=*/true);
  declare(dlir::ArgumentRole::constant, name, RankedTensorType::get({bytes}, builder.getIntegerType(8, false)), kind,
          {}, buffer, pieces);
  return buffer;
}

void KernelLowering::addPlainConstant(BlockArgument argument, const std::string &name, hw::ElemKind kind,
                                      ArrayRef<int64_t> shape) {
  DeviceTensor tensor = DeviceTensor::dense(kind, shape, rowMajor(shape.size()));
  int64_t bytes = tensor.elements() * tensor.elementSize();
  int ddr = declareConstant(name, tensor.kind, bytes, 0);
  if (isTable(argument)) {
    tensor.address = {ddr, 0, {}};
  } else {
    tensor.address = {buffers.add(hw::Memory::GM, name, bytes, /*permanent=*/true), 0, {}};
    init->task(name);
    DmaSpec spec;
    spec.unit = bytes;
    if (bytes)
      init->on(Queue::Load).copy({ddr, 0, {}}, tensor.address, spec).create();
  }
  values[argument] = tensor;
}

void KernelLowering::addPackedConstant(BlockArgument argument, DictionaryAttr form, const std::string &name) {
  Tiles packed{TileForm::read(form), -1, {}};
  const bool shared = packed.form.quads == 1;
  packed.ddr = declareConstant(name, hw::ElemKind::Bfp16C, packed.form.bytes(),
                               shared ? 0 : machine.quadsPerChiplet() * packed.form.quadBytes());
  if (!fromDdr) {
    packed.home = {buffers.add(hw::Memory::ST, name, packed.form.sliceBytes(), /*permanent=*/true), 0, {}};
    init->task(name);
    loadTiles(*init, packed, packed.home);
  }
  tiles[argument] = packed;
}

/// One slice's part to each slice, or the same to all; a quad's part to each quad, or the same to all.
void KernelLowering::loadTiles(Program &program, const Tiles &packed, const Address &home) {
  const bool dealt = packed.form.slices > 1;
  DmaSpec spec;
  spec.unit = packed.form.sliceBytes();
  spec.sourceUnitStep = dealt ? spec.unit : 0;
  Address from{packed.ddr, 0, {}};
  if (packed.form.quads > 1)
    from = from.plus(hw::registerTerm(kQuadInChiplet, packed.form.quadBytes()));
  program.on(Queue::Load)
      .copy(from, home, spec)
      .integer("units", (1 << (dealt ? packed.form.slices : machine.slices)) - 1)
      .create();
}

Address KernelLowering::residentTiles(Value constant) {
  const Tiles &packed = tiles.find(constant)->second;
  if (!fromDdr)
    return packed.home;
  Address home{buffers.add(hw::Memory::ST, node + ".weights", packed.form.sliceBytes()), 0, {}};
  main->task(node);
  loadTiles(*main, packed, home);
  return home;
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

/// Every quad of the team has a copy in its GM, and all keep theirs up to date.
void KernelLowering::declareState(Type type, const DeviceTensor &state, const std::string &name) {
  SmallVector<unsigned> order = rowMajor(state.rank());
  std::vector<hw::Piece> pieces(deal.quads, wholePiece(state, order));
  for (int quad = 0; quad < deal.quads; ++quad)
    pieces[quad].unit = quad;
  declare(dlir::ArgumentRole::state, name, type, state.kind, order, state.address.buffer, pieces);
}

void KernelLowering::addState(BlockArgument argument) {
  auto type = cast<RankedTensorType>(argument.getType());
  DeviceTensor tensor =
      DeviceTensor::dense(*deviceKind(type.getElementType()), type.getShape(), rowMajor(type.getRank()));
  const std::string name = "state" + std::to_string(argument.getArgNumber());
  const int64_t bytes = tensor.elements() * tensor.elementSize();
  tensor.address = {buffers.add(hw::Memory::GM, name, bytes, /*permanent=*/true), 0, {}};
  declareState(type, tensor, name);
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
  declareState(value.getType(), state, name);
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
  main->task("result" + std::to_string(index));
  node = "result" + std::to_string(index);
  if (!tensor.isDense() || buffers[tensor.address.buffer].memory != hw::Memory::GM)
    tensor = copied(tensor, tensor.order());
  SmallVector<unsigned> order = tensor.order();
  tensor.strides = denseStrides(tensor.shape, order, tensor.elementSize());
  std::vector<hw::Piece> pieces = piecesOf(tensor, order);
  if (!tensor.split)
    pieces.resize(1);
  DeviceTensor ddr = tensor;
  ddr.address = {buffers.add(hw::Memory::DDR, node, tensor.elements() * tensor.elementSize(), true), 0, {}};
  declare(dlir::ArgumentRole::output, node, value.getType(), tensor.kind, order, ddr.address.buffer, pieces);
  main->task(node);
  auto store = [&] { moveTensor(Queue::Store, tensor.local(tensor.split), ddr.local(tensor.split), {}); };
  if (deal.quads == 1 || tensor.split)
    store();
  else
    main->when(kIsFirst, store);
  return Status::ok();
}
