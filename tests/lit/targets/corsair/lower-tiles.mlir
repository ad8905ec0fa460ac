// RUN: dmx-opt %s -corsair-tile-matmul -corsair-bufferize-tiles -corsair-lower-tiles | FileCheck %s
// RUN: dmx-opt %s -corsair-tile-matmul -corsair-bufferize-tiles -corsair-lower-tiles=cores=4 | FileCheck %s --check-prefix=FOUR
// RUN: not dmx-opt %s -corsair-lower-tiles=cores=17 2>&1 | FileCheck %s --check-prefix=MANY
// MANY: option 'cores' is 1 to 16, or 0 for all, not 17

!R = !dmir.block_fp<BFP16_64R>
!C = !dmir.block_fp<BFP16_64C>

// One tile along k: one core, no tree.
// CHECK-LABEL: func @one
// CHECK: lldmir.matmul [%{{[0-9]+}}] x [%{{[0-9]+}}] num_imc 1 ppr_mode 0 {rows = 1 : i64} :
func.func @one(%a: tensor<1x64x!R>, %b: tensor<64x64x!C>) -> tensor<1x64xf16> {
  %0 = dmir.matmul %a, %b : (tensor<1x64x!R>, tensor<64x64x!C>) -> tensor<1x64xf16>
  return %0 : tensor<1x64xf16>
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
// FOUR-LABEL: func @long
// FOUR: %[[A:.*]] = lldmir.matmul {{.*}} num_imc 4 ppr_mode 2 :
// FOUR: %[[B:.*]] = lldmir.matmul {{.*}} num_imc 4 ppr_mode 2 accumulate %[[A]] :
// FOUR-COUNT-3: lldmir.matmul {{.*}} num_imc 4 ppr_mode 2 accumulate
// FOUR: lldmir.matmul {{.*}} num_imc 1 ppr_mode 0 accumulate
func.func @long(%a: tensor<128x1300x!R>, %b: tensor<1300x128x!C>) -> tensor<128x128xf16> {
  %0 = dmir.matmul %a, %b : (tensor<128x1300x!R>, tensor<1300x128x!C>) -> tensor<128x128xf16>
  return %0 : tensor<128x128xf16>
}

// The grouping that the tensor's product asks for is kept.
// CHECK-LABEL: func @grouped
// CHECK: num_imc 3 ppr_mode 2 :
// CHECK: num_imc 1 ppr_mode 0 accumulate
func.func @grouped(%a: tensor<64x256x!R>, %b: tensor<256x64x!C>) -> tensor<64x64xf16> {
  %0 = dmir.matmul %a, %b {dmir.tree_tiles = 3 : i64} : (tensor<64x256x!R>, tensor<256x64x!C>) -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}
