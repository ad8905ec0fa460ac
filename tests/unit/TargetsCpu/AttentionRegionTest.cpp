//===- AttentionRegionTest.cpp - attention as one kernel ------------------------===//

#include "tests/Sample.h"
#include "tests/unit/TargetsCommon/RegionHarness.h"

#include <gtest/gtest.h>

#include <cstdlib>

using namespace dmxc::kernels::test;

namespace {

struct Shape {
  std::string name, batch; ///< "2x3": batch items, then heads
  int rows, keys, depth, width;
};

/// Q, K and V as projections leave them, heads behind positions; `between` is what comes between the products.
std::string attention(const Shape &shape, const std::string &between) {
  std::string batch = shape.batch.substr(0, shape.batch.find('x')),
              heads = shape.batch.substr(shape.batch.find('x') + 1);
  std::string scores = "tensor<$BATCHx$HEADSx$ROWSx$KEYSxf32>";
  std::string text = substitute(
      R"(
func.func @$NAME(%q: tensor<$BATCHx$ROWSx$HEADSx$DEPTHxf32>, %k: tensor<$BATCHx$KEYSx$HEADSx$DEPTHxf32>,
                 %v: tensor<$BATCHx$KEYSx$HEADSx$WIDTHxf32>, %keep: tensor<$ROWSx$KEYSxi1>, %bias: tensor<$BATCHx1x1x$KEYSxf32>)
    -> tensor<$BATCHx$HEADSx$ROWSx$WIDTHxf32> attributes {ulp = 16.0, abs = 5.0e-5} {
  %scale = dmir.constant dense<5.65685415> : tensor<f32>
  %low = dmir.constant dense<0xFF800000> : tensor<f32>
  %x = dmir.transpose %q {permutation = array<i64: 0, 2, 1, 3>} : (tensor<$BATCHx$ROWSx$HEADSx$DEPTHxf32>) -> tensor<$BATCHx$HEADSx$ROWSx$DEPTHxf32>
  %y = dmir.transpose %k {permutation = array<i64: 0, 2, 3, 1>} : (tensor<$BATCHx$KEYSx$HEADSx$DEPTHxf32>) -> tensor<$BATCHx$HEADSx$DEPTHx$KEYSxf32>
  %z = dmir.transpose %v {permutation = array<i64: 0, 2, 1, 3>} : (tensor<$BATCHx$KEYSx$HEADSx$WIDTHxf32>) -> tensor<$BATCHx$HEADSx$KEYSx$WIDTHxf32>
  %s = dmir.matmul %x, %y : (tensor<$BATCHx$HEADSx$ROWSx$DEPTHxf32>, tensor<$BATCHx$HEADSx$DEPTHx$KEYSxf32>) -> tensor<$BATCHx$HEADSx$ROWSx$KEYSxf32>
$BETWEEN
  %p = dmir.softmax %m {axis = 3 : i64} : (tensor<$BATCHx$HEADSx$ROWSx$KEYSxf32>) -> tensor<$BATCHx$HEADSx$ROWSx$KEYSxf32>
  %r = dmir.matmul %p, %z : (tensor<$BATCHx$HEADSx$ROWSx$KEYSxf32>, tensor<$BATCHx$HEADSx$KEYSx$WIDTHxf32>) -> tensor<$BATCHx$HEADSx$ROWSx$WIDTHxf32>
  return %r : tensor<$BATCHx$HEADSx$ROWSx$WIDTHxf32>
}
)",
      {{"BETWEEN", substitute(between, {{"SCORES", scores}})}});
  return substitute(text, {{"NAME", shape.name},
                           {"BATCH", batch},
                           {"HEADS", heads},
                           {"ROWS", std::to_string(shape.rows)},
                           {"KEYS", std::to_string(shape.keys)},
                           {"DEPTH", std::to_string(shape.depth)},
                           {"WIDTH", std::to_string(shape.width)}});
}

const char *none = "  %m = dmir.div %s, %scale : ($SCORES, tensor<f32>) -> $SCORES";
const char *added = "  %d = dmir.div %s, %scale : ($SCORES, tensor<f32>) -> $SCORES\n"
                    "  %m = dmir.add %d, %bias : ($SCORES, tensor<$BATCHx1x1x$KEYSxf32>) -> $SCORES";
