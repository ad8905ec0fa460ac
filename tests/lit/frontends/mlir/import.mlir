// Tensors without names get them; named ones keep theirs; locations stay.
// RUN: dmxc %s --emit frontend -q | FileCheck %s

// CHECK: func.func @main(%arg0: tensor<4xf32> {dmir.name = "input0"} {{.*}}, %arg1: tensor<4xf32> {dmir.name = "bias"}
// CHECK-SAME: -> (tensor<4xf32> {dmir.name = "output0"})
// CHECK: dmir.add {{.*}} loc([[LOC:#loc[0-9]*]])
// CHECK: [[LOC]] = loc("sum")
func.func @main(%x: tensor<4xf32>, %b: tensor<4xf32> {dmir.name = "bias"}) -> tensor<4xf32> {
  %0 = dmir.add %x, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("sum")
  return %0 : tensor<4xf32>
}
