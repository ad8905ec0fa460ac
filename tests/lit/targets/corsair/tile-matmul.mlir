// RUN: dmx-opt %s -split-input-file -corsair-tile-matmul | FileCheck %s

!R = !dmir.block_fp<BFP16_64R>
!C = !dmir.block_fp<BFP16_64C>

// Ragged sizes are continued with zeros to whole tiles, the result is cut.
// CHECK-LABEL: func @ragged
// CHECK: %[[A:.*]] = dmir.pad_blocks %arg0 : (tensor<100x130x!dmir.block_fp<BFP16_64R>>) -> tensor<128x192x!dmir.block_fp<BFP16_64R>>
// CHECK: %[[B:.*]] = dmir.pad_blocks %arg1 : (tensor<130x70x!dmir.block_fp<BFP16_64C>>) -> tensor<192x128x!dmir.block_fp<BFP16_64C>>
// CHECK: affine.for %{{.*}} = 0 to 2
// CHECK: affine.for %{{.*}} = 0 to 2
// CHECK: dmir.matmul {{.*}} : (tensor<64x192x!dmir.block_fp<BFP16_64R>>, tensor<192x64x!dmir.block_fp<BFP16_64C>>)
// CHECK: tensor.extract_slice %{{.*}}[0, 0] [100, 70] [1, 1] : tensor<128x128xf16> to tensor<100x70xf16>
func.func @ragged(%a: tensor<100x130x!R>, %b: tensor<130x70x!C>) -> tensor<100x70xf16> {
  %0 = dmir.matmul %a, %b : (tensor<100x130x!R>, tensor<130x70x!C>) -> tensor<100x70xf16>
  return %0 : tensor<100x70xf16>
}

// -----

// Fewer rows than a tile has are told to the product.
// CHECK-LABEL: func @one_row
// CHECK: dmir.matmul {{.*}} {dmir.rows = 1 : i64, dmir.tree_tiles = 2 : i64} :
func.func @one_row(%a: tensor<1x512x!dmir.block_fp<BFP16_64R>>, %b: tensor<512x64x!dmir.block_fp<BFP16_64C>>) -> tensor<1x64xf16> {
  %0 = dmir.matmul %a, %b {dmir.tree_tiles = 2 : i64} : (tensor<1x512x!dmir.block_fp<BFP16_64R>>, tensor<512x64x!dmir.block_fp<BFP16_64C>>) -> tensor<1x64xf16>
  return %0 : tensor<1x64xf16>
}

// -----

// A bias and a cast that alone read the product are computed on its tiles.
// CHECK-LABEL: func @epilogue
// CHECK: affine.for
// CHECK: %[[P:.*]] = dmir.matmul {{.*}} -> tensor<64x64x!dmir.block_fp<BFP32_1>>
// CHECK: %[[B:.*]] = tensor.extract_slice %arg2[%{{.*}}] [64] [1] : tensor<128x!dmir.block_fp<BFP32_1>> to tensor<64x!dmir.block_fp<BFP32_1>>
// CHECK: %[[S:.*]] = dmir.add %[[P]], %[[B]]
// CHECK: %[[H:.*]] = dmir.cast %[[S]] : {{.*}} -> tensor<64x64xf16>
// CHECK: tensor.insert_slice %[[H]]
func.func @epilogue(%a: tensor<64x64x!dmir.block_fp<BFP16_64R>>, %b: tensor<64x128x!dmir.block_fp<BFP16_64C>>, %c: tensor<128x!dmir.block_fp<BFP32_1>>) -> tensor<64x128xf16> {
  %0 = dmir.matmul %a, %b : (tensor<64x64x!dmir.block_fp<BFP16_64R>>, tensor<64x128x!dmir.block_fp<BFP16_64C>>) -> tensor<64x128x!dmir.block_fp<BFP32_1>>
  %1 = dmir.add %c, %0 : (tensor<128x!dmir.block_fp<BFP32_1>>, tensor<64x128x!dmir.block_fp<BFP32_1>>) -> tensor<64x128x!dmir.block_fp<BFP32_1>>
  %2 = dmir.cast %1 : (tensor<64x128x!dmir.block_fp<BFP32_1>>) -> tensor<64x128xf16>
  return %2 : tensor<64x128xf16>
}

// -----

// A batch is outer loops; an operand of one matrix serves all.
// CHECK-LABEL: func @batch
// CHECK: affine.for %[[I:.*]] = 0 to 3
// CHECK: tensor.extract_slice %arg0[%[[I]], %{{.*}}, 0] [1, 64, 128] [1, 1, 1] : tensor<3x64x128x!dmir.block_fp<BFP16_64R>> to tensor<64x128x!dmir.block_fp<BFP16_64R>>
// CHECK: dmir.matmul {{.*}} tensor<128x64x!dmir.block_fp<BFP16_64C>>)
// CHECK: tensor.insert_slice {{.*}} [1, 64, 64] [1, 1, 1] : tensor<64x64xf32> into tensor<3x64x64xf32>
func.func @batch(%a: tensor<3x64x128x!dmir.block_fp<BFP16_64R>>, %b: tensor<128x64x!dmir.block_fp<BFP16_64C>>) -> tensor<3x64x64xf32> {
  %0 = dmir.matmul %a, %b : (tensor<3x64x128x!dmir.block_fp<BFP16_64R>>, tensor<128x64x!dmir.block_fp<BFP16_64C>>) -> tensor<3x64x64xf32>
  return %0 : tensor<3x64x64xf32>
}
