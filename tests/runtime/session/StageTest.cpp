//===- StageTest.cpp - dims that tasks return, constraints, late outputs --===//

#include "../AllocationCount.h"
#include "../RuntimeTest.h"

#include <thread>

using namespace dmxtest;

namespace {

void expectPart(const dmx_error &error, const std::string &part) {
  EXPECT_NE(std::string(error.message).find(part), std::string::npos) << error.message << "\nexpected part: " << part;
}

std::vector<int64_t> expectedPositions(const std::vector<float> &x) {
  std::vector<int64_t> out;
  for (size_t i = 0; i < x.size(); ++i)
    if (x[i] != 0)
      out.push_back(2 * static_cast<int64_t>(i));
  return out;
}

std::vector<float> pattern(size_t count, size_t step) {
  std::vector<float> x(count);
  for (size_t i = 0; i < count; i += step)
    x[i] = 1;
  return x;
}

} // namespace

TEST(Stage, ReturnedDimsLayTheRestOut) {
  OpenBundle open(nonzeroBuilder().finish());
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  for (uint32_t threads : {1u, 3u}) {
    SessionPtr session = makeSession(open.get(), threads);
    dmx_error error = DMX_ERROR_INIT;
    for (auto [count, step] : {std::pair<size_t, size_t>{100, 3}, {100, 3}, {100, 1}, {1000, 7}, {100, 90}, {0, 1}}) {
      std::vector<float> x = pattern(count, step);
      bindVector(session.get(), DMX_INPUT, 0, x, {static_cast<int64_t>(count)});
      ASSERT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << error.message;
      std::vector<int64_t> dims;
      EXPECT_EQ(takeOutput<int64_t>(session.get(), 0, &dims), expectedPositions(x));
      EXPECT_EQ(dims, (std::vector<int64_t>{static_cast<int64_t>(expectedPositions(x).size())}));
    }
  }
}

TEST(Stage, ShapesBeforeAndAfterTheRun) {
  OpenBundle open(nonzeroBuilder().finish());
  SessionPtr session = makeSession(open.get());
  dmx_error error = DMX_ERROR_INIT;
  int64_t dims[1];
  uint32_t rank = 0;
  dmx_tensor_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(dmx_bundle_tensor_info(open.get(), nullptr, DMX_OUTPUT, 0, &info, nullptr), DMX_OK);
  EXPECT_EQ(info.dims[0].min, 0);
  EXPECT_EQ(info.dims[0].max, 1000);
  EXPECT_STREQ(info.dims[0].name, "n");
  std::vector<float> x = pattern(10, 2);
  bindVector(session.get(), DMX_INPUT, 0, x, {10});
  auto shape = [&] { return dmx_session_shape(session.get(), DMX_OUTPUT, 0, dims, 1, &rank, &error); };
  EXPECT_EQ(shape(), DMX_STATUS_SHAPE_UNKNOWN);
  expectPart(error, "output 'y': its shape is known only after a run (dim 'n' depends on the data)");
  dmx_tensor_view view{};
  EXPECT_EQ(dmx_session_output(session.get(), 0, &view, &error), DMX_STATUS_NOT_READY);
  EXPECT_EQ(dmx_session_output(session.get(), 1, &view, &error), DMX_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(dmx_session_output(session.get(), 0, nullptr, &error), DMX_STATUS_INVALID_ARGUMENT);
  ASSERT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << error.message;
  ASSERT_EQ(shape(), DMX_OK) << error.message;
  EXPECT_EQ(dims[0], 5);
  std::vector<float> longer = pattern(12, 2);
  bindVector(session.get(), DMX_INPUT, 0, longer, {12});
  EXPECT_EQ(shape(), DMX_STATUS_SHAPE_UNKNOWN) << "the inputs have another shape now";
}

TEST(Stage, OutputsBoundWithRoom) {
  OpenBundle open(nonzeroBuilder().finish());
  SessionPtr session = makeSession(open.get());
  dmx_error error = DMX_ERROR_INIT;
  std::vector<float> x = pattern(10, 2);
  std::vector<int64_t> room(8, -1);
  bindVector(session.get(), DMX_INPUT, 0, x, {10});
  ASSERT_EQ(bindVector(session.get(), DMX_OUTPUT, 0, room, {8}, &error), DMX_OK) << error.message;
  ASSERT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << error.message;
  EXPECT_EQ(room, (std::vector<int64_t>{0, 4, 8, 12, 16, -1, -1, -1}));
  dmx_tensor_view view{};
  ASSERT_EQ(dmx_session_output(session.get(), 0, &view, &error), DMX_OK);
  EXPECT_EQ(view.data, room.data());
  EXPECT_EQ(view.dims[0], 5);
  std::fill(x.begin(), x.end(), 1.0f);
  EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_STATUS_INVALID_ARGUMENT);
  expectPart(error, "output 'y' is bound to 64 bytes, but this run's has 80");
  EXPECT_EQ(dmx_session_output(session.get(), 0, &view, &error), DMX_STATUS_NOT_READY);
  ASSERT_EQ(dmx_session_unbind(session.get(), DMX_OUTPUT, 0, &error), DMX_OK);
  ASSERT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << error.message;
  EXPECT_EQ(takeOutput<int64_t>(session.get(), 0).size(), 10u);
}

