// A convolution of 5x5 by a stride of 2 on one core: what the shim's BD walks over, where the border puts the image, and
// texts that go on to the same words.
// REQUIRES: frontend-mlir
// RUN: rm -rf %t && mkdir -p %t
// RUN: dmxc %s -t aie:cols=1+rows=1 --schedule %S/Inputs/tiling-conv.mlir -o %t/m.bundle --save-temps %t/direct --placement-report %t/report.txt
// RUN: FileCheck %s --input-file=%t/report.txt --check-prefix=REPORT
// RUN: dmxc %s -t aie:cols=1+rows=1 --schedule %S/Inputs/tiling-conv.mlir --emit schedule -o %t/placed.mlir
// RUN: dmxc %s -t aie:cols=1+rows=1 --schedule %S/Inputs/tiling-conv.mlir --emit schedule.grid -o %t/grid.mlir
// RUN: dmx-opt %t/placed.mlir -o %t/plain.mlir
// RUN: FileCheck %s --input-file=%t/plain.mlir --check-prefix=PLACED
// RUN: bash %S/Inputs/same-words.sh %t cols=1+rows=1
// RUN: FileCheck %s --input-file=%t/dlir.mlir --check-prefix=DLIR

// 40 outputs of 4x4 pixels of 5 * 5 * 3 numbers are 48000 multiplications of 64 * 192 * 64: 93.9 %.
// REPORT: dmir.conv{{.*}}aie{{.*}}bf16 tiles of 64x32x64, 1 pixel a row, {{[0-9]+}} MACs, 93.{{[0-9]}} % padding{{.*}}bf16 bf16 -> f32

// Two pixels of 3 channels are whole words. 9 columns behind one of zeros; the one behind them is the next row's: 5 windows a row,
// which is 30 numbers. 11 rows with those of zeros: 6 in a plane.
// DLIR: dlir.piece "a" unit 0 in %{{.*}} offset 0 begin [0, 0, 0, 0] extent [1, 3, 9, 9] strides [360, 2, 60, 6] {aie.border = {first = array<i64: 0, 0, 1, 1>, phase = array<i64: 0, 0, 180, 0>, pitch = 60 : i64, split = array<i64: 1, 1, 2, 1>}}
// DLIR: dlir.piece "c" unit 0 in %{{.*}} offset 0 begin [0, 0, 0, 0] extent [1, 40, 4, 4] strides [7680, 4, 1280, 256]
// Rows 0, 2 and 4 of the kernel, then 1 and 3, then a tile of zeros behind all rows.
// DLIR: dlir.put @a_in[%[[UNIT:.*]]] %[[A:.*]][%[[UNIT]] * 768] with
// DLIR: dlir.put @a_in[%[[UNIT]]] %[[A]][%[[UNIT]] * 768 + 360] with
// DLIR: dlir.put @a_in[%[[UNIT]]] %[[A]][1260] with

// The last window reads 32 numbers from 180 + 30 + 63 * 6 on, to the end of row 20; behind them 64 * 32 zeros, which are 69 rows.
// PLACED: aie.runtime_sequence(%[[A:[^:]*]]: memref<90x30xbf16>, %{{.*}}: memref<192x64xbf16>, %{{.*}}: memref<64x64xf32>)
// PLACED-SAME: border = {first = array<i64: 0, 0, 1, 1>, phase = array<i64: 0, 0, 180, 0>, split = array<i64: 1, 1, 2, 1>, strides = array<i64: 180, 1, 30, 3>}
// PLACED: aiex.npu.dma_memcpy_nd(%[[A]][0, 0, 0, 0][1, 3, 64, 32][0, 30, 6, 1]) {id = 0 : i64, metadata = @a_in0}
// PLACED: aiex.npu.dma_memcpy_nd(%[[A]][0, 0, 0, 180][1, 2, 64, 32][0, 30, 6, 1]) {id = 1 : i64, metadata = @a_in0}
// PLACED: aiex.npu.dma_memcpy_nd(%[[A]][0, 0, 0, 630][1, 1, 64, 32][0, 0, 32, 1]) {id = 2 : i64, metadata = @a_in0}

func.func @main(%x: tensor<1x3x9x9xf32> {dmir.name = "x"}) -> (tensor<1x40x4x4xf32> {dmir.name = "y"}) {
  %w = dmir.constant dense<0.5> : tensor<40x3x5x5xf32>
  %y = dmir.conv %x, %w {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 1, 1>} : (tensor<1x3x9x9xf32>, tensor<40x3x5x5xf32>) -> tensor<1x40x4x4xf32>
  return %y : tensor<1x40x4x4xf32>
}
