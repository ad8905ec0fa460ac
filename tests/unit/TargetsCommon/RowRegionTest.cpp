//===- RowRegionTest.cpp - reductions, softmax, pooling, selection --------------===//

#include "RegionHarness.h"

#include <gtest/gtest.h>

using namespace dmxc::kernels::test;

namespace {

std::string forTypes(const std::string &text, std::vector<std::string> types) {
  std::string all;
  for (const std::string &type : types)
    all += substitute(text, {{"T", type}});
  return all;
}

TEST(RowRegion, SumsAndMeans) {
  std::string text;
  for (const char *kind : {"sum", "mean"})
    for (const char *type : {"f32", "f64", "f16", "bf16", "i8", "i32", "i64", "ui8", "ui16", "i1"}) {
      bool isFloat = type[0] == 'f' || type[0] == 'b';
      text += substitute(R"(
func.func @$K_rows_$T(%a: tensor<7x133x$T>) -> tensor<7x1x$T> attributes {$TOL} {
  %r = dmir.reduce $K %a {axes = array<i64: 1>} : (tensor<7x133x$T>) -> tensor<7x1x$T>
  return %r : tensor<7x1x$T>
}
func.func @$K_columns_$T(%a: tensor<33x70x$T>) -> tensor<70x$T> attributes {$TOL} {
  %r = dmir.reduce $K %a {axes = array<i64: 0>, keepDims = false} : (tensor<33x70x$T>) -> tensor<70x$T>
  return %r : tensor<70x$T>
}
func.func @$K_all_$T(%a: tensor<5x3x41x$T>) -> tensor<$T> attributes {$TOL} {
  %r = dmir.reduce $K %a {axes = array<i64: 0, 1, 2>, keepDims = false} : (tensor<5x3x41x$T>) -> tensor<$T>
  return %r : tensor<$T>
}
func.func @$K_ends_$T(%a: tensor<5x3x41x$T>) -> tensor<1x3x1x$T> attributes {$TOL} {
  %r = dmir.reduce $K %a {axes = array<i64: 0, 2>} : (tensor<5x3x41x$T>) -> tensor<1x3x1x$T>
  return %r : tensor<1x3x1x$T>
}
func.func @$K_none_$T(%a: tensor<5x3x$T>) -> tensor<5x3x$T> {
  %r = dmir.reduce $K %a {axes = array<i64>} : (tensor<5x3x$T>) -> tensor<5x3x$T>
  return %r : tensor<5x3x$T>
}
func.func @$K_empty_$T(%a: tensor<4x0x$T>) -> tensor<4x1x$T> {
  %r = dmir.reduce $K %a {axes = array<i64: 1>} : (tensor<4x0x$T>) -> tensor<4x1x$T>
  return %r : tensor<4x1x$T>
}
)",
                         {{"K", kind}, {"TOL", isFloat ? "ulp = 2.0, abs = 2.0e-4" : "test.exact"}, {"T", type}});
    }
  expectAgree(text);
}

TEST(RowRegion, ExtremesAndProducts) {
  std::string text;
  for (const char *kind : {"max", "min"})
    for (const char *type : {"f32", "f64", "f16", "bf16", "i8", "i32", "i64", "ui8", "ui32", "i1"})
      text += substitute(R"(
func.func @$K_rows_$T(%a: tensor<9x75x$T>) -> tensor<9x1x$T> attributes {specials} {
  %r = dmir.reduce $K %a {axes = array<i64: 1>} : (tensor<9x75x$T>) -> tensor<9x1x$T>
  return %r : tensor<9x1x$T>
}
func.func @$K_columns_$T(%a: tensor<3x5x41x$T>) -> tensor<3x1x41x$T> attributes {specials} {
  %r = dmir.reduce $K %a {axes = array<i64: 1>} : (tensor<3x5x41x$T>) -> tensor<3x1x41x$T>
  return %r : tensor<3x1x41x$T>
}
func.func @$K_empty_$T(%a: tensor<4x0x$T>) -> tensor<4x1x$T> {
  %r = dmir.reduce $K %a {axes = array<i64: 1>} : (tensor<4x0x$T>) -> tensor<4x1x$T>
  return %r : tensor<4x1x$T>
}
)",
                         {{"K", kind}, {"T", type}});
  text += forTypes(R"(
func.func @prod_$T(%a: tensor<9x20x$T> {test.lo = 1, test.hi = 2}) -> tensor<9x1x$T> attributes {ulp = 16.0} {
  %r = dmir.reduce prod %a {axes = array<i64: 1>} : (tensor<9x20x$T>) -> tensor<9x1x$T>
  return %r : tensor<9x1x$T>
}
)",
                   {"f32", "f64", "i32", "i8", "ui64", "i1"});
  expectAgree(text);
}

