// Each labelled constraint, broken once.
// RUN: dmx-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{a tile has one dimension or more, each positive}}
func.func private @f(!affine_ext.vec_ext<f16>)

// -----

// expected-error @+1 {{a tile has one dimension or more, each positive}}
func.func private @f(!affine_ext.vec_ext<0x64xf16>)

// -----

// expected-error @+1 {{a tile's elements are integers, floats, block_fp or tiles}}
func.func private @f(!affine_ext.vec_ext<64xindex>)

// -----

func.func @f(%a: memref<8x8x!affine_ext.vec_ext<64x64xf16>>) {
  // expected-error @+1 {{C1:}}
  %x = affine_ext.load %a[0, 0] : memref<8x8x!affine_ext.vec_ext<64x64xf16>>, !affine_ext.vec_ext<1x8x!affine_ext.vec_ext<64x64xf32>>
  return
}

// -----

func.func @f(%a: memref<8x8x!affine_ext.vec_ext<64x64xf16>>) {
  // expected-error @+1 {{C2: needs one index for each of the 2 dimensions}}
  %x = affine_ext.load %a[0] : memref<8x8x!affine_ext.vec_ext<64x64xf16>>, !affine_ext.vec_ext<1x8x!affine_ext.vec_ext<64x64xf16>>
  return
}

// -----

func.func @f(%a: memref<8x8x!affine_ext.vec_ext<64x64xf16>>) {
  // expected-error @+1 {{C3:}}
  %x = affine_ext.load %a[0, 0] : memref<8x8x!affine_ext.vec_ext<64x64xf16>>, !affine_ext.vec_ext<1x9x!affine_ext.vec_ext<64x64xf16>>
  return
}

// -----

!R = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>
!C = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>
func.func @f(%x: !affine_ext.vec_ext<1x8x!R>, %y: !affine_ext.vec_ext<7x1x!C>) {
  // expected-error @+1 {{C1: needs 1xK tiles and Kx1 tiles}}
  %p = affine_ext.matmul %x, %y : (!affine_ext.vec_ext<1x8x!R>, !affine_ext.vec_ext<7x1x!C>) -> !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP32_1>>
  return
}

// -----

!R = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>
func.func @f(%x: !affine_ext.vec_ext<1x8x!R>, %y: !affine_ext.vec_ext<8x1x!R>) {
  // expected-error @+1 {{C2: tiles of block_fp R and C of equal p, block and depth are needed}}
  %p = affine_ext.matmul %x, %y : (!affine_ext.vec_ext<1x8x!R>, !affine_ext.vec_ext<8x1x!R>) -> !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP32_1>>
  return
}

// -----

!R = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>
!C = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>
func.func @f(%x: !affine_ext.vec_ext<1x8x!R>, %y: !affine_ext.vec_ext<8x1x!C>) {
  // expected-error @+1 {{C3: the result is a tile of BFP32_1, 64 x 64}}
  %p = affine_ext.matmul %x, %y : (!affine_ext.vec_ext<1x8x!R>, !affine_ext.vec_ext<8x1x!C>) -> !affine_ext.vec_ext<64x64xf32>
  return
}

// -----

!R = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>
!C = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>
func.func @f(%x: !affine_ext.vec_ext<1x8x!R>, %y: !affine_ext.vec_ext<8x1x!C>) {
  // expected-error @+1 {{C4: rows is 1 to 64, not 65}}
  %p = affine_ext.matmul %x, %y {rows = 65 : i64} : (!affine_ext.vec_ext<1x8x!R>, !affine_ext.vec_ext<8x1x!C>) -> !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP32_1>>
  return
}

// -----

func.func @f(%x: !affine_ext.vec_ext<64x64xf32>) {
  // expected-error @+1 {{C1: one tile becomes one of the same shape}}
  %p = affine_ext.cast %x : (!affine_ext.vec_ext<64x64xf32>) -> !affine_ext.vec_ext<64xf32>
  return
}