const char *chosen = "  %d = dmir.div %s, %scale : ($SCORES, tensor<f32>) -> $SCORES\n"
                     "  %m = dmir.select %keep, %d, %low : (tensor<$ROWSx$KEYSxi1>, $SCORES, tensor<f32>) -> $SCORES";

void check(const std::string &text) {
  expectAgree(text);
  RegionModule module(text);
  for (const std::string &name : module.names())
    EXPECT_NE(module.strategy(name).find("algorithm = \"attention\""), std::string::npos) << module.strategy(name);
}

} // namespace

TEST(AttentionRegion, Masks) {
  check(attention({"scaled", "2x3", 37, 29, 20, 24}, none) + attention({"bias", "2x3", 33, 64, 16, 16}, added) +
        attention({"keep", "1x4", 40, 40, 32, 32}, chosen) +
        // Some rows without a key are NaN.
        attention({"without_keys", "1x2", 60, 2, 8, 8}, chosen));
}

TEST(AttentionRegion, RowsAndKeys) {
  check(attention({"one_row", "1x5", 1, 77, 16, 16}, added) + attention({"few_rows", "1x2", 3, 130, 16, 40}, chosen) +
        attention({"one_key", "1x2", 9, 1, 4, 5}, none) + attention({"blocks", "1x1", 300, 700, 8, 16}, added) +
        attention({"last_block_shorter", "1x1", 301, 700, 8, 17}, chosen) +
        attention({"deep", "1x1", 20, 50, 700, 3}, none) + attention({"many_keys", "1x2", 200, 1280, 16, 20}, none) +
        attention({"many_keys_and_more", "2x1", 131, 1301, 16, 16}, added));
}

/// One K and V for all heads, and an epilogue behind the last product.
TEST(AttentionRegion, SharedKeysAndEpilogue) {
  check(R"(
func.func @shared(%q: tensor<2x6x19x16xf32>, %k: tensor<2x1x23x16xf32>, %v: tensor<1x1x23x32xf32>, %x: tensor<2x6x19x32xf32>)
    -> tensor<2x6x19x32xf32> attributes {ulp = 16.0, abs = 5.0e-5} {
  %y = dmir.transpose %k {permutation = array<i64: 0, 1, 3, 2>} : (tensor<2x1x23x16xf32>) -> tensor<2x1x16x23xf32>
  %s = dmir.matmul %q, %y : (tensor<2x6x19x16xf32>, tensor<2x1x16x23xf32>) -> tensor<2x6x19x23xf32>
  %p = dmir.softmax %s {axis = 3 : i64} : (tensor<2x6x19x23xf32>) -> tensor<2x6x19x23xf32>
  %r = dmir.matmul %p, %v : (tensor<2x6x19x23xf32>, tensor<1x1x23x32xf32>) -> tensor<2x6x19x32xf32>
  %t = dmir.tanh %r : (tensor<2x6x19x32xf32>) -> tensor<2x6x19x32xf32>
  %z = dmir.add %t, %x : (tensor<2x6x19x32xf32>, tensor<2x6x19x32xf32>) -> tensor<2x6x19x32xf32>
  return %z : tensor<2x6x19x32xf32>
}
)");
}

