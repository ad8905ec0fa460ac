//===- CpuDeviceRun.cpp - how threads run a plan --------------------------===//
//
// Every thread walks the steps of its lane. Steps are taken one by one, and threads that would wait take those of
// others that these have not come to: of a worker that the system has not woken yet, or that another program keeps from
// its CPU. The caller of fence needs no worker to get to the end.
//
//===----------------------------------------------------------------------===//

#include "CpuDevice.h"

#include "dmx/dmx_kernel.h"

#include <cstring>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace dmxrt {
namespace {

/// Kernels are compiled for the default floating-point environment; a caller
/// that flushes denormals or traps must not change results.
class DefaultFloatEnvironment {
public:
#if defined(__x86_64__)
  DefaultFloatEnvironment() : saved(_mm_getcsr()) { _mm_setcsr(0x1F80); }
  ~DefaultFloatEnvironment() { _mm_setcsr(saved); }

private:
  unsigned saved;
#endif
};

} // namespace

void CpuDevice::runStep(CpuStep &step, Lane &runner) {
  const DeviceTask &task = program->tasks[step.task];
  // What precedes the failed task still runs: it may fail too, and then it is the one to report.
  if (step.begin == step.end || failure.load(std::memory_order_relaxed) >> 32 < step.task)
    return;
  if (profiling) {
    step.thread = runner.index;
    step.startNs = nowNs();
  }
  if (task.kernel) {
    if (runner.lastTask != step.task)
      runner.lastTask = step.task, runner.kept = -1;
    dmx_kernel_args args{task.buffers, task.dims,   step.begin, step.end, task.scratch ? runner.scratch : nullptr,
                         task.results, &runner.kept};
    int32_t code = reinterpret_cast<dmx_kernel_fn>(const_cast<void *>(task.kernel))(&args);
    if (code != DMX_KERNEL_OK) [[unlikely]]
      recordFailure(step.task, code);
  } else {
    std::memmove(static_cast<std::byte *>(task.buffers[1]) + task.dstOffset + step.begin,
                 static_cast<const std::byte *>(task.buffers[0]) + task.srcOffset + step.begin,
                 static_cast<size_t>(step.end - step.begin));
  }
  if (profiling)
    step.endNs = nowNs();
}

/// Of several, the first one in the order of the tasks counts, whichever thread comes first.
void CpuDevice::recordFailure(uint32_t task, int32_t code) {
  uint64_t mine = uint64_t(task) << 32 | static_cast<uint32_t>(code), first = failure.load();
  while (mine < first && !failure.compare_exchange_weak(first, mine))
    ;
}

/// One thread and no gates: a plain loop.
void CpuDevice::runAlone() {
  for (CpuStep &step : lanes[0].plan->steps)
    runStep(step, lanes[0]);
}

/// Whether all that the step waits for is done.
bool CpuDevice::ready(const Lane &lane, const CpuStep &step) const {
  for (uint32_t i = 0; i < step.waitCount; ++i) {
    uint32_t dep = lane.plan->waits[step.firstWait + i] - program->first;
    if (!program->gates[dep].gate.has(part->runs * program->slices[dep]))
      return false;
  }
  return true;
}

/// How long to leave a step to its own thread: not at all while a worker has not come.
uint32_t CpuDevice::patience() const {
  return (door.load(std::memory_order_relaxed) & ~kOpen) < part->activeWorkers ? 0 : spins;
}

/// Waits until it is. The time is used for spare steps of what it waits for, and after some spinning for any that
/// others have not come to.
void CpuDevice::await(const Lane &lane, const CpuStep &step, Lane &runner) {
  for (uint32_t i = 0; i < step.waitCount; ++i) {
    uint32_t task = lane.plan->waits[step.firstWait + i], dep = task - program->first;
    Gate &gate = program->gates[dep].gate;
    uint32_t target = part->runs * program->slices[dep];
    while (!gate.has(target) && help(runner, task))
      ;
    if (gate.spinFor(target, patience()))
      continue;
    while (!gate.has(target))
      if (!help(runner))
        gate.waitFor(target, 0);
  }
}

/// Runs a step that is ready, unless another thread took it.
bool CpuDevice::take(Lane &lane, uint32_t number, Lane &runner) {
  if (!lane.next.compare_exchange_strong(number, number + 1, std::memory_order_acq_rel))
    return false;
  CpuStep &step = lane.plan->steps[number];
  runStep(step, runner);
  program->gates[step.task - program->first].gate.raise();
  return true;
}

