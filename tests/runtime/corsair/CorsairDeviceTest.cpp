//===- CorsairDeviceTest.cpp - the simulated card through the C API -------===//

#include "../RuntimeTest.h"
#include "CorsairHarness.h"

#include <filesystem>
#include <fstream>
#include <set>

using namespace dmxtest;

namespace {

/// A step of a decoder: appends row x to a cache of 8 rows at position p, and gives the sum of the rows so far.
constexpr const char *kCache = R"(
.function next
  CPU_LI rd=2 imm=128
  CPU_MUL rd=3 ra=1 rb=2
  CPU_ADDI rd=4 ra=1 imm=1
  CPU_RET
.stream s
  MARK label="append"
  EXEC_CPU fn=@next
  CONFIG_GM slot=0 kind=f16 unit=64
  MOVE_DDR2GM slot=0 saddr=0x0 daddr=0x2000
  CONFIG_ST slot=0 kind=f16 unit=64
  MOVE_GM2ST slot=0 saddr=0x2000 daddr=0x0+R3 slices=0x2
  MARK label="sum"
  CONFIG_ST slot=1 kind=f16 unit=64 s0=128 t0=128
  MOVE_ST2GM slot=1 saddr=0x0 daddr=0x0 n=0+R4 slices=0x2
  CONFIG_SIMD slot=0 n2=64 n3=1 a2=2 a3=128 d2=2
  CONFIG_SIMD slot=1 n3=64 d3=2 a3=2 b3=2
  EXEC_SIMD fn=copy slot=1 slices=0x1 a=0x0 d=0x3000
  LOOP n=0+R1
    EXEC_SIMD fn=add slot=1 slices=0x1 a=0x3000 b=0x80+L0*128 d=0x3000
  ENDLOOP
  MOVE_GM2DDR slot=0 saddr=0x3000 daddr=0x1000
  HALT
.kernel "step one"
  .footprint DDR=0x4000 GM=0x4000 ST=0x1000
  .argument x input f32 shape=[64] form=f16
    .piece DDR unit=0 addr=0x0 begin=[0] extent=[64] strides=[2]
  .argument p scalar i64 shape=[1] form=i64 reg=1
  .argument cache state f32 shape=[8,64] form=f16
    .piece ST unit=1 addr=0x0 begin=[0,0] extent=[8,64] strides=[128,2]
  .argument y output f32 shape=[64] form=f16
    .piece DDR unit=0 addr=0x1000 begin=[0] extent=[64] strides=[2]
  .main
    .launch quad=0 q0=s
)";

std::string imageOf(const std::string &text) {
  std::string error;
  auto image = isa::assemble(text, isa::builtinMachine(), error);
  EXPECT_TRUE(image) << error;
  std::vector<uint8_t> bytes = image ? isa::write(*image) : std::vector<uint8_t>();
  return {bytes.begin(), bytes.end()};
}

TestBundle cacheBundle() {
  ModelBuilder builder;
  int x = builder.input("x", "f32", {64});
  int p = builder.input("p", "i64", {1});
  int cache = builder.state(8 * 64 * 4, "f32", {8, 64});
  int y = builder.output("y", "f32", {64});
  builder.dispatch("step one", {x, p, cache, y}, 1, 1);
  TestBundle bundle = builder.finish();
  bundle.graph["graphs"][0]["queues"][0]["target"] = "corsair";
  bundle.manifest["targets"] = {{{"target", "corsair"},
                                 {"arch", "corsair-like"},
                                 {"entry", "code/corsair/corsair-like/kernels.dmxisa"},
                                 {"features", Json::array()}}};
  bundle.files.erase("code/cpu/x86-64/kernels.so");
  bundle.files["code/corsair/corsair-like/kernels.dmxisa"] = imageOf(kCache);
  return bundle;
}

nlohmann::json readJson(const std::string &path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

} // namespace