/// Q, K and V rounded to bf16 by the kernel, K below a transpose, or in memory; the weights are f32.
TEST(AttentionRegion, RoundedOperands) {
  const char *text = R"(
func.func @$NAME(%q: tensor<3x$ROWSx20x$MEMORY>, %k: tensor<3x$KEYSx20x$MEMORY>, %v: tensor<3x$KEYSx24x$MEMORY>)
    -> tensor<3x$ROWSx24xf32> attributes {ulp = 16.0, abs = 5.0e-5} {
  %scale = dmir.constant dense<0.25> : tensor<f32>
$CASTS
  %t = dmir.transpose %y {permutation = array<i64: 0, 2, 1>} : (tensor<3x$KEYSx20xbf16>) -> tensor<3x20x$KEYSxbf16>
  %s = dmir.matmul %x, %t : (tensor<3x$ROWSx20xbf16>, tensor<3x20x$KEYSxbf16>) -> tensor<3x$ROWSx$KEYSxf32>
  %m = dmir.mul %s, %scale : (tensor<3x$ROWSx$KEYSxf32>, tensor<f32>) -> tensor<3x$ROWSx$KEYSxf32>
  %p = dmir.softmax %m {axis = 2 : i64} : (tensor<3x$ROWSx$KEYSxf32>) -> tensor<3x$ROWSx$KEYSxf32>
  %w = dmir.cast %z : (tensor<3x$KEYSx24xbf16>) -> tensor<3x$KEYSx24xf32>
  %r = dmir.matmul %p, %w : (tensor<3x$ROWSx$KEYSxf32>, tensor<3x$KEYSx24xf32>) -> tensor<3x$ROWSx24xf32>
  return %r : tensor<3x$ROWSx24xf32>
}
)";
  const char *casts = "  %x = dmir.cast %q : (tensor<3x$ROWSx20xf32>) -> tensor<3x$ROWSx20xbf16>\n"
                      "  %y = dmir.cast %k : (tensor<3x$KEYSx20xf32>) -> tensor<3x$KEYSx20xbf16>\n"
                      "  %z = dmir.cast %v : (tensor<3x$KEYSx24xf32>) -> tensor<3x$KEYSx24xbf16>";
  const char *views = "  %x = dmir.reshape %q : (tensor<3x$ROWSx20xbf16>) -> tensor<3x$ROWSx20xbf16>\n"
                      "  %y = dmir.reshape %k : (tensor<3x$KEYSx20xbf16>) -> tensor<3x$KEYSx20xbf16>\n"
                      "  %z = dmir.reshape %v : (tensor<3x$KEYSx24xbf16>) -> tensor<3x$KEYSx24xbf16>";
  std::string all;
  auto add = [&](const char *name, bool isStored, int rows, int keys) {
    all += substitute(substitute(text, {{"CASTS", isStored ? views : casts}}), {{"NAME", name},
                                                                                {"ROWS", std::to_string(rows)},
                                                                                {"KEYS", std::to_string(keys)},
                                                                                {"MEMORY", isStored ? "bf16" : "f32"}});
  };
  add("cast", false, 37, 29);
  add("cast_of_many_keys", false, 3, 1101);
  add("stored", true, 17, 40);
  check(all);
}

/// Batch axes that are joined around the products, as bmm wants them, and rows that may attend to nothing set to zero.
TEST(AttentionRegion, ReshapesAndZeroRows) {
  check(R"(
func.func @bmm(%q: tensor<6x19x16xf32>, %k: tensor<6x23x16xf32>, %v: tensor<6x23x32xf32>, %mask: tensor<2x1x1x23xf32>, %empty: tensor<19x1xi1>)
    -> tensor<6x19x32xf32> attributes {ulp = 16.0, abs = 5.0e-5} {
  %zero = dmir.constant dense<0.0> : tensor<f32>
  %y = dmir.transpose %k {permutation = array<i64: 0, 2, 1>} : (tensor<6x23x16xf32>) -> tensor<6x16x23xf32>
  %s = dmir.matmul %q, %y : (tensor<6x19x16xf32>, tensor<6x16x23xf32>) -> tensor<6x19x23xf32>
  %a = dmir.reshape %s : (tensor<6x19x23xf32>) -> tensor<2x3x19x23xf32>
  %m = dmir.add %a, %mask : (tensor<2x3x19x23xf32>, tensor<2x1x1x23xf32>) -> tensor<2x3x19x23xf32>
  %p = dmir.softmax %m {axis = 3 : i64} : (tensor<2x3x19x23xf32>) -> tensor<2x3x19x23xf32>
  %w = dmir.select %empty, %zero, %p : (tensor<19x1xi1>, tensor<f32>, tensor<2x3x19x23xf32>) -> tensor<2x3x19x23xf32>
  %b = dmir.reshape %w : (tensor<2x3x19x23xf32>) -> tensor<6x19x23xf32>
  %r = dmir.matmul %b, %v : (tensor<6x19x23xf32>, tensor<6x23x32xf32>) -> tensor<6x19x32xf32>
  return %r : tensor<6x19x32xf32>
}
)");
}