/// Runs one step of another lane, if there is one that its own thread has not come to; of a given task only spare ones.
bool CpuDevice::help(Lane &runner, std::optional<uint32_t> spareOf) {
  for (uint32_t i = 0; i < threadCount; ++i) {
    Lane &lane = lanes[i];
    if (&lane == &runner)
      continue;
    // Who loses a step to another thread looks at the next one: this may be all that is left to do for a long time.
    for (uint32_t number; (number = lane.next.load(std::memory_order_acquire)) < lane.plan->steps.size();) {
      const CpuStep &step = lane.plan->steps[number];
      bool wanted = !spareOf || (step.spare && step.task == *spareOf);
      if (!wanted || !ready(lane, step))
        break;
      if (take(lane, number, runner))
        return true;
    }
  }
  return false;
}

/// All steps of a lane that nobody has taken, in order. A step is taken when it is ready, so that whoever waits for it
/// holds up nobody; and another's step is left to its thread for a while.
void CpuDevice::runSteps(Lane &lane, Lane &runner) {
  std::vector<CpuStep> &steps = lane.plan->steps;
  for (uint32_t number; (number = lane.next.load(std::memory_order_acquire)) < steps.size();) {
    await(lane, steps[number], runner);
    for (uint32_t i = &lane == &runner ? 0 : patience(); i > 0 && lane.next.load(std::memory_order_relaxed) == number;
         --i)
      cpuRelax();
    take(lane, number, runner);
  }
}

/// Whether a segment is running; if so, it does not end before this worker has left.
bool CpuDevice::enter() {
  uint32_t state = door.load(std::memory_order_relaxed);
  while (state & kOpen)
    if (door.compare_exchange_weak(state, state + 1, std::memory_order_acquire, std::memory_order_relaxed))
      return true;
  return false;
}

void *CpuDevice::workerMain(void *argument) {
  Lane &lane = *static_cast<Lane *>(argument);
  CpuDevice &device = *lane.device;
  DefaultFloatEnvironment environment;
  for (uint32_t seen = 0;;) {
    lane.go.waitFor(seen + 1, device.spins);
    seen = lane.go.value();
    if (device.stopping.load())
      return nullptr;
    if (!device.enter())
      continue;
    device.runSteps(lane, lane);
    device.finished.raise();
  }
}

void CpuDevice::stageMain(void *argument, uint32_t index) {
  CpuDevice &device = *static_cast<CpuDevice *>(argument);
  DefaultFloatEnvironment environment;
  Lane &lane = device.lanes[index];
  uint32_t begin = device.stage ? lane.plan->stageEnds[device.stage - 1] : 0;
  for (uint32_t i = begin; i < lane.plan->stageEnds[device.stage]; ++i)
    device.runStep(lane.plan->steps[i], lane);
}

void CpuDevice::runStaged() {
  for (stage = 0; stage < part->stageCount; ++stage) {
    bool wide = false;
    for (uint32_t i = 1; i < threadCount && !wide; ++i) {
      const std::vector<uint32_t> &ends = lanes[i].plan->stageEnds;
      wide = ends[stage] != (stage ? ends[stage - 1] : 0);
    }
    if (wide)
      executor.parallel(executor.user, threadCount, stageMain, this);
    else
      stageMain(this, 0);
  }
}

void CpuDevice::enqueue(uint32_t segment) {
  failure.store(kNoFailure, std::memory_order_relaxed);
  if (segment != program->current)
    chooseSegment(segment);
  ++part->runs;
  for (uint32_t i = 0; i < threadCount; ++i)
    lanes[i].lastTask = UINT32_MAX;
  if (profiling)
    for (uint32_t i = 0; i < threadCount; ++i)
      for (CpuStep &step : lanes[i].plan->steps)
        step.startNs = step.endNs = 0;
  if (executor.parallel || part->activeWorkers == 0)
    return;
  for (uint32_t i = 0; i < threadCount; ++i)
    lanes[i].next.store(0, std::memory_order_relaxed);
  door.store(kOpen, std::memory_order_release);
  for (uint32_t i = 1; i < threadCount; ++i)
    if (!lanes[i].plan->steps.empty())
      lanes[i].go.raise();
}

RunOutcome CpuDevice::fence() {
  if (executor.parallel) {
    runStaged();
  } else if (part->activeWorkers == 0) {
    DefaultFloatEnvironment environment;
    runAlone();
  } else {
    DefaultFloatEnvironment environment;
    for (uint32_t i = 0; i < threadCount; ++i)
      runSteps(lanes[i], lanes[0]);
    finishedTarget += door.exchange(0, std::memory_order_acq_rel) - kOpen;
    finished.waitFor(finishedTarget, spins);
  }
  uint64_t failed = failure.load(std::memory_order_relaxed);
  if (failed == kNoFailure)
    return {};
  return {static_cast<int32_t>(static_cast<uint32_t>(failed)), static_cast<uint32_t>(failed >> 32)};
}

} // namespace dmxrt
