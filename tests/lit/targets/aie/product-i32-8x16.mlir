// i32, 8x16 by 16x8 on one row of four cores: every text on the way, each of which goes on to the same words.
// REQUIRES: frontend-mlir
// RUN: rm -rf %t && mkdir -p %t
// RUN: dmxc %s -t aie:cols=4+rows=1 --schedule %S/Inputs/tiling-i32.mlir -o %t/m.bundle --save-temps %t/direct
// RUN: dmxc %s -t aie:cols=4+rows=1 --schedule %S/Inputs/tiling-i32.mlir --emit schedule -o %t/placed.mlir
// RUN: dmxc %s -t aie:cols=4+rows=1 --schedule %S/Inputs/tiling-i32.mlir --emit schedule.grid -o %t/grid.mlir
// RUN: dmx-opt %t/placed.mlir -o %t/plain.mlir
// RUN: FileCheck %s --input-file=%t/plain.mlir --check-prefix=PLACED
// RUN: bash %S/Inputs/same-words.sh %t cols=4+rows=1
// RUN: FileCheck %s --input-file=%t/dlir.mlir --check-prefix=DLIR
// RUN: FileCheck %s --input-file=%t/routed.mlir --check-prefix=ROUTED
// RUN: FileCheck %s --input-file=%t/control.mlir --check-prefix=CONTROL
// RUN: head -3 %t/control.insts.txt | FileCheck %s --check-prefix=INSTS

// DLIR: dlir.device_program @{{.*}} on "aie" attributes {aie.machine = "npu1"} {
// DLIR: dlir.argument input "a" : tensor<8x16xi32> as "i32"
// DLIR: %[[X:.*]] = dlir.memory "DDR" "a" size 8192
// DLIR: dlir.piece "a" unit 0 in %[[X]] offset 0 begin [0, 0] extent [8, 16] strides [256, 4]
// DLIR: dlir.channel @a [1]
// DLIR: dlir.channel @c [4, 1]
// DLIR: dlir.scheduled_graph "main" units 4x1 (%[[X:.*]], %[[Y:.*]]) {
// DLIR: %[[PAIRS:.*]] = dlir.register 0 [1]
// DLIR: %[[A:.*]] = dlir.ring "L1" "a" slots 2 size 4096 on "core" from "S2MM" 0 to "compute" 0
// DLIR: %[[PART:.*]] = dlir.ring "L2" "a_part0" slots 2 size 4096 on "memory" from "S2MM" 0 to "MM2S" 0
// DLIR: dlir.dispatch_queue "core" "S2MM" 0 {
// DLIR: dlir.loop %{{.*}} times[4294967295] {
// DLIR: dlir.fill %[[A]] {
// DLIR: dlir.get @a[%[[Y]]] to %[[A]][0] with
// DLIR: dlir.dispatch_queue "core" "compute" 0 {
// DLIR: dlir.loop %{{.*}} times[4294967295] {
// DLIR: dlir.fill %[[C:.*]] {
// DLIR: dlir.loop %{{.*}} times[%[[PAIRS]]] {
// DLIR: dlir.drain %[[A]], %[[B:.*]] {
// DLIR: aie.call "matmul_i32_i32" %[[A]][0] and %[[B]][0] and %[[C]][0]
// DLIR: dlir.dispatch_queue "memory" "S2MM" 0 units 1 (%{{.*}}) {
// DLIR: dlir.dispatch_queue "shim" "MM2S" 1 units 4 (%[[SHIM:.*]]) {
// DLIR: dlir.put @b_in[%[[SHIM]]] %{{.*}}[%[[SHIM]] * 8192] with

