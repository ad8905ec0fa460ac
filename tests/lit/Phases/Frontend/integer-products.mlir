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

// Weights that a run brings, scales along k, f32 of weights that are no s8 without their zero point: left alone.
// CHECK-LABEL: func @left_alone
// CHECK-NOT: tensor<{{.*}}xui8>, tensor<{{.*}}xi8>) -> tensor<{{.*}}xi32>
// CHECK: return
func.func @left_alone(%x: tensor<3x2xui8>, %y: tensor<2x2xi8>) -> (tensor<3x2xf32>, tensor<3x2xi32>, tensor<3x2xf32>) {
  %w = dmir.constant dense<[[0, 255], [1, 2]]> : tensor<2x2xui8>
  %z = dmir.constant dense<100> : tensor<i32>
  %s = dmir.constant dense<0.25> : tensor<f32>
  %t = dmir.constant dense<[[2.0], [3.0]]> : tensor<2x1xf32>
  %v = dmir.constant dense<[[1, -2], [3, 4]]> : tensor<2x2xi8>
  %0 = dmir.cast %x : (tensor<3x2xui8>) -> tensor<3x2xi32>
  %6 = dmir.cast %0 : (tensor<3x2xi32>) -> tensor<3x2xf32>
  %7 = dmir.mul %6, %s : (tensor<3x2xf32>, tensor<f32>) -> tensor<3x2xf32>
  %1 = dmir.cast %w : (tensor<2x2xui8>) -> tensor<2x2xi32>
  %2 = dmir.sub %1, %z : (tensor<2x2xi32>, tensor<i32>) -> tensor<2x2xi32>
  %12 = dmir.cast %2 : (tensor<2x2xi32>) -> tensor<2x2xf32>
  %13 = dmir.mul %12, %s : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  %3 = dmir.matmul %7, %13 : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %4 = dmir.cast %y : (tensor<2x2xi8>) -> tensor<2x2xi32>
  %5 = dmir.matmul %0, %4 : (tensor<3x2xi32>, tensor<2x2xi32>) -> tensor<3x2xi32>
  %8 = dmir.cast %v : (tensor<2x2xi8>) -> tensor<2x2xi32>
  %9 = dmir.cast %8 : (tensor<2x2xi32>) -> tensor<2x2xf32>
  %10 = dmir.mul %9, %t : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x2xf32>
  %11 = dmir.matmul %7, %10 : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  return %3, %5, %11 : tensor<3x2xf32>, tensor<3x2xi32>, tensor<3x2xf32>
}

// -----

