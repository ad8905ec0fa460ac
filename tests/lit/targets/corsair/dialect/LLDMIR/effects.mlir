// Ops on whole memrefs of tiles tell their effects, which passes on loops ask.
// RUN: dmx-opt %s -affine-tile-scalrep | FileCheck %s

!T = !affine_ext.vec_ext<64x64xf16>

// What an op may have written is loaded again.
// CHECK-LABEL: func @writing_op
// CHECK-COUNT-2: affine.load %arg0
func.func @writing_op(%a: memref<8x!T>, %b: memref<8x!T>) -> (!T, !T) {
  %x = affine.load %a[0] : memref<8x!T>
  lldmir.simd "relu"(%b : memref<8x!T>) outs(%a : memref<8x!T>)
  %y = affine.load %a[0] : memref<8x!T>
  return %x, %y : !T, !T
}

// What an op reads in between is stored before, too.
// CHECK-LABEL: func @read_between
// CHECK: affine.store %arg2
// CHECK: lldmir.simd
// CHECK: affine.store %arg3
func.func @read_between(%a: memref<8x!T>, %b: memref<8x!T>, %t: !T, %u: !T) {
  affine.store %t, %a[0] : memref<8x!T>
  lldmir.simd "relu"(%a : memref<8x!T>) outs(%b : memref<8x!T>)
  affine.store %u, %a[0] : memref<8x!T>
  return
}
