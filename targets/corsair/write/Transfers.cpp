//===- Transfers.cpp - between the host's buffers and GM ------------------===//

#include "../decide/Ops.h"
#include "KernelWriter.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

dlir::ArgumentOp KernelWriter::declare(dlir::ArgumentRole role, const std::string &name, Type type, hw::ElemKind form,
                                       ArrayRef<unsigned> order, int buffer, ArrayRef<hw::Piece> pieces) {
  dlir::ArgumentOp made =
      writer.argument(role, name, type, hw::nameOf(form), SmallVector<int64_t>(order.begin(), order.end()));
  for (const hw::Piece &piece : pieces)
    writer.piece(buffers[buffer].value, name, piece.unit, static_cast<int64_t>(piece.address), piece.begin,
                 piece.extent, piece.strides);
  return made;
}

DeviceTensor KernelWriter::declareInput(const std::string &name, RankedTensorType type, ArrayRef<unsigned> order,
                                        Split split) {
  DeviceTensor ddr = DeviceTensor::dense(*deviceKind(type.getElementType()), type.getShape(), order);
  ddr.address = {buffers.add(hw::Memory::DDR, name, ddr.elements() * ddr.elementSize(), true), 0, {}};
  declare(dlir::ArgumentRole::input, name, type, ddr.kind, order, ddr.address.buffer, piecesOf(ddr, order, split));
  return ddr;
}

DeviceTensor KernelWriter::addInput(const std::string &name, RankedTensorType type, ArrayRef<unsigned> order,
                                    Split split, Address *arrives) {
  const DeviceTensor ddr = declareInput(name, type, order, split);
  const DeviceTensor tensor = allocate(ddr.local(split).shape, ddr.kind, order);
  if (arrives) {
    *arrives = ddr.local(split).address;
    return tensor;
  }
  main->task(name);
  fetch(ddr, tensor, split);
  return tensor;
}

DeviceTensor KernelWriter::addLateInput(const std::string &name, RankedTensorType type, ArrayRef<unsigned> order) {
  const DeviceTensor ddr = declareInput(name, type, order, {});
  const DeviceTensor tensor = allocate(ddr.shape, ddr.kind, order);
  lateInputs[tensor.address.buffer] = {name, ddr, tensor};
  return tensor;
}

void KernelWriter::fetchLate(int buffer) {
  auto late = lateInputs.find(buffer);
  if (late == lateInputs.end())
    return;
  main->task(late->second.name);
  main->reserve(buffer); // other quads write it once all have met before
  fetchOnce(late->second.ddr, late->second.tensor);
  main->meetLoading(chiplets() == 1 ? "chiplet" : "card");
  lateInputs.erase(late);
}

/// What a quad has of a tensor and where that is in the whole: a share, or the two parts of a folded one.
static std::vector<std::pair<DeviceTensor, DeviceTensor>> partsOf(const DeviceTensor &share, const DeviceTensor &whole,
                                                                  Split split) {
  if (!split.folded)
    return {{share, whole.local(split)}};
  const auto [first, last] = whole.folded(split);
  const auto [upper, lower] = share.halves(split.dim);
  return {{upper, first}, {lower, last}};
}

void KernelWriter::fetch(const DeviceTensor &ddr, const DeviceTensor &tensor, Split split) {
  if (quads != 1 && !split)
    return fetchOnce(ddr, tensor);
  for (const auto &[part, from] : partsOf(tensor, ddr, split))
    moveTensor(Queue::Load, from, part, {});
}

