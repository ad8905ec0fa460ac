//===- ControlTest.cpp - branches and loops -------------------------------===//

#include "../AllocationCount.h"
#include "../RuntimeTest.h"

#include <atomic>

using namespace dmxtest;

namespace {

void expectPart(const dmx_error &error, const std::string &part) {
  EXPECT_NE(std::string(error.message).find(part), std::string::npos) << error.message << "\nexpected part: " << part;
}

/// y = the input with itself appended to (then), or twice the input (else), and its length.
Json thenGraph() {
  ModelBuilder builder;
  builder.dim("n", 1, 1000, 0, 0);
  builder.computedDim("n1", {"add", "n", 1});
  int x = builder.input("x", "i64", {"n"}), first = builder.input("v", "i64", Json::array());
  int y = builder.output("y", "i64", {"n1"});
  builder.dispatch("append", {x, first, y}, 1, 1, {}, {{"dims", {"n"}}});
  return builder.graphNamed("then");
}

Json elseGraph() {
  ModelBuilder builder;
  builder.dim("k", 1, 1000, 0, 0);
  int x = builder.input("x", "i64", {"k"});
  int y = builder.output("y", "i64", {"k"});
  builder.dispatch("add_i64", {x, x, y}, 1, "k", {}, {{"dims", {1}}});
  return builder.graphNamed("else");
}

/// cond ? x with v appended : x + x; the result is doubled again.
TestBundle branchModel() {
  ModelBuilder builder;
  builder.dim("n", 1, 1000, 1, 0);
  builder.extentDim("r", 0, 0, 0, 0, {"add", "n", 1});
  int c = builder.input("c", "bool", Json::array()), x = builder.input("x", "i64", {"n"});
  int v = builder.input("v", "i64", Json::array());
  int given = builder.result(0, 0, "i64", {"r"});
  int y = builder.output("y", "i64", {"r"});
  builder.branch(c, "then", "else", {x, v}, 1);
  builder.dispatch("add_i64", {given, given, y}, 1, "r", {0}, {{"dims", {1}}});
  TestBundle model = builder.finish();
  model.graph["graphs"].push_back(thenGraph());
  model.graph["graphs"].push_back(elseGraph());
  return model;
}

struct BranchInputs {
  uint8_t condition = 0;
  std::vector<int64_t> x;
  int64_t v = 77;

  void bind(dmx_session *session) {
    int64_t n = static_cast<int64_t>(x.size());
    dmx_tensor_view views[] = {
        {DMX_DTYPE_BOOL, 0, nullptr, &condition}, {DMX_DTYPE_I64, 1, &n, x.data()}, {DMX_DTYPE_I64, 0, nullptr, &v}};
    for (uint32_t i = 0; i < 3; ++i)
      ASSERT_EQ(dmx_session_bind(session, DMX_INPUT, i, &views[i], nullptr), DMX_OK);
  }
  std::vector<int64_t> expected() const {
    std::vector<int64_t> out = x;
    if (condition)
      out.push_back(v);
    for (int64_t &value : out)
      value *= condition ? 2 : 4;
    return out;
  }
};

/// Body of a loop that appends iteration + step to a list, stops when the iteration reaches `stop`, and gives
/// {iteration, iteration + step} in each iteration.
Json listBody() {
  ModelBuilder builder;
  builder.dim("n", 0, 100000, 2, 0);
  builder.computedDim("n1", {"add", "n", 1});
  int i = builder.input("i", "i64", Json::array());
  builder.input("c", "bool", Json::array());
  int list = builder.input("list", "i64", {"n"}), step = builder.input("step", "i64", Json::array());
  int stop = builder.input("stop", "i64", Json::array());
  int value = builder.arena(8, "i64", Json::array());
  int go = builder.output("go", "bool", Json::array()), longer = builder.output("longer", "i64", {"n1"});
  int pair = builder.output("pair", "i64", {2});
  builder.dispatch("below", {i, stop, go}, 1, 1);
  builder.dispatch("add_i64", {i, step, value}, 1, 1, {}, {{"dims", {1}}});
  builder.dispatch("append", {list, value, longer}, 1, 1, {1}, {{"dims", {"n"}}});
  int last = builder.copy(i, pair, 8, {2});
  builder.copy(value, pair, 8, {last}, {{"dst_offset", 8}});
  return builder.graphNamed("body");
}

/// (list, step, stop, trips, go) -> (list, pairs); with `trips` and `go` as far as `with` says.
TestBundle loopModel(bool withTrips = true, bool withCondition = true) {
  ModelBuilder builder;
  builder.dim("n", 0, 1000, 0, 0);
  builder.extentDim("m", 0, 0, 0);
  builder.returnedDim("k", 0, 0, 0, INT64_MAX);
  builder.constraint("eq", "m", {"add", "n", "k"}, "one element an iteration");
  int list = builder.input("list", "i64", {"n"}), step = builder.input("step", "i64", Json::array());
  int stop = builder.input("stop", "i64", Json::array()), trips = builder.input("trips", "i64", Json::array());
  int go = builder.input("go", "bool", Json::array());
  int longer = builder.result(0, 0, "i64", {"m"}), pairs = builder.result(0, 1, "i64", {"k", 2});
  int y = builder.output("y", "i64", {"m"}), z = builder.output("z", "i64", {"k", 2});
  Json more = {{"scans", 1}};
  if (withTrips)
    more["trip_count"] = trips;
  if (withCondition)
    more["cond"] = go;
  builder.loop("body", {list}, {step, stop}, {}, more);
  builder.copy(longer, y, {"mul", "m", 8}, {0});
  builder.copy(pairs, z, {"mul", "k", 16}, {0});
  TestBundle model = builder.finish();
  model.graph["graphs"].push_back(listBody());
  return model;
}

struct LoopInputs {
  std::vector<int64_t> list{5, 6};
  int64_t step = 10, stop = INT64_MAX, trips = INT64_MAX;
  uint8_t go = 1;

