//===- TaskBytes.h - which bytes the device's tasks touch -------*- C++ -*-===//
#pragma once

#include "StreamEncoder.h"

#include "dmxc/Dialect/DLIR/Order.h"

namespace dmxc::corsair {

/// What the order of a program is checked by: the rules of the instruction set, of each task's instruction. Quads run
/// the same code: what the first, the second and the last one have in their memories stands for all whose registers say
/// the same to what a quad does by itself. DDR, and the buffers that quads write to each other, are looked at as a
/// whole.
class TaskBytes : public dlir::ProgramBytes {
public:
  /// `placed`: where the program's buffers lie.
  TaskBytes(dlir::DeviceProgramOp program, const hw::Machine &machine, const Addresses &placed);

  int64_t addressOf(dlir::MemoryOp memory) const override { return placed.lookup(memory); }
  bool touched(mlir::Operation *task, int64_t quad, llvm::ArrayRef<int64_t> trips,
               std::vector<dlir::Touched> &out) override;
  int64_t groupOf(llvm::StringRef scope, int64_t quad) const override;
  llvm::SmallVector<dlir::ByteRuns, 2> bytesOf(dlir::PieceOp piece) const override;

private:
  /// A task's instruction and the CONFIG before it, if it needs one; of no instruction: it is not known what it does.
  struct Coded {
    std::optional<hw::Instruction> instruction, config;
    dlir::ScheduledGraphOp graph;
    /// What it touches in quad 0, where that is the same in all quads and trips but for the quad's own units.
    std::optional<std::vector<dlir::Touched>> touched;
    bool isLocal = true;   ///< touches nothing but the quad's own memories
    bool isShared = false; ///< touches a buffer that other quads write
  };
  Coded &codeOf(mlir::Operation *task);
  bool add(const Coded &coded, int64_t quad, llvm::ArrayRef<int64_t> trips, std::vector<dlir::Touched> &out) const;
  void lookAt(dlir::ScheduledGraphOp graph);
  bool isLookedAt(mlir::Value buffer, int64_t unit) const;
  /// How many units of a memory a quad has.
  int64_t unitsOfQuad(hw::Memory memory) const;
  /// The unit of a memory that is to a quad what another is to quad 0.
  int64_t unitFor(hw::Memory memory, int64_t unit, int64_t quad) const;
  static int64_t valueOf(const hw::Operand &operand, dlir::ScheduledGraphOp graph, int64_t quad,
                         llvm::ArrayRef<int64_t> trips);

  std::vector<bool> looked;              ///< by quad
  llvm::DenseSet<mlir::Value> exchanged; ///< buffers that quads write to each other
  hw::Image image;                       ///< the machine and the program's functions
  const Addresses &placed;
  Addresses apart; ///< of buffers that never overlap
  std::array<std::vector<mlir::Value>, hw::kMemories> buffers;
  llvm::DenseMap<mlir::Value, int> tokens;
  EncodeOptions options;
  llvm::DenseMap<mlir::Operation *, Coded> codes;
};

} // namespace dmxc::corsair
