//===- RehearsalDevice.h - stands in for a device in a rehearsal -*- C++ -*-===//
#pragma once

#include "Device.h"

namespace dmxrt {

/// Reads and checks code as the real device does, plans nothing, runs nothing and has no memory: what it allocates are
/// addresses that nobody reads or writes.
class RehearsalDevice final : public Device {
public:
  /// Stands for the device of a target with its `variant`th code, of fewer the last.
  RehearsalDevice(const DeviceKind &kind, size_t variant) : kind(kind), variant(variant) {}

  Result<const TargetCode *> selectCode(std::span<const TargetCode> codes, std::string_view isa) const override;
  Result<std::shared_ptr<const CodeImage>> loadCode(std::span<const std::byte> bytes) override;
  Result<void *> allocate(uint64_t size) override;
  void release(void *, uint64_t) override {}
  void copy(void *, const void *, uint64_t) override {}
  void clear(void *, uint64_t) override {}
  void setProgramCount(uint32_t) override {}
  void selectProgram(uint32_t) override {}
  Status prepare(std::span<const DeviceTask> tasks, std::span<const Segment> segments) override;
  void enqueue(uint32_t) override {}
  RunOutcome fence() override { return {}; }
  uint32_t threads() const override { return 1; }
  uint64_t scratchBytes() const override { return 0; }
  uint32_t sliceCount(uint32_t) const override { return 0; }
  void setProfiling(bool) override {}
  void takeSlices(std::vector<TaskSlice> &) const override {}

private:
  const DeviceKind &kind;
  size_t variant;
  std::vector<std::shared_ptr<const CodeImage>> images;
};

} // namespace dmxrt
