// RUN: dmx-opt %s | dmx-opt | FileCheck %s

!R = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>
!C = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>
!P = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP32_1>>
!H = !affine_ext.vec_ext<64x64xf16>

// CHECK: func private @planned() attributes {lldmir.plan = #lldmir.plan<num_imc 3, ppr_mode 2, groups 1, slices 4, share rows, segment 3, windows>}
func.func private @planned() attributes {lldmir.plan = #lldmir.plan<num_imc 3, ppr_mode 2, groups 1, slices 4, share rows, segment 3, windows>}

// CHECK-LABEL: func @f
// CHECK-SAME: (%[[A:[^:]*]]: {{[^,]*}}, %[[W:[^:]*]]:
func.func @f(%a: !R, %w: !C, %m: memref<2x2x!H>, %o: memref<2x2x!H>) {
  // CHECK: %[[P:.*]] = lldmir.matmul [%[[A]]] x [%[[W]]] num_imc 1 ppr_mode 0 : !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>> x !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>> -> !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP32_1>>
  %p = lldmir.matmul [%a] x [%w] num_imc 1 ppr_mode 0 : !R x !C -> !P
  // CHECK: %[[Q:.*]] = lldmir.matmul [%[[A]], %[[A]], %[[A]]] x [%[[W]], %[[W]], %[[W]]] num_imc 3 ppr_mode 2 spread <groups 2, slices 4, share batch, segment 6> accumulate %[[P]] {rows = 7 : i64} :
  %q = lldmir.matmul [%a, %a, %a] x [%w, %w, %w] num_imc 3 ppr_mode 2 spread <groups 2, slices 4, share batch, segment 6> accumulate %p {rows = 7 : i64} : !R x !C -> !P
  // CHECK: lldmir.simd "cast"(%[[Q]] : !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP32_1>>) -> !affine_ext.vec_ext<64x64xf16>
  %h = lldmir.simd "cast"(%q : !P) -> !H
  // CHECK: lldmir.simd "softmax"(%{{.*}} : memref<2x2x!affine_ext.vec_ext<64x64xf16>>) outs(%{{.*}} : memref<2x2x!affine_ext.vec_ext<64x64xf16>>) {axis = 1 : i64}
  lldmir.simd "softmax"(%m : memref<2x2x!H>) outs(%o : memref<2x2x!H>) {axis = 1 : i64}
  // CHECK: lldmir.reshape "transpose"(%{{.*}} : memref<2x2x!affine_ext.vec_ext<64x64xf16>>) outs(
  lldmir.reshape "transpose"(%m : memref<2x2x!H>) outs(%o : memref<2x2x!H>)
  // CHECK: lldmir.extern "acme.double"(%{{.*}} : memref<2x2x!affine_ext.vec_ext<64x64xf16>>) outs(%{{.*}}) {kernel = "acme.double", scalars = array<i64: 7>}
  lldmir.extern "acme.double"(%m : memref<2x2x!H>) outs(%o : memref<2x2x!H>) {kernel = "acme.double", scalars = array<i64: 7>}
  return
}
