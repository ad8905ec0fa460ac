//===- SimulatedDevice.h - a device that the caller's thread plays -*- C++ -*-===//
//
// What all simulated devices have in common: buffers are the host's memory, tasks are run one after the other when the
// session fences, code is chosen by the machine's name. A device says what a task does.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/devices/Device.h"

namespace dmxrt::sim {

class SimulatedDevice : public Device {
public:
  Result<const TargetCode *> selectCode(std::span<const TargetCode> codes, std::string_view isa) const override;
  Result<std::shared_ptr<const CodeImage>> loadCode(std::span<const std::byte> bytes) override {
    return kind.inspect(bytes);
  }
  Result<void *> allocate(uint64_t size) override;
  void release(void *memory, uint64_t size) override;
  void copy(void *destination, const void *source, uint64_t size) override;
  void setProgramCount(uint32_t count) override { programs.resize(count); }
  void selectProgram(uint32_t program) override { selected = program; }
  Status prepare(std::span<const DeviceTask> tasks, std::span<const Segment> segments) override;
  void enqueue(uint32_t segment) override { current = segment; }
  RunOutcome fence() override;
  uint32_t threads() const override { return 1; }
  uint64_t scratchBytes() const override { return 0; }
  uint32_t sliceCount(uint32_t) const override { return 1; }
  void setProfiling(bool on) override { profiling = on; }
  void takeSlices(std::vector<TaskSlice> &out) const override;

protected:
  SimulatedDevice(const DeviceKind &kind, const dmx_allocator *given);
  /// Makes ready for a task with a kernel; refuses one that does not fit it.
  virtual Status prepareTask(const DeviceTask &task) = 0;
  /// Runs it; the outcome's task is filled in.
  virtual RunOutcome runTask(const DeviceTask &task) = 0;

private:
  const DeviceKind &kind;
  dmx_allocator allocator;
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