// What a run brings: the zero point counts the weights' sums, and scales are multiplied.
// CHECK-LABEL: func @at_run
// CHECK-DAG: %[[W:.*]] = dmir.constant dense<{{\[\[}}1, -2], [3, 4]]> : tensor<2x2xi8>
// CHECK-DAG: %[[C:.*]] = dmir.constant dense<{{\[\[}}4, 2]]> : tensor<1x2xi32>
// CHECK-DAG: %[[Z:.*]] = dmir.cast %arg1 : (tensor<ui8>) -> tensor<i32>
// CHECK-DAG: %[[S:.*]] = dmir.mul %arg2
// CHECK-DAG: %[[P:.*]] = dmir.matmul %arg0, %[[W]] : (tensor<?x2xui8, #dmir.dims<"n">>, tensor<2x2xi8>) -> tensor<?x2xi32, #dmir.dims<"n">>
// CHECK-DAG: %[[E:.*]] = dmir.mul %[[C]], %[[Z]]
// CHECK: %[[D:.*]] = dmir.sub %[[P]], %[[E]]
// CHECK: %[[F:.*]] = dmir.cast %[[D]]
// CHECK: %[[R:.*]] = dmir.mul %[[F]], %[[S]]
// CHECK: return %[[R]]
func.func @at_run(%x: tensor<?x2xui8, #dmir.dims<"n">>, %zero: tensor<ui8>, %s: tensor<f32>) -> tensor<?x2xf32, #dmir.dims<"n">> {
  %w = dmir.constant dense<[[1, -2], [3, 4]]> : tensor<2x2xi8>
  %t = dmir.constant dense<2.0> : tensor<f32>
  %z = dmir.cast %zero : (tensor<ui8>) -> tensor<i32>
  %0 = dmir.cast %x : (tensor<?x2xui8, #dmir.dims<"n">>) -> tensor<?x2xi32, #dmir.dims<"n">>
  %1 = dmir.sub %0, %z : (tensor<?x2xi32, #dmir.dims<"n">>, tensor<i32>) -> tensor<?x2xi32, #dmir.dims<"n">>
  %2 = dmir.cast %1 : (tensor<?x2xi32, #dmir.dims<"n">>) -> tensor<?x2xf32, #dmir.dims<"n">>
  %3 = dmir.mul %2, %s : (tensor<?x2xf32, #dmir.dims<"n">>, tensor<f32>) -> tensor<?x2xf32, #dmir.dims<"n">>
  %4 = dmir.cast %w : (tensor<2x2xi8>) -> tensor<2x2xi32>
  %5 = dmir.cast %4 : (tensor<2x2xi32>) -> tensor<2x2xf32>
  %6 = dmir.mul %5, %t : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  %7 = dmir.matmul %3, %6 : (tensor<?x2xf32, #dmir.dims<"n">>, tensor<2x2xf32>) -> tensor<?x2xf32, #dmir.dims<"n">>
  return %7 : tensor<?x2xf32, #dmir.dims<"n">>
}

// -----

// Weights that are no s8 without their zero points, one a column, are shifted by 128; what is left of the zero points
// counts the sums of rows. s8 activations and their zero point are shifted too. 199 and 11 are the sums of w - zw.
// CHECK-LABEL: func @rest_of_zero_points
// CHECK-DAG: %[[W:.*]] = dmir.constant dense<{{\[\[}}-128, 127], [71, -126]]> : tensor<2x2xi8>
// CHECK-DAG: %[[T:.*]] = dmir.constant dense<[-128, -5]> : tensor<2xi32>
// CHECK-DAG: %[[C:.*]] = dmir.constant dense<{{\[\[}}199, 11]]> : tensor<1x2xi32>
// CHECK-DAG: %[[U:.*]] = dmir.cast {{.*}} -> tensor<3x2xui8>
// CHECK-DAG: %[[P:.*]] = dmir.matmul %[[U]], %[[W]]
// CHECK-DAG: %[[I:.*]] = dmir.cast %[[U]] : (tensor<3x2xui8>) -> tensor<3x2xi32>
// CHECK-DAG: %[[N:.*]] = dmir.reduce sum %[[I]] {axes = array<i64: 1>} : (tensor<3x2xi32>) -> tensor<3x1xi32>
// CHECK-DAG: %[[M:.*]] = dmir.mul %[[N]], %[[T]] : (tensor<3x1xi32>, tensor<2xi32>) -> tensor<3x2xi32>
// CHECK: %[[D:.*]] = dmir.sub %[[P]], %[[M]]
// CHECK: %[[E:.*]] = dmir.mul %[[C]], {{.*}} : (tensor<1x2xi32>, tensor<i32>) -> tensor<1x2xi32>
// CHECK: %[[R:.*]] = dmir.sub %[[D]], %[[E]]
// CHECK: return %[[R]]
func.func @rest_of_zero_points(%x: tensor<3x2xi8>, %zero: tensor<1xi8>) -> tensor<3x2xi32> {
  %w = dmir.constant dense<[[0, 255], [199, 2]]> : tensor<2x2xui8>
  %zw = dmir.constant dense<[0, 123]> : tensor<2xi32>
  %zi = dmir.cast %zero : (tensor<1xi8>) -> tensor<1xi32>
  %z = dmir.reshape %zi : (tensor<1xi32>) -> tensor<i32>
  %0 = dmir.cast %x : (tensor<3x2xi8>) -> tensor<3x2xi32>
  %1 = dmir.sub %0, %z : (tensor<3x2xi32>, tensor<i32>) -> tensor<3x2xi32>
  %2 = dmir.cast %w : (tensor<2x2xui8>) -> tensor<2x2xi32>
  %3 = dmir.sub %2, %zw : (tensor<2x2xi32>, tensor<2xi32>) -> tensor<2x2xi32>
  %4 = dmir.matmul %1, %3 : (tensor<3x2xi32>, tensor<2x2xi32>) -> tensor<3x2xi32>
  return %4 : tensor<3x2xi32>
}

// -----

// A zero point a row; sums of integers wrap, so that there may be any number of terms.
// CHECK-LABEL: func @rows
// CHECK-DAG: %[[C:.*]] = dmir.constant dense<98307> : tensor<1x1xi32>
// CHECK-DAG: %[[P:.*]] = dmir.matmul %arg0, {{.*}} : (tensor<2x32769xui8>, tensor<32769x1xi8>) -> tensor<2x1xi32>
// CHECK-DAG: %[[E:.*]] = dmir.mul %[[C]], %arg1 : (tensor<1x1xi32>, tensor<2x1xi32>) -> tensor<2x1xi32>
// CHECK: %[[R:.*]] = dmir.sub %[[P]], %[[E]]
// CHECK: return %[[R]]
func.func @rows(%x: tensor<2x32769xui8>, %z: tensor<2x1xi32>) -> tensor<2x1xi32> {
  %w = dmir.constant dense<3> : tensor<32769x1xi8>
  %0 = dmir.cast %x : (tensor<2x32769xui8>) -> tensor<2x32769xi32>
  %1 = dmir.sub %0, %z : (tensor<2x32769xi32>, tensor<2x1xi32>) -> tensor<2x32769xi32>
  %2 = dmir.cast %w : (tensor<32769x1xi8>) -> tensor<32769x1xi32>
  %3 = dmir.matmul %1, %2 : (tensor<2x32769xi32>, tensor<32769x1xi32>) -> tensor<2x1xi32>
  return %3 : tensor<2x1xi32>
}

// -----

// A run's zero point fills the padding. Weights that are no s8: windows are summed.
// CHECK-LABEL: func @conv_at_run
// CHECK-DAG: %[[W:.*]] = dmir.constant {{.*}} : tensor<8x2x1x2xi8>
// CHECK-DAG: %[[Q:.*]] = dmir.constant dense<-28> : tensor<i32>
// CHECK-DAG: %[[X:.*]] = dmir.pad %arg0, %[[F:.*]] {high = array<i64: 0, 0, 0, 1>, {{.*}}low = array<i64: 0, 0, 0, 1>
// CHECK-DAG: %[[P:.*]] = dmir.conv %[[X]], %[[W]] {dilations = array<i64: 1, 1>, high = array<i64: 0, 0>, low = array<i64: 0, 0>, {{.*}} -> tensor<1x8x4x5xi32>
// CHECK-DAG: %[[N:.*]] = dmir.reduce sum {{.*}} {axes = array<i64: 1>} : (tensor<1x2x4x6xi32>) -> tensor<1x1x4x6xi32>
// CHECK-DAG: %[[V:.*]] = dmir.pool sum %[[N]] {{.*}}window = array<i64: 1, 2>{{.*}} -> tensor<1x1x4x5xi32>
// CHECK-DAG: %[[M:.*]] = dmir.mul %[[V]], %[[Q]]
// CHECK: %[[D:.*]] = dmir.sub %[[P]], %[[M]]
// CHECK: dmir.sub %[[D]],
func.func @conv_at_run(%x: tensor<1x2x4x4xui8>, %zero: tensor<ui8>) -> tensor<1x8x4x5xi32> {
  %a = dmir.constant dense<0> : tensor<4x2x1x2xui8>
  %b = dmir.constant dense<255> : tensor<4x2x1x2xui8>
  %w = dmir.concat %a, %b {axis = 0 : i64} : (tensor<4x2x1x2xui8>, tensor<4x2x1x2xui8>) -> tensor<8x2x1x2xui8>
  %zw = dmir.constant dense<100> : tensor<i32>
  %z = dmir.cast %zero : (tensor<ui8>) -> tensor<i32>
  %0 = dmir.cast %x : (tensor<1x2x4x4xui8>) -> tensor<1x2x4x4xi32>
  %1 = dmir.sub %0, %z : (tensor<1x2x4x4xi32>, tensor<i32>) -> tensor<1x2x4x4xi32>
  %2 = dmir.cast %w : (tensor<8x2x1x2xui8>) -> tensor<8x2x1x2xi32>
  %3 = dmir.sub %2, %zw : (tensor<8x2x1x2xi32>, tensor<i32>) -> tensor<8x2x1x2xi32>
  %4 = dmir.conv %1, %3 {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 1>, high = array<i64: 0, 1>} : (tensor<1x2x4x4xi32>, tensor<8x2x1x2xi32>) -> tensor<1x8x4x5xi32>
  return %4 : tensor<1x8x4x5xi32>
}

// -----

// Of any number of images, and of a channel each: bytes where the target wants them. An open height leaves integers.
// CHECK-LABEL: func @convs_of_images
// CHECK: dmir.conv %{{.*}}groups = 8{{.*}} : (tensor<?x8x4x4xui8, #dmir.dims<"n">>, tensor<8x1x1x1xi8>) -> tensor<?x8x4x4xi32, #dmir.dims<"n">>
// CHECK: dmir.conv {{.*}} : (tensor<?x8x?x4xi32
func.func @convs_of_images(%x: tensor<?x8x4x4xui8, #dmir.dims<"n">>, %y: tensor<?x8x?x4xui8, #dmir.dims<"n", "h">>)
    -> (tensor<?x8x4x4xi32, #dmir.dims<"n">>, tensor<?x8x?x4xi32, #dmir.dims<"n", "h">>) {
  %w = dmir.constant dense<3> : tensor<8x1x1x1xi8>
  %0 = dmir.cast %x : (tensor<?x8x4x4xui8, #dmir.dims<"n">>) -> tensor<?x8x4x4xi32, #dmir.dims<"n">>
  %1 = dmir.cast %w : (tensor<8x1x1x1xi8>) -> tensor<8x1x1x1xi32>
  %2 = dmir.conv %0, %1 {groups = 8 : i64, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>} : (tensor<?x8x4x4xi32, #dmir.dims<"n">>, tensor<8x1x1x1xi32>) -> tensor<?x8x4x4xi32, #dmir.dims<"n">>
  %3 = dmir.cast %y : (tensor<?x8x?x4xui8, #dmir.dims<"n", "h">>) -> tensor<?x8x?x4xi32, #dmir.dims<"n", "h">>
  %4 = dmir.conv %3, %1 {groups = 8 : i64, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>} : (tensor<?x8x?x4xi32, #dmir.dims<"n", "h">>, tensor<8x1x1x1xi32>) -> tensor<?x8x?x4xi32, #dmir.dims<"n", "h">>
  return %2, %4 : tensor<?x8x4x4xi32, #dmir.dims<"n">>, tensor<?x8x?x4xi32, #dmir.dims<"n", "h">>
}

// -----

// Padding with a zero point that may be no byte, few output channels: left alone.
// CHECK-LABEL: func @convs_left_alone
// CHECK-NOT: xui8>, tensor
// CHECK: return
func.func @convs_left_alone(%x: tensor<1x1x4x4xui8>, %z: tensor<i32>, %zero: tensor<ui8>) -> (tensor<1x8x4x6xi32>, tensor<1x2x4x4xi32>) {
  %w = dmir.constant dense<3> : tensor<8x1x1x1xi8>
  %v = dmir.constant dense<3> : tensor<2x1x1x1xi8>
  %zi = dmir.cast %zero : (tensor<ui8>) -> tensor<i32>
  %0 = dmir.cast %x : (tensor<1x1x4x4xui8>) -> tensor<1x1x4x4xi32>
  %1 = dmir.sub %0, %z : (tensor<1x1x4x4xi32>, tensor<i32>) -> tensor<1x1x4x4xi32>
  %2 = dmir.cast %w : (tensor<8x1x1x1xi8>) -> tensor<8x1x1x1xi32>
  %3 = dmir.conv %1, %2 {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 1>, high = array<i64: 0, 1>} : (tensor<1x1x4x4xi32>, tensor<8x1x1x1xi32>) -> tensor<1x8x4x6xi32>
  %4 = dmir.sub %0, %zi : (tensor<1x1x4x4xi32>, tensor<i32>) -> tensor<1x1x4x4xi32>
  %5 = dmir.cast %v : (tensor<2x1x1x1xi8>) -> tensor<2x1x1x1xi32>
  %6 = dmir.conv %4, %5 {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>} : (tensor<1x1x4x4xi32>, tensor<2x1x1x1xi32>) -> tensor<1x2x4x4xi32>
  return %3, %6 : tensor<1x8x4x6xi32>, tensor<1x2x4x4xi32>
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
