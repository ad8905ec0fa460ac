//===- SparseProductRegionTest.cpp - products whose weights are zero in blocks --===//

#include "tests/unit/TargetsCommon/RegionHarness.h"

#include <gtest/gtest.h>

using namespace dmxc::kernels::test;

namespace {

struct Product {
  std::string name, zeros;
  std::string m; ///< a number, or empty: open
  int k, n;
  std::string type = "f32";
  bool transposed = false, heavy = false;
};

std::string tensorOf(const std::string &rows, int columns, const std::string &type) {
  return rows.empty() ? "tensor<?x" + std::to_string(columns) + "x" + type + ", #dmir.dims<\"m\">>"
                      : "tensor<" + rows + "x" + std::to_string(columns) + "x" + type + ">";
}

/// relu(a w), of a heavy one erf(a w).
std::string textOf(const Product &p) {
  const std::string a = tensorOf(p.m, p.k, p.type), r = tensorOf(p.m, p.n, p.type),
                    w = tensorOf(std::to_string(p.k), p.n, p.type), wt = tensorOf(std::to_string(p.n), p.k, p.type);
  const bool isFloat = p.type[0] == 'f' || p.type[0] == 'b';
  return "func.func @" + p.name + "(%a: " + a + ", %b: " + (p.transposed ? wt : w) + " {test.packed, test.zeros = \"" +
         p.zeros + "\"}) -> " + r + " attributes {" + (isFloat ? "ulp = 4.0, abs = 2.0e-3" : "test.exact") +
         (p.m.empty() ? ", sizes = [{m = 0}, {m = 1}, {m = 5}, {m = 33}]" : "") + "} {\n" +
         (p.transposed ? "  %w = dmir.transpose %b {permutation = array<i64: 1, 0>} : (" + wt + ") -> " + w + "\n"
                       : "") +
         "  %p = dmir.matmul %a, " + (p.transposed ? "%w" : "%b") + " : (" + a + ", " + w + ") -> " + r +
         "\n  %r = dmir." + (p.heavy ? "erf" : "relu") + " %p : (" + r + ") -> " + r + "\n  return %r : " + r + "\n}\n";
}

} // namespace

/// Rows of one tile and of several, few and many; depths of one pass and of several that end within a block; columns
/// that end within a group, within a vector.
TEST(SparseProductRegion, EveryPattern) {
  std::string text;
  int number = 0;
  for (const char *zeros : {"lower", "diagonal", "blocks", "rows", "columns", "last", "all"})
    for (const char *m : {"1", "2", "4", "19", "130", ""})
      for (auto [k, n] : {std::pair(64, 64), {203, 150}, {1290, 117}}) {
        Product p{"p" + std::to_string(number), zeros, m, k, n};
        p.transposed = number % 2, p.heavy = number % 3 == 0;
        p.name += std::string("_") + zeros;
        text += textOf(p);
        ++number;
      }
  expectAgree(text, 1, 12);
}

TEST(SparseProductRegion, ElementTypes) {
  std::string text;
  for (const char *type : {"f64", "f16", "bf16", "i32", "i64", "i8"})
    for (const char *m : {"3", "40"})
      text += textOf({std::string(type) + "_" + m, "blocks", m, 170, 100, type});
  expectAgree(text, 1, 4);
}

/// What pays is kept in runs, as many as can be counted here; the rest in panels.
TEST(SparseProductRegion, Strategies) {
  RegionModule module(textOf({"half", "diagonal", "20", 160, 160}) + textOf({"full", "", "20", 160, 160}) +
                      textOf({"all", "all", "20", 160, 160}) + textOf({"wide", "diagonal", "1", 320, 320}) +
                      textOf({"one", "last", "20", 163, 160}));
  ASSERT_EQ(module.error, "");
  auto has = [&](const char *name, const char *part) {
    EXPECT_NE(module.strategy(name).find(part), std::string::npos) << module.strategy(name) << " lacks " << part;
  };
  // Five blocks of 32 x 32 on the diagonal.
  has("half", "matmul-runs");
  has("half", "columns = 32 : i64, form = \"runs\"");
  has("half", "rows = 160 : i64, runs = 5 : i64");
  has("half", "flops = 208000 : i64"); // 2 x 20 x 160 x 32, and 20 x 160 of relu
  // Of 64 x 64, and groups of 64 columns: the same.
  has("wide", "columns = 64 : i64");
  has("wide", "rows = 320 : i64, runs = 5 : i64");
  has("all",
      "rows = 0 : i64, runs = 0 : i64, size = 128 : i64"); // 2 x 6 numbers of groups and 3 x 5 of entries, of 4 bytes
  has("one", "rows = 3 : i64, runs = 1 : i64");            // k of the last block
  has("full", "form = \"panel16\"");
}

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