  void bind(dmx_session *session) {
    int64_t n = static_cast<int64_t>(list.size());
    dmx_tensor_view views[] = {{DMX_DTYPE_I64, 1, &n, list.data()},
                               {DMX_DTYPE_I64, 0, nullptr, &step},
                               {DMX_DTYPE_I64, 0, nullptr, &stop},
                               {DMX_DTYPE_I64, 0, nullptr, &trips},
                               {DMX_DTYPE_BOOL, 0, nullptr, &go}};
    for (uint32_t i = 0; i < 5; ++i)
      ASSERT_EQ(dmx_session_bind(session, DMX_INPUT, i, &views[i], nullptr), DMX_OK);
  }
  /// What ONNX's Loop says, written down anew.
  std::pair<std::vector<int64_t>, std::vector<int64_t>> expected() const {
    std::vector<int64_t> out = list, pairs;
    bool keep = go;
    for (int64_t i = 0; i < trips && keep; ++i) {
      keep = i < stop;
      out.push_back(i + step);
      pairs.insert(pairs.end(), {i, i + step});
    }
    return {out, pairs};
  }
};

void expectLoop(dmx_session *session, LoopInputs &inputs) {
  dmx_error error = DMX_ERROR_INIT;
  inputs.bind(session);
  ASSERT_EQ(dmx_session_run(session, &error), DMX_OK) << error.message;
  auto [list, pairs] = inputs.expected();
  std::vector<int64_t> dims;
  EXPECT_EQ(takeOutput<int64_t>(session, 0), list);
  EXPECT_EQ(takeOutput<int64_t>(session, 1, &dims), pairs);
  EXPECT_EQ(dims, (std::vector<int64_t>{static_cast<int64_t>(pairs.size() / 2), 2}));
}

} // namespace

TEST(Control, BranchesWithShapesOfTheirOwn) {
  OpenBundle open(branchModel());
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  for (uint32_t threads : {1u, 3u}) {
    SessionPtr session = makeSession(open.get(), threads);
    BranchInputs inputs;
    for (auto [condition, count] : {std::pair<uint8_t, size_t>{1, 4}, {0, 4}, {0, 9}, {1, 9}, {1, 2}, {0, 500}}) {
      inputs.condition = condition;
      inputs.x = iota<int64_t>(count, 3);
      inputs.bind(session.get());
      dmx_error error = DMX_ERROR_INIT;
      ASSERT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << error.message;
      EXPECT_EQ(takeOutput<int64_t>(session.get(), 0), inputs.expected());
    }
  }
}

