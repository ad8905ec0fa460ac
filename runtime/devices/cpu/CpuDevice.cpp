//===- CpuDevice.cpp - the host CPU as a device ---------------------------===//

#include "CpuDevice.h"
#include "CpuFeatures.h"
#include "ElfImage.h"
#include "GuardDevice.h"
#include "runtime/devices/common/CpuCount.h"
#include "runtime/devices/common/HostMemory.h"

#include "schemas/BundleFormat.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

namespace dmxrt {
namespace {

/// Pages that arenas of some size are put on.
constexpr uint64_t kHugePage = uint64_t(2) << 20;

void *defaultAllocate(void *, size_t size, size_t alignment) {
  // Large arenas on huge pages: fewer TLB misses in every kernel.
  bool large = size >= 2 * kHugePage;
  if (large)
    alignment = std::max<size_t>(alignment, kHugePage);
  size_t rounded = (size + alignment - 1) / alignment * alignment;
  void *memory = rounded < size ? nullptr : std::aligned_alloc(alignment, rounded);
  if (memory && large)
    madvise(memory, rounded, MADV_HUGEPAGE);
  return memory;
}

void defaultRelease(void *, void *memory, size_t) { std::free(memory); }

/// How many `pause` instructions take `microseconds`.
uint32_t spinCount(uint32_t microseconds) {
  constexpr uint32_t kProbe = 700;
  // Measured once a process: it takes as long as much else that a small model's session needs. The least of three,
  // since the thread may be interrupted.
  static const uint64_t taken = [] {
    uint64_t least = UINT64_MAX;
    for (int repeat = 0; repeat < 3; ++repeat) {
      uint64_t start = nowNs();
      for (uint32_t i = 0; i < kProbe; ++i)
        cpuRelax();
      least = std::min(least, nowNs() - start);
    }
    return std::max<uint64_t>(least, kProbe);
  }();
  return static_cast<uint32_t>(std::min<uint64_t>(uint64_t(microseconds) * 1000 * kProbe / taken, 1u << 30));
}

} // namespace

Result<std::unique_ptr<Device>> CpuDevice::create(const DeviceOptions &options, std::span<const Setting> settings) {
  std::unique_ptr<CpuDevice> device;
  for (const Setting &setting : settings)
    if (setting.key == "guard")
      device = std::make_unique<GuardDevice>(setting.text == "end" ? GuardSide::End : GuardSide::Start);
  if (!device)
    device.reset(new CpuDevice);
  if (Status status = device->configure(options, settings); !status)
    return status.takeError();
  if (Status status = device->startWorkers(); !status)
    return status.takeError();
  return std::unique_ptr<Device>(std::move(device));
}

Status CpuDevice::configure(const DeviceOptions &options, std::span<const Setting> settings) {
  allocator = options.allocator ? *options.allocator : dmx_allocator{nullptr, defaultAllocate, defaultRelease};
  if (options.executor && usesThreads())
    executor = *options.executor;
  uint32_t spinUs = 50, cpus = options.threads == 1 ? 1 : defaultThreadCount(); // which reads files
  threadCount = options.threads ? options.threads : cpus;
  if (threadCount > 1024)
    return fail(DMX_STATUS_INVALID_ARGUMENT, "option threads is ", threadCount, "; at most 1024 are allowed");
  for (const Setting &setting : settings) {
    if (setting.key == "spin_us")
      spinUs = static_cast<uint32_t>(setting.number);
    else if (setting.key == "pin")
      pin = setting.number == 1;
  }
  // Spinning with more threads than CPUs keeps the others from running.
  if (threadCount > 1 && threadCount <= cpus)
    spins = spinCount(spinUs);
  return {};
}

Status CpuDevice::startWorkers() {
  lanes = std::make_unique<Lane[]>(threadCount);
  for (uint32_t i = 0; i < threadCount; ++i) {
    lanes[i].index = i;
    lanes[i].device = this;
  }
  if (executor.parallel || !usesThreads())
    return {};
  std::vector<uint32_t> cpus = pin ? allowedCpus() : std::vector<uint32_t>();
  // Signals stay with the program's own threads.
  sigset_t all, previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  int code = 0;
  uint32_t i = 1;
  for (; i < threadCount && code == 0; ++i) {
    code = pthread_create(&lanes[i].thread, nullptr, workerMain, &lanes[i]);
    lanes[i].started = code == 0;
    if (code != 0)
      break;
    pthread_setname_np(lanes[i].thread, cat("dmxrt-", i).c_str());
    if (!cpus.empty()) {
      cpu_set_t *set = CPU_ALLOC(1 << 20);
      if (set) {
        CPU_ZERO_S(CPU_ALLOC_SIZE(1 << 20), set);
        CPU_SET_S(cpus[i % cpus.size()], CPU_ALLOC_SIZE(1 << 20), set);
        code = pthread_setaffinity_np(lanes[i].thread, CPU_ALLOC_SIZE(1 << 20), set);
        CPU_FREE(set);
      }
    }
  }
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  if (code != 0)
    return fail(DMX_STATUS_OUT_OF_MEMORY, "cannot start thread ", i, " of ", threadCount, ": ",
                std::string_view(strerrorname_np(code) ? strerrorname_np(code) : "unknown error"),
                "; ask for fewer threads");
  return {};
}

CpuDevice::~CpuDevice() {
  stopping.store(true);
  for (uint32_t i = 1; lanes && i < threadCount; ++i)
    if (lanes[i].started) {
      lanes[i].go.raise();
      pthread_join(lanes[i].thread, nullptr);
    }
  if (scratch)
    CpuDevice::release(scratch, scratchSize * threadCount); // a destructor calls no override
}

Result<const TargetCode *> CpuDevice::selectCode(std::span<const TargetCode> codes, std::string_view isa) const {
  return selectCpuCode(codes, isa, {}, passedOver);
}

const char *CpuDevice::betterLevel(std::span<const TargetCode> codes) const { return betterCpuLevel(codes); }

Result<std::shared_ptr<const CodeImage>> CpuDevice::loadCode(std::span<const std::byte> bytes) {
  auto image = ElfImage::load(bytes);
  if (image)
    if (Status status = checkCpuLevel(static_cast<const ElfImage &>(**image).level()); !status)
      return status.takeError();
  return image;
}

Result<void *> CpuDevice::allocate(uint64_t size) {
  // Overcommitted memory would be granted here and end the process when it is touched.
  uint64_t physical = uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE));
  if (allocator.allocate == defaultAllocate && size > physical)
    return fail(DMX_STATUS_OUT_OF_MEMORY, "cannot allocate ", size, " bytes, the machine has ", physical);
  return allocateHostMemory(allocator, size);
}

