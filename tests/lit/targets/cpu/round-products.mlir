// REQUIRES: frontend-mlir
// RUN: dmxc %s -t cpu:x86-64-v3 --numerics bf16 --emit partition -o - | FileCheck %s
// RUN: dmxc %s -t cpu:x86-64-v3 --emit partition -o - | FileCheck %s --check-prefix=STRICT

// Two products of one operand read one cast of it, which its producer writes; weights are rounded once, below the transpose; the sums are f32.
// CHECK-LABEL: func.func @main
// CHECK: dmir.relu
// CHECK: dmir.cast {{.*}} -> tensor<6x8xbf16>
// CHECK: dmir.matmul {{.*}} : (tensor<6x8xbf16>, tensor<8x16xbf16>) -> tensor<6x16xf32>
// CHECK: dmir.matmul {{.*}} : (tensor<6x8xbf16>, tensor<8x8xbf16>) -> tensor<6x8xf32>
// CHECK-NOT: dmir.cast {{.*}}bf16
// STRICT-NOT: bf16
func.func @main(%x: tensor<6x8xf32> {dmir.name = "x"}) -> (tensor<6x16xf32> {dmir.name = "y"}, tensor<6x8xf32> {dmir.name = "z"}) {
  %w = dmir.constant dense<1.00390625> : tensor<16x8xf32>
  %v = dmir.constant dense<0.5> : tensor<8x8xf32>
  %r = dmir.relu %x : (tensor<6x8xf32>) -> tensor<6x8xf32>
  %t = dmir.transpose %w {permutation = array<i64: 1, 0>} : (tensor<16x8xf32>) -> tensor<8x16xf32>
  %y = dmir.matmul %r, %t : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %z = dmir.matmul %r, %v : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
  return %y, %z : tensor<6x16xf32>, tensor<6x8xf32>
}
