//===- BlockProductRegionTest.cpp - products with right operands of few bits ----===//

#include "tests/unit/TargetsCommon/RegionHarness.h"

#include <gtest/gtest.h>

#include <random>

using namespace dmxc::kernels::test;

namespace {

/// What a product and its right operand are; numbers as text, for `substitute`.
struct Product {
  std::string name;
  int m = 1, k = 64, n = 48, bits = 4, block = 32;
  bool transposed = true; ///< of N x K, as exporters write it; else of K x N
  std::string type = "ui8", zero = "8", zeros = {};
  std::string element = "f32", scaleElement = {}; ///< "": the same
  std::string scaleDims = {};                     ///< of one scale for all of a row or a column
  int groups = 0;                                 ///< of rows, each with a right operand; 0: a plain product
  bool rounds = false;                            ///< its rows to integers in blocks of as many
};

std::string dims(std::initializer_list<int> sizes) {
  std::string text;
  for (int size : sizes)
    text += std::to_string(size) + "x";
  return text;
}

std::string shapeOf(const Product &p, int k, int n) { return p.transposed ? dims({n, k}) : dims({k, n}); }

/// The interpreter rounds weights to half floats, which the kernel does not.
std::string tolerance(const Product &p) {
  if (p.element != "f32")
    return p.element == "bf16" ? "1.0" : "1.0e-1";
  return p.bits == 8 ? "2.0e-1" : "2.0e-2";
}

std::string textOf(const Product &p) {
  int blocks = (p.k + p.block - 1) / p.block;
  const std::string groups = p.groups ? dims({p.groups}) : "";
  auto bytes = [&](int elements) { return (elements * p.bits + 7) / 8; };
  std::string scale = groups + (p.scaleDims.empty() ? shapeOf(p, blocks, p.n) : p.scaleDims);
  std::string packedZeros = groups + (p.transposed ? dims({p.n, bytes(blocks)}) : dims({blocks, bytes(p.n)}));
  std::string scaleType = p.scaleElement.empty() ? p.element : p.scaleElement;
  std::string zeros = p.zeros == "float" ? scale + scaleType : packedZeros + p.type;
  bool has = !p.zeros.empty();
  const std::string rows = p.groups ? "0, 2, 1" : "1, 0";
  const std::string left =
      p.rounds ? "%l = dmir.round_blocks %a {block = $BLOCK : i64} : (tensor<$Mx$Kx$T>) -> tensor<$Mx$Kx$T>"
               : "%l = dmir.reshape %a : (tensor<$Mx$Kx$T>) -> tensor<$Mx$Kx$T>";
  const std::string multiply =
      p.groups ? "%r = dmir.grouped_matmul %l, %w, %e : (tensor<$Mx$Kx$T>, tensor<$G$Kx$Nx$T>, tensor<$Gi64>)"
               : "%r = dmir.matmul %l, %w : (tensor<$Mx$Kx$T>, tensor<$Kx$Nx$T>)";
  return substitute(
      R"(
func.func @$NAME(%a: tensor<$Mx$Kx$T>, %x: tensor<$XxB> {test.packed}, %s: tensor<$S> {test.packed}$ZARG$ZEND) -> tensor<$Mx$Nx$T> attributes {ulp = 8.0, abs = $ABS} {
  %q = dmir.dequantize %x, %s$ZUSE {bits = $BITS : i64, axis = $AXIS : i64, block = $BLOCK : i64, zero = $ZERO : i64} : (tensor<$XxB>, tensor<$S>$ZTYPE) -> tensor<$Wx$T>
  $ZTURN
  $ZLEFT
  $ZMULTIPLY -> tensor<$Mx$Nx$T>
  return %r : tensor<$Mx$Nx$T>
}
)",
      {{"ZEND", p.groups ? ", %e: tensor<$Gi64> {test.lo = 0, test.hi = " + std::to_string(p.m) + "}" : ""},
       {"ZMULTIPLY", multiply},
       {"ZLEFT", left},
       {"ZARG", has ? ", %z: tensor<" + zeros + "> {test.packed}" : ""},
       {"ZUSE", has ? ", %z" : ""},
       {"ZTYPE", has ? ", tensor<" + zeros + ">" : ""},
       {"ZTURN", p.transposed ? "%w = dmir.transpose %q {permutation = array<i64: " + rows +
                                    ">} : (tensor<$Wx$T>) -> tensor<$G$Kx$Nx$T>"
                              : "%w = dmir.reshape %q : (tensor<$Wx$T>) -> tensor<$G$Kx$Nx$T>"},
       {"NAME", p.name},
       {"XxB", groups + (p.transposed ? dims({p.n, bytes(p.k)}) : dims({p.k, bytes(p.n)})) + p.type},
       {"S", scale + scaleType},
       {"Wx", groups + shapeOf(p, p.k, p.n)},
       {"G", groups},
       {"Mx", dims({p.m})},
       {"Kx", dims({p.k})},
       {"Nx", dims({p.n})},
       {"BITS", std::to_string(p.bits)},
       {"AXIS", std::to_string((p.transposed ? 1 : 0) + (p.groups ? 1 : 0))},
       {"BLOCK", std::to_string(p.block)},
       {"ZERO", p.zero},
       {"ABS", tolerance(p)},
       {"T", p.element}});
}

} // namespace

