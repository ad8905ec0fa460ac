// RUN: dmx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(dmir-form-regions))' | FileCheck %s

// Bias, activation and residual are written through the matmul; the scalar is inside, the bias an operand.
// CHECK-LABEL: func @epilogue
// CHECK-COUNT-1: dmir.region "cpu"
// CHECK: dmir.matmul
// CHECK-NEXT: dmir.add
// CHECK-NEXT: dmir.relu
// CHECK-NEXT: dmir.add
// CHECK-NOT: dmir.region
func.func @epilogue(%x: tensor<8x16xf32>, %w: tensor<16x32xf32>, %b: tensor<32xf32>, %r: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %0 = dmir.matmul %x, %w : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %1 = dmir.add %0, %b : (tensor<8x32xf32>, tensor<32xf32>) -> tensor<8x32xf32>
  %2 = dmir.relu %1 : (tensor<8x32xf32>) -> tensor<8x32xf32>
  %3 = dmir.add %2, %r : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  return %3 : tensor<8x32xf32>
}

// -----

// A value with two users ends its region.
// CHECK-LABEL: func @two_users
// CHECK-COUNT-2: dmir.region "cpu"
func.func @two_users(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = dmir.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %1 = dmir.neg %0 : (tensor<8xf32>) -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// -----

// An elementwise chain is one region, used twice inside or not.
// CHECK-LABEL: func @chain
// CHECK-COUNT-1: dmir.region "cpu"
// CHECK-NOT: dmir.region
func.func @chain(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c = dmir.constant dense<2.0> : tensor<f32>
  %0 = dmir.mul %x, %c : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %1 = dmir.exp %0 : (tensor<8xf32>) -> tensor<8xf32>
  %2 = dmir.add %0, %1 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}
