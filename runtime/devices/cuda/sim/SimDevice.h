//===- SimDevice.h - GPUs of NVIDIA, simulated ------------------*- C++ -*-===//
#pragma once

#include "Launch.h"
#include "clock/ClockReport.h"
#include "runtime/devices/common/SimulatedDevice.h"
#include "runtime/devices/cuda/CudaImage.h"

namespace dmxrt {
const DeviceKind &cudaSimDevice();
} // namespace dmxrt

namespace dmxrt::cuda {

/// Runs kernels' PTX and checks every access.
class SimDevice final : public sim::SimulatedDevice {
public:
  static Result<std::unique_ptr<Device>> create(const DeviceOptions &options, std::span<const Setting> settings);
  static Result<std::shared_ptr<const CodeImage>> load(std::span<const std::byte> bytes);
  static Status check(std::span<const std::byte> bytes, int32_t &contracts);
  uint64_t scratchBytes() const override { return scratch.capacity(); }
  const char *machine() const override { return name.c_str(); }

private:
  explicit SimDevice(const DeviceOptions &options);
  Status prepareTask(const DeviceTask &task) override;
  RunOutcome runTask(const DeviceTask &task) override;
  void startRun() override;
  Status endRun() override;
  LaunchOutcome timed(Launch &launch, const DeviceTask &task);
  const Machine &gpu() const { return described ? *described : dmx::cuda::builtinMachine(); }
  bool report() const;
  void addRegions(const DeviceTask &task, const KernelLaunch &kernel, const ProgramModule &module);
  MemoryRegion &addRegion(MemoryRegion::Kind kind, const void *begin, uint64_t bytes);

  const std::byte *scratchBegin() const; ///< aligned

  std::string name = "simulator";
  uint64_t seed = 0;
  uint64_t mostSteps = kMostSteps;
  bool checks = true;
  uint32_t mostBlocks = 0; ///< of a launch that are run; 0: all
  std::string reportFile, traceFile;
  std::optional<Machine> described; ///< the GPU whose clock it is; nothing: the one that is built in
  std::vector<LaunchFigures> firstRun, lastRun;
  uint64_t runs = 0;
  double clocks = 0;              ///< of the run at hand
  sim::Trace trace;               ///< of the last run
  std::vector<std::byte> scratch; ///< of a launch's threads
  uint32_t statusWord = 0;
  Memory memory;
};

} // namespace dmxrt::cuda