DeviceTensor KernelWriter::addTiles(const std::string &name, RankedTensorType type, int64_t part, Split split,
                                    Address *arrives) {
  const int64_t rows = type.getDimSize(0), depth = type.getDimSize(1), chunks = (depth + 63) / 64;
  const int64_t band = chunks * Spread::kTileBytes, bands = (part + 63) / 64, parts = rows / part;
  const int64_t bytes = parts * bands * band;
  const int ddr = buffers.add(hw::Memory::DDR, name, bytes, true);
  std::vector<hw::Piece> pieces;
  for (int chiplet = 0; chiplet < chiplets(); ++chiplet) {
    // A deal of rows gives parts; one of columns, blocks along K of all rows.
    const int64_t first = int64_t(chiplet) * machine.quadsPerChiplet(),
                  count = std::min<int64_t>(machine.quadsPerChiplet(), quads - first);
    const bool byRows = split && split.dim == 0, byDepth = split && split.dim == 1;
    for (int64_t at = byRows ? first : 0; at < (byRows ? first + count : parts); ++at) {
      const int64_t begin = byDepth ? first * split.part : 0, extent = byDepth ? count * split.part : depth;
      pieces.push_back({hw::Memory::DDR,
                        static_cast<uint32_t>(chiplet),
                        static_cast<uint64_t>(at * bands * band + begin / 64 * Spread::kTileBytes),
                        {at * part, begin},
                        {part, extent},
                        {band, Spread::kTileBytes}});
    }
  }
  declare(dlir::ArgumentRole::input, name, type, hw::ElemKind::Bfp16R, rowMajor(2), ddr, pieces);
  // Bands of bytes.
  const DeviceTensor from{hw::ElemKind::U8, {parts * bands, band}, {band, 1}, {ddr, 0, {}}};
  Split share = split;
  if (split)
    share.part = split.dim == 0 ? bands : split.part / 64 * Spread::kTileBytes;
  const DeviceTensor to = allocate(from.local(share).shape, from.kind, rowMajor(2));
  if (arrives) {
    *arrives = from.local(share).address;
  } else {
    main->task(name);
    fetch(from, to, share);
  }
  const int64_t step = Spread::kTileBytes / 64;
  DeviceTensor tensor{hw::ElemKind::Bfp16R, {rows, depth}, {to.shape[1] / 64, step}, to.address};
  if (split)
    tensor.shape[split.dim] = split.part;
  return tensor;
}

/// Every byte leaves a chiplet's DDR once, for all of its quads: each quad fetches a part, or the first everything.
/// Parts only where all chiplets have as many quads of the team.
void KernelWriter::fetchOnce(DeviceTensor ddr, DeviceTensor tensor) {
  const hw::Term all = hw::registerTerm(kChipletMask);
  const int64_t sharers = std::min(quads, machine.quadsPerChiplet());
  for (unsigned dim : tensor.order()) {
    if (quads % sharers || tensor.shape[dim] < sharers || tensor.shape[dim] % sharers)
      continue;
    const int64_t part = tensor.shape[dim] / sharers;
    for (DeviceTensor *end : {&ddr, &tensor}) {
      end->shape[dim] = part;
      end->address = end->address.plus(hw::registerTerm(kQuadInChiplet, part * end->strides[dim]));
    }
    return moveTensor(Queue::Load, ddr, tensor, all);
  }
  main->when(kLeadsChiplet, [&] { moveTensor(Queue::Load, ddr, tensor, all); });
}

void KernelWriter::meetAfterInputs(ArrayRef<int> inputs) {
  if (quads == 1 || inputs.empty())
    return;
  meet();
  for (int buffer : inputs)
    if (buffer >= 0)
      main->reserve(buffer);
}

/// Bytes in the DDR of every chiplet, or the chiplet's share of them when each of its quads has its own. Gives the
/// buffer.
int KernelWriter::declareConstant(const std::string &name, hw::ElemKind kind, int64_t bytes, int64_t share,
                                  DictionaryAttr form) {
  std::vector<hw::Piece> pieces;
  for (int64_t chiplet = 0; chiplet < chiplets(); ++chiplet) {
    int64_t begin = share ? chiplet * share : 0, extent = share ? std::min(share, bytes - begin) : bytes;
    pieces.push_back({hw::Memory::DDR, static_cast<uint32_t>(chiplet), 0, {begin}, {extent}, {}});
  }
  int buffer = buffers.add(hw::Memory::DDR, name, bytes, /*permanent=*/true);
  dlir::ArgumentOp made =
      declare(dlir::ArgumentRole::constant, name, RankedTensorType::get({bytes}, builder.getIntegerType(8, false)),
              kind, {}, buffer, pieces);
  if (form) // for which the program is made
    made->setAttr(lldmir::kFormAttr, form);
  return buffer;
}

DeviceTensor KernelWriter::addPlainConstant(const std::string &name, hw::ElemKind kind, ArrayRef<int64_t> shape,
                                            bool inDdr) {
  DeviceTensor tensor = DeviceTensor::dense(kind, shape, rowMajor(shape.size()));
  int64_t bytes = tensor.elements() * tensor.elementSize();
  int ddr = declareConstant(name, tensor.kind, bytes, 0);
  if (inDdr) {
    tensor.address = {ddr, 0, {}};
    return tensor;
  }
  tensor.address = {buffers.add(hw::Memory::GM, name, bytes, /*permanent=*/true), 0, {}};
  init->task(name);
  DmaSpec spec;
  spec.unit = bytes;
  if (bytes)
    init->on(Queue::Load).copy({ddr, 0, {}}, tensor.address, spec).create();
  return tensor;
}

