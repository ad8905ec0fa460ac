// Keys or values that are one constant number are part of a kernel and in no memory: the products stand alone.
// REQUIRES: frontend-mlir
// RUN: dmxc %s -t cpu -o %t.bundle
// RUN: dmx-run %t.bundle --entry values --random-inputs 1 | FileCheck %s --check-prefix=VALUES
// RUN: dmx-run %t.bundle --entry keys --random-inputs 1 | FileCheck %s --check-prefix=KEYS

// VALUES: r: f32 1x5x1, min 0.75, max 0.75
func.func @values(%x: tensor<1x5x1xf32> {dmir.name = "x"}, %y: tensor<1x1x1xf32> {dmir.name = "y"}) -> (tensor<1x5x1xf32> {dmir.name = "r"}) {
  %c = dmir.constant dense<0.75> : tensor<1x1x1xf32>
  %s = dmir.matmul %x, %y : (tensor<1x5x1xf32>, tensor<1x1x1xf32>) -> tensor<1x5x1xf32>
  %p = dmir.softmax %s {axis = 2 : i64} : (tensor<1x5x1xf32>) -> tensor<1x5x1xf32>
  %r = dmir.matmul %p, %c : (tensor<1x5x1xf32>, tensor<1x1x1xf32>) -> tensor<1x5x1xf32>
  return %r : tensor<1x5x1xf32>
}

// KEYS: r: f32 1x5x1, min {{.*}}, max
func.func @keys(%x: tensor<1x5x1xf32> {dmir.name = "x"}, %y: tensor<1x1x1xf32> {dmir.name = "y"}) -> (tensor<1x5x1xf32> {dmir.name = "r"}) {
  %c = dmir.constant dense<0.75> : tensor<1x1x1xf32>
  %s = dmir.matmul %x, %c : (tensor<1x5x1xf32>, tensor<1x1x1xf32>) -> tensor<1x5x1xf32>
  %p = dmir.softmax %s {axis = 2 : i64} : (tensor<1x5x1xf32>) -> tensor<1x5x1xf32>
  %r = dmir.matmul %p, %y : (tensor<1x5x1xf32>, tensor<1x1x1xf32>) -> tensor<1x5x1xf32>
  return %r : tensor<1x5x1xf32>
}
