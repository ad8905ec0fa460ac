// REQUIRES: frontend-mlir
// RUN: split-file %s %t
// RUN: dmxc %t/whole.mlir -q -t corsair:quads=1 --emit schedule.fused -o - | FileCheck %s --check-prefix=WHOLE
// RUN: dmxc %t/whole.mlir -q -O0 -t corsair:quads=1 --emit schedule.fused -o - | FileCheck %s --check-prefix=PLAIN
// RUN: dmxc %t/whole.mlir -q -t corsair:quads=2 --emit schedule.fused -o - | FileCheck %s --check-prefix=DEALT
// RUN: dmxc %t/whole.mlir -q -t corsair:quads=8 --emit schedule.fused -o - | FileCheck %s --check-prefix=FEW
// RUN: dmxc %t/needed.mlir -q -t corsair:quads=1 --emit schedule.fused -o - | FileCheck %s --check-prefix=NEEDED
// RUN: dmx-opt --target=corsair:quads=1 %t/tiles.mlir -corsair-drop-unread | FileCheck %s --check-prefix=TILES

// Product, bias, cast, a factor of each column, what is added to it and a function are one nest; nothing is between.
// WHOLE: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [512, 128], strides: [0, 1] : memref<128xf16, "GM">
// WHOLE: affine.for
// WHOLE: affine_ext.matmul
// WHOLE: %[[H:.*]] = affine_ext.cast %{{.*}} -> !affine_ext.vec_ext<64x64xf16>
// WHOLE-NEXT: %[[F:.*]] = affine.load %{{.*}} : memref<8x2x!affine_ext.vec_ext<64x64xf16>
// WHOLE-NEXT: %[[X:.*]] = affine.load %{{.*}} : memref<8x2x!affine_ext.vec_ext<64x64xf16>
// WHOLE-NEXT: %[[A:.*]] = lldmir.simd "fma"(%[[H]], %[[F]], %[[X]] :
// WHOLE-NEXT: %[[R:.*]] = lldmir.simd "relu"(%[[A]] :
// WHOLE-NEXT: affine.store %[[R]],
// WHOLE-NOT: affine.store
// WHOLE-NOT: lldmir.simd
// WHOLE: return
// PLAIN: affine.store
// PLAIN: lldmir.simd "fma"({{.*}}) outs
// PLAIN: lldmir.simd "relu"({{.*}}) outs

// Each quad has rows of its own; of the vector, which all have, there is a view of a quad's rows.
// DEALT: affine.for %[[Q:.*]] = 0 to 2
// DEALT: affine_ext.matmul
// DEALT: lldmir.simd "relu"
// DEALT-NOT: outs

// Of 64 rows all sums leave OB at once, in two of four slices: the vector device is done sooner with an op of its own.
// FEW: lldmir.simd "relu"({{.*}}) outs

// What a softmax reads, too, stays a buffer.
// NEEDED: affine.store
// NEEDED: lldmir.simd "relu"({{.*}}) outs
// NEEDED: lldmir.simd "softmax"({{.*}}) outs

// A buffer that is stored to and never read; one that is read, and what is returned, stay.
// TILES: func.func @k
// TILES-NOT: memref<128x64xf16
// TILES: memref.alloc() : memref<192x64xf16, "GM">
// TILES: memref.alloc() : memref<256x64xf16, "GM">
// TILES: affine.for
// TILES-COUNT-2: affine.store
// TILES-NOT: affine.store

