// RUN: dmx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(dmir-fold-constants))' | FileCheck %s

// A chain of constant ops leaves only its end.
// CHECK-LABEL: func @chain
// CHECK-NEXT: %[[C:.*]] = dmir.constant dense<[1.000000e+00, 3.000000e+00, 5.000000e+00]> : tensor<3xf32>
// CHECK-NEXT: dmir.mul %arg0, %[[C]]
func.func @chain(%x: tensor<3xf32>) -> tensor<3xf32> {
  %i = dmir.iota {axis = 0 : i64} : () -> tensor<3xf32>
  %two = dmir.constant dense<2.0> : tensor<f32>
  %one = dmir.constant dense<1.0> : tensor<f32>
  %a = dmir.mul %i, %two : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %b = dmir.add %a, %one : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %r = dmir.mul %x, %b : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// CHECK-LABEL: func @not_constant
// CHECK: dmir.exp
func.func @not_constant(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = dmir.exp %x : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

// A part of fixed size that starts where a run says is none.
// CHECK-LABEL: func @open_start
// CHECK: dmir.slice
func.func @open_start(%x: tensor<?xf32, #dmir.dims<"n">>) -> tensor<1xf32> {
  %t = dmir.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %0 = dmir.slice %t {starts = array<i64: -9223372036854775808>, sizes = array<i64: 1>, steps = array<i64: 1>, dims = #dmir.dims<"n">} : (tensor<3xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}
