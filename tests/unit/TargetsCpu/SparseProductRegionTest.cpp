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
  has("all", "rows = 0 : i64, runs = 0 : i64, size = 128 : i64"); // 2 x 6 numbers of groups and 3 x 5 of entries, of 4 bytes
  has("one", "rows = 3 : i64, runs = 1 : i64");                   // k of the last block
  has("full", "form = \"panel16\"");
}
