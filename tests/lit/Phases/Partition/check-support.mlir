// RUN: not dmx-opt %s -pass-pipeline='builtin.module(func.func(dmir-check-support))' 2>&1 | FileCheck %s

// Every op that nobody computes is reported in one run, each with its target's reason.
// CHECK: "first"{{.*}}no target computes 'dmir.neg'
// CHECK: cpu: {{.*}}no kernels for elements of type i4
// CHECK-NOT: "between"
// CHECK: "second"{{.*}}no target computes 'dmir.exp'
// CHECK: cpu: {{.*}}has dims without a name; say what they are with #dmir.dims
func.func @refused(%x: tensor<4xi4>, %y: tensor<?x4xf32>, %z: tensor<4xf32>) -> (tensor<4xi4>, tensor<4xf32>, tensor<?x4xf32>) {
  %0 = dmir.neg %x : (tensor<4xi4>) -> tensor<4xi4> loc("first")
  %1 = dmir.neg %z : (tensor<4xf32>) -> tensor<4xf32> loc("between")
  %2 = dmir.exp %y : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("second")
  return %0, %1, %2 : tensor<4xi4>, tensor<4xf32>, tensor<?x4xf32>
}
