//===- StarsTest.cpp - patterns of names ----------------------------------===//
#include "dmxc/Support/Stars.h"

#include <gtest/gtest.h>

namespace dmxc::test {
namespace {

using Stars = std::vector<std::string>;

TEST(Stars, StandForTexts) {
  EXPECT_EQ(starsOf("past.*", "past.0.key"), Stars({"0.key"}));
  EXPECT_EQ(starsOf("past.*.*", "past.0.1.key"), Stars({"0", "1.key"}));
  EXPECT_EQ(starsOf("*_*_out", "a_b_c_out"), Stars({"a", "b_c"}));
  EXPECT_EQ(starsOf("past_*", "past_"), Stars({""}));
  EXPECT_EQ(starsOf("**", "ab"), Stars({"", "ab"}));
  EXPECT_EQ(starsOf("past", "past"), Stars());
}

TEST(Stars, OtherTexts) {
  for (auto [pattern, text] :
       {std::pair("past", "past.0"), {"past.0", "past"}, {"a*a", "a"}, {"*.key", "key"}, {"a*b*c", "acb"}, {"", "a"}})
    EXPECT_EQ(starsOf(pattern, text), std::nullopt) << pattern << " " << text;
}

TEST(Stars, ManyOfThemTakeNoTime) {
  std::string stars, text(5000, 'a');
  for (int i = 0; i < 1000; ++i)
    stars += "*a";
  EXPECT_EQ(starsOf(stars + "b", text), std::nullopt);
}

TEST(Stars, AreFilled) {
  EXPECT_EQ(withStars("present.*.*", {"0", "key"}), "present.0.key");
  EXPECT_EQ(withStars("present", {}), "present");
  EXPECT_EQ(withStars("present.*", {}), std::nullopt);
  EXPECT_EQ(withStars("present.*", {"0", "key"}), std::nullopt);
}

} // namespace
} // namespace dmxc::test
