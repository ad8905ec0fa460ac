//===- ProductTest.cpp - products by the design are those of the rule -----===//
#include "RunProduct.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <fstream>
#include <random>

using namespace aietest;

TEST(AieProduct, BitByBitAsTheRule) {
  std::mt19937_64 random(7);
  auto dim = [&] { return std::uniform_int_distribution<int64_t>(1, 150)(random); };
  std::vector<Sizes> all = {{1, 1, 1}, {64, 64, 64}, {1, 300, 1}, {65, 1, 130}, {128, 256, 192}, {300, 7, 5}};
  for (int i = 0; i < 12; ++i)
    all.push_back({dim(), dim(), dim()});
  for (const Sizes &sizes : all) {
    bool swapped = random() % 2;
    Matrices of = randomMatrices(sizes, random());
    Outcome outcome = run(hw::write(imageOf(sizes, swapped)), sizes, of, swapped);
    ASSERT_EQ(outcome.error, "") << sizes.m << "x" << sizes.k << "x" << sizes.n;
    EXPECT_EQ(outcome.c, byTheRule(sizes, of)) << sizes.m << "x" << sizes.k << "x" << sizes.n;
  }
}

TEST(AieProduct, DelaysAndColumnsChangeNoBit) {
  Sizes sizes{130, 200, 260}; // 15 results: BDs and queues are used again
  Matrices of = randomMatrices(sizes, 3);
  std::vector<float> expected = byTheRule(sizes, of);
  for (int seed = 0; seed <= 5; ++seed) {
    Outcome outcome = run(hw::write(imageOf(sizes)), sizes, of, false, {"aie.skew_seed=" + std::to_string(seed)});
    EXPECT_EQ(outcome.error, "") << seed;
    EXPECT_EQ(outcome.c, expected) << seed;
  }
  Outcome narrow = run(hw::write(imageOf(sizes, false, "npu1_1col")), sizes, of);
  EXPECT_EQ(narrow.error, "");
  EXPECT_EQ(narrow.c, expected);
}

TEST(AieProduct, TheReportCountsTheWork) {
  Sizes sizes{100, 100, 100};
  std::string path = testing::TempDir() + "aie-report.json", traced = testing::TempDir() + "aie-trace.json";
  Outcome outcome =
      run(hw::write(imageOf(sizes)), sizes, randomMatrices(sizes, 1), false, {"report=" + path, "trace=" + traced});
  ASSERT_EQ(outcome.error, "");
  std::ifstream file(path), trace(traced);
  nlohmann::json report = nlohmann::json::parse(file), events = nlohmann::json::parse(trace);
  const nlohmann::json &run = report["last"][0]["main"];
  EXPECT_EQ(report["machine"], "npu1");
  EXPECT_EQ(run["macs"]["bf16"], 128 * 128 * 128) << "with the padding to whole tiles";
  // Each of the 4 results takes its rows of a and columns of b: 2 x 16 KiB; written once.
  EXPECT_EQ(run["read_bytes"]["DDR"], 4 * (64 * 128 * 2 + 128 * 64 * 2));
  EXPECT_EQ(run["written_bytes"]["DDR"], 128 * 128 * 4);
  EXPECT_EQ(run["link_bytes"]["MM2S 0 of tile (0,0) to S2MM 0 of tile (0,1)"], 4 * 64 * 128 * 2);
  EXPECT_GT(run["clocks"], 4 * 4 * 1024) << "a matrix step a clock";
  EXPECT_LT(run["clocks"], 3 * 4 * 4 * 1192);
  EXPECT_GT(run["utilisation"]["core (0,2)"], 0.3);
  size_t calls = 0;
  for (const nlohmann::json &event : events["traceEvents"])
    calls += event["name"] == "matmul_bf16_f32";
  EXPECT_EQ(calls, 4u * 4);
  std::remove(path.c_str());
  std::remove(traced.c_str());
}

TEST(AieProduct, WhatTheDesignDoesNotHoldIsSaid) {
  hw::Machine machine = *hw::machineOf("npu1");
  EXPECT_FALSE(dmxc::aie::refuses(machine, {4096, 4096, 4096}));
  const std::pair<Sizes, const char *> cases[] = {
      {{64, 1 << 22, 64}, "a row of the first matrix has 2097152 words, a shim's BD steps over 1048576"},
      {{64, 64, 1 << 17}, "32 rows of the second matrix have 2097152 words, a shim's BD steps over 1048576"},
      {{6400, 64, 6400}, "the product has 10000 results of 64 x 64, the array's control stream holds 4096"},
      {{int64_t(1) << 40, 1, 1}, "a dim of the product is above 1073741824"},
      {{1 << 16, 1 << 21, 64}, "a matrix takes more than 4 GiB of the array's DDR"}};
  for (const auto &[sizes, why] : cases)
    EXPECT_EQ(dmxc::aie::refuses(machine, sizes).value_or(""), why);
}
