// The reference example, 512 x 512 x 512, at every stage; each stage starts from the text of the one before.
// RUN: dmx-opt %s -corsair-assign-formats -o %t.formats.mlir
// RUN: dmx-opt %t.formats.mlir -mlir-elide-resource-strings-if-larger=16 | FileCheck %s --check-prefix=FORMATS
// RUN: dmx-opt %t.formats.mlir -corsair-tile-matmul -o %t.tiled.mlir
// RUN: dmx-opt %t.tiled.mlir -mlir-elide-resource-strings-if-larger=16 | FileCheck %s --check-prefix=TILED
// RUN: dmx-opt %t.tiled.mlir -corsair-bufferize-tiles -o %t.buffers.mlir
// RUN: dmx-opt %t.buffers.mlir -mlir-elide-resource-strings-if-larger=16 | FileCheck %s --check-prefix=BUFFERS
// RUN: dmx-opt %t.buffers.mlir -corsair-lower-tiles -o %t.tiles.mlir
// RUN: dmx-opt %t.tiles.mlir -mlir-elide-resource-strings-if-larger=16 | FileCheck %s --check-prefix=TILES
// RUN: dmx-opt %t.tiles.mlir -corsair-outline-spmd -o %t.spmd.mlir
// RUN: dmx-opt %t.spmd.mlir -mlir-elide-resource-strings-if-larger=16 | FileCheck %s --check-prefix=SPMD

// RUN: dmx-opt %t.spmd.mlir -corsair-build-dlir -o %t.dlir.mlir
// RUN: dmx-opt %t.dlir.mlir -mlir-elide-resource-strings-if-larger=16 | FileCheck %s --check-prefix=DLIR
// RUN: dmx-opt %t.dlir.mlir -corsair-encode="file=%t.dmxisa text=%t.s" -o %t.again.mlir
// RUN: FileCheck %s --check-prefix=ISA --input-file=%t.s

// All stages at once give the same text.
// RUN: dmx-opt %s -corsair-assign-formats -corsair-tile-matmul -corsair-bufferize-tiles -corsair-lower-tiles -corsair-outline-spmd | diff - %t.spmd.mlir

// DLIR is a fixed point of printing and parsing, and the stages in one go give the same bytes as one after the other.
// RUN: dmx-opt %t.dlir.mlir | diff - %t.dlir.mlir
// RUN: diff %t.again.mlir %t.dlir.mlir
// RUN: dmx-opt %s -corsair-assign-formats -corsair-tile-matmul -corsair-bufferize-tiles -corsair-lower-tiles -corsair-outline-spmd -corsair-build-dlir -corsair-encode=file=%t.once.dmxisa -o /dev/null
// RUN: cmp %t.dmxisa %t.once.dmxisa

// Eight threads over four quads: a quad takes every fourth column.
// RUN: dmx-opt %t.tiles.mlir -corsair-outline-spmd=quads=4 | FileCheck %s --check-prefix=WRAPPED

// The constant is wire format: 266,240 bytes, two hexadecimal digits each, and eight of the alignment before them.
// RUN: grep -o '"0x[0-9A-F]*"' %t.formats.mlir | tr -d '\n"' | wc -c | FileCheck %s --check-prefix=BYTES
// BYTES: 532490

// FORMATS: module attributes {dm.model_constants.type = [tensor<512x512x!dmir.block_fp<BFP16_64C>>], dm.model_inputs.type = [tensor<512x512xf32>], dm.model_outputs.type = [tensor<512x512xf32>]}
// FORMATS: func.func @main(%[[X:.*]]: tensor<512x512x!dmir.block_fp<BFP16_64R>>) -> tensor<512x512xf16>
// FORMATS-NEXT: %[[W:.*]] = dmir.constant dense_resource<c> : tensor<512x512x!dmir.block_fp<BFP16_64C>>
// FORMATS-NEXT: %[[Y:.*]] = dmir.matmul %[[X]], %[[W]] : (tensor<512x512x!dmir.block_fp<BFP16_64R>>, tensor<512x512x!dmir.block_fp<BFP16_64C>>) -> tensor<512x512xf16>
// FORMATS-NEXT: return %[[Y]] : tensor<512x512xf16>