TEST(RowRegion, FusedReductions) {
  expectAgree(R"(
func.func @norm(%a: tensor<6x200xf32>, %s: tensor<200xf32>) -> tensor<6x1xf32> attributes {ulp = 16.0} {
  %m = dmir.mul %a, %s : (tensor<6x200xf32>, tensor<200xf32>) -> tensor<6x200xf32>
  %q = dmir.mul %m, %m : (tensor<6x200xf32>, tensor<6x200xf32>) -> tensor<6x200xf32>
  %r = dmir.reduce sum %q {axes = array<i64: 1>} : (tensor<6x200xf32>) -> tensor<6x1xf32>
  %n = dmir.sqrt %r : (tensor<6x1xf32>) -> tensor<6x1xf32>
  return %n : tensor<6x1xf32>
}
func.func @global_pool(%a: tensor<2x35x7x9xf32, #dmir.blocked<1, 16>>) -> tensor<2x35x1x1xf32> attributes {ulp = 4.0, abs = 1.0e-5} {
  %r = dmir.reduce mean %a {axes = array<i64: 2, 3>} : (tensor<2x35x7x9xf32, #dmir.blocked<1, 16>>) -> tensor<2x35x1x1xf32>
  return %r : tensor<2x35x1x1xf32>
}
func.func @global_pool_plain(%a: tensor<2x35x7x9xf32>) -> tensor<2x35xf32> attributes {ulp = 4.0, abs = 1.0e-5} {
  %r = dmir.reduce mean %a {axes = array<i64: 2, 3>, keepDims = false} : (tensor<2x35x7x9xf32>) -> tensor<2x35xf32>
  return %r : tensor<2x35xf32>
}
func.func @large(%a: tensor<300x1000xf32>) -> tensor<300xf32> attributes {ulp = 16.0, abs = 1.0e-3} {
  %r = dmir.reduce sum %a {axes = array<i64: 1>, keepDims = false} : (tensor<300x1000xf32>) -> tensor<300xf32>
  return %r : tensor<300xf32>
}
func.func @large_columns(%a: tensor<300x1000xf32>) -> tensor<1000xf32> attributes {ulp = 16.0, abs = 1.0e-3} {
  %r = dmir.reduce sum %a {axes = array<i64: 0>, keepDims = false} : (tensor<300x1000xf32>) -> tensor<1000xf32>
  return %r : tensor<1000xf32>
}
)");
}

TEST(RowRegion, ArgReduceAndCumSum) {
  std::string text;
  for (const char *kind : {"max", "min"})
    for (const char *last : {"true", "false"})
      for (const char *type : {"f32", "f16", "i8", "i64", "ui8"})
        text += substitute(R"(
func.func @arg_$K_$L_$T(%a: tensor<6x53x$T> {test.lo = -4, test.hi = 4}) -> tensor<6x1xi64> {
  %r = dmir.arg_reduce $K %a {axis = 1 : i64, selectLast = $L} : (tensor<6x53x$T>) -> tensor<6x1xi64>
  return %r : tensor<6x1xi64>
}
func.func @arg_special_$K_$L_$T(%a: tensor<6x20x$T>) -> tensor<20xi64> attributes {specials} {
  %r = dmir.arg_reduce $K %a {axis = 0 : i64, selectLast = $L, keepDims = false} : (tensor<6x20x$T>) -> tensor<20xi64>
  return %r : tensor<20xi64>
}
)",
                           {{"K", kind}, {"L", last}, {"T", type}});
  for (const char *exclusive : {"true", "false"})
    for (const char *reverse : {"true", "false"})
      for (const char *type : {"f32", "f16", "i32", "i8", "ui64"})
        text += substitute(R"(
func.func @cumsum_rows_$E_$R_$T(%a: tensor<6x33x$T>) -> tensor<6x33x$T> attributes {ulp = 2.0, abs = 1.0e-4} {
  %r = dmir.cumsum %a {axis = 1 : i64, exclusive = $E, reverse = $R} : (tensor<6x33x$T>) -> tensor<6x33x$T>
  return %r : tensor<6x33x$T>
}
func.func @cumsum_columns_$E_$R_$T(%a: tensor<6x33x$T>) -> tensor<6x33x$T> attributes {ulp = 2.0, abs = 1.0e-4} {
  %r = dmir.cumsum %a {axis = 0 : i64, exclusive = $E, reverse = $R} : (tensor<6x33x$T>) -> tensor<6x33x$T>
  return %r : tensor<6x33x$T>
}
func.func @cumsum_line_$E_$R_$T(%a: tensor<19x$T>) -> tensor<19x$T> attributes {ulp = 2.0, abs = 1.0e-4} {
  %r = dmir.cumsum %a {axis = 0 : i64, exclusive = $E, reverse = $R} : (tensor<19x$T>) -> tensor<19x$T>
  return %r : tensor<19x$T>
}
)",
                           {{"E", exclusive}, {"R", reverse}, {"T", type}});
  expectAgree(text);
}

