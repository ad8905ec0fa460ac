//===- BlockProductRegionTest.cpp - products with right operands of few bits ----===//

#include "tests/unit/TargetsCommon/RegionHarness.h"

#include <gtest/gtest.h>

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
  const std::string multiply =
      p.groups ? "%r = dmir.grouped_matmul %a, %w, %e : (tensor<$Mx$Kx$T>, tensor<$G$Kx$Nx$T>, tensor<$Gi64>)"
               : "%r = dmir.matmul %a, %w : (tensor<$Mx$Kx$T>, tensor<$Kx$Nx$T>)";
  return substitute(
      R"(
func.func @$NAME(%a: tensor<$Mx$Kx$T>, %x: tensor<$XxB> {test.packed}, %s: tensor<$S> {test.packed}$ZARG$ZEND) -> tensor<$Mx$Nx$T> attributes {ulp = 8.0, abs = $ABS} {
  %q = dmir.dequantize %x, %s$ZUSE {bits = $BITS : i64, axis = $AXIS : i64, block = $BLOCK : i64, zero = $ZERO : i64} : (tensor<$XxB>, tensor<$S>$ZTYPE) -> tensor<$Wx$T>
  $ZTURN
  $ZMULTIPLY -> tensor<$Mx$Nx$T>
  return %r : tensor<$Mx$Nx$T>
}
)",
      {{"ZEND", p.groups ? ", %e: tensor<$Gi64> {test.lo = 0, test.hi = " + std::to_string(p.m) + "}" : ""},
       {"ZMULTIPLY", multiply},
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

/// The kernel takes the bits where blocks are whole words of them, else what dequantize gives is computed in its place.
TEST(BlockProductRegion, Strategies) {
  RegionModule module(textOf({.name = "packed"}) + textOf({.name = "two", .bits = 2, .block = 16, .zero = "2"}) +
                      textOf({.name = "narrow", .block = 4}) + textOf({.name = "groups", .m = 9, .groups = 3}) +
                      textOf({.name = "narrow_groups", .m = 9, .block = 4, .groups = 3}));
  ASSERT_EQ(module.error, "");
  EXPECT_NE(module.strategy("packed").find("matmul-blocks4"), std::string::npos) << module.strategy("packed");
  EXPECT_NE(module.strategy("packed").find("blocks16"), std::string::npos) << module.strategy("packed");
  EXPECT_NE(module.strategy("two").find("matmul-blocks2"), std::string::npos) << module.strategy("two");
  EXPECT_NE(module.strategy("groups").find("grouped-matmul-blocks4"), std::string::npos) << module.strategy("groups");
  EXPECT_NE(module.strategy("narrow_groups").find("grouped-matmul-generic"), std::string::npos)
      << module.strategy("narrow_groups");
  EXPECT_NE(module.strategy("narrow").find("matmul-generic"), std::string::npos) << module.strategy("narrow");
}
