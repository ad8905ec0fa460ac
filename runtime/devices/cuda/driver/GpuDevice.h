//===- GpuDevice.h - runs kernels on a GPU ----------------------*- C++ -*-===//
#pragma once

#include "EncodedMap.h"
#include "GpuCode.h"
#include "GpuPlan.h"
#include "runtime/devices/common/HostMemoryDevice.h"

namespace dmxrt::cuda {

/// What a program asks of the GPU's memory.
struct Needs {
  BlockNeeds blocks;
  uint64_t scratch = 0, reportWords = 0;
};

/// Launches a task's kernel after the other on one stream.
class GpuDevice final : public HostMemoryDevice {
public:
  /// `blocking`: waits for each task, so that a fault is the right one's.
  static Result<std::unique_ptr<Device>> create(const DeviceOptions &options, std::shared_ptr<Gpu> gpu, bool blocking);
  ~GpuDevice() override;

  Result<std::shared_ptr<const CodeImage>> loadCode(std::span<const std::byte> bytes) override;
  void clear(void *memory, uint64_t size) override;
  void setProgramCount(uint32_t count) override { programs.resize(count); }
  void selectProgram(uint32_t program) override { selected = program; }
  Status prepare(std::span<const DeviceTask> tasks, std::span<const Segment> segments) override;
  void enqueue(uint32_t segment) override;
  RunOutcome fence() override;
  uint64_t scratchBytes() const override { return scratch ? scratch->bytes : 0; }
  const char *machine() const override { return called.c_str(); }
  void setProfiling(bool on) override { profiling = on; }
  void takeSlices(std::vector<TaskSlice> &out) const override;

private:
  /// A task, with all that does not change from run to run.
  struct Step {
    uint32_t task = 0;
    FunctionHandle function = nullptr; ///< null: a copy, `words` are to, from
    uint32_t blocks = 0, threads = 0;
    uint64_t bytes = 0;           ///< of a copy
    bool overlaps = false;        ///< a copy between bytes of which some are the same
    uint32_t shared = 0;          ///< bytes that the launch gives a block
    std::vector<uint64_t> words;  ///< the kernel's parameters but the last ones (Tail)
    std::vector<EncodedMap> maps; ///< behind those
    uint64_t share = 0;           ///< scratch of a thread
    uint32_t firstResult = 0;     ///< among the segment's
    bool returns = false;         ///< values
  };
  struct Part {
    SegmentPlan plan;
    std::vector<Step> steps;
  };
  struct Program {
    std::span<const DeviceTask> tasks;
    std::vector<Part> parts;
  };
  /// What a block of host memory has on the GPU.
  struct Twin {
    std::shared_ptr<GpuMemory> memory;
    const std::byte *host = nullptr; ///< of a State
    bool isZero = true;              ///< of a State: what it should have; false: it has what runs left in it
  };

  GpuDevice(const DeviceOptions &options, std::shared_ptr<Gpu> gpu, bool blocking);
  Status open();
  Status makePart(std::span<const DeviceTask> tasks, Segment segment, Part &part, Needs &needs);
  Result<Step> makeStep(const DeviceTask &task);
  Status makeRoom(const Needs &needs);
  Status checkRoom(const Needs &needs) const;
  Status growTwin(const void *block, const BlockNeed &need);
  Status fillWords(const DeviceTask &task, Step &step) const;
  Status fillMaps(const DeviceTask &task, Step &step) const;
  Status compile(const CudaImage &image, std::shared_ptr<const GpuCode> &code);
  uint64_t addressOf(const DeviceTask &task, size_t buffer) const;
  uint64_t statusAddress(const Part &part, size_t step) const {
    return report->address + 8 * part.plan.results + 4 * step;
  }

  const Part &part() const { return programs[selected].parts[current]; }
  DriverCode begin();
  DriverCode start(size_t number);
  DriverCode launch(const Step &step, size_t number);
  DriverCode move(const Step &step);
  DriverCode finish();
  DriverCode clearStates();
  DriverCode copyToGpu(const BorderCopy &copy);
  DriverCode copyToHost(const BorderCopy &copy);
  DriverCode mark(size_t event);
  RunOutcome fault() const;
  RunOutcome readReport() const;
  void measure();

  const std::shared_ptr<Gpu> gpu;
  const bool blocking;
  std::string called;
  StreamHandle stream = nullptr;
  std::map<const CudaImage *, std::shared_ptr<const GpuCode>> codes;
  std::map<const void *, Twin> twins; ///< by BufferHome::block
  std::shared_ptr<GpuMemory> scratch;
  /// Of a segment: values that kernels return, then the status word of each step; on both sides.
  std::shared_ptr<GpuMemory> report;
  std::vector<uint64_t> reportWords;

  std::vector<Program> programs{1};
  uint32_t selected = 0; ///< program
  uint32_t current = 0;  ///< the segment that was started last
  DriverCode failed = 0; ///< while it was
  size_t failedStep = 0; ///< its number; all of them: not known
  bool profiling = false;
  std::vector<EventHandle> events;
  std::vector<TaskSlice> slices;
  std::vector<void *> parameters; ///< of a launch
};

} // namespace dmxrt::cuda
