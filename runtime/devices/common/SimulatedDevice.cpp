//===- SimulatedDevice.cpp - a device that the caller's thread plays ------===//
#include "SimulatedDevice.h"

#include <algorithm>
#include <cstring>

namespace dmxrt::sim {

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
