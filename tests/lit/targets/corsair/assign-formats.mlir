// RUN: dmx-opt %s -split-input-file -corsair-assign-formats=print -mlir-elide-resource-strings-if-larger=16 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=TABLE < %t
// RUN: dmx-opt %s -split-input-file -corsair-assign-formats="rules=fc*=BFP12_128,fc2=BFP24_32" -mlir-elide-resource-strings-if-larger=16 | FileCheck %s --check-prefix=RULES
// RUN: not dmx-opt %s -corsair-assign-formats="rules=fc=BFP14_64" 2>&1 | FileCheck %s --check-prefix=BAD
// RUN: not dmx-opt %s -corsair-assign-formats="rules=BFP16_64" 2>&1 | FileCheck %s --check-prefix=BAD
// BAD: option 'rules': '{{.*}}' is not GLOB=FORMAT with a format such as BFP16_64 or BFP12_128

// An MLP: weights C and biases BFP32_1 at compile time, the input R at the boundary, the rest f16.
// CHECK: dm.model_constants.type = [tensor<128x64x!dmir.block_fp<BFP16_64C>>, tensor<64x!dmir.block_fp<BFP32_1>>, tensor<64x10x!dmir.block_fp<BFP16_64C>>]
// CHECK-SAME: dm.model_inputs.type = [tensor<4x128xf32>], dm.model_outputs.type = [tensor<4x10xf32>]
// CHECK-LABEL: func @mlp
// CHECK-SAME: (%[[X:.*]]: tensor<4x128x!dmir.block_fp<BFP16_64R>>) -> tensor<4x10xf16>
// CHECK-DAG: %[[W1:.*]] = dmir.constant dense_resource<{{.*}}> : tensor<128x64x!dmir.block_fp<BFP16_64C>>
// CHECK-DAG: %[[B1:.*]] = dmir.constant dense_resource<{{.*}}> : tensor<64x!dmir.block_fp<BFP32_1>>
// CHECK-DAG: %[[W2:.*]] = dmir.constant dense_resource<{{.*}}> : tensor<64x10x!dmir.block_fp<BFP16_64C>>
// CHECK: %[[P1:.*]] = dmir.matmul %[[X]], %[[W1]] : {{.*}} -> tensor<4x64x!dmir.block_fp<BFP32_1>>
// CHECK-NEXT: %[[S1:.*]] = dmir.add %[[P1]], %[[B1]]
// CHECK-NEXT: %[[H1:.*]] = dmir.cast %[[S1]] : {{.*}} -> tensor<4x64xf16>
// CHECK-NEXT: %[[R:.*]] = dmir.relu %[[H1]] : (tensor<4x64xf16>) -> tensor<4x64xf16>
// CHECK-NEXT: %[[Q:.*]] = dmir.cast %[[R]] : (tensor<4x64xf16>) -> tensor<4x64x!dmir.block_fp<BFP16_64R>>
// CHECK: dmir.matmul %[[Q]], %[[W2]] : {{.*}} -> tensor<4x10xf16>

// TABLE: formats of @mlp:
// TABLE-NEXT: node op operands results
// TABLE-NEXT: fc1 matmul BFP16_64R BFP16_64C BFP32_1
// TABLE-NEXT: bias add BFP32_1 BFP32_1 BFP32_1
// TABLE-NEXT: bias cast BFP32_1 f16
// TABLE-NEXT: act relu f16 f16
// TABLE: fc2 matmul BFP16_64R BFP16_64C f16

