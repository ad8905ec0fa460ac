// RUN: dmx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(dmir-fold-scaling,dmir-fold-constants))' | FileCheck %s

// Bias, then batch norm's scale and shift: one convolution and one bias remain.
// CHECK-LABEL: func @batch_norm
// CHECK: %[[W:.*]] = dmir.constant dense<{{.*}}2.000000e+00{{.*}}6.000000e+00{{.*}}> : tensor<2x1x1x1xf32>
// CHECK: %[[C:.*]] = dmir.conv %arg0, %[[W]]
// CHECK: %[[B:.*]] = dmir.constant dense<{{.*}}1.200000e+01{{.*}}3.500000e+01{{.*}}> : tensor<1x2x1x1xf32>
// CHECK: %[[R:.*]] = dmir.add %[[C]], %[[B]]
// CHECK: return %[[R]]
func.func @batch_norm(%x: tensor<1x1x4x4xf32>) -> tensor<1x2x4x4xf32> {
  %w = dmir.constant dense<[[[[1.0]]], [[[2.0]]]]> : tensor<2x1x1x1xf32>
  %b = dmir.constant dense<[[[[5.0]], [[10.0]]]]> : tensor<1x2x1x1xf32>
  %s = dmir.constant dense<[[[[2.0]], [[3.0]]]]> : tensor<1x2x1x1xf32>
  %t = dmir.constant dense<[[[[2.0]], [[5.0]]]]> : tensor<1x2x1x1xf32>
  %0 = dmir.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>} : (tensor<1x1x4x4xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x4x4xf32>
  %1 = dmir.add %0, %b : (tensor<1x2x4x4xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %2 = dmir.mul %1, %s : (tensor<1x2x4x4xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %3 = dmir.add %2, %t : (tensor<1x2x4x4xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  return %3 : tensor<1x2x4x4xf32>
}

// -----

// A result with another user keeps its weights.
// CHECK-LABEL: func @two_users
// CHECK: dmir.mul
func.func @two_users(%x: tensor<1x1x4x4xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) {
  %w = dmir.constant dense<1.0> : tensor<2x1x1x1xf32>
  %s = dmir.constant dense<[[[[2.0]], [[3.0]]]]> : tensor<1x2x1x1xf32>
  %0 = dmir.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>} : (tensor<1x1x4x4xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x4x4xf32>
  %1 = dmir.mul %0, %s : (tensor<1x2x4x4xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  return %0, %1 : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>
}
