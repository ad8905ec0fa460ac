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

// -----

// The flat rows of a product get their axes back, so that the residual can join it.
// CHECK-LABEL: func @rows_of_a_product
// CHECK: %[[X:.*]] = dmir.reshape %arg0 : (tensor<12x8xf32>) -> tensor<3x4x8xf32>
// CHECK-NEXT: %[[P:.*]] = dmir.matmul %[[X]], %arg1 : (tensor<3x4x8xf32>, tensor<8x16xf32>) -> tensor<3x4x16xf32>
// CHECK-NEXT: %[[B:.*]] = dmir.add %arg2, %[[P]] : (tensor<16xf32>, tensor<3x4x16xf32>) -> tensor<3x4x16xf32>
// CHECK-NEXT: %[[R:.*]] = dmir.relu %[[B]] : (tensor<3x4x16xf32>) -> tensor<3x4x16xf32>
// CHECK-NEXT: dmir.add %arg3, %[[R]]
func.func @rows_of_a_product(%x: tensor<12x8xf32>, %w: tensor<8x16xf32>, %b: tensor<16xf32>, %r: tensor<3x4x16xf32>)
    -> tensor<3x4x16xf32> {
  %0 = dmir.matmul %x, %w : (tensor<12x8xf32>, tensor<8x16xf32>) -> tensor<12x16xf32>
  %1 = dmir.add %b, %0 : (tensor<16xf32>, tensor<12x16xf32>) -> tensor<12x16xf32>
  %2 = dmir.relu %1 : (tensor<12x16xf32>) -> tensor<12x16xf32>
  %3 = dmir.reshape %2 : (tensor<12x16xf32>) -> tensor<3x4x16xf32>
  %4 = dmir.add %r, %3 : (tensor<3x4x16xf32>, tensor<3x4x16xf32>) -> tensor<3x4x16xf32>
  return %4 : tensor<3x4x16xf32>
}

// -----

// A residual has rows of its own, and a reshape that divides columns is none of the rows alone: both stay.
// CHECK-LABEL: func @rows_that_stay
// CHECK: dmir.matmul %arg0, %arg1 : (tensor<12x8xf32>, tensor<8x16xf32>) -> tensor<12x16xf32>
// CHECK: dmir.reshape {{.*}} -> tensor<3x4x16xf32>
// CHECK: dmir.matmul %arg0, %arg2 : (tensor<12x8xf32>, tensor<8x16xf32>) -> tensor<12x16xf32>
// CHECK: dmir.reshape {{.*}} -> tensor<3x4x2x8xf32>
func.func @rows_that_stay(%x: tensor<12x8xf32>, %w: tensor<8x16xf32>, %v: tensor<8x16xf32>, %r: tensor<12x16xf32>)
    -> (tensor<3x4x16xf32>, tensor<3x4x2x8xf32>) {
  %0 = dmir.matmul %x, %w : (tensor<12x8xf32>, tensor<8x16xf32>) -> tensor<12x16xf32>
  %1 = dmir.add %0, %r : (tensor<12x16xf32>, tensor<12x16xf32>) -> tensor<12x16xf32>
  %2 = dmir.reshape %1 : (tensor<12x16xf32>) -> tensor<3x4x16xf32>
  %3 = dmir.matmul %x, %v : (tensor<12x8xf32>, tensor<8x16xf32>) -> tensor<12x16xf32>
  %4 = dmir.reshape %3 : (tensor<12x16xf32>) -> tensor<3x4x2x8xf32>
  return %2, %4 : tensor<3x4x16xf32>, tensor<3x4x2x8xf32>
}

// -----

// Rows that are written one after the other are the parts of one concat; the second one cuts the first one's.
// CHECK-LABEL: func @rows_written
// CHECK-NEXT: %[[R:.*]] = dmir.slice %arg0 {sizes = array<i64: 2, 2>, starts = array<i64: 0, 2>
// CHECK-NEXT: dmir.concat %arg1, %arg2, %[[R]] {axis = 1 : i64}
// CHECK-NEXT: return
func.func @rows_written(%x: tensor<2x4xf32>, %a: tensor<2x1xf32>, %b: tensor<2x1xf32>) -> tensor<2x4xf32> {
  %0 = dmir.slice %x {starts = array<i64: 0, 1>, sizes = array<i64: 2, 3>, steps = array<i64: 1, 1>} : (tensor<2x4xf32>) -> tensor<2x3xf32>
  %1 = dmir.concat %a, %0 {axis = 1 : i64} : (tensor<2x1xf32>, tensor<2x3xf32>) -> tensor<2x4xf32>
  %2 = dmir.slice %1 {starts = array<i64: 0, 0>, sizes = array<i64: 2, 1>, steps = array<i64: 1, 1>} : (tensor<2x4xf32>) -> tensor<2x1xf32>
  %3 = dmir.slice %1 {starts = array<i64: 0, 2>, sizes = array<i64: 2, 2>, steps = array<i64: 1, 1>} : (tensor<2x4xf32>) -> tensor<2x2xf32>
  %4 = dmir.concat %2, %b, %3 {axis = 1 : i64} : (tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x2xf32>) -> tensor<2x4xf32>
  return %4 : tensor<2x4xf32>
}

// -----

// What is cut along another axis, with steps, or at places that a run brings stays.
// CHECK-LABEL: func @other_cuts
// CHECK: dmir.concat %arg0, %arg0 {axis = 0 : i64}
// CHECK-NEXT: %[[S:.*]] = dmir.slice
// CHECK-NEXT: dmir.concat %[[S]], %arg1 {axis = 1 : i64}
// CHECK-NEXT: dmir.concat %arg1, %arg1 {axis = 1 : i64}
// CHECK-NEXT: dmir.slice
func.func @other_cuts(%x: tensor<2x4xf32>, %a: tensor<2x2xf32>) -> (tensor<2x4xf32>, tensor<2x2xf32>) {
  %0 = dmir.concat %x, %x {axis = 0 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %1 = dmir.slice %0 {starts = array<i64: 1, 0>, sizes = array<i64: 2, 2>, steps = array<i64: 1, 1>} : (tensor<4x4xf32>) -> tensor<2x2xf32>
  %2 = dmir.concat %1, %a {axis = 1 : i64} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x4xf32>
  %3 = dmir.concat %a, %a {axis = 1 : i64} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x4xf32>
  %4 = dmir.slice %3 {starts = array<i64: 0, 0>, sizes = array<i64: 2, 2>, steps = array<i64: 1, 2>} : (tensor<2x4xf32>) -> tensor<2x2xf32>
  return %2, %4 : tensor<2x4xf32>, tensor<2x2xf32>
}
