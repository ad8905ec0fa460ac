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

// -----

// RMSNorm, squared by a product, and by a power; divided by the root, and multiplied by its inverse.
// CHECK-LABEL: func @rms
// CHECK: %[[A:.*]] = dmir.normalize rms %arg0 {axes = array<i64: 1>, epsilon = {{.*}}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT: %[[B:.*]] = dmir.normalize rms %arg0
// CHECK-NEXT: return %[[A]], %[[B]]
func.func @rms(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %e = dmir.constant dense<1.0e-6> : tensor<f32>
  %two = dmir.constant dense<2.0> : tensor<f32>
  %eighth = dmir.constant dense<0.125> : tensor<f32>
  %0 = dmir.mul %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = dmir.reduce mean %0 {axes = array<i64: 1>, keepDims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %2 = dmir.add %1, %e : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %3 = dmir.sqrt %2 : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %4 = dmir.div %x, %3 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %5 = dmir.pow %x, %two : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %6 = dmir.reduce sum %5 {axes = array<i64: 1>, keepDims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %7 = dmir.mul %6, %eighth : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %8 = dmir.add %e, %7 : (tensor<f32>, tensor<4x1xf32>) -> tensor<4x1xf32>
  %9 = dmir.sqrt %8 : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %10 = dmir.reciprocal %9 : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %11 = dmir.mul %10, %x : (tensor<4x1xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %4, %11 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// LayerNorm, whose difference is computed twice; the mean has another reader and stays.
// CHECK-LABEL: func @standard
// CHECK: %[[M:.*]] = dmir.reduce mean %arg0
// CHECK-NEXT: %[[N:.*]] = dmir.normalize standard %arg0 {axes = array<i64: 1>, epsilon = {{.*}}}
// CHECK-NEXT: return %[[N]], %[[M]]
func.func @standard(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x1xf32>) {
  %e = dmir.constant dense<1.0e-5> : tensor<1xf32>
  %0 = dmir.reduce mean %x {axes = array<i64: 1>, keepDims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %1 = dmir.sub %x, %0 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %2 = dmir.sub %x, %0 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %3 = dmir.mul %2, %2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = dmir.reduce mean %3 {axes = array<i64: 1>, keepDims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %5 = dmir.add %4, %e : (tensor<4x1xf32>, tensor<1xf32>) -> tensor<4x1xf32>
  %6 = dmir.sqrt %5 : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %7 = dmir.div %1, %6 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %7, %0 : tensor<4x8xf32>, tensor<4x1xf32>
}

// -----

// No norms: of another value, over other axes, of a sum that is no mean, the root over the value, a variance of n - 1.
// CHECK-LABEL: func @near_norms
// CHECK-NOT: dmir.normalize
// CHECK: return
func.func @near_norms(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %seven = dmir.constant dense<7.0> : tensor<f32>
  %0 = dmir.mul %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = dmir.reduce mean %0 {axes = array<i64: 1>, keepDims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %2 = dmir.sqrt %1 : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %3 = dmir.div %y, %2 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %4 = dmir.reduce sum %0 {axes = array<i64: 1>, keepDims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %5 = dmir.sqrt %4 : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %6 = dmir.div %x, %5 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %7 = dmir.div %2, %x : (tensor<4x1xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %8 = dmir.div %4, %seven : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %9 = dmir.sqrt %8 : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %10 = dmir.div %x, %9 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %3, %6, %7, %10 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// A mean that is divided by what a run brings is none.
// CHECK-LABEL: func @divided_mean
// CHECK-NOT: dmir.normalize
// CHECK: return
func.func @divided_mean(%x: tensor<4x8xf32>, %s: tensor<f32>) -> tensor<4x8xf32> {
  %0 = dmir.mul %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = dmir.reduce mean %0 {axes = array<i64: 1>, keepDims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %2 = dmir.div %1, %s : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %3 = dmir.sqrt %2 : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %4 = dmir.div %x, %3 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %4 : tensor<4x8xf32>
}
