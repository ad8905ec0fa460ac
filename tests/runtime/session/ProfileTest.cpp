//===- ProfileTest.cpp - events and figures of runs -----------------------===//

#include "../AllocationCount.h"
#include "../RuntimeTest.h"

using namespace dmxtest;

namespace {

struct Fixture {
  OpenBundle open{batchModel()};
  SessionPtr session;
  std::vector<float> x = iota<float>(256), y = std::vector<float>(256);

  explicit Fixture(uint32_t threads) : session(makeSession(open.get(), threads)) {
    bindVector(session.get(), DMX_INPUT, 0, x, {64, 4});
    bindVector(session.get(), DMX_OUTPUT, 0, y, {64, 4});
  }
  void run() { EXPECT_EQ(dmx_session_run(session.get(), nullptr), DMX_OK); }
  std::vector<dmx_profile_event> take(uint32_t capacity, uint64_t *dropped = nullptr) {
    std::vector<dmx_profile_event> events(capacity);
    uint32_t count = 99;
    EXPECT_EQ(dmx_session_take_events(session.get(), events.data(), capacity, &count, dropped, nullptr), DMX_OK);
    events.resize(count);
    return events;
  }
  dmx_task_info task(uint32_t index) {
    dmx_task_info info{};
    info.struct_size = sizeof info;
    EXPECT_EQ(dmx_session_task_info(session.get(), index, &info, nullptr), DMX_OK);
    return info;
  }
};

} // namespace

TEST(Profile, EventsCoverAllSlices) {
  Fixture f(2);
  f.run();
  EXPECT_TRUE(f.take(10).empty()) << "off by default";
  ASSERT_EQ(dmx_session_profile(f.session.get(), 100, nullptr), DMX_OK);
  f.run();
  f.run();
  uint32_t waiting = 0;
  ASSERT_EQ(dmx_session_take_events(f.session.get(), nullptr, 0, &waiting, nullptr, nullptr), DMX_OK);
  EXPECT_EQ(waiting, 8u); // 2 runs, 2 tasks, 2 threads
  auto events = f.take(100);
  ASSERT_EQ(events.size(), 8u);
  int perTask[2] = {}, perRun[2] = {};
  for (size_t i = 0; i < events.size(); ++i) {
    const dmx_profile_event &event = events[i];
    ASSERT_LT(event.thread, 2u);
    ASSERT_LT(event.task, 2u);
    ASSERT_LT(event.run, 2u);
    ++perTask[event.task];
    ++perRun[event.run];
    EXPECT_LE(event.start_ns, event.end_ns);
    EXPECT_STREQ(event.name, event.task ? "scale_1" : "add_0");
    EXPECT_GE(event.start_ns, events[i ? i - 1 : 0].start_ns);
  }
  EXPECT_EQ(perTask[0], 4);
  EXPECT_EQ(perRun[0], 4);
  EXPECT_TRUE(f.take(100).empty()) << "taken once";
  EXPECT_EQ(f.task(0).calls, 2u);
  EXPECT_GT(f.task(0).total_ns, 0u);
  EXPECT_GT(f.task(0).busy_ns, 0u);
  EXPECT_LE(f.task(0).busy_ns, 2 * f.task(0).total_ns) << "two threads at most";
  EXPECT_EQ(f.task(0).flops, 10);
  ASSERT_EQ(dmx_session_profile(f.session.get(), 0, nullptr), DMX_OK);
  f.run();
  EXPECT_TRUE(f.take(100).empty());
  EXPECT_EQ(f.task(0).calls, 0u);
}

TEST(Profile, DropsAndPartialTakes) {
  Fixture f(1);
  ASSERT_EQ(dmx_session_profile(f.session.get(), 3, nullptr), DMX_OK);
  f.run();
  f.run(); // 4 events, room for 3
  uint64_t dropped = 0;
  auto first = f.take(2, &dropped);
  EXPECT_EQ(first.size(), 2u);
  EXPECT_EQ(dropped, 1u);
  auto rest = f.take(2, &dropped);
  EXPECT_EQ(rest.size(), 1u);
  EXPECT_EQ(dropped, 0u);
  EXPECT_GE(rest[0].start_ns, first[1].start_ns);
  EXPECT_EQ(f.task(0).calls, 2u) << "figures count dropped events too";
  f.run();
  EXPECT_EQ(f.take(10).size(), 2u);
}

TEST(Profile, TaskInfoErrors) {
  Fixture f(1);
  dmx_error error = DMX_ERROR_INIT;
  dmx_task_info info{};
  info.struct_size = sizeof info;
  EXPECT_EQ(dmx_session_task_info(f.session.get(), 2, &info, &error), DMX_STATUS_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error.message).find("task 2 does not exist; there are 2"), std::string::npos);
  // Before the first run the shapes are not known to the plan.
  info = {};
  info.struct_size = sizeof info;
  EXPECT_EQ(dmx_session_task_info(f.session.get(), 0, &info, &error), DMX_OK);
  EXPECT_EQ(info.work, -1);
  EXPECT_EQ(info.slices, 0u);
}

TEST(Profile, SteadyStateAllocatesNothing) {
  if (!canCountAllocations)
    GTEST_SKIP() << "allocations cannot be counted under a sanitizer";
  for (uint32_t threads : {1u, 2u}) {
    Fixture f(threads);
    ASSERT_EQ(dmx_session_profile(f.session.get(), 10000, nullptr), DMX_OK);
    f.run();
    std::vector<float> other(256);
    int64_t dims[] = {64, 4};
    dmx_tensor_view views[] = {{DMX_DTYPE_F32, 2, dims, f.x.data()}, {DMX_DTYPE_F32, 2, dims, other.data()}};
    dmx_error error = DMX_ERROR_INIT;
    allocations = 0;
    countAllocations = true;
    for (int i = 0; i < 10; ++i)
      dmx_session_run(f.session.get(), &error);
    countAllocations = false;
    EXPECT_EQ(allocations, 0) << threads << " threads";
    // Other memory of the same shape: only the output's check may need room.
    allocations = 0;
    countAllocations = true;
    for (int i = 0; i < 10; ++i) {
      dmx_session_bind(f.session.get(), DMX_INPUT, 0, &views[i % 2], &error);
      dmx_session_run(f.session.get(), &error);
    }
    countAllocations = false;
    EXPECT_EQ(allocations, 0) << threads << " threads, bound anew";
  }
}
