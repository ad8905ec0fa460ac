//===- ProductRegionTest.cpp - matrix products and convolutions -----------------===//

#include "RegionHarness.h"

#include <gtest/gtest.h>

using namespace dmxc::kernels::test;

namespace {

std::string tolerance(const std::string &type) {
  return type[0] == 'f' || type[0] == 'b' ? "ulp = 4.0, abs = 2.0e-4" : "test.exact";
}

std::string forTypes(const std::string &text, std::vector<std::string> types) {
  std::string all;
  for (const std::string &type : types)
    all += substitute(text, {{"TOL", tolerance(type)}, {"T", type}});
  return all;
}

TEST(ProductRegion, Matmul) {
  expectAgree(forTypes(R"(
func.func @packed_$T(%a: tensor<13x70x$T>, %b: tensor<70x37x$T> {test.packed}) -> tensor<13x37x$T> attributes {$TOL} {
  %r = dmir.matmul %a, %b : (tensor<13x70x$T>, tensor<70x37x$T>) -> tensor<13x37x$T>
  return %r : tensor<13x37x$T>
}
func.func @packed_transposed_$T(%a: tensor<2x9x70x$T>, %b: tensor<37x70x$T> {test.packed}) -> tensor<2x9x37x$T> attributes {$TOL} {
  %t = dmir.transpose %b {permutation = array<i64: 1, 0>} : (tensor<37x70x$T>) -> tensor<70x37x$T>
  %r = dmir.matmul %a, %t : (tensor<2x9x70x$T>, tensor<70x37x$T>) -> tensor<2x9x37x$T>
  return %r : tensor<2x9x37x$T>
}
func.func @dynamic_$T(%a: tensor<3x1x9x20x$T>, %b: tensor<2x20x17x$T>) -> tensor<3x2x9x17x$T> attributes {$TOL} {
  %r = dmir.matmul %a, %b : (tensor<3x1x9x20x$T>, tensor<2x20x17x$T>) -> tensor<3x2x9x17x$T>
  return %r : tensor<3x2x9x17x$T>
}
func.func @attention_$T(%q: tensor<1x7x4x16x$T>, %k: tensor<1x9x4x16x$T>) -> tensor<1x4x7x9x$T> attributes {$TOL} {
  %x = dmir.transpose %q {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x7x4x16x$T>) -> tensor<1x4x7x16x$T>
  %y = dmir.transpose %k {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x9x4x16x$T>) -> tensor<1x4x16x9x$T>
  %r = dmir.matmul %x, %y : (tensor<1x4x7x16x$T>, tensor<1x4x16x9x$T>) -> tensor<1x4x7x9x$T>
  return %r : tensor<1x4x7x9x$T>
}
func.func @vector_$T(%a: tensor<1x100x$T>, %b: tensor<100x50x$T> {test.packed}) -> tensor<1x50x$T> attributes {$TOL} {
  %r = dmir.matmul %a, %b : (tensor<1x100x$T>, tensor<100x50x$T>) -> tensor<1x50x$T>
  return %r : tensor<1x50x$T>
}
func.func @empty_$T(%a: tensor<4x0x$T>, %b: tensor<0x5x$T>) -> tensor<4x5x$T> {
  %r = dmir.matmul %a, %b : (tensor<4x0x$T>, tensor<0x5x$T>) -> tensor<4x5x$T>
  return %r : tensor<4x5x$T>
}
func.func @sliced_$T(%a: tensor<9x40x$T>, %b: tensor<30x20x$T>) -> tensor<4x10x$T> attributes {$TOL} {
  %x = dmir.slice %a {starts = array<i64: 8, 3>, sizes = array<i64: 4, 30>, steps = array<i64: -2, 1>} : (tensor<9x40x$T>) -> tensor<4x30x$T>
  %y = dmir.slice %b {starts = array<i64: 0, 1>, sizes = array<i64: 30, 10>, steps = array<i64: 1, 2>} : (tensor<30x20x$T>) -> tensor<30x10x$T>
  %r = dmir.matmul %x, %y : (tensor<4x30x$T>, tensor<30x10x$T>) -> tensor<4x10x$T>
  return %r : tensor<4x10x$T>
}
)",
                       {"f32", "f64", "f16", "bf16", "i32", "i64", "i8", "ui8"}));
}

