//===- Team.cpp - several quads, one program ------------------------------===//

#include "KernelWriter.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

QuadRegisters KernelWriter::launchRegisters() const {
  const int perChiplet = machine.quadsPerChiplet();
  const int64_t team = (int64_t(1) << quads) - 1;
  QuadRegisters registers(kLaunchRegisters);
  for (int quad = 0; quad < quads; ++quad) {
    const int first = quad / perChiplet * perChiplet;
    registers[kQuadInChiplet].push_back(quad - first);
    registers[kIsFirst].push_back(quad == 0);
    registers[kLeadsChiplet].push_back(quad == first);
    registers[kChipletMask].push_back(team & (((int64_t(1) << perChiplet) - 1) << first));
    registers[kTeamMask].push_back(team);
  }
  return registers;
}

void KernelWriter::meet() { main->meet(chiplets() == 1 ? "chiplet" : "card"); }

void KernelWriter::exchange(ArrayRef<Shares> all) {
  for (const Shares &each : all) {
    main->task(node);
    main->reserve(each.whole.address.buffer);
    moveTensor(Queue::Store, each.share, each.whole.local(each.split), hw::registerTerm(kTeamMask));
  }
  meet();
}

static void emitCopy(Program &program, Queue queue, Address from, Address to, ArrayRef<CopyDim> dims, hw::Term quads) {
  if (dims.size() > 5) // a descriptor has four dims and a run
    return program.loop(dims.front().extent, [&](int depth) {
      emitCopy(program, queue, from.plusLoop(depth, dims.front().from), to.plusLoop(depth, dims.front().to),
               dims.drop_front(), quads);
    });
  DmaSpec spec;
  spec.unit = dims.back().extent;
  addDims(spec, dims.drop_back());
  QueueWriter code = program.on(queue);
  TaskWriter copy = code.copy(from, to, spec);
  if (quads.scale)
    code.sum(copy, "peers", {-1, 0, {quads}});
  copy.create();
}

void KernelWriter::moveTensor(Queue queue, const DeviceTensor &from, const DeviceTensor &to, hw::Term receivers) {
  if (from.elements())
    emitCopy(*main, queue, from.address, to.address, copyDims(from, to), receivers);
}

std::vector<hw::Piece> KernelWriter::piecesOf(const DeviceTensor &tensor, ArrayRef<unsigned> order, Split split) const {
  std::vector<hw::Piece> pieces;
  for (int chiplet = 0; chiplet < chiplets(); ++chiplet) {
    hw::Piece piece = wholePiece(tensor, order);
    piece.unit = chiplet;
    const size_t folded = pieces.size();
    if (split) {
      const int64_t first = int64_t(chiplet) * machine.quadsPerChiplet();
      const size_t at = llvm::find(order, unsigned(split.dim)) - order.begin();
      const int64_t part = split.folded ? split.part / 2 : split.part;
      piece.begin[at] = first * part;
      piece.extent[at] = std::min<int64_t>(machine.quadsPerChiplet(), quads - first) * part;
      piece.address = piece.begin[at] * tensor.strides[split.dim];
      if (split.folded) {
        hw::Piece other = piece;
        other.begin[at] = tensor.shape[split.dim] - piece.begin[at] - piece.extent[at];
        other.address = other.begin[at] * tensor.strides[split.dim];
        pieces.push_back(other);
      }
    }
    pieces.insert(pieces.begin() + static_cast<int64_t>(folded), piece);
  }
  return pieces;
}
