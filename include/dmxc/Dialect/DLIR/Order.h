//===- Order.h - whether queues wait for what they need ---------*- C++ -*-===//
//
// A check of a whole program before it runs. Its queues are followed through their loops in all units, one task at a
// time, with what each task touches; nothing is computed. What is found holds for every pace of the queues: a clock a
// queue says what has happened before what.
//
// Labels of its errors, on the op that is wrong:
//   O1: a token is signalled as often as it is waited for, its credits aside, and nobody waits for ever.
//   O2: of two touches of a byte, one of them a write, tokens or barriers put one first.
//   O3: bytes that are read were written, as bytes of that buffer, and not freed since: a token with credits is that
//       of a free slot, and who has waited for it finds nothing in what it writes next. Who begins to read a slot has
//       its token from the queue that wrote it.
//   O4: what is copied into a slot is read before the slot is free again.
//   O5: all bytes of a result are written.
//   O6: nothing beyond a buffer is touched, and no piece is.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DLIR/Device.h"

namespace dmxc::dlir {

/// Equal runs of bytes: `bytes` from `begin` on, and again after each multiple of each step.
struct ByteRuns {
  struct Step {
    int64_t count, bytes;
  };
  int64_t begin = 0, bytes = 0;
  llvm::SmallVector<Step, 4> steps;
};

/// What a task touches of a buffer, in some units of the buffer's memory; bytes count from the buffer's begin.
struct Touched {
  mlir::Value buffer;
  llvm::SmallVector<int64_t, 4> units;
  bool write = false;
  bool all = true; ///< else some of the bytes
  llvm::SmallVector<ByteRuns, 2> runs;
};

/// What a device's target tells of its programs.
class ProgramBytes {
public:
  virtual ~ProgramBytes() = default;
  /// Where a buffer begins in each unit of its memory.
  virtual int64_t addressOf(MemoryOp memory) const = 0;
  /// Appends what a task touches in a unit of its graph, in these trips of the loops around it, the outermost first.
  /// False: it is not known, and the program is not looked into.
  virtual bool touched(mlir::Operation *task, int64_t unit, llvm::ArrayRef<int64_t> trips,
                       std::vector<Touched> &out) = 0;
  /// Those who meet in a scope: equal numbers, equal meeting.
  virtual int64_t groupOf(llvm::StringRef scope, int64_t unit) const = 0;
  /// The bytes of a piece; none: not known.
  virtual llvm::SmallVector<ByteRuns, 2> bytesOf(PieceOp piece) const = 0;
};

/// O1 to O6 of a program whose queues run on all units of their graphs. Programs with channels or rings, and those
/// whose order is known at run time only, are not looked into.
mlir::LogicalResult verifyOrder(DeviceProgramOp program, ProgramBytes &bytes);

} // namespace dmxc::dlir
