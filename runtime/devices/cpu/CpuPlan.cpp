//===- CpuPlan.cpp - which thread does which part of a task ---------------===//

#include "CpuPlan.h"

#include <algorithm>
#include <numeric>

namespace dmxrt {
namespace {

/// Estimated cost of starting on another thread than the one that produced the
/// operands: the gate plus cold caches. Below it, overlap does not pay.
constexpr double kHopNs = 1500;

/// What a share of a task is to take, at least, for its last half to be cut in spare steps.
constexpr double kSplitNs = 2e6;
constexpr int64_t kSpareSteps = 4;

/// Numbers tasks from the segment's begin; steps and waits get the numbers of the whole list.
class Planner {
public:
  Planner(std::span<const DeviceTask> list, Segment segment, uint32_t threads)
      : first(segment.begin), tasks(list.subspan(first, segment.end - first)), threads(threads), clock(threads),
        ended(tasks.size()), lanesOf(tasks.size()), stageOf(tasks.size()), waited(size_t(threads) * tasks.size()) {
    plan.lanes.resize(threads);
    plan.slices.resize(tasks.size());
  }

  CpuPlan run(bool staged) {
    sparing = threads > 1 && !staged;
    for (uint32_t i = 0; i < tasks.size(); ++i)
      place(i);
    if (staged)
      sortByStage();
    return std::move(plan);
  }

private:
  uint32_t first;
  std::span<const DeviceTask> tasks;
  uint32_t threads;
  bool sparing = false; // threads take steps of others
  CpuPlan plan;
  std::vector<uint32_t> deps;                 // of the task that is placed, in the segment
  std::vector<double> clock, ended;           // per thread, per task
  std::vector<std::vector<uint32_t>> lanesOf; // per task, ascending
  std::vector<uint32_t> stageOf;
  std::vector<bool> waited; // [lane][task]: an earlier step of the lane waits for it

  void place(uint32_t index);
  void chooseLanes(uint32_t index, uint32_t count);
  void addShare(uint32_t lane, uint32_t index, int64_t begin, int64_t end, double costNs);
  void addStep(uint32_t lane, uint32_t index, int64_t begin, int64_t end, bool spare);
  void sortByStage();
};

void Planner::chooseLanes(uint32_t index, uint32_t count) {
  std::vector<uint32_t> &lanes = lanesOf[index];
  lanes.resize(threads);
  std::iota(lanes.begin(), lanes.end(), 0);
  if (count == threads)
    return;
  double ready = 0;
  for (uint32_t dep : deps)
    ready = std::max(ready, ended[dep]);
  std::vector<double> start(threads);
  for (uint32_t lane = 0; lane < threads; ++lane) {
    bool local = deps.empty();
    for (uint32_t dep : deps)
      local |= std::binary_search(lanesOf[dep].begin(), lanesOf[dep].end(), lane);
    start[lane] = std::max(clock[lane], ready + (local ? 0 : kHopNs));
  }
  std::stable_sort(lanes.begin(), lanes.end(), [&](uint32_t a, uint32_t b) { return start[a] < start[b]; });
  lanes.resize(count);
  std::sort(lanes.begin(), lanes.end());
}

void Planner::addShare(uint32_t lane, uint32_t index, int64_t begin, int64_t end, double costNs) {
  // Of whole grains: kernels may prepare something for all items of a step, which a grain pays for.
  int64_t grain = std::max<int64_t>(tasks[index].grain, 1), half = (end - begin) / 2 / grain;
  int64_t steps = sparing && costNs >= kSplitNs ? std::min(half, kSpareSteps) : 0;
  int64_t items = steps ? half / steps * grain : 0, own = end - steps * items;
  addStep(lane, index, begin, own, false);
  for (int64_t at = own; at < end; at += items)
    addStep(lane, index, at, at + items, true);
}

void Planner::addStep(uint32_t lane, uint32_t index, int64_t begin, int64_t end, bool spare) {
  ++plan.slices[index];
  CpuLanePlan &out = plan.lanes[lane];
  CpuStep step;
  step.task = first + index;
  step.begin = begin;
  step.end = end;
  step.spare = spare;
  step.firstWait = static_cast<uint32_t>(out.waits.size());
  for (uint32_t dep : deps) {
    // Also for what this lane alone does: another thread may have taken it. One thread needs to wait for nothing.
    std::vector<bool>::reference seen = waited[size_t(lane) * tasks.size() + dep];
    if (seen || threads == 1)
      continue;
    seen = true;
    out.waits.push_back(first + dep);
  }
  step.waitCount = static_cast<uint32_t>(out.waits.size()) - step.firstWait;
  out.steps.push_back(step);
}

void Planner::place(uint32_t index) {
  const DeviceTask &task = tasks[index];
  int64_t parts = std::clamp<int64_t>(task.work / std::max<int64_t>(task.grain, 1), 1, threads);
  uint32_t count = static_cast<uint32_t>(parts);
  deps.clear();
  for (uint32_t dep : task.deps)
    if (dep >= first)
      deps.push_back(dep - first);
  chooseLanes(index, count);
  double ready = 0;
  for (uint32_t dep : deps) {
    ready = std::max(ready, ended[dep]);
    stageOf[index] = std::max(stageOf[index], stageOf[dep] + 1);
  }
  plan.stageCount = std::max(plan.stageCount, stageOf[index] + 1);
  for (uint32_t part = 0; part < count; ++part) {
    uint32_t lane = lanesOf[index][part];
    // 128 bits: `work` may use all of 63.
    auto bound = [&](uint32_t p) { return static_cast<int64_t>(static_cast<__int128>(task.work) * p / count); };
    addShare(lane, index, bound(part), bound(part + 1), task.costNs / count);
    clock[lane] = std::max(clock[lane], ready) + task.costNs / count;
    ended[index] = std::max(ended[index], clock[lane]);
  }
}

/// Orders each lane's steps by stage and marks the stages' ends.
void Planner::sortByStage() {
  for (CpuLanePlan &lane : plan.lanes) {
    std::stable_sort(lane.steps.begin(), lane.steps.end(), [this](const CpuStep &a, const CpuStep &b) {
      return stageOf[a.task - first] < stageOf[b.task - first];
    });
    uint32_t done = 0;
    for (uint32_t stage = 0; stage < plan.stageCount; ++stage) {
      while (done < lane.steps.size() && stageOf[lane.steps[done].task - first] == stage)
        ++done;
      lane.stageEnds.push_back(done);
    }
  }
}

} // namespace

CpuPlan planTasks(std::span<const DeviceTask> tasks, Segment segment, uint32_t threads, bool staged) {
  return Planner(tasks, segment, threads).run(staged);
}

} // namespace dmxrt