/// Rows of groups: ends that rise, that fall, that lie outside; matrices that are packed or not, or are views.
TEST(ProductRegion, GroupedMatmul) {
  expectAgree(forTypes(R"(
func.func @grouped_packed_$T(%a: tensor<29x70x$T>, %b: tensor<5x70x37x$T> {test.packed}, %e: tensor<5xi64> {test.lo = -3, test.hi = 33}) -> tensor<29x37x$T> attributes {$TOL} {
  %r = dmir.grouped_matmul %a, %b, %e : (tensor<29x70x$T>, tensor<5x70x37x$T>, tensor<5xi64>) -> tensor<29x37x$T>
  return %r : tensor<29x37x$T>
}
func.func @grouped_transposed_$T(%a: tensor<200x24x$T>, %b: tensor<2x50x24x$T> {test.packed}, %e: tensor<2xi64> {test.lo = 90, test.hi = 200}, %bias: tensor<50x$T>) -> tensor<200x50x$T> attributes {$TOL} {
  %t = dmir.transpose %b {permutation = array<i64: 0, 2, 1>} : (tensor<2x50x24x$T>) -> tensor<2x24x50x$T>
  %r = dmir.grouped_matmul %a, %t, %e : (tensor<200x24x$T>, tensor<2x24x50x$T>, tensor<2xi64>) -> tensor<200x50x$T>
  %s = dmir.add %r, %bias : (tensor<200x50x$T>, tensor<50x$T>) -> tensor<200x50x$T>
  %g = dmir.erf %s : (tensor<200x50x$T>) -> tensor<200x50x$T>
  return %g : tensor<200x50x$T>
}
func.func @grouped_$T(%a: tensor<9x40x$T>, %b: tensor<7x40x20x$T>, %e: tensor<7xi64> {test.lo = 0, test.hi = 9}) -> tensor<9x10x$T> attributes {$TOL} {
  %x = dmir.slice %a {starts = array<i64: 8, 3>, sizes = array<i64: 9, 30>, steps = array<i64: -1, 1>} : (tensor<9x40x$T>) -> tensor<9x30x$T>
  %y = dmir.slice %b {starts = array<i64: 0, 4, 1>, sizes = array<i64: 7, 30, 10>, steps = array<i64: 1, 1, 2>} : (tensor<7x40x20x$T>) -> tensor<7x30x10x$T>
  %r = dmir.grouped_matmul %x, %y, %e : (tensor<9x30x$T>, tensor<7x30x10x$T>, tensor<7xi64>) -> tensor<9x10x$T>
  return %r : tensor<9x10x$T>
}
func.func @grouped_deep_$T(%a: tensor<33x3000x$T>, %b: tensor<2x3000x18x$T>, %e: tensor<2xi64> {test.lo = 10, test.hi = 33}) -> tensor<33x18x$T> attributes {$TOL} {
  %r = dmir.grouped_matmul %a, %b, %e : (tensor<33x3000x$T>, tensor<2x3000x18x$T>, tensor<2xi64>) -> tensor<33x18x$T>
  return %r : tensor<33x18x$T>
}
func.func @grouped_nothing_$T(%a: tensor<3x0x$T>, %b: tensor<2x0x5x$T>, %e: tensor<2xi64> {test.lo = 0, test.hi = 3}) -> tensor<3x5x$T> {
  %r = dmir.grouped_matmul %a, %b, %e : (tensor<3x0x$T>, tensor<2x0x5x$T>, tensor<2xi64>) -> tensor<3x5x$T>
  return %r : tensor<3x5x$T>
}
func.func @grouped_no_rows_$T(%a: tensor<0x4x$T>, %b: tensor<2x4x5x$T>, %e: tensor<2xi64>) -> tensor<0x5x$T> {
  %r = dmir.grouped_matmul %a, %b, %e : (tensor<0x4x$T>, tensor<2x4x5x$T>, tensor<2xi64>) -> tensor<0x5x$T>
  return %r : tensor<0x5x$T>
}
)",
                       {"f32", "f64", "f16", "bf16"}) +
              R"(
func.func @grouped_f8(%a: tensor<6x9xf8E4M3FN>, %b: tensor<3x9x5xf8E4M3FN>, %e: tensor<3xi64> {test.lo = 0, test.hi = 6}) -> tensor<6x5xf8E4M3FN> {
  %r = dmir.grouped_matmul %a, %b, %e : (tensor<6x9xf8E4M3FN>, tensor<3x9x5xf8E4M3FN>, tensor<3xi64>) -> tensor<6x5xf8E4M3FN>
  return %r : tensor<6x5xf8E4M3FN>
}
)");
}

