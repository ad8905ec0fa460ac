//===- UnitAttentions.cpp - attention at the levels with units for bf16 ---===//
//
// As UnitRegions.cpp. The interpreter rounds weights that a sum has divided, a kernel before that, so that results may
// differ by half a unit of bf16 each of the weights' magnitudes; where powers are whole numbers by the order of sums
// alone.
//
//===----------------------------------------------------------------------===//

#include "UnitRegions.h"

#include "targets/cpu/code/IsaLevel.h"
#include "tests/unit/TargetsCommon/RegionHarness.h"

#include "tests/Sample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace dmxc::kernels::test;

namespace {

constexpr llvm::StringRef kLevels[] = {kTileLevel, kDotsLevel};

struct Attention {
  int rows = 1, keys = 1, depth = 1, width = 1;
  bool stored = false;  ///< Q, K and V are bf16 in memory; else the kernel rounds them
  bool turned = false;  ///< K is [depth][keys] in memory
  bool even = false;    ///< all scores are the same
  bool masked = false;  ///< causal
  bool guarded = false; ///< weights are computed with behind the softmax
};

std::string functionOf(const std::string &name, const Attention &a) {
  std::string text = R"(
func.func @$NAME(%q: tensor<2x$ROWSx$DEPTHx$MEMORY>, %k: $KEPT, %v: tensor<2x$KEYSx$WIDTHx$MEMORY>) -> tensor<2x$ROWSx$WIDTHxf32>
    attributes {ulp = 16.0, abs = $ABS} {
  %scale = dmir.constant dense<$SCALE> : tensor<f32>
  %low = dmir.constant dense<0xFF800000> : tensor<f32>
  %x = dmir.$OP %q : (tensor<2x$ROWSx$DEPTHx$MEMORY>) -> tensor<2x$ROWSx$DEPTHxbf16>
  %y = dmir.$OP %k : ($KEPT) -> $READ
$TURN
  %z = dmir.$OP %v : (tensor<2x$KEYSx$WIDTHx$MEMORY>) -> tensor<2x$KEYSx$WIDTHxbf16>
  %s = dmir.matmul %x, $KT : (tensor<2x$ROWSx$DEPTHxbf16>, tensor<2x$DEPTHx$KEYSxbf16>) -> $SCORES
  %m = dmir.mul %s, %scale : ($SCORES, tensor<f32>) -> $SCORES
$MASK
  %p = dmir.softmax $SCALED {axis = 2 : i64} : ($SCORES) -> $SCORES
$GUARD
  %w = dmir.cast $WEIGHTS : ($SCORES) -> tensor<2x$ROWSx$KEYSxbf16>
  %r = dmir.matmul %w, %z : (tensor<2x$ROWSx$KEYSxbf16>, tensor<2x$KEYSx$WIDTHxbf16>) -> tensor<2x$ROWSx$WIDTHxf32>
  return %r : tensor<2x$ROWSx$WIDTHxf32>
}
)";
  const std::string turn =
      "  %t = dmir.transpose %y {permutation = array<i64: 0, 2, 1>} : ($READ) -> tensor<2x$DEPTHx$KEYSxbf16>";
  const std::string mask = "  %d = dmir.mask %m {fill = 0xFF800000 : f32, keep = [affine_set<(d0, d1, d2) : (d1 - d2 + "
                           "$LATER >= 0)>]} : ($SCORES) -> $SCORES";
  const std::string guard = "  %g = dmir.mul %p, %scale : ($SCORES, tensor<f32>) -> $SCORES";
  text = substitute(text, {{"TURN", a.turned ? "" : turn},
                           {"MASK", a.masked ? mask : ""},
                           {"GUARD", a.guarded ? guard : ""},
                           {"WEIGHTS", a.guarded ? "%g" : "%p"},
                           {"SCALED", a.masked ? "%d" : "%m"},
                           {"KT", a.turned ? "%y" : "%t"},
                           {"KEPT", a.turned ? "tensor<2x$DEPTHx$KEYSx$MEMORY>" : "tensor<2x$KEYSx$DEPTHx$MEMORY>"},
                           {"READ", a.turned ? "tensor<2x$DEPTHx$KEYSxbf16>" : "tensor<2x$KEYSx$DEPTHxbf16>"},
                           {"OP", a.stored ? "reshape" : "cast"},
                           {"SCALE", a.even ? "0.0" : "0.125"},
                           // Of values of deviation 2.
                           {"ABS", a.even ? "1.0e-5" : "3.0e-2"}});
  text = substitute(text, {{"SCORES", "tensor<2x$ROWSx$KEYSxf32>"}});
  return substitute(text, {{"NAME", name},
                           {"LATER", std::to_string(std::max(0, a.keys - a.rows))},
                           {"ROWS", std::to_string(a.rows)},
                           {"KEYS", std::to_string(a.keys)},
                           {"DEPTH", std::to_string(a.depth)},
                           {"WIDTH", std::to_string(a.width)},
                           {"MEMORY", a.stored ? "bf16" : "f32"}});
}

