// The reference example, 512 x 512 x 512, at every stage of a compile; each starts from the text of the one before.
// DEFINE: %{opt} = dmx-opt --target=corsair:quads=8
// RUN: %{opt} %s -dmxc-partition -dmxc-memory -dmxc-schedule.formats -o %t.formats.mlir
// RUN: FileCheck %s --check-prefix=FORMATS --input-file=%t.formats.mlir
// RUN: %{opt} %t.formats.mlir -dmxc-schedule.tiles -o %t.tiles.mlir
// RUN: FileCheck %s --check-prefix=TILES --input-file=%t.tiles.mlir
// RUN: %{opt} %t.tiles.mlir -dmxc-schedule.buffers -o %t.buffers.mlir
// RUN: FileCheck %s --check-prefix=BUFFERS --input-file=%t.buffers.mlir
// RUN: %{opt} %t.buffers.mlir -dmxc-schedule.array -o %t.array.mlir
// RUN: FileCheck %s --check-prefix=ARRAY --input-file=%t.array.mlir
// RUN: %{opt} %t.array.mlir -dmxc-schedule.spmd -o %t.spmd.mlir
// RUN: FileCheck %s --check-prefix=SPMD --input-file=%t.spmd.mlir
// RUN: %{opt} %t.spmd.mlir -dmxc-schedule.bands -dlir-schedule-devices -o %t.dlir.mlir
// RUN: FileCheck %s --check-prefix=DLIR --input-file=%t.dlir.mlir
// RUN: %{opt} %t.dlir.mlir -corsair-encode="file=%t.dmxisa text=%t.s" -o %t.again.mlir
// RUN: FileCheck %s --check-prefix=ISA --input-file=%t.s

// DLIR is a fixed point of printing and parsing, and the phases in one go give the same text and bytes as the steps.
// RUN: %{opt} %t.dlir.mlir | diff - %t.dlir.mlir
// RUN: diff %t.again.mlir %t.dlir.mlir
// RUN: %{opt} %s -dmxc-partition -dmxc-memory -dmxc-schedule | diff - %t.dlir.mlir
// RUN: %{opt} %t.dlir.mlir -corsair-encode=file=%t.once.dmxisa -o /dev/null
// RUN: cmp %t.dmxisa %t.once.dmxisa

// Eight rows of tiles over four quads: each loops over two.
// RUN: dmx-opt --target=corsair:quads=4 %s -dmxc-partition -dmxc-memory -dmxc-schedule.formats -dmxc-schedule.tiles -dmxc-schedule.buffers -dmxc-schedule.array -dmxc-schedule.spmd | FileCheck %s --check-prefix=WRAPPED

// FORMATS: module attributes {dm.model_constants.type = [tensor<512x512x!dmir.block_fp<BFP16_64C>>], dm.model_inputs.type = [tensor<512x512xf32>], dm.model_outputs.type = [tensor<512x512xf32>]
// FORMATS: %[[C:.*]] = dlir.buffer constant "c0" : tensor<512x512xf32> {{.*}} size = 266240 : i64}
// FORMATS: func.func @[[K:k0.*]](%[[X:.*]]: tensor<512x512x!dmir.block_fp<BFP16_64R>> {lldmir.deal = #lldmir.deal<dim 0, quads 8>, {{.*}}}, %[[W:.*]]: tensor<512x512x!dmir.block_fp<BFP16_64C>> {{.*}}) -> (tensor<512x512xf16> {lldmir.deal = #lldmir.deal<dim 0, quads 8>
// FORMATS-NEXT: %[[Y:.*]] = dmir.matmul %[[X]], %[[W]] {lldmir.deal = #lldmir.deal<dim 0, quads 8>, lldmir.plan = #lldmir.plan<num_imc 8, ppr_mode 3, groups 2, slices 4, share columns, segment 8>} : {{.*}} -> tensor<512x512xf16>
// FORMATS-NEXT: return %[[Y]] : tensor<512x512xf16>

