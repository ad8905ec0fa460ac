//===- ContractTest.cpp - what kernels rely on, against what tasks say -----===//

#include "../RuntimeTest.h"
#include "runtime/devices/cpu/ElfImage.h"

#include <functional>

using namespace dmxtest;

namespace {

/// y = 2 x over a symbolic n, by the kernel that has a contract. `change` may lie about it.
TestBundle twiceModel(const std::string &variant, const std::function<void(Json &graph)> &change = {}) {
  ModelBuilder builder;
  builder.dim("n", 0, 1000, 0, 0);
  int x = builder.input("x", "f32", {"n"}), y = builder.output("y", "f32", {"n"});
  int room = builder.arenaOf({"mul", "n", 4}, "f32", {"n"});
  builder.dispatch("twice_by_scratch", {x, room}, 1, "n", {}, {{"dims", {"n"}}, {"scratch", {"mul", "n", 4}}});
  builder.copy(room, y, {"mul", "n", 4}, {0});
  TestBundle model = builder.finish();
  for (auto &[name, bytes] : model.files)
    if (name.starts_with("code/"))
      bytes = kernelObject(variant);
  if (change)
    change(model.graph["graphs"][0]);
  return model;
}

/// The sentence of the session or run that refuses it; "" when it runs and is right.
std::string refusal(const TestBundle &model) {
  OpenBundle open(model);
  if (open.status != DMX_OK)
    return std::string("open: ") + open.error.message;
  dmx_error error = DMX_ERROR_INIT;
  dmx_session *made = nullptr;
  if (dmx_session_create(open.get(), nullptr, nullptr, &made, &error) != DMX_OK)
    return error.message;
  SessionPtr session(made);
  std::vector<float> x = iota<float>(7);
  bindVector(session.get(), DMX_INPUT, 0, x, {7});
  if (dmx_session_run(session.get(), &error) != DMX_OK) {
    EXPECT_EQ(error.status, DMX_STATUS_INVALID_BUNDLE);
    return error.message;
  }
  std::vector<float> y = takeOutput<float>(session.get(), 0);
  EXPECT_EQ(y.size(), 7u);
  for (size_t i = 0; i < y.size(); ++i)
    EXPECT_EQ(y[i], 2 * x[i]);
  return "";
}

void expectLie(const std::string &part, const std::function<void(Json &graph)> &change) {
  std::string message = refusal(twiceModel("", change));
  EXPECT_NE(message.find(part), std::string::npos) << "message: " << message << "\nexpected part: " << part;
  EXPECT_NE(message.find("kernel 'twice_by_scratch'"), std::string::npos) << message;
}

} // namespace

TEST(Contract, TruthRuns) {
  for (const char *variant : {"", "-exported", "-v2"})
    EXPECT_EQ(refusal(twiceModel(variant)), "") << variant;
}

TEST(Contract, MoreScratchRuns) {
  EXPECT_EQ(refusal(twiceModel("", [](Json &graph) { graph["tasks"][0]["scratch"] = 4096; })), "");
}

TEST(Contract, LiesAreRefusedByName) {
  expectLie("has 2 buffers, the task 3", [](Json &g) { g["tasks"][0]["buffers"] = {0, 0, 2}; });
  expectLie("has 1 outputs, the task 0", [](Json &g) { g["tasks"][0]["outputs"] = 0; });
  expectLie("has 1 dims, the task 2", [](Json &g) { g["tasks"][0]["dims"] = {"n", "n"}; });
  expectLie("has 0 results, the task 1", [](Json &g) {
    g["tasks"][0]["results"] = 1;
    g["tasks"][0]["work"] = 1;
  });
  expectLie("has 7 work items, the task 8", [](Json &g) { g["tasks"][0]["work"] = {"add", "n", 1}; });
  expectLie("has 7 work items, the task 6", [](Json &g) { g["tasks"][0]["work"] = {"sub", "n", 1}; });
  expectLie("needs 28 bytes of scratch, the task has 0", [](Json &g) { g["tasks"][0].erase("scratch"); });
  expectLie("needs 28 bytes of scratch, the task has 27",
            [](Json &g) { g["tasks"][0]["scratch"] = {"sub", {"mul", "n", 4}, 1}; });
  expectLie("takes 56 bytes as buffer 0, the task gives 28", [](Json &g) {
    g["tasks"][0]["dims"] = {{"mul", "n", 2}};
    g["tasks"][0]["work"] = {"mul", "n", 2};
    g["tasks"][0]["scratch"] = {"mul", "n", 8};
  });
  expectLie("takes 28 bytes as buffer 1, the task gives 24", [](Json &g) {
    g["buffers"][2]["shape"] = {{"sub", "n", 1}};
    g["buffers"][2]["size"] = {"mul", {"sub", "n", 1}, 4};
    g["tasks"][1]["size"] = {"mul", {"sub", "n", 1}, 4};
  });
  expectLie("takes 28 bytes as buffer 1, the task gives 56", [](Json &g) {
    g["buffers"][2]["dtype"] = "f64";
    g["buffers"][2]["size"] = {"mul", "n", 8};
    for (Json &arena : g["arenas"])
      arena["size"] = {"mul", "n", 8};
  });
}

