//===- RehearsalTest.cpp - runs laid out without computing anything --------===//

#include "../RuntimeTest.h"

#include <functional>

using namespace dmxtest;

namespace {

using Change = std::function<void(Json &graphs)>;

/// With kernels that can be listed without running them.
TestBundle listed(TestBundle model, const Change &change = {}) {
  for (auto &[name, bytes] : model.files)
    if (name.starts_with("code/"))
      bytes = kernelObject("-exported");
  if (change)
    change(model.graph["graphs"]);
  return model;
}

Json appending(const std::string &name) {
  ModelBuilder builder;
  builder.dim("n", 0, 1000, 0, 0);
  builder.computedDim("n1", {"add", "n", 1});
  int x = builder.input("x", "i64", {"n"}), value = builder.input("v", "i64", Json::array());
  int y = builder.output("y", "i64", {"n1"});
  builder.dispatch("append", {x, value, y}, 1, 1, {}, {{"dims", {"n"}}});
  return builder.graphNamed(name);
}

/// Appends v to x in both branches: the result has an element more than x, as `promise` says or not.
TestBundle branchModel(Json promise) {
  ModelBuilder builder;
  builder.dim("n", 0, 1000, 1, 0);
  int c = builder.input("c", "bool", Json::array()), x = builder.input("x", "i64", {"n"});
  int v = builder.input("v", "i64", Json::array());
  int given = builder.result(0, 0, "i64", {promise}), y = builder.output("y", "i64", {promise});
  // What is given is known behind the task, so that what reads it lies in the next stage.
  builder.extentDim("r", 0, 0, 0, 0, 2000);
  builder.branch(c, "then", "else", {x, v}, 1);
  builder.copy(given, y, {"mul", promise, 8}, {0});
  TestBundle model = builder.finish();
  model.graph["graphs"].push_back(appending("then"));
  model.graph["graphs"].push_back(appending("else"));
  return model;
}

/// A list grows by an element an iteration.
TestBundle loopModel() {
  ModelBuilder builder;
  builder.dim("n", 0, 1000, 0, 0);
  builder.extentDim("m", 0, 0, 0);
  builder.returnedDim("k", 0, 0, 0, INT64_MAX);
  int list = builder.input("list", "i64", {"n"}), trips = builder.input("trips", "i64", Json::array());
  int longer = builder.result(0, 0, "i64", {"m"}), scanned = builder.result(0, 1, "i64", {"k"});
  int y = builder.output("y", "i64", {"m"}), z = builder.output("z", "i64", {"k"});
  builder.loop("body", {list}, {}, {}, {{"scans", 1}, {"trip_count", trips}});
  builder.copy(longer, y, {"mul", "m", 8}, {0});
  builder.copy(scanned, z, {"mul", "k", 8}, {0});
  TestBundle model = builder.finish();
  ModelBuilder body;
  body.dim("n", 0, INT64_MAX, 2, 0);
  body.computedDim("n1", {"add", "n", 1});
  int i = body.input("i", "i64", Json::array()), c = body.input("c", "bool", Json::array());
  int old = body.input("list", "i64", {"n"}), go = body.output("go", "bool", Json::array());
  int next = body.output("next", "i64", {"n1"}), scan = body.output("scan", "i64", Json::array());
  body.copy(c, go, 1);
  body.dispatch("append", {old, i, next}, 1, 1, {}, {{"dims", {"n"}}});
  body.copy(i, scan, 8);
  model.graph["graphs"].push_back(body.graphNamed("body"));
  return model;
}

struct Outcome {
  dmx_status status;
  std::string message;
};

/// For inputs of these shapes; their dtypes are those of the entry point.
Outcome rehearse(const TestBundle &model, std::vector<std::vector<int64_t>> shapes) {
  OpenBundle open(model);
  EXPECT_EQ(open.status, DMX_OK) << open.error.message;
  std::vector<dmx_tensor_view> views;
  for (uint32_t i = 0; i < shapes.size(); ++i) {
    dmx_tensor_info info = {};
    info.struct_size = sizeof info;
    EXPECT_EQ(dmx_bundle_tensor_info(open.get(), nullptr, DMX_INPUT, i, &info, nullptr), DMX_OK);
    views.push_back({info.dtype, static_cast<uint32_t>(shapes[i].size()), shapes[i].data(), nullptr});
  }
  dmx_error error = DMX_ERROR_INIT;
  dmx_status status =
      dmx_bundle_rehearse(open.get(), nullptr, views.data(), static_cast<uint32_t>(views.size()), &error);
  return {status, error.message};
}

void expectRefused(const Outcome &outcome, dmx_status status, const std::string &part) {
  EXPECT_EQ(outcome.status, status) << outcome.message;
  EXPECT_NE(outcome.message.find(part), std::string::npos) << outcome.message << "\nexpected part: " << part;
}

} // namespace

TEST(Rehearsal, SoundBundlesPass) {
  for (int64_t n : {0, 1, 7, 1000}) {
    EXPECT_EQ(rehearse(listed(nonzeroBuilder().finish()), {{n}}).message, "");
    EXPECT_EQ(rehearse(listed(branchModel({"add", "n", 1})), {{}, {n}, {}}).message, "");
    EXPECT_EQ(rehearse(listed(loopModel()), {{n}, {}}).message, "");
  }
}