// TILES: dm.model_inputs.type = [tensor<512x512xf32>]
// TILES: func.func @k0{{.*}}(%[[X:[a-z0-9]+]]: tensor<512x512x!dmir.block_fp<BFP16_64R>> {{{.*}}}, %[[W:[a-z0-9]+]]: tensor<512x512x!dmir.block_fp<BFP16_64C>> {
// TILES: affine.for %[[Q:.*]] = 0 to 8 iter_args({{.*}}) -> (tensor<512x512xf16>)
// TILES: %[[A:.*]] = tensor.extract_slice %[[X]][%{{.*}}, 0] [64, 512] [1, 1] : tensor<512x512x!dmir.block_fp<BFP16_64R>> to tensor<64x512x!dmir.block_fp<BFP16_64R>>
// TILES: affine.for %{{.*}} = 0 to 1 iter_args
// TILES-NEXT: affine.for %[[J:.*]] = 0 to 8 iter_args(%[[INNER:.*]] = %{{.*}}) -> (tensor<64x512xf16>)
// TILES: %[[ROW:.*]] = affine.apply
// TILES-NEXT: %[[COLUMN:.*]] = affine.apply #map(%[[J]])
// TILES: %[[B:.*]] = tensor.extract_slice %[[W]][0, %[[COLUMN]]] [512, 64] [1, 1] : tensor<512x512x!dmir.block_fp<BFP16_64C>> to tensor<512x64x!dmir.block_fp<BFP16_64C>>
// TILES: %[[P:.*]] = dmir.matmul %[[A]], %[[B]] {{.*}} -> tensor<64x64x!dmir.block_fp<BFP32_1>>
// TILES: %[[H:.*]] = dmir.cast %[[P]] : {{.*}} -> tensor<64x64xf16>
// TILES: tensor.insert_slice %[[H]] into %[[INNER]][%[[ROW]], %[[COLUMN]]] [64, 64] [1, 1] : tensor<64x64xf16> into tensor<64x512xf16>
// TILES: {lldmir.deal = #lldmir.deal<dim 0, quads 8>, lldmir.quads}

// BUFFERS: func.func @k0{{.*}}(%[[X:[a-z0-9]+]]: memref<1x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>, "GM"> {{{.*}}}, %[[W:[a-z0-9]+]]: memref<8x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>, "ST">
// BUFFERS: %[[O:.*]] = memref.alloc() : memref<64x512xf16, "GM">
// BUFFERS: affine.for %{{.*}} = 0 to 8 {
// BUFFERS-NEXT: %[[G:.*]] = affine_ext.tiles %[[O]] : memref<64x512xf16, "GM"> to memref<1x8x!affine_ext.vec_ext<64x64xf16>, "GM">
// BUFFERS-NEXT: affine.for %[[I:.*]] = 0 to 1 {
// BUFFERS-NEXT: affine.for %[[J:.*]] = 0 to 8 {
// BUFFERS-DAG: %[[A:.*]] = affine_ext.load %[[X]][0, 0] : {{.*}}, !affine_ext.vec_ext<1x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>>
// BUFFERS-DAG: %[[B:.*]] = affine_ext.load %[[W]][0, %[[J]]] : {{.*}}, !affine_ext.vec_ext<8x1x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>>
// BUFFERS: %[[P:.*]] = affine_ext.matmul %[[A]], %[[B]] {{.*}} -> !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP32_1>>
// BUFFERS-NEXT: %[[H:.*]] = affine_ext.cast %[[P]] : {{.*}} -> !affine_ext.vec_ext<64x64xf16>
// BUFFERS-NEXT: affine.store %[[H]], %[[G]][%[[I]], %[[J]]] : memref<1x8x!affine_ext.vec_ext<64x64xf16>, "GM">

// ARRAY: affine.for %[[I:.*]] = 0 to 1 {
// ARRAY-NEXT: affine.for %[[J:.*]] = 0 to 8 {
// ARRAY-NEXT: %[[A0:.*]] = affine.load %{{.*}}[0, 0] : memref<1x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>, "GM">
// ARRAY: %[[A7:.*]] = affine.load %{{.*}}[0, 7] : memref<1x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>, "GM">
// ARRAY-NEXT: %[[W0:.*]] = affine.load %{{.*}}[0, %[[J]]] : memref<8x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>, "ST">
// ARRAY: %[[W7:.*]] = affine.load %{{.*}}[7, %[[J]]] : memref<8x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>, "ST">
// ARRAY-NEXT: %[[P:.*]] = lldmir.matmul [%[[A0]], {{(%[0-9]+, ){6} ?}}%[[A7]]] x [%[[W0]], {{(%[0-9]+, ){6} ?}}%[[W7]]] num_imc 8 ppr_mode 3 {{.*}} : !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>> x !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>> -> !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP32_1>>
// ARRAY-NEXT: %[[H:.*]] = lldmir.simd "cast"(%[[P]] : {{.*}}) -> !affine_ext.vec_ext<64x64xf16>
// ARRAY-NEXT: affine.store %[[H]], %{{.*}}[%[[I]], %[[J]]]

