//===- RunTest.cpp - what a run computes ----------------------------------===//

#include "../RuntimeTest.h"

#include <random>
#include <set>
#include <xmmintrin.h>

using namespace dmxtest;

namespace {

void expectRuns(dmx_session *session) {
  dmx_error error = DMX_ERROR_INIT;
  EXPECT_EQ(dmx_session_run(session, &error), DMX_OK) << error.message;
}

} // namespace

TEST(Run, SplitsWorkOverThreads) {
  ModelBuilder builder;
  int y = builder.output("y", "i64", {1000});
  builder.dispatch("range", {y}, 1, 1000, {}, {{"grain", 100}});
  OpenBundle open(builder.finish());
  for (uint32_t threads : {1u, 2u, 4u, 7u, 16u}) {
    SessionPtr session = makeSession(open.get(), threads);
    std::vector<int64_t> out(1000, -1);
    bindVector(session.get(), DMX_OUTPUT, 0, out, {1000});
    expectRuns(session.get());
    std::set<int64_t> begins(out.begin(), out.end());
    EXPECT_EQ(begins.size(), std::min(threads, 10u));
    dmx_task_info info{};
    info.struct_size = sizeof info;
    ASSERT_EQ(dmx_session_task_info(session.get(), 0, &info, nullptr), DMX_OK);
    EXPECT_EQ(info.slices, std::min(threads, 10u));
    EXPECT_EQ(info.work, 1000);
    EXPECT_STREQ(info.kernel, "range");
    EXPECT_EQ(info.node_count, 1u);
    EXPECT_STREQ(info.nodes[0], "node_range");
  }
}

/// A chain of tasks that each read what all threads wrote before: any missing wait shows.
TEST(Run, ChainsAcrossThreads) {
  constexpr int64_t kCount = 4096;
  constexpr int kLength = 60;
  ModelBuilder builder;
  int x = builder.input("x", "i64", {kCount}), y = builder.output("y", "i64", {kCount});
  int ping = builder.arena(kCount * 8, "i64", {kCount}), pong = builder.arena(kCount * 8, "i64", {kCount});
  int source = x;
  for (int i = 0; i < kLength; ++i) {
    int target = i + 1 == kLength ? y : i % 2 ? pong : ping;
    // Shifting by a prime makes every thread read from others.
    builder.dispatch("chain", {source, target}, 1, kCount, i ? std::vector<int>{i - 1} : std::vector<int>{},
                     {{"dims", {1031, kCount}}});
    source = target;
  }
  OpenBundle open(builder.finish());
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  auto in = iota<int64_t>(kCount);
  std::vector<int64_t> expected = in;
  for (int i = 0; i < kLength; ++i) {
    std::vector<int64_t> next(kCount);
    for (size_t j = 0; j < kCount; ++j)
      next[j] = static_cast<int64_t>(3 * static_cast<uint64_t>(expected[(j + 1031) % kCount]) + 1);
    expected = next;
  }
  for (uint32_t threads : {1u, 2u, 3u, 8u})
    for (const char *spin : {"cpu.spin_us=0", "cpu.spin_us=50"}) {
      dmx_session_options options = DMX_SESSION_OPTIONS_INIT;
      options.device_options = &spin;
      options.device_option_count = 1;
      SessionPtr session = makeSession(open.get(), threads, options);
      std::vector<int64_t> out(kCount);
      bindVector(session.get(), DMX_INPUT, 0, in, {kCount});
      bindVector(session.get(), DMX_OUTPUT, 0, out, {kCount});
      for (int run = 0; run < 30; ++run) {
        std::fill(out.begin(), out.end(), 0);
        expectRuns(session.get());
        ASSERT_EQ(out, expected) << threads << " threads, run " << run;
      }
    }
}