TEST(Rehearsal, InputsAreThoseOfAnyRun) {
  TestBundle model = listed(nonzeroBuilder().finish());
  expectRefused(rehearse(model, {{1001}}), DMX_STATUS_INVALID_ARGUMENT, "is 1001, expected 0 to 1000");
  expectRefused(rehearse(model, {{2, 3}}), DMX_STATUS_INVALID_ARGUMENT, "rank is 2, expected 1");
  expectRefused(rehearse(model, {}), DMX_STATUS_INVALID_ARGUMENT, "0 inputs were given, the entry point has 1");
  OpenBundle open(model);
  dmx_error error = DMX_ERROR_INIT;
  EXPECT_EQ(dmx_bundle_rehearse(open.get(), nullptr, nullptr, 1, &error), DMX_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(dmx_bundle_rehearse(open.get(), "other", nullptr, 0, &error), DMX_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(dmx_bundle_rehearse(nullptr, nullptr, nullptr, 0, &error), DMX_STATUS_INVALID_ARGUMENT);
}

/// A view of the second stage beyond the buffer of the first: no run before the kernel that returns n would tell.
TEST(Rehearsal, FindsWhatOnlyALaterStageShows) {
  TestBundle model = listed(nonzeroBuilder().finish(), [](Json &graphs) {
    for (Json &buffer : graphs[0]["buffers"])
      if (buffer["kind"] == "alias")
        buffer["offset"] = 8;
  });
  expectRefused(rehearse(model, {{10}}), DMX_STATUS_INVALID_BUNDLE, "leave the buffer it is an alias of");
}

TEST(Rehearsal, FindsWhatOnlyABranchShows) {
  expectRefused(rehearse(listed(branchModel("n")), {{}, {5}, {}}), DMX_STATUS_INVALID_BUNDLE, "is 6, expected 5");
  for (int branch : {1, 2}) {
    TestBundle model = listed(branchModel({"add", "n", 1}),
                              [&](Json &graphs) { graphs[branch]["tasks"][0]["work"] = {"sub", "n", 5}; });
    EXPECT_EQ(rehearse(model, {{}, {5}, {}}).message, "");
    expectRefused(rehearse(model, {{}, {4}, {}}), DMX_STATUS_INVALID_BUNDLE, "work is -1");
  }
}

TEST(Rehearsal, FindsWhatOnlyABodyShows) {
  TestBundle model = listed(loopModel(), [](Json &graphs) { graphs[1]["tasks"][2]["size"] = 16; });
  expectRefused(rehearse(model, {{5}, {}}), DMX_STATUS_INVALID_BUNDLE, "a copy of 16 bytes");
}

TEST(Rehearsal, BranchesExpectWhatTheyGet) {
  TestBundle model = listed(branchModel({"add", "n", 1}), [](Json &graphs) { graphs[2]["buffers"][0]["shape"] = {1}; });
  EXPECT_EQ(rehearse(model, {{}, {1}, {}}).message, "");
  expectRefused(rehearse(model, {{}, {5}, {}}), DMX_STATUS_INVALID_BUNDLE, "axis 0 is 5, but 1 is 1");
}

/// Inputs that a branch cannot take say nothing while the condition is not known.
TEST(Rehearsal, BranchesNeedNotFitAllInputs) {
  TestBundle model = listed(branchModel({"add", "n", 1}), [](Json &graphs) {
    graphs[1]["constraints"] = {{{"rel", "eq"}, {"lhs", "n"}, {"rhs", 3}, {"text", "then needs three"}}};
  });
  EXPECT_EQ(rehearse(model, {{}, {5}, {}}).message, "");
}

TEST(Rehearsal, NoMachineHasTheMemory) {
  ModelBuilder builder;
  builder.dim("n", 0, INT64_MAX, 0, 0);
  int x = builder.input("x", "f32", {"n"}), y = builder.output("y", "f32", {"n"});
  int room = builder.arenaOf({"mul", "n", 400}, "f32", {"n"});
  builder.dispatch("twice_by_scratch", {x, room}, 1, "n", {}, {{"dims", {"n"}}, {"scratch", {"mul", "n", 4}}});
  builder.copy(room, y, {"mul", "n", 4}, {0});
  TestBundle model = listed(builder.finish());
  // Far more than this machine has, but none of it is allocated.
  EXPECT_EQ(rehearse(model, {{int64_t(1) << 38}}).message, "");
  expectRefused(rehearse(model, {{int64_t(1) << 41}}), DMX_STATUS_OUT_OF_MEMORY, "not within");
}

TEST(Rehearsal, LiesAboutKernelsAreFound) {
  TestBundle model =
      listed(nonzeroBuilder().finish(), [](Json &graphs) { graphs[0]["tasks"][1]["kernel"] = "no_such"; });
  expectRefused(rehearse(model, {{3}}), DMX_STATUS_INVALID_BUNDLE, "'no_such'");
}

TEST(Rehearsal, OlderKernelsCannotBeListed) {
  expectRefused(rehearse(batchModel(), {{2, 4}}), DMX_STATUS_UNSUPPORTED, "before contracts");
}

/// Code for a processor that nobody has is looked at like the rest.
TEST(Rehearsal, EveryCodeObjectIsTaken) {
  TestBundle model = listed(nonzeroBuilder().finish());
  Json other = model.manifest["targets"][0];
  other["arch"] = "x86-64-v9";
  other["entry"] = "code/cpu/x86-64-v9/kernels.so";
  other["features"] = {"no-such-feature"};
  model.manifest["targets"].push_back(other);
  model.files["code/cpu/x86-64-v9/kernels.so"] = kernelObject("-exported");
  EXPECT_EQ(rehearse(model, {{3}}).message, "");
  model.files["code/cpu/x86-64-v9/kernels.so"] = "none";
  expectRefused(rehearse(model, {{3}}), DMX_STATUS_INVALID_BUNDLE, "x86-64-v9");
}
