// RUN: dmx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(dmir-raise-slices))' | FileCheck %s

// The last row of an MLP with a residual: everything is of one row.
// CHECK-LABEL: func @mlp
// CHECK-NEXT: %[[X:.*]] = dmir.slice %arg0 {sizes = array<i64: 1, 16>, starts = array<i64: 31, 0>
// CHECK-NEXT: %[[N:.*]] = dmir.normalize rms %[[X]] {{.*}} -> tensor<1x16xf32>
// CHECK-NEXT: %[[A:.*]] = dmir.matmul %[[N]], %arg1 : {{.*}} -> tensor<1x16xf32>
// CHECK-NEXT: %[[R:.*]] = dmir.relu %[[A]]
// CHECK-NEXT: %[[S:.*]] = dmir.add %[[R]], %[[X]]
// CHECK-NEXT: return %[[S]]
func.func @mlp(%x: tensor<32x16xf32>, %w: tensor<16x16xf32>) -> tensor<1x16xf32> {
  %n = dmir.normalize rms %x {axes = array<i64: 1>, epsilon = 1.0e-5 : f64} : (tensor<32x16xf32>) -> tensor<32x16xf32>
  %a = dmir.matmul %n, %w : (tensor<32x16xf32>, tensor<16x16xf32>) -> tensor<32x16xf32>
  %r = dmir.relu %a : (tensor<32x16xf32>) -> tensor<32x16xf32>
  %s = dmir.add %r, %x : (tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
  %l = dmir.slice %s {starts = array<i64: 31, 0>, sizes = array<i64: 1, 16>, steps = array<i64: 1, 1>} : (tensor<32x16xf32>) -> tensor<1x16xf32>
  return %l : tensor<1x16xf32>
}

// -----

// Of attention the last query, with its row of the mask; a row that is picked by its number is a slice.
// CHECK: #[[ALL:.*]] = affine_set<(d0, d1, d2) : (d1 - d2 + 7 >= 0)>
// CHECK-LABEL: func @attention
// CHECK: %[[Q:.*]] = dmir.slice %arg0 {sizes = array<i64: 2, 1, 4>, starts = array<i64: 0, 7, 0>
// CHECK: dmir.matmul %[[Q]], %arg1 : {{.*}} -> tensor<2x1x8xf32>
// CHECK: dmir.mask {{.*}}keep = [#[[ALL]]]
// CHECK: dmir.softmax {{.*}} -> tensor<2x1x8xf32>
// CHECK: dmir.matmul {{.*}} -> tensor<2x1x4xf32>
// CHECK: dmir.reshape {{.*}} -> tensor<2x4xf32>
func.func @attention(%q: tensor<2x8x4xf32>, %k: tensor<2x4x8xf32>, %v: tensor<2x8x4xf32>) -> tensor<2x4xf32> {
  %last = dmir.constant dense<-1> : tensor<i64>
  %s = dmir.matmul %q, %k : (tensor<2x8x4xf32>, tensor<2x4x8xf32>) -> tensor<2x8x8xf32>
  %m = dmir.mask %s {fill = 0xFF800000 : f32, keep = [affine_set<(h, i, j) : (i - j >= 0)>]} : (tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %w = dmir.softmax %m {axis = 2 : i64} : (tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %o = dmir.matmul %w, %v : (tensor<2x8x8xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  %l = dmir.gather %o, %last {axis = 1 : i64} : (tensor<2x8x4xf32>, tensor<i64>) -> tensor<2x4xf32>
  return %l : tensor<2x4xf32>
}

// -----

// What somebody else reads, and columns, stay whole: a product's weights are packed once.
// CHECK-LABEL: func @stays
// CHECK: dmir.matmul %arg0, %arg1 : {{.*}} -> tensor<32x16xf32>
// CHECK: dmir.slice
// CHECK: dmir.matmul %arg0, %arg1 : {{.*}} -> tensor<32x16xf32>
// CHECK: dmir.slice
func.func @stays(%x: tensor<32x16xf32>, %w: tensor<16x16xf32>) -> (tensor<1x16xf32>, tensor<32x16xf32>, tensor<32x4xf32>) {
  %a = dmir.matmul %x, %w : (tensor<32x16xf32>, tensor<16x16xf32>) -> tensor<32x16xf32>
  %l = dmir.slice %a {starts = array<i64: 31, 0>, sizes = array<i64: 1, 16>, steps = array<i64: 1, 1>} : (tensor<32x16xf32>) -> tensor<1x16xf32>
  %b = dmir.matmul %x, %w : (tensor<32x16xf32>, tensor<16x16xf32>) -> tensor<32x16xf32>
  %c = dmir.slice %b {starts = array<i64: 0, 0>, sizes = array<i64: 32, 4>, steps = array<i64: 1, 1>} : (tensor<32x16xf32>) -> tensor<32x4xf32>
  return %l, %a, %c : tensor<1x16xf32>, tensor<32x16xf32>, tensor<32x4xf32>
}
