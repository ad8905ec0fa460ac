//===- MixedTest.cpp - graphs of several devices --------------------------===//

#include "MixedBundle.h"

#include <fstream>
#include <thread>
#include <unistd.h>

using namespace dmxtest;

namespace {

class Mixed : public testing::Test {
protected:
  OpenBundle open{mixedBundle()};

  void SetUp() override { ASSERT_EQ(open.status, DMX_OK) << open.error.message; }
  dmx_session_info infoOf(const MixedSession &of) {
    dmx_session_info info{};
    info.struct_size = sizeof info;
    EXPECT_EQ(dmx_session_get_info(of.session.get(), &info, nullptr), DMX_OK);
    return info;
  }
};

/// Options with these device options; the list must live on.
dmx_session_options withSettings(const std::vector<const char *> &settings) {
  dmx_session_options options = DMX_SESSION_OPTIONS_INIT;
  options.device_options = settings.data();
  options.device_option_count = static_cast<uint32_t>(settings.size());
  return options;
}

/// That no session is made, with a sentence that has all the parts.
void expectNoSession(const dmx_bundle *bundle, const dmx_session_options &options, dmx_status status,
                     const std::vector<std::string> &parts) {
  dmx_error error = DMX_ERROR_INIT;
  dmx_session *made = nullptr;
  EXPECT_EQ(dmx_session_create(bundle, nullptr, &options, &made, &error), status) << error.message;
  EXPECT_EQ(made, nullptr);
  for (const std::string &part : parts)
    EXPECT_NE(std::string(error.message).find(part), std::string::npos)
        << "message: " << error.message << "\nexpected part: " << part;
}

void expectPart(const std::string &message, const std::string &part) {
  EXPECT_NE(message.find(part), std::string::npos) << "message: " << message << "\nexpected part: " << part;
}

} // namespace

TEST_F(Mixed, DevicesTakeTurns) {
  EXPECT_EQ(dmx_bundle_verify(open.get(), &open.error), DMX_OK) << open.error.message;
  for (uint32_t threads : {1u, 2u, 5u}) {
    MixedSession mixed(open.get(), threads);
    for (int run = 0; run < 4; ++run)
      mixed.runAndCompare();
    EXPECT_EQ(infoOf(mixed).threads, threads);
    // The card's state starts anew, its constants stay.
    ASSERT_EQ(dmx_session_reset_state(mixed.session.get(), nullptr), DMX_OK);
    mixed.model.total.assign(64, 0);
    for (int run = 0; run < 2; ++run)
      mixed.runAndCompare();
  }
}

/// The card has a program for each stage, and all of them are one run.
TEST(MixedControl, CardBeforeAndAfterABranch) {
  OpenBundle open(branchedBundle());
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  std::string path = testing::TempDir() + "/branched-" + std::to_string(getpid()) + ".json", setting = "report=" + path;
  const std::vector<const char *> settings{setting.c_str()};
  SessionPtr session = makeSession(open.get(), 2, withSettings(settings));
  ASSERT_TRUE(session);
  MixedModel model;
  std::vector<int64_t> at = {0, 21, 42, 63};
  uint8_t condition = 0;
  dmx_tensor_view flag{DMX_DTYPE_BOOL, 0, nullptr, &condition};
  bindVector(session.get(), DMX_INPUT, 0, model.x, {64});
  bindVector(session.get(), DMX_INPUT, 1, at, {4});
  ASSERT_EQ(dmx_session_bind(session.get(), DMX_INPUT, 2, &flag, nullptr), DMX_OK);
  dmx_error error = DMX_ERROR_INIT;
  size_t runs = 0;
  for (bool then : {true, false, false, true}) {
    condition = then;
    ASSERT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << error.message;
    model.run(4); // up to the second `collect`: seen = total + 2 * w
    std::vector<float> seen(64), expected, picked;
    for (size_t i = 0; i < 64; ++i)
      seen[i] = model.total[i] + 2 * static_cast<float>(i % 5);
    for (int64_t i : at)
      picked.push_back(seen[static_cast<size_t>(i)]);
    for (float value : then ? picked : seen)
      expected.push_back(then ? 3 * value : 6 * value);
    EXPECT_EQ(takeOutput<float>(session.get(), 0), expected);
    EXPECT_EQ(takeOutput<float>(session.get(), 1), picked);
    std::ifstream file(path);
    Json report = Json::parse(file);
    EXPECT_EQ(report["runs"], ++runs);
    EXPECT_EQ(report["first"].size(), 2u);
    EXPECT_EQ(report["last"].size(), 2u);
  }
}