// SPMD: gpu.container_module
// SPMD: func.func @[[K:k0.*]](%[[X:[a-z0-9]+]]: memref<1x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>, "GM"> {{{.*}}}, %[[W:[a-z0-9]+]]: memref
// SPMD: %[[O:.*]] = memref.alloc()
// SPMD-DAG: %[[C1:.*]] = arith.constant 1 : index
// SPMD-DAG: %[[C8:.*]] = arith.constant 8 : index
// SPMD: gpu.launch_func @[[K]]_kernels::@[[K]] blocks in (%[[C1]], %[[C1]], %[[C1]]) threads in (%[[C8]], %[[C1]], %[[C1]]) args(%[[W]] : {{.*}}, %[[X]] : {{.*}}, %[[O]] : {{.*}})
// SPMD: return %[[O]]
// SPMD: gpu.module @[[K]]_kernels
// SPMD: gpu.func @[[K]](%[[KW:.*]]: memref<8x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>, "ST">, %[[KX:.*]]: memref<1x8x!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>, "GM">, %[[KO:.*]]: memref<64x512xf16, "GM">) kernel attributes {known_block_size = array<i32: 8, 1, 1>}
// SPMD-NEXT: gpu.thread_id x
// SPMD: affine.for %[[I:.*]] = 0 to 1 {
// SPMD-NEXT: affine.for %[[J:.*]] = 0 to 8 {
// SPMD: affine.load %[[KX]][0, 0]
// SPMD: affine.load %[[KW]][7, %[[J]]]
// SPMD: lldmir.matmul {{.*}} num_imc 8 ppr_mode 3
// SPMD: affine.store %{{.*}}, %{{.*}}[%[[I]], %[[J]]]
// SPMD: gpu.return

// WRAPPED: known_block_size = array<i32: 4, 1, 1>
// WRAPPED: affine.for %[[J:.*]] = 0 to 8 {
// WRAPPED-NEXT: affine.for %[[I:.*]] = 0 to 2 {
// WRAPPED: affine.store %{{.*}}, %{{.*}}[%[[I]], %[[J]]] : memref<2x8x!affine_ext.vec_ext<64x64xf16>, "GM">

// Weights once, to each quad; every run, each quad its rows in and out.
// DLIR: module attributes {dm.model_constants.type = [tensor<512x512x!dmir.block_fp<BFP16_64C>>], dm.model_inputs.type = [tensor<512x512xf32>], dm.model_outputs.type = [tensor<512x512xf32>]
// DLIR: dlir.device_program @k0{{.*}} on "corsair" {
// DLIR: dlir.argument input "arg0" : tensor<512x512xf32> as "bfp16r"
// DLIR: dlir.piece "arg0" unit 0 in %[[X:.*]] offset 0 begin [0, 0] extent [64, 512]
// DLIR: dlir.scheduled_graph "init" units 8
// DLIR: dlir.copy DDR -> ST %{{.*}} to %[[ST:.*]][0] with %{{.*}} units 15
// DLIR: dlir.scheduled_graph "main" units 8 (%[[Q:.*]]) {
// DLIR: dlir.copy DDR -> GM %[[X]][%[[Q]] * 33280] to %[[GX:.*]][0] with
// DLIR: dlir.copy GM -> IB %[[GX]][0] to %[[IB:.*]][0] with %{{.*}} units 15
// DLIR: corsair.matmul %[[IB]][0] x %{{.*}}[0] to %[[OB:.*]][0] from %[[ST]][0] num_imc 8 ppr_mode 3 groups 2 slices 15 activation_kind "bfp16r" weight_kind "bfp16c" rows[64]
// DLIR: dlir.copy OB -> GM %[[OB]][0] to %[[GY:.*]][0] with %bfp32_to_f16 units 15
// DLIR: dlir.copy GM -> DDR %[[GY]][0] to %{{.*}}[%[[Q]] * 65536]

// ISA-LABEL: .stream k0_dmx_isa_init_q0
// ISA: MOVE_DDR2ST {{.*}}slices=0xf
// ISA-LABEL: .stream k0_dmx_isa_main_q0
// ISA: MOVE_DDR2GM saddr=0x{{[0-9a-f]+}}+Q*33280
// ISA: MOVE_GM2IB {{.*}}slices=0xf
// ISA-LABEL: .stream k0_dmx_isa_main_q1
// ISA: CONFIG_AC
// ISA: MATMUL slices=0xf imc=8 ppr=3
// ISA-LABEL: .stream k0_dmx_isa_main_q2
// ISA: MOVE_OB2GM
// ISA: MOVE_GM2DDR
func.func @main(%x: tensor<512x512xf32> {dmir.name = "x"}) -> (tensor<512x512xf32> {dmir.name = "y"}) {
  %w = dmir.constant dense<0.5> : tensor<512x512xf32>
  %y = dmir.matmul %x, %w : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}
