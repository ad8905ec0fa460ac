// REQUIRES: frontend-mlir
// RUN: dmxc %s -t cpu:x86-64-v3 --emit schedule -o %t.mlir
// RUN: dmxc %t.mlir --from schedule -t cpu:x86-64-v3 -o %t.bundle
// RUN: sed -E 's/rows = [0-9]+ : i64, tiles_per_block/rows = 14 : i64, tiles_per_block/' %t.mlir > %t.outside.mlir
// RUN: not dmxc %t.outside.mlir --from schedule -t cpu:x86-64-v3 -o %t.bundle 2>&1 | FileCheck %s --check-prefix=OUTSIDE
// RUN: sed -E 's/rows = ([0-9]+) : i64, tiles_per_block/row = \1 : i64, tiles_per_block/' %t.mlir > %t.unknown.mlir
// RUN: not dmxc %t.unknown.mlir --from schedule -t cpu:x86-64-v3 -o %t.bundle 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: sed -E 's/rows = [0-9]+ : i64, tiles_per_block/tiles_per_block/' %t.mlir > %t.missing.mlir
// RUN: not dmxc %t.missing.mlir --from schedule -t cpu:x86-64-v3 -o %t.bundle 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: sed -E 's/prefetch_rest = (true|false)/prefetch_rest = 3 : i64/' %t.mlir > %t.derived.mlir
// RUN: not dmxc %t.derived.mlir --from schedule -t cpu:x86-64-v3 -o %t.bundle 2>&1 | FileCheck %s --check-prefix=DERIVED
// RUN: dmxc %s -t cpu:x86-64-v3 --emit partition -o %t.partition.mlir
// RUN: sed -E 's/rows = [0-9]+ : i64, tiles_per_block/rows = 14 : i64, tiles_per_block/' %t.partition.mlir > %t.early.mlir
// RUN: not dmxc %t.early.mlir --from partition -t cpu:x86-64-v3 -o %t.bundle 2>&1 | FileCheck %s --check-prefix=EARLY
// RUN: sed -E 's/block_tiles = [0-9]+/block_tiles = 1000/' %t.mlir > %t.winograd.mlir
// RUN: not dmxc %t.winograd.mlir --from schedule -t cpu:x86-64-v3 -o %t.bundle 2>&1 | FileCheck %s --check-prefix=WINOGRAD

// Tiles of a text are those of one table: what is no field, missing, or no value that a field may have, is said with the key and what may stand
// there.
// OUTSIDE: kernel '{{.*}}': 'tiles.x86-64-v3.rows' of its strategy is 14; its values are 1, 2, 3, 4, 5, 6
// UNKNOWN: kernel '{{.*}}': 'tiles.x86-64-v3.row' of its strategy is no field of it; it has k_block, pack_a, prefetch, prefetch_rest, rows, tiles_per_block, vectors; did you mean 'rows'?
// MISSING: kernel '{{.*}}': 'tiles.x86-64-v3.rows' of its strategy is missing; its values are 1, 2, 3, 4, 5, 6
// DERIVED: kernel '{{.*}}': 'tiles.x86-64-v3.prefetch_rest' of its strategy is 3, but must be {{true|false}}; what is left out is derived
// EARLY: 'tiles.x86-64-v3.rows' of its strategy is 14 : i64, but must be
// WINOGRAD: kernel '{{.*}}': 'tiles.x86-64-v3.block_tiles' of its strategy is 1000; its values are
func.func @main(%x: tensor<64x256xf32> {dmir.name = "x"}, %w: tensor<256x64xf32> {dmir.name = "w"}, %i: tensor<1x64x28x28xf32> {dmir.name = "i"})
    -> (tensor<64x64xf32> {dmir.name = "y"}, tensor<1x64x28x28xf32> {dmir.name = "z"}) {
  %k = dmir.constant dense<0.5> : tensor<64x64x3x3xf32>
  %y = dmir.matmul %x, %w : (tensor<64x256xf32>, tensor<256x64xf32>) -> tensor<64x64xf32> loc("product")
  %z = dmir.conv %i, %k {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 1, 1>} : (tensor<1x64x28x28xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x28x28xf32> loc("conv")
  return %y, %z : tensor<64x64xf32>, tensor<1x64x28x28xf32>
}
