//===- ByteRegionTest.cpp - products of bytes, scaled convolutions --------------===//
//
// What this target has besides the products and convolutions that all have (tests/unit/TargetsCommon).
//
//===----------------------------------------------------------------------===//

#include "tests/unit/TargetsCommon/RegionHarness.h"

#include <gtest/gtest.h>

using namespace dmxc::kernels::test;

namespace {

/// Bytes whose sum is i32, with the epilogue of a quantised layer.
TEST(ProductRegion, MatmulOfBytes) {
  std::string text;
  for (auto [a, b] : {std::pair("ui8", "i8"), std::pair("i8", "i8"), std::pair("i8", "ui8"), std::pair("ui8", "ui8")})
    text += substitute(R"(
func.func @packed_$A_$B(%a: tensor<2x13x70x$A>, %b: tensor<70x37x$B> {test.packed}) -> tensor<2x13x37xi32> {
  %r = dmir.matmul %a, %b : (tensor<2x13x70x$A>, tensor<70x37x$B>) -> tensor<2x13x37xi32>
  return %r : tensor<2x13x37xi32>
}
func.func @transposed_$A_$B(%a: tensor<9x64x$A>, %b: tensor<300x64x$B> {test.packed}, %z: tensor<300xi32>, %s: tensor<300xf32>, %t: tensor<f32>) -> tensor<9x300xui8> {
  %w = dmir.transpose %b {permutation = array<i64: 1, 0>} : (tensor<300x64x$B>) -> tensor<64x300x$B>
  %m = dmir.matmul %a, %w : (tensor<9x64x$A>, tensor<64x300x$B>) -> tensor<9x300xi32>
  %d = dmir.sub %m, %z : (tensor<9x300xi32>, tensor<300xi32>) -> tensor<9x300xi32>
  %f = dmir.cast %d : (tensor<9x300xi32>) -> tensor<9x300xf32>
  %g = dmir.mul %f, %s : (tensor<9x300xf32>, tensor<300xf32>) -> tensor<9x300xf32>
  %h = dmir.mul %g, %t : (tensor<9x300xf32>, tensor<f32>) -> tensor<9x300xf32>
  %r = dmir.round %h : (tensor<9x300xf32>) -> tensor<9x300xf32>
  %c = dmir.cast %r : (tensor<9x300xf32>) -> tensor<9x300xui8>
  return %c : tensor<9x300xui8>
}
func.func @columns_$A_$B(%a: tensor<30x9x$A>, %b: tensor<30x40x$B> {test.packed}) -> tensor<9x40xi32> {
  %t = dmir.transpose %a {permutation = array<i64: 1, 0>} : (tensor<30x9x$A>) -> tensor<9x30x$A>
  %r = dmir.matmul %t, %b : (tensor<9x30x$A>, tensor<30x40x$B>) -> tensor<9x40xi32>
  return %r : tensor<9x40xi32>
}
func.func @run_time_$A_$B(%a: tensor<3x9x21x$A>, %b: tensor<3x21x40x$B>) -> tensor<3x9x40xi32> {
  %r = dmir.matmul %a, %b : (tensor<3x9x21x$A>, tensor<3x21x40x$B>) -> tensor<3x9x40xi32>
  return %r : tensor<3x9x40xi32>
}
)",
                       {{"A", a}, {"B", b}});
  expectAgree(text);
  RegionModule module(text);
  EXPECT_NE(module.strategy("packed_ui8_i8").find("matmul-quads"), std::string::npos);
  EXPECT_EQ(module.strategy("columns_ui8_i8").find("matmul-quads"), std::string::npos);
  EXPECT_EQ(module.strategy("packed_i8_i8").find("matmul-quads"), std::string::npos);
}