TEST(Control, BranchErrorsNameThePath) {
  TestBundle model = branchModel();
  model.graph["graphs"][0]["dims"][1]["max"] = "n"; // one less than "then" gives
  model.graph["graphs"][2]["dims"][0]["max"] = 3;
  OpenBundle open(model);
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  SessionPtr session = makeSession(open.get());
  BranchInputs inputs{1, {1, 2, 3, 4}};
  inputs.bind(session.get());
  dmx_error error = DMX_ERROR_INIT;
  EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_STATUS_KERNEL);
  expectPart(error, "task 'if_0' returned 5 for dim 'r', expected 0 to 4");
  inputs.condition = 0;
  EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_STATUS_KERNEL);
  expectPart(error, "task 'if_0': else: input 0 of graph 'else': axis 0 ('k') is 4, expected 1 to 3");
  BranchInputs smaller{0, {1, 2, 3}};
  smaller.bind(session.get());
  ASSERT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << error.message;
  EXPECT_EQ(takeOutput<int64_t>(session.get(), 0), smaller.expected());
}

TEST(Control, ResultsMustHaveTheirShape) {
  TestBundle model = branchModel();
  model.graph["graphs"][0]["buffers"][3]["shape"] = {"n"};
  OpenBundle open(model);
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  SessionPtr session = makeSession(open.get());
  BranchInputs inputs{1, {1, 2}};
  inputs.bind(session.get());
  dmx_error error = DMX_ERROR_INIT;
  EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_STATUS_KERNEL);
  expectPart(error, "task 'if_0': axis 0 of output 0 is 3, expected 2 (n)");
}

TEST(Control, LoopsEndAsOnnxSays) {
  for (bool withTrips : {false, true})
    for (bool withCondition : {false, true}) {
      OpenBundle open(loopModel(withTrips, withCondition));
      ASSERT_EQ(open.status, DMX_OK) << open.error.message;
      SessionPtr session = makeSession(open.get(), withTrips && withCondition ? 2 : 1);
      for (int64_t trips : {0, 1, 2, 7, 40})
        for (int64_t stop : {0, 3, 20})
          for (uint8_t go : {0, 1}) {
            LoopInputs inputs;
            inputs.trips = withTrips ? trips : INT64_MAX;
            inputs.go = withCondition ? go : 1;
            inputs.stop = stop;
            expectLoop(session.get(), inputs);
          }
    }
}

TEST(Control, LoopsWithEmptyInitialValues) {
  OpenBundle open(loopModel());
  SessionPtr session = makeSession(open.get());
  for (int64_t trips : {0, 3, 0, 1}) {
    LoopInputs inputs;
    inputs.list.clear();
    inputs.trips = trips;
    expectLoop(session.get(), inputs);
  }
}

/// A body without shapes of its own, run again and again: nothing is allocated.
TEST(Control, SteadyStateAllocatesNothing) {
  if (!canCountAllocations)
    GTEST_SKIP() << "a sanitizer has the allocation functions";
  ModelBuilder body;
  int i = body.input("i", "i64", Json::array());
  body.input("c", "bool", Json::array());
  int sum = body.input("sum", "i64", {4});
  int go = body.output("go", "bool", Json::array()), out = body.output("out", "i64", {4});
  int each = body.output("each", "i64", {4});
  body.dispatch("is_true", {go}, 1, 1);
  body.dispatch("add_i64", {sum, i, out}, 1, 4, {}, {{"dims", {0}}});
  body.copy(out, each, 32, {1});
  ModelBuilder builder;
  builder.returnedDim("k", 0, 0, 0, 100);
  int start = builder.input("start", "i64", {4}), trips = builder.input("trips", "i64", Json::array());
  int last = builder.result(0, 0, "i64", {4}), all = builder.result(0, 1, "i64", {"k", 4});
  int y = builder.output("y", "i64", {4}), z = builder.output("z", "i64", {"k", 4});
  builder.loop("body", {start}, {}, {}, {{"trip_count", trips}, {"scans", 1}});
  builder.copy(last, y, 32, {0});
  builder.copy(all, z, {"mul", "k", 32}, {0});
  TestBundle model = builder.finish();
  model.graph["graphs"].push_back(body.graphNamed("body"));
  OpenBundle open(model);
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  SessionPtr session = makeSession(open.get());
  auto values = iota<int64_t>(4);
  int64_t count = 10;
  dmx_tensor_view trip{DMX_DTYPE_I64, 0, nullptr, &count};
  bindVector(session.get(), DMX_INPUT, 0, values, {4});
  ASSERT_EQ(dmx_session_bind(session.get(), DMX_INPUT, 1, &trip, nullptr), DMX_OK);
  for (int run = 0; run < 2; ++run)
    ASSERT_EQ(dmx_session_run(session.get(), nullptr), DMX_OK);
  allocations = 0;
  countAllocations = true;
  for (int run = 0; run < 5; ++run)
    dmx_session_run(session.get(), nullptr);
  countAllocations = false;
  EXPECT_EQ(allocations, 0);
  EXPECT_EQ(takeOutput<int64_t>(session.get(), 0), (std::vector<int64_t>{45, 46, 47, 48}));
  EXPECT_EQ(takeOutput<int64_t>(session.get(), 1).size(), 40u);
}