/// Random graphs give the same answer on any number of threads.
TEST(Run, RandomGraphsAgreeWithOneThread) {
  std::mt19937 random(3);
  for (int round = 0; round < 25; ++round) {
    ModelBuilder builder;
    int64_t size = 64 + static_cast<int64_t>(random() % 200);
    std::vector<int> values{builder.input("x", "i64", {size})};
    std::vector<int> producer{-1};
    int count = 3 + static_cast<int>(random() % 25);
    for (int i = 0; i < count; ++i) {
      size_t source = random() % values.size();
      int target = i + 1 == count ? builder.output("y", "i64", {size}) : builder.arena(size * 8, "i64", {size});
      std::vector<int> deps;
      if (producer[source] >= 0)
        deps.push_back(producer[source]);
      int task = random() % 4 == 0 ? builder.copy(values[source], target, size * 8, deps)
                                   : builder.dispatch("chain", {values[source], target}, 1, size, deps,
                                                      {{"dims", {random() % 50, size}}, {"grain", 1 + random() % 100}});
      values.push_back(target);
      producer.push_back(task);
    }
    OpenBundle open(builder.finish());
    ASSERT_EQ(open.status, DMX_OK) << open.error.message;
    auto in = iota<int64_t>(static_cast<size_t>(size));
    std::vector<int64_t> expected;
    for (uint32_t threads : {1u, 2u, 5u}) {
      SessionPtr session = makeSession(open.get(), threads);
      std::vector<int64_t> out(in.size(), -1);
      bindVector(session.get(), DMX_INPUT, 0, in, {size});
      bindVector(session.get(), DMX_OUTPUT, 0, out, {size});
      for (int run = 0; run < 5; ++run)
        expectRuns(session.get());
      if (threads == 1)
        expected = out;
      ASSERT_EQ(out, expected) << "round " << round << ", " << threads << " threads";
    }
  }
}

TEST(Run, CopiesAndAliases) {
  ModelBuilder builder;
  int x = builder.input("x", "i32", {16});
  int mid = builder.arena(64, "i32", {16}), y = builder.output("y", "i32", {16});
  int high = builder.alias(mid, 32, 32, "i32", {8}), inputPart = builder.alias(x, 16, 16, "i32", {4});
  int outputPart = builder.alias(y, 48, 16, "i32", {4});
  int first = builder.copy(x, mid, 64);
  int second = builder.copy(high, y, 32, {first});                                         // y[0..8) = x[8..16)
  int third = builder.copy(mid, y, 16, {second}, {{"src_offset", 8}, {"dst_offset", 32}}); // y[8..12) = x[2..6)
  builder.copy(inputPart, outputPart, 16, {third});                                        // y[12..16) = x[4..8)
  OpenBundle open(builder.finish());
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  SessionPtr session = makeSession(open.get());
  auto in = iota<int32_t>(16);
  std::vector<int32_t> out(16, -1);
  bindVector(session.get(), DMX_INPUT, 0, in, {16});
  bindVector(session.get(), DMX_OUTPUT, 0, out, {16});
  expectRuns(session.get());
  EXPECT_EQ(out, (std::vector<int32_t>{8, 9, 10, 11, 12, 13, 14, 15, 2, 3, 4, 5, 4, 5, 6, 7}));
  // Bound anew, the aliases follow.
  auto in2 = iota<int32_t>(16, 100);
  std::vector<int32_t> out2(16, -1);
  bindVector(session.get(), DMX_INPUT, 0, in2, {16});
  bindVector(session.get(), DMX_OUTPUT, 0, out2, {16});
  expectRuns(session.get());
  EXPECT_EQ(out2[12], 104);
  EXPECT_EQ(out[12], 4) << "the old memory is left alone";
}