/// select(is_nan(w), 0, w), as exporters write it behind the softmax: rows without a key are zeros, and so are those
/// that have a NaN among their scores.
TEST(AttentionRegion, Guard) {
  const char *guarded = R"(
func.func @$NAME(%q: tensor<2x$ROWSx16xf32>, %k: tensor<2x16x$KEYSxf32>, %v: tensor<2x$KEYSx24xf32>, %keep: tensor<$ROWSx$KEYSxi1>)
    -> tensor<2x$ROWSx24xf32> attributes {ulp = 16.0, abs = 5.0e-5$MORE} {
  %zero = dmir.constant dense<0.0> : tensor<f32>
  %low = dmir.constant dense<0xFF800000> : tensor<f32>
  %s = dmir.matmul %q, %k : (tensor<2x$ROWSx16xf32>, tensor<2x16x$KEYSxf32>) -> tensor<2x$ROWSx$KEYSxf32>
  %m = dmir.select %keep, %s, %low : (tensor<$ROWSx$KEYSxi1>, tensor<2x$ROWSx$KEYSxf32>, tensor<f32>) -> tensor<2x$ROWSx$KEYSxf32>
  %p = dmir.softmax %m {axis = 2 : i64} : (tensor<2x$ROWSx$KEYSxf32>) -> tensor<2x$ROWSx$KEYSxf32>
  %n = dmir.is_nan %p : (tensor<2x$ROWSx$KEYSxf32>) -> tensor<2x$ROWSx$KEYSxi1>
  %w = dmir.select %n, %zero, %p : (tensor<2x$ROWSx$KEYSxi1>, tensor<f32>, tensor<2x$ROWSx$KEYSxf32>) -> tensor<2x$ROWSx$KEYSxf32>
$BEHIND
  %r = dmir.matmul %x, %v : (tensor<2x$ROWSx$KEYSxf32>, tensor<2x$KEYSx24xf32>) -> tensor<2x$ROWSx24xf32>
  return %r : tensor<2x$ROWSx24xf32>
}
)";
  auto make = [&](const char *name, int rows, int keys, const char *more, std::string behind) {
    return substitute(substitute(guarded, {{"BEHIND", std::move(behind)}}),
                      {{"NAME", name}, {"ROWS", std::to_string(rows)}, {"KEYS", std::to_string(keys)}, {"MORE", more}});
  };
  std::string same = "  %x = dmir.reshape %w : (tensor<2x$ROWSx$KEYSxf32>) -> tensor<2x$ROWSx$KEYSxf32>",
              scaled =
                  "  %two = dmir.constant dense<2.0> : tensor<f32>\n"
                  "  %x = dmir.mul %w, %two : (tensor<2x$ROWSx$KEYSxf32>, tensor<f32>) -> tensor<2x$ROWSx$KEYSxf32>";
  check(make("many_keys", 37, 150, "", same) + make("without_keys", 60, 2, "", same) +
        make("weights_computed", 60, 2, "", scaled));
}

