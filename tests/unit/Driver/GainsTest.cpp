//===- GainsTest.cpp - what counts as a gain ------------------------===//
#include "src/Driver/tune/Gains.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <random>

using namespace dmxc::driver;

namespace {

/// CPU time of some arithmetic, in nanoseconds.
double timeOfWork() {
  timespec begin{}, end{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
  volatile double sum = 0;
  for (int i = 0; i < 20000; ++i)
    sum = sum + std::sqrt(static_cast<double>(i));
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
  return static_cast<double>(end.tv_sec - begin.tv_sec) * 1e9 + static_cast<double>(end.tv_nsec - begin.tv_nsec);
}

/// As many ratios as pairs, drawn from measured ones; the candidate's times a true gain.
Ratios draw(const std::vector<double> &measured, size_t pairs, double gain, std::mt19937 &random) {
  std::uniform_int_distribution<size_t> which(0, measured.size() - 1);
  Ratios ratios;
  for (size_t i = 0; i < pairs; ++i) {
    ratios.candidate.push_back(gain * measured[which(random)]);
    ratios.control.push_back(measured[which(random)]);
  }
  return ratios;
}

/// What is compared with itself is kept in at most 0.5 % of the draws, on whatever machine this runs.
TEST(Gains, KeepsNothingThatIsTheSame) {
  std::vector<double> measured;
  for (int i = 0; i < 300; ++i) {
    const double first = timeOfWork();
    measured.push_back(first / timeOfWork());
  }
  std::mt19937 random(1);
  int kept = 0;
  for (int i = 0; i < 2000; ++i)
    kept += gains(draw(measured, 16, 1, random));
  EXPECT_LE(kept, 10);
}

/// A tenth is found where times differ by two hundredths; a hundredth is not.
TEST(Gains, FindsWhatIsBeyondNoise) {
  std::mt19937 random(2);
  std::normal_distribution<double> noise(1, 0.02);
  std::vector<double> measured(400);
  for (double &ratio : measured)
    ratio = noise(random);
  int tenth = 0, hundredth = 0;
  for (int i = 0; i < 500; ++i) {
    tenth += gains(draw(measured, 32, 1.1, random));
    hundredth += gains(draw(measured, 32, 1.01, random));
  }
  EXPECT_GE(tenth, 450); // where the control is quiet
  EXPECT_LE(hundredth, 2);
}

TEST(Gains, AsksTheControl) {
  Ratios ratios;
  ratios.candidate.assign(32, 1.2);
  ratios.control.assign(32, 1.0);
  EXPECT_TRUE(gains(ratios));
  ratios.control.assign(32, 1.05); // the default is not as fast as itself
  EXPECT_FALSE(gains(ratios));
  ratios.control.assign(32, 1.0);
  ratios.candidate.resize(4); // too few to tell
  EXPECT_FALSE(gains(ratios));
  EXPECT_FALSE(gains({}));
  EXPECT_EQ(medianOf({3, 1, 2}), 2);
  EXPECT_EQ(medianOf({4, 1, 2, 3}), 2.5);
}

} // namespace