TEST_F(Mixed, QueuesInAnyOrder) {
  TestBundle bundle = mixedBundle();
  Json &graph = bundle.graph["graphs"][0];
  graph["queues"] = {{{"name", "card"}, {"target", "corsair"}},
                     {{"name", "more"}, {"target", "corsair"}},
                     {{"name", "host"}, {"target", "cpu"}}};
  for (Json &task : graph["tasks"])
    task["queue"] = task["queue"] == 0 ? 2 : task["name"] == "pick_6" ? 1 : 0;
  OpenBundle other(bundle);
  ASSERT_EQ(other.status, DMX_OK) << other.error.message;
  MixedSession mixed(other.get(), 2);
  for (int run = 0; run < 3; ++run)
    mixed.runAndCompare();
  EXPECT_STREQ(infoOf(mixed).target, "corsair,cpu");
  EXPECT_STREQ(infoOf(mixed).isa, "corsair-like,x86-64");
}

TEST_F(Mixed, CallersExecutor) {
  dmx_executor serial{nullptr, [](void *, uint32_t count, void (*fn)(void *, uint32_t), void *arg) {
                        for (uint32_t i = count; i > 0; --i)
                          fn(arg, i - 1);
                      }};
  dmx_session_options options = DMX_SESSION_OPTIONS_INIT;
  options.executor = &serial;
  MixedSession mixed(open.get(), 3, options);
  for (int run = 0; run < 3; ++run)
    mixed.runAndCompare();
}

TEST_F(Mixed, CopiesRunOnTheHost) {
  // A copy of the card's queue, on the host's threads: large enough for a slice each.
  TestBundle bundle = mixedBundle();
  Json &graph = bundle.graph["graphs"][0];
  constexpr int64_t kBytes = 4 << 20;
  graph["arenas"][0]["size"] = 2 * kBytes + 2048;
  int base = static_cast<int>(graph["buffers"].size());
  for (int64_t i = 0; i < 2; ++i)
    graph["buffers"].push_back({{"kind", "arena"},
                                {"arena", 0},
                                {"offset", 2048 + i * kBytes},
                                {"size", kBytes},
                                {"dtype", "u8"},
                                {"shape", {kBytes}}});
  graph["tasks"].push_back({{"kind", "copy"},
                            {"queue", 1},
                            {"name", "large"},
                            {"src", base},
                            {"dst", base + 1},
                            {"size", kBytes},
                            {"deps", Json::array()}});
  OpenBundle other(bundle);
  ASSERT_EQ(other.status, DMX_OK) << other.error.message;
  MixedSession mixed(other.get(), 4);
  mixed.runAndCompare();
  dmx_task_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(dmx_session_task_info(mixed.session.get(), 8, &info, nullptr), DMX_OK);
  EXPECT_EQ(info.slices, 4u);
  ASSERT_EQ(dmx_session_task_info(mixed.session.get(), 4, &info, nullptr), DMX_OK);
  EXPECT_EQ(info.slices, 1u) << "a program of the card is one piece";
}

/// One card for all segments: constants and init once in the session, also when shapes change.
TEST_F(Mixed, OneCardInitialisedOnce) {
  std::string path = testing::TempDir() + "/mixed-" + std::to_string(getpid()) + ".json", setting = "report=" + path;
  std::vector<const char *> settings{setting.c_str()}; // only the card knows it
  auto read = [&] {
    std::ifstream file(path);
    return Json::parse(file);
  };
  MixedSession mixed(open.get(), 1, withSettings(settings));
  mixed.runAndCompare();
  Json report = read();
  EXPECT_EQ(report["runs"], 1) << "all segments of a run are one run";
  ASSERT_EQ(report["first"].size(), 3u);
  EXPECT_TRUE(report["first"][0].contains("init"));
  EXPECT_EQ(report["first"][0]["host_bytes_in"], 512) << "x and w";
  EXPECT_FALSE(report["first"][1].contains("init"));
  EXPECT_EQ(report["first"][1]["host_bytes_in"], 256);
  EXPECT_EQ(report["first"][2]["kernel"], "pick");
  mixed.bindExtent(500);
  mixed.runAndCompare();
  mixed.bindExtent(3);
  mixed.runAndCompare();
  report = read();
  EXPECT_EQ(report["runs"], 3);
  EXPECT_EQ(report["first"].size(), 3u);
  ASSERT_EQ(report["last"].size(), 3u);
  for (const Json &kernel : report["last"])
    EXPECT_FALSE(kernel.contains("init"));
  EXPECT_EQ(report["last"][0]["host_bytes_in"], 256);
  std::remove(path.c_str());
  std::remove((path + ".txt").c_str());
}