/// Masks that are rules: the keys that a block of rows looks at, what replaces scores, rows that see nothing, fewer
/// keys than a tile more than whole passes, and sums over keys in several passes.
TEST(AttentionRegion, Rules) {
  const char *masked = R"(
func.func @$NAME(%q: tensor<2x$ROWSx16xf32>, %k: tensor<2x16x$KEYSxf32>, %v: tensor<2x$KEYSx24xf32>)
    -> tensor<2x$ROWSx24xf32> attributes {ulp = 16.0, abs = $ABS} {
  %s = dmir.matmul %q, %k : (tensor<2x$ROWSx16xf32>, tensor<2x16x$KEYSxf32>) -> tensor<2x$ROWSx$KEYSxf32>
  %m = dmir.mask %s {keep = [$RULE], fill = $FILL : f32} : (tensor<2x$ROWSx$KEYSxf32>) -> tensor<2x$ROWSx$KEYSxf32>
  %p = dmir.softmax %m {axis = 2 : i64} : (tensor<2x$ROWSx$KEYSxf32>) -> tensor<2x$ROWSx$KEYSxf32>
  %r = dmir.matmul %p, %v : (tensor<2x$ROWSx$KEYSxf32>, tensor<2x$KEYSx24xf32>) -> tensor<2x$ROWSx24xf32>
  return %r : tensor<2x$ROWSx24xf32>
}
)";
  std::string infinite = "0xFF800000", least = "-3.40282347E+38", close = "-3.0", text;
  dmxc::sampling::Sample half(2);
  auto add = [&](const char *name, int rows, int keys, const char *rule, const std::string &fill) {
    if (!half.takesNext())
      return;
    text += substitute(masked, {{"NAME", name},
                                {"ROWS", std::to_string(rows)},
                                {"KEYS", std::to_string(keys)},
                                {"RULE", rule},
                                {"ABS", fill == close ? "2.0e-4" : "5.0e-5"}, // many scores weigh as much
                                {"FILL", fill}});
  };
  add("causal", 70, 330, "affine_set<(b, i, j) : (i + 260 - j >= 0)>", infinite);
  add("window", 90, 600, "affine_set<(b, i, j) : (i + 510 - j >= 0, j - i - 480 >= 0)>", least);
  add("blind_finite", 60, 300, "affine_set<(b, i, j) : (i - 20 - j >= 0)>", least);
  add("near_fill", 40, 300, "affine_set<(b, i, j) : (i - j >= 0)>", close);
  add("either", 40, 700, "affine_set<(b, i, j) : (4 - j >= 0)>, affine_set<(b, i, j) : (j - i - 500 == 0)>", least);
  add("none", 30, 300, "affine_set<(b, i, j) : (-1 - j >= 0)>", infinite);
  // Many keys, some at a time: whole tiles, and a rest; rows that see nothing, at the end too; a row of its own.
  add("long_causal", 150, 1200, "affine_set<(b, i, j) : (i + 1050 - j >= 0)>", infinite);
  add("long_blind", 130, 1100, "affine_set<(b, i, j) : (i - 20 - j >= 0)>", infinite);
  add("long_row", 1, 2000, "affine_set<(b, i, j) : (j - 1500 >= 0)>", least);
  add("few_keys", 30, 100, "affine_set<(b, i, j) : (i - j >= 0)>", infinite);
  if (std::getenv("DMXC_LONG")) {
    add("long_window", 140, 1152, "affine_set<(b, i, j) : (i + 900 - j >= 0, j - i - 700 >= 0)>", least);
    add("long_blind_finite", 130, 1100, "affine_set<(b, i, j) : (100 - i >= 0, i - j >= 0)>", least);
    add("long_near_fill", 20, 1030, "affine_set<(b, i, j) : (i - j >= 0)>", close);
    add("items", 50, 300, "affine_set<(b, i, j) : (i + b * 200 - j >= 0)>", infinite);
    add("chunks", 50, 520, "affine_set<(b, i, j) : ((i + 470) floordiv 64 - j floordiv 64 == 0)>", infinite);
    add("blind", 60, 300, "affine_set<(b, i, j) : (i - 20 - j >= 0)>", infinite);
  }
  expectAgree(text);
  RegionModule module(text);
  for (const std::string &name : module.names())
    EXPECT_NE(module.strategy(name).find(name == "few_keys" ? "\"attention\"" : "\"attention-tiles\""),
              std::string::npos)
        << module.strategy(name);
}

