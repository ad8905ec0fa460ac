//===- UnitTest.cpp - versions, dtypes, CPU counts, mappings --------------===//

#include "RuntimeTest.h"
#include "runtime/Futex.h"
#include "runtime/devices/common/CpuCount.h"
#include "runtime/devices/cpu/CpuFeatures.h"

#include <filesystem>
#include <sched.h>
#include <thread>

using namespace dmxtest;

TEST(Version, NumberAndTextAgree) {
  EXPECT_EQ(dmx_version(), DMX_VERSION_MAJOR * 1000000u + DMX_VERSION_MINOR * 1000u + DMX_VERSION_PATCH);
  std::string text = std::to_string(DMX_VERSION_MAJOR) + "." + std::to_string(DMX_VERSION_MINOR) + "." +
                     std::to_string(DMX_VERSION_PATCH);
  EXPECT_EQ(dmx_version_string(), text);
  EXPECT_STREQ(dmx_status_name(DMX_OK), "ok");
  EXPECT_STREQ(dmx_status_name(DMX_STATUS_KERNEL), "kernel error");
  EXPECT_STREQ(dmx_status_name(DMX_STATUS_INTERNAL), "internal error");
  EXPECT_STREQ(dmx_status_name(DMX_STATUS_SHAPE_UNKNOWN), "shape unknown");
  EXPECT_STREQ(dmx_status_name(DMX_STATUS_UNTRUSTED), "untrusted");
  EXPECT_STREQ(dmx_status_name(13), "unknown status");
  EXPECT_STREQ(dmx_status_name(-1), "unknown status");
}

TEST(DType, NamesAndBits) {
  EXPECT_STREQ(dmx_dtype_name(DMX_DTYPE_BOOL), "bool");
  EXPECT_STREQ(dmx_dtype_name(DMX_DTYPE_F8E5M2FNUZ), "f8e5m2fnuz");
  EXPECT_STREQ(dmx_dtype_name(DMX_DTYPE_F4E2M1), "f4e2m1");
  EXPECT_EQ(dmx_dtype_name(0), nullptr);
  EXPECT_STREQ(dmx_dtype_name(DMX_DTYPE_F8E8M0), "f8e8m0");
  EXPECT_STREQ(dmx_dtype_name(DMX_DTYPE_U2), "u2");
  EXPECT_EQ(dmx_dtype_name(24), nullptr);
  EXPECT_EQ(dmx_dtype_name(-1), nullptr);
  EXPECT_EQ(dmx_dtype_bits(DMX_DTYPE_U4), 4u);
  EXPECT_EQ(dmx_dtype_bits(DMX_DTYPE_BF16), 16u);
  EXPECT_EQ(dmx_dtype_bits(99), 0u);
}

TEST(DType, TensorBytes) {
  int64_t dims[] = {3, 5}, zero[] = {INT64_MAX, INT64_MAX, 0}, huge[] = {INT64_MAX, 2}, negative[] = {0, -1};
  EXPECT_EQ(dmx_tensor_bytes(DMX_DTYPE_F32, 2, dims), 60);
  EXPECT_EQ(dmx_tensor_bytes(DMX_DTYPE_I4, 2, dims), 8);
  EXPECT_EQ(dmx_tensor_bytes(DMX_DTYPE_I2, 2, dims), 4);
  EXPECT_EQ(dmx_tensor_bytes(DMX_DTYPE_F8E8M0, 2, dims), 15);
  EXPECT_EQ(dmx_tensor_bytes(DMX_DTYPE_F64, 0, nullptr), 8);
  EXPECT_EQ(dmx_tensor_bytes(DMX_DTYPE_F32, 3, zero), 0);
  EXPECT_EQ(dmx_tensor_bytes(DMX_DTYPE_I8, 2, huge), -1);
  EXPECT_EQ(dmx_tensor_bytes(DMX_DTYPE_F32, 2, negative), -1);
  EXPECT_EQ(dmx_tensor_bytes(0, 2, dims), -1);
  EXPECT_EQ(dmx_tensor_bytes(DMX_DTYPE_F32, 1, nullptr), -1);
}

TEST(CpuCount, RespectsAffinity) {
  std::vector<uint32_t> cpus = dmxrt::allowedCpus();
  ASSERT_FALSE(cpus.empty());
  EXPECT_GE(dmxrt::defaultThreadCount(), 1u);
  EXPECT_LE(dmxrt::defaultThreadCount(), cpus.size());
  // In a thread of its own: the mask dies with it.
  std::thread([&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpus.back(), &set);
    ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
    EXPECT_EQ(dmxrt::allowedCpus(), std::vector<uint32_t>{cpus.back()});
    EXPECT_EQ(dmxrt::defaultThreadCount(), 1u);
  }).join();
}