TEST(Stage, SteadyStateAllocatesNothing) {
  if (!canCountAllocations)
    GTEST_SKIP() << "a sanitizer has the allocation functions";
  OpenBundle open(nonzeroBuilder().finish());
  SessionPtr session = makeSession(open.get());
  std::vector<float> x = pattern(500, 2);
  bindVector(session.get(), DMX_INPUT, 0, x, {500});
  for (int i = 0; i < 2; ++i)
    ASSERT_EQ(dmx_session_run(session.get(), nullptr), DMX_OK);
  allocations = 0;
  countAllocations = true;
  for (int i = 0; i < 10; ++i)
    dmx_session_run(session.get(), nullptr);
  countAllocations = false;
  EXPECT_EQ(allocations, 0);
  std::fill(x.begin(), x.end(), 1.0f);
  countAllocations = true;
  dmx_session_run(session.get(), nullptr);
  countAllocations = false;
  EXPECT_GT(allocations, 0) << "the count sees new shapes";
}

TEST(Stage, WrongReturnsAreErrors) {
  auto run = [](int64_t returned, Json min, Json max, std::string kernel = "return_dims") {
    ModelBuilder builder;
    builder.returnedDim("k", 0, 0, min, max);
    int y = builder.output("y", "i32", {"k"});
    builder.dispatch(kernel, {}, 0, 1, {}, {{"dims", {kernel == "return_dims" ? 1 : 0, returned}}, {"results", 1}});
    builder.dispatch("fill", {y}, 1, "k", {0});
    OpenBundle open(builder.finish());
    EXPECT_EQ(open.status, DMX_OK) << open.error.message;
    SessionPtr session = makeSession(open.get());
    dmx_error error = DMX_ERROR_INIT;
    dmx_status status = dmx_session_run(session.get(), &error);
    if (status == DMX_OK) {
      EXPECT_EQ(takeOutput<int32_t>(session.get(), 0).size(), static_cast<size_t>(returned));
    }
    return std::to_string(status) + " " + error.message;
  };
  EXPECT_EQ(run(3, 0, 5), "0 ");
  EXPECT_EQ(run(6, 2, 5), "9 task 'return_dims_0' returned 6 for dim 'k', expected 2 to 5");
  EXPECT_EQ(run(1, 2, Json::array({"mul", 2, 4})), "9 task 'return_dims_0' returned 1 for dim 'k', expected 2 to 8");
  EXPECT_NE(run(-4, INT64_MIN, 8).find("shape: k is -4"), std::string::npos);
  // A kernel that returns nothing: with dims[0] == 0 there is nothing to return.
  ModelBuilder builder;
  builder.returnedDim("k", 0, 0, 0, 5);
  int y = builder.output("y", "i32", {"k"});
  builder.dispatch("return_dims", {}, 0, 1, {}, {{"dims", {0}}, {"results", 1}});
  builder.dispatch("fill", {y}, 1, "k", {0});
  OpenBundle open(builder.finish());
  SessionPtr session = makeSession(open.get());
  dmx_error error = DMX_ERROR_INIT;
  EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_STATUS_KERNEL);
  expectPart(error, "returned -9223372036854775808");
}