// TILED: dm.model_inputs.type = [tensor<512x512xf32>]
// TILED: func.func @main(%[[X:.*]]: tensor<512x512x!dmir.block_fp<BFP16_64R>>) -> tensor<512x512xf16>
// TILED: %[[W:.*]] = dmir.constant {{.*}} : tensor<512x512x!dmir.block_fp<BFP16_64C>>
// TILED: %[[INIT:.*]] = dmir.undef : tensor<512x512xf16>
// TILED: affine.for %[[I:.*]] = 0 to 8 iter_args(%[[OUTER:.*]] = %[[INIT]]) -> (tensor<512x512xf16>)
// TILED-NEXT: affine.for %[[J:.*]] = 0 to 8 iter_args(%[[INNER:.*]] = %[[OUTER]]) -> (tensor<512x512xf16>)
// TILED: %[[ROW:.*]] = affine.apply #map(%[[I]])
// TILED: %[[COLUMN:.*]] = affine.apply #map(%[[J]])
// TILED: %[[A:.*]] = tensor.extract_slice %[[X]][%[[ROW]], 0] [64, 512] [1, 1] : tensor<512x512x!dmir.block_fp<BFP16_64R>> to tensor<64x512x!dmir.block_fp<BFP16_64R>>
// TILED: %[[B:.*]] = tensor.extract_slice %[[W]][0, %[[COLUMN]]] [512, 64] [1, 1] : tensor<512x512x!dmir.block_fp<BFP16_64C>> to tensor<512x64x!dmir.block_fp<BFP16_64C>>
// TILED: %[[P:.*]] = dmir.matmul %[[A]], %[[B]] : {{.*}} -> tensor<64x64x!dmir.block_fp<BFP32_1>>
// TILED: %[[H:.*]] = dmir.cast %[[P]] : {{.*}} -> tensor<64x64xf16>
// TILED: tensor.insert_slice %[[H]] into %[[INNER]][%[[ROW]], %[[COLUMN]]] [64, 64] [1, 1] : tensor<64x64xf16> into tensor<512x512xf16>

// BUFFERS: func.func @main(%[[X:.*]]: memref<8x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>>) -> memref<8x8x!affine_ext.vec_ext<64x64xf16>>
// BUFFERS: %[[W:.*]] = affine_ext.constant {{.*}} to memref<8x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>>
// BUFFERS: %[[O:.*]] = memref.alloc() : memref<8x8x!affine_ext.vec_ext<64x64xf16>>
// BUFFERS: affine.for %[[I:.*]] = 0 to 8 {
// BUFFERS-NEXT: affine.for %[[J:.*]] = 0 to 8 {
// BUFFERS-NEXT: %[[A:.*]] = affine_ext.load %[[X]][%[[I]], 0] : {{.*}}, !affine_ext.vec_ext<1x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>>
// BUFFERS-NEXT: %[[B:.*]] = affine_ext.load %[[W]][0, %[[J]]] : {{.*}}, !affine_ext.vec_ext<8x1x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>>
// BUFFERS-NEXT: %[[P:.*]] = affine_ext.matmul %[[A]], %[[B]] : {{.*}} -> !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP32_1>>
// BUFFERS-NEXT: %[[H:.*]] = affine_ext.cast %[[P]] : {{.*}} -> !affine_ext.vec_ext<64x64xf16>
// BUFFERS-NEXT: affine.store %[[H]], %[[O]][%[[I]], %[[J]]] : memref<8x8x!affine_ext.vec_ext<64x64xf16>>

// TILES: affine.for %[[I:.*]] = 0 to 8 {
// TILES-NEXT: affine.for %[[J:.*]] = 0 to 8 {
// TILES-NEXT: %[[A0:.*]] = affine.load %{{.*}}[%[[I]], 0] : memref<8x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>>
// TILES: %[[A7:.*]] = affine.load %{{.*}}[%[[I]], 7] : memref<8x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>>
// TILES-NEXT: %[[W0:.*]] = affine.load %{{.*}}[0, %[[J]]] : memref<8x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>>
// TILES: %[[W7:.*]] = affine.load %{{.*}}[7, %[[J]]] : memref<8x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>>
// TILES-NEXT: %[[P:.*]] = lldmir.matmul [%[[A0]], {{(%[0-9]+, ){6} ?}}%[[A7]]] x [%[[W0]], {{(%[0-9]+, ){6} ?}}%[[W7]]] num_imc 8 ppr_mode 3 : !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>> x !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>> -> !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP32_1>>
// TILES-NEXT: %[[H:.*]] = lldmir.simd "cast"(%[[P]] : {{.*}}) -> !affine_ext.vec_ext<64x64xf16>
// TILES-NEXT: affine.store %[[H]], %{{.*}}[%[[I]], %[[J]]]

