// RUN: dmx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(dmir-assign-layouts))' | FileCheck %s

// A chain of convolutions runs blocked; it is entered and left once.
// CHECK-LABEL: func @chain
// CHECK: %[[X:.*]] = dmir.relayout %arg0 : (tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32, #dmir.blocked<1, 16>>
// CHECK: dmir.conv %[[X]]
// CHECK-NOT: dmir.relayout
// CHECK: dmir.relu {{.*}} -> tensor<1x32x8x8xf32, #dmir.blocked<1, 16>>
// CHECK: %[[C:.*]] = dmir.conv
// CHECK: %[[R:.*]] = dmir.relayout %[[C]]
// CHECK: return %[[R]] : tensor<1x32x8x8xf32>
func.func @chain(%x: tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32> {
  %w = dmir.constant dense<1.0> : tensor<32x32x3x3xf32>
  %0 = dmir.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 1, 1>} : (tensor<1x32x8x8xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x8x8xf32>
  %1 = dmir.relu %0 : (tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32>
  %2 = dmir.conv %1, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 1, 1>} : (tensor<1x32x8x8xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x8x8xf32>
  return %2 : tensor<1x32x8x8xf32>
}

// -----

// Without convolutions everything stays row-major.
// CHECK-LABEL: func @plain
// CHECK-NOT: blocked
func.func @plain(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = dmir.relu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// Open batch and spatial dims run blocked as well; weights of an open shape do not.
// CHECK-LABEL: func @open
// CHECK: %[[C:.*]] = dmir.conv %arg0, {{.*}} -> tensor<?x32x?xf32, [#dmir.dims<"n", "h">, #dmir.blocked<1, 16>]>
// CHECK: %[[R:.*]] = dmir.relayout %[[C]]
// CHECK: dmir.conv %[[R]], %arg1 {{.*}} -> tensor<?x32x?xf32, #dmir.dims<"n", "h">>
// CHECK-NOT: blocked
// CHECK: return
func.func @open(%x: tensor<?x3x?xf32, #dmir.dims<"n", "h">>, %u: tensor<32x32x?xf32, #dmir.dims<"k">>) -> tensor<?x32x?xf32, #dmir.dims<"n", "h">> {
  %w = dmir.constant dense<1.0> : tensor<32x3x3xf32>
  %0 = dmir.conv %x, %w {strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 1>, high = array<i64: 1>} : (tensor<?x3x?xf32, #dmir.dims<"n", "h">>, tensor<32x3x3xf32>) -> tensor<?x32x?xf32, #dmir.dims<"n", "h">>
  %1 = dmir.conv %0, %u {strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 1>, high = array<i64: 1>} : (tensor<?x32x?xf32, #dmir.dims<"n", "h">>, tensor<32x32x?xf32, #dmir.dims<"k">>) -> tensor<?x32x?xf32, #dmir.dims<"n", "h">>
  return %1 : tensor<?x32x?xf32, #dmir.dims<"n", "h">>
}