TEST(RowRegion, SoftmaxAndNormalize) {
  // The kernel rounds d = x - max to the type before exp, the interpreter does not: that alone is a relative error of
  // up to d / 2 units of e^d, and d reaches 16 here. Log-softmax subtracts again, and close to 0 the result's units are
  // smaller than d's.
  std::string text;
  for (const char *type : {"f32", "f64", "f16", "bf16"}) {
    text += substitute(R"(
func.func @softmax_$T(%a: tensor<5x77x$T>) -> tensor<5x77x$T> attributes {ulp = 12.0} {
  %r = dmir.softmax %a {axis = 1 : i64} : (tensor<5x77x$T>) -> tensor<5x77x$T>
  return %r : tensor<5x77x$T>
}
func.func @softmax_special_$T(%a: tensor<50x3x$T>) -> tensor<50x3x$T> attributes {specials, ulp = 12.0} {
  %r = dmir.softmax %a {axis = 1 : i64} : (tensor<50x3x$T>) -> tensor<50x3x$T>
  return %r : tensor<50x3x$T>
}
func.func @softmax_across_$T(%a: tensor<3x10x37x$T>) -> tensor<3x10x37x$T> attributes {ulp = 12.0} {
  %r = dmir.softmax %a {axis = 1 : i64} : (tensor<3x10x37x$T>) -> tensor<3x10x37x$T>
  return %r : tensor<3x10x37x$T>
}
func.func @log_softmax_$T(%a: tensor<5x77x$T>) -> tensor<5x77x$T> attributes {ulp = 40.0} {
  %r = dmir.softmax %a {axis = 1 : i64, log = true} : (tensor<5x77x$T>) -> tensor<5x77x$T>
  return %r : tensor<5x77x$T>
}
func.func @layer_norm_$T(%a: tensor<5x77x$T>) -> tensor<5x77x$T> attributes {ulp = 8.0, abs = 1.0e-6} {
  %r = dmir.normalize standard %a {axes = array<i64: 1>, epsilon = 1.0e-5 : f64} : (tensor<5x77x$T>) -> tensor<5x77x$T>
  return %r : tensor<5x77x$T>
}
func.func @rms_norm_$T(%a: tensor<5x77x$T>) -> tensor<5x77x$T> attributes {ulp = 8.0, abs = 1.0e-6} {
  %r = dmir.normalize rms %a {axes = array<i64: 1>, epsilon = 1.0e-5 : f64} : (tensor<5x77x$T>) -> tensor<5x77x$T>
  return %r : tensor<5x77x$T>
}
func.func @instance_norm_$T(%a: tensor<2x6x5x7x$T>) -> tensor<2x6x5x7x$T> attributes {ulp = 8.0, abs = 1.0e-6} {
  %r = dmir.normalize standard %a {axes = array<i64: 2, 3>, epsilon = 1.0e-5 : f64} : (tensor<2x6x5x7x$T>) -> tensor<2x6x5x7x$T>
  return %r : tensor<2x6x5x7x$T>
}
func.func @channel_norm_$T(%a: tensor<2x6x5x7x$T>) -> tensor<2x6x5x7x$T> attributes {ulp = 8.0, abs = 1.0e-6} {
  %r = dmir.normalize standard %a {axes = array<i64: 1>, epsilon = 1.0e-5 : f64} : (tensor<2x6x5x7x$T>) -> tensor<2x6x5x7x$T>
  return %r : tensor<2x6x5x7x$T>
}
)",
                       {{"T", type}});
  }
  text += R"(
