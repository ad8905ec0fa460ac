//===- ProductTest.cpp - products on the array are those of the rule ------===//
#include "RunProduct.h"

#include "tests/Sample.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <fstream>
#include <random>

using namespace aietest;

namespace {

constexpr Herd kHerds[] = {{1, 1}, {4, 1}, {1, 4}, {4, 4}, {4, 2}, {4, 3}, {3, 4}};

void expectByTheRule(const Sizes &sizes, const Form &form, uint64_t seed) {
  Matrices of = randomMatrices(sizes, seed, form);
  Outcome outcome = run(hw::write(imageOf(sizes, form)), sizes, of, form);
  std::string what = std::to_string(sizes.m) + "x" + std::to_string(sizes.k) + "x" + std::to_string(sizes.n) + " on " +
                     std::to_string(form.herd.rows) + "x" + std::to_string(form.herd.columns) +
                     (form.integers ? " i32" : " bf16") + (form.bias ? " bias" : "") + (form.relu ? " relu" : "");
  ASSERT_EQ(outcome.error, "") << what;
  EXPECT_EQ(outcome.c, byTheRule(sizes, of, form)) << what;
}

/// 60 shapes, each on one core, a row of them, a column and the whole array; a plain run takes some of the 240.
void expectRandomShapes(bool integers) {
  std::mt19937_64 random(integers ? 7 : 8);
  dmxc::sampling::Sample sample(13);
  auto dim = [&] { return std::uniform_int_distribution<int64_t>(1, 300)(random); };
  for (int i = 0; i < 60; ++i) {
    Sizes sizes{dim(), dim(), dim()};
    Form form;
    form.integers = integers;
    form.bias = random() % 2;
    form.relu = random() % 2;
    form.swapped = random() % 2;
    uint64_t seed = random();
    for (Herd herd : {Herd{1, 1}, Herd{1, 4}, Herd{4, 1}, Herd{4, 4}}) {
      form.herd = herd;
      if (sample.takesNext())
        expectByTheRule(sizes, form, seed);
    }
  }
}

} // namespace

TEST(AieProduct, RandomShapesOfIntegers) { expectRandomShapes(true); }
TEST(AieProduct, RandomShapesOfBf16) { expectRandomShapes(false); }

TEST(AieProduct, EdgesOfTilesOnAllHerds) {
  const Sizes all[] = {{1, 1, 1}, {64, 64, 64}, {1, 300, 1}, {65, 1, 130}, {257, 7, 5}};
  for (const Sizes &sizes : all)
    for (const Herd &herd : kHerds)
      for (bool integers : {false, true})
        expectByTheRule(sizes, {.herd = herd, .integers = integers, .bias = integers}, 1);
}

TEST(AieProduct, ABiasAndAReluBehind) {
  for (bool integers : {false, true})
    for (bool bias : {false, true})
      for (bool relu : {false, true})
        expectByTheRule({130, 70, 300}, {.herd = {4, 4}, .integers = integers, .bias = bias, .relu = relu}, 5);
}

TEST(AieProduct, DelaysAndColumnsChangeNoBit) {
  Sizes sizes{130, 200, 260}; // 15 results of one core: BDs and queues are used again
  for (bool bias : {false, true}) {
    Form form{.bias = bias};
    Matrices of = randomMatrices(sizes, 3, form);
    std::vector<uint32_t> expected = byTheRule(sizes, of, form);
    for (Herd herd : {Herd{1, 1}, Herd{4, 4}})
      for (int seed = 0; seed <= 5; ++seed) {
        form.herd = herd;
        Outcome outcome =
            run(hw::write(imageOf(sizes, form)), sizes, of, form, {"aie.skew_seed=" + std::to_string(seed)});
        EXPECT_EQ(outcome.error, "") << seed;
        EXPECT_EQ(outcome.c, expected) << seed;
      }
    form.herd = {4, 1};
    form.machine = "npu1_1col";
    Outcome narrow = run(hw::write(imageOf(sizes, form)), sizes, of, form);
    EXPECT_EQ(narrow.error, "");
    EXPECT_EQ(narrow.c, expected);
  }
}

/// Two panels of b for each column, each behind rows of a that stay for some blocks.
TEST(AieProduct, PanelsOfAColumnChangeNoBit) {
  Form form{.herd = {4, 4, 2, 1, 1, 1}, .integers = true, .bias = true};
  for (const Sizes &sizes : {Sizes{20, 70, 200}, Sizes{70, 40, 500}, Sizes{130, 130, 1000}, Sizes{5, 33, 1500}})
    expectByTheRule(sizes, form, 3);
  form.integers = form.bias = false;
  form.herd = {2, 3, 2, 1, 1, 1};
  expectByTheRule({70, 100, 1500}, form, 4);
}

/// Rows of a that stay for the blocks beside each other, of all columns or of each its own; one more of them meanwhile.
TEST(AieProduct, RowsThatStayChangeNoBit) {
  for (const Herd &herd :
       {Herd{4, 4, 1, 1, 1, 1}, Herd{2, 4, 1, 2, 1, 1}, Herd{4, 4, 1, 1, 4, 1}, Herd{3, 2, 1, 2, 2, 1}})
    for (const Sizes &sizes : {Sizes{20, 70, 200}, Sizes{600, 40, 300}, Sizes{300, 130, 600}})
      for (bool integers : {false, true})
        expectByTheRule(sizes, {.herd = herd, .integers = integers, .bias = integers}, 6);
}