/// Extents of a product at 0: of nothing no element is touched, and a sum of nothing is 0.
TEST(ProductRegion, MatmulOfNothing) {
  std::string text;
  for (const char *type : {"f32", "i8"})
    for (const char *batch : {"", "0x", "0x2x"})
      for (const char *m : {"0", "5"})
        for (const char *n : {"0", "20"})
          for (const char *k : {"0", "7"}) {
            std::string name = substitute("$T_$B_$M_$N_$K", {{"T", type}, {"B", batch}, {"M", m}, {"N", n}, {"K", k}});
            for (const char *shared : {"0", "1"})
              text += substitute(R"(
func.func @of_$NAME_$S(%a: tensor<$B$Mx$Kx$T>, %b: tensor<$C$Kx$Nx$T>) -> tensor<$B$Mx$Nx$T> attributes {abs = 1.0e-3} {
  %r = dmir.matmul %a, %b : (tensor<$B$Mx$Kx$T>, tensor<$C$Kx$Nx$T>) -> tensor<$B$Mx$Nx$T>
  return %r : tensor<$B$Mx$Nx$T>
}
)",
                                 {{"NAME", name},
                                  {"S", shared},
                                  {"T", type},
                                  {"B", batch},
                                  {"C", *shared == '1' ? "" : batch},
                                  {"M", m},
                                  {"N", n},
                                  {"K", k}});
          }
  expectAgree(text, 1);
}

TEST(ProductRegion, MatmulOfConstantScalarAndTinyFloats) {
  expectAgree(R"(
func.func @constant(%a: tensor<5x1xf32>) -> tensor<5x1xf32> {
  %c = dmir.constant dense<3.0> : tensor<1x1xf32>
  %r = dmir.matmul %a, %c : (tensor<5x1xf32>, tensor<1x1xf32>) -> tensor<5x1xf32>
  return %r : tensor<5x1xf32>
}
func.func @tiny(%a: tensor<5x9xf8E4M3FN>, %b: tensor<9x20xf8E4M3FN>) -> tensor<5x20xf8E4M3FN> {
  %r = dmir.matmul %a, %b : (tensor<5x9xf8E4M3FN>, tensor<9x20xf8E4M3FN>) -> tensor<5x20xf8E4M3FN>
  return %r : tensor<5x20xf8E4M3FN>
}
)");
}

