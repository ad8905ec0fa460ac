//===- CpuDevice.h - the host CPU as a device -------------------*- C++ -*-===//
#pragma once

#include "CpuPlan.h"
#include "runtime/Futex.h"
#include "runtime/devices/Device.h"

#include <atomic>
#include <optional>
#include <pthread.h>

namespace dmxrt {

const DeviceKind &cpuDevice();

/// Runs kernels on the calling thread and, for more than one thread, on own
/// workers that live as long as the device, or on the caller's executor.
/// One session uses it at a time.
class CpuDevice : public Device {
public:
  static constexpr SettingSpec kSettings[] = {
      {"spin_us", "0..1000000", 1000000}, {"pin", "0|1", 1}, {"guard", "start|end"}};
  static Result<std::unique_ptr<Device>> create(const DeviceOptions &options, std::span<const Setting> settings);
  ~CpuDevice() override;

  Result<const TargetCode *> selectCode(std::span<const TargetCode> codes, std::string_view isa) const override;
  const char *betterLevel(std::span<const TargetCode> codes) const override;
  const char *machine() const override { return passedOver.c_str(); }
  Result<std::shared_ptr<const CodeImage>> loadCode(std::span<const std::byte> bytes) override;
  Result<void *> allocate(uint64_t size) override;
  void release(void *memory, uint64_t size) override;
  void copy(void *destination, const void *source, uint64_t size) override;
  void setProgramCount(uint32_t count) override;
  void selectProgram(uint32_t program) override {
    if (program != currentProgram)
      choose(program);
  }
  Status prepare(std::span<const DeviceTask> tasks, std::span<const Segment> segments) override;
  void enqueue(uint32_t segment) override;
  RunOutcome fence() override;
  uint32_t threads() const override { return threadCount; }
  uint64_t scratchBytes() const override { return scratchSize * threadCount; }
  uint32_t sliceCount(uint32_t task) const override { return program->slices[task - program->first]; }
  void setProfiling(bool on) override { profiling = on; }
  void takeSlices(std::vector<TaskSlice> &out) const override;

protected:
  /// One thread's part; lane 0 is the thread that calls fence. Padded so that
  /// lanes do not share cache lines.
  struct alignas(64) Lane {
    CpuLanePlan *plan = nullptr; // of the current segment
    std::byte *scratch = nullptr;
    CpuDevice *device = nullptr;
    uint32_t index = 0;
    pthread_t thread{};
    bool started = false;
    uint32_t lastTask = 0;                     // whose kernel used the scratch last in this run
    int64_t kept = -1;                         // of that kernel, see dmx_kernel_args
    Gate go;                                   // raised once for every start of a segment that has steps for this lane
    alignas(64) std::atomic<uint32_t> next{0}; // the first step that no thread has taken
  };
  /// What all lanes have in common in a segment.
  struct Part {
    uint32_t stageCount = 0;
    uint32_t activeWorkers = 0;
    uint32_t runs = 0; // since prepare, modulo 2^32; parts differ after a run that ended early
  };
  struct alignas(64) TaskGate {
    Gate gate; // raised by every slice that is done
  };
  /// A plan for the tasks from `first` on.
  struct Program {
    std::span<const DeviceTask> tasks; // the whole list
    uint32_t first = 0;
    std::vector<std::vector<CpuLanePlan>> plans; // per segment and lane
    std::vector<uint32_t> slices;                // per task
    std::unique_ptr<TaskGate[]> gates;           // per task
    std::vector<Part> parts;                     // per segment
    uint32_t current = 0;                        // the segment that was started last
  };

  CpuDevice() = default;
  /// Whether the parts of the plan run at the same time.
  virtual bool usesThreads() const { return true; }
  /// All steps of the segment, on this thread.
  virtual void runAlone();
  void runStep(CpuStep &step, Lane &runner);
  void recordFailure(uint32_t task, int32_t code);

private:
  Status configure(const DeviceOptions &options, std::span<const Setting> settings);
  Status startWorkers();
  Status growScratch(uint64_t needed);
  void choose(uint32_t number);
  void chooseSegment(uint32_t segment);
  void plan(Segment segment);
  void runSteps(Lane &lane, Lane &runner);
  void await(const Lane &lane, const CpuStep &step, Lane &runner);
  uint32_t patience() const;
  bool ready(const Lane &lane, const CpuStep &step) const;
  bool take(Lane &lane, uint32_t number, Lane &runner);
  bool help(Lane &runner, std::optional<uint32_t> spareOf = {});
  bool enter();
  void runStaged();
  static void *workerMain(void *lane);
  static void stageMain(void *device, uint32_t lane);

protected:
  uint32_t threadCount = 1;
  dmx_allocator allocator{};
  dmx_executor executor{};
  uint32_t spins = 0;
  bool pin = false, profiling = false;

  std::unique_ptr<Lane[]> lanes;
  std::vector<Program> programs{1};
  uint32_t currentProgram = 0;
  Program *program = &programs[0];
  Part *part = nullptr; // of the program's current segment
  uint32_t stage = 0;
  uint64_t scratchSize = 0; // a lane
  std::byte *scratch = nullptr;

  /// Workers take part in a segment from the moment they enter it; the door is shut when all steps are done. A worker
  /// that comes late finds it shut, and nobody waited for it.
  static constexpr uint32_t kOpen = uint32_t(1) << 31;
  alignas(64) std::atomic<uint32_t> door{0}; // kOpen and how many entered since it opened
  alignas(64) Gate finished;                 // raised by every worker that leaves
  uint32_t finishedTarget = 0;
  std::atomic<bool> stopping{false};
  mutable std::string passedOver; ///< why better code of the bundle was not chosen
  static constexpr uint64_t kNoFailure = UINT64_MAX;
  alignas(64) std::atomic<uint64_t> failure{kNoFailure}; // task << 32 | code; of several the lowest
};

} // namespace dmxrt
