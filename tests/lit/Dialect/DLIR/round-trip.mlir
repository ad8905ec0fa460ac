// RUN: dmx-opt %s | dmx-opt | FileCheck %s

// CHECK: dlir.kernel @k0 on "cpu"
dlir.kernel @k0 on "cpu" attributes {strategy = {algorithm = "pointwise"}} {
^bb0(%a: tensor<16xf32>):
  %0 = dmir.exp %a : (tensor<16xf32>) -> tensor<16xf32>
  dmir.yield %0 : tensor<16xf32>
}

// CHECK: dlir.program @main attributes
dlir.program @main attributes {inputs = [{name = "x", type = tensor<16xf32>}], outputs = [{name = "y", type = tensor<16xf32>}],
                               arenas = [{size = 64, lower_bound = 64}]} {
  // CHECK: %[[X:.*]] = dlir.buffer input "x" : tensor<16xf32> {size = 64 : i64}
  %x = dlir.buffer input "x" : tensor<16xf32> {size = 64 : i64}
  // CHECK: %[[T:.*]] = dlir.buffer arena "t" : tensor<16xf32> {size = 64 : i64}
  %t = dlir.buffer arena "t" : tensor<16xf32> {size = 64 : i64}
  // CHECK: dlir.buffer alias "v" of %[[T]] : tensor<4x4xf32> {size = 64 : i64}
  %v = dlir.buffer alias "v" of %t : tensor<4x4xf32> {size = 64 : i64}
  %y = dlir.buffer output "y" : tensor<16xf32> {size = 64 : i64}
  // CHECK: %[[D:.*]] = dlir.dispatch @k0(%[[X]]) -> (%[[T]]) {nodes = ["exp"], queue = "cpu", work = 1 : i64}
  %d = dlir.dispatch @k0(%x) -> (%t) {nodes = ["exp"], queue = "cpu", work = 1 : i64}
  // CHECK: dlir.copy_buffer %{{.*}} to %{{.*}} after %[[D]]
  %c = dlir.copy_buffer %v to %y after %d {nodes = ["y"], queue = "cpu", size = 64 : i64}
}

// A buffer without bytes may lie inside another that is live.
// CHECK: dlir.program @empty attributes
dlir.program @empty attributes {inputs = [{name = "x", type = tensor<32xf32>}], outputs = [{name = "y", type = tensor<0xf32>}, {name = "z", type = tensor<32xf32>}],
                                arenas = [{size = 128, lower_bound = 128}]} {
  %x = dlir.buffer input "x" : tensor<32xf32> {size = 128 : i64}
  %s = dlir.buffer arena "s" : tensor<32xf32> {size = 128 : i64}
  // CHECK: dlir.buffer arena "t" : tensor<0xf32> {offset = 64 : i64, size = 0 : i64}
  %t = dlir.buffer arena "t" : tensor<0xf32> {offset = 64 : i64, size = 0 : i64}
  %y = dlir.buffer output "y" : tensor<0xf32> {size = 0 : i64}
  %z = dlir.buffer output "z" : tensor<32xf32> {index = 1 : i64, size = 128 : i64}
  %a = dlir.copy_buffer %x to %s {nodes = ["a"], queue = "cpu", size = 128 : i64}
  %b = dlir.copy_buffer %x to %t after %a {nodes = ["b"], queue = "cpu", size = 0 : i64}
  %c = dlir.copy_buffer %t to %y after %b {nodes = ["c"], queue = "cpu", size = 0 : i64}
  %d = dlir.copy_buffer %s to %z after %c {nodes = ["d"], queue = "cpu", size = 128 : i64}
}
