// RUN: dmx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(dmir-own-weights))' | FileCheck %s

// Each product gets the views and the dmir.dequantize behind them; the constants stay one.
// CHECK-LABEL: func @products
// CHECK-COUNT-2: dmir.constant
// CHECK-NOT: dmir.constant
// CHECK: %[[D:.*]] = dmir.dequantize
// CHECK: %[[T:.*]] = dmir.transpose %[[D]]
// CHECK: %[[E:.*]] = dmir.dequantize
// CHECK: %[[U:.*]] = dmir.transpose %[[E]]
// CHECK: dmir.matmul %arg0, %[[U]]
// CHECK: dmir.matmul %arg1, %[[T]]
// CHECK-NOT: dmir.dequantize
func.func @products(%x: tensor<1x8xf32>, %y: tensor<5x8xf32>) -> (tensor<1x4xf32>, tensor<5x4xf32>) {
  %codes = dmir.constant dense<7> : tensor<4x4xui8>
  %scales = dmir.constant dense<0.5> : tensor<4x1xf32>
  %0 = dmir.dequantize %codes, %scales {bits = 4 : i64, axis = 1 : i64, block = 8 : i64, zero = 8 : i64} : (tensor<4x4xui8>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %1 = dmir.transpose %0 {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %2 = dmir.matmul %x, %1 : (tensor<1x8xf32>, tensor<8x4xf32>) -> tensor<1x4xf32>
  %3 = dmir.matmul %y, %1 : (tensor<5x8xf32>, tensor<8x4xf32>) -> tensor<5x4xf32>
  return %2, %3 : tensor<1x4xf32>, tensor<5x4xf32>
}

// -----

// What no product reads stays for its readers.
// CHECK-LABEL: func @other_reader
// CHECK: %[[D:.*]] = dmir.dequantize
// CHECK: %[[E:.*]] = dmir.dequantize
// CHECK: dmir.matmul %arg0, %[[E]]
// CHECK: return %{{.*}}, %[[D]]
func.func @other_reader(%x: tensor<1x4xf32>) -> (tensor<1x8xf32>, tensor<4x8xf32>) {
  %codes = dmir.constant dense<7> : tensor<4x4xui8>
  %scales = dmir.constant dense<0.5> : tensor<1x8xf32>
  %0 = dmir.dequantize %codes, %scales {bits = 4 : i64, axis = 0 : i64, block = 8 : i64, zero = 8 : i64} : (tensor<4x4xui8>, tensor<1x8xf32>) -> tensor<4x8xf32>
  %1 = dmir.matmul %x, %0 : (tensor<1x4xf32>, tensor<4x8xf32>) -> tensor<1x8xf32>
  return %1, %0 : tensor<1x8xf32>, tensor<4x8xf32>
}

// -----

// A product whose kernel does not unpack, as that of numbers of a run, reads what is made once.
// CHECK-LABEL: func @of_a_run
// CHECK-COUNT-1: dmir.dequantize
// CHECK-NOT: dmir.dequantize
func.func @of_a_run(%x: tensor<1x4xf32>, %y: tensor<5x4xf32>, %codes: tensor<4x4xui8>, %scales: tensor<1x8xf32>) -> (tensor<1x8xf32>, tensor<5x8xf32>) {
  %0 = dmir.dequantize %codes, %scales {bits = 4 : i64, axis = 0 : i64, block = 8 : i64, zero = 8 : i64} : (tensor<4x4xui8>, tensor<1x8xf32>) -> tensor<4x8xf32>
  %1 = dmir.matmul %x, %0 : (tensor<1x4xf32>, tensor<4x8xf32>) -> tensor<1x8xf32>
  %2 = dmir.matmul %y, %0 : (tensor<5x4xf32>, tensor<4x8xf32>) -> tensor<5x8xf32>
  return %1, %2 : tensor<1x8xf32>, tensor<5x8xf32>
}