Attention randomAttention(std::mt19937_64 &random) {
  auto size = [&](double most) { return int(std::lround(std::pow(most, std::uniform_real_distribution<>()(random)))); };
  Attention a;
  a.rows = size(200), a.keys = size(300), a.depth = size(100), a.width = size(80);
  if (random() % 5 == 0) // some at a time
    a.rows = 1 + int(random() % 40), a.keys = 1025 + int(random() % 300);
  a.stored = random() % 2, a.turned = random() % 3 == 0, a.masked = random() % 4 == 0, a.guarded = random() % 6 == 0;
  a.even = random() % 3 == 0 && (a.keys & (a.keys - 1)) == 0;
  a.keys = a.masked ? std::max(a.keys, a.rows) : a.keys;
  return a;
}

TEST(UnitAttentions, Random) {
  constexpr unsigned each = 4;
  sampling::Sample sample(25);
  for (unsigned group = 0; group < 25; ++group) {
    if (!sample.takes(uint64_t(group)))
      continue;
    std::mt19937_64 random(group);
    std::string text;
    for (unsigned i = 0; i < each; ++i)
      text += functionOf("a" + std::to_string(group) + "_" + std::to_string(i), randomAttention(random));
    cpu::test::checkAt(kLevels, text);
  }
}

/// All powers are 1, so that nothing is rounded: the sums of values are those of pairs, tiles and what rests of them.
TEST(UnitAttentions, WhatIsMultiplied) {
  std::string text;
  auto add = [&](Attention a) { text += functionOf("e" + std::to_string(text.size()), a); };
  for (int keys : {1, 2, 32, 64})
    add({.rows = 18, .keys = keys, .depth = 7, .width = 20, .stored = keys > 2, .even = true});
  add({.rows = 5, .keys = 2048, .depth = 6, .width = 18, .stored = true, .even = true});
  add({.rows = 20, .keys = 128, .depth = 33, .width = 16, .turned = true, .even = true});
  cpu::test::checkAt(kLevels, text);
}

/// Rows and columns of one register and of two, pairs that a row ends in, keys that a rule leaves out.
TEST(UnitAttentions, EdgesOfTiles) {
  std::string text;
  auto add = [&](Attention a) { text += functionOf("t" + std::to_string(text.size()), a); };
  for (int rows : {1, 15, 16, 17, 33})
    add({.rows = rows, .keys = 31, .depth = 16, .width = 17});
  for (int depth : {1, 2, 31, 33, 65})
    add({.rows = 17, .keys = 33, .depth = depth, .width = 15, .turned = depth % 3 == 0});
  add({.rows = 35, .keys = 1153, .depth = 8, .width = 16, .stored = true});
  add({.rows = 70, .keys = 300, .depth = 8, .width = 16, .masked = true});
  add({.rows = 40, .keys = 1101, .depth = 8, .width = 16, .masked = true});
  cpu::test::checkAt(kLevels, text);
}

TEST(UnitAttentions, BothProductsAreOfUnits) {
  RegionModule regions(functionOf("many", {.rows = 128, .keys = 2048, .depth = 64, .width = 64, .stored = true}));
  ASSERT_EQ(regions.error, "");
  for (llvm::StringRef level : kLevels) {
    std::string code = cpu::test::assemblyAt(level, "many_kernel");
    EXPECT_EQ(cpu::test::spillIn(code), "") << level.str();
    EXPECT_NE(code.find(level == kTileLevel ? "tdpbf16ps" : "vdpbf16ps"), std::string::npos);
    EXPECT_EQ(code.find("vfmadd231ps\t(%r"), std::string::npos); // no product of floats
  }
}

} // namespace