TEST(CorsairDevice, KeepsStateOverRunsAndForgetsItOnReset) {
  OpenBundle open(cacheBundle());
  ASSERT_TRUE(open.get()) << open.error.message;
  EXPECT_EQ(dmx_bundle_verify(open.get(), &open.error), DMX_OK) << open.error.message;
  SessionPtr session = makeSession(open.get(), 2);
  ASSERT_TRUE(session);
  std::vector<float> x(64), y(64);
  std::vector<int64_t> p(1);
  ASSERT_EQ(bindVector(session.get(), DMX_INPUT, 0, x, {64}), DMX_OK);
  ASSERT_EQ(bindVector(session.get(), DMX_INPUT, 1, p, {1}), DMX_OK);
  ASSERT_EQ(bindVector(session.get(), DMX_OUTPUT, 0, y, {64}), DMX_OK);
  auto step = [&](int64_t position, float value) {
    p[0] = position;
    std::fill(x.begin(), x.end(), value);
    dmx_error error = DMX_ERROR_INIT;
    EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << error.message;
    return y[63];
  };
  EXPECT_EQ(step(0, 1), 1);
  EXPECT_EQ(step(1, 2), 3);
  EXPECT_EQ(step(2, 4), 7);
  EXPECT_EQ(step(1, 10), 11) << "row 1 is overwritten, row 2 not summed";
  EXPECT_EQ(dmx_session_reset_state(session.get(), nullptr), DMX_OK);
  EXPECT_EQ(step(3, 5), 5) << "rows 0 to 2 are zeros again";
  // Another session has a cache of its own.
  SessionPtr other = makeSession(open.get());
  ASSERT_EQ(bindVector(other.get(), DMX_INPUT, 0, x, {64}), DMX_OK);
  ASSERT_EQ(bindVector(other.get(), DMX_INPUT, 1, p, {1}), DMX_OK);
  ASSERT_EQ(bindVector(other.get(), DMX_OUTPUT, 0, y, {64}), DMX_OK);
  p[0] = 7;
  std::fill(x.begin(), x.end(), 3.0f);
  EXPECT_EQ(dmx_session_run(other.get(), nullptr), DMX_OK);
  EXPECT_EQ(y[0], 3);
}

TEST(CorsairDevice, FaultsAndOptionsReachTheCaller) {
  OpenBundle open(cacheBundle());
  SessionPtr session = makeSession(open.get());
  std::vector<float> x(64), y(64);
  std::vector<int64_t> p{9}; // the cache has 8 rows
  bindVector(session.get(), DMX_INPUT, 0, x, {64});
  bindVector(session.get(), DMX_INPUT, 1, p, {1});
  bindVector(session.get(), DMX_OUTPUT, 0, y, {64});
  dmx_error error = DMX_ERROR_INIT;
  EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_STATUS_KERNEL);
  EXPECT_NE(std::string(error.message).find("failed: poison-read: quad 0 queue 0 stream 's'"), std::string::npos)
      << error.message;
  EXPECT_NE(std::string(error.message).find("(kernel 'step one', code 1000)"), std::string::npos) << error.message;
  p[0] = 0;
  EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << "the next run starts afresh: " << error.message;
  for (const char *bad :
       {"corsair.speed=3", "corsair.hazards=2", "corsair.skew_seed=x", "corsair.report=", "cpu.pin=1"}) {
    dmx_session_options options = DMX_SESSION_OPTIONS_INIT;
    options.device_options = &bad;
    options.device_option_count = 1;
    dmx_session *made = nullptr;
    EXPECT_EQ(dmx_session_create(open.get(), nullptr, &options, &made, &error), DMX_STATUS_INVALID_ARGUMENT);
    EXPECT_NE(std::string(error.message).find("target corsair knows corsair.hazards=0|1"), std::string::npos)
        << error.message;
  }
  dmx_session_options options = DMX_SESSION_OPTIONS_INIT;
  options.isa = "other-card";
  dmx_session *made = nullptr;
  EXPECT_EQ(dmx_session_create(open.get(), nullptr, &options, &made, &error), DMX_STATUS_UNSUPPORTED);
  EXPECT_NE(std::string(error.message).find("it has: corsair-like"), std::string::npos) << error.message;
}

TEST(CorsairDevice, BuffersMustBeThoseOfTheKernel) {
  auto refused = [](auto change, const std::string &part) {
    TestBundle bundle = cacheBundle();
    change(bundle);
    OpenBundle open(bundle);
    ASSERT_TRUE(open.get()) << open.error.message;
    dmx_session *made = nullptr;
    EXPECT_NE(dmx_session_create(open.get(), nullptr, nullptr, &made, &open.error), DMX_OK);
    EXPECT_NE(std::string(open.error.message).find(part), std::string::npos) << open.error.message;
  };
  refused([](TestBundle &b) { b.graph["graphs"][0]["tasks"][0]["buffers"] = {0, 1, 3}; },
          "kernel 'step one' has 4 arguments, its task has 3 buffers");
  refused([](TestBundle &b) { b.graph["graphs"][0]["tasks"][0]["buffers"] = {1, 1, 2, 3}; },
          "argument 'x' has 256 bytes, its buffer 8");
  refused([](TestBundle &b) { b.graph["graphs"][0]["tasks"][0]["kernel"] = "none"; }, "needs kernel 'none'");
  refused([](TestBundle &b) { b.files["code/corsair/corsair-like/kernels.dmxisa"][200] ^= 1; },
          "the DMX ISA image is not usable: section MACH fails its checksum");
}

