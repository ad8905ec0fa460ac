// RUN: dmx-opt %s --target=cpu --numerics=int4-weights --dmir-round-weights | FileCheck %s
// RUN: dmx-opt %s --target=cpu --numerics=int8-weights:64 --dmir-round-weights | FileCheck %s --check-prefix=EIGHT
// RUN: dmx-opt %s --target=cpu --numerics=int8:64 --dmir-round-weights --dmir-round-rows | FileCheck %s --check-prefix=ROWS
// RUN: dmx-opt %s --target=cpu --numerics=int8-weights --dmir-round-weights --dmir-round-rows | FileCheck %s --check-prefix=ONLY
// RUN: dmx-opt %s --target=cpu --numerics=bf16-weights --dmir-round-weights | FileCheck %s --check-prefix=KEPT

// KEPT-NOT: dequantize
// ONLY-NOT: round_blocks

// Of a splat every number is the one of greatest magnitude: 4 bits have it as -8 times the scale, -0.25, which is exact.
// CHECK-LABEL: @product
// CHECK-DAG: %[[CODES:.*]] = dmir.constant {{.*}}dmir.rounded = {bytes = 65536 : i64, error = 0.000000e+00 : f64, kept = 9216 : i64}{{.*}} : tensor<128x64xui8>
// CHECK-DAG: %[[SCALES:.*]] = dmir.constant {{.*}} : tensor<128x4xf16>
// CHECK: %[[W:.*]] = dmir.dequantize %[[CODES]], %[[SCALES]] {axis = 1 : i64, bits = 4 : i64, block = 32 : i64, zero = 8 : i64} : (tensor<128x64xui8>, tensor<128x4xf16>) -> tensor<128x128xf32>
// CHECK: %[[T:.*]] = dmir.transpose %[[W]]
// CHECK: dmir.matmul %arg0, %[[T]] : (tensor<3x128xf32>, tensor<128x128xf32>) -> tensor<3x128xf32>
// EIGHT-LABEL: @product
// EIGHT: dmir.dequantize {{.*}}bits = 8 : i64, block = 64 : i64{{.*}} : (tensor<128x128xi8>, tensor<128x2xf16>) -> tensor<128x128xf32>
// ROWS-LABEL: @product
// ROWS-DAG: %[[W:.*]] = dmir.dequantize {{.*}}bits = 8 : i64, block = 64 : i64
// ROWS-DAG: %[[T:.*]] = dmir.transpose %[[W]]
// ROWS-DAG: %[[X:.*]] = dmir.round_blocks %arg0 {block = 64 : i64} : (tensor<3x128xf32>) -> tensor<3x128xf32>
// ROWS: dmir.matmul %[[X]], %[[T]] : (tensor<3x128xf32>, tensor<128x128xf32>) -> tensor<3x128xf32>
func.func @product(%x: tensor<3x128xf32>) -> tensor<3x128xf32> {
  %w = dmir.constant dense<2.0> : tensor<128x128xf32>
  %y = dmir.matmul %x, %w : (tensor<3x128xf32>, tensor<128x128xf32>) -> tensor<3x128xf32>
  return %y : tensor<3x128xf32>
}

// In a file of f16 the product is computed in f32 and rounded once.
// CHECK-LABEL: @half
// CHECK: %[[X:.*]] = dmir.cast %arg0 : (tensor<3x128xf16>) -> tensor<3x128xf32>
// CHECK: %[[Y:.*]] = dmir.matmul %[[X]], %{{.*}} -> tensor<3x128xf32>
// CHECK: dmir.cast %[[Y]] : (tensor<3x128xf32>) -> tensor<3x128xf16>
// ROWS-LABEL: @half
// ROWS: %[[X:.*]] = dmir.cast %arg0 : (tensor<3x128xf16>) -> tensor<3x128xf32>
// ROWS: dmir.round_blocks %[[X]]
func.func @half(%x: tensor<3x128xf16>) -> tensor<3x128xf16> {
  %w = dmir.constant dense<2.0> : tensor<128x128xf16>
  %y = dmir.matmul %x, %w : (tensor<3x128xf16>, tensor<128x128xf16>) -> tensor<3x128xf16>
  return %y : tensor<3x128xf16>
}

// Rows are gathered as integers; nothing multiplies them.
// ROWS-LABEL: @rows
// ROWS-NOT: round_blocks
// CHECK-LABEL: @rows
// CHECK: %[[R:.*]] = dmir.gather {{.*}} : (tensor<100x128xui8>, tensor<2xi64>) -> tensor<2x128xui8>
// CHECK: %[[S:.*]] = dmir.gather {{.*}} : (tensor<100x8xf16>, tensor<2xi64>) -> tensor<2x8xf16>
// CHECK: dmir.dequantize %[[R]], %[[S]] {{.*}} -> tensor<2x256xf32>
func.func @rows(%ids: tensor<2xi64>) -> tensor<2x256xf32> {
  %w = dmir.constant dense<2.0> : tensor<100x256xf32>
  %y = dmir.gather %w, %ids {axis = 0 : i64} : (tensor<100x256xf32>, tensor<2xi64>) -> tensor<2x256xf32>
  return %y : tensor<2x256xf32>
}

// Angles of a rotation are read by rows, too, but shorter ones.
// CHECK-LABEL: @angles
// CHECK-NOT: dequantize
func.func @angles(%ids: tensor<2xi64>) -> tensor<2x64xf32> {
  %w = dmir.constant dense<0.5> : tensor<1000x64xf32>
  %y = dmir.gather %w, %ids {axis = 0 : i64} : (tensor<1000x64xf32>, tensor<2xi64>) -> tensor<2x64xf32>
  return %y : tensor<2x64xf32>
}
