// RUN: dmx-opt %s -split-input-file -corsair-lower-tiles -verify-diagnostics

!R = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>
!C = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>
!P = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP32_1>>
func.func @f(%a: !affine_ext.vec_ext<1x2x!R>, %b: !affine_ext.vec_ext<2x1x!C>) -> !P {
  // expected-error @+1 {{multiplies arrays of tiles that no affine_ext.load brings}}
  %0 = affine_ext.matmul %a, %b : (!affine_ext.vec_ext<1x2x!R>, !affine_ext.vec_ext<2x1x!C>) -> !P
  return %0 : !P
}

// -----

// What is stored after the load must not be multiplied.
!R = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>
!C = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>
!P = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP32_1>>
func.func @f(%a: memref<1x1x!R>, %b: memref<1x1x!C>, %t: !R) -> !P {
  %x = affine_ext.load %a[0, 0] : memref<1x1x!R>, !affine_ext.vec_ext<1x1x!R>
  affine.store %t, %a[0, 0] : memref<1x1x!R>
  %y = affine_ext.load %b[0, 0] : memref<1x1x!C>, !affine_ext.vec_ext<1x1x!C>
  // expected-error @+1 {{does not stand right after the loads of its tiles}}
  %0 = affine_ext.matmul %x, %y : (!affine_ext.vec_ext<1x1x!R>, !affine_ext.vec_ext<1x1x!C>) -> !P
  return %0 : !P
}

// -----

// No slice has 2 x 16 cores.
!R = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>
!C = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>
!P = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP32_1>>
func.func @f(%a: memref<1x16x!R>, %b: memref<16x1x!C>) -> !P {
  %x = affine_ext.load %a[0, 0] : memref<1x16x!R>, !affine_ext.vec_ext<1x16x!R>
  %y = affine_ext.load %b[0, 0] : memref<16x1x!C>, !affine_ext.vec_ext<16x1x!C>
  // expected-error @+1 {{has a 'lldmir.plan' that cannot be: groups is 2: OB has room for four, and a slice has 16 cores}}
  %0 = affine_ext.matmul %x, %y {lldmir.plan = #lldmir.plan<num_imc 16, ppr_mode 4, groups 2, slices 1, share columns, segment 8>} : (!affine_ext.vec_ext<1x16x!R>, !affine_ext.vec_ext<16x1x!C>) -> !P
  return %0 : !P
}
