//===- StreamEncoder.h - one queue's groups to instructions -----*- C++ -*-===//
#pragma once

#include "Encode.h"
#include "Placement.h"

#include <list>
#include <map>
#include <set>

namespace dmxc::corsair {

/// A unit's configuration that a task needs.
struct Config {
  hw::Unit unit;
  std::vector<hw::ConfigPair> keys; ///< ascending, without defaults
};

/// What a task's CONFIG says; nullopt if it needs none.
mlir::FailureOr<std::optional<Config>> configOf(mlir::Operation *task);
/// Refuses places and steps that the engine of a task cannot begin at.
mlir::LogicalResult checkAlignment(mlir::Operation *task);

/// What the queues of a graph share.
struct GraphContext {
  const Addresses &addresses;
  const llvm::DenseMap<mlir::Value, int> &tokens;
  const EncodeOptions &options;
};

/// Encodes one dispatch queue.
class StreamEncoder {
public:
  StreamEncoder(hw::Image &image, const GraphContext &graph) : image(image), graph(graph) {}
  mlir::FailureOr<hw::Code> run(dlir::DispatchQueueOp queue, std::string name);
  /// One task by itself: its CONFIG, where it needs one, and its instruction.
  mlir::FailureOr<std::vector<hw::Instruction>> one(mlir::Operation *op);

private:
  //--- control (StreamEncoder.cpp)
  mlir::LogicalResult block(mlir::Block &block);
  mlir::LogicalResult loop(dlir::LoopOp op);
  mlir::LogicalResult group(dlir::TaskGroupOp op);
  /// Names the line of a user's kernel that a task comes from.
  void markPlace(mlir::Operation *op);
  mlir::LogicalResult barrier(dlir::TaskBarrierOp op);
  mlir::LogicalResult tokens(mlir::Operation *op, llvm::ArrayRef<dlir::TokenCount> list, hw::Opcode opcode);
  mlir::FailureOr<int> configure(mlir::Operation *task);
  int configure(const Config &config);
  mlir::FailureOr<bool> hoistConfigs(dlir::LoopOp op, hw::Unit unit);

  //--- tasks (TaskEncoder.cpp)
  mlir::LogicalResult task(mlir::Operation *op);
  mlir::LogicalResult encode(dlir::DmaCopyOp op);
  mlir::LogicalResult encode(engine::MatmulOp op);
  mlir::LogicalResult encode(engine::ConvOp op);
  mlir::LogicalResult encode(engine::SimdOp op);
  mlir::LogicalResult encode(engine::ReshapeOp op);
  mlir::LogicalResult encode(engine::CpuOp op);
  mlir::LogicalResult encode(engine::SignalRemoteOp op);
  mlir::LogicalResult encode(engine::WaitRemoteOp op);
  mlir::LogicalResult encode(engine::SendOp op);
  mlir::LogicalResult encode(engine::ReceiveOp op);
  mlir::LogicalResult encode(engine::ResetOp op);
  mlir::LogicalResult encode(engine::NopOp op);
  template <typename OpTy> mlir::LogicalResult product(OpTy op, hw::Instruction &in);
  template <typename OpTy> mlir::LogicalResult mail(OpTy op, hw::Opcode opcode);
  mlir::LogicalResult transpose(engine::ReshapeOp op);

  /// Sets a field to an affine value; the op says what the indices are.
  mlir::LogicalResult value(mlir::Operation *op, hw::Instruction &in, llvm::StringRef field, mlir::AffineMap map,
                            mlir::ValueRange indices, int64_t base = 0, unsigned result = 0);
  /// The same for an optional clause, and for the place of a buffer.
  template <typename OpTy>
  mlir::LogicalResult clause(OpTy op, hw::Instruction &in, llvm::StringRef field, std::optional<mlir::AffineMap> map) {
    return map ? value(op, in, field, *map, op.getIndices()) : mlir::success();
  }
  template <typename OpTy> mlir::LogicalResult place(OpTy op, hw::Instruction &in, llvm::StringRef field, unsigned i) {
    auto map = llvm::cast<mlir::AffineMapAttr>(op.getPlaces()[i]).getValue();
    return value(op, in, field, map, op.getIndices(), graph.addresses.lookup(op.getBuffers()[i]));
  }

  hw::Instruction &emit(hw::Opcode opcode) { return code.emplace_back(opcode); }

  struct Slot {
    int number;
    std::vector<hw::ConfigPair> keys;
  };
  hw::Image &image;
  const GraphContext &graph;
  std::vector<hw::Instruction> code;
  std::string markedPlace; ///< of the author's file that the last mark names; "": a group's
  /// Configured slots of each unit, the most recently used first.
  std::map<hw::Unit, std::list<Slot>> slots;
  /// Units whose slots do not change within the loop at hand: all that it needs was configured before it.
  std::set<hw::Unit> settled;
};

} // namespace dmxc::corsair
