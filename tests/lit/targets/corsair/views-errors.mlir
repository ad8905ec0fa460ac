// REQUIRES: frontend-mlir
// RUN: dmxc %s -q -t corsair:quads=2 --emit partition -o %t.partition.mlir
// RUN: sed 's/share columns/share batch/; s/slices 1/slices 2/' %t.partition.mlir > %t.batch.mlir
// RUN: not dmxc %t.batch.mlir --from partition -q -t corsair:quads=2 -o %t.bundle 2>&1 | FileCheck %s --check-prefix=BATCH
// RUN: dmxc %s -q -t corsair:quads=2 --emit schedule.spmd -o %t.spmd.mlir
// RUN: sed 's/axes = array<i64: 0, 1>/axes = array<i64: 0, 1, 2, 3, 4>/' %t.spmd.mlir > %t.apart.mlir
// RUN: not dmxc %t.apart.mlir --from schedule.spmd -q -t corsair:quads=2 -o %t.bundle 2>&1 | FileCheck %s --check-prefix=APART
// RUN: sed 's/memref<2x3xf16, "GM">/memref<2x3xf16, strided<[8, 2]>, "GM">/g' %t.spmd.mlir > %t.gaps.mlir
// RUN: not dmxc %t.gaps.mlir --from schedule.spmd -q -t corsair:quads=2 -o %t.bundle 2>&1 | FileCheck %s --check-prefix=GAPS

// The rows of a product by one B are those of one; a row walks over four dims at most; what is returned has no gaps.

// BATCH: node 'shared': 'lldmir.plan' is {{.*}} but it has no products that slices could share: it is one
// APART: node 'most': 'lldmir.simd' has rows over more than four dims apart
// GAPS: returns result 2 with gaps; a copy in GM has none
func.func @main(%q: tensor<4x1x64xf32> {dmir.name = "q"}, %one: tensor<64x32xf32> {dmir.name = "one"}, %x: tensor<3x3x3x3x3xf32> {dmir.name = "x"})
    -> (tensor<4x1x32xf32> {dmir.name = "shared"}, tensor<1x1x2x2x2xf32> {dmir.name = "most"}, tensor<2x3xf32> {dmir.name = "part"}) {
  %all = dmir.broadcast %one : (tensor<64x32xf32>) -> tensor<4x64x32xf32>
  %shared = dmir.matmul %q, %all : (tensor<4x1x64xf32>, tensor<4x64x32xf32>) -> tensor<4x1x32xf32> loc("shared")
  %cut = dmir.slice %x {starts = array<i64: 0, 0, 0, 0, 0>, sizes = array<i64: 2, 2, 2, 2, 2>, steps = array<i64: 1, 1, 1, 1, 1>} : (tensor<3x3x3x3x3xf32>) -> tensor<2x2x2x2x2xf32>
  %most = dmir.reduce max %cut {axes = array<i64: 0, 1>} : (tensor<2x2x2x2x2xf32>) -> tensor<1x1x2x2x2xf32> loc("most")
  %part = dmir.slice %one {starts = array<i64: 0, 0>, sizes = array<i64: 2, 3>, steps = array<i64: 1, 1>} : (tensor<64x32xf32>) -> tensor<2x3xf32> loc("part")
  return %shared, %most, %part : tensor<4x1x32xf32>, tensor<1x1x2x2x2xf32>, tensor<2x3xf32>
}
