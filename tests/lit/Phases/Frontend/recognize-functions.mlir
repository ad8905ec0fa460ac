// RUN: dmx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(dmir-recognize-functions))' | FileCheck %s

// CHECK-LABEL: func @quotient
// CHECK: %[[R:.*]] = dmir.log2 %arg0 : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[R]]
func.func @quotient(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = dmir.constant dense<0.693147182> : tensor<f32>
  %0 = dmir.log %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = dmir.div %0, %c : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// The logarithm of a constant is one: log(x) / log(2). What else reads the logarithm keeps it.
// CHECK-LABEL: func @product
// CHECK: %[[L:.*]] = dmir.log %arg0 : (tensor<4xf64>) -> tensor<4xf64>
// CHECK: %[[R:.*]] = dmir.log2 %arg0 : (tensor<4xf64>) -> tensor<4xf64>
// CHECK: %[[Q:.*]] = dmir.log2 %arg0 : (tensor<4xf64>) -> tensor<4xf64>
// CHECK: return %[[L]], %[[R]], %[[Q]]
func.func @product(%x: tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>, tensor<4xf64>) {
  %c = dmir.constant dense<1.4426950408889634> : tensor<f64>
  %two = dmir.constant dense<2.0> : tensor<f64>
  %ln2 = dmir.log %two : (tensor<f64>) -> tensor<f64>
  %0 = dmir.log %x : (tensor<4xf64>) -> tensor<4xf64>
  %1 = dmir.mul %c, %0 : (tensor<f64>, tensor<4xf64>) -> tensor<4xf64>
  %2 = dmir.div %0, %ln2 : (tensor<4xf64>, tensor<f64>) -> tensor<4xf64>
  return %0, %1, %2 : tensor<4xf64>, tensor<4xf64>, tensor<4xf64>
}

// -----

// Other numbers, and another shape.
// CHECK-LABEL: func @others
// CHECK-NOT: dmir.log2
// CHECK: return
func.func @others(%x: tensor<4xf32>, %y: tensor<1xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %c = dmir.constant dense<0.6931> : tensor<f32>
  %d = dmir.constant dense<0.693147182> : tensor<f32>
  %e = dmir.constant dense<0.693147182> : tensor<4xf32>
  %0 = dmir.log %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = dmir.div %0, %c : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = dmir.mul %0, %d : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %3 = dmir.log %y : (tensor<1xf32>) -> tensor<1xf32>
  %4 = dmir.div %3, %e : (tensor<1xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1, %2, %4 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
