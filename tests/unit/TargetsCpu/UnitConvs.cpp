//===- UnitConvs.cpp - convolutions of bf16 at the levels with units ------===//
//
// As UnitRegions.cpp: images in blocks of 16 channels, whose numbers meet their weights in pairs.
//
//===----------------------------------------------------------------------===//

#include "UnitRegions.h"

#include "targets/cpu/code/IsaLevel.h"
#include "tests/unit/TargetsCommon/RegionHarness.h"

#include "tests/Sample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <sstream>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace dmxc::cpu::test;
using namespace dmxc::kernels::test;

namespace {

constexpr llvm::StringRef kLevels[] = {kTileLevel, kDotsLevel};

struct Conv {
  int channels = 16, outputs = 16, size = 5, kernel = 1, stride = 1, pad = 0, groups = 1;
};

/// Errors are allowed as far as the order of sums goes, as in UnitRegions.cpp.
std::string functionOf(const std::string &name, const Conv &c) {
  const int out = (c.size + 2 * c.pad - c.kernel) / c.stride + 1, terms = c.channels / c.groups * c.kernel * c.kernel;
  std::ostringstream bound;
  bound << std::scientific << terms * std::ldexp(2.55 * terms + 25, -23) + 4e-6;
  auto two = [](int x) { return std::to_string(x) + ", " + std::to_string(x); };
  return substitute(substitute(R"(
func.func @$NAME(%x: $IN, %w: $WEIGHTS {test.packed}, %b: $RESULT) -> $RESULT attributes {ulp = 4.0, abs = $ABS} {
  %c = dmir.conv %x, %w {groups = $GROUPS : i64, strides = array<i64: $STRIDE>, dilations = array<i64: 1, 1>, low = array<i64: $PAD>, high = array<i64: $PAD>} : ($IN, $WEIGHTS) -> $RESULT
  %r = dmir.add %c, %b : ($RESULT, $RESULT) -> $RESULT
  return %r : $RESULT
}
)",
                               {{"IN", "tensor<2x$CHANNELSx$SIZEx$SIZExbf16, #dmir.blocked<1, 16>>"},
                                {"WEIGHTS", "tensor<$OUTPUTSx$EACHx$KERNELx$KERNELxbf16>"},
                                {"RESULT", "tensor<2x$OUTPUTSx$ROWSx$ROWSxf32, #dmir.blocked<1, 16>>"}}),
                    {{"NAME", name},
                     {"ABS", bound.str()},
                     {"STRIDE", two(c.stride)},
                     {"PAD", two(c.pad)},
                     {"GROUPS", std::to_string(c.groups)},
                     {"CHANNELS", std::to_string(c.channels)},
                     {"SIZE", std::to_string(c.size)},
                     {"OUTPUTS", std::to_string(c.outputs)},
                     {"EACH", std::to_string(c.channels / c.groups)},
                     {"KERNEL", std::to_string(c.kernel)},
                     {"ROWS", std::to_string(out)}});
}

Conv randomConv(std::mt19937_64 &random) {
  auto pick = [&](std::initializer_list<int> values) { return values.begin()[random() % values.size()]; };
  Conv c{
      .channels = 2 * pick({8, 9, 13, 16, 32}), .outputs = pick({8, 16, 17, 24, 31, 48}), .size = pick({1, 4, 7, 15})};
  c.kernel = std::min(c.size, pick({1, 1, 3, 4}));
  c.stride = pick({1, 1, 2}), c.pad = pick({0, c.kernel / 2});
  if (random() % 4 == 0)
    c.groups = 2, c.channels = pick({32, 64}), c.outputs = pick({32, 64});
  return c;
}

TEST(UnitConvs, Random) {
  constexpr unsigned each = 4;
  sampling::Sample sample(20);
  for (unsigned group = 0; group < 20; ++group) {
    if (!sample.takes(uint64_t(group)))
      continue;
    std::mt19937_64 random(group);
    std::string text;
    for (unsigned i = 0; i < each; ++i)
      text += functionOf("c" + std::to_string(group) + "_" + std::to_string(i), randomConv(random));
    // Each alone, as both have the same code; in a plain run one of them.
    for (unsigned i = 0; i < (sample.whole() ? std::size(kLevels) : 1); ++i)
      checkAt(kLevels[(group + i) % std::size(kLevels)], text);
  }
}

TEST(UnitConvs, AreOfPairs) {
  const std::string text = functionOf("one", {.channels = 64, .outputs = 64, .size = 14});
  RegionModule regions(text);
  ASSERT_EQ(regions.error, "");
  EXPECT_NE(regions.strategy("one").find("\"conv-pairs\""), std::string::npos) << regions.strategy("one");
  for (llvm::StringRef level : kLevels) {
    std::string code = assemblyAt(level, "one_kernel");
    EXPECT_NE(code.find("\tvdpbf16ps"), std::string::npos) << level.str();
    EXPECT_EQ(spillIn(code), "") << level.str();
  }
}

} // namespace