// PLACED: aie.device(npu1) @[[KERNEL:[^ ]+]] {
// PLACED: %[[CORE:.*]] = aie.tile(0, 2)
// PLACED: %a0_0_2 = aie.buffer(%[[CORE]]) {address = 0 : i32, sym_name = "a0_0_2"} : memref<32x32xi32>
// PLACED: %a_empty_0_2 = aie.lock(%[[CORE]], 0) {init = 2 : i32, sym_name = "a_empty_0_2"}
// A row of a goes to all four cores.
// PLACED: aie.flow(%[[MEM:.*]], DMA : 0, %[[CORE]], DMA : 0)
// PLACED-NEXT: aie.flow(%[[MEM]], DMA : 0, %{{.*}}, DMA : 0)
// PLACED-NEXT: aie.flow(%[[MEM]], DMA : 0, %{{.*}}, DMA : 0)
// PLACED-NEXT: aie.flow(%[[MEM]], DMA : 0, %{{.*}}, DMA : 0)
// PLACED: aie.memtile_dma(%[[MEM]]) {
// PLACED: aie.dma_start(S2MM, 0, ^bb1, ^bb3)
// PLACED: aie.use_lock(%a_part0_empty_0_1, AcquireGreaterEqual, 1)
// PLACED-NEXT: aie.dma_bd(%a_part0_0_0_1 : memref<32x32xi32>, 0, 1024) {bd_id = 0 : i32}
// PLACED-NEXT: aie.use_lock(%a_part0_full_0_1, Release, 1)
// PLACED-NEXT: aie.next_bd ^bb2
// PLACED: aie.dma_bd(%a_part0_0_0_1 : memref<32x32xi32>, 0, 1024, [<size = 8, stride = 128>, <size = 8, stride = 4>, <size = 4, stride = 32>, <size = 4, stride = 1>])
// PLACED: func.func private @matmul_i32_i32(memref<32x32xi32>, memref<32x32xi32>, memref<32x32xi32>)
// PLACED: aie.core(%[[CORE]]) {
// PLACED: aie.use_lock(%start_0_2, AcquireGreaterEqual, 1)
// PLACED: func.call @matmul_i32_i32(%a0_0_2, %b0_0_2, %c0_0_2)
// PLACED: aie.runtime_sequence(%{{.*}}: memref<32x64xi32>, %{{.*}}: memref<256x32xi32>, %{{.*}}: memref<32x128xi32>) operands
// PLACED: aiex.npu.dma_memcpy_nd(%{{.*}}[0, 0, 0, 0][1, 2, 32, 32][0, 32, 64, 1]) {id = 0 : i64, metadata = @a_in0}
// PLACED: aiex.npu.dma_memcpy_nd(%{{.*}}[0, 0, 0, 0][1, 1, 32, 32][0, 0, 128, 1]) {id = 2 : i64, issue_token = true, metadata = @c_out0}
// PLACED: aiex.npu.rtp_write(@parameters_0_2, 0, 1)
// PLACED: aiex.set_lock(%start_0_2, 1)
// PLACED: aiex.npu.dma_wait {symbol = @c_out3}

// ROUTED-NOT: aie.flow
// ROUTED: aie.switchbox(%{{.*}}) {
// ROUTED: aie.connect<South : 3, North : {{[0-5]}}>
// ROUTED: aie.shim_mux
// ROUTED-NEXT: aie.connect<DMA : 0, North : 3>

// CONTROL-NOT: aiex.npu.dma_memcpy_nd
// CONTROL: memref.global "private" constant @blockwrite_data_0 : memref<8xi32> = dense<
// CONTROL: aiex.npu.blockwrite(%{{.*}}) {address = 118784 : ui32} : memref<8xi32>
// CONTROL-NEXT: aiex.npu.address_patch {addr = 118788 : ui32, arg_idx = 0 : i32, arg_plus = 0 : i64}
// CONTROL-NEXT: aiex.npu.write32 {address = 119316 : ui32, value = 0 : ui32}
// CONTROL: aiex.npu.write32 {address = {{[0-9]+}} : ui32, value = 1 : ui32}
// CONTROL: aiex.npu.sync {channel = 0 : i32, column = 3 : i32, column_num = 1 : i32, direction = 0 : i32, row = 0 : i32, row_num = 1 : i32}

// Six rows, npu1, version 0.1; one row of memory tiles, four columns.
// INSTS: 06030100
// INSTS-NEXT: 00000104

func.func @main(%x: tensor<8x16xi32> {dmir.name = "x"}, %w: tensor<16x8xi32> {dmir.name = "w"}) -> (tensor<8x8xi32> {dmir.name = "y"}) {
  %y = dmir.matmul %x, %w : (tensor<8x16xi32>, tensor<16x8xi32>) -> tensor<8x8xi32>
  return %y : tensor<8x8xi32>
}