/// Masks of which each tile is asked about: a number that is added to scores, with scores that it does not drown; one
/// that replaces them and weighs something; lists of tiles, whole, cut by blocks of rows, and beside a rule;
/// overlapping cases.
TEST(AttentionRegion, Fills) {
  const char *masked = R"(
func.func @$NAME(%q: tensor<2x$ROWSx16xf32>, %k: tensor<2x$KEYSx16xf32>, %v: tensor<2x$KEYSx24xf32>, %pad: tensor<1x1x$KEYSxf32>)
    -> tensor<2x$ROWSx24xf32> attributes {ulp = 16.0, abs = 2.0e-4} {
  %scale = dmir.constant dense<$SCALE> : tensor<f32>
  %t = dmir.transpose %k {permutation = array<i64: 0, 2, 1>} : (tensor<2x$KEYSx16xf32>) -> tensor<2x16x$KEYSxf32>
  %s = dmir.matmul %q, %t : (tensor<2x$ROWSx16xf32>, tensor<2x16x$KEYSxf32>) -> tensor<2x$ROWSx$KEYSxf32>
  %c = dmir.mul %s, %scale : (tensor<2x$ROWSx$KEYSxf32>, tensor<f32>) -> tensor<2x$ROWSx$KEYSxf32>
  %a = dmir.sub %c, %pad : (tensor<2x$ROWSx$KEYSxf32>, tensor<1x1x$KEYSxf32>) -> tensor<2x$ROWSx$KEYSxf32>
  %m = dmir.mask %a {keep = [$RULE], $FORM} : (tensor<2x$ROWSx$KEYSxf32>) -> tensor<2x$ROWSx$KEYSxf32>
  %p = dmir.softmax %m {axis = 2 : i64} : (tensor<2x$ROWSx$KEYSxf32>) -> tensor<2x$ROWSx$KEYSxf32>
  %r = dmir.matmul %p, %v : (tensor<2x$ROWSx$KEYSxf32>, tensor<2x$KEYSx24xf32>) -> tensor<2x$ROWSx24xf32>
  return %r : tensor<2x$ROWSx24xf32>
}
)";
  const std::string causal = "affine_set<(b, i, j) : (i + 150 - j >= 0)>", added = "fill = -1.0e+4 : f32, adds",
                    whole = "affine_set<(b, i, j) : (0 == 0)>", tile = ", tile = array<i64: 64, 64>, tiles = ";
  const std::string lists = "[array<i64: 0, 3>, array<i64: 1>, array<i64>]";
  std::string text;
  dmxc::sampling::Sample sixth(6);
  auto add = [&](const char *name, int rows, int keys, const std::string &rule, const std::string &form,
                 const char *scale) {
    if (sixth.takesNext())
      text += substitute(masked, {{"NAME", name},
                                  {"ROWS", std::to_string(rows)},
                                  {"KEYS", std::to_string(keys)},
                                  {"RULE", rule},
                                  {"FORM", form},
                                  {"SCALE", scale}});
  };
  add("added", 140, 300, causal, added, "0.25");
  add("added_to_greater", 140, 300, causal, added, "3000.0");
  add("blind_added", 70, 256, "affine_set<(b, i, j) : (i - 30 - j >= 0)>", added, "0.25");
  add("weighed", 140, 300, causal, "fill = 0.0 : f32", "0.25");
  add("weighed_above", 70, 270, causal, "fill = 6.0 : f32", "0.25");
  add("weighed_alone", 70, 256, "affine_set<(b, i, j) : (i - 30 - j >= 0)>", "fill = -2.0 : f32", "0.25");
  add("listed", 150, 256, whole, "fill = -3.40282347E+38 : f32" + tile + lists, "0.25");
  add("listed_rule", 150, 256, causal, "fill = -3.40282347E+38 : f32" + tile + lists, "0.25");
  add("listed_weighed", 150, 256, whole, "fill = 1.0 : f32" + tile + lists, "0.25");
  add("listed_odd", 150, 300, whole,
      "fill = -1.0e+4 : f32, adds, tile = array<i64: 100, 96>, tiles = [array<i64: 0, 3>, array<i64: 1>]", "0.25");
  add("cases", 150, 1100, "affine_set<(b, i, j) : (3 - j >= 0)>, affine_set<(b, i, j) : (i - j >= 0, j - i + 60 >= 0)>",
      "fill = 0xFF800000 : f32", "0.25");
  expectAgree(text);
  RegionModule module(text);
  for (const std::string &name : module.names())
    EXPECT_NE(module.strategy(name).find("\"attention-tiles\""), std::string::npos) << module.strategy(name);
}
