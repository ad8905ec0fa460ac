//===- Placement.h - from grids of units to tiles ---------------*- C++ -*-===//
//
// Rings.cpp: what rings hold, and where they lie. Place.cpp: what is where, DMA queues as rings of BDs, channels as
// flows. Cores.cpp: compute queues as core programs. Sequence.cpp: shims' queues as the runtime sequence. Sizes.cpp:
// what of it depends on sizes of a dispatch.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Place.h"
#include "Tiles.h"

#include "mlir/IR/IRMapping.h"

#include <set>

namespace dmxc::aie {

/// An element of a channel: its name and index.
using StreamName = std::pair<std::string, llvm::SmallVector<int64_t>>;

class Placement {
public:
  Placement(dlir::DeviceProgramOp program, mlir::OpBuilder &builder)
      : program(program), b(builder), where(program.getLoc()) {}

  mlir::FailureOr<DeviceOp> run();

private:
  /// A put or a get.
  struct End {
    mlir::Operation *op;
    bool isPut;
    mlir::Value buffer;
    mlir::AffineMap place;
    mlir::ValueRange indices;
    dlir::DescriptorOp descriptor;
    llvm::StringRef channel;
    std::optional<mlir::AffineMap> element, count;
  };
  /// Elements of a buffer in the order in which an end takes them, the outermost dim first.
  struct Walk {
    llvm::SmallVector<int64_t> sizes, strides;
    mlir::Type element;
    int64_t length = 1;
    bool whole = true; ///< as they lie
    /// The size of a dispatch, and how often that, which the outermost dim is; what it says is the most.
    std::optional<std::pair<size_t, int64_t>> size;
  };
  /// A ring in a tile: its slots behind each other, and two locks, which count those that are empty and full.
  struct Slots {
    std::string name;
    uint32_t emptyLock;
    int64_t count, uses, bytes, address = 0;
    mlir::MemRefType type;
  };
  using Turns = llvm::DenseMap<mlir::Value, int64_t>; ///< of rings: the slot whose turn it is

  struct Stream {
    llvm::SmallVector<std::pair<hw::Tile, uint32_t>> sources, sinks; ///< tile and channel
  };
  struct Group {
    dlir::TaskGroupOp op;
    llvm::SmallVector<int64_t> trips;
    llvm::SmallVector<std::pair<int64_t, int64_t>> conditions; ///< a dispatch has it where these sizes are above these
  };
  struct ShimQueue {
    std::string name;
    DMAChannelDir direction;
    hw::Tile at;
    llvm::SmallVector<int64_t> place;
    std::vector<Group> groups;   ///< in the order of a run
    std::set<int64_t> waitedFor; ///< tasks
    int64_t begun = 0;           ///< tasks
  };

  // Place.cpp
  mlir::LogicalResult check();
  mlir::LogicalResult checkGrid(dlir::DispatchQueueOp queue);
  mlir::LogicalResult numberRings();
  mlir::LogicalResult placeRings();
  mlir::LogicalResult typeRing(dlir::RingOp ring);
  mlir::MemRefType typeOfSums(dlir::RingOp ring);
  void typeFirstOperands();
  mlir::LogicalResult placeL1(llvm::ArrayRef<dlir::RingOp> rings);
  mlir::LogicalResult placeL2(llvm::ArrayRef<dlir::RingOp> rings);
  /// Of a kind of elements; null of one that the array does not move.
  mlir::Type elementOf(llvm::StringRef kind);
  static int64_t bytesOf(mlir::Type element) { return elementBytes(mlir::MemRefType::get({1}, element)); }
  std::optional<End> endOf(mlir::Operation *op);
  mlir::FailureOr<Walk> walkOf(const End &end);
  mlir::FailureOr<int64_t> offsetOf(const End &end, llvm::ArrayRef<int64_t> place, llvm::ArrayRef<int64_t> trips);
  mlir::LogicalResult placeQueue(dlir::DispatchQueueOp queue, llvm::ArrayRef<int64_t> place);
  mlir::LogicalResult placeBds(dlir::DispatchQueueOp queue, llvm::ArrayRef<int64_t> place);
  mlir::FailureOr<Step> stepOf(mlir::Operation *use, hw::Tile at, llvm::ArrayRef<int64_t> place, Turns &turns);
  mlir::LogicalResult addStream(dlir::DispatchQueueOp queue, llvm::ArrayRef<int64_t> place);
  mlir::LogicalResult writeFlows();
  void placeCore(hw::Tile at);
  hw::TileKind kindOf(dlir::DispatchQueueOp queue);
  hw::Tile tileOf(dlir::DispatchQueueOp queue, llvm::ArrayRef<int64_t> place);
  mlir::Value slotAt(hw::Tile at, mlir::Value ring, int64_t slot);
  mlir::Value emptyLock(hw::Tile at, mlir::Value ring);
  mlir::Value fullLock(hw::Tile at, mlir::Value ring);