func.func @masked_softmax(%a: tensor<2x4x33x33xf32>, %m: tensor<33x33xf32>) -> tensor<2x4x33x33xf32> attributes {ulp = 12.0} {
  %k = dmir.constant dense<0.125> : tensor<f32>
  %s = dmir.mul %a, %k : (tensor<2x4x33x33xf32>, tensor<f32>) -> tensor<2x4x33x33xf32>
  %p = dmir.add %s, %m : (tensor<2x4x33x33xf32>, tensor<33x33xf32>) -> tensor<2x4x33x33xf32>
  %r = dmir.softmax %p {axis = 3 : i64} : (tensor<2x4x33x33xf32>) -> tensor<2x4x33x33xf32>
  return %r : tensor<2x4x33x33xf32>
}
func.func @layer_norm_affine(%a: tensor<40x100xf32>, %b: tensor<40x100xf32>, %g: tensor<100xf32>, %o: tensor<100xf32>) -> tensor<40x100xf32> attributes {ulp = 8.0, abs = 2.0e-6} {
  %s = dmir.add %a, %b : (tensor<40x100xf32>, tensor<40x100xf32>) -> tensor<40x100xf32>
  %n = dmir.normalize standard %s {axes = array<i64: 1>, epsilon = 1.0e-5 : f64} : (tensor<40x100xf32>) -> tensor<40x100xf32>
  %m = dmir.mul %n, %g : (tensor<40x100xf32>, tensor<100xf32>) -> tensor<40x100xf32>
  %r = dmir.add %m, %o : (tensor<40x100xf32>, tensor<100xf32>) -> tensor<40x100xf32>
  return %r : tensor<40x100xf32>
}
)";
  expectAgree(text);
}

/// A row of one element keeps to its scratch, at every level.
TEST(RowRegion, SoftmaxAndNormalizeOfOneElement) {
  std::string text;
  for (const char *type : {"f32", "f64", "f16"})
    for (const char *shape : {"1x", "1x1x"})
      for (const char *op : {"softmax %x {axis = 0 : i64}", "softmax %x {axis = 0 : i64, log = true}",
                             "normalize standard %x {axes = array<i64: 0>, epsilon = 1.0e-5 : f64}",
                             "normalize rms %x {axes = array<i64: 0>, epsilon = 1.0e-5 : f64}"})
        text += substitute(R"(
func.func @f$I(%x: tensor<$S$T>) -> tensor<$S$T> attributes {ulp = 4.0} {
  %r = dmir.$OP : (tensor<$S$T>) -> tensor<$S$T>
  return %r : tensor<$S$T>
}
func.func @of_bytes_$I(%b: tensor<70xi8>) -> tensor<1x$T> attributes {ulp = 4.0} {
  %s = dmir.slice %b {starts = array<i64: 3>, sizes = array<i64: 1>, steps = array<i64: 1>} : (tensor<70xi8>) -> tensor<1xi8>
  %x = dmir.cast %s : (tensor<1xi8>) -> tensor<1x$T>
  %r = dmir.$OP : (tensor<1x$T>) -> tensor<1x$T>
  return %r : tensor<1x$T>
}
)",
                           {{"I", std::to_string(text.size())}, {"S", shape}, {"T", type}, {"OP", op}});
  expectAgree(text, 1);
}

