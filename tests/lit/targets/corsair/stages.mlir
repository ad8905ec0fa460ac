// REQUIRES: frontend-mlir
// RUN: dmxc %s -q -t corsair:quads=2 --emit schedule.tiles -o - | FileCheck %s --check-prefix=TILES
// RUN: dmxc %s -q -t corsair:quads=2 --emit schedule.buffers -o - | FileCheck %s --check-prefix=BUFFERS
// RUN: dmxc %s -q -t corsair:quads=2 --emit schedule.spmd -o %t.mlir
// RUN: FileCheck %s --check-prefix=SPMD --input-file=%t.mlir
// RUN: dmxc %t.mlir --from schedule.spmd -q -t corsair:quads=2 -o %t.bundle
// RUN: dmxc %s -q -t corsair:quads=2 -o %t.other
// RUN: dmx-inspect %t.bundle --what kernels > %t.code
// RUN: dmx-inspect %t.other --what kernels > %t.code.other
// RUN: cmp %t.code %t.code.other

// A convolution, its channels as rows of a product of two values, rows that are gathered, and a padded result: every op has a form at every
// stage, and the text of the last gives the same bundle.

// TILES: lldmir.conv {{.*}} bias
// TILES: affine.for %{{.*}} = 0 to 3
// TILES: tensor.extract_slice {{.*}} : tensor<3x16x70x!dmir.block_fp<BFP16_64R>> to tensor<8x70x!dmir.block_fp<BFP16_64R>>
// TILES: lldmir.batch
// BUFFERS: lldmir.conv {{.*}} outs {{.*}} memref<3x16x7x10xf16, strided<[1120, 1, 160, 16]>, "GM">
// BUFFERS: memref.transpose
// BUFFERS: memref.subview {{.*}} to memref<70x16xf16,
// BUFFERS: lldmir.reshape "gather"
// BUFFERS: lldmir.simd "copy"
// SPMD: gpu.launch_func
// SPMD: gpu.thread_id
// SPMD: lldmir.matmul
func.func @main(%x: tensor<3x4x7x10xf32> {dmir.name = "x"}, %i: tensor<5xi64> {dmir.name = "i"}) -> (tensor<5x16x18xf32> {dmir.name = "y"}) {
  %w = dmir.constant dense<0.125> : tensor<16x4x3x3xf32>
  %b = dmir.constant dense<0.5> : tensor<16x1x1xf32>
  %zero = dmir.constant dense<0.0> : tensor<f32>
  %c = dmir.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 1, 1>} : (tensor<3x4x7x10xf32>, tensor<16x4x3x3xf32>) -> tensor<3x16x7x10xf32>
  %s = dmir.add %c, %b : (tensor<3x16x7x10xf32>, tensor<16x1x1xf32>) -> tensor<3x16x7x10xf32>
  %r = dmir.reshape %s : (tensor<3x16x7x10xf32>) -> tensor<3x16x70xf32>
  %t = dmir.transpose %r {permutation = array<i64: 0, 2, 1>} : (tensor<3x16x70xf32>) -> tensor<3x70x16xf32>
  %p = dmir.matmul %r, %t : (tensor<3x16x70xf32>, tensor<3x70x16xf32>) -> tensor<3x16x16xf32>
  %g = dmir.gather %p, %i {axis = 0 : i64} : (tensor<3x16x16xf32>, tensor<5xi64>) -> tensor<5x16x16xf32>
  %y = dmir.pad %g, %zero {high = array<i64: 0, 0, 1>, interior = array<i64: 0, 0, 0>, low = array<i64: 0, 0, 1>, mode = #dmir<pad_mode constant>} : (tensor<5x16x16xf32>, tensor<f32>) -> tensor<5x16x18xf32>
  return %y : tensor<5x16x18xf32>
}
