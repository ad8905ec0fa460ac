//===- CommandLineTest.cpp - what all command lines share -----------------===//
#include "dmxc/Tools/CommandLine.h"
#include "dmxc/Tools/Run.h"

#include <gtest/gtest.h>

namespace dmxc::tools::test {
namespace {

TEST(DidYouMean, FindsSlips) {
  std::vector<std::string> known = {"--benchmark", "--threads", "--inputs", "--input"};
  EXPECT_EQ(closest("--benchmrk", known), "--benchmark");
  EXPECT_EQ(closest("--thread", known), "--threads");
  EXPECT_EQ(closest("--imput", known), "--input");
  EXPECT_EQ(closest("--quantize", known), "");
  EXPECT_EQ(closest("x", {"y"}), "");
  EXPECT_EQ(didYouMean("summry", {"summary"}), " (did you mean 'summary'?)");
  EXPECT_EQ(didYouMean("zzz", {"summary"}), "");
}

TEST(SplitPair, AtFirstOrLast) {
  EXPECT_EQ(splitPair("a=b=c"), (std::pair<std::string, std::string>("a", "b=c")));
  EXPECT_EQ(splitPair("a=b=c", false), (std::pair<std::string, std::string>("a=b", "c")));
  for (const char *text : {"", "=", "a", "a=", "=a"})
    EXPECT_EQ(splitPair(text), std::nullopt) << text;
}

TEST(Latency, PercentilesInterpolate) {
  std::vector<double> times;
  for (int i = 100; i >= 0; --i)
    times.push_back(i);
  LatencyFigures f = latencyFigures(times);
  EXPECT_EQ(f.iters, 101u);
  EXPECT_DOUBLE_EQ(f.min, 0);
  EXPECT_DOUBLE_EQ(f.median, 50);
  EXPECT_DOUBLE_EQ(f.mean, 50);
  EXPECT_DOUBLE_EQ(f.p90, 90);
  EXPECT_DOUBLE_EQ(f.p99, 99);
  EXPECT_DOUBLE_EQ(latencyFigures({1, 2}).median, 1.5);
  EXPECT_DOUBLE_EQ(latencyFigures({3}).p99, 3);
}

} // namespace
} // namespace dmxc::tools::test
