// RUN: dmx-opt %s -corsair-tile-matmul -corsair-bufferize-tiles | FileCheck %s

!R = !dmir.block_fp<BFP16_64R>
!C = !dmir.block_fp<BFP16_64C>

// Padding to whole tiles and cutting the result move nothing; other ops become functions from memref to memref.
// CHECK-LABEL: func @ragged
// CHECK-SAME: (%[[A:.*]]: memref<2x3x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>>, %[[B:.*]]: memref<3x2x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>>, %{{.*}}: memref<2x!affine_ext.vec_ext<64xf16>>)
// CHECK: %[[P:.*]] = memref.alloc() : memref<2x2x!affine_ext.vec_ext<64x64xf16>>
// CHECK: affine_ext.load %[[A]][%{{.*}}, 0] : {{.*}}, !affine_ext.vec_ext<1x3x
// CHECK: affine_ext.load %[[B]][0, %{{.*}}] : {{.*}}, !affine_ext.vec_ext<3x1x
// CHECK: %[[S:.*]] = memref.alloc()
// CHECK: lldmir.simd "add"(%[[P]], %{{.*}} : {{.*}}) outs(%[[S]] : {{.*}}) {types = [tensor<100x70xf16>, tensor<70xf16>, tensor<100x70xf16>]}
// CHECK: lldmir.reshape "transpose"(%[[S]] : {{.*}}) outs(%[[T:.*]] : memref<2x2x!affine_ext.vec_ext<64x64xf16>>) {permutation = array<i64: 1, 0>
// CHECK: return %[[T]]
func.func @ragged(%a: tensor<100x130x!R>, %b: tensor<130x70x!C>, %c: tensor<70xf16>) -> tensor<70x100xf16> {
  %0 = dmir.matmul %a, %b : (tensor<100x130x!R>, tensor<130x70x!C>) -> tensor<100x70xf16>
  %1 = dmir.add %0, %c : (tensor<100x70xf16>, tensor<70xf16>) -> tensor<100x70xf16>
  %2 = dmir.transpose %1 {permutation = array<i64: 1, 0>} : (tensor<100x70xf16>) -> tensor<70x100xf16>
  return %2 : tensor<70x100xf16>
}

// A transpose of blocks only has another name.
// CHECK-LABEL: func @retype
// CHECK: lldmir.reshape "retype"(%{{.*}} : memref<2x3x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>>) outs(%{{.*}} : memref<3x2x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>>)
func.func @retype(%a: tensor<100x130x!R>) -> tensor<130x100x!C> {
  %0 = dmir.transpose %a {permutation = array<i64: 1, 0>} : (tensor<100x130x!R>) -> tensor<130x100x!C>
  return %0 : tensor<130x100x!C>
}

// A format with tiles of 128 along k.
// CHECK-LABEL: func @depth
// CHECK-SAME: memref<1x2x!affine_ext.vec_ext<64x128x!dmir.block_fp<BFP12_128R>>>, %{{.*}}: memref<2x1x!affine_ext.vec_ext<128x64x!dmir.block_fp<BFP12_128C>>>
// CHECK: affine_ext.matmul {{.*}} {rows = 5 : i64}
func.func @depth(%a: tensor<5x256x!dmir.block_fp<BFP12_128R>>, %b: tensor<256x64x!dmir.block_fp<BFP12_128C>>) -> tensor<5x64xf16> {
  %0 = dmir.matmul %a, %b : (tensor<5x256x!dmir.block_fp<BFP12_128R>>, tensor<256x64x!dmir.block_fp<BFP12_128C>>) -> tensor<5x64xf16>
  return %0 : tensor<5x64xf16>
}