  // Cores.cpp
  mlir::LogicalResult writeKernels();
  mlir::LogicalResult writeCore(dlir::DispatchQueueOp queue, llvm::ArrayRef<int64_t> place);
  mlir::LogicalResult writeBlock(hw::Tile core, mlir::Block &block, Turns &turns);
  mlir::LogicalResult writeLoop(hw::Tile core, dlir::LoopOp loop, Turns &turns);
  mlir::LogicalResult writeUse(hw::Tile core, mlir::Operation *use, Turns &turns);
  void writeCall(hw::Tile core, CallOp call, const Turns &turns);
  void addNumbers(CallOp call, llvm::SmallVector<mlir::Value> &operands);
  mlir::Value constant(int64_t value);
  mlir::MemRefType typeOfParameters();
  mlir::Value parameters(hw::Tile core);
  mlir::Value start(hw::Tile core);

  // Sequence.cpp
  mlir::LogicalResult placeShim(dlir::DispatchQueueOp queue, llvm::ArrayRef<int64_t> place);
  mlir::LogicalResult unroll(mlir::Block &block, llvm::SmallVector<int64_t> &trips, std::vector<Group> &out);
  mlir::LogicalResult writeSequence();
  mlir::LogicalResult addOperand(dlir::ArgumentOp argument, llvm::SmallVector<mlir::Attribute> &operands,
                                 mlir::Block &block, mlir::IRMapping &values);
  void writeParameters();
  mlir::FailureOr<int64_t> flights();
  static int64_t tasksOf(const Group &group);
  void noteWaits(int64_t ahead);
  mlir::LogicalResult writeMoves(size_t group, int64_t flight, const mlir::IRMapping &values);

  // Sizes.cpp
  mlir::LogicalResult checkSizes();
  mlir::LogicalResult noteExtents(dlir::PieceOp piece, mlir::DictionaryAttr border);
  /// Of a sum that is a size of a dispatch times a factor: both.
  std::optional<std::pair<size_t, int64_t>> sizeOf(mlir::AffineMap map, mlir::ValueRange indices);
  /// The size that a register has, of those of a dispatch.
  std::optional<size_t> sizeIn(dlir::RegisterOp reg);
  /// Whether shims alone ask for a register, so that cores have none.
  static bool isOfController(dlir::RegisterOp reg);
  mlir::LogicalResult whereDone(int64_t group, llvm::function_ref<mlir::LogicalResult()> writeOps);

  dlir::DeviceProgramOp program;
  dlir::ScheduledGraphOp graph;
  mlir::OpBuilder &b;
  mlir::Location where;
  hw::Machine machine;
  std::optional<Tiles> tiles;
  llvm::DenseMap<mlir::Value, Slots> rings;
  int64_t parametersAddress = 0, parameterWords = 1;
  uint32_t coreLocks = 0; ///< of rings
  std::map<StreamName, Stream> streams;
  std::vector<StreamName> streamOrder;
  std::vector<ShimQueue> shims;
  std::vector<std::pair<dlir::DispatchQueueOp, llvm::SmallVector<int64_t>>> cores; ///< compute queues and places
  int64_t perFlight = 0;                                     ///< BDs of a shim for a group of each queue
  llvm::SmallVector<int64_t> most;                           ///< of each size that a dispatch brings
  llvm::SmallVector<std::pair<int64_t, int64_t>> conditions; ///< of the loops that are unrolled
};

} // namespace dmxc::aie
