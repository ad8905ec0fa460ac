//===- CorsairDevice.h - a simulated Corsair-class card as a device -------===//
//
// Runs .dmxisa images (schemas/corsair/ISA.md) bit by bit, checks every access
// and tells what a run would cost on the machine that the image describes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Boundary.h"
#include "Report.h"
#include "runtime/devices/common/SimulatedDevice.h"

#include <map>
#include <set>

namespace dmxrt {
const DeviceKind &corsairDevice();
} // namespace dmxrt

namespace dmxrt::corsair {

/// A loaded image.
class CorsairImage final : public CodeImage {
public:
  static Result<std::shared_ptr<const CodeImage>> load(std::span<const std::byte> bytes);
  static Status check(std::span<const std::byte> bytes, int32_t &contracts);
  const void *findKernel(std::string_view name) const override;
  /// That the task's buffers are those the kernel was compiled for.
  Status checkTask(const DeviceTask &task) const override;

  /// What findKernel points at.
  struct Handle {
    const CorsairImage *image = nullptr;
    const isa::Kernel *kernel = nullptr;
  };
  isa::Image image;
  std::vector<Stream> streams;
  std::vector<Handle> handles;
};

class CorsairDevice final : public sim::SimulatedDevice {
public:
  static constexpr SettingSpec kSettings[] = {{"hazards", "0|1", 1},
                                              {"skew_seed", "N", UINT64_MAX},
                                              {"report", "FILE"},
                                              {"strict_range", "0|1", 1},
                                              {"trace", "FILE"}};
  static Result<std::unique_ptr<Device>> create(const DeviceOptions &options, std::span<const Setting> settings);
  ~CorsairDevice() override;

  void release(void *memory, uint64_t size) override;
  void clear(void *memory, uint64_t size) override;
  void startRun() override { lastRun.clear(); }
  Status endRun() override;
  const char *remarks() const override { return saturation.c_str(); }
  uint32_t threads() const override { return options.threads; }

private:
  explicit CorsairDevice(const DeviceOptions &options);
  Status prepareTask(const DeviceTask &task) override;
  RunOutcome runTask(const DeviceTask &task) override;
  Status configure(const DeviceOptions &options, std::span<const Setting> settings);
  Status reserve(const isa::Image &image);
  std::optional<Fault> dispatch(const DeviceTask &task);
  std::optional<Fault> initialize(const DeviceTask &task, const CorsairImage::Handle &handle, KernelRun &report);
  std::optional<Fault> runProgram(const CorsairImage::Handle &handle, const isa::Program &program,
                                  const DeviceTask &task, RunResult &result);
  std::optional<Fault> prepareState(const isa::Argument &argument, const void *buffer);

  RunOptions options;
  std::string reportFile, tracePath;
  const isa::Image *image = nullptr; ///< of the tasks
  std::unique_ptr<Storage> storage;
  std::unique_ptr<Card> card;
  std::set<const isa::Kernel *> initialized;
  /// States that hold what runs left in them: the host's buffer and where the pieces lie.
  std::map<const void *, std::vector<isa::Piece>> states;
  std::vector<KernelRun> firstRun, lastRun; ///< all dispatches of a run
  uint64_t runs = 0;                        ///< those that came to their end
  std::string saturation;                   ///< of the last run
  bool strictRange = false;                 ///< saturation is an error
};

} // namespace dmxrt::corsair
