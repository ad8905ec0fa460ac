// RUN: dmx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(dmir-recognize-softmax))' | FileCheck %s

// The maximum taken off; not; multiplied by the inverse, in either order; sums that lose their axis and get it back.
// CHECK-LABEL: func @spellings
// CHECK-NEXT: %[[A:.*]] = dmir.softmax %arg0 {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT: %[[B:.*]] = dmir.softmax %arg0 {axis = 1 : i64}
// CHECK-NEXT: %[[C:.*]] = dmir.softmax %arg0 {axis = 1 : i64}
// CHECK-NEXT: %[[D:.*]] = dmir.softmax %arg0 {axis = 0 : i64}
// CHECK-NEXT: return %[[A]], %[[B]], %[[C]], %[[D]]
func.func @spellings(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %m = dmir.reduce max %x {axes = array<i64: 1>, keepDims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %s = dmir.sub %x, %m : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %e = dmir.exp %s : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %t = dmir.reduce sum %e {axes = array<i64: 1>, keepDims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %a = dmir.div %e, %t : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>

  %e1 = dmir.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %e2 = dmir.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %t1 = dmir.reduce sum %e2 {axes = array<i64: 1>, keepDims = false} : (tensor<4x8xf32>) -> tensor<4xf32>
  %r1 = dmir.reshape %t1 : (tensor<4xf32>) -> tensor<4x1xf32>
  %i1 = dmir.reciprocal %r1 : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %b = dmir.mul %i1, %e1 : (tensor<4x1xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>

  %one = dmir.constant dense<1.0> : tensor<f32>
  %e3 = dmir.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %t3 = dmir.reduce sum %e3 {axes = array<i64: 1>, keepDims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %i3 = dmir.div %one, %t3 : (tensor<f32>, tensor<4x1xf32>) -> tensor<4x1xf32>
  %c = dmir.mul %e3, %i3 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>

  %m4 = dmir.reduce max %x {axes = array<i64: 0>, keepDims = false} : (tensor<4x8xf32>) -> tensor<8xf32>
  %w4 = dmir.broadcast %m4 : (tensor<8xf32>) -> tensor<4x8xf32>
  %s4 = dmir.sub %x, %w4 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %e4 = dmir.exp %s4 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %t4 = dmir.reduce sum %e4 {axes = array<i64: 0>, keepDims = false} : (tensor<4x8xf32>) -> tensor<8xf32>
  %d = dmir.div %e4, %t4 : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return %a, %b, %c, %d : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// A number beside the sum, a sum along the other axis of a square, powers that are an output, a sum of other powers, two
// axes; a maximum along another axis stays, for its rows may differ by more than what exp takes.
// CHECK-LABEL: func @others
// CHECK-COUNT-5: dmir.div
// CHECK: %[[M:.*]] = dmir.reduce max
// CHECK: %[[S:.*]] = dmir.sub %arg0, %[[M]]
// CHECK: dmir.softmax %[[S]] {axis = 1 : i64}
// CHECK-NOT: dmir.softmax
func.func @others(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>)
    -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %eps = dmir.constant dense<1.0e-6> : tensor<f32>
  %e = dmir.exp %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %t = dmir.reduce sum %e {axes = array<i64: 1>, keepDims = true} : (tensor<8x8xf32>) -> tensor<8x1xf32>
  %n = dmir.add %t, %eps : (tensor<8x1xf32>, tensor<f32>) -> tensor<8x1xf32>
  %a = dmir.div %e, %n : (tensor<8x8xf32>, tensor<8x1xf32>) -> tensor<8x8xf32>

  %e1 = dmir.exp %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %t1 = dmir.reduce sum %e1 {axes = array<i64: 1>, keepDims = false} : (tensor<8x8xf32>) -> tensor<8xf32>
  %b = dmir.div %e1, %t1 : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>

  %e2 = dmir.exp %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %t2 = dmir.reduce sum %e2 {axes = array<i64: 1>, keepDims = true} : (tensor<8x8xf32>) -> tensor<8x1xf32>
  %c = dmir.div %e2, %t2 : (tensor<8x8xf32>, tensor<8x1xf32>) -> tensor<8x8xf32>

  %e3 = dmir.exp %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %o3 = dmir.exp %y : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %t3 = dmir.reduce sum %o3 {axes = array<i64: 1>, keepDims = true} : (tensor<8x8xf32>) -> tensor<8x1xf32>
  %d = dmir.div %e3, %t3 : (tensor<8x8xf32>, tensor<8x1xf32>) -> tensor<8x8xf32>

  %e4 = dmir.exp %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %t4 = dmir.reduce sum %e4 {axes = array<i64: 0, 1>, keepDims = true} : (tensor<8x8xf32>) -> tensor<1x1xf32>
  %f = dmir.div %e4, %t4 : (tensor<8x8xf32>, tensor<1x1xf32>) -> tensor<8x8xf32>

  %m5 = dmir.reduce max %x {axes = array<i64: 0>, keepDims = true} : (tensor<8x8xf32>) -> tensor<1x8xf32>
  %s5 = dmir.sub %x, %m5 : (tensor<8x8xf32>, tensor<1x8xf32>) -> tensor<8x8xf32>
  %e5 = dmir.exp %s5 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %t5 = dmir.reduce sum %e5 {axes = array<i64: 1>, keepDims = true} : (tensor<8x8xf32>) -> tensor<8x1xf32>
  %g = dmir.div %e5, %t5 : (tensor<8x8xf32>, tensor<8x1xf32>) -> tensor<8x8xf32>
  return %a, %b, %c, %e2, %d, %f, %g
      : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// Scores of keys by queries: the operands exchanged, and what meets the scores turned. 12 queries, 10 keys.
// CHECK-LABEL: func @keys_first
// CHECK: %[[Q:.*]] = dmir.transpose %arg0 {permutation = array<i64: 0, 2, 1>} : (tensor<2x4x12xf32>) -> tensor<2x12x4xf32>
// CHECK: %[[S:.*]] = dmir.matmul {{.*}} : (tensor<2x12x4xf32>, tensor<2x4x10xf32>) -> tensor<2x12x10xf32>
// CHECK: %[[B:.*]] = dmir.transpose %arg3 {permutation = array<i64: 0, 2, 1>} : (tensor<1x10x12xf32>) -> tensor<1x12x10xf32>
// CHECK: %[[A:.*]] = dmir.add %[[S]], %[[B]]
// CHECK: %[[R:.*]] = dmir.reshape %arg4 : (tensor<12xf32>) -> tensor<1x1x12xf32>
// CHECK: %[[T:.*]] = dmir.transpose %[[R]] {permutation = array<i64: 0, 2, 1>} : (tensor<1x1x12xf32>) -> tensor<1x12x1xf32>
// CHECK: %[[M:.*]] = dmir.mul %[[A]], %[[T]] : (tensor<2x12x10xf32>, tensor<1x12x1xf32>) -> tensor<2x12x10xf32>
// CHECK: %[[W:.*]] = dmir.softmax %[[M]] {axis = 2 : i64}
// CHECK: dmir.matmul %[[W]], %arg2 : (tensor<2x12x10xf32>, tensor<2x10x6xf32>) -> tensor<2x12x6xf32>
func.func @keys_first(%q: tensor<2x4x12xf32>, %k: tensor<2x10x4xf32>, %v: tensor<2x10x6xf32>, %bias: tensor<1x10x12xf32>,
                      %row: tensor<12xf32>) -> tensor<2x12x6xf32> {
  %s = dmir.matmul %k, %q : (tensor<2x10x4xf32>, tensor<2x4x12xf32>) -> tensor<2x10x12xf32>
  %a = dmir.add %s, %bias : (tensor<2x10x12xf32>, tensor<1x10x12xf32>) -> tensor<2x10x12xf32>
  %m = dmir.mul %a, %row : (tensor<2x10x12xf32>, tensor<12xf32>) -> tensor<2x10x12xf32>
  %w = dmir.softmax %m {axis = 1 : i64} : (tensor<2x10x12xf32>) -> tensor<2x10x12xf32>
  %t = dmir.transpose %w {permutation = array<i64: 0, 2, 1>} : (tensor<2x10x12xf32>) -> tensor<2x12x10xf32>
  %r = dmir.matmul %t, %v : (tensor<2x12x10xf32>, tensor<2x10x6xf32>) -> tensor<2x12x6xf32>
  return %r : tensor<2x12x6xf32>
}

// -----

// Weights on the right: the result is turned. Scores that were transposed on the way, [q, k, head]: no transposes.
// CHECK-LABEL: func @moved
// CHECK: %[[W:.*]] = dmir.softmax {{.*}} {axis = 1 : i64} : (tensor<12x10xf32>) -> tensor<12x10xf32>
// CHECK: %[[V:.*]] = dmir.transpose %arg2 {{.*}} : (tensor<6x10xf32>) -> tensor<10x6xf32>
// CHECK: %[[R:.*]] = dmir.matmul %[[W]], %[[V]] : (tensor<12x10xf32>, tensor<10x6xf32>) -> tensor<12x6xf32>
// CHECK: dmir.transpose %[[R]] {permutation = array<i64: 1, 0>} : (tensor<12x6xf32>) -> tensor<6x12xf32>
// CHECK: %[[S:.*]] = dmir.matmul %arg3, %arg4
// CHECK-NEXT: %[[E:.*]] = dmir.tanh %[[S]] : (tensor<3x12x10xf32>) -> tensor<3x12x10xf32>
// CHECK-NEXT: %[[W2:.*]] = dmir.softmax %[[E]] {axis = 2 : i64}
// CHECK-NEXT: dmir.matmul %[[W2]], %arg5
func.func @moved(%q: tensor<4x12xf32>, %k: tensor<10x4xf32>, %v: tensor<6x10xf32>, %qh: tensor<3x12x4xf32>, %kh: tensor<3x4x10xf32>,
                 %vh: tensor<3x10x6xf32>) -> (tensor<6x12xf32>, tensor<3x12x6xf32>) {
  %s = dmir.matmul %k, %q : (tensor<10x4xf32>, tensor<4x12xf32>) -> tensor<10x12xf32>
  %w = dmir.softmax %s {axis = 0 : i64} : (tensor<10x12xf32>) -> tensor<10x12xf32>
  %r = dmir.matmul %v, %w : (tensor<6x10xf32>, tensor<10x12xf32>) -> tensor<6x12xf32>

  %sh = dmir.matmul %qh, %kh : (tensor<3x12x4xf32>, tensor<3x4x10xf32>) -> tensor<3x12x10xf32>
  %p = dmir.transpose %sh {permutation = array<i64: 1, 2, 0>} : (tensor<3x12x10xf32>) -> tensor<12x10x3xf32>
  %e = dmir.tanh %p : (tensor<12x10x3xf32>) -> tensor<12x10x3xf32>
  %wh = dmir.softmax %e {axis = 1 : i64} : (tensor<12x10x3xf32>) -> tensor<12x10x3xf32>
  %b = dmir.transpose %wh {permutation = array<i64: 2, 0, 1>} : (tensor<12x10x3xf32>) -> tensor<3x12x10xf32>
  %rh = dmir.matmul %b, %vh : (tensor<3x12x10xf32>, tensor<3x10x6xf32>) -> tensor<3x12x6xf32>
  return %r, %rh : tensor<6x12xf32>, tensor<3x12x6xf32>
}

// -----

// Left as they are: weights along the queries that the product sums over keys, an output, a product of constant weights,
// along an axis of heads.
// CHECK-LABEL: func @stay
// CHECK: dmir.softmax {{.*}} {axis = 0 : i64} : (tensor<10x10xf32>)
// CHECK: dmir.softmax {{.*}} {axis = 0 : i64} : (tensor<10x10xf32>)
// CHECK: dmir.softmax {{.*}} {axis = 0 : i64} : (tensor<10x10xf32>)
// CHECK: dmir.softmax {{.*}} {axis = 0 : i64} : (tensor<3x10x10xf32>)
// CHECK-NOT: dmir.transpose
func.func @stay(%q: tensor<4x10xf32>, %k: tensor<10x4xf32>, %v: tensor<10x6xf32>, %sh: tensor<3x10x4xf32>, %th: tensor<3x4x10xf32>,
                %vh: tensor<3x10x6xf32>) -> (tensor<10x6xf32>, tensor<10x10xf32>, tensor<6x10xf32>, tensor<3x10x6xf32>) {
  %s = dmir.matmul %k, %q : (tensor<10x4xf32>, tensor<4x10xf32>) -> tensor<10x10xf32>
  %w = dmir.softmax %s {axis = 0 : i64} : (tensor<10x10xf32>) -> tensor<10x10xf32>
  %r = dmir.matmul %w, %v : (tensor<10x10xf32>, tensor<10x6xf32>) -> tensor<10x6xf32>
  %s1 = dmir.matmul %k, %q : (tensor<10x4xf32>, tensor<4x10xf32>) -> tensor<10x10xf32>
  %w1 = dmir.softmax %s1 {axis = 0 : i64} : (tensor<10x10xf32>) -> tensor<10x10xf32>
  %c = dmir.constant dense<0.5> : tensor<4x10xf32>
  %d = dmir.constant dense<0.5> : tensor<6x10xf32>
  %s2 = dmir.matmul %k, %c : (tensor<10x4xf32>, tensor<4x10xf32>) -> tensor<10x10xf32>
  %w2 = dmir.softmax %s2 {axis = 0 : i64} : (tensor<10x10xf32>) -> tensor<10x10xf32>
  %r2 = dmir.matmul %d, %w2 : (tensor<6x10xf32>, tensor<10x10xf32>) -> tensor<6x10xf32>
  %s3 = dmir.matmul %sh, %th : (tensor<3x10x4xf32>, tensor<3x4x10xf32>) -> tensor<3x10x10xf32>
  %w3 = dmir.softmax %s3 {axis = 0 : i64} : (tensor<3x10x10xf32>) -> tensor<3x10x10xf32>
  %r3 = dmir.matmul %w3, %vh : (tensor<3x10x10xf32>, tensor<3x10x6xf32>) -> tensor<3x10x6xf32>
  return %r, %w1, %r2, %r3 : tensor<10x6xf32>, tensor<10x10xf32>, tensor<6x10xf32>, tensor<3x10x6xf32>
}
