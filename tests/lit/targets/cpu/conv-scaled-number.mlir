// The input of a 1x1 convolution is a product with a number, which has no axes: it is no factor of channels.
// REQUIRES: frontend-mlir
// RUN: dmxc %s -t cpu -o %t.bundle
// RUN: dmx-run %t.bundle --entry left --random-inputs 1 | FileCheck %s
// RUN: dmx-run %t.bundle --entry right --random-inputs 1 | FileCheck %s

// CHECK: y: f32 1x2x3, min {{.*}}, max
func.func @left(%x: tensor<1x3x3xf32> {dmir.name = "x"}) -> (tensor<1x2x3xf32> {dmir.name = "y"}) {
  %w = dmir.constant dense<0.5> : tensor<2x3x1xf32>
  %s = dmir.constant dense<0.25> : tensor<f32>
  %m = dmir.mul %s, %x : (tensor<f32>, tensor<1x3x3xf32>) -> tensor<1x3x3xf32>
  %y = dmir.conv %m, %w {strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>, high = array<i64: 0>} : (tensor<1x3x3xf32>, tensor<2x3x1xf32>) -> tensor<1x2x3xf32>
  return %y : tensor<1x2x3xf32>
}

func.func @right(%x: tensor<1x3x3xf32> {dmir.name = "x"}) -> (tensor<1x2x3xf32> {dmir.name = "y"}) {
  %w = dmir.constant dense<0.5> : tensor<2x3x1xf32>
  %s = dmir.constant dense<0.25> : tensor<f32>
  %m = dmir.mul %x, %s : (tensor<1x3x3xf32>, tensor<f32>) -> tensor<1x3x3xf32>
  %y = dmir.conv %m, %w {strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>, high = array<i64: 0>} : (tensor<1x3x3xf32>, tensor<2x3x1xf32>) -> tensor<1x2x3xf32>
  return %y : tensor<1x2x3xf32>
}
