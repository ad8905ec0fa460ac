//===- GuardDevice.h - kernels beside inaccessible pages --------*- C++ -*-===//
//
// The cpu device with guard=start or guard=end, to find kernels that leave their operands. Every task's operands are
// copied to memory that faults beside them and its results back, so that all else of a session stays as it is. Work is
// cut for the session's threads as without guards; the calling thread does the parts one after another, the last
// thread's first, with scratch for each.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "CpuDevice.h"
#include "runtime/devices/common/guard/GuardMemory.h"

namespace dmxrt {

class GuardDevice final : public CpuDevice {
public:
  explicit GuardDevice(GuardSide side) : side(side) {}
  RunOutcome fence() override;

private:
  bool usesThreads() const override { return false; }
  void runAlone() override;
  /// `parts`: each thread's steps of the task.
  void runTask(uint32_t number, std::span<const std::span<CpuStep>> parts);

  GuardSide side;
  std::string problem; // of the task that failed
};

} // namespace dmxrt
