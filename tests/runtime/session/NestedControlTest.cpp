//===- NestedControlTest.cpp - branches in loops in loops -----------------===//

#include "../RuntimeTest.h"

#include <atomic>
#include <thread>

using namespace dmxtest;

namespace {

/// A loop over a loop over a branch: out = start, and for each i < trips, for each j < i: + j when j is below 2,
/// else doubled.
TestBundle nestedModel() {
  auto scalarGraph = [](const std::string &name, bool doubles) {
    ModelBuilder builder;
    int x = builder.input("x", "i64", Json::array()), j = builder.input("j", "i64", Json::array());
    int y = builder.output("y", "i64", Json::array());
    builder.dispatch("add_i64", {x, doubles ? x : j, y}, 1, 1, {}, {{"dims", {1}}});
    return builder.graphNamed(name);
  };
  ModelBuilder inner;
  int j = inner.input("j", "i64", Json::array());
  inner.input("c", "bool", Json::array());
  int x = inner.input("x", "i64", Json::array()), two = inner.input("two", "i64", Json::array());
  int small = inner.arena(1, "bool", Json::array());
  int go = inner.output("go", "bool", Json::array()), out = inner.output("out", "i64", Json::array());
  inner.dispatch("is_true", {go}, 1, 1);
  inner.dispatch("below", {j, two, small}, 1, 1);
  int given = inner.result(2, 0, "i64", Json::array());
  inner.branch(small, "plus", "twice", {x, j}, 1, {1});
  inner.copy(given, out, 8, {2});
  ModelBuilder outer;
  int i = outer.input("i", "i64", Json::array());
  outer.input("c", "bool", Json::array());
  int value = outer.input("x", "i64", Json::array()), limit = outer.input("two", "i64", Json::array());
  int on = outer.output("go", "bool", Json::array()), next = outer.output("out", "i64", Json::array());
  int last = outer.result(1, 0, "i64", Json::array());
  outer.dispatch("is_true", {on}, 1, 1);
  outer.loop("inner", {value}, {limit}, {}, {{"trip_count", i}});
  outer.copy(last, next, 8, {1});
  ModelBuilder builder;
  int start = builder.input("start", "i64", Json::array()), trips = builder.input("trips", "i64", Json::array());
  int constant = builder.constant(std::string("\2\0\0\0\0\0\0\0", 8), "i64", Json::array());
  int y = builder.output("y", "i64", Json::array());
  int result = builder.result(0, 0, "i64", Json::array());
  builder.loop("outer", {start}, {constant}, {}, {{"trip_count", trips}});
  builder.copy(result, y, 8, {0});
  TestBundle model = builder.finish();
  for (Json graph :
       {outer.graphNamed("outer"), inner.graphNamed("inner"), scalarGraph("plus", false), scalarGraph("twice", true)})
    model.graph["graphs"].push_back(std::move(graph));
  return model;
}

int64_t nestedExpected(int64_t value, int64_t trips) {
  for (int64_t i = 0; i < trips; ++i)
    for (int64_t j = 0; j < i; ++j)
      value = j < 2 ? value + j : 2 * value;
  return value;
}

} // namespace

TEST(Control, NestedInEachOther) {
  OpenBundle open(nestedModel());
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      SessionPtr session = makeSession(open.get(), static_cast<uint32_t>(1 + t % 2));
      for (int64_t trips : {6, 0, 1, 3, 8}) {
        int64_t start = 3 + t;
        dmx_tensor_view views[] = {{DMX_DTYPE_I64, 0, nullptr, &start}, {DMX_DTYPE_I64, 0, nullptr, &trips}};
        for (uint32_t i = 0; i < 2; ++i)
          dmx_session_bind(session.get(), DMX_INPUT, i, &views[i], nullptr);
        dmx_error error = DMX_ERROR_INIT;
        EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << error.message;
        if (takeOutput<int64_t>(session.get(), 0) != std::vector<int64_t>{nestedExpected(start, trips)})
          ++wrong;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Control, ProfilesHaveTheTasksInside) {
  OpenBundle open(nestedModel());
  SessionPtr session = makeSession(open.get());
  dmx_error error = DMX_ERROR_INIT;
  ASSERT_EQ(dmx_session_profile(session.get(), 10000, &error), DMX_OK);
  int64_t start = 3, trips = 5; // 10 inner iterations, of which 7 with j below 2
  dmx_tensor_view views[] = {{DMX_DTYPE_I64, 0, nullptr, &start}, {DMX_DTYPE_I64, 0, nullptr, &trips}};
  for (uint32_t i = 0; i < 2; ++i)
    dmx_session_bind(session.get(), DMX_INPUT, i, &views[i], nullptr);
  ASSERT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << error.message;
  dmx_session_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(dmx_session_get_info(session.get(), &info, nullptr), DMX_OK);
  ASSERT_EQ(info.task_count, 2u + 3 + 4 + 1 + 1);
  EXPECT_GT(info.output_bytes, 0u);
  std::map<std::string, uint64_t> calls;
  uint64_t slices = 0;
  for (uint32_t i = 0; i < info.task_count; ++i) {
    dmx_task_info task{};
    task.struct_size = sizeof task;
    ASSERT_EQ(dmx_session_task_info(session.get(), i, &task, nullptr), DMX_OK);
    calls[task.name] = task.calls;
    slices += task.calls;
    EXPECT_GE(task.total_ns, task.busy_ns);
  }
  EXPECT_EQ(calls["loop_0"], 1u);
  EXPECT_EQ(calls["copy_1"], 1u);
  EXPECT_EQ(calls["loop_0/loop_1"], 5u);
  EXPECT_EQ(calls["loop_0/loop_1/below_1"], 10u);
  EXPECT_EQ(calls["loop_0/loop_1/if_2"], 10u);
  EXPECT_EQ(calls["loop_0/loop_1/if_2/then/add_i64_0"], 7u);
  EXPECT_EQ(calls["loop_0/loop_1/if_2/else/add_i64_0"], 3u);
  uint32_t count = 0;
  uint64_t dropped = 0;
  std::vector<dmx_profile_event> events(10000);
  ASSERT_EQ(dmx_session_take_events(session.get(), events.data(), 10000, &count, &dropped, nullptr), DMX_OK);
  EXPECT_EQ(count, slices);
  EXPECT_EQ(dropped, 0u);
}
