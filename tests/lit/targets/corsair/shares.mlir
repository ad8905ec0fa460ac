// REQUIRES: frontend-mlir
// RUN: dmxc %s -q -t corsair:quads=4 --emit schedule.buffers -o %t.buffers.mlir
// RUN: FileCheck %s --check-prefix=BUFFERS < %t.buffers.mlir
// RUN: dmxc %s -q -t corsair:quads=4 --emit schedule.spmd -o %t.spmd.mlir
// RUN: FileCheck %s --check-prefix=SPMD < %t.spmd.mlir
// RUN: sed '/lldmir.gather/s/quads 4/quads 8/' %t.spmd.mlir > %t.overlap.mlir
// RUN: not dmxc %t.overlap.mlir --from schedule.spmd -q -t corsair:quads=4 -o %t.bundle 2>&1 | FileCheck %s --check-prefix=OVERLAP
// RUN: sed 's/lldmir.deal = #lldmir.deal<dim 0, quads 4>, lldmir.type/lldmir.type/' %t.spmd.mlir > %t.whole.mlir
// RUN: not dmxc %t.whole.mlir --from schedule.spmd -q -t corsair:quads=4 -o %t.bundle 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: dmxc %s -q -t corsair:quads=4 --emit schedule.tiles -o %t.tiles.mlir
// RUN: sed 's/affine_map<(d0) -> (d0 \* 128)>/affine_map<(d0) -> (d0 * 128 + 64)>/' %t.tiles.mlir > %t.other.mlir
// RUN: not dmxc %t.other.mlir --from schedule.tiles -q -t corsair:quads=4 -o %t.bundle 2>&1 | FileCheck %s --check-prefix=OTHER

// Each quad has its share of what is dealt; what reads all of it reads a whole of its own, which a gather fills.

// BUFFERS: func.func @{{.*}}(%{{.*}}: memref<128x64xf16, "GM"> {lldmir.deal = #lldmir.deal<dim 0, quads 4>, lldmir.type = tensor<512x64xf32>}
// BUFFERS: %[[EXP:.*]] = memref.alloc() : memref<128x64xf16, "GM">
// BUFFERS: lldmir.simd "exp"(%{{.*}} : memref<128x64xf16, "GM">) outs(%[[EXP]] : memref<128x64xf16, "GM">)
// BUFFERS: %[[WHOLE:.*]] = memref.alloc() : memref<512x64xf16, "GM">
// BUFFERS: lldmir.gather %[[EXP]] outs %[[WHOLE]] {deals = [#lldmir.deal<dim 0, quads 4>]} : memref<128x64xf16, "GM"> outs memref<512x64xf16, "GM">
// BUFFERS: memref.alloc() : memref<128x512xf16, "GM">
// SPMD: lldmir.gather
// SPMD-NEXT: gpu.barrier
// OVERLAP: 'lldmir.gather' op fills {{.*}}rows are left to nobody, or overlap
// TYPE: has a 'lldmir.type' of argument 0 that is not its shape
// OTHER: reads or writes shares of other quads than its own
func.func @main(%x: tensor<512x64xf32> {dmir.name = "x"}) -> (tensor<512x512xf32> {dmir.name = "y"}) {
  %e = dmir.exp %x : (tensor<512x64xf32>) -> tensor<512x64xf32>
  %t = dmir.transpose %e {permutation = array<i64: 1, 0>} : (tensor<512x64xf32>) -> tensor<64x512xf32>
  %y = dmir.matmul %e, %t : (tensor<512x64xf32>, tensor<64x512xf32>) -> tensor<512x512xf32> loc("y")
  return %y : tensor<512x512xf32>
}
