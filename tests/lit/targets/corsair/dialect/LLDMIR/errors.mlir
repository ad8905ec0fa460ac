// Each labelled constraint, broken once.
// RUN: dmx-opt %s -split-input-file -verify-diagnostics

!R = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>
!C = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>
!P = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP32_1>>
func.func @f(%a: !R, %w: !C) {
  // expected-error @+1 {{C1: num_imc 2 needs as many activation and weight tiles, got 2 and 1}}
  %p = lldmir.matmul [%a, %a] x [%w] num_imc 2 ppr_mode 1 : !R x !C -> !P
  return
}

// -----

!R = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>
!C = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>
!P = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP32_1>>
func.func @f(%a: !R, %w: !C) {
  // expected-error @+1 {{C2: num_imc 9 <= 2^ppr_mode 3 <= 16 cores of a slice does not hold}}
  %p = lldmir.matmul [%a, %a, %a, %a, %a, %a, %a, %a, %a] x [%w, %w, %w, %w, %w, %w, %w, %w, %w] num_imc 9 ppr_mode 3 : !R x !C -> !P
  return
}

// -----

!R = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>
!C = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>
!P = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP32_1>>
func.func @f(%a: !R, %w: !C) {
  // expected-error @+1 {{C2: num_imc 1 <= 2^ppr_mode 5 <= 16 cores of a slice does not hold}}
  %p = lldmir.matmul [%a] x [%w] num_imc 1 ppr_mode 5 : !R x !C -> !P
  return
}

// -----

!R = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>
!C = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>
!P = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP32_1>>
func.func @f(%a: !R, %w: !C) {
  // expected-error @+1 {{C2: groups is 4: OB has room for four, and a slice has 16 cores}}
  %p = lldmir.matmul [%a, %a, %a, %a, %a] x [%w, %w, %w, %w, %w] num_imc 5 ppr_mode 3 spread <groups 4, slices 1, share columns, segment 8> : !R x !C -> !P
  return
}

// -----

!R = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>
!C = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>
!P = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP32_1>>
func.func @f(%a: !R, %w: !C) {
  // expected-error @+1 {{C2: slices is 5, a quad has 4}}
  %p = lldmir.matmul [%a] x [%w] num_imc 1 ppr_mode 0 spread <groups 1, slices 5, share rows, segment 8> : !R x !C -> !P
  return
}

// -----

// expected-error @+1 {{expected 'windows'}}
func.func private @f() attributes {lldmir.plan = #lldmir.plan<num_imc 1, ppr_mode 0, groups 1, slices 1, share rows, segment 8, folded>}

// -----

// expected-error @+1 {{slices share columns, rows or batch, not 'depth'}}
func.func private @f() attributes {lldmir.plan = #lldmir.plan<num_imc 1, ppr_mode 0, groups 1, slices 1, share depth, segment 8>}

// -----

// expected-error @+1 {{the numbers of a plan are positive}}
func.func private @f() attributes {lldmir.plan = #lldmir.plan<num_imc 1, ppr_mode 0, groups 0, slices 1, share rows, segment 8>}

// -----

!R = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>
!P = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP32_1>>
func.func @f(%a: !R) {
  // expected-error @+1 {{C3: needs equal tiles of block_fp R and of C}}
  %p = lldmir.matmul [%a] x [%a] num_imc 1 ppr_mode 0 : !R x !R -> !P
  return
}

// -----

!R = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>
!C = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>
func.func @f(%a: !R, %w: !C) {
  // expected-error @+1 {{C4: the result is a tile of BFP32_1, 64 x 64}}
  %p = lldmir.matmul [%a] x [%w] num_imc 1 ppr_mode 0 : !R x !C -> !affine_ext.vec_ext<64x64xf16>
  return
}

// -----

!R = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>
!C = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>
!P = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP32_1>>
func.func @f(%a: !R, %w: !C) {
  // expected-error @+1 {{C5: rows is 1 to 64, not 0}}
  %p = lldmir.matmul [%a] x [%w] num_imc 1 ppr_mode 0 {rows = 0 : i64} : !R x !C -> !P
  return
}

// -----

!H = !affine_ext.vec_ext<64x64xf16>
func.func @f(%a: !H) {
  // expected-error @+1 {{C1: needs either results, from tiles, or outs}}
  lldmir.simd "relu"(%a : !H)
  return
}

// -----

!H = !affine_ext.vec_ext<64x64xf16>
func.func @f(%a: memref<2x2x!H>) {
  // expected-error @+1 {{C1: a memref is computed into another one, given by outs}}
  %0 = lldmir.simd "relu"(%a : memref<2x2x!H>) -> !H
  return
}

// -----

!H = !affine_ext.vec_ext<64x64xf16>
func.func @f(%a: !H) {
  // expected-error @+1 {{C2: needs the name of a function}}
  %0 = lldmir.reshape ""(%a : !H) -> !H
  return
}

// -----

func.func @extern_without_result(%a: memref<64xf16, "GM">) {
  // expected-error @+1 {{C1: a memref is computed into another one, given by outs}}
  lldmir.extern "acme.double"(%a : memref<64xf16, "GM">)
  return
}

// -----

func.func @gather_that_leaves_rows(%share: memref<2x64xf16, "GM">, %whole: memref<16x64xf16, "GM">) {
  // expected-error @+1 {{C3: fills 'memref<16x64xf16, "GM">' from shares that are 'memref<2x64xf16, "GM">' on 4 quads: rows are left to nobody, or overlap}}
  lldmir.gather %share outs %whole {deals = [#lldmir.deal<dim 0, quads 4>]} : memref<2x64xf16, "GM"> outs memref<16x64xf16, "GM">
  return
}

// -----

func.func @gather_in_place(%share: memref<2x64xf16, "GM">) {
  // expected-error @+1 {{C2: gives the whole of each tensor, or fills a whole for each buffer}}
  lldmir.gather %share {deals = [#lldmir.deal<dim 0, quads 4>]} : memref<2x64xf16, "GM">
  return
}
