//===- ConcurrencyTest.cpp - threads, async runs, executors ---------------===//

#include "../RuntimeTest.h"

#include <atomic>
#include <chrono>
#include <thread>

using namespace dmxtest;

namespace {

/// out = in after `rounds` turns of a loop.
TestBundle slowModel(int64_t rounds) {
  ModelBuilder builder;
  int x = builder.input("x", "i32", {1}), y = builder.output("y", "i32", {1});
  builder.dispatch("spin", {x, y}, 1, 1, {}, {{"dims", {rounds}}});
  return builder.finish();
}

/// Two tasks that only both succeed when they run at the same time.
TestBundle rendezvousModel() {
  ModelBuilder builder;
  int flags = builder.state(64, "i32", {16});
  int a = builder.output("a", "i32", {1}), b = builder.output("b", "i32", {1});
  Json lasting = {{"flops", 100000000}};
  Json first = {{"dims", {0}}}, second = {{"dims", {1}}};
  first.update(lasting);
  second.update(lasting);
  builder.dispatch("rendezvous", {flags, a}, 2, 1, {}, first);
  builder.dispatch("rendezvous", {flags, b}, 2, 1, {}, second);
  return builder.finish();
}

struct ThreadedExecutor {
  std::atomic<int> calls{0};
  dmx_executor callbacks() {
    return {this, [](void *user, uint32_t count, void (*fn)(void *, uint32_t), void *arg) {
              ++static_cast<ThreadedExecutor *>(user)->calls;
              std::vector<std::thread> threads;
              for (uint32_t i = 0; i < count; ++i)
                threads.emplace_back(fn, arg, i);
              for (std::thread &thread : threads)
                thread.join();
            }};
  }
};

} // namespace

TEST(Concurrency, IndependentTasksOverlap) {
  OpenBundle open(rendezvousModel());
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  SessionPtr session = makeSession(open.get(), 2);
  std::vector<int32_t> a(1), b(1);
  bindVector(session.get(), DMX_OUTPUT, 0, a, {1});
  bindVector(session.get(), DMX_OUTPUT, 1, b, {1});
  for (int run = 0; run < 3; ++run) {
    dmx_session_reset_state(session.get(), nullptr);
    ASSERT_EQ(dmx_session_run(session.get(), nullptr), DMX_OK);
    EXPECT_EQ(a[0], 1);
    EXPECT_EQ(b[0], 1);
  }
}

/// N sessions over one bundle on N threads, each with threads of its own.
TEST(Concurrency, ManySessionsOverOneBundle) {
  OpenBundle open(batchModel());
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      for (int repeat = 0; repeat < 3; ++repeat) {
        SessionPtr session = makeSession(open.get(), 1 + static_cast<uint32_t>(t % 3));
        for (int64_t batch : {int64_t(t + 1), int64_t(64 - t)}) {
          auto x = iota<float>(static_cast<size_t>(batch * 4), static_cast<float>(t));
          std::vector<float> y(x.size());
          bindVector(session.get(), DMX_INPUT, 0, x, {batch, 4});
          bindVector(session.get(), DMX_OUTPUT, 0, y, {batch, 4});
          for (int run = 0; run < 20; ++run)
            wrong += dmx_session_run(session.get(), nullptr) != DMX_OK;
          for (size_t i = 0; i < y.size(); ++i)
            wrong += y[i] != (x[i] + 1) * static_cast<float>(batch);
        }
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Concurrency, AsyncRuns) {
  OpenBundle open(slowModel(50000000));
  SessionPtr session = makeSession(open.get(), 2);
  std::vector<int32_t> x{5}, y{0};
  dmx_error error = DMX_ERROR_INIT;
  EXPECT_EQ(dmx_session_wait(session.get(), &error), DMX_STATUS_NOT_READY);
  EXPECT_EQ(dmx_session_run_async(session.get(), &error), DMX_STATUS_NOT_READY) << "nothing is bound";
  bindVector(session.get(), DMX_INPUT, 0, x, {1});
  bindVector(session.get(), DMX_OUTPUT, 0, y, {1});
  for (int run = 0; run < 2; ++run) {
    x[0] = run + 5;
    auto start = std::chrono::steady_clock::now();
    ASSERT_EQ(dmx_session_run_async(session.get(), &error), DMX_OK) << error.message;
    auto started = std::chrono::steady_clock::now() - start;
    EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_STATUS_BUSY);
    EXPECT_NE(std::string(error.message).find("async run in flight"), std::string::npos);
    EXPECT_EQ(bindVector(session.get(), DMX_INPUT, 0, x, {1}, &error), DMX_STATUS_BUSY);
    ASSERT_EQ(dmx_session_wait(session.get(), &error), DMX_OK) << error.message;
    auto whole = std::chrono::steady_clock::now() - start;
    EXPECT_EQ(y[0], run + 5);
    EXPECT_LT(started, whole / 2) << "run_async does not wait for the run";
  }
  EXPECT_EQ(dmx_session_wait(session.get(), &error), DMX_STATUS_NOT_READY);
  // Destroying waits.
  ASSERT_EQ(dmx_session_run_async(session.get(), &error), DMX_OK);
  session.reset();
  EXPECT_EQ(y[0], 6);
}