TEST(ProductRegion, MatmulEpilogues) {
  expectAgree(R"(
func.func @bias_relu(%a: tensor<2x31x64xf32>, %w: tensor<64x50xf32> {test.packed}, %b: tensor<50xf32>) -> tensor<2x31x50xf32> attributes {ulp = 4.0, abs = 1.0e-4} {
  %m = dmir.matmul %a, %w : (tensor<2x31x64xf32>, tensor<64x50xf32>) -> tensor<2x31x50xf32>
  %s = dmir.add %m, %b : (tensor<2x31x50xf32>, tensor<50xf32>) -> tensor<2x31x50xf32>
  %r = dmir.relu %s : (tensor<2x31x50xf32>) -> tensor<2x31x50xf32>
  return %r : tensor<2x31x50xf32>
}
func.func @residual_gelu(%a: tensor<2x31x64xf32>, %w: tensor<64x48xf32> {test.packed}, %x: tensor<2x31x48xf32>) -> tensor<2x31x48xf32> attributes {ulp = 4.0, abs = 1.0e-4} {
  %half = dmir.constant dense<0.5> : tensor<f32>
  %one = dmir.constant dense<1.0> : tensor<f32>
  %scale = dmir.constant dense<0.70710678> : tensor<f32>
  %m = dmir.matmul %a, %w : (tensor<2x31x64xf32>, tensor<64x48xf32>) -> tensor<2x31x48xf32>
  %s = dmir.mul %m, %scale : (tensor<2x31x48xf32>, tensor<f32>) -> tensor<2x31x48xf32>
  %e = dmir.erf %s : (tensor<2x31x48xf32>) -> tensor<2x31x48xf32>
  %p = dmir.add %e, %one : (tensor<2x31x48xf32>, tensor<f32>) -> tensor<2x31x48xf32>
  %h = dmir.mul %m, %half : (tensor<2x31x48xf32>, tensor<f32>) -> tensor<2x31x48xf32>
  %g = dmir.mul %h, %p : (tensor<2x31x48xf32>, tensor<2x31x48xf32>) -> tensor<2x31x48xf32>
  %r = dmir.add %g, %x : (tensor<2x31x48xf32>, tensor<2x31x48xf32>) -> tensor<2x31x48xf32>
  return %r : tensor<2x31x48xf32>
}
func.func @per_row(%a: tensor<2x5x64xf32>, %w: tensor<64x40xf32> {test.packed}, %x: tensor<2x1x1xf32>) -> tensor<2x5x40xf32> attributes {ulp = 4.0, abs = 1.0e-4} {
  %m = dmir.matmul %a, %w : (tensor<2x5x64xf32>, tensor<64x40xf32>) -> tensor<2x5x40xf32>
  %r = dmir.mul %m, %x : (tensor<2x5x40xf32>, tensor<2x1x1xf32>) -> tensor<2x5x40xf32>
  return %r : tensor<2x5x40xf32>
}
func.func @large(%a: tensor<200x300xf32>, %w: tensor<300x500xf32> {test.packed}, %b: tensor<500xf32>) -> tensor<200x500xf32> attributes {ulp = 4.0, abs = 1.0e-3} {
  %m = dmir.matmul %a, %w : (tensor<200x300xf32>, tensor<300x500xf32>) -> tensor<200x500xf32>
  %r = dmir.add %m, %b : (tensor<200x500xf32>, tensor<500xf32>) -> tensor<200x500xf32>
  return %r : tensor<200x500xf32>
}
func.func @cast(%a: tensor<7x20xf16>, %w: tensor<20x40xf16> {test.packed}) -> tensor<7x40xf32> attributes {ulp = 9000.0, abs = 1.0e-4} {
  %m = dmir.matmul %a, %w : (tensor<7x20xf16>, tensor<20x40xf16>) -> tensor<7x40xf16>
  %r = dmir.cast %m : (tensor<7x40xf16>) -> tensor<7x40xf32>
  return %r : tensor<7x40xf32>
}
)");
}

std::string conv(const std::string &name, const std::string &in, const std::string &weights, const std::string &out,
                 const std::string &attrs, const std::string &packed, const std::string &layouts) {
  std::string input = layouts[0] == 'b' ? ", #dmir.blocked<1, 16>" : "",
              output = layouts[1] == 'b' ? ", #dmir.blocked<1, 16>" : "";
  return substitute(
      "func.func @$NAME(%a: tensor<$IN$EI>, %w: tensor<$WE> $PACK) -> tensor<$OUT$EO> attributes {$TOL} {\n"
      "  %r = dmir.conv %a, %w {$ATTRS} : (tensor<$IN$EI>, tensor<$WE>) -> tensor<$OUT$EO>\n"
      "  return %r : tensor<$OUT$EO>\n}\n",
      {{"NAME", name},
       {"IN", in},
       {"EI", input},
       {"WE", weights},
       {"PACK", packed},
       {"OUT", out},
       {"EO", output},
       {"TOL", tolerance(in.substr(in.rfind('x') + 1))},
       {"ATTRS", attrs}});
}

