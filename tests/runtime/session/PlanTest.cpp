//===- PlanTest.cpp - how tasks are split over threads --------------------===//

#include "../RuntimeTest.h"
#include "runtime/devices/cpu/CpuPlan.h"

#include <random>
#include <set>

using namespace dmxrt;

namespace {

struct Tasks {
  std::vector<DeviceTask> list;
  std::vector<std::vector<uint32_t>> deps;

  void add(int64_t work, int64_t grain, std::vector<uint32_t> after, double costNs = 1e6) {
    deps.push_back(std::move(after));
    DeviceTask task;
    task.work = work;
    task.grain = grain;
    task.costNs = costNs;
    list.push_back(task);
  }
  std::span<const DeviceTask> get() {
    for (size_t i = 0; i < list.size(); ++i)
      list[i].deps = deps[i];
    return list;
  }
};

CpuPlan planWhole(std::span<const DeviceTask> tasks, uint32_t threads, bool staged) {
  return planTasks(tasks, {0, static_cast<uint32_t>(tasks.size())}, threads, staged);
}

/// Whether every dep of a step is one that the step, or one before it, waits for: another thread may run the step.
void checkWaits(const CpuPlan &plan, std::span<const DeviceTask> tasks) {
  for (const CpuLanePlan &lane : plan.lanes) {
    std::set<uint32_t> known;
    for (const CpuStep &step : lane.steps) {
      known.insert(lane.waits.begin() + step.firstWait, lane.waits.begin() + step.firstWait + step.waitCount);
      for (uint32_t dep : tasks[step.task].deps)
        EXPECT_TRUE(known.contains(dep)) << "task " << step.task << " does not wait for " << dep;
    }
  }
}

/// Whether the plan runs every item once and in an order that keeps deps, by playing it
/// with threads that only move when their waits are over.
void checkWalk(const CpuPlan &plan, std::span<const DeviceTask> tasks) {
  std::vector<size_t> next(plan.lanes.size());
  std::vector<uint32_t> done(tasks.size());
  std::vector<int64_t> items(tasks.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t lane = 0; lane < plan.lanes.size(); ++lane) {
      const CpuLanePlan &steps = plan.lanes[lane];
      if (next[lane] == steps.steps.size())
        continue;
      const CpuStep &step = steps.steps[next[lane]];
      bool ready = true;
      for (uint32_t i = 0; i < step.waitCount; ++i) {
        uint32_t dep = steps.waits[step.firstWait + i];
        ready &= done[dep] == plan.slices[dep];
      }
      if (!ready)
        continue;
      for (uint32_t dep : tasks[step.task].deps)
        ASSERT_EQ(done[dep], plan.slices[dep]) << "task " << step.task << " starts before " << dep << " is done";
      items[step.task] += step.end - step.begin;
      ++done[step.task];
      ++next[lane];
      moved = true;
    }
  }
  for (size_t i = 0; i < tasks.size(); ++i) {
    EXPECT_EQ(items[i], tasks[i].work) << "task " << i;
    EXPECT_EQ(done[i], plan.slices[i]) << "task " << i;
  }
}

} // namespace

TEST(Plan, SplitsWorkEvenlyAndRespectsGrain) {
  Tasks tasks;
  tasks.add(100, 1, {});
  tasks.add(100, 40, {0}); // two parts of at least 40
  tasks.add(5, 100, {1});
  tasks.add(0, 1, {2});
  CpuPlan plan = planWhole(tasks.get(), 3, false);
  EXPECT_EQ(plan.slices, (std::vector<uint32_t>{3, 2, 1, 1}));
  int64_t covered = 0;
  for (const CpuLanePlan &lane : plan.lanes) {
    EXPECT_EQ(lane.steps[0].task, 0u);
    EXPECT_EQ(lane.steps[0].begin, covered);
    EXPECT_GE(lane.steps[0].end - lane.steps[0].begin, 33);
    covered = lane.steps[0].end;
  }
  EXPECT_EQ(covered, 100);
  checkWalk(plan, tasks.get());
}

TEST(Plan, TheLastHalfOfALongShareIsSpare) {
  Tasks tasks;
  tasks.add(100, 2, {}, 1e8);
  tasks.add(100, 10, {0}, 1e8); // grains
  tasks.add(100, 30, {1}, 1e8); // too coarse
  tasks.add(100, 1, {2}, 1e6);  // too short
  CpuPlan plan = planWhole(tasks.get(), 2, false);
  EXPECT_EQ(plan.slices, (std::vector<uint32_t>{10, 6, 2, 2}));
  std::vector<int64_t> ends;
  for (const CpuStep &step : plan.lanes[1].steps) {
    ends.push_back(step.end);
    EXPECT_EQ(step.spare, step.begin != 50) << "task " << step.task << " from " << step.begin;
  }
  EXPECT_EQ(ends, (std::vector<int64_t>{76, 82, 88, 94, 100, 80, 90, 100, 100, 100}));
  checkWalk(plan, tasks.get());
  checkWaits(plan, tasks.get());
  EXPECT_EQ(planWhole(tasks.get(), 1, false).slices, (std::vector<uint32_t>{1, 1, 1, 1}));
}

TEST(Plan, OneThreadNeverWaits) {
  Tasks tasks;
  for (uint32_t i = 0; i < 5; ++i)
    tasks.add(100, 1, i ? std::vector<uint32_t>{i - 1} : std::vector<uint32_t>{});
  CpuPlan plan = planWhole(tasks.get(), 1, false);
  EXPECT_TRUE(plan.lanes[0].waits.empty());
  EXPECT_EQ(plan.lanes[0].steps.size(), 5u);
}

