//===- CorsairDevice.h - a simulated Corsair-class card as a device -------===//
//
// Runs .dmxisa images (schemas/corsair/ISA.md) bit by bit, checks every access
// and tells what a run would cost on the machine that the image describes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "../Device.h"
#include "Boundary.h"
#include "Report.h"

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

class CorsairDevice final : public Device {
public:
  static constexpr SettingSpec kSettings[] = {
      {"hazards", "0|1", 1}, {"skew_seed", "N", UINT64_MAX}, {"report", "FILE"}, {"trace", "FILE"}};
  static Result<std::unique_ptr<Device>> create(const DeviceOptions &options, std::span<const Setting> settings);
  ~CorsairDevice() override;

  Result<const TargetCode *> selectCode(std::span<const TargetCode> codes, std::string_view isa) const override;
  Result<std::shared_ptr<const CodeImage>> loadCode(std::span<const std::byte> bytes) override;
  Result<void *> allocate(uint64_t size) override;
  void release(void *memory, uint64_t size) override;
  void copy(void *destination, const void *source, uint64_t size) override;
  void clear(void *memory, uint64_t size) override;
  void setProgramCount(uint32_t count) override { programs.resize(count); }
  void selectProgram(uint32_t program) override { selected = program; }
  void startRun() override { lastRun.clear(); }
  Status endRun() override;
  Status prepare(std::span<const DeviceTask> tasks, std::span<const Segment> segments) override;
  void enqueue(uint32_t segment) override;
  RunOutcome fence() override;
  uint32_t threads() const override { return options.threads; }
  uint64_t scratchBytes() const override { return 0; }
  uint32_t sliceCount(uint32_t) const override { return 1; }
  void setProfiling(bool on) override { profiling = on; }
  void takeSlices(std::vector<TaskSlice> &out) const override;

private:
  CorsairDevice() = default;
  Status configure(const DeviceOptions &options, std::span<const Setting> settings);
  Status reserve(const isa::Image &image);
  std::optional<Fault> dispatch(const DeviceTask &task);
  std::optional<Fault> initialize(const DeviceTask &task, const CorsairImage::Handle &handle, KernelRun &report);
  std::optional<Fault> runProgram(const CorsairImage::Handle &handle, const isa::Program &program,
                                  const DeviceTask &task, RunResult &result);
  std::optional<Fault> prepareState(const isa::Argument &argument, const void *buffer);

  RunOptions options;
  std::string reportFile, tracePath;
  dmx_allocator allocator{};
  /// What `prepare` got for one program.
  struct Plan {
    std::span<const DeviceTask> tasks;
    std::span<const Segment> segments;
  };
  std::vector<Plan> programs{1};
  uint32_t selected = 0;             ///< program
  uint32_t current = 0;              ///< the segment that was started last
  const isa::Image *image = nullptr; ///< of the tasks
  std::unique_ptr<Storage> storage;
  std::unique_ptr<Card> card;
  std::set<const isa::Kernel *> initialized;
  /// States that hold what runs left in them: the host's buffer and where the pieces lie.
  std::map<const void *, std::vector<isa::Piece>> states;
  std::vector<KernelRun> firstRun, lastRun; ///< all dispatches of a run
  uint64_t runs = 0;                        ///< those that came to their end
  bool profiling = false;
  std::vector<TaskSlice> slices;
};

} // namespace dmxrt::corsair