TEST(ProductRegion, Conv) {
  std::string text;
  const std::string same =
      "strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 1, 1>";
  for (const char *packed : {"{test.packed}", ""})
    for (const char *layouts : {"pp", "pb", "bp", "bb"}) {
      std::string suffix = std::string(layouts) + (packed[0] ? "_packed" : "");
      text += conv("conv_3x3_" + suffix, "2x20x9x11xf32", "35x20x3x3xf32", "2x35x9x11xf32", same, packed, layouts);
      text += conv(
          "conv_1x1_" + suffix, "1x32x6x7xf32", "48x32x1x1xf32", "1x48x6x7xf32",
          "strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>",
          packed, layouts);
      text += conv("conv_depthwise_" + suffix, "1x32x8x9xf32", "32x1x3x3xf32", "1x32x4x5xf32",
                   "strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = "
                   "array<i64: 1, 1>, groups = 32 : i64",
                   packed, layouts);
      text += conv("conv_groups_" + suffix, "1x24x8x9xf32", "36x8x3x3xf32", "1x36x6x5xf32",
                   "strides = array<i64: 1, 1>, dilations = array<i64: 1, 2>, low = array<i64: 0, 0>, high = "
                   "array<i64: 0, 0>, groups = 3 : i64",
                   packed, layouts);
    }
  text +=
      conv("conv_first", "1x3x23x23xf32", "16x3x7x7xf32", "1x16x12x12xf32",
           "strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 3, 3>, high = array<i64: 3, 3>",
           "{test.packed}", "pb");
  text += conv("conv_1d", "2x5x40xf32", "9x5x3xf32", "2x9x38xf32",
               "strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>, high = array<i64: 0>",
               "{test.packed}", "pp");
  text += conv("conv_3d", "1x4x5x6x7xf32", "10x4x3x3x3xf32", "1x10x5x6x7xf32",
               "strides = array<i64: 1, 1, 1>, dilations = array<i64: 1, 1, 1>, low = array<i64: 1, 1, 1>, high = "
               "array<i64: 1, 1, 1>",
               "{test.packed}", "pp");
  for (const char *type : {"f64", "f16", "bf16", "i32", "i8", "ui8", "i64"})
    text += conv(std::string("conv_") + type, std::string("1x6x9x8x") + type, std::string("7x6x3x3x") + type,
                 std::string("1x7x9x8x") + type, same, "{test.packed}", "pp");
  expectAgree(text, 1, 3);
}