/// Factors of the input's channels: multiplied with the weights where those are 1x1, the convolution is not grouped and
/// there is one image.
TEST(ProductRegion, ScaledConv) {
  auto scaled = [](const std::string &name, const std::string &in, const std::string &factors,
                   const std::string &weights, const std::string &out, const std::string &stride,
                   const std::string &groups = "1") {
    return substitute(R"(
func.func @$NAME(%x: tensor<$INxf32, #dmir.blocked<1, 16>>, %s: tensor<$FACTORS>, %w: tensor<$WEIGHTSxf32> {test.packed}, %b: tensor<$OUTxf32, #dmir.blocked<1, 16>>)
    -> tensor<$OUTxf32, #dmir.blocked<1, 16>> attributes {ulp = 16.0, abs = 5.0e-5} {
  %y = dmir.mul %s, %x : (tensor<$FACTORS>, tensor<$INxf32, #dmir.blocked<1, 16>>) -> tensor<$INxf32, #dmir.blocked<1, 16>>
  %c = dmir.conv %y, %w {groups = $GROUPS : i64, strides = array<i64: $STRIDE, $STRIDE>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>} : (tensor<$INxf32, #dmir.blocked<1, 16>>, tensor<$WEIGHTSxf32>) -> tensor<$OUTxf32, #dmir.blocked<1, 16>>
  %r = dmir.add %c, %b : (tensor<$OUTxf32, #dmir.blocked<1, 16>>, tensor<$OUTxf32, #dmir.blocked<1, 16>>) -> tensor<$OUTxf32, #dmir.blocked<1, 16>>
  return %r : tensor<$OUTxf32, #dmir.blocked<1, 16>>
}
)",
                      {{"NAME", name},
                       {"IN", in},
                       {"FACTORS", factors},
                       {"WEIGHTS", weights},
                       {"OUT", out},
                       {"STRIDE", stride},
                       {"GROUPS", groups}});
  };
  std::string direct =
      scaled("whole_blocks", "1x32x20x20", "1x32x1x1xf32", "48x32x1x1", "1x48x20x20", "1") +
      scaled("tails", "1x20x31x9", "1x20x1x1xf32", "40x20x1x1", "1x40x31x9", "1") +
      scaled("blocked_factors", "1x40x9x9", "1x40x1x1xf32, #dmir.blocked<1, 16>", "7x40x1x1", "1x7x9x9", "1") +
      scaled("strided", "1x16x15x15", "1x16x1x1xf32", "24x16x1x1", "1x24x8x8", "2");
  std::string other = scaled("images", "2x32x6x6", "1x32x1x1xf32", "16x32x1x1", "2x16x6x6", "1") +
                      scaled("taps", "1x16x6x6", "1x16x1x1xf32", "16x16x3x3", "1x16x4x4", "1") +
                      scaled("grouped", "1x32x6x6", "1x32x1x1xf32", "32x16x1x1", "1x32x6x6", "1", "2");
  expectAgree(direct + other);
  RegionModule module(direct);
  for (const std::string &name : module.names())
    EXPECT_NE(module.strategy(name).find("algorithm = \"conv-direct\""), std::string::npos) << module.strategy(name);
}

TEST(ProductRegion, ConvOfBytes) {
  std::string text;
  for (auto [channels, groups, layout] : {std::tuple("19", "1", ", #dmir.blocked<1, 16>"),
                                          {"64", "2", ", #dmir.blocked<1, 16>"},
                                          {"19", "1", ""},
                                          {"40", "40", ", #dmir.blocked<1, 16>"}})
    for (auto [a, b] : {std::pair("ui8", "i8"), std::pair("i8", "ui8")}) {
      std::string each = std::to_string(atoi(channels) / atoi(groups)),
                  outputs = groups == std::string("40") ? "40" : "32";
      text += substitute(R"(
func.func @conv_$A_$C_$G_$N(%a: tensor<2x$Cx9x8x$A$L>, %w: tensor<$Ox$Ex3x3x$B> {test.packed}, %z: tensor<$Ox1x1xi32>) -> tensor<2x$Ox5x4xf32$L> {
  %c = dmir.conv %a, %w {groups = $G : i64, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 1, 1>} : (tensor<2x$Cx9x8x$A$L>, tensor<$Ox$Ex3x3x$B>) -> tensor<2x$Ox5x4xi32$L>
  %s = dmir.sub %c, %z : (tensor<2x$Ox5x4xi32$L>, tensor<$Ox1x1xi32>) -> tensor<2x$Ox5x4xi32$L>
  %f = dmir.cast %s : (tensor<2x$Ox5x4xi32$L>) -> tensor<2x$Ox5x4xf32$L>
  return %f : tensor<2x$Ox5x4xf32$L>
}
)",
                         {{"N", *layout ? "blocked" : "plain"},
                          {"A", a},
                          {"B", b},
                          {"C", channels},
                          {"G", groups},
                          {"E", each},
                          {"O", outputs},
                          {"L", layout}});
    }
  expectAgree(text);
  RegionModule module(text);
  EXPECT_NE(module.strategy("conv_ui8_19_1_blocked").find("conv-quads"), std::string::npos);
  EXPECT_NE(module.strategy("conv_ui8_64_2_blocked").find("conv-quads"), std::string::npos);
  EXPECT_EQ(module.strategy("conv_ui8_19_1_plain").find("conv-quads"), std::string::npos);
}

/// Taps of a row are multiplied two at a time: odd and even numbers of them, apart, beyond both edges, of all signs.
TEST(ProductRegion, DepthwiseConvOfBytes) {
  std::string text;
  for (auto [a, w, taps, out, stride, apart] : {std::tuple("ui8", "i8", "3", "13", "1", "1"),
                                                {"ui8", "i8", "3", "7", "2", "1"},
                                                {"i8", "i8", "2", "14", "1", "1"},
                                                {"i8", "ui8", "5", "11", "1", "1"},
                                                {"ui8", "ui8", "3", "11", "1", "2"},
                                                {"i8", "i8", "4", "3", "2", "3"}})
    text += substitute(R"(
func.func @taps_$A_$W_$K_$S_$D(%a: tensor<2x37x5x13x$A, #dmir.blocked<1, 16>>, %w: tensor<37x1x2x$Kx$W> {test.packed}) -> tensor<2x37x4x$Oxi32, #dmir.blocked<1, 16>> {
  %c = dmir.conv %a, %w {groups = 37 : i64, strides = array<i64: 1, $S>, dilations = array<i64: 1, $D>, low = array<i64: 0, 1>, high = array<i64: 0, 1>} : (tensor<2x37x5x13x$A, #dmir.blocked<1, 16>>, tensor<37x1x2x$Kx$W>) -> tensor<2x37x4x$Oxi32, #dmir.blocked<1, 16>>
  return %c : tensor<2x37x4x$Oxi32, #dmir.blocked<1, 16>>
}
)",
                       {{"A", a}, {"W", w}, {"K", taps}, {"O", out}, {"S", stride}, {"D", apart}});
  expectAgree(text);
  RegionModule module(text);
  for (const std::string &name : module.names())
    EXPECT_NE(module.strategy(name).find("conv-depthwise"), std::string::npos) << name;
}

} // namespace