TEST(RowRegion, Pooling) {
  std::string text;
  for (const char *type : {"f32", "f16", "i8", "ui8", "f64"})
    for (const char *kind : {"max", "average", "sum"})
      for (const char *count : {"true", "false"}) {
        if (std::string(kind) != "average" && count[0] == 't')
          continue;
        text += substitute(R"(
func.func @pool_$K_$C_$T(%a: tensor<2x5x9x40x$T>) -> tensor<2x5x5x20x$T> attributes {ulp = 1.0, abs = 1.0e-5} {
  %r = dmir.pool $K %a {window = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 1, 1>, ceilExtra = array<i64: 0, 0>, countPadding = $C} : (tensor<2x5x9x40x$T>) -> tensor<2x5x5x20x$T>
  return %r : tensor<2x5x5x20x$T>
}
func.func @pool_ceil_$K_$C_$T(%a: tensor<1x3x7x30x$T>) -> tensor<1x3x4x29x$T> attributes {ulp = 1.0, abs = 1.0e-5} {
  %r = dmir.pool $K %a {window = array<i64: 2, 2>, strides = array<i64: 2, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 1, 0>, ceilExtra = array<i64: 1, 0>, countPadding = $C} : (tensor<1x3x7x30x$T>) -> tensor<1x3x4x29x$T>
  return %r : tensor<1x3x4x29x$T>
}
func.func @pool_blocked_$K_$C_$T(%a: tensor<2x20x9x8x$T, #dmir.blocked<1, 16>>) -> tensor<2x20x5x6x$T, #dmir.blocked<1, 16>> attributes {ulp = 1.0, abs = 1.0e-5} {
  %r = dmir.pool $K %a {window = array<i64: 3, 2>, strides = array<i64: 2, 1>, dilations = array<i64: 1, 3>, low = array<i64: 1, 0>, high = array<i64: 1, 1>, ceilExtra = array<i64: 0, 0>, countPadding = $C} : (tensor<2x20x9x8x$T, #dmir.blocked<1, 16>>) -> tensor<2x20x5x6x$T, #dmir.blocked<1, 16>>
  return %r : tensor<2x20x5x6x$T, #dmir.blocked<1, 16>>
}
func.func @pool_1d_$K_$C_$T(%a: tensor<2x3x50x$T>) -> tensor<2x3x48x$T> attributes {ulp = 1.0, abs = 1.0e-5} {
  %r = dmir.pool $K %a {window = array<i64: 3>, strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>, high = array<i64: 0>, ceilExtra = array<i64: 0>, countPadding = $C} : (tensor<2x3x50x$T>) -> tensor<2x3x48x$T>
  return %r : tensor<2x3x48x$T>
}
)",
                           {{"K", kind}, {"C", count}, {"T", type}});
      }
  for (const char *columnMajor : {"true", "false"})
    text += substitute(forTypes(R"(
func.func @arg_max_pool_$C_$T(%a: tensor<2x3x9x10x$T>) -> tensor<2x3x5x5xi64> attributes {specials} {
  %r = dmir.arg_max_pool %a {window = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 1, 1>, columnMajor = $C} : (tensor<2x3x9x10x$T>) -> tensor<2x3x5x5xi64>
  return %r : tensor<2x3x5x5xi64>
}
)",
                                {"f32", "i8"}),
                       {{"C", columnMajor}});
  expectAgree(text, 1);
}

TEST(RowRegion, TopK) {
  std::string text;
  for (const char *largest : {"true", "false"})
    text += substitute(forTypes(R"(
func.func @top_k_$L_$T(%a: tensor<7x50x$T>) -> (tensor<7x6x$T>, tensor<7x6xi64>) attributes {specials} {
  %v, %i = dmir.top_k %a {k = 6 : i64, axis = 1 : i64, largest = $L} : (tensor<7x50x$T>) -> (tensor<7x6x$T>, tensor<7x6xi64>)
  return %v, %i : tensor<7x6x$T>, tensor<7x6xi64>
}
func.func @sort_$L_$T(%a: tensor<20x3x$T>) -> (tensor<20x3x$T>, tensor<20x3xi64>) attributes {specials} {
  %v, %i = dmir.top_k %a {k = 20 : i64, axis = 0 : i64, largest = $L} : (tensor<20x3x$T>) -> (tensor<20x3x$T>, tensor<20x3xi64>)
  return %v, %i : tensor<20x3x$T>, tensor<20x3xi64>
}
)",
                                {"f32", "f16", "i64", "ui8"}),
                       {{"L", largest}});
  // Heaps of every size up to a few levels; values that are equal often.
  for (int k = 1; k <= 18; ++k)
    text += substitute(R"(
func.func @top_$K_of_some(%a: tensor<2x300xi32> {test.lo = -6, test.hi = 6}) -> (tensor<2x$Kxi32>, tensor<2x$Kxi64>) {
  %v, %i = dmir.top_k %a {k = $K : i64, axis = 1 : i64, largest = true} : (tensor<2x300xi32>) -> (tensor<2x$Kxi32>, tensor<2x$Kxi64>)
  return %v, %i : tensor<2x$Kxi32>, tensor<2x$Kxi64>
}
func.func @sort_$K(%a: tensor<2x$Kxi32> {test.lo = -6, test.hi = 6}) -> (tensor<2x$Kxi32>, tensor<2x$Kxi64>) {
  %v, %i = dmir.top_k %a {k = $K : i64, axis = 1 : i64, largest = false} : (tensor<2x$Kxi32>) -> (tensor<2x$Kxi32>, tensor<2x$Kxi64>)
  return %v, %i : tensor<2x$Kxi32>, tensor<2x$Kxi64>
}
)",
                       {{"K", std::to_string(k)}});
  text += R"(