TEST(ProductRegion, ConvEpilogue) {
  expectAgree(R"(
func.func @bias_residual_relu(%a: tensor<1x20x9x8xf32, #dmir.blocked<1, 16>>, %w: tensor<40x20x3x3xf32> {test.packed}, %b: tensor<40x1x1xf32>, %x: tensor<1x40x9x8xf32, #dmir.blocked<1, 16>>) -> tensor<1x40x9x8xf32, #dmir.blocked<1, 16>> attributes {ulp = 4.0, abs = 1.0e-4} {
  %c = dmir.conv %a, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 1, 1>} : (tensor<1x20x9x8xf32, #dmir.blocked<1, 16>>, tensor<40x20x3x3xf32>) -> tensor<1x40x9x8xf32, #dmir.blocked<1, 16>>
  %s = dmir.add %c, %b : (tensor<1x40x9x8xf32, #dmir.blocked<1, 16>>, tensor<40x1x1xf32>) -> tensor<1x40x9x8xf32, #dmir.blocked<1, 16>>
  %t = dmir.add %s, %x : (tensor<1x40x9x8xf32, #dmir.blocked<1, 16>>, tensor<1x40x9x8xf32, #dmir.blocked<1, 16>>) -> tensor<1x40x9x8xf32, #dmir.blocked<1, 16>>
  %r = dmir.relu %t : (tensor<1x40x9x8xf32, #dmir.blocked<1, 16>>) -> tensor<1x40x9x8xf32, #dmir.blocked<1, 16>>
  return %r : tensor<1x40x9x8xf32, #dmir.blocked<1, 16>>
}
func.func @to_plain(%a: tensor<1x20x9x8xf32, #dmir.blocked<1, 16>>, %w: tensor<40x20x1x1xf32> {test.packed}, %m: tensor<1x1x9x8xf32>) -> tensor<1x40x9x8xf32> attributes {ulp = 4.0, abs = 1.0e-4} {
  %c = dmir.conv %a, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>} : (tensor<1x20x9x8xf32, #dmir.blocked<1, 16>>, tensor<40x20x1x1xf32>) -> tensor<1x40x9x8xf32>
  %r = dmir.mul %c, %m : (tensor<1x40x9x8xf32>, tensor<1x1x9x8xf32>) -> tensor<1x40x9x8xf32>
  return %r : tensor<1x40x9x8xf32>
}
func.func @constant_weights(%a: tensor<1x1x9x8xf32>) -> tensor<1x1x9x8xf32> {
  %w = dmir.constant dense<2.0> : tensor<1x1x1x1xf32>
  %c = dmir.conv %a, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>} : (tensor<1x1x9x8xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x9x8xf32>
  return %c : tensor<1x1x9x8xf32>
}
)");
}

/// Bytes that are summed in i32.
TEST(ProductRegion, Bytes) {
  std::string text;
  for (auto [a, b] : {std::pair("ui8", "i8"), std::pair("i8", "i8"), std::pair("i8", "ui8"), std::pair("ui8", "ui8")})
    text += substitute(R"(
func.func @matmul_$A_$B(%a: tensor<3x9x21x$A>, %b: tensor<3x21x40x$B>) -> tensor<3x9x40xi32> {
  %r = dmir.matmul %a, %b : (tensor<3x9x21x$A>, tensor<3x21x40x$B>) -> tensor<3x9x40xi32>
  return %r : tensor<3x9x40xi32>
}
func.func @conv_$A_$B(%a: tensor<2x6x9x8x$A>, %w: tensor<4x3x3x3x$B>, %z: tensor<4x1x1xi32>) -> tensor<2x4x5x4xf32> {
  %c = dmir.conv %a, %w {groups = 2 : i64, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 1, 1>} : (tensor<2x6x9x8x$A>, tensor<4x3x3x3x$B>) -> tensor<2x4x5x4xi32>
  %s = dmir.sub %c, %z : (tensor<2x4x5x4xi32>, tensor<4x1x1xi32>) -> tensor<2x4x5x4xi32>
  %f = dmir.cast %s : (tensor<2x4x5x4xi32>) -> tensor<2x4x5x4xf32>
  return %f : tensor<2x4x5x4xf32>
}
)",
                       {{"A", a}, {"B", b}});
  expectAgree(text);
}

const std::vector<std::string> kOpenTypes = {"f32", "f16", "bf16", "i8", "i32"};

/// Every extent of a product is open: one kernel for all sizes, 0 and 1 among them.
TEST(ProductRegion, MatmulOfOpenSizes) {
  expectAgree(forTypes(R"(
func.func @open_$T(%a: tensor<?x?x?x$T, #dmir.dims<"b", "m", "k">>, %w: tensor<?x?x?x$T, #dmir.dims<"b", "k", "n">>) -> tensor<?x?x?x$T, #dmir.dims<"b", "m", "n">>
    attributes {$TOL, sizes = [{b = 2, m = 5, k = 70, n = 37}, {b = 1, m = 1, k = 1, n = 1}, {b = 0, m = 5, k = 7, n = 20}, {b = 3, m = 0, k = 7, n = 20},
                               {b = 3, m = 5, k = 0, n = 20}, {b = 3, m = 5, k = 7, n = 0}, {b = 3, m = 1, k = 9, n = 20}, {b = 1, m = 8, k = 9, n = 1}]} {
  %r = dmir.matmul %a, %w : (tensor<?x?x?x$T, #dmir.dims<"b", "m", "k">>, tensor<?x?x?x$T, #dmir.dims<"b", "k", "n">>) -> tensor<?x?x?x$T, #dmir.dims<"b", "m", "n">>
  return %r : tensor<?x?x?x$T, #dmir.dims<"b", "m", "n">>
}
func.func @rows_$T(%a: tensor<?x70x$T, #dmir.dims<"m">>, %w: tensor<70x37x$T> {test.packed}, %b: tensor<37x$T>) -> tensor<?x37x$T, #dmir.dims<"m">>
    attributes {$TOL, sizes = [{m = 0}, {m = 1}, {m = 2}, {m = 33}]} {
  %m = dmir.matmul %a, %w : (tensor<?x70x$T, #dmir.dims<"m">>, tensor<70x37x$T>) -> tensor<?x37x$T, #dmir.dims<"m">>
  %r = dmir.add %m, %b : (tensor<?x37x$T, #dmir.dims<"m">>, tensor<37x$T>) -> tensor<?x37x$T, #dmir.dims<"m">>
  return %r : tensor<?x37x$T, #dmir.dims<"m">>
}
func.func @turned_$T(%a: tensor<?x16x$T, #dmir.dims<"m">>, %b: tensor<?x16x$T, #dmir.dims<"n">>) -> tensor<?x?x$T, #dmir.dims<"m", "n">>
    attributes {$TOL, sizes = [{m = 6, n = 40}, {m = 1, n = 17}, {m = 4, n = 0}, {m = 4, n = 1}]} {
  %t = dmir.transpose %b {permutation = array<i64: 1, 0>} : (tensor<?x16x$T, #dmir.dims<"n">>) -> tensor<16x?x$T, #dmir.dims<"n">>
  %r = dmir.matmul %a, %t : (tensor<?x16x$T, #dmir.dims<"m">>, tensor<16x?x$T, #dmir.dims<"n">>) -> tensor<?x?x$T, #dmir.dims<"m", "n">>
  return %r : tensor<?x?x$T, #dmir.dims<"m", "n">>
}
)",
                       kOpenTypes) +
                  forTypes(R"(
func.func @grouped_$T(%a: tensor<?x30x$T, #dmir.dims<"m">>, %b: tensor<7x30x10x$T>, %e: tensor<7xi64> {test.lo = 0, test.hi = 9}) -> tensor<?x10x$T, #dmir.dims<"m">>
    attributes {$TOL, sizes = [{m = 9}, {m = 1}, {m = 33}]} {
  %r = dmir.grouped_matmul %a, %b, %e : (tensor<?x30x$T, #dmir.dims<"m">>, tensor<7x30x10x$T>, tensor<7xi64>) -> tensor<?x10x$T, #dmir.dims<"m">>
  return %r : tensor<?x10x$T, #dmir.dims<"m">>
}
)",
                           {"f32", "f16", "bf16"}),
              1, 3);
}

/// Strides, padding that differs by side, dilations and groups, of fixed and of open sizes; of nothing, and of one.
TEST(ProductRegion, ConvOfAllSizes) {
  std::string text = forTypes(R"(
func.func @open_$T(%a: tensor<?x6x?x8x$T, #dmir.dims<"b", "h">>, %w: tensor<8x3x3x3x$T>, %c: tensor<8x1x1x$T>) -> tensor<?x8x?x5x$T, #dmir.dims<"b", "floordiv(h, 2) + 1">>
    attributes {$TOL, sizes = [{b = 2, h = 9}, {b = 1, h = 1}, {b = 0, h = 4}, {b = 1, h = 0}, {b = 3, h = 6}]} {
  %r = dmir.conv %a, %w {groups = 2 : i64, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 1, 2>, high = array<i64: 2, 1>} : (tensor<?x6x?x8x$T, #dmir.dims<"b", "h">>, tensor<8x3x3x3x$T>) -> tensor<?x8x?x5x$T, #dmir.dims<"b", "floordiv(h, 2) + 1">>
  %s = dmir.add %r, %c : (tensor<?x8x?x5x$T, #dmir.dims<"b", "floordiv(h, 2) + 1">>, tensor<8x1x1x$T>) -> tensor<?x8x?x5x$T, #dmir.dims<"b", "floordiv(h, 2) + 1">>
  return %s : tensor<?x8x?x5x$T, #dmir.dims<"b", "floordiv(h, 2) + 1">>
}
)",
                              kOpenTypes);
  struct Case {
    const char *name, *in, *weights, *out, *attrs;
  };
  const Case cases[] = {
      {"strided", "2x6x9x8x", "8x3x3x3x", "2x8x5x5x",
       "groups = 2 : i64, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 1, 2>, high = "
       "array<i64: 1, 1>"},
      {"depthwise", "1x5x7x8x", "5x1x3x3x", "1x5x5x4x",
       "groups = 5 : i64, strides = array<i64: 1, 1>, dilations = array<i64: 1, 2>, low = array<i64: 0, 0>, high = "
       "array<i64: 0, 0>"},
      {"no_images", "0x4x5x5x", "3x4x3x3x", "0x3x3x3x",
       "strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>"},
      {"one_pixel", "1x4x1x1x", "3x4x3x3x", "1x3x1x1x",
       "strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 1, 1>"},
      {"one_of_all", "1x1x1x1x", "1x1x1x1x", "1x1x1x1x",
       "strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>"},
      {"padding_alone", "1x2x0x3x", "3x2x2x2x", "1x3x1x2x",
       "strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 1, 0>, high = array<i64: 1, 0>"}};
  for (const Case &c : cases)
    for (const std::string &type : kOpenTypes)
      text += conv(std::string(c.name) + "_" + type, c.in + type, c.weights + type, c.out + type, c.attrs, "", "pp");
  expectAgree(text, 1, 2);
}

} // namespace
