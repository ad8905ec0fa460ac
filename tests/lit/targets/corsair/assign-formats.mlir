// RUN: dmx-opt %s --target=corsair:quads=1 -dmxc-frontend -dmxc-partition -dmxc-memory -dmxc-schedule.formats | FileCheck %s

// Weights C and biases BFP32_1, the input R at the boundary, the rest f16. K of attention is cast as R, and its transpose is C for free; a
// constant that is no weight is f16 where it is read. The module's attributes have what the user gave, and what his constants became.
// CHECK: dm.model_constants.type = [tensor<128x64x!dmir.block_fp<BFP16_64C>>, tensor<64x!dmir.block_fp<BFP32_1>>, tensor<64x10x!dmir.block_fp<BFP16_64C>>]
// CHECK-SAME: dm.model_inputs.type = [tensor<4x128xf32>, tensor<2x4x128xf32>, tensor<2x16x128xf32>], dm.model_outputs.type = [tensor<4x10xf32>, tensor<2x4x16xf32>]
// CHECK: func.func @k0{{.*}}(%[[X:[a-z0-9]+]]: tensor<4x128x!dmir.block_fp<BFP16_64R>>
// CHECK-SAME: %[[W1:[a-z0-9]+]]: tensor<128x64x!dmir.block_fp<BFP16_64C>>
// CHECK-SAME: %[[B1:[a-z0-9]+]]: tensor<64x!dmir.block_fp<BFP32_1>>
// CHECK-SAME: %[[W2:[a-z0-9]+]]: tensor<64x10x!dmir.block_fp<BFP16_64C>>
// CHECK-DAG: %[[P1:.*]] = dmir.matmul %[[X]], %[[W1]] {{.*}} -> tensor<4x64x!dmir.block_fp<BFP32_1>>
// CHECK-DAG: %[[S1:.*]] = dmir.add %[[P1]], %{{.*}} {{.*}} -> tensor<4x64x!dmir.block_fp<BFP32_1>>
// CHECK-DAG: %[[H1:.*]] = dmir.cast %[[S1]] {{.*}} -> tensor<4x64xf16>
// CHECK-DAG: %[[L1:.*]] = dmir.relu %[[H1]] : (tensor<4x64xf16>) -> tensor<4x64xf16>
// CHECK-DAG: %[[Q1:.*]] = dmir.cast %[[L1]] : (tensor<4x64xf16>) -> tensor<4x64x!dmir.block_fp<BFP16_64R>>
// CHECK-DAG: dmir.matmul %[[Q1]], %[[W2]] {{.*}} -> tensor<4x10xf16>
// CHECK-DAG: %[[T:.*]] = dmir.transpose %[[K:.*]] {permutation = array<i64: 0, 2, 1>} : {{.*}}BFP16_64R>>) -> tensor<2x128x16x!dmir.block_fp<BFP16_64C>>
// CHECK-DAG: dmir.matmul %{{.*}}, %[[T]] {{.*}} -> tensor<2x4x16xf16>
// CHECK-NOT: xf32>) ->
func.func @main(%x: tensor<4x128xf32> {dmir.name = "x"}, %q: tensor<2x4x128xf32> {dmir.name = "q"}, %k: tensor<2x16x128xf32> {dmir.name = "k"})
    -> (tensor<4x10xf32> {dmir.name = "y"}, tensor<2x4x16xf32> {dmir.name = "s"}) {
  %w1 = dmir.constant dense<0.25> : tensor<128x64xf32>
  %b1 = dmir.constant dense<1.0> : tensor<64xf32>
  %w2 = dmir.constant dense<0.5> : tensor<64x10xf32>
  %0 = dmir.matmul %x, %w1 : (tensor<4x128xf32>, tensor<128x64xf32>) -> tensor<4x64xf32> loc("fc1")
  %1 = dmir.add %0, %b1 : (tensor<4x64xf32>, tensor<64xf32>) -> tensor<4x64xf32> loc("bias")
  %2 = dmir.relu %1 : (tensor<4x64xf32>) -> tensor<4x64xf32> loc("act")
  %3 = dmir.matmul %2, %w2 : (tensor<4x64xf32>, tensor<64x10xf32>) -> tensor<4x10xf32> loc("fc2")
  %4 = dmir.transpose %k {permutation = array<i64: 0, 2, 1>} : (tensor<2x16x128xf32>) -> tensor<2x128x16xf32>
  %5 = dmir.matmul %q, %4 : (tensor<2x4x128xf32>, tensor<2x128x16xf32>) -> tensor<2x4x16xf32> loc("scores")
  return %3, %5 : tensor<4x10xf32>, tensor<2x4x16xf32>
}
