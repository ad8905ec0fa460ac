// RUN: dmx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(dmir-integer-products,dmir-fold-constants,dmir-simplify))' | FileCheck %s

// The zero point of the left operand is corrected with the weights' sums; one multiplication by both scales.
// CHECK-LABEL: func @matmul
// CHECK-DAG: %[[W:.*]] = dmir.constant dense<{{\[\[}}1, -2], [3, 4]]> : tensor<2x2xi8>
// CHECK-DAG: %[[S:.*]] = dmir.constant dense<5.000000e-01> : tensor<f32>
// CHECK-DAG: %[[Z:.*]] = dmir.constant dense<{{\[\[}}40, 20]]> : tensor<1x2xi32>
// CHECK: %[[P:.*]] = dmir.matmul %arg0, %[[W]] : (tensor<3x2xui8>, tensor<2x2xi8>) -> tensor<3x2xi32>
// CHECK: %[[D:.*]] = dmir.sub %[[P]], %[[Z]]
// CHECK: %[[F:.*]] = dmir.cast %[[D]] : (tensor<3x2xi32>) -> tensor<3x2xf32>
// CHECK: %[[R:.*]] = dmir.mul %[[F]], %[[S]]
// CHECK: return %[[R]]
func.func @matmul(%x: tensor<3x2xui8>) -> tensor<3x2xf32> {
  %w = dmir.constant dense<[[1, -2], [3, 4]]> : tensor<2x2xi8>
  %s = dmir.constant dense<0.25> : tensor<f32>
  %t = dmir.constant dense<2.0> : tensor<f32>
  %z = dmir.constant dense<10> : tensor<i32>
  %0 = dmir.cast %x : (tensor<3x2xui8>) -> tensor<3x2xi32>
  %1 = dmir.sub %0, %z : (tensor<3x2xi32>, tensor<i32>) -> tensor<3x2xi32>
  %2 = dmir.cast %1 : (tensor<3x2xi32>) -> tensor<3x2xf32>
  %3 = dmir.mul %2, %s : (tensor<3x2xf32>, tensor<f32>) -> tensor<3x2xf32>
  %4 = dmir.cast %w : (tensor<2x2xi8>) -> tensor<2x2xi32>
  %5 = dmir.cast %4 : (tensor<2x2xi32>) -> tensor<2x2xf32>
  %6 = dmir.mul %5, %t : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  %7 = dmir.matmul %3, %6 : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  return %7 : tensor<3x2xf32>
}

// -----