// SPMD: gpu.container_module
// SPMD: func.func @main(%[[X:.*]]: memref<8x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>>)
// SPMD: %[[W:.*]] = affine_ext.constant
// SPMD: %[[O:.*]] = memref.alloc()
// SPMD-DAG: %[[C1:.*]] = arith.constant 1 : index
// SPMD-DAG: %[[C8:.*]] = arith.constant 8 : index
// SPMD: gpu.launch_func @main_kernels::@main_0 blocks in (%[[C1]], %[[C1]], %[[C1]]) threads in (%[[C8]], %[[C1]], %[[C1]]) args(%[[W]] : {{.*}}, %[[X]] : {{.*}}, %[[O]] : {{.*}})
// SPMD: return %[[O]]
// SPMD: gpu.module @main_kernels
// SPMD: gpu.func @main_0(%[[KW:.*]]: memref<8x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>>, %[[KX:.*]]: memref<8x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>>, %[[KO:.*]]: memref<8x8x!affine_ext.vec_ext<64x64xf16>>) kernel attributes {known_block_size = array<i32: 8, 1, 1>}
// SPMD-NEXT: %[[T:.*]] = gpu.thread_id x
// SPMD-NEXT: affine.for %[[I:.*]] = 0 to 8 {
// SPMD: affine.load %[[KX]][%[[I]], 0]
// SPMD: affine.load %[[KW]][7, %[[T]]]
// SPMD: lldmir.matmul {{.*}} num_imc 8 ppr_mode 3
// SPMD: affine.store %{{.*}}, %[[KO]][%[[I]], %[[T]]]
// SPMD: gpu.return

// WRAPPED: known_block_size = array<i32: 4, 1, 1>
// WRAPPED-NEXT: %[[T:.*]] = gpu.thread_id x
// WRAPPED-NEXT: affine.for %[[J:.*]] = #{{.*}}(%[[T]]) to 8 step 4 {
// WRAPPED-NEXT: affine.for %[[I:.*]] = 0 to 8 {
// WRAPPED: affine.store %{{.*}}, %{{.*}}[%[[I]], %[[J]]]

