// How a quad's share is dealt to its slices and groups, by the split and the number of quads.
// DEFINE: %{tiles} = dmx-opt %s -corsair-tile-matmul -corsair-bufferize-tiles -corsair-lower-tiles
// RUN: %{tiles} -corsair-outline-spmd=split=rows -corsair-build-dlir | FileCheck %s --check-prefix=ROWS
// RUN: %{tiles} -corsair-outline-spmd="split=columns quads=4" -corsair-build-dlir | FileCheck %s --check-prefix=FOUR
// RUN: %{tiles} -corsair-outline-spmd="split=columns quads=3" -corsair-build-dlir | FileCheck %s --check-prefix=THREE
// RUN: %{tiles} -corsair-outline-spmd=split=columns -corsair-build-dlir=resident=true | FileCheck %s --check-prefix=RESIDENT

!R = !dmir.block_fp<BFP16_64R>
!C = !dmir.block_fp<BFP16_64C>

// A row of tiles a quad: two groups of eight cores, and the slices share the columns; all slices get the same rows.
// ROWS-LABEL: dlir.device_program @square_0 on "corsair"
// ROWS: dlir.piece "arg0" unit 0 in %{{.*}} offset 0 begin [0, 0] extent [256, 512]
// ROWS: dlir.piece "arg0" unit 1 in %{{.*}} offset 133120 begin [256, 0] extent [256, 512]
// ROWS-NOT: dlir.task_barrier
// ROWS: dlir.copy GM -> IB %{{.*}}[0] to %{{.*}}[0] with %{{.*}} units 15
// ROWS: corsair.matmul {{.*}} num_imc 8 ppr_mode 3 groups 2 slices 15

// Two columns a quad: two groups, and the slices share the rows. Quad q has columns q and q + 4.
// FOUR-LABEL: dlir.device_program @square_0 on "corsair"
// FOUR: dlir.descriptor "bfp16c" unit 33280 dims [2] source [133120] target [33280]
// FOUR: dlir.copy DDR -> ST %{{.*}}[%{{.*}} * 33280] to
// FOUR: corsair.matmul {{.*}} num_imc 8 ppr_mode 3 groups 2 slices 15

// Shares of three, three and two columns: a loop with a trip count of the quad's own.
// THREE-LABEL: dlir.device_program @square_0 on "corsair"
// THREE: dlir.scheduled_graph "main" units 3
// THREE: %[[TRIPS:.*]] = dlir.register 0 [3, 3, 2]
// THREE: dlir.loop %{{.*}} times[%[[TRIPS]]] {

// Fetching waits for all activations at once.
// RESIDENT-LABEL: dlir.device_program @square_0 on "corsair"
// RESIDENT: dlir.task_group "activations" signal(%[[ALL:.*]]) {
// RESIDENT-NEXT: dlir.task_barrier over "chiplet" id 0 queues [0]
// RESIDENT: dlir.dispatch_queue "quad" "dispatch" 1 {
// RESIDENT-NEXT: dlir.task_group "operands" wait(%[[ALL]], %{{.*}})
func.func @square(%a: tensor<512x512x!R>, %b: tensor<512x512x!C>) -> tensor<512x512xf16> {
  %0 = dmir.matmul %a, %b : (tensor<512x512x!R>, tensor<512x512x!C>) -> tensor<512x512xf16>
  return %0 : tensor<512x512xf16>
}

// One row: a tile takes longer to load than to compute, so the product streams its weights.
// ROWS-LABEL: dlir.device_program @row_0 on "corsair"
// ROWS: corsair.matmul {{.*}} from %{{.*}}[0] num_imc 8 ppr_mode 3 groups 2 slices 15 activation_kind "bfp16r" weight_kind "bfp16c" rows[1] accumulate[0] steps[4]
func.func @row(%a: tensor<1x512x!R>, %b: tensor<512x2048x!C>) -> tensor<1x2048xf16> {
  %0 = dmir.matmul %a, %b : (tensor<1x512x!R>, tensor<512x2048x!C>) -> tensor<1x2048xf16>
  return %0 : tensor<1x2048xf16>
}

// 24 tiles along k are two chunks, the second added to the first.
// ROWS-LABEL: dlir.device_program @deep_0 on "corsair"
// ROWS: corsair.matmul {{.*}} num_imc 16 ppr_mode 4 groups 1 {{.*}} accumulate[0]
// ROWS: corsair.matmul {{.*}} num_imc 8 ppr_mode 3 groups 1 {{.*}} accumulate[1]
func.func @deep(%a: tensor<64x1536x!R>, %b: tensor<1536x64x!C>) -> tensor<64x64xf32> {
  %0 = dmir.matmul %a, %b : (tensor<64x1536x!R>, tensor<1536x64x!C>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