TEST_F(Mixed, SessionsAreIndependent) {
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      MixedSession mixed(open.get(), 1 + t);
      std::fill(mixed.model.x.begin(), mixed.model.x.end(), static_cast<float>(t + 1));
      for (int run = 0; run < 5; ++run)
        mixed.runAndCompare();
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST_F(Mixed, AsyncRuns) {
  MixedSession mixed(open.get(), 2);
  dmx_error error = DMX_ERROR_INIT;
  for (int run = 0; run < 3; ++run) {
    mixed.model.index[5] = 7;
    ASSERT_EQ(dmx_session_run_async(mixed.session.get(), &error), DMX_OK) << error.message;
    ASSERT_EQ(dmx_session_wait(mixed.session.get(), &error), DMX_OK) << error.message;
    mixed.model.run();
    mixed.expectResults();
    mixed.model.index[5] = -1;
    ASSERT_EQ(dmx_session_run_async(mixed.session.get(), &error), DMX_OK) << error.message;
    EXPECT_EQ(dmx_session_wait(mixed.session.get(), &error), DMX_STATUS_KERNEL);
    expectPart(error.message, "task 'gather_2'");
    mixed.model.run(2);
  }
}

/// A run that ends in one device's segment leaves the others ready for the next.
TEST_F(Mixed, ErrorsNameTheTaskAndEndTheRun) {
  for (uint32_t threads : {1u, 3u}) {
    MixedSession mixed(open.get(), threads);
    mixed.runAndCompare();
    for (int round = 0; round < 3; ++round) {
      std::fill(mixed.y.begin(), mixed.y.end(), -1.0f);
      mixed.model.index[63] = 64;
      std::string message = mixed.runAndFail(2);
      expectPart(message, "task 'gather_2' (node 'node_gather') failed: an index lies outside of its axis");
      expectPart(message, "(kernel 'gather', code 1)");
      EXPECT_EQ(mixed.y[0], -1) << "later segments do not run";
      mixed.model.index[63] = 0;
      mixed.runAndCompare();
      mixed.model.at[2] = 64;
      message = mixed.runAndFail(6);
      expectPart(message, "task 'pick_6' (node 'node_pick') failed: index-out-of-range");
      expectPart(message, "(kernel 'pick', code 1)");
      mixed.model.at[2] = 5;
      mixed.runAndCompare();
    }
  }
}

TEST_F(Mixed, ProfilesTasksByTheirNumberInTheGraph) {
  const char *const names[] = {"scale_0", "collect_1", "gather_2", "add_3", "collect_4", "copy_5", "pick_6", "scale_7"};
  MixedSession mixed(open.get(), 2);
  mixed.runAndCompare();
  ASSERT_EQ(dmx_session_profile(mixed.session.get(), 1000, nullptr), DMX_OK);
  auto take = [&] {
    std::vector<dmx_profile_event> events(1000);
    uint32_t count = 0;
    EXPECT_EQ(dmx_session_take_events(mixed.session.get(), events.data(), 1000, &count, nullptr, nullptr), DMX_OK);
    events.resize(count);
    return events;
  };
  auto taskInfo = [&](uint32_t task) {
    dmx_task_info info{};
    info.struct_size = sizeof info;
    EXPECT_EQ(dmx_session_task_info(mixed.session.get(), task, &info, nullptr), DMX_OK);
    return info;
  };
  mixed.runAndCompare();
  mixed.runAndCompare();
  std::vector<uint32_t> slices(8);
  uint64_t end = 0; // of the segments before
  for (const dmx_profile_event &event : take()) {
    if (event.task >= 8u) {
      ADD_FAILURE() << "task " << event.task;
      continue;
    }
    EXPECT_STREQ(event.name, names[event.task]);
    ++slices[event.task];
    if (event.task == 1 || event.task == 4 || event.task == 6) {
      EXPECT_EQ(event.thread, 0u);
      EXPECT_GE(event.start_ns, end);
      end = event.end_ns;
    } else {
      EXPECT_GE(event.start_ns, end) << names[event.task];
    }
  }
  for (uint32_t task = 0; task < 8; ++task) {
    EXPECT_EQ(slices[task], 2 * taskInfo(task).slices) << names[task];
    EXPECT_EQ(taskInfo(task).calls, 2u) << names[task];
    EXPECT_STREQ(taskInfo(task).name, names[task]);
  }
  EXPECT_EQ(taskInfo(2).slices, 2u);
  // Of a run that ends early, the tasks before; nothing is left of the runs before.
  mixed.model.index[0] = 99;
  mixed.runAndFail(2);
  for (const dmx_profile_event &event : take())
    EXPECT_LE(event.task, 2u);
  EXPECT_EQ(taskInfo(1).calls, 3u);
  EXPECT_EQ(taskInfo(4).calls, 2u);
}

TEST_F(Mixed, LevelsBindTheDevicesThatHaveThem) {
  TestBundle bundle = mixedBundle();
  bundle.manifest["targets"].push_back({{"target", "cpu"},
                                        {"arch", "x86-64-plus"},
                                        {"entry", "code/cpu/plus/kernels.so"},
                                        {"features", {"sse", "sse2"}}});
  bundle.files["code/cpu/plus/kernels.so"] = kernelObject("-sysv");
  OpenBundle other(bundle);
  ASSERT_EQ(other.status, DMX_OK) << other.error.message;
  auto levels = [&](const char *isa) {
    dmx_session_options options = DMX_SESSION_OPTIONS_INIT;
    options.isa = isa;
    MixedSession mixed(other.get(), 1, options);
    mixed.runAndCompare();
    EXPECT_STREQ(infoOf(mixed).target, "cpu,corsair");
    return std::string(infoOf(mixed).isa);
  };
  EXPECT_EQ(levels(nullptr), "x86-64-plus,corsair-like");
  EXPECT_EQ(levels("x86-64"), "x86-64,corsair-like");
  EXPECT_EQ(levels("corsair-like"), "x86-64-plus,corsair-like");
  dmx_session_options options = DMX_SESSION_OPTIONS_INIT;
  options.isa = "x86-64-v9";
  expectNoSession(
      other.get(), options, DMX_STATUS_INVALID_ARGUMENT,
      {"no code of ISA level 'x86-64-v9'", "for cpu it has x86-64, x86-64-plus", "for corsair it has corsair-like"});
}

TEST_F(Mixed, MissingCodeIsNamed) {
  auto refused = [](auto change, dmx_status status, const std::string &part, const char *isa = nullptr) {
    TestBundle bundle = mixedBundle();
    change(bundle);
    OpenBundle other(bundle);
    ASSERT_EQ(other.status, DMX_OK) << other.error.message;
    dmx_session_options options = DMX_SESSION_OPTIONS_INIT;
    options.isa = isa;
    expectNoSession(other.get(), options, status, {part});
  };
  for (const char *isa : {static_cast<const char *>(nullptr), "x86-64"})
    refused([](TestBundle &b) { b.manifest["targets"].erase(1); }, DMX_STATUS_UNSUPPORTED,
            "no code for target 'corsair'; compile the model with -t corsair", isa);
  refused([](TestBundle &b) { b.manifest["targets"].erase(0); }, DMX_STATUS_UNSUPPORTED, "no code for target 'cpu'");
  refused([](TestBundle &b) { b.graph["graphs"][0]["tasks"][4]["kernel"] = "add"; }, DMX_STATUS_INVALID_BUNDLE,
          "task 'collect_4' needs kernel 'add', which code 'code/corsair/corsair-like/kernels.dmxisa' does not have");
  refused([](TestBundle &b) { b.graph["graphs"][0]["tasks"][3]["kernel"] = "collect"; }, DMX_STATUS_INVALID_BUNDLE,
          "task 'add_3' needs kernel 'collect', which code 'code/cpu/x86-64/kernels.so' does not have");
  refused([](TestBundle &b) { b.graph["graphs"][0]["queues"].push_back({{"name", "n"}, {"target", "nowhere"}}); },
          DMX_STATUS_UNSUPPORTED, "target 'nowhere', which this runtime has no device for");
}

/// Between two turns of another device, tasks overlap as in a graph of their own.
TEST_F(Mixed, TasksOfASegmentOverlap) {
  ModelBuilder builder;
  int x = builder.input("x", "f32", {64}), at = builder.input("at", "i64", {4});
  int p = builder.output("p", "f32", {4}), a = builder.output("a", "i32", {1}), b = builder.output("b", "i32", {1});
  int flags = builder.state(64, "i32", {16}), own = builder.arena(16, "f32", {4});
  auto task = [](int64_t index) { return Json{{"dims", {index}}, {"flops", 100000000}}; };
  int pick = builder.dispatch("pick", {x, at, own}, 1, 1, {}, {{"queue", 1}});
  int first = builder.dispatch("rendezvous", {flags, a}, 2, 1, {pick}, task(0));
  int second = builder.dispatch("rendezvous", {flags, b}, 2, 1, {pick}, task(1));
  builder.dispatch("pick", {x, at, p}, 1, 1, {first, second}, {{"queue", 1}});
  TestBundle bundle = builder.finish(), mixed = mixedBundle();
  bundle.graph["graphs"][0]["queues"] = mixed.graph["graphs"][0]["queues"];
  bundle.manifest["targets"] = mixed.manifest["targets"];
  bundle.files = mixed.files;
  OpenBundle other(bundle);
  ASSERT_EQ(other.status, DMX_OK) << other.error.message;
  SessionPtr session = makeSession(other.get(), 2);
  std::vector<float> data(64), picked(4);
  std::vector<int64_t> indices(4);
  std::vector<int32_t> met(1), metToo(1);
  bindVector(session.get(), DMX_INPUT, 0, data, {64});
  bindVector(session.get(), DMX_INPUT, 1, indices, {4});
  bindVector(session.get(), DMX_OUTPUT, 0, picked, {4});
  bindVector(session.get(), DMX_OUTPUT, 1, met, {1});
  bindVector(session.get(), DMX_OUTPUT, 2, metToo, {1});
  for (int run = 0; run < 3; ++run) {
    dmx_session_reset_state(session.get(), nullptr);
    ASSERT_EQ(dmx_session_run(session.get(), nullptr), DMX_OK);
    EXPECT_EQ(met[0] + metToo[0], 2);
  }
}

/// A device that only copies needs no code, and then the level is a matter of the other one.
TEST_F(Mixed, HostOfCopiesNeedsNoCode) {
  ModelBuilder builder;
  int x = builder.input("x", "f32", {64}), at = builder.input("at", "i64", {4}), p = builder.output("p", "f32", {4});
  int own = builder.arena(256, "f32", {64});
  int copy = builder.copy(x, own, 256);
  builder.dispatch("pick", {own, at, p}, 1, 1, {copy}, {{"queue", 1}});
  TestBundle bundle = builder.finish(), mixed = mixedBundle();
  bundle.graph["graphs"][0]["queues"] = mixed.graph["graphs"][0]["queues"];
  bundle.manifest["targets"] = Json::array({mixed.manifest["targets"][1]});
  bundle.files = {
      {"code/corsair/corsair-like/kernels.dmxisa", mixed.files["code/corsair/corsair-like/kernels.dmxisa"]}};
  OpenBundle other(bundle);
  ASSERT_EQ(other.status, DMX_OK) << other.error.message;
  dmx_session_options options = DMX_SESSION_OPTIONS_INIT;
  options.isa = "corsair-like";
  SessionPtr session = makeSession(other.get(), 2, options);
  auto data = iota<float>(64, 100);
  std::vector<int64_t> indices{3, 2, 1, 63};
  std::vector<float> out(4);
  bindVector(session.get(), DMX_INPUT, 0, data, {64});
  bindVector(session.get(), DMX_INPUT, 1, indices, {4});
  bindVector(session.get(), DMX_OUTPUT, 0, out, {4});
  ASSERT_EQ(dmx_session_run(session.get(), nullptr), DMX_OK);
  EXPECT_EQ(out, (std::vector<float>{103, 102, 101, 163}));
  dmx_session_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(dmx_session_get_info(session.get(), &info, nullptr), DMX_OK);
  EXPECT_STREQ(info.target, "cpu,corsair");
  EXPECT_STREQ(info.isa, "corsair-like");
  options.isa = "x86-64";
  expectNoSession(other.get(), options, DMX_STATUS_UNSUPPORTED,
                  {"no corsair code for machine 'x86-64'; it has: corsair-like"});
}

TEST_F(Mixed, SettingsGoWhereTheyBelong) {
  for (const std::vector<const char *> &good :
       {std::vector<const char *>{"cpu.pin=1", "corsair.skew_seed=5"}, {"pin=1", "skew_seed=5", "spin_us=0"}}) {
    MixedSession mixed(open.get(), 2, withSettings(good));
    mixed.runAndCompare();
  }
  const std::string cpu = "target cpu knows cpu.spin_us=0..1000000, cpu.pin=0|1 and cpu.guard=start|end";
  const std::string card = "target corsair knows corsair.hazards=0|1, corsair.skew_seed=N, corsair.report=FILE, "
                           "corsair.strict_range=0|1 and "
                           "corsair.trace=FILE";
  struct {
    const char *setting;
    std::vector<std::string> parts;
    std::string absent;
  } const cases[] = {
      {"speed=3", {"device option 'speed=3' is not known", cpu, card}, ""},
      {"", {"device option '' is not known", cpu, card}, ""},
      {"=1", {"is not known", cpu, card}, ""},
      {"pin=2", {"device option 'pin=2' has a value other than 0|1", cpu}, card},
      {"pin", {"device option 'pin' has a value other than 0|1"}, card},
      {"report=", {"has a value other than FILE", card}, cpu},
      {"cpu.report=a.b", {"device option 'cpu.report=a.b' is not known", cpu}, card},
      {"corsair.pin=1", {"device option 'corsair.pin=1' is not known", card}, cpu},
      {"npu.pin=1", {"is for target 'npu', which this model does not run on", cpu, card}, ""},
  };
  for (const auto &test : cases) {
    std::vector<const char *> list{"cpu.pin=0", test.setting};
    expectNoSession(open.get(), withSettings(list), DMX_STATUS_INVALID_ARGUMENT, test.parts);
    dmx_error error = DMX_ERROR_INIT;
    dmx_session *made = nullptr;
    dmx_session_options options = withSettings(list);
    EXPECT_NE(dmx_session_create(open.get(), nullptr, &options, &made, &error), DMX_OK);
    if (!test.absent.empty()) {
      EXPECT_EQ(std::string(error.message).find(test.absent), std::string::npos) << error.message;
    }
  }
  // A graph of one target: its keys without the prefix, no others.
  OpenBundle plain(addModel(4));
  std::vector<const char *> list{"pin=1"}, foreign{"corsair.report=x"};
  EXPECT_TRUE(makeSession(plain.get(), 2, withSettings(list)));
  expectNoSession(plain.get(), withSettings(foreign), DMX_STATUS_INVALID_ARGUMENT,
                  {"is for target 'corsair', which this model does not run on; " + cpu});
}

TEST_F(Mixed, StatesStayOnOneDevice) {
  TestBundle bundle = mixedBundle();
  // Buffer 8 is the state; the card's `collect` has it, the host's `add` now reads it.
  bundle.graph["graphs"][0]["tasks"][3]["buffers"][1] = 8;
  expectRefused(bundle, DMX_STATUS_INVALID_BUNDLE,
                "tasks[3]: state buffer 8 is used by tasks of targets 'corsair' and 'cpu', but a state stays on one");
}

/// The caller's allocator has the memory of all devices, and gets it back.
TEST_F(Mixed, AllocatorServesAllDevices) {
  int64_t live = 0;
  dmx_allocator counting{&live,
                         [](void *user, size_t size, size_t alignment) -> void * {
                           void *memory = nullptr;
                           if (posix_memalign(&memory, alignment, size) != 0)
                             return nullptr;
                           *static_cast<int64_t *>(user) += static_cast<int64_t>(size);
                           return memory;
                         },
                         [](void *user, void *memory, size_t size) {
                           *static_cast<int64_t *>(user) -= static_cast<int64_t>(size);
                           std::free(memory);
                         }};
  dmx_session_options options = DMX_SESSION_OPTIONS_INIT;
  options.allocator = &counting;
  {
    MixedSession mixed(open.get(), 2, options);
    mixed.runAndCompare();
    EXPECT_EQ(infoOf(mixed).arena_bytes, 5 * 256u);
    EXPECT_EQ(infoOf(mixed).state_bytes, 256u);
    EXPECT_EQ(live, 6 * 256);
  }
  EXPECT_EQ(live, 0);
}