func.func @sort_many(%a: tensor<1x5000xf32>) -> (tensor<1x5000xf32>, tensor<1x5000xi64>) {
  %v, %i = dmir.top_k %a {k = 5000 : i64, axis = 1 : i64, largest = true} : (tensor<1x5000xf32>) -> (tensor<1x5000xf32>, tensor<1x5000xi64>)
  return %v, %i : tensor<1x5000xf32>, tensor<1x5000xi64>
}
)";
  expectAgree(text);
}

TEST(RowRegion, Scatters) {
  std::string text;
  for (const char *mode : {"replace", "add", "mul", "max", "min"})
    text += substitute(forTypes(R"(
func.func @scatter_elements_$M_$T(%a: tensor<6x20x$T>, %i: tensor<4x20xi64> {test.lo = -6, test.hi = 5}, %u: tensor<4x20x$T>) -> tensor<6x20x$T> attributes {abs = 1.0e-4} {
  %r = dmir.scatter_elements %a, %i, %u {axis = 0 : i64, mode = #dmir<scatter_mode $M>} : (tensor<6x20x$T>, tensor<4x20xi64>, tensor<4x20x$T>) -> tensor<6x20x$T>
  return %r : tensor<6x20x$T>
}
func.func @scatter_nd_$M_$T(%a: tensor<6x5x11x$T>, %i: tensor<7x2xi32> {test.lo = -5, test.hi = 4}, %u: tensor<7x11x$T>) -> tensor<6x5x11x$T> attributes {abs = 1.0e-4} {
  %r = dmir.scatter_nd %a, %i, %u {mode = #dmir<scatter_mode $M>} : (tensor<6x5x11x$T>, tensor<7x2xi32>, tensor<7x11x$T>) -> tensor<6x5x11x$T>
  return %r : tensor<6x5x11x$T>
}
)",
                                {"f32", "i32", "ui8", "i1"}),
                       {{"M", mode}});
  text += R"(
func.func @scatter_out_of_range(%a: tensor<6x20xf32>, %i: tensor<4x20xi64> {test.lo = -9, test.hi = 9}, %u: tensor<4x20xf32>) -> tensor<6x20xf32> attributes {fails = 1} {
  %r = dmir.scatter_elements %a, %i, %u {axis = 0 : i64} : (tensor<6x20xf32>, tensor<4x20xi64>, tensor<4x20xf32>) -> tensor<6x20xf32>
  return %r : tensor<6x20xf32>
}
)";
  expectAgree(text);
}

