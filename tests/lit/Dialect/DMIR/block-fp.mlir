// Block floating point: every name and alias of the type, and the ops that take it.
// RUN: dmx-opt %s | dmx-opt | FileCheck %s

// CHECK-LABEL: func private @names
func.func private @names(
    // CHECK-SAME: tensor<8x8x!dmir.block_fp<BFP32_1>>
    tensor<8x8x!dmir.block_fp<BFP32_1>>,
    // CHECK-SAME: tensor<8x8x!dmir.block_fp<BFP32_1>>
    tensor<8x8x!dmir.block_fp<BFP32>>,
    // CHECK-SAME: !dmir.block_fp<BFP24_16R>{{.*}}!dmir.block_fp<BFP24_32R>{{.*}}!dmir.block_fp<BFP24_64C>
    tensor<8x8x!dmir.block_fp<BFP24_16R>>, tensor<8x8x!dmir.block_fp<BFP24_32R>>, tensor<8x8x!dmir.block_fp<BFP24_64C>>,
    // CHECK-SAME: !dmir.block_fp<BFP16_16R>{{.*}}!dmir.block_fp<BFP16_32R>{{.*}}!dmir.block_fp<BFP16_64R>{{.*}}!dmir.block_fp<BFP16_128C>
    tensor<8x8x!dmir.block_fp<BFP16_16R>>, tensor<8x8x!dmir.block_fp<BFP16_32R>>, tensor<8x8x!dmir.block_fp<BFP16_64R>>, tensor<8x8x!dmir.block_fp<BFP16_128C>>,
    // CHECK-SAME: !dmir.block_fp<BFP14_64R>{{.*}}!dmir.block_fp<BFP12_128C>{{.*}}!dmir.block_fp<BFP12_64AR>
    tensor<8x8x!dmir.block_fp<BFP14_64R>>, tensor<8x8x!dmir.block_fp<BFP12_128C>>, tensor<8x8x!dmir.block_fp<BFP12_64AR>>,
    // CHECK-SAME: !dmir.block_fp<BFP16_64AR>{{.*}}!dmir.block_fp<BFP16_64AC>
    tensor<8x8x!dmir.block_fp<BFP16A_64R>>, tensor<8x8x!dmir.block_fp<BFP16_64AC>>,
    // CHECK-SAME: !dmir.block_fp<SBFP12_16_7C>{{.*}}!dmir.block_fp<SBFP12_16_4C>{{.*}}!dmir.block_fp<SBFP12_16_18R>
    tensor<8x8x!dmir.block_fp<SBFP12_16C>>, tensor<8x8x!dmir.block_fp<SBFP12_16_4C>>, tensor<8x8x!dmir.block_fp<SBFP12_16_18R>>,
    // CHECK-SAME: !dmir.block_fp<BFP16_32R>{{.*}}!dmir.block_fp<BFP12_32C>{{.*}}!dmir.block_fp<MXFP8_E4M3K32R>
    tensor<8x8x!dmir.block_fp<MXINT8_K32, R>>, tensor<8x8x!dmir.block_fp<"MXINT4{32}", C>>, tensor<8x8x!dmir.block_fp<"MXFP8[E4M3]{32}", R>>,
    // CHECK-SAME: !dmir.block_fp<BFP16_64R>{{.*}}!dmir.block_fp<BFP12_64C>
    tensor<8x8x!dmir.block_fp<"BFP[8|8]{64}(SN)", R>>, tensor<8x8x!dmir.block_fp<"BFP[4|8]{64}(SN)", C>>)

