// The reference example, 512 x 512 x 512, at every stage; each stage starts from the text of the one before.
// RUN: dmx-opt %s -corsair-assign-formats -o %t.formats.mlir
// RUN: dmx-opt %t.formats.mlir -mlir-elide-resource-strings-if-larger=16 | FileCheck %s --check-prefix=FORMATS
// RUN: dmx-opt %t.formats.mlir -corsair-tile-matmul -o %t.tiled.mlir
// RUN: dmx-opt %t.tiled.mlir -mlir-elide-resource-strings-if-larger=16 | FileCheck %s --check-prefix=TILED
// RUN: dmx-opt %t.tiled.mlir -corsair-bufferize-tiles -o %t.buffers.mlir
// RUN: dmx-opt %t.buffers.mlir -mlir-elide-resource-strings-if-larger=16 | FileCheck %s --check-prefix=BUFFERS
// RUN: dmx-opt %t.buffers.mlir -corsair-lower-tiles -o %t.tiles.mlir
// RUN: dmx-opt %t.tiles.mlir -mlir-elide-resource-strings-if-larger=16 | FileCheck %s --check-prefix=TILES
// RUN: dmx-opt %t.tiles.mlir -corsair-outline-spmd -o %t.spmd.mlir
// RUN: dmx-opt %t.spmd.mlir -mlir-elide-resource-strings-if-larger=16 | FileCheck %s --check-prefix=SPMD

// All stages at once give the same text.
// RUN: dmx-opt %s -corsair-assign-formats -corsair-tile-matmul -corsair-bufferize-tiles -corsair-lower-tiles -corsair-outline-spmd | diff - %t.spmd.mlir

// Eight threads over four quads: a quad takes every fourth column.
// RUN: dmx-opt %t.tiles.mlir -corsair-outline-spmd=quads=4 | FileCheck %s --check-prefix=WRAPPED

// The constant is wire format: 266,240 bytes, two hexadecimal digits each, and eight of the alignment before them.
// RUN: grep -o '"0x[0-9A-F]*"' %t.formats.mlir | tr -d '\n"' | wc -c | FileCheck %s --check-prefix=BYTES
// BYTES: 532490

// FORMATS: module attributes {dm.model_constants.type = [tensor<512x512x!dmir.block_fp<BFP16_64C>>], dm.model_inputs.type = [tensor<512x512xf32>], dm.model_outputs.type = [tensor<512x512xf32>]}
// FORMATS: func.func @main(%[[X:.*]]: tensor<512x512x!dmir.block_fp<BFP16_64R>>) -> tensor<512x512xf16>
// FORMATS-NEXT: %[[W:.*]] = dmir.constant dense_resource<c> : tensor<512x512x!dmir.block_fp<BFP16_64C>>
// FORMATS-NEXT: %[[Y:.*]] = dmir.matmul %[[X]], %[[W]] : (tensor<512x512x!dmir.block_fp<BFP16_64R>>, tensor<512x512x!dmir.block_fp<BFP16_64C>>) -> tensor<512x512xf16>
// FORMATS-NEXT: return %[[Y]] : tensor<512x512xf16>

// TILED: dm.model_inputs.type = [tensor<512x512xf32>]
// TILED: func.func @main(%[[X:.*]]: tensor<512x512x!dmir.block_fp<BFP16_64R>>) -> tensor<512x512xf16>
// TILED: %[[W:.*]] = dmir.constant {{.*}} : tensor<512x512x!dmir.block_fp<BFP16_64C>>
// TILED: %[[INIT:.*]] = dmir.undef : tensor<512x512xf16>
// TILED: affine.for %[[I:.*]] = 0 to 8 iter_args(%[[OUTER:.*]] = %[[INIT]]) -> (tensor<512x512xf16>)
// TILED-NEXT: affine.for %[[J:.*]] = 0 to 8 iter_args(%[[INNER:.*]] = %[[OUTER]]) -> (tensor<512x512xf16>)
// TILED: %[[ROW:.*]] = affine.apply #map(%[[I]])
// TILED: %[[COLUMN:.*]] = affine.apply #map(%[[J]])
// TILED: %[[A:.*]] = tensor.extract_slice %[[X]][%[[ROW]], 0] [64, 512] [1, 1] : tensor<512x512x!dmir.block_fp<BFP16_64R>> to tensor<64x512x!dmir.block_fp<BFP16_64R>>
// TILED: %[[B:.*]] = tensor.extract_slice %[[W]][0, %[[COLUMN]]] [512, 64] [1, 1] : tensor<512x512x!dmir.block_fp<BFP16_64C>> to tensor<512x64x!dmir.block_fp<BFP16_64C>>
// TILED: %[[P:.*]] = dmir.matmul %[[A]], %[[B]] : {{.*}} -> tensor<64x64x!dmir.block_fp<BFP32_1>>
// TILED: %[[H:.*]] = dmir.cast %[[P]] : {{.*}} -> tensor<64x64xf16>
// TILED: tensor.insert_slice %[[H]] into %[[INNER]][%[[ROW]], %[[COLUMN]]] [64, 64] [1, 1] : tensor<64x64xf16> into tensor<512x512xf16>

