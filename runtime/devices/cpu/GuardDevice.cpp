//===- GuardDevice.cpp - kernels beside inaccessible pages ----------------===//

#include "GuardDevice.h"
#include "GuardedTask.h"

#include <algorithm>

namespace dmxrt {

RunOutcome GuardDevice::fence() {
  RunOutcome outcome = CpuDevice::fence();
  if (outcome.code == kDeviceFault)
    outcome.detail = problem;
  return outcome;
}

/// Task by task: a lane's steps ascend, as the plan is not staged.
void GuardDevice::runAlone() {
  std::vector<std::span<CpuStep>> left(threadCount);
  for (uint32_t i = 0; i < threadCount; ++i)
    left[i] = lanes[i].plan->steps;
  while (failure.load() == kNoFailure) {
    uint32_t task = UINT32_MAX;
    for (std::span<CpuStep> steps : left)
      task = steps.empty() ? task : std::min(task, steps.front().task);
    if (task == UINT32_MAX)
      return;
    std::vector<std::span<CpuStep>> parts;
    for (std::span<CpuStep> &steps : left) {
      size_t count = 0;
      while (count < steps.size() && steps[count].task == task)
        ++count;
      parts.push_back(steps.first(count));
      steps = steps.subspan(count);
    }
    runTask(task, parts);
  }
}

void GuardDevice::runTask(uint32_t number, std::span<const std::span<CpuStep>> parts) {
  const DeviceTask &task = program->tasks[number];
  if (!task.kernel) { // its bounds were checked when the graph was laid out
    for (std::span<CpuStep> steps : parts)
      for (CpuStep &step : steps)
        runStep(step, lanes[0]);
    return;
  }
  for (uint64_t alignment : {uint64_t(1), GuardedTask::kAbiAlignment}) {
    GuardedTask guarded(task, side, alignment);
    int32_t code = 0;
    for (size_t lane = parts.size(); lane-- > 0 && code == 0;) {
      GuardedTask::Thread thread = guarded.makeThread();
      for (CpuStep &step : parts[lane]) {
        if (step.begin == step.end || code != 0)
          continue;
        step.thread = static_cast<uint32_t>(lane);
        step.startNs = profiling ? nowNs() : 0;
        code = guarded.call(thread, step.begin, step.end);
        step.endNs = profiling ? nowNs() : 0;
      }
      code = code ? code : guarded.check(thread);
    }
    if (guarded.misaligned && alignment == 1)
      continue;
    if (code == 0)
      return guarded.copyOut();
    problem = guarded.problem();
    return recordFailure(number, code);
  }
}

} // namespace dmxrt
