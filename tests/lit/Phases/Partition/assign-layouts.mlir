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

// -----

// What moves pixels, and all channels of one alike, stays blocked between convolutions: resampling, reflecting, cropping.
// CHECK-LABEL: func @pixels
// CHECK: dmir.relayout %arg0
// CHECK: dmir.conv
// CHECK: dmir.gather {{.*}} -> tensor<1x32x8x16xf32, #dmir.blocked<1, 16>>
// CHECK: dmir.mul {{.*}} -> tensor<1x32x8x16xf32, #dmir.blocked<1, 16>>
// CHECK: dmir.pad {{.*}} -> tensor<1x32x10x16xf32, #dmir.blocked<1, 16>>
// CHECK: dmir.slice {{.*}} -> tensor<1x32x8x8xf32, #dmir.blocked<1, 16>>
// CHECK-NOT: dmir.relayout
// CHECK: dmir.conv
// CHECK: dmir.relayout
// CHECK: return
func.func @pixels(%x: tensor<1x32x8x8xf32>, %i: tensor<16xi64>, %s: tensor<16xf32>) -> tensor<1x32x8x8xf32> {
  %w = dmir.constant dense<1.0> : tensor<32x32x3x3xf32>
  %z = dmir.constant dense<0.0> : tensor<f32>
  %0 = dmir.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 1, 1>} : (tensor<1x32x8x8xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x8x8xf32>
  %1 = dmir.gather %0, %i {axis = 3 : i64} : (tensor<1x32x8x8xf32>, tensor<16xi64>) -> tensor<1x32x8x16xf32>
  %2 = dmir.mul %1, %s : (tensor<1x32x8x16xf32>, tensor<16xf32>) -> tensor<1x32x8x16xf32>
  %3 = dmir.pad %2, %z {low = array<i64: 0, 0, 1, 0>, high = array<i64: 0, 0, 1, 0>, interior = array<i64: 0, 0, 0, 0>, mode = #dmir<pad_mode reflect>} : (tensor<1x32x8x16xf32>, tensor<f32>) -> tensor<1x32x10x16xf32>
  %4 = dmir.slice %3 {starts = array<i64: 0, 0, 1, 0>, sizes = array<i64: 1, 32, 8, 8>, steps = array<i64: 1, 1, 1, 2>} : (tensor<1x32x10x16xf32>) -> tensor<1x32x8x8xf32>
  %5 = dmir.conv %4, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 1, 1>} : (tensor<1x32x8x8xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x8x8xf32>
  return %5 : tensor<1x32x8x8xf32>
}

// -----

// What mixes channels or images leaves the layout.
// CHECK-LABEL: func @channels
// CHECK: dmir.conv
// CHECK: dmir.relayout
// CHECK: dmir.gather {{.*}} -> tensor<1x16x8x8xf32>
// CHECK: dmir.slice {{.*}} -> tensor<1x16x8x8xf32>
// CHECK: dmir.pad {{.*}} -> tensor<1x33x8x8xf32>
func.func @channels(%x: tensor<1x32x8x8xf32>, %i: tensor<16xi64>) -> (tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32>, tensor<1x33x8x8xf32>) {
  %w = dmir.constant dense<1.0> : tensor<32x32x3x3xf32>
  %z = dmir.constant dense<0.0> : tensor<f32>
  %0 = dmir.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 1, 1>} : (tensor<1x32x8x8xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x8x8xf32>
  %1 = dmir.gather %0, %i {axis = 1 : i64} : (tensor<1x32x8x8xf32>, tensor<16xi64>) -> tensor<1x16x8x8xf32>
  %2 = dmir.slice %0 {starts = array<i64: 0, 8, 0, 0>, sizes = array<i64: 1, 16, 8, 8>, steps = array<i64: 1, 1, 1, 1>} : (tensor<1x32x8x8xf32>) -> tensor<1x16x8x8xf32>
  %3 = dmir.pad %0, %z {low = array<i64: 0, 1, 0, 0>, high = array<i64: 0, 0, 0, 0>, interior = array<i64: 0, 0, 0, 0>} : (tensor<1x32x8x8xf32>, tensor<f32>) -> tensor<1x33x8x8xf32>
  return %1, %2, %3 : tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32>, tensor<1x33x8x8xf32>
}

// -----

// A result that is only read row by row is written so, of an image in whichever layout it has; one that another convolution reads is not.
// CHECK-LABEL: func @rows
// CHECK: %[[X:.*]] = dmir.relayout %arg0
// CHECK: %[[A:.*]] = dmir.conv %[[X]], {{.*}} -> tensor<1x32x8x8xf32, #dmir.blocked<1, 16>>
// CHECK: %[[B:.*]] = dmir.conv %[[A]], {{.*}} -> tensor<1x32x8x8xf32>
// CHECK-NOT: dmir.relayout
// CHECK: return
func.func @rows(%x: tensor<1x32x8x8xf32>) -> tensor<1x32x64xf32> {
  %w = dmir.constant dense<1.0> : tensor<32x32x1x1xf32>
  %0 = dmir.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>} : (tensor<1x32x8x8xf32>, tensor<32x32x1x1xf32>) -> tensor<1x32x8x8xf32>
  %1 = dmir.conv %0, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>} : (tensor<1x32x8x8xf32>, tensor<32x32x1x1xf32>) -> tensor<1x32x8x8xf32>
  %2 = dmir.relu %1 : (tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32>
  %3 = dmir.reshape %2 : (tensor<1x32x8x8xf32>) -> tensor<1x32x64xf32>
  return %3 : tensor<1x32x64xf32>
}

// -----

// Its image may be row-major where all pixels are one row, and what is fused reads nothing else that has a pixel's place.
// CHECK-LABEL: func @alone
// CHECK-NOT: dmir.relayout
// CHECK: dmir.conv %arg0, {{.*}} -> tensor<1x32x8x8xf32>
// CHECK-NOT: blocked
// CHECK: return
func.func @alone(%x: tensor<1x32x8x8xf32>, %y: tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32> {
  %w = dmir.constant dense<1.0> : tensor<32x32x1x1xf32>
  %0 = dmir.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>} : (tensor<1x32x8x8xf32>, tensor<32x32x1x1xf32>) -> tensor<1x32x8x8xf32>
  %1 = dmir.add %0, %y : (tensor<1x32x8x8xf32>, tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32>
  return %1 : tensor<1x32x8x8xf32>
}

// -----

// What is turned behind it leaves blocks as well as rows.
// CHECK-LABEL: func @turned
// CHECK: dmir.conv {{.*}} -> tensor<1x32x8x8xf32, #dmir.blocked<1, 16>>
// CHECK: dmir.relayout
// CHECK: dmir.transpose
func.func @turned(%x: tensor<1x32x8x8xf32>) -> tensor<1x64x32xf32> {
  %w = dmir.constant dense<1.0> : tensor<32x32x1x1xf32>
  %0 = dmir.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>} : (tensor<1x32x8x8xf32>, tensor<32x32x1x1xf32>) -> tensor<1x32x8x8xf32>
  %1 = dmir.reshape %0 : (tensor<1x32x8x8xf32>) -> tensor<1x32x64xf32>
  %2 = dmir.transpose %1 {permutation = array<i64: 0, 2, 1>} : (tensor<1x32x64xf32>) -> tensor<1x64x32xf32>
  return %2 : tensor<1x64x32xf32>
}