/// Two stages after each other, the second returned dim bounded by the first; a dim nobody but an output mentions.
TEST(Stage, SeveralStages) {
  ModelBuilder builder;
  builder.dim("m", 1, 100, 0, 0);
  builder.returnedDim("a", 0, 0, 0, "m");
  builder.computedDim("a2", {"mul", "a", 2});
  builder.returnedDim("b", 2, 0, 0, "a2");
  builder.returnedDim("empty", 2, 1, 0, 0);
  builder.constraint("le", "b", {"add", "a", 3}, "b grows slowly");
  int x = builder.input("x", "f32", {"m"});
  int room = builder.arenaOf(800, "i64", {"m"}), wide = builder.arenaOf({"mul", "a2", 4}, "i32", {"a2"});
  int y = builder.output("y", "i32", {"b"});
  builder.output("none", "f32", {"empty", "m"});
  builder.dispatch("nonzero", {x, room}, 1, 1, {}, {{"dims", {"m"}}, {"results", 1}});
  builder.dispatch("fill", {wide}, 1, "a2", {0}); // stage 1
  builder.dispatch("return_dims", {}, 0, 1, {1}, {{"dims", {2, {"add", "a", 2}, 0}}, {"results", 2}});
  builder.copy(wide, y, {"mul", "b", 4}, {1, 2}); // stage 2
  OpenBundle open(builder.finish());
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  SessionPtr session = makeSession(open.get(), 2);
  dmx_error error = DMX_ERROR_INIT;
  for (size_t step : {2, 3, 2}) {
    std::vector<float> in = pattern(30, step);
    bindVector(session.get(), DMX_INPUT, 0, in, {30});
    ASSERT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << error.message;
    EXPECT_EQ(takeOutput<int32_t>(session.get(), 0), iota<int32_t>(30 / step + 2));
    std::vector<int64_t> dims;
    EXPECT_TRUE(takeOutput<float>(session.get(), 1, &dims).empty());
    EXPECT_EQ(dims, (std::vector<int64_t>{0, 30}));
  }
  std::vector<float> in = pattern(30, 30); // a = 1, b = 3 > a2
  bindVector(session.get(), DMX_INPUT, 0, in, {30});
  EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_STATUS_KERNEL);
  expectPart(error, "task 'return_dims_2' returned 3 for dim 'b', expected 0 to 2");
}

