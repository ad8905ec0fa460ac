//===- HeaderTest.cpp - dmx.hpp, and what dmx.h says of options -----------===//

#include "../RuntimeTest.h"
#include "dmx/dmx.hpp"
#include "runtime/devices/Device.h"

#include <array>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

using namespace dmxtest;

namespace {

/// y[i] = x[i] + x[i] of 8 floats, over memory of its own.
struct Doubled {
  AlignedBytes bytes;
  dmx::Bundle bundle;

  Doubled() : bytes(model()), bundle(dmx::Bundle::fromMemory(std::as_bytes(std::span(bytes.get(), bytes.size())))) {}
  static std::string model() {
    ModelBuilder builder;
    int x = builder.input("x", "f32", {8}), y = builder.output("y", "f32", {8});
    builder.dispatch("add", {x, x, y}, 1, 8);
    return builder.finish().zip();
  }
};

/// Expects that `call` throws a dmx::Error with this status and text in it.
template <typename Call> void expectError(dmx_status status, const std::string &text, Call call) {
  try {
    call();
    ADD_FAILURE() << "no error: expected " << text;
  } catch (const dmx::Error &error) {
    EXPECT_EQ(error.status(), status) << error.what();
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

} // namespace

TEST(Header, RunsOnVectorsArraysAndSpans) {
  Doubled doubled;
  dmx::Session session(doubled.bundle, {.threads = 1});
  std::vector<float> x(8, 1.5f);
  session.bindInput("x", x);
  session.run();
  for (float y : session.output<float>("y")) // the session's own memory
    EXPECT_EQ(y, 3);
  const std::array<float, 8> constant = {1, 2, 3, 4, 5, 6, 7, 8};
  float out[8] = {};
  session.bindInput(0, constant, {8});
  session.bindOutput("y", out);
  session.run();
  EXPECT_EQ(out[7], 16);
  EXPECT_EQ(session.output<float>(0).data(), out);
  EXPECT_EQ(session.output<std::byte>(0).size(), 32u);
  std::span<float> part(x.data(), x.size());
  session.bindInput("x", part);
  session.runAsync();
  session.wait();
  EXPECT_EQ(out[7], 3);
  EXPECT_EQ(session.shape(DMX_OUTPUT, "y"), dmx::Dims{8});
  EXPECT_EQ(session.info().threads, 1u);
  EXPECT_STREQ(session.task(0).kernel, "add");
}

TEST(Header, SaysWhatTensorsThereAre) {
  Doubled doubled;
  EXPECT_EQ(doubled.bundle.entryPoints().size(), 1u);
  std::vector<dmx::Tensor> inputs = doubled.bundle.inputs();
  ASSERT_EQ(inputs.size(), 1u);
  EXPECT_EQ(inputs[0].name, "x");
  EXPECT_EQ(inputs[0].dtype, DMX_DTYPE_F32);
  ASSERT_EQ(inputs[0].dims.size(), 1u);
  EXPECT_EQ(inputs[0].dims[0].max, 8);
  EXPECT_TRUE(doubled.bundle.inputs("absent").empty());
  EXPECT_NE(doubled.bundle.manifest().find("entry_points"), std::string_view::npos);
  EXPECT_FALSE(doubled.bundle.metadata("absent"));
  doubled.bundle.verify();
  EXPECT_FALSE(doubled.bundle.entry("graph.json").empty());
}

TEST(Header, ErrorsAreExceptionsWithASentence) {
  expectError(DMX_STATUS_IO, "/absent.bundle", [] { dmx::Bundle("/absent.bundle"); });
  Doubled doubled;
  expectError(DMX_STATUS_INVALID_ARGUMENT, "spin",
              [&] { dmx::Session(doubled.bundle, {.deviceOptions = {"cpu.spin=1"}}); });
  dmx::Session session(doubled.bundle, {.threads = 1});
  std::vector<float> x(8);
  std::vector<double> wide(8);
  expectError(DMX_STATUS_NOT_READY, "'x'", [&] { session.run(); });
  expectError(DMX_STATUS_INVALID_ARGUMENT, "there is no input 'z'; there are: 'x'", [&] { session.bindInput("z", x); });
  expectError(DMX_STATUS_INVALID_ARGUMENT, "there is no output 3", [&] { session.bindOutput(3, x); });
  expectError(DMX_STATUS_INVALID_ARGUMENT, "'x' is f32, not the memory's f64", [&] { session.bindInput("x", wide); });
  expectError(DMX_STATUS_INVALID_ARGUMENT, "has 32 bytes, the memory 28",
              [&] { session.bindInput("x", std::span(x).first(7)); });
  expectError(DMX_STATUS_INVALID_ARGUMENT, "'x'", [&] { session.bindInput("x", x, {2, 4}); });
  session.bindInput("x", x);
  session.run();
  expectError(DMX_STATUS_INVALID_ARGUMENT, "'y' is f32", [&] { (void)session.output<int32_t>("y"); });
  expectError(DMX_STATUS_INVALID_ARGUMENT, "a public key has 32",
              [&] { dmx::Bundle("/absent", {.trustedKeys = std::vector<unsigned char>(31)}); });
}

TEST(Header, OpenDimsAreGiven) {
  ModelBuilder builder;
  builder.dim("n", 1, 64, 0, 0);
  int x = builder.input("x", "f32", Json::array({"n"})), y = builder.output("y", "f32", Json::array({"n"}));
  builder.dispatch("add", {x, x, y}, 1, "n");
  AlignedBytes bytes(builder.finish().zip());
  dmx::Bundle bundle = dmx::Bundle::fromMemory(std::as_bytes(std::span(bytes.get(), bytes.size())), {.copy = true});
  EXPECT_EQ(bundle.inputs()[0].dims[0].name, "n");
  dmx::Session session(bundle);
  std::vector<float> values(5, 2);
  expectError(DMX_STATUS_INVALID_ARGUMENT, "'x' has the open dim 'n': give its dims",
              [&] { session.bindInput("x", values); });
  session.bindInput("x", values, {5});
  session.run();
  EXPECT_EQ(session.output<float>("y").size(), 5u);
}

TEST(Header, MovedObjectsOwnOnce) {
  Doubled doubled;
  dmx::Session first(doubled.bundle, {.threads = 1});
  std::vector<float> x(8, 1);
  first.bindInput("x", x);
  dmx::Session second = std::move(first);
  second.run();
  EXPECT_EQ(second.output<float>(0)[0], 2);
  dmx::Bundle moved = std::move(doubled.bundle);
  EXPECT_EQ(moved.outputs().size(), 1u);
  second = dmx::Session(moved);
  expectError(DMX_STATUS_NOT_READY, "'x'", [&] { second.run(); });
}

/// dmx.h lists exactly the options that devices of this build take, with the values that their errors name.
TEST(Header, ListsTheOptionsOfDevices) {
  std::map<std::string, std::set<std::string>> documented;
  std::ifstream header(DMX_TEST_HEADER);
  for (std::string line; std::getline(header, line);) {
    std::istringstream words(line);
    std::string star, option;
    if (!line.starts_with(" *   ") || !(words >> star >> option))
      continue;
    const size_t dot = option.find('.');
    if (dot != option.npos && option.find('=') != option.npos && option.find('"') == option.npos)
      documented[option.substr(0, dot)].insert(option.substr(dot + 1));
  }
  EXPECT_FALSE(documented.empty()) << DMX_TEST_HEADER;
  for (const dmxrt::DeviceKind *kind : dmxrt::deviceKinds()) {
    std::set<std::string> accepted;
    for (const dmxrt::SettingSpec &spec : kind->settings)
      accepted.insert(std::string(spec.key) + "=" + std::string(spec.values));
    EXPECT_EQ(documented[std::string(kind->target)], accepted) << kind->target;
  }
}