TEST(Control, ErrorsInLoopsNameTaskAndIteration) {
  TestBundle model = loopModel();
  Json &tasks = model.graph["graphs"][1]["tasks"];
  tasks[1]["kernel"] = "fail_at"; // value = i
  tasks[1]["buffers"] = {0, 5};
  tasks[1]["dims"] = {4};
  OpenBundle open(model);
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  SessionPtr session = makeSession(open.get(), 2);
  LoopInputs inputs;
  inputs.step = 0;
  inputs.trips = 4;
  expectLoop(session.get(), inputs);
  inputs.trips = 5;
  inputs.bind(session.get());
  dmx_error error = DMX_ERROR_INIT;
  EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_STATUS_KERNEL);
  expectPart(error, "task 'loop_0': iteration 4: task 'add_i64_1' (node 'node_add_i64') failed: an index");
  inputs.trips = 3;
  expectLoop(session.get(), inputs);
}

/// What is stacked has one shape in all iterations.
TEST(Control, ScanOutputsKeepTheirShape) {
  TestBundle model = loopModel();
  Json &body = model.graph["graphs"][1], &main = model.graph["graphs"][0];
  body["buffers"][8]["shape"] = {"n1"};
  body["tasks"][3] = body["tasks"][2]; // append into the scan output
  body["tasks"][3]["buffers"] = {2, 5, 8};
  body["tasks"].erase(4);
  main["dims"].push_back({{"name", "w"}, {"task", 0}, {"output", 1}, {"axis", 1}, {"min", 0}, {"max", 100}});
  main["buffers"][6]["shape"] = main["buffers"][8]["shape"] = {"k", "w"};
  main["tasks"][2]["size"] = {"mul", {"mul", "k", "w"}, 8};
  OpenBundle open(model);
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  SessionPtr session = makeSession(open.get());
  LoopInputs inputs;
  inputs.trips = 1;
  inputs.bind(session.get());
  dmx_error error = DMX_ERROR_INIT;
  ASSERT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << error.message;
  std::vector<int64_t> dims;
  EXPECT_EQ(takeOutput<int64_t>(session.get(), 1, &dims), (std::vector<int64_t>{5, 6, 10}));
  EXPECT_EQ(dims, (std::vector<int64_t>{1, 3}));
  inputs.trips = 0; // the body's dims say what one would be
  inputs.bind(session.get());
  ASSERT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << error.message;
  takeOutput<int64_t>(session.get(), 1, &dims);
  EXPECT_EQ(dims, (std::vector<int64_t>{0, 3}));
  inputs.trips = 2;
  EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_STATUS_KERNEL);
  expectPart(error, "task 'loop_0': iteration 1: scan output 1: its shape differs from that of the iterations before");
}

/// A loop that would not end fails when memory does.
TEST(Control, EndlessScansRunOutOfMemory) {
  struct Limited {
    std::atomic<int64_t> live{0};
    static void *allocate(void *user, size_t size, size_t alignment) {
      Limited &self = *static_cast<Limited *>(user);
      if (self.live + static_cast<int64_t>(size) > (1 << 16))
        return nullptr;
      self.live += static_cast<int64_t>(size);
      return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    }
    static void release(void *user, void *memory, size_t size) {
      static_cast<Limited *>(user)->live -= static_cast<int64_t>(size);
      std::free(memory);
    }
  } limited;
  OpenBundle open(loopModel());
  dmx_allocator allocator{&limited, Limited::allocate, Limited::release};
  dmx_session_options options = DMX_SESSION_OPTIONS_INIT;
  options.allocator = &allocator;
  SessionPtr session = makeSession(open.get(), 1, options);
  LoopInputs inputs;
  inputs.bind(session.get());
  dmx_error error = DMX_ERROR_INIT;
  EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_STATUS_OUT_OF_MEMORY);
  expectPart(error, "task 'loop_0': iteration ");
  inputs.trips = 6;
  expectLoop(session.get(), inputs);
  session.reset();
  EXPECT_EQ(limited.live, 0);
}

