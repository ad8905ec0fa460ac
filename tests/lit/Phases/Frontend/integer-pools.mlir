// RUN: dmx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(dmir-integer-pools,dmir-fold-constants,dmir-simplify))' | FileCheck %s

// CHECK-LABEL: func @same_scale
// CHECK: %[[R:.*]] = dmir.pool max %arg0 {{.*}} : (tensor<1x3x4x4xui8>) -> tensor<1x3x2x2xui8>
// CHECK-NEXT: return %[[R]]
func.func @same_scale(%x: tensor<1x3x4x4xui8>) -> tensor<1x3x2x2xui8> {
  %z = dmir.constant dense<7> : tensor<i32>
  %s = dmir.constant dense<0.3> : tensor<f32>
  %zf = dmir.constant dense<7.0> : tensor<f32>
  %lo = dmir.constant dense<0.0> : tensor<f32>
  %hi = dmir.constant dense<255.0> : tensor<f32>
  %0 = dmir.cast %x : (tensor<1x3x4x4xui8>) -> tensor<1x3x4x4xi32>
  %1 = dmir.sub %0, %z : (tensor<1x3x4x4xi32>, tensor<i32>) -> tensor<1x3x4x4xi32>
  %2 = dmir.cast %1 : (tensor<1x3x4x4xi32>) -> tensor<1x3x4x4xf32>
  %3 = dmir.mul %2, %s : (tensor<1x3x4x4xf32>, tensor<f32>) -> tensor<1x3x4x4xf32>
  %4 = dmir.pool max %3 {window = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>, ceilExtra = array<i64: 0, 0>} : (tensor<1x3x4x4xf32>) -> tensor<1x3x2x2xf32>
  %5 = dmir.div %4, %s : (tensor<1x3x2x2xf32>, tensor<f32>) -> tensor<1x3x2x2xf32>
  %6 = dmir.round %5 : (tensor<1x3x2x2xf32>) -> tensor<1x3x2x2xf32>
  %7 = dmir.add %6, %zf : (tensor<1x3x2x2xf32>, tensor<f32>) -> tensor<1x3x2x2xf32>
  %8 = dmir.max %7, %lo : (tensor<1x3x2x2xf32>, tensor<f32>) -> tensor<1x3x2x2xf32>
  %9 = dmir.min %8, %hi : (tensor<1x3x2x2xf32>, tensor<f32>) -> tensor<1x3x2x2xf32>
  %10 = dmir.cast %9 : (tensor<1x3x2x2xf32>) -> tensor<1x3x2x2xui8>
  return %10 : tensor<1x3x2x2xui8>
}

// -----

// Another scale, or an average: the bytes change.
// CHECK-LABEL: func @other_scale
// CHECK: dmir.pool max {{.*}} -> tensor<1x3x2x2xf32>
// CHECK: dmir.div
func.func @other_scale(%x: tensor<1x3x4x4xui8>) -> tensor<1x3x2x2xui8> {
  %s = dmir.constant dense<0.3> : tensor<f32>
  %t = dmir.constant dense<0.4> : tensor<f32>
  %lo = dmir.constant dense<0.0> : tensor<f32>
  %hi = dmir.constant dense<255.0> : tensor<f32>
  %0 = dmir.cast %x : (tensor<1x3x4x4xui8>) -> tensor<1x3x4x4xi32>
  %2 = dmir.cast %0 : (tensor<1x3x4x4xi32>) -> tensor<1x3x4x4xf32>
  %3 = dmir.mul %2, %s : (tensor<1x3x4x4xf32>, tensor<f32>) -> tensor<1x3x4x4xf32>
  %4 = dmir.pool max %3 {window = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>, ceilExtra = array<i64: 0, 0>} : (tensor<1x3x4x4xf32>) -> tensor<1x3x2x2xf32>
  %5 = dmir.div %4, %t : (tensor<1x3x2x2xf32>, tensor<f32>) -> tensor<1x3x2x2xf32>
  %6 = dmir.round %5 : (tensor<1x3x2x2xf32>) -> tensor<1x3x2x2xf32>
  %8 = dmir.max %6, %lo : (tensor<1x3x2x2xf32>, tensor<f32>) -> tensor<1x3x2x2xf32>
  %9 = dmir.min %8, %hi : (tensor<1x3x2x2xf32>, tensor<f32>) -> tensor<1x3x2x2xf32>
  %10 = dmir.cast %9 : (tensor<1x3x2x2xf32>) -> tensor<1x3x2x2xui8>
  return %10 : tensor<1x3x2x2xui8>
}
