// RUN: dmx-opt %s --target=corsair:quads=2 -dmxc-frontend -dmxc-partition -dmxc-memory -dmxc-schedule.formats | FileCheck %s
// RUN: dmx-opt %s --target=corsair:quads=2 -dmxc-frontend -dmxc-partition -dmxc-memory -dmxc-schedule.formats -dmxc-schedule.tiles -dmxc-schedule.buffers | FileCheck %s --check-prefix=BUFFERS

// What is turned round and whole because something besides products needs all of it is cast as it lies then: what it was turned from is
// a part in each quad, and its blocks would be of that part.
// CHECK: %[[T:.*]] = dmir.transpose %{{.*}} : (tensor<128x64xf16>) -> tensor<64x128xf16>
// CHECK: %[[K:.*]] = dmir.cast %[[T]] : (tensor<64x128xf16>) -> tensor<64x128x!dmir.block_fp<BFP16_64C>>
// CHECK: dmir.reduce max %[[T]] {{.*}}lldmir.gather = array<i64: 0>
// CHECK: dmir.matmul %{{.*}}, %[[K]]
// BUFFERS: lldmir.gather %{{.*}} outs %[[WHOLE:.*]] {deals
// BUFFERS: lldmir.simd "reduce"(%[[WHOLE]]
// BUFFERS: affine_ext.tiles %[[WHOLE]] : {{.*}} to memref<1x2x
func.func @main(%x: tensor<128x64xf32> {dmir.name = "x"}) -> (tensor<128x64xf32> {dmir.name = "y"}, tensor<64x1xf32> {dmir.name = "z"}) {
  %w = dmir.constant dense<0.25> : tensor<64x64xf32>
  %0 = dmir.matmul %x, %w : (tensor<128x64xf32>, tensor<64x64xf32>) -> tensor<128x64xf32> loc("p")
  %1 = dmir.transpose %0 {permutation = array<i64: 1, 0>} : (tensor<128x64xf32>) -> tensor<64x128xf32>
  %2 = dmir.reduce max %1 {axes = array<i64: 1>} : (tensor<64x128xf32>) -> tensor<64x1xf32> loc("largest")
  %3 = dmir.matmul %0, %1 : (tensor<128x64xf32>, tensor<64x128xf32>) -> tensor<128x128xf32> loc("scores")
  %4 = dmir.softmax %3 {axis = 1 : i64} : (tensor<128x128xf32>) -> tensor<128x128xf32> loc("weights")
  %5 = dmir.matmul %4, %0 : (tensor<128x128xf32>, tensor<128x64xf32>) -> tensor<128x64xf32> loc("mixed")
  return %5, %2 : tensor<128x64xf32>, tensor<64x1xf32>
}
