//===- CpuPlan.h - which thread does which part of a task -------*- C++ -*-===//
#pragma once

#include "runtime/devices/Device.h"

#include <cstdint>
#include <span>
#include <vector>

namespace dmxrt {

/// One part of one task on one thread.
struct CpuStep {
  uint32_t task = 0;
  uint32_t firstWait = 0, waitCount = 0; // tasks to wait for, in CpuLanePlan::waits
  int64_t begin = 0, end = 0;            // work items, or bytes of a copy
  bool spare = false;                    // for whichever thread is done with its part of the task first
  uint32_t thread = 0;                   // that did it in the last run, and when, while profiling
  uint64_t startNs = 0, endNs = 0;
};

/// What one thread does in a segment, in order, or others for it while it does not come to it: a step waits for all
/// that must be done before it, be it that earlier steps of the lane did so.
struct CpuLanePlan {
  std::vector<CpuStep> steps;
  std::vector<uint32_t> waits;
  std::vector<uint32_t> stageEnds; // staged only: steps up to the end of each stage
};

/// A static split of a segment over threads. Work ranges are halved, thirded,
/// ... in equal parts, the last half of a long share in spare steps (measured no worse than handing out small pieces
/// where CPUs are equally fast, and better where they are not), tasks too small
/// for all threads go where a simulated clock says they can start first, so that
/// independent branches overlap.
struct CpuPlan {
  std::vector<CpuLanePlan> lanes;
  std::vector<uint32_t> slices; // per task of the segment
  /// Tasks of one stage do not depend on each other; for executors whose
  /// threads must not wait for each other.
  uint32_t stageCount = 0;
};

/// Tasks keep their numbers in `tasks`; those before the segment are done when it starts.
/// `staged` orders steps by stage instead of by task and fills stageEnds.
CpuPlan planTasks(std::span<const DeviceTask> tasks, Segment segment, uint32_t threads, bool staged);

} // namespace dmxrt