TEST(AieProduct, PackedOperandsGiveTheSameBits) {
  expectByTheRule({70, 90, 110}, {.packed = true}, 9);
  expectByTheRule({70, 90, 110}, {.herd = {4, 4}, .integers = true, .packed = true}, 9);
}

TEST(AieProduct, TheReportCountsTheWork) {
  Sizes sizes{100, 100, 100};
  std::string path = testing::TempDir() + "aie-report.json", traced = testing::TempDir() + "aie-trace.json";
  Outcome outcome =
      run(hw::write(imageOf(sizes)), sizes, randomMatrices(sizes, 1), {}, {"report=" + path, "trace=" + traced});
  ASSERT_EQ(outcome.error, "");
  std::ifstream file(path), trace(traced);
  nlohmann::json report = nlohmann::json::parse(file), events = nlohmann::json::parse(trace);
  const nlohmann::json &run = report["last"][0]["main"];
  EXPECT_EQ(report["machine"], "npu1");
  EXPECT_EQ(run["macs"]["bf16"], 128 * 128 * 128) << "with the padding to whole tiles";
  EXPECT_EQ(run["model_macs"], 100 * 100 * 100) << "without it";
  EXPECT_EQ(run["padding_macs"], 128 * 128 * 128 - 100 * 100 * 100);
  double clocks = run["clocks"], useful = run["useful_peak_share"], all = run["mac_peak_share"];
  EXPECT_NEAR(useful, 100 * 100 * 100 / (16 * 128.0) / clocks, 1e-6) << "of 16 cores that multiply 128 a clock";
  EXPECT_NEAR(all, 128 * 128 * 128 / 128.0 / clocks, 1e-6) << "of the one that is used";
  EXPECT_GT(report["last"][0]["host_link_seconds"], 0) << "what the border took";
  // Each of the 4 results takes its rows of a and columns of b: 2 x 16 KiB; written once.
  EXPECT_EQ(run["read_bytes"]["DDR"], 4 * (64 * 128 * 2 + 128 * 64 * 2));
  EXPECT_EQ(run["written_bytes"]["DDR"], 128 * 128 * 4);
  EXPECT_EQ(run["link_bytes"]["MM2S 0 of tile (0,0) to S2MM 0 of tile (0,1)"], 4 * 64 * 128 * 2);
  EXPECT_GT(run["clocks"], 4 * 4 * 1024) << "a matrix step a clock";
  EXPECT_LT(run["clocks"], 3 * 4 * 4 * 1960);
  EXPECT_GT(run["utilisation"]["core (0,2)"], 0.3);
  size_t calls = 0;
  for (const nlohmann::json &event : events["traceEvents"])
    calls += event["name"] == "matmul_bf16_f32";
  EXPECT_EQ(calls, 4u * 4);
  std::remove(path.c_str());
  std::remove(traced.c_str());
}

/// What a product of n^3 on 4x4 cores costs by the model: more than its multiplications, less than their peak's share
/// that is asked for allows.
static void expectShare(int64_t n, double asked) {
  Sizes sizes{n, n, n};
  Form form{.herd = {4, 4}};
  std::string path = testing::TempDir() + "aie-report16.json";
  Outcome outcome = run(hw::write(imageOf(sizes, form)), sizes, randomMatrices(sizes, 1), form, {"report=" + path});
  ASSERT_EQ(outcome.error, "");
  std::ifstream file(path);
  const nlohmann::json run = nlohmann::json::parse(file)["last"][0]["main"];
  int64_t least = n * n * n / (16 * 128), clocks = run["clocks"];
  double share = static_cast<double>(least) / static_cast<double>(clocks);
  std::printf("%lld^3 on 4x4: %lld clocks, %.1f %% of the peak, bound by %s\n", static_cast<long long>(n),
              static_cast<long long>(clocks), 100 * share, run["bound"].get<std::string>().c_str());
  EXPECT_EQ(run["macs"]["bf16"], n * n * n);
  EXPECT_GT(clocks, least);
  EXPECT_GT(share, asked);
  std::remove(path.c_str());
}

TEST(AieProduct, SixteenCoresShareTheWork) {
  expectShare(512, 0.33);
  if (dmxc::sampling::longRun())
    expectShare(1024, 0.4);
}

TEST(AieProduct, WhatTheArrayDoesNotHoldIsSaid) {
  hw::Machine machine = *hw::machineOf("npu1");
  auto refusal = [&](const Sizes &sizes, Herd herd = {1, 1}) {
    return dmxc::aie::refuses(machine, mappingOf(sizes, {.herd = herd})).value_or("");
  };
  EXPECT_EQ(refusal({4096, 4096, 4096}), "");
  const std::pair<Sizes, const char *> cases[] = {
      {{64, 1 << 22, 64}, "a row of the first matrix has 2097152 words, a shim's BD steps over 1048576"},
      {{6400, 64, 6400}, "the product has 10000 blocks of 64 x 64, the array's control stream holds 4096"},
      {{int64_t(1) << 40, 1, 1}, "a dim of the product is above 1073741824"},
      {{1 << 16, 1 << 21, 64}, "a matrix takes more than 4 GiB of the array's DDR"}};
  for (const auto &[sizes, why] : cases)
    EXPECT_EQ(refusal(sizes), why);
  EXPECT_EQ(refusal({6400, 64, 6400}, {4, 4}), "");
}