TEST(Stage, ConstraintsOnInputs) {
  ModelBuilder builder;
  builder.dim("a", 0, 100, 0, 0);
  builder.dim("b", 0, 100, 1, 0);
  builder.computedDim("c", {"broadcast", "a", "b"});
  builder.constraint("eq", {"mod", "a", 2}, 0, "halves");
  builder.constraint("le", "a", {"mul", "b", 4}, "Slice of x");
  builder.constraint("divides", "b", 12, "Reshape r");
  int x = builder.input("x", "f32", {"a"}), z = builder.input("z", "f32", {"b"});
  int y = builder.output("y", "i32", {"c"});
  (void)x, (void)z;
  builder.dispatch("fill", {y}, 1, "c");
  OpenBundle open(builder.finish());
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  SessionPtr session = makeSession(open.get());
  auto run = [&](int64_t a, int64_t b) {
    std::vector<float> data(100);
    bindVector(session.get(), DMX_INPUT, 0, data, {a});
    bindVector(session.get(), DMX_INPUT, 1, data, {b});
    dmx_error error = DMX_ERROR_INIT;
    dmx_status status = dmx_session_run(session.get(), &error);
    if (status == DMX_OK)
      return std::to_string(takeOutput<int32_t>(session.get(), 0).size());
    return std::to_string(status) + " " + error.message;
  };
  EXPECT_EQ(run(4, 4), "4");
  EXPECT_EQ(run(4, 1), "4");
  EXPECT_EQ(run(3, 3), "1 halves: 1 (a % 2) is not equal to 0");
  EXPECT_EQ(run(10, 2), "1 Slice of x: 10 (a) is not at most 8 (b * 4)");
  EXPECT_EQ(run(4, 5), "1 Reshape r: 5 (b) is not a divisor of 12");
  EXPECT_EQ(run(0, 0), "1 Reshape r: 0 (b) is not a divisor of 12");
  EXPECT_EQ(run(4, 3), "1 dim 'c': cannot broadcast 4 and 3");
  EXPECT_EQ(run(12, 12), "12");
}

TEST(Stage, BadBundles) {
  TestBundle model = nonzeroBuilder().finish();
  auto refused = [&](const std::string &part, auto change) {
    TestBundle bad = model;
    change(bad.graph["graphs"][0]);
    SCOPED_TRACE(part);
    expectRefused(bad, DMX_STATUS_INVALID_BUNDLE, part);
  };
  refused("task 0 'nonzero_0' uses what task 0 'nonzero_0' returns, which is not an earlier one",
          [](Json &g) { g["tasks"][0]["dims"] = {"n"}; });
  refused("task 0 'nonzero_0' uses what task 1", [](Json &g) {
    g["dims"][1]["task"] = 1, g["tasks"][1]["results"] = 1, g["tasks"][1]["work"] = 1, g["tasks"][0]["grain"] = "n";
  });
  refused("dim 'n' is not among what task 0 returns", [](Json &g) { g["dims"][1]["result"] = 1; });
  refused("dim 'n' is not among what task 9 returns", [](Json &g) { g["dims"][1]["task"] = 9; });
  refused("must have work 1", [](Json &g) { g["tasks"][0]["work"] = 2; });
  refused("must have work 1", [](Json &g) { g["tasks"][0]["work"] = "m"; });
  refused("unknown relation 'ne'",
          [](Json &g) { g["constraints"] = {{{"rel", "ne"}, {"lhs", 1}, {"rhs", 2}, {"text", ""}}}; });
  refused("dim 'q' is not in the table",
          [](Json &g) { g["constraints"] = {{{"rel", "eq"}, {"lhs", "q"}, {"rhs", 2}, {"text", ""}}}; });
  TestBundle required = model;
  required.manifest["format"]["minor"] = 1;
  required.manifest["required"] = {"returned-dims"};
  EXPECT_EQ(OpenBundle(required).status, DMX_OK);
  required.manifest["required"] = {"returned-dims", "teleport"};
  expectRefused(required, DMX_STATUS_UNSUPPORTED, "requires feature 'teleport'");
}

/// Sessions have arenas of their own, so threads with different shapes do not meet.
TEST(Stage, SessionsOnThreads) {
  OpenBundle open(nonzeroBuilder().finish());
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      SessionPtr session = makeSession(open.get(), 1 + t % 2);
      for (size_t run = 0; run < 60; ++run) {
        std::vector<float> x = pattern(100 + 10 * run, 1 + (run + t) % 5);
        bindVector(session.get(), DMX_INPUT, 0, x, {static_cast<int64_t>(x.size())});
        if (dmx_session_run_async(session.get(), nullptr) || dmx_session_wait(session.get(), nullptr) ||
            takeOutput<int64_t>(session.get(), 0) != expectedPositions(x))
          ++wrong;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}
