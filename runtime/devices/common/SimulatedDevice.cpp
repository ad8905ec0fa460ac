//===- SimulatedDevice.cpp - a device that the caller's thread plays ------===//
#include "SimulatedDevice.h"

#include "runtime/bundle/Manifest.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace dmxrt::sim {
namespace {

void *defaultAllocate(void *, size_t size, size_t alignment) {
  size_t rounded = (size + alignment - 1) / alignment * alignment;
  return rounded < size ? nullptr : std::aligned_alloc(alignment, rounded);
}
void defaultRelease(void *, void *memory, size_t) { std::free(memory); }

} // namespace

SimulatedDevice::SimulatedDevice(const DeviceKind &kind, const dmx_allocator *given)
    : kind(kind), allocator(given ? *given : dmx_allocator{nullptr, defaultAllocate, defaultRelease}) {}

Result<const TargetCode *> SimulatedDevice::selectCode(std::span<const TargetCode> codes, std::string_view isa) const {
  std::string have;
  for (const TargetCode &code : codes) {
    if (code.target != kind.target)
      continue;
    if (isa.empty() || code.arch == isa)
      return &code;
    have += cat(have.empty() ? "" : ", ", code.arch);
  }
  if (have.empty())
    return fail(DMX_STATUS_UNSUPPORTED, "the bundle has no code for target '", kind.target,
                "'; compile the model with -t ", kind.target);
  return fail(DMX_STATUS_UNSUPPORTED, "the bundle has no ", kind.target, " code for machine '", isa,
              "'; it has: ", have);
}

Result<void *> SimulatedDevice::allocate(uint64_t size) {
  // The device's memory is laid out by the compiler; this is the host's side of it.
  void *memory = size > uint64_t(1) << 46 ? nullptr : allocator.allocate(allocator.user, size, 64);
  if (!memory)
    return fail(DMX_STATUS_OUT_OF_MEMORY, "cannot allocate ", size, " bytes");
  if (reinterpret_cast<uintptr_t>(memory) % 64) {
    allocator.release(allocator.user, memory, size);
    return fail(DMX_STATUS_INVALID_ARGUMENT, "the caller's allocator returned memory that is not 64-byte aligned");
  }
  return memory;
}

void SimulatedDevice::release(void *memory, uint64_t size) { allocator.release(allocator.user, memory, size); }

void SimulatedDevice::copy(void *destination, const void *source, uint64_t size) {
  if (size)
    std::memcpy(destination, source, size);
}

Status SimulatedDevice::prepare(std::span<const DeviceTask> tasks, std::span<const Segment> segments) {
  programs[selected] = {tasks, segments};
  size_t longest = slices.capacity();
  for (Segment segment : segments) {
    longest = std::max<size_t>(longest, segment.end - segment.begin);
    for (const DeviceTask &task : tasks.subspan(segment.begin, segment.end - segment.begin))
      if (task.kernel)
        if (Status status = prepareTask(task); !status)
          return status;
  }
  slices.reserve(longest);
  return {};
}

RunOutcome SimulatedDevice::fence() {
  slices.clear();
  const Plan &plan = programs[selected];
  for (uint32_t i = plan.segments[current].begin; i < plan.segments[current].end; ++i) {
    const DeviceTask &task = plan.tasks[i];
    uint64_t start = profiling ? nowNs() : 0;
    if (!task.kernel) {
      std::memmove(static_cast<std::byte *>(task.buffers[1]) + task.dstOffset,
                   static_cast<const std::byte *>(task.buffers[0]) + task.srcOffset, static_cast<size_t>(task.work));
    } else if (RunOutcome outcome = runTask(task); outcome.code) {
      outcome.task = i;
      return outcome;
    }
    if (profiling && task.work) // as on the CPU, an empty task takes no time
      slices.push_back({i, 0, start, nowNs()});
  }
  return {};
}

void SimulatedDevice::takeSlices(std::vector<TaskSlice> &out) const {
  out.insert(out.end(), slices.begin(), slices.end());
}

} // namespace dmxrt::sim
