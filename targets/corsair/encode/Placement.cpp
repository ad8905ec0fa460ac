//===- Placement.cpp - addresses of a program's buffers -------------------===//

#include "Placement.h"

#include "dmxc/Support/ArenaPacking.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

/// Tiles and vectors alike.
static constexpr int64_t kAlign = 64;

static int64_t rounded(dlir::MemoryOp memory) {
  return (static_cast<int64_t>(memory.getSize()) + kAlign - 1) / kAlign * kAlign;
}

static int memoryNumber(dlir::MemoryOp memory) { return static_cast<int>(memoryOf(memory)); }

static LogicalResult checkRoom(dlir::MemoryOp memory, int64_t address, const hw::Machine &machine) {
  auto room = static_cast<int64_t>(machine.memories[memoryNumber(memory)].size);
  int64_t size = memory.getSize();
  if (size <= room && address <= room - size)
    return success();
  return memory.emitOpError("over capacity: '") << memory.getName() << "' is " << size << " bytes at " << address
                                                << ", " << memory.getKind() << " holds " << room;
}

LogicalResult corsair::placePermanent(ArrayRef<dlir::DeviceProgramOp> programs, const hw::Machine &machine,
                                      Addresses &addresses, MemoryUse &used) {
  SmallVector<dlir::MemoryOp> open;
  for (dlir::DeviceProgramOp program : programs)
    for (auto memory : program.getBody().getOps<dlir::MemoryOp>()) {
      if (!memory.getPermanent())
        continue;
      if (!memory.getAddress()) {
        open.push_back(memory);
        continue;
      }
      int64_t at = *memory.getAddress(), &end = used[memoryNumber(memory)];
      if (failed(checkRoom(memory, at, machine)))
        return failure();
      addresses[memory] = at;
      end = std::max(end, at + rounded(memory));
    }
  for (dlir::MemoryOp memory : open) {
    int64_t &end = used[memoryNumber(memory)];
    if (failed(checkRoom(memory, end, machine)))
      return failure();
    addresses[memory] = end;
    end += rounded(memory);
  }
  return success();
}

namespace {

/// Where a buffer is used: graph and queue, and the first and last step in that queue.
struct Uses {
  int graph = -1;
  Operation *queue = nullptr; ///< null: several, or several quads
  bool twoGraphs = false;
  int64_t first = 0, last = 0;
};

/// Steps of all queues; tasks of a loop have the same.
class Liveness {
public:
  explicit Liveness(dlir::DeviceProgramOp program) {
    for (auto graph : program.getBody().getOps<dlir::ScheduledGraphOp>())
      for (auto queue : graph.getBody().getOps<dlir::DispatchQueueOp>()) {
        step = 0;
        visit(queue.getBody().front(), graph.getName() == "init" ? 0 : 1, queue, false);
      }
    for (auto piece : program.getBody().getOps<dlir::PieceOp>())
      all[piece.getMemory()].twoGraphs = true; // the host writes it before, or reads it afterwards
  }

  llvm::MapVector<Value, Uses> all;

private:
  void visit(Block &block, int graph, Operation *queue, bool inLoop) {
    for (Operation &op : block) {
      if (isa<dlir::LoopOp, dlir::TaskGroupOp>(op)) {
        visit(op.getRegion(0).front(), graph, queue, inLoop || isa<dlir::LoopOp>(op));
        step += isa<dlir::LoopOp>(op) && !inLoop;
        continue;
      }
      auto copy = dyn_cast<dlir::DmaCopyOp>(op);
      for (Value operand : op.getOperands())
        if (isa<dlir::MemoryType>(operand.getType()))
          touch(all[operand], graph, queue, copy && copy.getPeers());
      step += !inLoop;
    }
  }

  void touch(Uses &uses, int graph, Operation *queue, bool quads) {
    if (uses.graph < 0) {
      uses = {graph, queue, uses.twoGraphs, step, step};
    } else {
      uses.twoGraphs |= uses.graph != graph;
      if (uses.queue != queue)
        uses.queue = nullptr;
      uses.last = std::max(uses.last, step);
      uses.first = std::min(uses.first, step);
    }
    if (quads)
      uses.queue = nullptr;
  }

  int64_t step = 0;
};

/// Buffers with one queue's private room, or one buffer that several touch.
struct Room {
  std::vector<LiveRange> ranges;
  SmallVector<Value> buffers;
  int firstGraph = 0, lastGraph = 1;
};

} // namespace

FailureOr<MemoryUse> corsair::placeTemporaries(dlir::DeviceProgramOp program, const hw::Machine &machine,
                                               const MemoryUse &used, Addresses &addresses) {
  Liveness liveness(program);
  MemoryUse result = used;
  SmallVector<dlir::MemoryOp> open;
  for (auto memory : program.getBody().getOps<dlir::MemoryOp>()) {
    if (memory.getPermanent())
      continue;
    if (failed(checkRoom(memory, memory.getAddress().value_or(0), machine)))
      return failure();
    if (!memory.getAddress()) {
      open.push_back(memory);
      continue;
    }
    addresses[memory] = *memory.getAddress();
    int64_t &end = result[memoryNumber(memory)];
    end = std::max(end, static_cast<int64_t>(*memory.getAddress()) + rounded(memory));
  }
  for (int kind = 0; kind < hw::kMemories; ++kind) {
    llvm::MapVector<Operation *, Room> rooms; // by queue, or by the buffer itself
    for (dlir::MemoryOp memory : open) {
      if (memoryNumber(memory) != kind)
        continue;
      const Uses &uses = liveness.all[memory];
      bool alone = uses.queue && !uses.twoGraphs;
      Room &room = rooms[alone ? uses.queue : memory.getOperation()];
      room.ranges.push_back({rounded(memory), uses.first, uses.last});
      room.buffers.push_back(memory);
      if (!uses.twoGraphs && uses.graph >= 0)
        room.firstGraph = room.lastGraph = uses.graph;
    }
    std::vector<LiveRange> whole;
    for (auto &[key, room] : rooms)
      whole.push_back({packArena(room.ranges), room.firstGraph, room.lastGraph});
    int64_t base = result[kind];
    result[kind] += packArena(whole);
    for (auto [entry, range] : llvm::zip(rooms, whole))
      for (auto [buffer, part] : llvm::zip(entry.second.buffers, entry.second.ranges))
        addresses[buffer] = base + range.offset + part.offset;
  }
  for (auto memory : program.getBody().getOps<dlir::MemoryOp>())
    if (failed(checkRoom(memory, addresses[memory], machine)))
      return failure();
  return result;
}