TEST(Plan, IndependentNarrowTasksOverlap) {
  Tasks tasks;
  tasks.add(1, 1, {});
  tasks.add(1, 1, {0});
  tasks.add(1, 1, {0});
  CpuPlan plan = planWhole(tasks.get(), 2, false);
  EXPECT_EQ(plan.lanes[0].steps.size(), 2u);
  EXPECT_EQ(plan.lanes[1].steps.size(), 1u);
  checkWalk(plan, tasks.get());
  checkWaits(plan, tasks.get());
}

TEST(Plan, TinyTasksStayTogether) {
  Tasks tasks; // 100 ns each: less than moving to another thread costs
  tasks.add(1, 1, {}, 100);
  tasks.add(1, 1, {0}, 100);
  tasks.add(1, 1, {0}, 100);
  CpuPlan plan = planWhole(tasks.get(), 2, false);
  EXPECT_EQ(plan.lanes[0].steps.size(), 3u);
  checkWaits(plan, tasks.get());
}

TEST(Plan, HugeWorkDoesNotOverflow) {
  Tasks tasks;
  tasks.add(INT64_MAX, 1, {});
  CpuPlan plan = planWhole(tasks.get(), 64, false);
  EXPECT_EQ(plan.lanes[63].steps[0].end, INT64_MAX);
  for (const CpuLanePlan &lane : plan.lanes)
    EXPECT_GE(lane.steps[0].end, lane.steps[0].begin);
}

TEST(Plan, SegmentsWaitForNothingOutside) {
  std::mt19937 random(11);
  for (int round = 0; round < 100; ++round) {
    Tasks tasks;
    uint32_t count = 2 + random() % 40, threads = 1 + random() % 6;
    for (uint32_t i = 0; i < count; ++i) {
      std::set<uint32_t> deps;
      for (uint32_t d = random() % 4; i && d; --d)
        deps.insert(random() % i);
      tasks.add(1 + random() % 50, 1 + random() % 20, {deps.begin(), deps.end()}, random() % 5000);
    }
    Segment segment;
    segment.begin = random() % count;
    segment.end = segment.begin + 1 + random() % (count - segment.begin);
    CpuPlan plan = planTasks(tasks.get(), segment, threads, round % 2);
    ASSERT_EQ(plan.slices.size(), segment.end - segment.begin);
    for (CpuLanePlan &lane : plan.lanes) {
      for (uint32_t &dep : lane.waits) {
        ASSERT_TRUE(dep >= segment.begin && dep < segment.end);
        dep -= segment.begin;
      }
      for (CpuStep &step : lane.steps) {
        ASSERT_TRUE(step.task >= segment.begin && step.task < segment.end);
        step.task -= segment.begin;
      }
    }
    // The same tasks on their own, with the deps among them.
    Tasks own;
    for (uint32_t i = segment.begin; i < segment.end; ++i) {
      std::vector<uint32_t> deps;
      for (uint32_t dep : tasks.deps[i])
        if (dep >= segment.begin)
          deps.push_back(dep - segment.begin);
      own.add(tasks.list[i].work, tasks.list[i].grain, deps, tasks.list[i].costNs);
    }
    if (round % 2 == 0)
      checkWalk(plan, own.get());
    CpuPlan alone = planWhole(own.get(), threads, round % 2);
    EXPECT_EQ(plan.slices, alone.slices);
    EXPECT_EQ(plan.stageCount, alone.stageCount);
    for (uint32_t lane = 0; lane < threads; ++lane) {
      EXPECT_EQ(plan.lanes[lane].waits, alone.lanes[lane].waits);
      EXPECT_EQ(plan.lanes[lane].stageEnds, alone.lanes[lane].stageEnds);
    }
  }
}

TEST(Plan, RandomGraphsKeepDeps) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    Tasks tasks;
    uint32_t count = 1 + random() % 40, threads = 1 + random() % 9;
    for (uint32_t i = 0; i < count; ++i) {
      std::set<uint32_t> deps;
      for (uint32_t d = random() % 4; i && d; --d)
        deps.insert(random() % i);
      tasks.add(random() % 50, 1 + random() % 20, {deps.begin(), deps.end()},
                (random() % 5000) * (random() % 2 ? 1.0 : 1e5));
    }
    checkWalk(planWhole(tasks.get(), threads, false), tasks.get());
    if (HasFatalFailure())
      return;
    // Staged: deps lie in earlier stages, all items are there once.
    CpuPlan plan = planWhole(tasks.get(), threads, true);
    std::vector<int> stageOf(count, -1);
    std::vector<int64_t> items(count);
    for (const CpuLanePlan &lane : plan.lanes) {
      ASSERT_EQ(lane.stageEnds.size(), plan.stageCount);
      ASSERT_EQ(lane.stageEnds.back(), lane.steps.size());
      for (uint32_t stage = 0, i = 0; stage < plan.stageCount; ++stage)
        for (; i < lane.stageEnds[stage]; ++i) {
          items[lane.steps[i].task] += lane.steps[i].end - lane.steps[i].begin;
          stageOf[lane.steps[i].task] = static_cast<int>(stage);
        }
    }
    for (uint32_t i = 0; i < count; ++i) {
      EXPECT_EQ(items[i], tasks.list[i].work);
      for (uint32_t dep : tasks.deps[i])
        EXPECT_LT(stageOf[dep], stageOf[i]);
    }
  }
}