// CHECK-LABEL: func @ops
// CHECK-SAME: %[[X:.*]]: tensor<100x192xf32>, %[[W:.*]]: tensor<192x80xf32>
func.func @ops(%x: tensor<100x192xf32>, %w: tensor<192x80xf32>, %b: tensor<80x!dmir.block_fp<BFP32_1>>) -> tensor<100x80xf16> {
  // CHECK: dmir.cast %[[X]] : (tensor<100x192xf32>) -> tensor<100x192x!dmir.block_fp<BFP16_64R>>
  %a = dmir.cast %x : (tensor<100x192xf32>) -> tensor<100x192x!dmir.block_fp<BFP16_64R>>
  %c = dmir.cast %w : (tensor<192x80xf32>) -> tensor<192x80x!dmir.block_fp<BFP16_64C>>
  // The results a block product may have.
  // CHECK: dmir.matmul {{.*}} -> tensor<100x80x!dmir.block_fp<BFP32_1>>
  %p = dmir.matmul %a, %c : (tensor<100x192x!dmir.block_fp<BFP16_64R>>, tensor<192x80x!dmir.block_fp<BFP16_64C>>) -> tensor<100x80x!dmir.block_fp<BFP32_1>>
  // CHECK: dmir.matmul {{.*}} -> tensor<100x80xf16>
  %h = dmir.matmul %a, %c {dmir.tree_tiles = 2 : i64} : (tensor<100x192x!dmir.block_fp<BFP16_64R>>, tensor<192x80x!dmir.block_fp<BFP16_64C>>) -> tensor<100x80xf16>
  // CHECK: dmir.matmul {{.*}} -> tensor<100x80xf32>
  %f = dmir.matmul %a, %c : (tensor<100x192x!dmir.block_fp<BFP16_64R>>, tensor<192x80x!dmir.block_fp<BFP16_64C>>) -> tensor<100x80xf32>
  // CHECK: dmir.add {{.*}} -> tensor<100x80x!dmir.block_fp<BFP32_1>>
  %s = dmir.add %p, %b : (tensor<100x80x!dmir.block_fp<BFP32_1>>, tensor<80x!dmir.block_fp<BFP32_1>>) -> tensor<100x80x!dmir.block_fp<BFP32_1>>
  // A transpose turns R into C, and back.
  // CHECK: %[[T:.*]] = dmir.transpose {{.*}} -> tensor<192x100x!dmir.block_fp<BFP16_64C>>
  %t = dmir.transpose %a {permutation = array<i64: 1, 0>} : (tensor<100x192x!dmir.block_fp<BFP16_64R>>) -> tensor<192x100x!dmir.block_fp<BFP16_64C>>
  // CHECK: dmir.transpose %[[T]] {{.*}} -> tensor<100x192x!dmir.block_fp<BFP16_64R>>
  %u = dmir.transpose %t {permutation = array<i64: 1, 0>} : (tensor<192x100x!dmir.block_fp<BFP16_64C>>) -> tensor<100x192x!dmir.block_fp<BFP16_64R>>
  // Cut at whole blocks along k, anywhere across.
  // CHECK: dmir.slice {{.*}} -> tensor<17x128x!dmir.block_fp<BFP16_64R>>
  %v = dmir.slice %u {starts = array<i64: 3, 64>, sizes = array<i64: 17, 128>, steps = array<i64: 2, 1>} : (tensor<100x192x!dmir.block_fp<BFP16_64R>>) -> tensor<17x128x!dmir.block_fp<BFP16_64R>>
  // CHECK: dmir.concat {{.*}} -> tensor<17x256x!dmir.block_fp<BFP16_64R>>
  %y = dmir.concat %v, %v {axis = 1 : i64} : (tensor<17x128x!dmir.block_fp<BFP16_64R>>, tensor<17x128x!dmir.block_fp<BFP16_64R>>) -> tensor<17x256x!dmir.block_fp<BFP16_64R>>
  // CHECK: dmir.pad_blocks {{.*}} -> tensor<64x256x!dmir.block_fp<BFP16_64R>>
  %z = dmir.pad_blocks %y : (tensor<17x256x!dmir.block_fp<BFP16_64R>>) -> tensor<64x256x!dmir.block_fp<BFP16_64R>>
  // CHECK: dmir.undef : tensor<64x64x!dmir.block_fp<BFP32_1>>
  %e = dmir.undef : tensor<64x64x!dmir.block_fp<BFP32_1>>
  // CHECK: dmir.cast {{.*}} {dmir.rounds_twice} {{.*}} -> tensor<64x256x!dmir.block_fp<BFP12_128R>>
  %n = dmir.cast %z {dmir.rounds_twice} : (tensor<64x256x!dmir.block_fp<BFP16_64R>>) -> tensor<64x256x!dmir.block_fp<BFP12_128R>>
  return %h : tensor<100x80xf16>
}

// CHECK-LABEL: func @constant
func.func @constant() -> tensor<64x64x!dmir.block_fp<BFP16_64C>> {
  // CHECK: dmir.constant dense_resource<w> : tensor<64x64x!dmir.block_fp<BFP16_64C>>
  %w = dmir.constant dense_resource<w> : tensor<64x64x!dmir.block_fp<BFP16_64C>>
  return %w : tensor<64x64x!dmir.block_fp<BFP16_64C>>
}