void CpuDevice::release(void *memory, uint64_t size) { allocator.release(allocator.user, memory, size); }

void CpuDevice::copy(void *destination, const void *source, uint64_t size) {
  copyHostMemory(destination, source, size);
}

Status CpuDevice::growScratch(uint64_t needed) {
  if (needed <= scratchSize)
    return {};
  if (scratch)
    release(scratch, scratchSize * threadCount);
  scratch = nullptr;
  scratchSize = 0;
  auto memory = allocate(needed * threadCount);
  if (!memory)
    return within("scratch of the threads", memory.takeError());
  scratch = static_cast<std::byte *>(*memory);
  scratchSize = needed;
  return {};
}

void CpuDevice::setProgramCount(uint32_t count) {
  programs.resize(count);
  choose(0);
}

Status CpuDevice::prepare(std::span<const DeviceTask> list, std::span<const Segment> segments) {
  program->tasks = list;
  program->first = segments.empty() ? 0 : segments.front().begin;
  uint64_t needed = 0;
  for (Segment segment : segments)
    for (const DeviceTask &task : list.subspan(segment.begin, segment.end - segment.begin))
      needed = std::max(needed, (task.scratch + 63) / 64 * 64);
  if (Status status = growScratch(needed); !status)
    return status;
  for (uint32_t i = 0; i < threadCount; ++i)
    lanes[i].scratch = scratch ? scratch + i * scratchSize : nullptr;
  size_t count = segments.empty() ? 0 : segments.back().end - program->first;
  program->slices.assign(count, 0);
  program->gates = std::make_unique<TaskGate[]>(count);
  program->plans.clear();
  program->parts.clear();
  for (Segment segment : segments)
    plan(segment);
  if (!segments.empty())
    chooseSegment(0);
  return {};
}

void CpuDevice::plan(Segment segment) {
  CpuPlan made = planTasks(program->tasks, segment, threadCount, executor.parallel != nullptr);
  std::copy(made.slices.begin(), made.slices.end(), program->slices.begin() + (segment.begin - program->first));
  Part next;
  next.stageCount = made.stageCount;
  for (uint32_t i = 1; i < threadCount; ++i)
    next.activeWorkers += usesThreads() && !made.lanes[i].steps.empty();
  program->plans.push_back(std::move(made.lanes));
  program->parts.push_back(next);
}

void CpuDevice::choose(uint32_t number) {
  currentProgram = number;
  program = &programs[number];
  if (!program->parts.empty())
    chooseSegment(program->current);
}

void CpuDevice::chooseSegment(uint32_t segment) {
  program->current = segment;
  part = &program->parts[segment];
  for (uint32_t i = 0; i < threadCount; ++i)
    lanes[i].plan = &program->plans[segment][i];
}

void CpuDevice::takeSlices(std::vector<TaskSlice> &out) const {
  for (uint32_t i = 0; i < threadCount; ++i)
    for (const CpuStep &step : lanes[i].plan->steps)
      if (step.endNs)
        out.push_back({step.task, step.thread, step.startNs, step.endNs});
}

const DeviceKind &cpuDevice() {
  static constexpr DeviceKind kind{
      dmx::format::kHostTarget, /*runsOnHost=*/true, CpuDevice::kSettings, CpuDevice::create,
      ElfImage::check,          ElfImage::inspect,   selectCpuCode};
  return kind;
}

} // namespace dmxrt