TEST(Concurrency, AsyncErrorsArriveAtWait) {
  ModelBuilder builder;
  int data = builder.input("data", "f32", {10}), index = builder.input("index", "i64", {1});
  int y = builder.output("y", "f32", {1});
  builder.dispatch("gather", {data, index, y}, 1, 1, {}, {{"dims", {10}}});
  OpenBundle open(builder.finish());
  SessionPtr session = makeSession(open.get());
  auto table = iota<float>(10);
  std::vector<int64_t> indices{10};
  std::vector<float> out(1);
  bindVector(session.get(), DMX_INPUT, 0, table, {10});
  bindVector(session.get(), DMX_INPUT, 1, indices, {1});
  bindVector(session.get(), DMX_OUTPUT, 0, out, {1});
  dmx_error error = DMX_ERROR_INIT;
  for (int run = 0; run < 3; ++run) {
    indices[0] = 10;
    ASSERT_EQ(dmx_session_run_async(session.get(), &error), DMX_OK);
    EXPECT_EQ(dmx_session_wait(session.get(), &error), DMX_STATUS_KERNEL);
    EXPECT_NE(std::string(error.message).find("gather_0"), std::string::npos);
    indices[0] = 4;
    ASSERT_EQ(dmx_session_run_async(session.get(), &error), DMX_OK);
    EXPECT_EQ(dmx_session_wait(session.get(), &error), DMX_OK) << error.message;
    EXPECT_EQ(out[0], 4.0f);
  }
}

TEST(Concurrency, SecondCallerIsToldBusy) {
  OpenBundle open(slowModel(200000000));
  SessionPtr session = makeSession(open.get());
  std::vector<int32_t> x{1}, y{0};
  bindVector(session.get(), DMX_INPUT, 0, x, {1});
  bindVector(session.get(), DMX_OUTPUT, 0, y, {1});
  std::atomic<bool> done{false};
  std::thread runner([&] {
    dmx_status status; // the other thread may be the one that is in
    while ((status = dmx_session_run(session.get(), nullptr)) == DMX_STATUS_BUSY)
      ;
    EXPECT_EQ(status, DMX_OK);
    done = true;
  });
  dmx_error error = DMX_ERROR_INIT;
  bool busy = false;
  while (!done && !busy) {
    dmx_session_info info{};
    info.struct_size = sizeof info;
    busy = dmx_session_get_info(session.get(), &info, &error) == DMX_STATUS_BUSY;
  }
  runner.join();
  EXPECT_TRUE(busy);
  EXPECT_NE(std::string(error.message).find("another thread"), std::string::npos) << error.message;
}

TEST(Concurrency, CallersExecutor) {
  OpenBundle open(batchModel());
  dmx_session_options options = DMX_SESSION_OPTIONS_INIT;
  ThreadedExecutor threaded;
  // One that runs everything in turn, last first: allowed, since parts never wait for each other.
  dmx_executor serial{nullptr, [](void *, uint32_t count, void (*fn)(void *, uint32_t), void *arg) {
                        for (uint32_t i = count; i > 0; --i)
                          fn(arg, i - 1);
                      }};
  dmx_executor concurrent = threaded.callbacks();
  for (const dmx_executor *executor : {&serial, &concurrent}) {
    options.executor = executor;
    SessionPtr session = makeSession(open.get(), 4, options);
    auto x = iota<float>(256);
    std::vector<float> y(256);
    bindVector(session.get(), DMX_INPUT, 0, x, {64, 4});
    bindVector(session.get(), DMX_OUTPUT, 0, y, {64, 4});
    for (int run = 0; run < 5; ++run) {
      std::fill(y.begin(), y.end(), 0.0f);
      ASSERT_EQ(dmx_session_run(session.get(), nullptr), DMX_OK);
      for (size_t i = 0; i < 256; ++i)
        ASSERT_EQ(y[i], (x[i] + 1) * 64);
    }
  }
  EXPECT_EQ(threaded.calls, 10) << "two stages, five runs";
  options = DMX_SESSION_OPTIONS_INIT;
  dmx_executor empty{};
  options.executor = &empty;
  dmx_session *none = nullptr;
  EXPECT_EQ(dmx_session_create(open.get(), nullptr, &options, &none, nullptr), DMX_STATUS_INVALID_ARGUMENT);
}

TEST(Concurrency, ExecutorOverlapsIndependentTasks) {
  OpenBundle open(rendezvousModel());
  dmx_session_options options = DMX_SESSION_OPTIONS_INIT;
  ThreadedExecutor threaded;
  dmx_executor executor = threaded.callbacks();
  options.executor = &executor;
  SessionPtr session = makeSession(open.get(), 2, options);
  std::vector<int32_t> a(1), b(1);
  bindVector(session.get(), DMX_OUTPUT, 0, a, {1});
  bindVector(session.get(), DMX_OUTPUT, 1, b, {1});
  ASSERT_EQ(dmx_session_run(session.get(), nullptr), DMX_OK);
  EXPECT_EQ(a[0] + b[0], 2);
  EXPECT_EQ(threaded.calls, 1);
}

/// Runs with pauses between them: workers that went to sleep wake up again.
TEST(Concurrency, WorkersSleepAndWake) {
  OpenBundle open(batchModel());
  SessionPtr session = makeSession(open.get(), 3);
  auto x = iota<float>(256);
  std::vector<float> y(256);
  bindVector(session.get(), DMX_INPUT, 0, x, {64, 4});
  bindVector(session.get(), DMX_OUTPUT, 0, y, {64, 4});
  for (int run = 0; run < 50; ++run) {
    std::fill(y.begin(), y.end(), 0.0f);
    ASSERT_EQ(dmx_session_run(session.get(), nullptr), DMX_OK);
    ASSERT_EQ(y[255], 256.0f * 64);
    std::this_thread::sleep_for(std::chrono::microseconds(run % 3 * 500));
  }
}