/// c ? 2 x : 2 x over 7 elements, each branch with a graph of its own; `change` may lie about the second.
TestBundle chosenModel(const std::function<void(Json &graph)> &change) {
  auto twice = [](const std::string &name) {
    ModelBuilder builder;
    int x = builder.input("x", "f32", {7}), y = builder.output("y", "f32", {7});
    builder.dispatch("twice_by_scratch", {x, y}, 1, 7, {}, {{"dims", {7}}, {"scratch", 28}});
    return builder.graphNamed(name);
  };
  ModelBuilder builder;
  int c = builder.input("c", "bool", Json::array()), x = builder.input("x", "f32", {7});
  int given = builder.result(0, 0, "f32", {7}), y = builder.output("y", "f32", {7});
  builder.branch(c, "then", "else", {x}, 1);
  builder.copy(given, y, 28, {0});
  TestBundle model = builder.finish();
  model.graph["graphs"].push_back(twice("then"));
  model.graph["graphs"].push_back(twice("else"));
  change(model.graph["graphs"][2]);
  return model;
}

/// A session does not wait for a run that takes the branch.
TEST(Contract, GraphsOfTasksAreComparedWithTheSession) {
  struct {
    const char *part;
    std::function<void(Json &)> change;
  } lies[] = {{"", [](Json &) {}},
              {"needs 28 bytes of scratch, the task has 27", [](Json &g) { g["tasks"][0]["scratch"] = 27; }},
              {"has 7 work items, the task 6", [](Json &g) { g["tasks"][0]["work"] = 6; }},
              {"has 1 dims, the task 2", [](Json &g) { g["tasks"][0]["dims"] = {7, 7}; }},
              {"takes 24 bytes as buffer 0, the task gives 28", [](Json &g) {
                 g["tasks"][0]["dims"] = {6};
                 g["tasks"][0]["work"] = 6;
               }}};
  for (const auto &lie : lies) {
    OpenBundle open(chosenModel(lie.change));
    ASSERT_EQ(open.status, DMX_OK) << open.error.message;
    dmx_error error = DMX_ERROR_INIT;
    dmx_session *made = nullptr;
    dmx_status status = dmx_session_create(open.get(), nullptr, nullptr, &made, &error);
    SessionPtr session(made);
    EXPECT_EQ(status, *lie.part ? DMX_STATUS_INVALID_BUNDLE : DMX_OK) << error.message;
    EXPECT_NE(std::string(error.message).find(lie.part), std::string::npos) << error.message;
    EXPECT_EQ(std::string(error.message).find("graph 'else'") != std::string::npos, *lie.part != 0) << error.message;
  }
}

/// Without a contract a lie is believed: the runtime has nothing to hold against it.
TEST(Contract, OldCodeIsTakenAtItsWord) {
  EXPECT_EQ(refusal(twiceModel("-v2", [](Json &g) { g["tasks"][0]["dims"] = {"n", "n"}; })), "");
}

TEST(Contract, UnsoundOnesAreRefused) {
  for (const char *variant : {"-shortcontract", "-longcontract", "-endlesscontract", "-otherdim", "-otherop"}) {
    std::string message = refusal(twiceModel(variant));
    EXPECT_NE(message.find("the contract of kernel 'twice_by_scratch' is not sound"), std::string::npos)
        << variant << ": " << message;
  }
  EXPECT_NE(refusal(twiceModel("-exportedabi")).find("another kernel ABI"), std::string::npos);
}

/// Where the table is exported, it is checked without running any of the object.
TEST(Contract, CheckedWithoutRunning) {
  const std::string &object = kernelObject("-otherdim");
  AlignedBytes copy(object);
  int32_t contracts = 0;
  dmxrt::Status status = dmxrt::ElfImage::check({copy.get(), copy.size()}, contracts);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("is not sound"), std::string::npos) << status.error().message;
}

TEST(Contract, CodeWithoutIsToldAndRefusedOnRequest) {
  struct {
    const char *variant;
    int32_t contracts;
  } cases[] = {{"-exported", 0}, {"-v2", 0}, {"-promised", 1}};
  for (const auto &each : cases) {
    std::string text = twiceModel(each.variant).zip();
    AlignedBytes bytes(text);
    dmx_error error = DMX_ERROR_INIT;
    dmx_bundle *opened = nullptr;
    ASSERT_EQ(dmx_bundle_open_memory(bytes.get(), bytes.size(), &opened, &error), DMX_OK) << error.message;
    BundlePtr bundle(opened);
    ASSERT_EQ(dmx_bundle_code_count(bundle.get()), 1u);
    dmx_code_info info{};
    info.struct_size = sizeof info;
    ASSERT_EQ(dmx_bundle_code_info(bundle.get(), 0, &info, &error), DMX_OK) << error.message;
    EXPECT_STREQ(info.target, "cpu");
    EXPECT_EQ(info.contracts, each.contracts) << each.variant;
    EXPECT_EQ(dmx_bundle_code_info(bundle.get(), 1, &info, &error), DMX_STATUS_INVALID_ARGUMENT);

    dmx_bundle_options options = DMX_BUNDLE_OPTIONS_INIT;
    options.flags = DMX_BUNDLE_CONTRACTS;
    dmx_bundle *strict = nullptr;
    dmx_status status = dmx_bundle_open_memory_with(bytes.get(), bytes.size(), &options, &strict, &error);
    EXPECT_EQ(status, each.contracts ? DMX_OK : DMX_STATUS_UNSUPPORTED) << error.message;
    if (status != DMX_OK) {
      EXPECT_NE(std::string(error.message).find("kernels without contracts"), std::string::npos) << error.message;
    }
    dmx_bundle_close(strict);
  }
}