// The last rule that matches a node's name wins.
// RULES: dmir.matmul {{.*}} : (tensor<4x128x!dmir.block_fp<BFP12_128R>>, tensor<128x64x!dmir.block_fp<BFP12_128C>>)
// RULES: dmir.matmul {{.*}} : (tensor<4x64x!dmir.block_fp<BFP24_32R>>, tensor<64x10x!dmir.block_fp<BFP24_32C>>)
func.func @mlp(%x: tensor<4x128xf32>) -> tensor<4x10xf32> {
  %w1 = dmir.constant dense<0.25> : tensor<128x64xf32>
  %b1 = dmir.constant dense<1.0> : tensor<64xf32>
  %w2 = dmir.constant dense<0.5> : tensor<64x10xf32>
  %0 = dmir.matmul %x, %w1 : (tensor<4x128xf32>, tensor<128x64xf32>) -> tensor<4x64xf32> loc("fc1")
  %1 = dmir.add %0, %b1 : (tensor<4x64xf32>, tensor<64xf32>) -> tensor<4x64xf32> loc("bias")
  %2 = dmir.relu %1 : (tensor<4x64xf32>) -> tensor<4x64xf32> loc("act")
  %3 = dmir.matmul %2, %w2 : (tensor<4x64xf32>, tensor<64x10xf32>) -> tensor<4x10xf32> loc("fc2")
  return %3 : tensor<4x10xf32>
}

// -----

// K^T of attention: K is cast as R, at the boundary, and its transpose is C for free. The f16 transpose is gone.
// CHECK-LABEL: func @transposed
// CHECK-SAME: , %[[K:[a-z0-9]+]]: tensor<2x16x128x!dmir.block_fp<BFP16_64R>>)
// CHECK: %[[T:.*]] = dmir.transpose %[[K]] {permutation = array<i64: 0, 2, 1>} : {{.*}} -> tensor<2x128x16x!dmir.block_fp<BFP16_64C>>
// CHECK-NOT: dmir.transpose
// CHECK: dmir.matmul %{{.*}}, %[[T]] :
func.func @transposed(%q: tensor<2x4x128xf32>, %k: tensor<2x16x128xf32>) -> tensor<2x4x16xf32> {
  %0 = dmir.transpose %k {permutation = array<i64: 0, 2, 1>} : (tensor<2x16x128xf32>) -> tensor<2x128x16xf32>
  %1 = dmir.matmul %q, %0 : (tensor<2x4x128xf32>, tensor<2x128x16xf32>) -> tensor<2x4x16xf32>
  return %1 : tensor<2x4x16xf32>
}

// -----

// An input that is read in two ways stays f16 and is cast once for all products; integers and other constants are left.
// CHECK-LABEL: func @shared
// CHECK-SAME: (%[[X:.*]]: tensor<4x64xf16>, %[[I:.*]]: tensor<4x4xi32>)
// CHECK: %[[C:.*]] = dmir.cast %[[X]] : (tensor<4x64xf16>) -> tensor<4x64x!dmir.block_fp<BFP16_64R>>
// CHECK-NOT: dmir.cast %[[X]]
// CHECK: dmir.matmul %[[C]], %[[W:.*]] :
// CHECK: dmir.matmul %[[C]], %[[W]] :
// CHECK: dmir.matmul %[[I]], %[[I]] : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi32>
// CHECK: dmir.mul %[[X]], %{{.*}} : (tensor<4x64xf16>, tensor<f16>) -> tensor<4x64xf16>
func.func @shared(%x: tensor<4x64xf32>, %i: tensor<4x4xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x4xi32>, tensor<4x64xf32>) {
  %w = dmir.constant dense<0.25> : tensor<64x8xf32>
  %c = dmir.constant dense<3.0> : tensor<f32>
  %0 = dmir.matmul %x, %w : (tensor<4x64xf32>, tensor<64x8xf32>) -> tensor<4x8xf32>
  %1 = dmir.matmul %x, %w : (tensor<4x64xf32>, tensor<64x8xf32>) -> tensor<4x8xf32>
  %2 = dmir.matmul %i, %i : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi32>
  %3 = dmir.mul %x, %c : (tensor<4x64xf32>, tensor<f32>) -> tensor<4x64xf32>
  return %0, %1, %2, %3 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x4xi32>, tensor<4x64xf32>
}
