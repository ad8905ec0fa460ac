// RUN: dmx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(dmir-simplify))' | FileCheck %s

// CHECK-LABEL: func @broadcast_operand
// CHECK-NEXT: dmir.add %arg0, %arg1 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
func.func @broadcast_operand(%x: tensor<2x3xf32>, %b: tensor<3xf32>) -> tensor<2x3xf32> {
  %0 = dmir.broadcast %b : (tensor<3xf32>) -> tensor<2x3xf32>
  %1 = dmir.add %x, %0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// -----

// Here the broadcast gives the result its shape: it stays.
// CHECK-LABEL: func @broadcast_needed
// CHECK: dmir.broadcast
func.func @broadcast_needed(%b: tensor<3xf32>, %c: tensor<3xf32>) -> tensor<2x3xf32> {
  %0 = dmir.broadcast %b : (tensor<3xf32>) -> tensor<2x3xf32>
  %1 = dmir.add %0, %c : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// -----

// x + 0.0 is not x for x = -0.0; x + -0.0 is.
// CHECK-LABEL: func @zeros
// CHECK: %[[A:.*]] = dmir.add %arg0
// CHECK: return %[[A]], %arg0
func.func @zeros(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %p = dmir.constant dense<0.0> : tensor<f32>
  %n = dmir.constant dense<-0.0> : tensor<f32>
  %0 = dmir.add %x, %p : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %1 = dmir.add %x, %n : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  return %0, %1 : tensor<3xf32>, tensor<3xf32>
}

// -----

// CHECK-LABEL: func @transposes
// CHECK-NEXT: return %arg0
func.func @transposes(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = dmir.transpose %x {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = dmir.transpose %0 {permutation = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}
