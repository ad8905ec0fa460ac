//===- SimulatedDevice.h - a device that the caller's thread plays -*- C++ -*-===//
//
// What all simulated devices have in common: tasks are run one after the other when the session fences. A device says
// what a task does.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "HostMemoryDevice.h"

namespace dmxrt::sim {

class SimulatedDevice : public HostMemoryDevice {
public:
  void setProgramCount(uint32_t count) override { programs.resize(count); }
  void selectProgram(uint32_t program) override { selected = program; }
  Status prepare(std::span<const DeviceTask> tasks, std::span<const Segment> segments) override;
  void enqueue(uint32_t segment) override { current = segment; }
  RunOutcome fence() override;
  void setProfiling(bool on) override { profiling = on; }
  void takeSlices(std::vector<TaskSlice> &out) const override;

protected:
  using HostMemoryDevice::HostMemoryDevice;
  /// Makes ready for a task with a kernel; refuses one that does not fit it.
  virtual Status prepareTask(const DeviceTask &task) = 0;
  /// Runs it; the outcome's task is filled in.
  virtual RunOutcome runTask(const DeviceTask &task) = 0;

private:
  /// What `prepare` got for one program.
  struct Plan {
    std::span<const DeviceTask> tasks;
    std::span<const Segment> segments;
  };
  std::vector<Plan> programs{1};
  uint32_t selected = 0; ///< program
  uint32_t current = 0;  ///< the segment that was started last
  bool profiling = false;
  std::vector<TaskSlice> slices;
};

} // namespace dmxrt::sim
