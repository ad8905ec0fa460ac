//===- CudaDevice.h - GPUs of NVIDIA, simulated -----------------*- C++ -*-===//
#pragma once

#include "CudaImage.h"
#include "runtime/devices/common/SimulatedDevice.h"

namespace dmxrt {
const DeviceKind &cudaDevice();
} // namespace dmxrt

namespace dmxrt::cuda {

/// Runs kernels' PTX and checks every access.
class CudaDevice final : public sim::SimulatedDevice {
public:
  static constexpr SettingSpec kSettings[] = {
      {"sim", "auto|1"}, {"sim_seed", "N", UINT64_MAX}, {"sim_checks", "0|1", 1}, {"sim_steps", "N", UINT64_MAX}};
  static Result<std::unique_ptr<Device>> create(const DeviceOptions &options, std::span<const Setting> settings);
  uint64_t scratchBytes() const override { return scratch.capacity(); }

private:
  explicit CudaDevice(const DeviceOptions &options);
  Status prepareTask(const DeviceTask &task) override;
  RunOutcome runTask(const DeviceTask &task) override;
  void addRegions(const DeviceTask &task, const KernelLaunch &kernel);
  MemoryRegion &addRegion(MemoryRegion::Kind kind, const void *begin, uint64_t bytes);

  const std::byte *scratchBegin() const; ///< aligned

  uint64_t seed = 0;
  uint64_t mostSteps = uint64_t(1) << 31; ///< instructions of a warp
  bool checks = true;
  std::vector<std::byte> scratch; ///< of a launch's threads
  uint32_t statusWord = 0;
  Memory memory;
};

} // namespace dmxrt::cuda