// Each quad its column of weights, once; every dispatch, a chiplet's quads load a quarter of the activations each.
// DLIR: module attributes {dm.model_constants.type = [tensor<512x512x!dmir.block_fp<BFP16_64C>>], dm.model_inputs.type = [tensor<512x512xf32>], dm.model_outputs.type = [tensor<512x512xf32>]}
// DLIR-NEXT: dlir.device_program @main_0 on "corsair" {
// DLIR-NEXT: dlir.argument constant "weights" : tensor<266240xui8> as "bfp16c" data(dense_resource<c> : tensor<512x512x!dmir.block_fp<BFP16_64C>>)
// DLIR-NEXT: %[[W:.*]] = dlir.memory "DDR" "weights" size 266240 permanent
// DLIR-NEXT: dlir.piece "weights" unit 0 in %[[W]] offset 0 begin [0] extent [133120] strides []
// DLIR-NEXT: dlir.piece "weights" unit 1 in %[[W]] offset 133120 begin [133120] extent [133120] strides []
// DLIR-NEXT: dlir.argument input "arg0" : tensor<512x512xf32> as "bfp16r"
// DLIR-NEXT: %[[X:.*]] = dlir.memory "DDR" "arg0" size 266240
// DLIR: dlir.argument output "result0" : tensor<512x512xf32> as "f16"
// DLIR-NEXT: %[[Y:.*]] = dlir.memory "DDR" "result0" size 524288
// DLIR-NEXT: dlir.piece "result0" unit 0 in %[[Y]] offset 0 begin [0, 0] extent [512, 256] strides [1024, 2]
// DLIR-NEXT: dlir.piece "result0" unit 1 in %[[Y]] offset 512 begin [0, 256] extent [512, 256] strides [1024, 2]
// DLIR-NEXT: %[[GX:.*]] = dlir.memory "GM" "gm_activations" size 266240
// DLIR-NEXT: %[[GY:.*]] = dlir.memory "GM" "gm_result" size 65536
// DLIR-NEXT: %[[ST:.*]] = dlir.memory "ST" "stash" size 33280 permanent
// DLIR-NEXT: %[[IB:.*]] = dlir.memory "IB" "ib" size 66560
// DLIR-NEXT: %[[WB:.*]] = dlir.memory "WB" "wb" size 8384
// DLIR-NEXT: %[[OB:.*]] = dlir.memory "OB" "ob" size 32768
// DLIR: dlir.descriptor "bfp16c" unit 4160 dims [] source [] target [] {source_subunit_step = 4160 : i64}
// DLIR: dlir.descriptor "bfp32" to "f16" unit 64 dims [64] source [256] target [128] {target_unit_step = 8192 : i64}
// DLIR: dlir.scheduled_graph "init" units 8 (%[[Q:.*]]) {
// DLIR-NEXT: dlir.dispatch_queue "quad" "dispatch" 0 {
// DLIR-NEXT: dlir.task_group "load weights" {
// DLIR-NEXT: dlir.copy DDR -> ST %[[W]][%[[Q]] * 33280] to %[[ST]][0] with %{{.*}} units 15
// DLIR: dlir.scheduled_graph "main" units 8 (%[[Q:.*]]) {
// DLIR: %[[LOADED:.*]] = dlir.token
// DLIR: %[[SHARE:.*]] = dlir.register 0 [0, 1, 2, 3, 0, 1, 2, 3]
// DLIR: %[[MASK:.*]] = dlir.register 1 [15, 15, 15, 15, 240, 240, 240, 240]
// DLIR: dlir.dispatch_queue "quad" "dispatch" 0 {
// DLIR-NEXT: dlir.loop %[[I:.*]] times[2] {
// DLIR-NEXT: dlir.task_group "load activations" signal(%[[LOADED]]) {
// DLIR-NEXT: dlir.copy DDR -> GM %[[X]][%[[I]] * 133120 + %[[SHARE]] * 33280] to %[[GX]][%[[I]] * 133120 + %[[SHARE]] * 33280] with %{{.*}} peers[%[[MASK]]]
// DLIR-NEXT: dlir.task_barrier over "chiplet" id 0 queues [0]
// DLIR: dlir.task_group "store results" wait(%[[STORED:.*]]) {
// DLIR-NEXT: dlir.copy GM -> DDR %[[GY]][%{{.*}} * 32768] to %[[Y]][%[[Q]] * 128 + %{{.*}} * 262144]
// DLIR: dlir.dispatch_queue "quad" "dispatch" 1 {
// DLIR-NEXT: dlir.task_group "fetch weights" wait(%{{.*}}) signal(%{{.*}}) {
// DLIR-NEXT: dlir.copy ST -> WB %[[ST]][0] to %[[WB]][0] with %{{.*}} units 15 subunits 255
// DLIR: dlir.task_group "fetch tiles" wait(%[[FREE:.*]], %[[LOADED]]) signal(%[[READY:.*]]) {
// DLIR-NEXT: dlir.copy GM -> IB %[[GX]][0] to %[[IB]][0] with %{{.*}} units 15
// DLIR: dlir.task_group "fetch tiles"
// DLIR-NEXT: dlir.copy GM -> IB %[[GX]][133120] to %[[IB]][33280] with %{{.*}} units 15
// DLIR: dlir.dispatch_queue "quad" "dispatch" 2 {
// DLIR: dlir.task_group "matmul" wait(%[[EMPTY:.*]], %[[READY]]) signal(%[[FREE]], %[[FULL:.*]]) {
// DLIR-NEXT: corsair.matmul %[[IB]][0] x %[[WB]][0] to %[[OB]][0] num_imc 8 ppr_mode 3 groups 1 slices 15 activation_kind "bfp16r" weight_kind "bfp16c" rows[64] accumulate[0]
// DLIR: corsair.matmul %[[IB]][33280] x %[[WB]][0] to %[[OB]][16384] num_imc 8 ppr_mode 3
// DLIR: dlir.dispatch_queue "quad" "dispatch" 3 {
// DLIR-NEXT: dlir.task_group "drain" wait(%[[FULL]]) signal(%[[EMPTY]], %[[STORED]]) {
// DLIR-NEXT: dlir.copy OB -> GM %[[OB]][0] to %[[GY]][0] with %{{.*}} units 15

// ISA-LABEL: .stream main_0_init_q0
// ISA: MOVE_DDR2ST saddr=0x0+Q*33280 slices=0xf
// ISA-LABEL: .stream main_0_main_q0
// ISA: LOOP n=2
// ISA: MOVE_DDR2GM {{.*}} quads=0x0+R1
// ISA-NEXT: BARRIER scope=chiplet queues=0x1
// ISA: ENDLOOP
// ISA: MOVE_GM2DDR
// ISA-LABEL: .stream main_0_main_q1
// ISA: MOVE_ST2WB slices=0xf cores=0xff
// ISA: MOVE_GM2IB slices=0xf
// ISA-LABEL: .stream main_0_main_q2
// ISA: CONFIG_AC
// ISA-NEXT: MATMUL slices=0xf imc=8 ppr=3
// ISA-NOT: CONFIG_AC
// ISA: MATMUL slices=0xf imc=8 ppr=3 ib=0x8200 ob=0x4000
// ISA-LABEL: .stream main_0_main_q3
// ISA: MOVE_OB2GM
// ISA-LABEL: .kernel "main_0"
// ISA: .launch quad=7 q0=main_0_main_q0 q1=main_0_main_q1 q2=main_0_main_q2 q3=main_0_main_q3 R0=3 R1=240
func.func @main(%x: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %w = dmir.constant dense<0.5> : tensor<512x512xf32>
  %y = dmir.matmul %x, %w : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}
