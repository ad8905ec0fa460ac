// RUN: dmx-opt %s -corsair-lower-tiles | FileCheck %s

!R = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>
!C = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>
!P = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP32_1>>
!H = !affine_ext.vec_ext<64x64xf16>

// One tile along k: one core, no tree.
// CHECK-LABEL: func @one
// CHECK: lldmir.matmul [%{{[0-9]+}}] x [%{{[0-9]+}}] num_imc 1 ppr_mode 0 :
func.func @one(%a: memref<1x1x!R>, %b: memref<1x1x!C>) -> !P {
  %x = affine_ext.load %a[0, 0] : memref<1x1x!R>, !affine_ext.vec_ext<1x1x!R>
  %y = affine_ext.load %b[0, 0] : memref<1x1x!C>, !affine_ext.vec_ext<1x1x!C>
  %0 = affine_ext.matmul %x, %y : (!affine_ext.vec_ext<1x1x!R>, !affine_ext.vec_ext<1x1x!C>) -> !P
  return %0 : !P
}

// 21 tiles are 16 and 5, in increasing k; the second chunk is added to the first. 5 tiles need 3 levels.
// CHECK-LABEL: func @long
// CHECK: affine.load %arg0[%{{.*}}, 0]
// CHECK: affine.load %arg0[%{{.*}}, 15]
// CHECK: affine.load %arg1[15, %{{.*}}]
// CHECK: %[[FIRST:.*]] = lldmir.matmul {{.*}} num_imc 16 ppr_mode 4 :
// CHECK: affine.load %arg0[%{{.*}}, 16]
// CHECK: affine.load %arg1[20, %{{.*}}]
// CHECK: %[[SUM:.*]] = lldmir.matmul {{.*}} num_imc 5 ppr_mode 3 accumulate %[[FIRST]] :
// CHECK: lldmir.simd "cast"(%[[SUM]] :
func.func @long(%a: memref<2x21x!R>, %b: memref<21x2x!C>, %c: memref<2x2x!H>) {
  affine.for %i = 0 to 2 {
    affine.for %j = 0 to 2 {
      %x = affine_ext.load %a[%i, 0] : memref<2x21x!R>, !affine_ext.vec_ext<1x21x!R>
      %y = affine_ext.load %b[0, %j] : memref<21x2x!C>, !affine_ext.vec_ext<21x1x!C>
      %0 = affine_ext.matmul %x, %y : (!affine_ext.vec_ext<1x21x!R>, !affine_ext.vec_ext<21x1x!C>) -> !P
      %1 = affine_ext.cast %0 : (!P) -> !H
      affine.store %1, %c[%i, %j] : memref<2x2x!H>
    }
  }
  return
}

// The plan says how many cores a sum has, how many levels its tree, and how tiles are spread; the products say it then.
// CHECK-LABEL: func @planned
// CHECK: %[[FIRST:.*]] = lldmir.matmul {{.*}} num_imc 3 ppr_mode 2 spread <groups 2, slices 3, share rows, segment 1> :
// CHECK: lldmir.matmul {{.*}} num_imc 1 ppr_mode 2 spread <groups 2, slices 3, share rows, segment 1> accumulate %[[FIRST]] :
// CHECK-NOT: lldmir.plan
func.func @planned(%a: memref<1x4x!R>, %b: memref<4x1x!C>) -> !P {
  %x = affine_ext.load %a[0, 0] : memref<1x4x!R>, !affine_ext.vec_ext<1x4x!R>
  %y = affine_ext.load %b[0, 0] : memref<4x1x!C>, !affine_ext.vec_ext<4x1x!C>
  %0 = affine_ext.matmul %x, %y {lldmir.plan = #lldmir.plan<num_imc 3, ppr_mode 2, groups 2, slices 3, share rows, segment 1>} : (!affine_ext.vec_ext<1x4x!R>, !affine_ext.vec_ext<4x1x!C>) -> !P
  return %0 : !P
}