/// Much data and few updates: items that copy a part each, of one joined axis or of rows of a transposed one.
TEST(RowRegion, ScatterOfMuchData) {
  expectAgree(forTypes(R"(
func.func @cache_$T(%a: tensor<2x300x130x$T>, %i: tensor<3x2xi64> {test.lo = -2, test.hi = 1}, %u: tensor<3x130x$T>) -> tensor<2x300x130x$T> {
  %r = dmir.scatter_nd %a, %i, %u : (tensor<2x300x130x$T>, tensor<3x2xi64>, tensor<3x130x$T>) -> tensor<2x300x130x$T>
  return %r : tensor<2x300x130x$T>
}
func.func @rows_$T(%a: tensor<700x130x$T>, %i: tensor<5x1xi64> {test.lo = -700, test.hi = 699}, %u: tensor<5x130x$T>) -> tensor<700x130x$T> {
  %r = dmir.scatter_nd %a, %i, %u {mode = #dmir<scatter_mode add>} : (tensor<700x130x$T>, tensor<5x1xi64>, tensor<5x130x$T>) -> tensor<700x130x$T>
  return %r : tensor<700x130x$T>
}
func.func @turned_$T(%a: tensor<130x5x139x$T>, %i: tensor<5x1x130xi64> {test.lo = 0, test.hi = 138}, %u: tensor<5x1x130x$T>) -> tensor<5x139x130x$T> {
  %t = dmir.transpose %a {permutation = array<i64: 1, 2, 0>} : (tensor<130x5x139x$T>) -> tensor<5x139x130x$T>
  %r = dmir.scatter_elements %t, %i, %u {axis = 1 : i64, mode = #dmir<scatter_mode max>} : (tensor<5x139x130x$T>, tensor<5x1x130xi64>, tensor<5x1x130x$T>) -> tensor<5x139x130x$T>
  return %r : tensor<5x139x130x$T>
}
func.func @outside_$T(%a: tensor<90000x$T>, %i: tensor<4x1xi64> {test.lo = 90000, test.hi = 99999}, %u: tensor<4x$T>) -> tensor<90000x$T> attributes {fails = 1} {
  %r = dmir.scatter_nd %a, %i, %u : (tensor<90000x$T>, tensor<4x1xi64>, tensor<4x$T>) -> tensor<90000x$T>
  return %r : tensor<90000x$T>
}
)",
                       {"f32", "i64", "ui8"}));
}

TEST(RowRegion, GreedySelect) {
  expectAgree(R"(
func.func @greedy_select(%c: tensor<3x20xi1>, %e: tensor<3x20x20xi1>, %l: tensor<i64> {test.lo = 2, test.hi = 6}) -> tensor<3x20xi1> {
  %r = dmir.greedy_select %c, %e, %l : (tensor<3x20xi1>, tensor<3x20x20xi1>, tensor<i64>) -> tensor<3x20xi1>
  return %r : tensor<3x20xi1>
}
func.func @greedy_select_near(%c: tensor<2x30xi1>, %a: tensor<2x30x1xi32> {test.lo = 0, test.hi = 9}, %b: tensor<2x1x30xi32> {test.lo = 0, test.hi = 9}, %l: tensor<i64> {test.lo = 30, test.hi = 40}) -> tensor<2x30xi1> {
  %e = dmir.compare eq %a, %b : (tensor<2x30x1xi32>, tensor<2x1x30xi32>) -> tensor<2x30x30xi1>
  %r = dmir.greedy_select %c, %e, %l : (tensor<2x30xi1>, tensor<2x30x30xi1>, tensor<i64>) -> tensor<2x30xi1>
  return %r : tensor<2x30xi1>
}
)");
}

// Dims have no buffer: they go where the runtime reads them.
TEST(RowRegion, DefinedDims) {
  RegionModule regions(R"(
func.func @define(%a: tensor<2xi64>) {
  %two = dmir.constant dense<2> : tensor<i64>
  %b = dmir.mul %a, %two : (tensor<2xi64>, tensor<i64>) -> tensor<2xi64>
  dmir.define_dims %b {symbols = ["a", "b"], max = #dmir.dims<"100", "100">} : tensor<2xi64>
  return
}
)");
  ASSERT_EQ(regions.error, "");
  int ran = 0;
  for (const std::string &level : regions.levels()) {
    dmx_kernel_fn kernel = regions.kernel("define", level);
    if (!kernel) // the level is for other rows
      continue;
    ++ran;
    int64_t input[] = {3, 20}, results[] = {-1, -1}, kept = -1;
    void *buffers[] = {input};
    dmx_kernel_args args = {buffers, nullptr, 0, 1, nullptr, results, &kept};
    ASSERT_EQ(kernel(&args), DMX_KERNEL_OK);
    EXPECT_EQ(results[0], 6);
    EXPECT_EQ(results[1], 40);
  }
  EXPECT_GT(ran, 0);
}

} // namespace
