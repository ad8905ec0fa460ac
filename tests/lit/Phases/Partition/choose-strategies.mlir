// RUN: dmx-opt %s -pass-pipeline='builtin.module(func.func(dmir-form-regions,dmir-choose-strategies))' | FileCheck %s

// The constant operand of a matmul is packed; one that comes at run time is not.
// CHECK-LABEL: func @matmul
// CHECK: dmir.region "cpu"
// CHECK-SAME: algorithm = "matmul-packed"
// CHECK-SAME: packed = {"1" = {form = "panel16"
// CHECK-LABEL: func @dynamic
// CHECK: algorithm = "matmul",
// CHECK-NOT: packed
func.func @matmul(%x: tensor<8x16xf32>) -> tensor<8x32xf32> {
  %w = dmir.constant dense<1.0> : tensor<16x32xf32>
  %0 = dmir.matmul %x, %w : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}
func.func @dynamic(%x: tensor<8x16xf32>, %w: tensor<16x32xf32>) -> tensor<8x32xf32> {
  %0 = dmir.matmul %x, %w : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}

// What somebody else chose stays, and the rest is added.
// CHECK-LABEL: func @chosen
// CHECK: strategy = {algorithm = "elementwise", bytes = 64 : i64, flops = 8 : i64, grain = 7 : i64, in_place = [0], scratch = 0 : i64, work = 1 : i64}
func.func @chosen(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = dmir.region "cpu" (%a = %x : tensor<8xf32>) -> (tensor<8xf32>) attributes {strategy = {grain = 7 : i64}} {
    %r = dmir.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    dmir.yield %r : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}
// The packed form is one that the kernel has, though not the fastest one's.
// CHECK-LABEL: func @unpacked
// CHECK: algorithm = "matmul",
// CHECK-NOT: packed
func.func @unpacked(%x: tensor<8x16xf32>) -> tensor<8x32xf32> {
  %w = dmir.constant dense<1.0> : tensor<16x32xf32>
  %0 = dmir.region "cpu" (%a = %x : tensor<8x16xf32>, %b = %w : tensor<16x32xf32>) -> (tensor<8x32xf32>) attributes {strategy = {algorithm = "matmul"}} {
    %r = dmir.matmul %a, %b : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
    dmir.yield %r : tensor<8x32xf32>
  }
  return %0 : tensor<8x32xf32>
}

// Many short rows are shared by threads, each of which gets many of them; a logarithm's row is read where it lies.
// CHECK-LABEL: func @short_rows
// CHECK: algorithm = "softmax-along"
// CHECK-SAME: grain = {{[2-9]}} : i64
// CHECK-SAME: scratch = 512 : i64
// CHECK-SAME: work = 1536 : i64
// CHECK-LABEL: func @logarithms
// CHECK: algorithm = "softmax-along"
// CHECK-SAME: scratch = 0 : i64
func.func @short_rows(%x: tensor<12x128x128xf32>) -> tensor<12x128x128xf32> {
  %0 = dmir.softmax %x {axis = 2 : i64} : (tensor<12x128x128xf32>) -> tensor<12x128x128xf32>
  return %0 : tensor<12x128x128xf32>
}
func.func @logarithms(%x: tensor<128x30000xf32>) -> tensor<128x30000xf32> {
  %0 = dmir.softmax %x {axis = 1 : i64, log = true} : (tensor<128x30000xf32>) -> tensor<128x30000xf32>
  return %0 : tensor<128x30000xf32>
}
