// RUN: dmx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(dmir-group-heads))' | FileCheck %s

// Four heads in two groups: nothing is repeated, and both products have one batch axis more.
// CHECK-LABEL: func @attention
// CHECK-NOT: dmir.broadcast
// CHECK: %[[K:.*]] = dmir.reshape %arg1 {{.*}} -> tensor<1x2x1x?x8xf32, #dmir.dims<"t">>
// CHECK: %[[Q:.*]] = dmir.reshape %arg0 {{.*}} -> tensor<1x2x2x3x8xf32>
// CHECK: %[[S:.*]] = dmir.matmul %[[Q]], %{{.*}} -> tensor<1x2x2x3x?xf32, #dmir.dims<"t">>
// CHECK: dmir.reshape %[[S]] {{.*}} -> tensor<1x4x3x?xf32, #dmir.dims<"t">>
// CHECK: dmir.softmax
// CHECK: %[[R:.*]] = dmir.matmul %{{.*}}, %{{.*}} : (tensor<1x2x2x3x?xf32, #dmir.dims<"t">>, tensor<1x2x1x?x8xf32, #dmir.dims<"t">>) -> tensor<1x2x2x3x8xf32>
// CHECK: dmir.reshape %[[R]] {{.*}} -> tensor<1x4x3x8xf32>
func.func @attention(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x?x8xf32, #dmir.dims<"t">>, %v: tensor<1x2x?x8xf32, #dmir.dims<"t">>) -> tensor<1x4x3x8xf32> {
  %0 = dmir.reshape %k : (tensor<1x2x?x8xf32, #dmir.dims<"t">>) -> tensor<1x2x1x?x8xf32, #dmir.dims<"t">>
  %1 = dmir.broadcast %0 : (tensor<1x2x1x?x8xf32, #dmir.dims<"t">>) -> tensor<1x2x2x?x8xf32, #dmir.dims<"t">>
  %2 = dmir.reshape %1 : (tensor<1x2x2x?x8xf32, #dmir.dims<"t">>) -> tensor<1x4x?x8xf32, #dmir.dims<"t">>
  %3 = dmir.transpose %2 {permutation = array<i64: 0, 1, 3, 2>} : (tensor<1x4x?x8xf32, #dmir.dims<"t">>) -> tensor<1x4x8x?xf32, #dmir.dims<"t">>
  %4 = dmir.matmul %q, %3 : (tensor<1x4x3x8xf32>, tensor<1x4x8x?xf32, #dmir.dims<"t">>) -> tensor<1x4x3x?xf32, #dmir.dims<"t">>
  %5 = dmir.softmax %4 {axis = 3 : i64} : (tensor<1x4x3x?xf32, #dmir.dims<"t">>) -> tensor<1x4x3x?xf32, #dmir.dims<"t">>
  %6 = dmir.reshape %v : (tensor<1x2x?x8xf32, #dmir.dims<"t">>) -> tensor<1x2x1x?x8xf32, #dmir.dims<"t">>
  %7 = dmir.broadcast %6 : (tensor<1x2x1x?x8xf32, #dmir.dims<"t">>) -> tensor<1x2x2x?x8xf32, #dmir.dims<"t">>
  %8 = dmir.reshape %7 : (tensor<1x2x2x?x8xf32, #dmir.dims<"t">>) -> tensor<1x4x?x8xf32, #dmir.dims<"t">>
  %9 = dmir.matmul %5, %8 : (tensor<1x4x3x?xf32, #dmir.dims<"t">>, tensor<1x4x?x8xf32, #dmir.dims<"t">>) -> tensor<1x4x3x8xf32>
  return %9 : tensor<1x4x3x8xf32>
}

// -----

// Keys that are scaled behind the repeat: the queries are, in their place.
// CHECK-LABEL: func @scaled
// CHECK-NOT: dmir.broadcast
// CHECK: %[[Q:.*]] = dmir.mul %arg0
// CHECK: %[[G:.*]] = dmir.reshape %[[Q]]
// CHECK: dmir.matmul %[[G]], %{{.*}} : (tensor<2x2x3x8xf32>, tensor<2x1x8x5xf32>) -> tensor<2x2x3x5xf32>
func.func @scaled(%q: tensor<4x3x8xf32>, %k: tensor<2x1x5x8xf32>) -> tensor<4x3x5xf32> {
  %s = dmir.constant dense<0.5> : tensor<f32>
  %0 = dmir.broadcast %k : (tensor<2x1x5x8xf32>) -> tensor<2x2x5x8xf32>
  %1 = dmir.reshape %0 : (tensor<2x2x5x8xf32>) -> tensor<4x5x8xf32>
  %2 = dmir.transpose %1 {permutation = array<i64: 0, 2, 1>} : (tensor<4x5x8xf32>) -> tensor<4x8x5xf32>
  %3 = dmir.mul %2, %s : (tensor<4x8x5xf32>, tensor<f32>) -> tensor<4x8x5xf32>
  %4 = dmir.matmul %q, %3 : (tensor<4x3x8xf32>, tensor<4x8x5xf32>) -> tensor<4x3x5xf32>
  return %4 : tensor<4x3x5xf32>
}

// -----

// Matrices that alternate are no groups of neighbours, and one left matrix for all heads has none.
// CHECK-LABEL: func @others
// CHECK: dmir.broadcast
// CHECK: dmir.broadcast
func.func @others(%q: tensor<4x3x8xf32>, %p: tensor<1x3x8xf32>, %k: tensor<1x2x8x5xf32>, %l: tensor<2x1x8x5xf32>) -> (tensor<4x3x5xf32>, tensor<4x3x5xf32>) {
  %0 = dmir.broadcast %k : (tensor<1x2x8x5xf32>) -> tensor<2x2x8x5xf32>
  %1 = dmir.reshape %0 : (tensor<2x2x8x5xf32>) -> tensor<4x8x5xf32>
  %2 = dmir.matmul %q, %1 : (tensor<4x3x8xf32>, tensor<4x8x5xf32>) -> tensor<4x3x5xf32>
  %3 = dmir.broadcast %l : (tensor<2x1x8x5xf32>) -> tensor<2x2x8x5xf32>
  %4 = dmir.reshape %3 : (tensor<2x2x8x5xf32>) -> tensor<4x8x5xf32>
  %5 = dmir.matmul %p, %4 : (tensor<1x3x8xf32>, tensor<4x8x5xf32>) -> tensor<4x3x5xf32>
  return %2, %5 : tensor<4x3x5xf32>, tensor<4x3x5xf32>
}