// BUFFERS: func.func @main(%[[X:.*]]: memref<8x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>>) -> memref<8x8x!affine_ext.vec_ext<64x64xf16>>
// BUFFERS: %[[W:.*]] = affine_ext.constant {{.*}} to memref<8x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>>
// BUFFERS: %[[O:.*]] = memref.alloc() : memref<8x8x!affine_ext.vec_ext<64x64xf16>>
// BUFFERS: affine.for %[[I:.*]] = 0 to 8 {
// BUFFERS-NEXT: affine.for %[[J:.*]] = 0 to 8 {
// BUFFERS-NEXT: %[[A:.*]] = affine_ext.load %[[X]][%[[I]], 0] : {{.*}}, !affine_ext.vec_ext<1x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>>
// BUFFERS-NEXT: %[[B:.*]] = affine_ext.load %[[W]][0, %[[J]]] : {{.*}}, !affine_ext.vec_ext<8x1x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>>
// BUFFERS-NEXT: %[[P:.*]] = affine_ext.matmul %[[A]], %[[B]] : {{.*}} -> !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP32_1>>
// BUFFERS-NEXT: %[[H:.*]] = affine_ext.cast %[[P]] : {{.*}} -> !affine_ext.vec_ext<64x64xf16>
// BUFFERS-NEXT: affine.store %[[H]], %[[O]][%[[I]], %[[J]]] : memref<8x8x!affine_ext.vec_ext<64x64xf16>>

// TILES: affine.for %[[I:.*]] = 0 to 8 {
// TILES-NEXT: affine.for %[[J:.*]] = 0 to 8 {
// TILES-NEXT: %[[A0:.*]] = affine.load %{{.*}}[%[[I]], 0] : memref<8x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>>
// TILES: %[[A7:.*]] = affine.load %{{.*}}[%[[I]], 7] : memref<8x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>>
// TILES-NEXT: %[[W0:.*]] = affine.load %{{.*}}[0, %[[J]]] : memref<8x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>>
// TILES: %[[W7:.*]] = affine.load %{{.*}}[7, %[[J]]] : memref<8x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>>
// TILES-NEXT: %[[P:.*]] = lldmir.matmul [%[[A0]], {{(%[0-9]+, ){6} ?}}%[[A7]]] x [%[[W0]], {{(%[0-9]+, ){6} ?}}%[[W7]]] num_imc 8 ppr_mode 3 : !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>> x !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>> -> !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP32_1>>
// TILES-NEXT: %[[H:.*]] = lldmir.simd "cast"(%[[P]] : {{.*}}) -> !affine_ext.vec_ext<64x64xf16>
// TILES-NEXT: affine.store %[[H]], %{{.*}}[%[[I]], %[[J]]]

// SPMD: gpu.container_module
// SPMD: func.func @main(%[[X:.*]]: memref<8x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>>)
// SPMD: %[[W:.*]] = affine_ext.constant
// SPMD: %[[O:.*]] = memref.alloc()
// SPMD-DAG: %[[C1:.*]] = arith.constant 1 : index
// SPMD-DAG: %[[C8:.*]] = arith.constant 8 : index
// SPMD: gpu.launch_func @main_kernels::@main_0 blocks in (%[[C1]], %[[C1]], %[[C1]]) threads in (%[[C8]], %[[C1]], %[[C1]]) args(%[[W]] : {{.*}}, %[[X]] : {{.*}}, %[[O]] : {{.*}})
// SPMD: return %[[O]]
// SPMD: gpu.module @main_kernels
// SPMD: gpu.func @main_0(%[[KW:.*]]: memref<8x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>>, %[[KX:.*]]: memref<8x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>>, %[[KO:.*]]: memref<8x8x!affine_ext.vec_ext<64x64xf16>>) kernel attributes {known_block_size = array<i32: 8, 1, 1>}
// SPMD-NEXT: %[[T:.*]] = gpu.thread_id x
// SPMD-NEXT: affine.for %[[I:.*]] = 0 to 8 {
// SPMD: affine.load %[[KX]][%[[I]], 0]
// SPMD: affine.load %[[KW]][7, %[[T]]]
// SPMD: lldmir.matmul {{.*}} num_imc 8 ppr_mode 3
// SPMD: affine.store %{{.*}}, %[[KO]][%[[I]], %[[T]]]
// SPMD: gpu.return

// WRAPPED: known_block_size = array<i32: 4, 1, 1>
// WRAPPED-NEXT: %[[T:.*]] = gpu.thread_id x
// WRAPPED-NEXT: affine.for %[[J:.*]] = #{{.*}}(%[[T]]) to 8 step 4 {
// WRAPPED-NEXT: affine.for %[[I:.*]] = 0 to 8 {
// WRAPPED: affine.store %{{.*}}, %{{.*}}[%[[I]], %[[J]]]
func.func @main(%x: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %w = dmir.constant dense<0.5> : tensor<512x512xf32>
  %y = dmir.matmul %x, %w : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}
