// REQUIRES: target-corsair
// RUN: dmx-opt --target=corsair:quads=1 %s -pass-pipeline='builtin.module(corsair-kernel-functions,corsair-assign-formats,func.func(corsair-tile-products,corsair-bufferize,corsair-lower-tiles),corsair-outline-spmd,dlir-schedule-devices)' | FileCheck %s

// A device's program stands in the place of what its stages made of its kernel, under its name; kernels of the host stay functions.
// CHECK: dlir.kernel @host on "cpu"
// CHECK-NOT: dlir.kernel @card
// CHECK: dlir.device_program @card on "corsair" {
// CHECK: dlir.scheduled_graph "main"
// CHECK-NOT: dlir.kernel
dlir.kernel @host on "cpu" attributes {strategy = {algorithm = "pointwise"}} {
^bb0(%a: tensor<4x64xf32>):
  %0 = dmir.exp %a : (tensor<4x64xf32>) -> tensor<4x64xf32>
  dmir.yield %0 : tensor<4x64xf32>
}
dlir.kernel @card on "corsair" attributes {strategy = {algorithm = "graph"}} {
^bb0(%a: tensor<4x64xf32>):
  %0 = dmir.relu %a : (tensor<4x64xf32>) -> tensor<4x64xf32>
  dmir.yield %0 : tensor<4x64xf32>
}