/// An identity model has no kernels, so its bundle may have no code.
TEST(Run, CopiesNeedNoCode) {
  ModelBuilder builder;
  int x = builder.input("x", "i32", {4}), y = builder.output("y", "i32", {4});
  builder.copy(x, y, 16);
  TestBundle model = builder.finish();
  model.manifest["targets"] = Json::array();
  model.files.clear();
  OpenBundle open(model);
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  SessionPtr session = makeSession(open.get());
  auto in = iota<int32_t>(4);
  std::vector<int32_t> out(4);
  bindVector(session.get(), DMX_INPUT, 0, in, {4});
  bindVector(session.get(), DMX_OUTPUT, 0, out, {4});
  expectRuns(session.get());
  EXPECT_EQ(in, out);
  dmx_session_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(dmx_session_get_info(session.get(), &info, nullptr), DMX_OK);
  EXPECT_STREQ(info.isa, "");
  EXPECT_STREQ(info.target, "cpu");
}

TEST(Run, LargeCopyIsSplit) {
  constexpr int64_t kCount = 1 << 20;
  ModelBuilder builder;
  int x = builder.input("x", "i32", {kCount}), y = builder.output("y", "i32", {kCount});
  builder.copy(x, y, kCount * 4);
  OpenBundle open(builder.finish());
  SessionPtr session = makeSession(open.get(), 4);
  auto in = iota<int32_t>(kCount);
  std::vector<int32_t> out(kCount);
  bindVector(session.get(), DMX_INPUT, 0, in, {kCount});
  bindVector(session.get(), DMX_OUTPUT, 0, out, {kCount});
  expectRuns(session.get());
  EXPECT_EQ(in, out);
  dmx_task_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(dmx_session_task_info(session.get(), 0, &info, nullptr), DMX_OK);
  EXPECT_EQ(info.slices, 4u);
  EXPECT_EQ(info.kernel, nullptr);
}

TEST(Run, ScratchIsPerThread) {
  constexpr int64_t kBlocks = 64, kSize = 512;
  ModelBuilder builder;
  int x = builder.input("x", "i32", {kBlocks, kSize}), y = builder.output("y", "i32", {kBlocks, kSize});
  builder.dispatch("reverse_by_scratch", {x, y}, 1, kBlocks, {}, {{"dims", {kSize}}, {"scratch", kSize * 4}});
  OpenBundle open(builder.finish());
  for (uint32_t threads : {1u, 4u}) {
    SessionPtr session = makeSession(open.get(), threads);
    auto in = iota<int32_t>(kBlocks * kSize);
    std::vector<int32_t> out(in.size());
    bindVector(session.get(), DMX_INPUT, 0, in, {kBlocks, kSize});
    bindVector(session.get(), DMX_OUTPUT, 0, out, {kBlocks, kSize});
    for (int run = 0; run < 20; ++run)
      expectRuns(session.get());
    for (int64_t i = 0; i < kBlocks * kSize; ++i)
      ASSERT_EQ(out[static_cast<size_t>(i)], i / kSize * kSize + kSize - 1 - i % kSize);
  }
}

TEST(Run, KernelErrorsNameTaskAndNode) {
  ModelBuilder builder;
  int data = builder.input("data", "f32", {10}), index = builder.input("index", "i64", {64});
  int y = builder.output("y", "f32", {64});
  builder.dispatch("gather", {data, index, y}, 1, 64, {},
                   {{"dims", {10}}, {"nodes", {"enc/Gather_3", "enc/Cast"}}, {"name", "lookup"}});
  OpenBundle open(builder.finish());
  for (uint32_t threads : {1u, 3u}) {
    SessionPtr session = makeSession(open.get(), threads);
    auto table = iota<float>(10);
    std::vector<int64_t> indices(64, 3);
    std::vector<float> out(64);
    bindVector(session.get(), DMX_INPUT, 0, table, {10});
    bindVector(session.get(), DMX_INPUT, 1, indices, {64});
    bindVector(session.get(), DMX_OUTPUT, 0, out, {64});
    expectRuns(session.get());
    indices[63] = 10;
    dmx_error error = DMX_ERROR_INIT;
    EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_STATUS_KERNEL);
    std::string message = error.message;
    for (const char *part :
         {"task 'lookup'", "'enc/Gather_3', 'enc/Cast'", "index lies outside", "kernel 'gather', code 1"})
      EXPECT_NE(message.find(part), std::string::npos) << message;
    indices[63] = 9;
    expectRuns(session.get()); // the session goes on
    EXPECT_EQ(out[63], 9.0f);
  }
}