TEST(BlockProductRegion, EveryFormat) {
  std::string text;
  for (auto [bits, middle] : {std::pair(2, "2"), {4, "8"}, {8, "128"}})
    for (const char *type : {"i8", "ui8"})
      for (const char *zeros : {"", "packed", "float"})
        for (int m : {1, 3, 20}) {
          Product p{.m = m, .k = 96, .n = 40, .bits = bits, .block = 32, .type = type, .zeros = zeros};
          p.zero = std::string(type) == "ui8" ? middle : "0";
          p.name = "b" + std::to_string(bits) + "_" + type + "_z" + zeros + "_m" + std::to_string(m);
          text += textOf(p);
        }
  expectAgree(text, 2, 3);
}

/// Depths that end within a block and within a word, columns that end within a vector, weights in either order.
TEST(BlockProductRegion, OddSizes) {
  std::string text;
  int number = 0;
  for (int m : {1, 2, 4, 5, 33})
    for (auto [k, n, block] : {std::array{36, 16, 16}, {70, 17, 32}, {7, 5, 16}, {130, 33, 128}, {520, 66, 64}})
      for (bool transposed : {true, false}) {
        Product p{.m = m, .k = k, .n = n, .block = block, .transposed = transposed};
        p.name = "odd_" + std::to_string(number++);
        text += textOf(p);
        p.zeros = "packed";
        p.name += "_zeros";
        text += textOf(p);
      }
  expectAgree(text, 2, 3);
}

TEST(BlockProductRegion, HalfFloats) {
  std::string text;
  for (const char *element : {"f16", "bf16"})
    for (int m : {1, 9})
      for (const char *scale : {element, "f32"})
        text += textOf({.name = std::string(element) + "_" + scale + "_" + std::to_string(m),
                        .m = m,
                        .element = element,
                        .scaleElement = scale});
  for (int m : {1, 9})
    text += textOf({.name = "small_scales" + std::to_string(m), .m = m, .zeros = "float", .scaleElement = "f16"});
  expectAgree(text);
}

/// One scale a column (a block of all of k), one for each depth, and one for all.
TEST(BlockProductRegion, SharedScales) {
  std::string text;
  for (int m : {1, 20})
    for (const char *scale : {"48x1x", "1x2x", "1x1x"}) {
      Product p{.m = m, .scaleDims = scale};
      p.name = std::string("shared_") + scale + std::to_string(m);
      text += textOf(p);
    }
  text += textOf({.name = "column", .m = 2, .k = 100, .block = 100});
  text += textOf({.name = "columns", .m = 20, .k = 100, .block = 128});
  expectAgree(text);
}

/// Groups of rows: some of none, of few rows, of more than a block of them.
TEST(BlockProductRegion, Groups) {
  std::string text;
  for (int m : {1, 6, 300})
    for (int groups : {1, 5})
      for (bool transposed : {true, false})
        for (const char *zeros : {"", "packed", "float"}) {
          Product p{.m = m, .k = 70, .n = 34, .block = 32, .transposed = transposed, .zeros = zeros, .groups = groups};
          p.name = "groups_" + std::to_string(m) + "_" + std::to_string(groups) + (transposed ? "_t_" : "_") + zeros;
          text += textOf(p);
        }
  for (int bits : {2, 8})
    text += textOf({.name = "of" + std::to_string(bits), .m = 9, .bits = bits, .groups = 3});
  expectAgree(text, 2, 3);
}

Product ofBytes(int m, int k, int n, int block, bool transposed) {
  return {.m = m,
          .k = k,
          .n = n,
          .bits = 8,
          .block = block,
          .transposed = transposed,
          .type = "i8",
          .zero = "0",
          .scaleElement = "f16",
          .rounds = true};
}