TEST(CpuCount, ReadsCgroupQuotas) {
  namespace fs = std::filesystem;
  std::string name = fs::temp_directory_path() / "dmxrt-cgroup-XXXXXX";
  ASSERT_TRUE(mkdtemp(name.data()));
  auto write = [&](const std::string &file, const std::string &text) {
    fs::create_directories(fs::path(name + file).parent_path());
    writeFile(name + file, text);
  };
  using dmxrt::cgroupCpus;
  EXPECT_EQ(cgroupCpus("", name), 0);
  EXPECT_EQ(cgroupCpus("0::/a/b\n", name), 0);
  write("/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(cgroupCpus("0::/a/b\n", name), 0);
  write("/a/cpu.max", "250000 100000\n");
  EXPECT_EQ(cgroupCpus("0::/a/b\n", name), 2.5) << "the parent's counts too";
  write("/a/b/cpu.max", "50000 100000\n");
  EXPECT_EQ(cgroupCpus("1:name=systemd:/x\n0::/a/b\n", name), 0.5);
  EXPECT_EQ(cgroupCpus("0::/\n", name), 0);
  write("/cpu.max", "300000 100000\n");
  EXPECT_EQ(cgroupCpus("0::/\n", name), 3) << "as seen inside a container";
  // Version 1.
  write("/cpu/docker/7/cpu.cfs_quota_us", "150000\n");
  write("/cpu/docker/7/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroupCpus("4:cpu,cpuacct:/docker/7\n2:memory:/docker/7\n", name), 1.5);
  write("/cpu/docker/7/cpu.cfs_quota_us", "-1\n");
  fs::remove(name + "/cpu.max");
  EXPECT_EQ(cgroupCpus("4:cpu,cpuacct:/docker/7\n", name), 0);
  fs::remove_all(name);
}

TEST(CpuFeatures, AgreesWithTheCompilersBuiltin) {
  EXPECT_TRUE(dmxrt::cpuHasFeature("sse2"));
  EXPECT_TRUE(dmxrt::cpuHasFeature("64bit"));
  EXPECT_FALSE(dmxrt::cpuHasFeature("no-such-feature"));
  EXPECT_EQ(dmxrt::cpuHasFeature("sse4.2"), bool(__builtin_cpu_supports("sse4.2")));
  EXPECT_EQ(dmxrt::cpuHasFeature("avx"), bool(__builtin_cpu_supports("avx")));
  EXPECT_EQ(dmxrt::cpuHasFeature("avx2"), bool(__builtin_cpu_supports("avx2")));
  EXPECT_EQ(dmxrt::cpuHasFeature("fma"), bool(__builtin_cpu_supports("fma")));
  EXPECT_EQ(dmxrt::cpuHasFeature("bmi2"), bool(__builtin_cpu_supports("bmi2")));
  EXPECT_EQ(dmxrt::cpuHasFeature("avx512f"), bool(__builtin_cpu_supports("avx512f")));
  EXPECT_EQ(dmxrt::cpuHasFeature("avx512vnni"), bool(__builtin_cpu_supports("avx512vnni")));
  EXPECT_EQ(dmxrt::cpuHasFeature("avx512bf16"), bool(__builtin_cpu_supports("avx512bf16")));
}

/// A manifest that says less of a level's code than its name does is not believed.
TEST(CpuFeatures, TheNameOfALevelCounts) {
  bool v4 =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  using Codes = std::vector<dmxrt::TargetCode>;
  for (Codes codes : {Codes{{"cpu", "x86-64-v4", "code/cpu/a/kernels.so", {"sse2"}, ""}},
                      Codes{{"cpu", "x86-64-v2", "code/cpu/x86-64-v4/kernels.so", {"sse2"}, ""}}}) {
    auto chosen = dmxrt::selectCpuCode(codes, "");
    EXPECT_EQ(bool(chosen), v4);
    if (!chosen) {
      EXPECT_NE(chosen.error().message.find("code needs CPU feature 'avx512"), std::string::npos)
          << chosen.error().message;
    }
    codes[0].arch = "x86-64-v3x", codes[0].entry = "code/cpu/x86-64-v44/kernels.so"; // names of no level
    EXPECT_TRUE(bool(dmxrt::selectCpuCode(codes, "")));
    codes[0].features = {""};
    EXPECT_FALSE(bool(dmxrt::selectCpuCode(codes, "")));
  }
}

namespace {

using Codes = std::vector<dmxrt::TargetCode>;

/// Code of three levels, the last of them needs tiles.
Codes threeLevels() {
  return {{"cpu", "x86-64-v4", "code/cpu/x86-64-v4/kernels.so", {"avx512f", "avx512vl"}, ""},
          {"cpu", "znver4", "code/cpu/znver4/kernels.so", {"avx512f", "avx512vl", "avx512bf16", "sse4a"}, ""},
          {"cpu",
           "sapphirerapids",
           "code/cpu/sapphirerapids/kernels.so",
           {"avx512f", "avx512vl", "avx512bf16", "amx-tile", "amx-bf16"},
           ""}};
}

int timesAsked = 0;
bool refuses() { return ++timesAsked == 0; }
bool lends() { return ++timesAsked != 0; }
bool everything(std::string_view feature) { return feature != "sse4a"; }
bool noTiles(std::string_view feature) { return everything(feature) && !feature.starts_with("amx-"); }
bool amd(std::string_view feature) { return !feature.starts_with("amx-"); }

/// The level chosen, or the message.
std::string chosen(const Codes &codes, const dmxrt::CpuMachine &machine, std::string &note, std::string_view isa = "") {
  timesAsked = 0;
  auto code = dmxrt::selectCpuCode(codes, isa, machine, note);
  return code ? (*code)->arch : code.error().message;
}

} // namespace

TEST(CpuFeatures, TilesAreForThoseThatGetThem) {
  std::string note;
  EXPECT_EQ(chosen(threeLevels(), {everything, lends}, note), "sapphirerapids");
  EXPECT_GT(timesAsked, 0);
  EXPECT_EQ(note, "");
  EXPECT_EQ(chosen(threeLevels(), {noTiles, lends}, note), "x86-64-v4") << "znver4 is for processors with SSE4A";
  EXPECT_EQ(timesAsked, 0) << "who has no tiles is not asked for them";
  EXPECT_EQ(chosen(threeLevels(), {amd, lends}, note), "znver4");
  EXPECT_EQ(note, "");
  EXPECT_EQ(chosen(threeLevels(), {everything, refuses}, note), "x86-64-v4");
  EXPECT_NE(note.find("permission to use AMX's tiles"), std::string::npos) << note;
  EXPECT_NE(note.find("sapphirerapids"), std::string::npos) << note;
  note.clear();
  EXPECT_EQ(chosen(threeLevels(), {everything, refuses}, note, "x86-64-v4"), "x86-64-v4");
  EXPECT_EQ(timesAsked, 0);
  EXPECT_EQ(note, "");
  std::string alone = chosen({threeLevels().back()}, {everything, refuses}, note);
  EXPECT_NE(alone.find("its sapphirerapids code needs permission to use AMX's tiles"), std::string::npos) << alone;
  EXPECT_NE(alone.find("-t cpu:x86-64-v2"), std::string::npos) << alone;
}

/// What the manifest keeps to itself is in the code's name, and in the code.
TEST(CpuFeatures, TilesThatNobodySpokeOf) {
  Codes codes = {threeLevels().back()};
  std::string note;
  codes[0].features = {"sse2"};
  EXPECT_NE(chosen(codes, {noTiles, lends}, note).find("needs CPU feature 'amx-bf16'"), std::string::npos);
  EXPECT_NE(chosen(codes, {everything, refuses}, note).find("needs permission to use"), std::string::npos);
  codes[0].arch = "x86-64-v2";
  EXPECT_NE(chosen(codes, {noTiles, lends}, note).find("needs CPU feature 'amx-bf16'"), std::string::npos);
  dmxrt::Status status = dmxrt::checkCpuLevel("sapphirerapids", {noTiles, lends});
  EXPECT_FALSE(bool(status));
  EXPECT_FALSE(bool(dmxrt::checkCpuLevel("sapphirerapids", {everything, refuses})));
  EXPECT_TRUE(bool(dmxrt::checkCpuLevel("sapphirerapids", {everything, lends})));
  EXPECT_FALSE(bool(dmxrt::checkCpuLevel("znver4", {everything, lends})));
  EXPECT_TRUE(bool(dmxrt::checkCpuLevel("znver4", {amd, lends})));
  for (const char *level : {"", "host", "x86-64-v2x"})
    EXPECT_TRUE(bool(dmxrt::checkCpuLevel(level, {noTiles, lends}))) << level;
}

/// Two threads take turns over a pair of gates, with and without spinning.
TEST(Gate, PingPong) {
  for (uint32_t spins : {0u, 1000u}) {
    dmxrt::Gate ping, pong;
    constexpr uint32_t kTurns = 20000;
    uint64_t shared = 0;
    std::thread other([&] {
      for (uint32_t i = 1; i <= kTurns; ++i) {
        ping.waitFor(i, spins);
        ++shared;
        pong.raise();
      }
    });
    for (uint32_t i = 1; i <= kTurns; ++i) {
      ++shared;
      ping.raise();
      pong.waitFor(i, spins);
    }
    other.join();
    EXPECT_EQ(shared, 2u * kTurns);
  }
}

/// Many raisers, one waiter.
TEST(Gate, CountsAllRaises) {
  dmxrt::Gate gate;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i)
        gate.raise();
    });
  gate.waitFor(4000, 10);
  EXPECT_EQ(gate.value(), 4000u);
  for (std::thread &thread : threads)
    thread.join();
}
