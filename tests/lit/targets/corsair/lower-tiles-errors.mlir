// RUN: dmx-opt %s -corsair-lower-tiles -verify-diagnostics

!R = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>
!C = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>
!P = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP32_1>>
func.func @f(%a: !affine_ext.vec_ext<1x2x!R>, %b: !affine_ext.vec_ext<2x1x!C>) -> !P {
  // expected-error @+1 {{multiplies arrays of tiles that no affine_ext.load brings}}
  %0 = affine_ext.matmul %a, %b : (!affine_ext.vec_ext<1x2x!R>, !affine_ext.vec_ext<2x1x!C>) -> !P
  return %0 : !P
}