//--- whole.mlir
func.func @main(%x: tensor<512x128xf32> {dmir.name = "x"}) -> (tensor<512x128xf32> {dmir.name = "y"}) {
  %w = dmir.constant dense<0.01> : tensor<128x128xf32>
  %b = dmir.constant dense<[0.5, 0.25, 0.125, 1.0, 0.5, 0.25, 0.125, 1.0, 0.5, 0.25, 0.125, 1.0, 0.5, 0.25, 0.125, 1.0, 0.5, 0.25, 0.125, 1.0, 0.5, 0.25, 0.125, 1.0, 0.5, 0.25, 0.125, 1.0, 0.5, 0.25, 0.125, 1.0,
    0.5, 0.25, 0.125, 1.0, 0.5, 0.25, 0.125, 1.0, 0.5, 0.25, 0.125, 1.0, 0.5, 0.25, 0.125, 1.0, 0.5, 0.25, 0.125, 1.0, 0.5, 0.25, 0.125, 1.0, 0.5, 0.25, 0.125, 1.0, 0.5, 0.25, 0.125, 1.0,
    0.5, 0.25, 0.125, 1.0, 0.5, 0.25, 0.125, 1.0, 0.5, 0.25, 0.125, 1.0, 0.5, 0.25, 0.125, 1.0, 0.5, 0.25, 0.125, 1.0, 0.5, 0.25, 0.125, 1.0, 0.5, 0.25, 0.125, 1.0, 0.5, 0.25, 0.125, 1.0,
    0.5, 0.25, 0.125, 1.0, 0.5, 0.25, 0.125, 1.0, 0.5, 0.25, 0.125, 1.0, 0.5, 0.25, 0.125, 1.0, 0.5, 0.25, 0.125, 1.0, 0.5, 0.25, 0.125, 1.0, 0.5, 0.25, 0.125, 1.0, 0.5, 0.25, 0.125, 1.0]> : tensor<128xf32>
  %t = dmir.tanh %x : (tensor<512x128xf32>) -> tensor<512x128xf32>
  %0 = dmir.matmul %t, %w : (tensor<512x128xf32>, tensor<128x128xf32>) -> tensor<512x128xf32>
  %1 = dmir.mul %0, %b : (tensor<512x128xf32>, tensor<128xf32>) -> tensor<512x128xf32>
  %2 = dmir.add %1, %t : (tensor<512x128xf32>, tensor<512x128xf32>) -> tensor<512x128xf32>
  %3 = dmir.relu %2 : (tensor<512x128xf32>) -> tensor<512x128xf32>
  return %3 : tensor<512x128xf32>
}
//--- needed.mlir
func.func @main(%x: tensor<128x64xf32> {dmir.name = "x"}) -> (tensor<128x64xf32> {dmir.name = "y"}) {
  %w = dmir.constant dense<0.01> : tensor<64x64xf32>
  %0 = dmir.matmul %x, %w : (tensor<128x64xf32>, tensor<64x64xf32>) -> tensor<128x64xf32>
  %1 = dmir.relu %0 : (tensor<128x64xf32>) -> tensor<128x64xf32>
  %2 = dmir.softmax %0 {axis = 1 : i64} : (tensor<128x64xf32>) -> tensor<128x64xf32>
  %3 = dmir.add %1, %2 : (tensor<128x64xf32>, tensor<128x64xf32>) -> tensor<128x64xf32>
  return %3 : tensor<128x64xf32>
}
//--- tiles.mlir
!T = !affine_ext.vec_ext<64x64xf16>
func.func @k(%x: memref<2x1x!T, "GM">, %y: memref<192x64xf16, "GM">) -> memref<256x64xf16, "GM"> attributes {lldmir.quads = 1 : i64} {
  %a = memref.alloc() : memref<128x64xf16, "GM">
  %b = memref.alloc() : memref<192x64xf16, "GM">
  %c = memref.alloc() : memref<256x64xf16, "GM">
  %0 = affine_ext.tiles %a : memref<128x64xf16, "GM"> to memref<2x1x!T, "GM">
  %1 = affine_ext.tiles %b : memref<192x64xf16, "GM"> to memref<3x1x!T, "GM">
  %2 = affine_ext.tiles %c : memref<256x64xf16, "GM"> to memref<4x1x!T, "GM">
  affine.for %i = 0 to 2 {
    %t = affine.load %x[%i, 0] : memref<2x1x!T, "GM">
    affine.store %t, %0[%i, 0] : memref<2x1x!T, "GM">
    affine.store %t, %1[%i, 0] : memref<3x1x!T, "GM">
    affine.store %t, %2[%i, 0] : memref<4x1x!T, "GM">
  }
  lldmir.simd "relu"(%b : memref<192x64xf16, "GM">) outs(%y : memref<192x64xf16, "GM">)
  return %c : memref<256x64xf16, "GM">
}