/// Rows of a softmax, or of its logarithm, of which rules keep some: triangles, bands, none of the first rows.
TEST(RangesRegion, Softmax) {
  std::string text;
  int number = 0;
  for (const char *rule :
       {"d0 - d1 >= 0", "d0 - d1 + 300 >= 0, d1 - d0 - 20 >= 0", "d0 - d1 - 3 >= 0", "d1 - 400 >= 0"})
    for (const char *type : {"f32", "f64", "f16"})
      for (const char *log : {"false", "true"}) {
        const std::string infinity = type[1] == '6' ? "0xFFF0000000000000" : type[1] == '3' ? "0xFF800000" : "0xFC00";
        text += substitute(
            R"(
func.func @softmax_$N(%x: tensor<40x610x$T>) -> tensor<40x610x$T> attributes {ulp = 64.0, abs = 2.0e-3} {
  %m = dmir.mask %x {fill = $FILL : $T, keep = [affine_set<(d0, d1) : ($RULE)>]} : (tensor<40x610x$T>) -> tensor<40x610x$T>
  %s = dmir.softmax %m {axis = 1 : i64, log = $LOG} : (tensor<40x610x$T>) -> tensor<40x610x$T>
  %r = dmir.abs %s : (tensor<40x610x$T>) -> tensor<40x610x$T>
  return %r : tensor<40x610x$T>
}
)",
            {{"N", std::to_string(number++)}, {"T", type}, {"FILL", infinity}, {"RULE", rule}, {"LOG", log}});
      }
  expectAgree(text, 1, 3);
  RegionModule module(text, 24);
  ASSERT_EQ(module.error, "");
  for (const std::string &name : module.names())
    EXPECT_NE(module.strategy(name).find("softmax-along-ranges"), std::string::npos) << module.strategy(name);
}

/// A product whose left operand, or whose result's use, is a triangle. The interpreter multiplies all.
TEST(RangesRegion, Products) {
  std::string text;
  for (int n : {3, 70, 203})
    for (bool isLeft : {true, false}) {
      const std::string fact = "{keep = [affine_set<(d0, d1) : (d0 - d1 + 1 >= 0)>]";
      text += substitute(
          R"(
func.func @$NAME(%a: tensor<$Nx$Nxf32>$ZEROS, %b: tensor<$Nx61xf32>, %c: tensor<61x$Nxf32>) -> tensor<$Nx$Rxf32> attributes {ulp = 8.0, abs = 2.0e-4} {
  $ZBODY
  return %r : tensor<$Nx$Rxf32>
}
)",
          {{"NAME", (isLeft ? "left" : "result") + std::to_string(n)},
           {"ZEROS", isLeft ? " {test.zeros = \"upper\"}" : ""},
           {"R", isLeft ? "61" : "$N"},
           {"ZBODY",
            isLeft
                ? "%t = dmir.transpose %a {permutation = array<i64: 1, 0>, dmir.sparsity = {known = " + fact +
                      ", value = 0.0 : f32}}} : (tensor<$Nx$Nxf32>) -> tensor<$Nx$Nxf32>\n"
                      "  %r = dmir.matmul %t, %b : (tensor<$Nx$Nxf32>, tensor<$Nx61xf32>) -> tensor<$Nx61xf32>"
                : "%p = dmir.matmul %b, %c {dmir.sparsity = {demanded = " + fact +
                      "}}} : (tensor<$Nx61xf32>, tensor<61x$Nxf32>) -> tensor<$Nx$Nxf32>\n"
                      "  %r = dmir.mask %p {fill = -2.5 : f32, keep = [affine_set<(d0, d1) : (d0 - d1 + 1 >= 0)>]} : "
                      "(tensor<$Nx$Nxf32>) -> tensor<$Nx$Nxf32>"},
           {"N", std::to_string(n)}});
    }
  expectAgree(text, 2);
  RegionModule module(text);
  ASSERT_EQ(module.error, "");
  for (const char *name : {"left203", "result203"})
    EXPECT_NE(module.strategy(name).find("matmul-ranges"), std::string::npos) << module.strategy(name);
}
