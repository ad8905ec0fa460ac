//===- MovementRegionTest.cpp - fused data movement ----------------------------===//

#include "RegionHarness.h"

#include <gtest/gtest.h>

using namespace dmxc::kernels::test;

namespace {

/// The functions of `text` for every kind of element memory has.
std::string forTypes(const std::string &text,
                     std::vector<std::string> types = {"f32", "i8", "f16", "i64", "i1", "f64"}) {
  std::string all;
  for (const std::string &type : types)
    all += substitute(text, {{"T", type}});
  return all;
}

TEST(MovementRegion, Views) {
  expectAgree(forTypes(R"(
func.func @transpose_$T(%a: tensor<3x20x33x$T>) -> tensor<33x3x20x$T> attributes {specials} {
  %r = dmir.transpose %a {permutation = array<i64: 2, 0, 1>} : (tensor<3x20x33x$T>) -> tensor<33x3x20x$T>
  return %r : tensor<33x3x20x$T>
}
func.func @nhwc_$T(%a: tensor<2x5x6x19x$T>) -> tensor<2x19x5x6x$T> {
  %r = dmir.transpose %a {permutation = array<i64: 0, 3, 1, 2>} : (tensor<2x5x6x19x$T>) -> tensor<2x19x5x6x$T>
  return %r : tensor<2x19x5x6x$T>
}
func.func @slice_$T(%a: tensor<9x50x$T>) -> tensor<3x20x$T> {
  %r = dmir.slice %a {starts = array<i64: 1, 5>, sizes = array<i64: 3, 20>, steps = array<i64: 3, 2>} : (tensor<9x50x$T>) -> tensor<3x20x$T>
  return %r : tensor<3x20x$T>
}
func.func @reverse_$T(%a: tensor<4x37x$T>) -> tensor<4x37x$T> {
  %r = dmir.slice %a {starts = array<i64: 3, 36>, sizes = array<i64: 4, 37>, steps = array<i64: -1, -1>} : (tensor<4x37x$T>) -> tensor<4x37x$T>
  return %r : tensor<4x37x$T>
}
func.func @broadcast_$T(%a: tensor<5x1x$T>) -> tensor<3x5x21x$T> {
  %r = dmir.broadcast %a : (tensor<5x1x$T>) -> tensor<3x5x21x$T>
  return %r : tensor<3x5x21x$T>
}
func.func @reshape_$T(%a: tensor<6x4x15x$T>) -> tensor<24x5x3x$T> {
  %r = dmir.reshape %a : (tensor<6x4x15x$T>) -> tensor<24x5x3x$T>
  return %r : tensor<24x5x3x$T>
}
func.func @reshape_mixed_$T(%a: tensor<4x6x10x$T>) -> tensor<8x30x$T> {
  %r = dmir.reshape %a : (tensor<4x6x10x$T>) -> tensor<8x30x$T>
  return %r : tensor<8x30x$T>
}
func.func @heads_$T(%a: tensor<2x7x64x$T>) -> tensor<2x4x7x16x$T> {
  %s = dmir.reshape %a : (tensor<2x7x64x$T>) -> tensor<2x7x4x16x$T>
  %r = dmir.transpose %s {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x7x4x16x$T>) -> tensor<2x4x7x16x$T>
  return %r : tensor<2x4x7x16x$T>
}
func.func @merge_heads_$T(%a: tensor<2x4x7x16x$T>) -> tensor<2x7x64x$T> {
  %t = dmir.transpose %a {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x7x16x$T>) -> tensor<2x7x4x16x$T>
  %r = dmir.reshape %t : (tensor<2x7x4x16x$T>) -> tensor<2x7x64x$T>
  return %r : tensor<2x7x64x$T>
}
)"));
}

TEST(MovementRegion, Iota) {
  expectAgree(forTypes(R"(
func.func @iota_$T(%a: tensor<1x$T>) -> (tensor<3x20x$T>) {
  %i = dmir.iota {axis = 1 : i64} : () -> tensor<3x20x$T>
  %r = dmir.add %i, %a : (tensor<3x20x$T>, tensor<1x$T>) -> tensor<3x20x$T>
  return %r : tensor<3x20x$T>
}
func.func @iota_outer_$T(%a: tensor<1x$T>) -> (tensor<3x20x$T>) {
  %i = dmir.iota {axis = 0 : i64} : () -> tensor<3x20x$T>
  %r = dmir.add %i, %a : (tensor<3x20x$T>, tensor<1x$T>) -> tensor<3x20x$T>
  return %r : tensor<3x20x$T>
}
)",
                       {"f32", "i8", "f16", "i64", "f64", "bf16", "ui16"}));
}

TEST(MovementRegion, Pad) {
  std::string text;
  text += forTypes(R"(
func.func @pad_$T(%a: tensor<3x20x$T>, %v: tensor<$T>) -> tensor<6x29x$T> {
  %r = dmir.pad %a, %v {low = array<i64: 1, 5>, high = array<i64: 2, 4>, interior = array<i64: 0, 0>} : (tensor<3x20x$T>, tensor<$T>) -> tensor<6x29x$T>
  return %r : tensor<6x29x$T>
}
func.func @pad_interior_$T(%a: tensor<3x10x$T>, %v: tensor<$T>) -> tensor<6x32x$T> {
  %r = dmir.pad %a, %v {low = array<i64: 0, 3>, high = array<i64: 1, 1>, interior = array<i64: 1, 2>} : (tensor<3x10x$T>, tensor<$T>) -> tensor<6x32x$T>
  return %r : tensor<6x32x$T>
}
func.func @pad_empty_$T(%a: tensor<3x0x$T>, %v: tensor<$T>) -> tensor<3x7x$T> {
  %r = dmir.pad %a, %v {low = array<i64: 0, 3>, high = array<i64: 0, 4>, interior = array<i64: 0, 0>} : (tensor<3x0x$T>, tensor<$T>) -> tensor<3x7x$T>
  return %r : tensor<3x7x$T>
}
)");
  for (const char *mode : {"edge", "reflect", "wrap"})
    text += substitute(forTypes(R"(
func.func @pad_$M_$T(%a: tensor<4x9x$T>, %v: tensor<$T>) -> tensor<8x23x$T> {
  %r = dmir.pad %a, %v {low = array<i64: 1, 6>, high = array<i64: 3, 8>, interior = array<i64: 0, 0>, mode = #dmir<pad_mode $M>} : (tensor<4x9x$T>, tensor<$T>) -> tensor<8x23x$T>
  return %r : tensor<8x23x$T>
}
)"),
                       {{"M", mode}});
  expectAgree(text);
}

TEST(MovementRegion, Concat) {
  expectAgree(forTypes(R"(
func.func @concat_outer_$T(%a: tensor<2x3x17x$T>, %b: tensor<2x1x17x$T>, %c: tensor<2x4x17x$T>) -> tensor<2x8x17x$T> {
  %r = dmir.concat %a, %b, %c {axis = 1 : i64} : (tensor<2x3x17x$T>, tensor<2x1x17x$T>, tensor<2x4x17x$T>) -> tensor<2x8x17x$T>
  return %r : tensor<2x8x17x$T>
}
func.func @concat_inner_$T(%a: tensor<3x5x$T>, %b: tensor<3x1x$T>, %e: tensor<3x0x$T>, %c: tensor<3x30x$T>) -> tensor<3x36x$T> {
  %r = dmir.concat %a, %b, %e, %c {axis = 1 : i64} : (tensor<3x5x$T>, tensor<3x1x$T>, tensor<3x0x$T>, tensor<3x30x$T>) -> tensor<3x36x$T>
  return %r : tensor<3x36x$T>
}
func.func @concat_aligned_$T(%a: tensor<3x16x$T>, %b: tensor<3x48x$T>, %c: tensor<3x7x$T>) -> tensor<3x71x$T> {
  %r = dmir.concat %a, %b, %c {axis = 1 : i64} : (tensor<3x16x$T>, tensor<3x48x$T>, tensor<3x7x$T>) -> tensor<3x71x$T>
  return %r : tensor<3x71x$T>
}
func.func @concat_one_$T(%a: tensor<3x5x$T>) -> tensor<3x5x$T> {
  %r = dmir.concat %a {axis = 0 : i64} : (tensor<3x5x$T>) -> tensor<3x5x$T>
  return %r : tensor<3x5x$T>
}
func.func @concat_of_slices_$T(%a: tensor<3x32x$T>) -> tensor<3x32x$T> {
  %x = dmir.slice %a {starts = array<i64: 0, 16>, sizes = array<i64: 3, 16>, steps = array<i64: 1, 1>} : (tensor<3x32x$T>) -> tensor<3x16x$T>
  %y = dmir.slice %a {starts = array<i64: 0, 0>, sizes = array<i64: 3, 16>, steps = array<i64: 1, 1>} : (tensor<3x32x$T>) -> tensor<3x16x$T>
  %r = dmir.concat %x, %y {axis = 1 : i64} : (tensor<3x16x$T>, tensor<3x16x$T>) -> tensor<3x32x$T>
  return %r : tensor<3x32x$T>
}
)"));
}

TEST(MovementRegion, Gathers) {
  std::string text = forTypes(R"(
func.func @embedding_$T(%a: tensor<11x40x$T>, %i: tensor<3x2xi64> {test.lo = -11, test.hi = 10}) -> tensor<3x2x40x$T> {
  %r = dmir.gather %a, %i {axis = 0 : i64} : (tensor<11x40x$T>, tensor<3x2xi64>) -> tensor<3x2x40x$T>
  return %r : tensor<3x2x40x$T>
}
func.func @gather_inner_$T(%a: tensor<4x11x$T>, %i: tensor<25xi32> {test.lo = -11, test.hi = 10}) -> tensor<4x25x$T> {
  %r = dmir.gather %a, %i {axis = 1 : i64} : (tensor<4x11x$T>, tensor<25xi32>) -> tensor<4x25x$T>
  return %r : tensor<4x25x$T>
}
func.func @gather_scalar_$T(%a: tensor<4x11x7x$T>, %i: tensor<i64> {test.lo = -11, test.hi = 10}) -> tensor<4x7x$T> {
  %r = dmir.gather %a, %i {axis = 1 : i64} : (tensor<4x11x7x$T>, tensor<i64>) -> tensor<4x7x$T>
  return %r : tensor<4x7x$T>
}
func.func @gather_elements_$T(%a: tensor<6x20x$T>, %i: tensor<3x20xi64> {test.lo = -6, test.hi = 5}) -> tensor<3x20x$T> {
  %r = dmir.gather_elements %a, %i {axis = 0 : i64} : (tensor<6x20x$T>, tensor<3x20xi64>) -> tensor<3x20x$T>
  return %r : tensor<3x20x$T>
}
func.func @gather_elements_inner_$T(%a: tensor<6x20x$T>, %i: tensor<5x33xi32> {test.lo = -20, test.hi = 19}) -> tensor<5x33x$T> {
  %r = dmir.gather_elements %a, %i {axis = 1 : i64} : (tensor<6x20x$T>, tensor<5x33xi32>) -> tensor<5x33x$T>
  return %r : tensor<5x33x$T>
}
func.func @gather_nd_$T(%a: tensor<5x6x18x$T>, %i: tensor<7x2xi64> {test.lo = -5, test.hi = 4}) -> tensor<7x18x$T> {
  %r = dmir.gather_nd %a, %i : (tensor<5x6x18x$T>, tensor<7x2xi64>) -> tensor<7x18x$T>
  return %r : tensor<7x18x$T>
}
func.func @gather_nd_batch_$T(%a: tensor<2x6x18x$T>, %i: tensor<2x9x1xi64> {test.lo = -6, test.hi = 5}) -> tensor<2x9x18x$T> {
  %r = dmir.gather_nd %a, %i {batchDims = 1 : i64} : (tensor<2x6x18x$T>, tensor<2x9x1xi64>) -> tensor<2x9x18x$T>
  return %r : tensor<2x9x18x$T>
}
)");
  text += R"(
func.func @out_of_range(%a: tensor<4x11xf32>, %i: tensor<200xi64> {test.lo = -12, test.hi = 11}) -> tensor<4x200xf32> attributes {fails = 1} {
  %r = dmir.gather %a, %i {axis = 1 : i64} : (tensor<4x11xf32>, tensor<200xi64>) -> tensor<4x200xf32>
  return %r : tensor<4x200xf32>
}
func.func @rows_out_of_range(%a: tensor<11x40xf32>, %i: tensor<50xi64> {test.lo = -20, test.hi = 20}) -> tensor<50x40xf32> attributes {fails = 1} {
  %r = dmir.gather %a, %i {axis = 0 : i64} : (tensor<11x40xf32>, tensor<50xi64>) -> tensor<50x40xf32>
  return %r : tensor<50x40xf32>
}
)";
  expectAgree(text);
}

TEST(MovementRegion, MovementInsideArithmetic) {
  expectAgree(R"(
func.func @rope(%x: tensor<2x3x5x32xf32>, %c: tensor<5x32xf32>, %s: tensor<5x32xf32>) -> tensor<2x3x5x32xf32> attributes {ulp = 1.0} {
  %l = dmir.slice %x {starts = array<i64: 0, 0, 0, 0>, sizes = array<i64: 2, 3, 5, 16>, steps = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x32xf32>) -> tensor<2x3x5x16xf32>
  %h = dmir.slice %x {starts = array<i64: 0, 0, 0, 16>, sizes = array<i64: 2, 3, 5, 16>, steps = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x32xf32>) -> tensor<2x3x5x16xf32>
  %n = dmir.neg %h : (tensor<2x3x5x16xf32>) -> tensor<2x3x5x16xf32>
  %r = dmir.concat %n, %l {axis = 3 : i64} : (tensor<2x3x5x16xf32>, tensor<2x3x5x16xf32>) -> tensor<2x3x5x32xf32>
  %a = dmir.mul %x, %c : (tensor<2x3x5x32xf32>, tensor<5x32xf32>) -> tensor<2x3x5x32xf32>
  %b = dmir.mul %r, %s : (tensor<2x3x5x32xf32>, tensor<5x32xf32>) -> tensor<2x3x5x32xf32>
  %y = dmir.add %a, %b : (tensor<2x3x5x32xf32>, tensor<2x3x5x32xf32>) -> tensor<2x3x5x32xf32>
  return %y : tensor<2x3x5x32xf32>
}
func.func @pad_of_sum(%a: tensor<3x20xf32>, %b: tensor<3x1xf32>) -> tensor<5x40xf32> {
  %z = dmir.constant dense<-1.0> : tensor<f32>
  %s = dmir.add %a, %b : (tensor<3x20xf32>, tensor<3x1xf32>) -> tensor<3x20xf32>
  %r = dmir.pad %s, %z {low = array<i64: 1, 16>, high = array<i64: 1, 4>, interior = array<i64: 0, 0>} : (tensor<3x20xf32>, tensor<f32>) -> tensor<5x40xf32>
  return %r : tensor<5x40xf32>
}
func.func @mask(%x: tensor<9x9xf32>) -> tensor<9x9xf32> {
  %low = dmir.constant dense<0xFF800000> : tensor<f32>
  %i = dmir.iota {axis = 0 : i64} : () -> tensor<9x9xi32>
  %j = dmir.iota {axis = 1 : i64} : () -> tensor<9x9xi32>
  %c = dmir.compare ge %i, %j : (tensor<9x9xi32>, tensor<9x9xi32>) -> tensor<9x9xi1>
  %r = dmir.select %c, %x, %low : (tensor<9x9xi1>, tensor<9x9xf32>, tensor<f32>) -> tensor<9x9xf32>
  return %r : tensor<9x9xf32>
}
func.func @shared(%x: tensor<8x24xf32>) -> tensor<24x8xf32> attributes {ulp = 4.0} {
  %e = dmir.exp %x : (tensor<8x24xf32>) -> tensor<8x24xf32>
  %s = dmir.mul %e, %e : (tensor<8x24xf32>, tensor<8x24xf32>) -> tensor<8x24xf32>
  %a = dmir.add %s, %e : (tensor<8x24xf32>, tensor<8x24xf32>) -> tensor<8x24xf32>
  %t = dmir.transpose %a {permutation = array<i64: 1, 0>} : (tensor<8x24xf32>) -> tensor<24x8xf32>
  return %t : tensor<24x8xf32>
}
)");
}

} // namespace
