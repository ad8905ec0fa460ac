// Folds that hold for every value, and near misses that must not fold.
// RUN: dmx-opt %s -canonicalize | FileCheck %s

// CHECK-LABEL: func @neutral
// CHECK-SAME: (%[[X:.*]]: tensor<2x3xf32>)
// CHECK-NEXT: return %[[X]], %[[X]], %[[X]], %[[X]]
func.func @neutral(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  %minus_zero = dmir.constant dense<-0.0> : tensor<f32>
  %zero = dmir.constant dense<0.0> : tensor<3xf32>
  %one = dmir.constant dense<1.0> : tensor<1x1xf32>
  %0 = dmir.add %minus_zero, %x : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = dmir.sub %x, %zero : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %2 = dmir.mul %x, %one : (tensor<2x3xf32>, tensor<1x1xf32>) -> tensor<2x3xf32>
  %3 = dmir.div %x, %one : (tensor<2x3xf32>, tensor<1x1xf32>) -> tensor<2x3xf32>
  return %0, %1, %2, %3 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

// x + 0.0 turns -0.0 into 0.0, 1 / x is not x, and a broadcast is not its operand.
// CHECK-LABEL: func @not_neutral
// CHECK: dmir.add
// CHECK: dmir.div
// CHECK: dmir.mul
func.func @not_neutral(%x: tensor<2x3xf32>, %small: tensor<3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  %zero = dmir.constant dense<0.0> : tensor<f32>
  %one = dmir.constant dense<1.0> : tensor<2x3xf32>
  %0 = dmir.add %x, %zero : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %1 = dmir.div %one, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = dmir.mul %small, %one : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0, %1, %2 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

// CHECK-LABEL: func @integer_zero
// CHECK-NEXT: return %arg0
func.func @integer_zero(%x: tensor<4xi32>) -> tensor<4xi32> {
  %zero = dmir.constant dense<0> : tensor<4xi32>
  %0 = dmir.add %x, %zero : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

// CHECK-LABEL: func @identities
// CHECK-NEXT: return %arg0, %arg0, %arg0, %arg0, %arg0, %arg0
func.func @identities(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = dmir.cast %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = dmir.reshape %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = dmir.broadcast %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = dmir.transpose %x {permutation = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = dmir.slice %x {starts = array<i64: 0, 0>, sizes = array<i64: 2, 3>, steps = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %5 = dmir.concat %x {axis = 0 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

// CHECK-LABEL: func @chains
// CHECK-NEXT: %[[R:.*]] = dmir.reshape %arg0 : (tensor<2x3x4xf32>) -> tensor<24xf32>
// CHECK-NEXT: %[[T:.*]] = dmir.transpose %arg0 {permutation = array<i64: 2, 1, 0>}
// CHECK-NEXT: return %[[R]], %[[T]]
func.func @chains(%x: tensor<2x3x4xf32>) -> (tensor<24xf32>, tensor<4x3x2xf32>) {
  %0 = dmir.reshape %x : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %1 = dmir.reshape %0 : (tensor<6x4xf32>) -> tensor<24xf32>
  %2 = dmir.transpose %x {permutation = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %3 = dmir.transpose %2 {permutation = array<i64: 1, 0, 2>} : (tensor<3x4x2xf32>) -> tensor<4x3x2xf32>
  return %1, %3 : tensor<24xf32>, tensor<4x3x2xf32>
}

// Moving an axis of size 1 moves no bytes.
// CHECK-LABEL: func @unit_axes
// CHECK-NEXT: dmir.reshape %arg0 : (tensor<1x4x8xf32>) -> tensor<4x1x8xf32>
// CHECK-NEXT: return
func.func @unit_axes(%x: tensor<1x4x8xf32>) -> tensor<4x1x8xf32> {
  %0 = dmir.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<1x4x8xf32>) -> tensor<4x1x8xf32>
  return %0 : tensor<4x1x8xf32>
}

// CHECK-LABEL: func @layouts
// CHECK-NEXT: return %arg0
func.func @layouts(%x: tensor<1x16x4x4xf32>) -> tensor<1x16x4x4xf32> {
  %0 = dmir.relayout %x : (tensor<1x16x4x4xf32>) -> tensor<1x16x4x4xf32, #dmir.blocked<1, 8>>
  %1 = dmir.relayout %0 : (tensor<1x16x4x4xf32, #dmir.blocked<1, 8>>) -> tensor<1x16x4x4xf32>
  return %1 : tensor<1x16x4x4xf32>
}

// CHECK-LABEL: func @reshape_of_constant
// CHECK-NEXT: dmir.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00, 5.000000e+00, 6.000000e+00]> : tensor<6xf32>
// CHECK-NEXT: return
func.func @reshape_of_constant() -> tensor<6xf32> {
  %w = dmir.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %0 = dmir.reshape %w : (tensor<2x3xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}
