//===- QueueCode.h - a dispatch queue line by line --------------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DLIR/Device.h"

namespace dmxc::dlir {

/// What a map is as a sum of loop counters, registers and the unit's number.
struct LinearValue {
  enum class Source : uint8_t { Loop, Register, Unit };
  struct Term {
    Source source;
    unsigned number;
    int64_t scale;
  };
  int64_t base = 0;
  llvm::SmallVector<Term, 2> terms;
};

/// One step of a queue.
struct QueueLine {
  enum class Kind : uint8_t { Loop, End, Wait, Signal, Meet, Task };
  Kind kind;
  mlir::Operation *op = nullptr;
  size_t other = 0;                                          ///< Loop: its End; End: its Loop
  LinearValue times;                                         ///< Loop
  llvm::SmallVector<std::pair<unsigned, int64_t>, 2> tokens; ///< Wait, Signal: numbers in the graph, and how many
};

/// The lines of a queue; tokens and registers by their place in the graph. nullopt: it has numbers that are no sums.
std::optional<std::vector<QueueLine>> linesOf(DispatchQueueOp queue,
                                              const llvm::DenseMap<mlir::Value, unsigned> &numbers);

/// The queues that meet at a barrier, each once.
llvm::SmallVector<int64_t> meetingAt(TaskBarrierOp barrier);

/// "group "x" of queue 2"
std::string placeOf(mlir::Operation *op);

} // namespace dmxc::dlir
