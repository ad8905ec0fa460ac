// i32, 64x256 by 256x64 on one row of four cores: two blocks along m, four pairs of tiles along k.
// REQUIRES: frontend-mlir
// RUN: rm -rf %t && mkdir -p %t
// RUN: dmxc %s -t aie:cols=4+rows=1 --schedule %S/Inputs/tiling-i32.mlir -o %t/m.bundle --save-temps %t/direct
// RUN: dmxc %s -t aie:cols=4+rows=1 --schedule %S/Inputs/tiling-i32.mlir --emit schedule -o %t/placed.mlir
// RUN: dmxc %s -t aie:cols=4+rows=1 --schedule %S/Inputs/tiling-i32.mlir --emit schedule.grid -o %t/grid.mlir
// RUN: dmx-opt %t/placed.mlir -o %t/plain.mlir
// RUN: FileCheck %s --input-file=%t/plain.mlir --check-prefix=PLACED
// RUN: bash %S/Inputs/same-words.sh %t cols=4+rows=1
// RUN: FileCheck %s --input-file=%t/control.mlir --check-prefix=CONTROL

// PLACED: aie.runtime_sequence(%{{.*}}: memref<64x256xi32>, %{{.*}}: memref<1024x32xi32>, %{{.*}}: memref<64x128xi32>) operands
// PLACED: aiex.npu.dma_memcpy_nd(%{{.*}}[0, 0, 0, 0][1, 8, 32, 32][0, 32, 256, 1]) {id = 0 : i64, metadata = @a_in0}
// Columns of b lie panel after panel, 256 rows of 32.
// PLACED: aiex.npu.dma_memcpy_nd(%{{.*}}[0, 0, 0, 24576][1, 8, 32, 32][0, 1024, 32, 1]) {id = 0 : i64, metadata = @b_in3}
// Cores begin when their first tiles are on the way.
// PLACED: aiex.npu.rtp_write(@parameters_0_2, 0, 4)
// The shims of the other columns have no part of a. The second block's rows, by other BDs.
// PLACED: aiex.npu.dma_memcpy_nd(%{{.*}}[0, 0, 0, 8192][1, 8, 32, 32][0, 32, 256, 1]) {id = 3 : i64, metadata = @a_in0}

// CONTROL: aiex.npu.address_patch {addr = 118884 : ui32, arg_idx = 0 : i32, arg_plus = 32768 : i64}

func.func @main(%x: tensor<64x256xi32> {dmir.name = "x"}, %w: tensor<256x64xi32> {dmir.name = "w"}) -> (tensor<64x64xi32> {dmir.name = "y"}) {
  %y = dmir.matmul %x, %w : (tensor<64x256xi32>, tensor<256x64xi32>) -> tensor<64x64xi32>
  return %y : tensor<64x64xi32>
}
