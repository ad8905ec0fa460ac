// RUN: dmx-opt %s | dmx-opt | FileCheck %s

!R = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>
!C = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>
!P = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP32_1>>
!H = !affine_ext.vec_ext<64x64xf16>

// CHECK-LABEL: func @f
// CHECK-SAME: memref<8x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>>
func.func @f(%a: memref<8x8x!R>, %w: memref<8x8x!C>) {
  affine.for %i = 0 to 8 {
    // CHECK: affine_ext.load %{{.*}}[%{{.*}}, 0] : memref<8x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>>, !affine_ext.vec_ext<1x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>>
    %x = affine_ext.load %a[%i, 0] : memref<8x8x!R>, !affine_ext.vec_ext<1x8x!R>
    %y = affine_ext.load %w[0, 7 - %i] : memref<8x8x!C>, !affine_ext.vec_ext<8x1x!C>
    // CHECK: affine_ext.matmul {{.*}} {rows = 3 : i64} : {{.*}} -> !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP32_1>>
    %p = affine_ext.matmul %x, %y {rows = 3 : i64} : (!affine_ext.vec_ext<1x8x!R>, !affine_ext.vec_ext<8x1x!C>) -> !P
    // CHECK: affine_ext.cast {{.*}} -> !affine_ext.vec_ext<64x64xf16>
    %h = affine_ext.cast %p : (!P) -> !H
  }
  return
}