TEST(Control, BadBundles) {
  TestBundle model = loopModel(), branches = branchModel();
  auto refused = [](const TestBundle &good, const std::string &part, auto change,
                    dmx_status status = DMX_STATUS_INVALID_BUNDLE) {
    TestBundle bad = good;
    change(bad.graph["graphs"]);
    SCOPED_TRACE(part);
    expectRefused(bad, status, part);
  };
  refused(model, "graph 'main', task 0 'loop_0': there is no graph 'other'",
          [](Json &g) { g[0]["tasks"][0]["body"] = "other"; });
  refused(model, "nested deeper than 32 levels or in itself", [](Json &g) {
    Json task = g[0]["tasks"][0];
    g[0]["tasks"].erase(0);
    g[0]["tasks"] = Json::array(), g[0]["dims"].erase(1), g[0]["dims"].erase(1), g[0]["constraints"] = Json::array();
    for (int i = 8; i >= 5; --i)
      g[0]["buffers"].erase(i);
    task["carried"] = {2}, task["inputs"] = {3, 4}, task.erase("trip_count"), task.erase("cond");
    g[1]["tasks"].push_back(task);
  });
  refused(branches, "graph 'then' is another task's already", [](Json &g) { g[0]["tasks"][0]["else"] = "then"; });
  refused(model, "owned by a task",
          [](Json &g) { g[0]["name"] = "body", g[1]["name"] = "main", g[0]["tasks"][0]["body"] = "main"; });
  refused(model, "its input 3 is i64 of rank 0, but it gets i64 of rank 1",
          [](Json &g) { g[0]["tasks"][0]["inputs"] = {0, 2}; });
  refused(model, "it has input 4, but gets 4 inputs", [](Json &g) { g[0]["tasks"][0]["inputs"] = {1}; });
  refused(
      model, "it has 3 outputs, expected 2",
      [](Json &g) {
        g[0]["tasks"][0]["scans"] = 0;
        g[0]["buffers"][6] = g[0]["buffers"][5];
        g[0]["buffers"][6]["kind"] = "input", g[0]["buffers"][6]["index"] = 9;
      },
      DMX_STATUS_INVALID_BUNDLE);
  refused(model, "is not one i64", [](Json &g) { g[0]["tasks"][0]["trip_count"] = 0; });
  refused(model, "is not one bool", [](Json &g) { g[0]["tasks"][0]["cond"] = 1; });
  refused(model, "has no output 2", [](Json &g) { g[0]["buffers"][6]["output"] = 2; });
  refused(model, "another buffer is the same output", [](Json &g) { g[0]["buffers"][6]["output"] = 0; });
  refused(model, "is read from axis 1 of output 0, which has rank 1", [](Json &g) { g[0]["dims"][1]["axis"] = 1; });
  refused(model, "result of another task", [](Json &g) { g[0]["tasks"][1]["dst"] = 5; });
  refused(model, "task 0 'loop_0' uses what task 0 'loop_0' returns",
          [](Json &g) { g[0]["tasks"][0]["inputs"] = {5, 2}; });
  refused(model, "its output 1 is i64 of rank 1, expected i64 of rank 0", [](Json &g) {
    g[0]["tasks"][0]["carried"] = {1};
    g[1]["buffers"][2]["shape"] = Json::array(),
    g[1]["dims"] = {{{"name", "n"}, {"expr", 1}}, {{"name", "n1"}, {"expr", 2}}};
  });
  refused(branches, "gives i64 of rank 1, but the result's buffer is i64 of rank 2",
          [](Json &g) { g[0]["buffers"][3]["shape"] = {"r", 1}; });
  refused(branches, "control flow runs on target 'cpu' only", [](Json &g) {
    g[0]["queues"].push_back({{"name", "c"}, {"target", "corsair"}});
    g[0]["tasks"][0]["queue"] = 1;
  });
  refused(
      branches, "graphs of control flow run on 'cpu' only", [](Json &g) { g[1]["queues"][0]["target"] = "corsair"; },
      DMX_STATUS_UNSUPPORTED);
}
