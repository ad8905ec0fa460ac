// REQUIRES: frontend-mlir
// RUN: dmxc %s -q -t corsair:quads=2 --emit partition -o - | FileCheck %s --check-prefix=PLAN
// RUN: dmxc %s -q -t corsair:quads=2 --emit schedule.buffers -o %t.buffers.mlir
// RUN: FileCheck %s --check-prefix=BUFFERS --input-file=%t.buffers.mlir
// RUN: dmxc %t.buffers.mlir --from schedule.buffers -q -t corsair:quads=2 -o %t.bundle
// RUN: dmxc %s -q -t corsair:quads=2 -o %t.other
// RUN: dmx-inspect %t.bundle --what kernels > %t.code
// RUN: dmx-inspect %t.other --what kernels > %t.code.other
// RUN: cmp %t.code %t.code.other

// Where one B serves a batch, its products are one of more rows, or share its tiles; a repeated head that lies nowhere is copied. So are rows
// over more dims than an instruction has, and results with gaps: each copy is an op of its own.

// PLAN: dmir.matmul {{.*}} slices 4, share batch, {{.*}} -> tensor<8x32x32xf32>
// PLAN: dmir.matmul {{.*}} slices 2, share rows, {{.*}} -> tensor<8x32x32xf32>
// BUFFERS: %[[WIDE:.*]] = memref.reinterpret_cast {{.*}} to memref<2x4x32x64xf16, strided<[2048, 0, 64, 1]>, "GM">
// BUFFERS: %[[HEADS:.*]] = memref.alloc() : memref<2x4x32x64xf16, "GM">
// BUFFERS: lldmir.simd "copy"(%[[WIDE]] {{.*}}) outs(%[[HEADS]] :
// BUFFERS: memref.reinterpret_cast %[[HEADS]] {{.*}} to memref<8x32x64xf16, "GM">
// BUFFERS: memref.reinterpret_cast {{.*}} strides: [0, 32, 1]
// BUFFERS-NOT: "copy"
// BUFFERS: memref.alloc() : memref<2x2x3x4x2x3xf16, strided<[48, 24, 8, 2, 1, 96]>, "GM">
// BUFFERS-NEXT: lldmir.simd "copy"
// BUFFERS: lldmir.simd "reduce"
// BUFFERS: %[[PART:.*]] = memref.alloc() : memref<2x32x32xf16, "GM">
// BUFFERS-NEXT: lldmir.simd "copy"({{.*}} strided<[2048, -64, -2], offset: 2047>, "GM">) outs(%[[PART]] :
// BUFFERS: return {{.*}}, %[[PART]]
func.func @main(%q: tensor<8x32x64xf32> {dmir.name = "q"}, %k: tensor<2x32x64xf32> {dmir.name = "k"}, %one: tensor<1x64x32xf32> {dmir.name = "one"}, %x: tensor<4x4x5x6x4x3xf32> {dmir.name = "x"})
    -> (tensor<8x32x32xf32> {dmir.name = "grouped"}, tensor<8x32x32xf32> {dmir.name = "shared"}, tensor<1x1x1x1x1x3xf32> {dmir.name = "most"}, tensor<2x32x32xf32> {dmir.name = "part"}) {
  %apart = dmir.reshape %k : (tensor<2x32x64xf32>) -> tensor<2x1x32x64xf32>
  %wide = dmir.broadcast %apart : (tensor<2x1x32x64xf32>) -> tensor<2x4x32x64xf32>
  %heads = dmir.reshape %wide : (tensor<2x4x32x64xf32>) -> tensor<8x32x64xf32>
  %turned = dmir.transpose %heads {permutation = array<i64: 0, 2, 1>} : (tensor<8x32x64xf32>) -> tensor<8x64x32xf32>
  %grouped = dmir.matmul %q, %turned : (tensor<8x32x64xf32>, tensor<8x64x32xf32>) -> tensor<8x32x32xf32> loc("grouped")
  %all = dmir.broadcast %one : (tensor<1x64x32xf32>) -> tensor<8x64x32xf32>
  %shared = dmir.matmul %q, %all : (tensor<8x32x64xf32>, tensor<8x64x32xf32>) -> tensor<8x32x32xf32> loc("shared")
  %cut = dmir.slice %x {starts = array<i64: 0, 0, 0, 0, 1, 0>, sizes = array<i64: 2, 2, 3, 4, 2, 3>, steps = array<i64: 2, 2, 1, 1, 1, 1>} : (tensor<4x4x5x6x4x3xf32>) -> tensor<2x2x3x4x2x3xf32>
  %most = dmir.reduce max %cut {axes = array<i64: 0, 1, 2, 3, 4>} : (tensor<2x2x3x4x2x3xf32>) -> tensor<1x1x1x1x1x3xf32> loc("most")
  %part = dmir.slice %k {starts = array<i64: 0, 31, 63>, sizes = array<i64: 2, 32, 32>, steps = array<i64: 1, -1, -2>} : (tensor<2x32x64xf32>) -> tensor<2x32x32xf32> loc("part")
  return %grouped, %shared, %most, %part : tensor<8x32x32xf32>, tensor<8x32x32xf32>, tensor<1x1x1x1x1x3xf32>, tensor<2x32x32xf32>
}