// Signed activations become unsigned ones; weights of u8 lose their zero points; scales of columns stay in place through
// a transpose.
// CHECK-LABEL: func @signed_transposed
// CHECK-DAG: %[[W:.*]] = dmir.constant dense<{{\[\[}}-1, 3], [1, -2]]> : tensor<2x2xi8>
// CHECK-DAG: %[[S:.*]] = dmir.constant dense<{{\[\[}}5.000000e-01, 7.500000e-01]]> : tensor<1x2xf32>
// CHECK-DAG: %[[Z:.*]] = dmir.constant dense<{{\[\[}}0, 128]]> : tensor<1x2xi32>
// CHECK: %[[U:.*]] = dmir.cast {{.*}} -> tensor<3x2xui8>
// CHECK: %[[P:.*]] = dmir.matmul %[[U]], %[[W]]
// CHECK: %[[D:.*]] = dmir.sub %[[P]], %[[Z]]
// CHECK: %[[F:.*]] = dmir.cast %[[D]]
// CHECK: dmir.mul %[[F]], %[[S]]
func.func @signed_transposed(%x: tensor<3x2xi8>) -> tensor<3x2xf32> {
  %w = dmir.constant dense<[[127, 129], [131, 126]]> : tensor<2x2xui8>
  %z = dmir.constant dense<128> : tensor<i32>
  %s = dmir.constant dense<0.25> : tensor<f32>
  %t = dmir.constant dense<[[2.0], [3.0]]> : tensor<2x1xf32>
  %0 = dmir.cast %x : (tensor<3x2xi8>) -> tensor<3x2xi32>
  %1 = dmir.cast %0 : (tensor<3x2xi32>) -> tensor<3x2xf32>
  %2 = dmir.mul %1, %s : (tensor<3x2xf32>, tensor<f32>) -> tensor<3x2xf32>
  %3 = dmir.cast %w : (tensor<2x2xui8>) -> tensor<2x2xi32>
  %4 = dmir.sub %3, %z : (tensor<2x2xi32>, tensor<i32>) -> tensor<2x2xi32>
  %5 = dmir.cast %4 : (tensor<2x2xi32>) -> tensor<2x2xf32>
  %6 = dmir.mul %5, %t : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x2xf32>
  %7 = dmir.transpose %6 {permutation = array<i64: 1, 0>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %8 = dmir.matmul %2, %7 : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  return %8 : tensor<3x2xf32>
}

// -----

// Padding is the zero point; integers have no scales.
// CHECK-LABEL: func @conv_integer
// CHECK-DAG: %[[V:.*]] = dmir.constant dense<7> : tensor<ui8>
// CHECK-DAG: %[[Z:.*]] = dmir.constant dense<{{\[\[}}[21]], {{\[\[}}-7]]]> : tensor<2x1x1xi32>
// CHECK: %[[X:.*]] = dmir.pad %arg0, %[[V]] {high = array<i64: 0, 0, 0, 1>, {{.*}}low = array<i64: 0, 0, 0, 1>
// CHECK: %[[P:.*]] = dmir.conv %[[X]], {{.*}} {dilations = array<i64: 1, 1>, high = array<i64: 0, 0>, low = array<i64: 0, 0>, {{.*}} -> tensor<1x2x4x5xi32>
// CHECK: %[[R:.*]] = dmir.sub %[[P]], %[[Z]]
// CHECK: return %[[R]]
func.func @conv_integer(%x: tensor<1x1x4x4xui8>) -> tensor<1x2x4x5xi32> {
  %w = dmir.constant dense<[[[[1, 2]]], [[[3, -4]]]]> : tensor<2x1x1x2xi8>
  %z = dmir.constant dense<7> : tensor<i32>
  %0 = dmir.cast %x : (tensor<1x1x4x4xui8>) -> tensor<1x1x4x4xi32>
  %1 = dmir.sub %0, %z : (tensor<1x1x4x4xi32>, tensor<i32>) -> tensor<1x1x4x4xi32>
  %2 = dmir.cast %w : (tensor<2x1x1x2xi8>) -> tensor<2x1x1x2xi32>
  %3 = dmir.conv %1, %2 {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 1>, high = array<i64: 0, 1>} : (tensor<1x1x4x4xi32>, tensor<2x1x1x2xi32>) -> tensor<1x2x4x5xi32>
  return %3 : tensor<1x2x4x5xi32>
}

// -----

// Weights that do not fit s8 without their zero point, weights that a run brings, scales along k: left alone.
// CHECK-LABEL: func @left_alone
// CHECK-NOT: tensor<{{.*}}xui8>, tensor<{{.*}}xi8>) -> tensor<{{.*}}xi32>
// CHECK: return
func.func @left_alone(%x: tensor<3x2xui8>, %y: tensor<2x2xi8>) -> (tensor<3x2xi32>, tensor<3x2xi32>, tensor<3x2xf32>) {
  %w = dmir.constant dense<[[0, 255], [1, 2]]> : tensor<2x2xui8>
  %z = dmir.constant dense<100> : tensor<i32>
  %s = dmir.constant dense<0.25> : tensor<f32>
  %t = dmir.constant dense<[[2.0], [3.0]]> : tensor<2x1xf32>
  %v = dmir.constant dense<[[1, -2], [3, 4]]> : tensor<2x2xi8>
  %0 = dmir.cast %x : (tensor<3x2xui8>) -> tensor<3x2xi32>
  %1 = dmir.cast %w : (tensor<2x2xui8>) -> tensor<2x2xi32>
  %2 = dmir.sub %1, %z : (tensor<2x2xi32>, tensor<i32>) -> tensor<2x2xi32>
  %3 = dmir.matmul %0, %2 : (tensor<3x2xi32>, tensor<2x2xi32>) -> tensor<3x2xi32>
  %4 = dmir.cast %y : (tensor<2x2xi8>) -> tensor<2x2xi32>
  %5 = dmir.matmul %0, %4 : (tensor<3x2xi32>, tensor<2x2xi32>) -> tensor<3x2xi32>
  %6 = dmir.cast %0 : (tensor<3x2xi32>) -> tensor<3x2xf32>
  %7 = dmir.mul %6, %s : (tensor<3x2xf32>, tensor<f32>) -> tensor<3x2xf32>
  %8 = dmir.cast %v : (tensor<2x2xi8>) -> tensor<2x2xi32>
  %9 = dmir.cast %8 : (tensor<2x2xi32>) -> tensor<2x2xf32>
  %10 = dmir.mul %9, %t : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x2xf32>
  %11 = dmir.matmul %7, %10 : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  return %3, %5, %11 : tensor<3x2xi32>, tensor<3x2xi32>, tensor<3x2xf32>
}

// -----

// A bias of multiples of the scales' product, 3 and -4 halves, joins the integers, and the correction of 40 and 20.
// CHECK-LABEL: func @biased
// CHECK-DAG: %[[S:.*]] = dmir.constant dense<5.000000e-01> : tensor<f32>
// CHECK-DAG: %[[Z:.*]] = dmir.constant dense<{{\[\[}}37, 24]]> : tensor<1x2xi32>
// CHECK: %[[P:.*]] = dmir.matmul
// CHECK: %[[D:.*]] = dmir.sub %[[P]], %[[Z]]
// CHECK: %[[F:.*]] = dmir.cast %[[D]]
// CHECK: %[[R:.*]] = dmir.mul %[[F]], %[[S]]
// CHECK: return %[[R]]
func.func @biased(%x: tensor<3x2xui8>) -> tensor<3x2xf32> {
  %w = dmir.constant dense<[[1, -2], [3, 4]]> : tensor<2x2xi8>
  %s = dmir.constant dense<0.25> : tensor<f32>
  %t = dmir.constant dense<2.0> : tensor<f32>
  %z = dmir.constant dense<10> : tensor<i32>
  %bias = dmir.constant dense<[1.5, -2.0]> : tensor<2xf32>
  %0 = dmir.cast %x : (tensor<3x2xui8>) -> tensor<3x2xi32>
  %1 = dmir.sub %0, %z : (tensor<3x2xi32>, tensor<i32>) -> tensor<3x2xi32>
  %2 = dmir.cast %1 : (tensor<3x2xi32>) -> tensor<3x2xf32>
  %3 = dmir.mul %2, %s : (tensor<3x2xf32>, tensor<f32>) -> tensor<3x2xf32>
  %4 = dmir.cast %w : (tensor<2x2xi8>) -> tensor<2x2xi32>
  %5 = dmir.cast %4 : (tensor<2x2xi32>) -> tensor<2x2xf32>
  %6 = dmir.mul %5, %t : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  %7 = dmir.matmul %3, %6 : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %8 = dmir.add %7, %bias : (tensor<3x2xf32>, tensor<2xf32>) -> tensor<3x2xf32>
  return %8 : tensor<3x2xf32>
}

// -----

// 1.75 is no multiple of a half; rows have a bias each; 3e9 halves do not fit: these are added in f32.
// CHECK-LABEL: func @other_biases
// CHECK: %[[R:.*]] = dmir.mul
// CHECK-COUNT-3: dmir.add %[[R]]
// CHECK: return
func.func @other_biases(%x: tensor<3x2xui8>) -> (tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>) {
  %w = dmir.constant dense<[[1, -2], [3, 4]]> : tensor<2x2xi8>
  %s = dmir.constant dense<0.25> : tensor<f32>
  %t = dmir.constant dense<2.0> : tensor<f32>
  %bias = dmir.constant dense<[1.5, 1.75]> : tensor<2xf32>
  %rows = dmir.constant dense<[[1.5], [2.0], [0.5]]> : tensor<3x1xf32>
  %large = dmir.constant dense<1.5e9> : tensor<f32>
  %0 = dmir.cast %x : (tensor<3x2xui8>) -> tensor<3x2xi32>
  %1 = dmir.cast %0 : (tensor<3x2xi32>) -> tensor<3x2xf32>
  %2 = dmir.mul %1, %s : (tensor<3x2xf32>, tensor<f32>) -> tensor<3x2xf32>
  %3 = dmir.cast %w : (tensor<2x2xi8>) -> tensor<2x2xi32>
  %4 = dmir.cast %3 : (tensor<2x2xi32>) -> tensor<2x2xf32>
  %5 = dmir.mul %4, %t : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  %6 = dmir.matmul %2, %5 : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %7 = dmir.add %6, %bias : (tensor<3x2xf32>, tensor<2xf32>) -> tensor<3x2xf32>
  %8 = dmir.matmul %2, %5 : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %9 = dmir.add %8, %rows : (tensor<3x2xf32>, tensor<3x1xf32>) -> tensor<3x2xf32>
  %10 = dmir.matmul %2, %5 : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %11 = dmir.add %10, %large : (tensor<3x2xf32>, tensor<f32>) -> tensor<3x2xf32>
  return %7, %9, %11 : tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>
}