/// Rows and weights both integers: depths that end within a block, a vector and a word, every length of a block.
TEST(BlockProductRegion, RowsOfBytes) {
  std::string text;
  int number = 0;
  for (int m : {1, 2, 3, 4, 5, 7, 33})
    for (auto [k, n, block] :
         {std::array{32, 16, 16}, {70, 17, 32}, {7, 5, 16}, {130, 33, 128}, {520, 66, 64}, {300, 130, 256}})
      for (bool transposed : {true, false}) {
        Product p = ofBytes(m, k, n, block, transposed);
        p.name = "bytes_" + std::to_string(number++);
        text += textOf(p);
      }
  expectAgree(text, 2, 10);
}

TEST(BlockProductRegion, RandomRowsOfBytes) {
  std::string text;
  std::mt19937 random(77);
  auto below = [&](int least, int beyond) { return least + static_cast<int>(random() % (beyond - least)); };
  for (int i = 0; i < 500; ++i) {
    Product p = ofBytes(below(1, 3) == 1 ? below(1, 7) : below(7, 70), below(1, 400), below(1, 120), 16 << below(0, 5),
                        random() % 2 == 0);
    p.name = "random_" + std::to_string(i);
    text += textOf(p);
  }
  expectAgree(text, 1, 16);
}

/// Rounded rows that no product takes have the interpreter's bits.
TEST(BlockProductRegion, RoundedBlocks) {
  std::string text;
  int number = 0;
  for (auto [shape, block] : {std::pair("3x70", 32),
                              {"2x5x16", 16},
                              {"1x256", 256},
                              {"7x3", 4},
                              {"40", 7},
                              {"2x1x1", 32},
                              {"3x0", 8},
                              {"2x5", 1 << 30}})
    for (const char *specials : {"", ", specials"})
      text += substitute(
          R"(
func.func @rounded_$I(%x: tensor<$Sxf32>) -> tensor<$Sxf32> attributes {ulp = 0.0$SPECIALS} {
  %r = dmir.round_blocks %x {block = $BLOCK : i64} : (tensor<$Sxf32>) -> tensor<$Sxf32>
  return %r : tensor<$Sxf32>
}
)",
          {{"I", std::to_string(number++)}, {"SPECIALS", specials}, {"BLOCK", std::to_string(block)}, {"S", shape}});
  expectAgree(text, 2);
}

/// The kernel takes the bits where blocks are whole words of them, else what dequantize gives is computed in its place.
TEST(BlockProductRegion, Strategies) {
  Product other = ofBytes(9, 64, 48, 32, true);
  other.zeros = "packed";
  auto named = [](const char *name, Product p) {
    p.name = name;
    return p;
  };
  RegionModule module(textOf({.name = "packed"}) + textOf({.name = "two", .bits = 2, .block = 16, .zero = "2"}) +
                      textOf({.name = "narrow", .block = 4}) + textOf({.name = "groups", .m = 9, .groups = 3}) +
                      textOf(named("bytes", ofBytes(9, 64, 48, 32, true))) + textOf(named("other_blocks", other)) +
                      textOf({.name = "narrow_groups", .m = 9, .block = 4, .groups = 3}));
  ASSERT_EQ(module.error, "");
  EXPECT_NE(module.strategy("packed").find("matmul-blocks4"), std::string::npos) << module.strategy("packed");
  EXPECT_NE(module.strategy("packed").find("blocks16"), std::string::npos) << module.strategy("packed");
  EXPECT_NE(module.strategy("two").find("matmul-blocks2"), std::string::npos) << module.strategy("two");
  EXPECT_NE(module.strategy("groups").find("grouped-matmul-blocks4"), std::string::npos) << module.strategy("groups");
  EXPECT_NE(module.strategy("narrow_groups").find("grouped-matmul-generic"), std::string::npos)
      << module.strategy("narrow_groups");
  EXPECT_NE(module.strategy("bytes").find("matmul-blocks8-quads"), std::string::npos) << module.strategy("bytes");
  EXPECT_NE(module.strategy("bytes").find("byte_dots"), std::string::npos) << module.strategy("bytes");
  EXPECT_NE(module.strategy("other_blocks").find("matmul-generic"), std::string::npos)
      << module.strategy("other_blocks");
  EXPECT_NE(module.strategy("narrow").find("matmul-generic"), std::string::npos) << module.strategy("narrow");
}
