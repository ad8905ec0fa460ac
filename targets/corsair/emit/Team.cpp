//===- Team.cpp - several quads, one program ------------------------------===//

#include "KernelLowering.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;
using hw::ConfigKey;

std::vector<hw::Launch> KernelLowering::launches(std::array<uint32_t, kQueues> streams) const {
  const int perChiplet = machine.quadsPerChiplet();
  const int64_t team = (int64_t(1) << deal.quads) - 1;
  std::vector<hw::Launch> result;
  for (int quad = 0; quad < deal.quads; ++quad) {
    hw::Launch launch{static_cast<uint32_t>(quad), streams, {}};
    const int first = quad / perChiplet * perChiplet;
    launch.registers[kQuadInChiplet] = quad - first;
    launch.registers[kIsFirst] = quad == 0;
    launch.registers[kLeadsChiplet] = quad == first;
    launch.registers[kChipletMask] = team & (((int64_t(1) << perChiplet) - 1) << first);
    launch.registers[kOthersMask] = team & ~(int64_t(1) << quad);
    result.push_back(launch);
  }
  return result;
}

void KernelLowering::meet() {
  main.meet(chiplets() == 1 ? hw::Scope::Chiplet : hw::Scope::Card);
  sent.clear();
}

void KernelLowering::makeWhole(ArrayRef<Value> parts) {
  SmallVector<DeviceTensor *> tensors;
  for (Value value : parts)
    tensors.push_back(&values[value]);
  exchange(tensors);
}

void KernelLowering::exchange(ArrayRef<DeviceTensor *> parts) {
  // What other quads were sent before they may still be reading.
  if (llvm::any_of(parts, [&](DeviceTensor *tensor) { return sent.contains(tensor->address.buffer); }))
    meet();
  SmallVector<int> buffersNow;
  for (DeviceTensor *tensor : parts) {
    const DeviceTensor part = tensor->local(tensor->split);
    main.task(node);
    main.reserve(tensor->address.buffer);
    moveTensor(Queue::Store, hw::Memory::GM, part, hw::Memory::GM, part, hw::registerTerm(kOthersMask));
    buffersNow.push_back(tensor->address.buffer);
    tensor->split = {};
  }
  meet();
  sent.insert(buffersNow.begin(), buffersNow.end());
}

static void emitCopy(Program &program, Queue queue, hw::Memory source, Address from, hw::Memory target, Address to,
                     ArrayRef<CopyDim> dims, hw::Term quads) {
  if (dims.size() > 5) // a descriptor has four dims and a run
    return program.loop(dims.front().extent, [&](int depth) {
      emitCopy(program, queue, source, from.plusLoop(depth, dims.front().from), target,
               to.plusLoop(depth, dims.front().to), dims.drop_front(), quads);
    });
  QueueCode &code = program.on(queue);
  std::vector<hw::ConfigPair> keys = {{ConfigKey::Unit, dims.back().extent}};
  addDims(keys, dims.drop_back(), 0);
  int slot = code.config(hw::Unit::GM, std::move(keys));
  hw::Instruction &move = code.emit(hw::Opcode::Move);
  move.set("src", static_cast<int64_t>(source)).set("dst", static_cast<int64_t>(target)).set("slot", slot);
  if (quads.scale)
    move.set("quads", 0, {quads});
  code.address("saddr", from);
  code.address("daddr", to);
}

void KernelLowering::moveTensor(Queue queue, hw::Memory source, const DeviceTensor &from, hw::Memory target,
                                const DeviceTensor &to, hw::Term quads) {
  if (from.elements())
    emitCopy(main, queue, source, from.address, target, to.address, copyDims(from, to), quads);
}

std::vector<hw::Piece> KernelLowering::piecesOf(const DeviceTensor &tensor, ArrayRef<unsigned> order) const {
  std::vector<hw::Piece> pieces;
  for (int chiplet = 0; chiplet < chiplets(); ++chiplet) {
    hw::Piece piece = wholePiece(tensor, order);
    piece.unit = chiplet;
    if (tensor.split) {
      const int64_t first = int64_t(chiplet) * machine.quadsPerChiplet();
      const size_t at = llvm::find(order, unsigned(tensor.split.dim)) - order.begin();
      piece.begin[at] = first * tensor.split.part;
      piece.extent[at] = std::min<int64_t>(machine.quadsPerChiplet(), deal.quads - first) * tensor.split.part;
      piece.address = piece.begin[at] * tensor.strides[tensor.split.dim];
    }
    pieces.push_back(piece);
  }
  return pieces;
}