TEST(Run, TasksAfterAFailureDoNotRun) {
  ModelBuilder builder;
  int data = builder.input("data", "f32", {10}), index = builder.input("index", "i64", {1});
  int mid = builder.arena(64, "f32", {1}), y = builder.output("y", "i32", {4});
  int first = builder.dispatch("gather", {data, index, mid}, 1, 1, {}, {{"dims", {10}}});
  builder.dispatch("fill", {y}, 1, 4, {first});
  OpenBundle open(builder.finish());
  for (uint32_t threads : {1u, 2u}) {
    SessionPtr session = makeSession(open.get(), threads);
    auto table = iota<float>(10);
    std::vector<int64_t> indices{-1};
    std::vector<int32_t> out(4, -7);
    bindVector(session.get(), DMX_INPUT, 0, table, {10});
    bindVector(session.get(), DMX_INPUT, 1, indices, {1});
    bindVector(session.get(), DMX_OUTPUT, 0, out, {4});
    EXPECT_EQ(dmx_session_run(session.get(), nullptr), DMX_STATUS_KERNEL);
    EXPECT_EQ(out, std::vector<int32_t>(4, -7));
  }
}

TEST(Run, StatePersistsAndResets) {
  ModelBuilder builder;
  int x = builder.input("x", "f32", {8}), state = builder.state(32, "f32", {8}), y = builder.output("y", "f32", {8});
  builder.dispatch("accumulate", {x, state, y}, 2, 8);
  OpenBundle open(builder.finish());
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  SessionPtr one = makeSession(open.get()), two = makeSession(open.get());
  std::vector<float> in(8, 1.0f), out(8), out2(8);
  for (auto [session, vector] : {std::pair{one.get(), &out}, {two.get(), &out2}}) {
    bindVector(session, DMX_INPUT, 0, in, {8});
    bindVector(session, DMX_OUTPUT, 0, *vector, {8});
  }
  for (int i = 0; i < 3; ++i)
    expectRuns(one.get());
  expectRuns(two.get());
  EXPECT_EQ(out[7], 3.0f);
  EXPECT_EQ(out2[7], 1.0f) << "state belongs to the session";
  EXPECT_EQ(dmx_session_reset_state(one.get(), nullptr), DMX_OK);
  expectRuns(one.get());
  EXPECT_EQ(out[7], 1.0f);
}

/// Kernels see the default floating-point environment, and the caller keeps its own.
TEST(Run, FloatingPointEnvironment) {
  ModelBuilder builder;
  std::vector<int> words;
  for (int i = 0; i < 4; ++i)
    words.push_back(builder.output("y" + std::to_string(i), "i32", {1}));
  for (int word : words)
    builder.dispatch("control_word", {word}, 1, 1, {}, {{"flops", 100000000}});
  OpenBundle open(builder.finish());
  unsigned before = _mm_getcsr();
  for (uint32_t threads : {1u, 2u}) {
    SessionPtr session = makeSession(open.get(), threads);
    std::vector<std::vector<int32_t>> out(4, std::vector<int32_t>(1));
    for (uint32_t i = 0; i < 4; ++i)
      bindVector(session.get(), DMX_OUTPUT, i, out[i], {1});
    _mm_setcsr(0x9FC0); // flush to zero, denormals are zero
    dmx_status status = dmx_session_run(session.get(), nullptr);
    unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    EXPECT_EQ(status, DMX_OK);
    EXPECT_EQ(after, 0x9FC0u);
    for (const auto &word : out)
      EXPECT_EQ(word[0] & 0xFFC0, 0x1F80);
  }
}
