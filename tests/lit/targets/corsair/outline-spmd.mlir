// DEFINE: %{tiles} = dmx-opt %s -corsair-tile-matmul -corsair-bufferize-tiles -corsair-lower-tiles
// RUN: %{tiles} -corsair-outline-spmd | FileCheck %s
// RUN: %{tiles} -corsair-outline-spmd=split=rows | FileCheck %s --check-prefix=ROWS
// RUN: %{tiles} -corsair-outline-spmd="split=rows quads=3" | FileCheck %s --check-prefix=THREE
// RUN: not dmx-opt %s -corsair-outline-spmd=split=k 2>&1 | FileCheck %s --check-prefix=K
// RUN: not dmx-opt %s -corsair-outline-spmd=quads=33 2>&1 | FileCheck %s --check-prefix=QUADS
// RUN: not %{tiles} -corsair-outline-spmd=split=batch 2>&1 | FileCheck %s --check-prefix=BATCH
// K: option 'split' is auto, rows, columns or batch, not 'k'; splitting k would need a reduction over quads
// QUADS: option 'quads' is 1 to 32, not 33
// BATCH: has no loop over a batch to split

!R = !dmir.block_fp<BFP16_64R>
!C = !dmir.block_fp<BFP16_64C>

// More rows than columns: splitting rows leaves less to each quad, though every quad reads the weights.
// CHECK-LABEL: gpu.func @tall_0
// CHECK-SAME: known_block_size = array<i32: 8, 1, 1>
// CHECK-NEXT: %[[T:.*]] = gpu.thread_id x
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 1
// CHECK: affine.store %{{.*}}, %arg2[%[[T]], %[[J]]]
// ROWS-LABEL: gpu.func @tall_0
// ROWS: affine.store %{{.*}}, %arg2[%thread_id_x, %{{.*}}]

// Eight trips over three quads: 0 3 6, 1 4 7, 2 5.
// THREE-LABEL: gpu.func @tall_0
// THREE-SAME: known_block_size = array<i32: 3, 1, 1>
// THREE: affine.for %[[I:.*]] = #{{.*}}(%thread_id_x) to 8 step 3
func.func @tall(%a: tensor<512x64x!R>, %b: tensor<64x64x!C>) -> tensor<512x64xf16> {
  %0 = dmir.matmul %a, %b : (tensor<512x64x!R>, tensor<64x64x!C>) -> tensor<512x64xf16>
  return %0 : tensor<512x64xf16>
}

// Heads to quads: the matrices of a batch share nothing.
// CHECK-LABEL: gpu.func @heads_0
// CHECK-SAME: known_block_size = array<i32: 8, 1, 1>
// CHECK: affine.store %{{.*}}, %arg2[%thread_id_x, %{{.*}}, %{{.*}}]
func.func @heads(%a: tensor<8x64x64x!R>, %b: tensor<8x64x64x!C>) -> tensor<8x64x64xf16> {
  %0 = dmir.matmul %a, %b : (tensor<8x64x64x!R>, tensor<8x64x64x!C>) -> tensor<8x64x64xf16>
  return %0 : tensor<8x64x64xf16>
}

// Two products are two kernels of one module; both read the same input.
// CHECK-LABEL: func.func @two
// CHECK: gpu.launch_func @two_kernels::@two_0
// CHECK: gpu.launch_func @two_kernels::@two_1
func.func @two(%a: tensor<64x64x!R>, %b: tensor<64x64x!C>) -> (tensor<64x64xf16>, tensor<64x64xf32>) {
  %0 = dmir.matmul %a, %b : (tensor<64x64x!R>, tensor<64x64x!C>) -> tensor<64x64xf16>
  %1 = dmir.matmul %a, %b : (tensor<64x64x!R>, tensor<64x64x!C>) -> tensor<64x64xf32>
  return %0, %1 : tensor<64x64xf16>, tensor<64x64xf32>
}
