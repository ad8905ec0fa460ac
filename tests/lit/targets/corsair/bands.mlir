// REQUIRES: frontend-mlir
// RUN: dmxc %s -q -t corsair:quads=2 --emit partition -o %t.partition.mlir
// RUN: FileCheck %s --check-prefix=PARTITION < %t.partition.mlir
// RUN: dmxc %s -q -t corsair:quads=2 --emit schedule.spmd -o %t.spmd.mlir
// RUN: FileCheck %s --check-prefix=SPMD < %t.spmd.mlir
// RUN: dmxc %s -q -t corsair:quads=2 --emit schedule.bands -o %t.bands.mlir
// RUN: FileCheck %s --check-prefix=BANDS < %t.bands.mlir
// RUN: dmxc %s -q -t corsair:quads=2 --emit schedule -o - | FileCheck %s --check-prefix=DLIR
// RUN: sed 's/, lldmir.bands, upper = 0/, upper = 0/' %t.spmd.mlir > %t.whole.mlir
// RUN: dmxc %t.whole.mlir --from schedule.spmd -q -t corsair:quads=2 --emit schedule.bands -o - | FileCheck %s --check-prefix=WHOLE
// RUN: sed 's/upper = 0 : i64/upper = 0 : i64, lower = 0 : i64/' %t.spmd.mlir > %t.both.mlir
// RUN: not dmxc %t.both.mlir --from schedule.spmd -q -t corsair:quads=2 -o %t.bundle 2>&1 | FileCheck %s --check-prefix=BOTH

// Rows of scores under a causal mask: partition folds them, and the last stage has no buffer of all rows and columns.

// PARTITION: dmir.mask {{.*}}lldmir.deal = #lldmir.deal<dim 0, quads 2, folded>
// PARTITION: dmir.softmax {{.*}}lldmir.bands, lldmir.deal = #lldmir.deal<dim 0, quads 2, folded>
// SPMD: memref.alloc() : memref<512x1024xf16, "GM">
// SPMD: %[[ROW:.*]] = affine.apply #{{.*}}(%thread_id_x)
// SPMD: lldmir.simd "softmax"(%{{.*}}) row %[[ROW]] outs({{.*}}) {axes = array<i64: 1>, folded = 1024 : i64, lldmir.bands, upper = 0 : i64}
// BANDS-NOT: memref<512x1024
// BANDS: affine.for %[[BAND:.*]] = 0 to 4 {
// BANDS: memref.alloc() : memref<64x1024xf16, "GM">
// BANDS: lldmir.simd "softmax"(%{{.*}} : memref<64x1024xf16, "GM">) row %{{.*}} outs(%{{.*}} : memref<64x1024xf16, "GM">) {axes = array<i64: 1>, upper = 0 : i64}
// BANDS: } {lldmir.bands}
// BANDS: affine.for %{{.*}} = 0 to 4 {
// BANDS: } {lldmir.bands}
// DLIR: corsair.simd "softmax" {{.*}}causal 1
// WHOLE: memref<512x1024xf16, "GM">
// BOTH: 'lldmir.simd' op has two bounds, and keeps one
func.func @main(%q: tensor<1024x64xf32> {dmir.name = "q"}, %k: tensor<1024x64xf32> {dmir.name = "k"},
                %v: tensor<1024x64xf32> {dmir.name = "v"}) -> (tensor<1024x64xf32> {dmir.name = "y"}) {
  %t = dmir.transpose %k {permutation = array<i64: 1, 0>} : (tensor<1024x64xf32>) -> tensor<64x1024xf32>
  %s = dmir.matmul %q, %t : (tensor<1024x64xf32>, tensor<64x1024xf32>) -> tensor<1024x1024xf32> loc("s")
  %m = dmir.mask %s {keep = [affine_set<(i, j) : (i - j >= 0)>], fill = 0xFF800000 : f32} : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32> loc("m")
  %p = dmir.softmax %m {axis = 1 : i64} : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32> loc("p")
  %y = dmir.matmul %p, %v : (tensor<1024x1024xf32>, tensor<1024x64xf32>) -> tensor<1024x64xf32> loc("y")
  return %y : tensor<1024x64xf32>
}