KernelWriter::Tiles KernelWriter::addPackedConstant(const std::string &name, DictionaryAttr form) {
  Tiles packed{TileForm::read(form), -1, {}};
  const bool shared = packed.form.quads == 1;
  packed.ddr = declareConstant(name, hw::ElemKind::Bfp16C, packed.form.bytes(),
                               shared ? 0 : machine.quadsPerChiplet() * packed.form.quadBytes(), form);
  if (!fromDdr) {
    packed.home = {buffers.add(hw::Memory::ST, name, packed.form.sliceBytes(), /*permanent=*/true), 0, {}};
    init->task(name);
    loadTiles(*init, packed, packed.home, 0, packed.form.sliceBytes());
  }
  return packed;
}

/// One slice's part to each slice, or the same to all; a quad's part to each quad, or the same to all. Of each slice's
/// `bytes` from `first` on.
void KernelWriter::loadTiles(Program &program, const Tiles &packed, const Address &home, int64_t first, int64_t bytes) {
  const bool dealt = packed.form.slices > 1;
  DmaSpec spec;
  spec.unit = bytes;
  spec.sourceUnitStep = dealt ? packed.form.sliceBytes() : 0;
  Address from{packed.ddr, first, {}};
  if (packed.form.quads > 1)
    from = from.plus(hw::registerTerm(kQuadInChiplet, packed.form.quadBytes()));
  program.on(Queue::Load)
      .copy(from, home, spec)
      .integer("units", (1 << (dealt ? packed.form.slices : machine.slices)) - 1)
      .create();
}

Address KernelWriter::residentTiles(const Tiles &packed) {
  if (!fromDdr)
    return packed.home;
  Address home{buffers.add(hw::Memory::ST, node + ".weights", packed.form.sliceBytes()), 0, {}};
  main->task(node);
  loadTiles(*main, packed, home, 0, packed.form.sliceBytes());
  return home;
}

DeviceTensor KernelWriter::resultInDdr(const DeviceTensor &tensor, RankedTensorType type, unsigned index) {
  DeviceTensor ddr = DeviceTensor::dense(tensor.kind, type.getShape(), tensor.order());
  const int64_t bytes = ddr.elements() * ddr.elementSize();
  ddr.address = {buffers.add(hw::Memory::DDR, "result" + std::to_string(index), bytes, true), 0, {}};
  return ddr;
}

void KernelWriter::declareResult(const DeviceTensor &ddr, RankedTensorType type, unsigned index, Split split) {
  const SmallVector<unsigned> order = ddr.order();
  std::vector<hw::Piece> pieces = piecesOf(ddr, order, split);
  if (!split)
    pieces.resize(1);
  declare(dlir::ArgumentRole::output, "result" + std::to_string(index), type, ddr.kind, order, ddr.address.buffer,
          pieces);
}

void KernelWriter::storeResult(DeviceTensor tensor, RankedTensorType type, unsigned index, Split split) {
  node = "result" + std::to_string(index);
  tensor.strides = denseStrides(tensor.shape, tensor.order(), tensor.elementSize());
  const DeviceTensor ddr = resultInDdr(tensor, type, index);
  declareResult(ddr, type, index, split);
  main->task(node);
  auto store = [&] {
    for (const auto &[part, to] : partsOf(tensor, ddr, split))
      moveTensor(Queue::Store, part, to, {});
  };
  if (quads == 1 || split)
    store();
  else
    main->when(kIsFirst, store);
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

void KernelWriter::declareState(Type type, const DeviceTensor &state, const std::string &name) {
  SmallVector<unsigned> order = rowMajor(state.rank());
  std::vector<hw::Piece> pieces(quads, wholePiece(state, order));
  for (int quad = 0; quad < quads; ++quad)
    pieces[quad].unit = quad;
  declare(dlir::ArgumentRole::state, name, type, state.kind, order, state.address.buffer, pieces);
}

DeviceTensor KernelWriter::addState(unsigned argument, RankedTensorType type) {
  DeviceTensor tensor =
      DeviceTensor::dense(*deviceKind(type.getElementType()), type.getShape(), rowMajor(type.getRank()));
  const std::string name = "state" + std::to_string(argument);
  const int64_t bytes = tensor.elements() * tensor.elementSize();
  tensor.address = {buffers.add(hw::Memory::GM, name, bytes, /*permanent=*/true), 0, {}};
  declareState(type, tensor, name);
  return tensor;
}

void KernelWriter::keepState(const DeviceTensor &value, const DeviceTensor &state, Type type, unsigned result,
                             Split split) {
  node = "state";
  if (value.address.buffer != state.address.buffer) {
    DeviceTensor whole = value;
    if (split) { // not into the state, of which others may still read what it was
      whole = allocate(state.shape, value.kind, value.order());
      exchange({{value, whole, split}});
    }
    copyInto(whole, state);
  }
  declareState(type, state, "state_result" + std::to_string(result));
}