// A tensor that is empty along one axis has no runs, however long the others are.
TEST(CorsairDevice, NothingAlongOneAxis) {
  for (const char *shape : {"[1099511627776,0]", "[0,1099511627776]", "[4294967296,16777216,0]", "[0,0]"})
    for (const char *form : {"bfp16r", "f16"}) {
      std::string begin(shape), text(shape);
      size_t rank = 1 + static_cast<size_t>(std::count(text.begin(), text.end(), ','));
      begin = rank == 2 ? "[0,0]" : "[0,0,0]";
      std::string strides = form[0] == 'b' ? "[4160,4160]"
                            : rank == 2    ? "[2,2]"
                                           : "[2,2,2]",
                  piece = " shape=" + text + " form=" + form + "\n    .piece DDR unit=0 addr=0x0 begin=" + begin +
                          " extent=" + text + " strides=" + strides + "\n";
      CorsairProgram program(".stream s\n  HALT\n.kernel k\n  .footprint DDR=0x1000\n  .argument x input f32" + piece +
                             "  .argument c state f32" + piece + "  .argument y output f32" + piece +
                             "  .main\n    .launch quad=0 q0=s\n");
      program.expectRun();
    }
}

TEST(CorsairDevice, ReportsAndTracesAreWritten) {
  std::string report = testing::TempDir() + "/corsair-report.json", trace = testing::TempDir() + "/corsair-trace.json";
  OpenBundle open(cacheBundle());
  std::string settings[] = {"corsair.report=" + report, "corsair.trace=" + trace};
  const char *texts[] = {settings[0].c_str(), settings[1].c_str()};
  dmx_session_options options = DMX_SESSION_OPTIONS_INIT;
  options.device_options = texts;
  options.device_option_count = 2;
  SessionPtr session = makeSession(open.get(), 1, options);
  std::vector<float> x(64, 1.0f), y(64);
  std::vector<int64_t> p{3};
  bindVector(session.get(), DMX_INPUT, 0, x, {64});
  bindVector(session.get(), DMX_INPUT, 1, p, {1});
  bindVector(session.get(), DMX_OUTPUT, 0, y, {64});
  dmx_error error = DMX_ERROR_INIT;
  ASSERT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << error.message;
  nlohmann::json json = readJson(report), main = json["last"][0]["main"];
  EXPECT_EQ(json["runs"], 1);
  EXPECT_EQ(json["last"][0]["kernel"], "step one");
  EXPECT_EQ(json["last"][0]["host_bytes_in"], 256);
  EXPECT_EQ(main["read_bytes"]["DDR"], 128);
  EXPECT_EQ(main["written_bytes"]["ST"], 128);
  EXPECT_EQ(main["read_bytes"]["ST"], 4 * 128);
  EXPECT_NEAR(main["seconds"].get<double>(), main["clocks"].get<double>() / json["clock_hz"].get<double>(), 1e-12);
  double total = 0;
  for (auto &[name, value] : main["energy_joules"].items())
    total += name == "total" ? 0 : value.get<double>();
  EXPECT_NEAR(total, main["energy_joules"]["total"].get<double>(), 1e-5 * total);
  std::set<std::string> tasks;
  for (const auto &task : main["tasks"])
    tasks.insert(task["name"].get<std::string>());
  EXPECT_TRUE(tasks.count("append") && tasks.count("sum"));
  std::ifstream text(report + ".txt");
  std::string line;
  std::getline(text, line);
  EXPECT_NE(line.find("machine corsair-like at 1.1444 GHz"), std::string::npos) << line;
  nlohmann::json events = readJson(trace)["traceEvents"];
  size_t intervals = 0;
  for (const auto &event : events)
    intervals += event["ph"] == "X";
  EXPECT_EQ(intervals, 9u) << "CPU, 4 moves, copy and 3 sums";
}
