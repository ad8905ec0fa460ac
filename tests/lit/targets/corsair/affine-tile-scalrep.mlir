// RUN: dmx-opt %s -affine-tile-scalrep | FileCheck %s

!T = !affine_ext.vec_ext<64x64xf16>

// A load of the tile just stored is gone.
// CHECK-LABEL: func @forward
// CHECK: affine.for
// CHECK: %[[X:.*]] = affine.load %arg0
// CHECK-NEXT: affine.store %[[X]], %arg1
// CHECK-NOT: affine.load
// CHECK: lldmir.simd "relu"(%[[X]] :
func.func @forward(%a: memref<8x!T>, %b: memref<8x!T>, %c: memref<8x!T>) {
  affine.for %i = 0 to 8 {
    %x = affine.load %a[%i] : memref<8x!T>
    affine.store %x, %b[%i] : memref<8x!T>
    %y = affine.load %b[%i] : memref<8x!T>
    %z = lldmir.simd "relu"(%y : !T) -> !T
    affine.store %z, %c[%i] : memref<8x!T>
  }
  return
}

// Another tile is not forwarded.
// CHECK-LABEL: func @other_tile
// CHECK-COUNT-2: affine.load
func.func @other_tile(%a: memref<8x!T>, %b: memref<8x!T>, %c: memref<8x!T>) {
  affine.for %i = 0 to 7 {
    %x = affine.load %a[%i] : memref<8x!T>
    affine.store %x, %b[%i] : memref<8x!T>
    %y = affine.load %b[%i + 1] : memref<8x!T>
    affine.store %y, %c[%i] : memref<8x!T>
  }
  return
}

// Two equal loads become one.
// CHECK-LABEL: func @redundant
// CHECK: %[[X:.*]] = affine.load
// CHECK-NOT: affine.load
// CHECK: lldmir.simd "add"(%[[X]], %[[X]] :
func.func @redundant(%a: memref<8x!T>, %c: memref<8x!T>) {
  affine.for %i = 0 to 8 {
    %x = affine.load %a[%i] : memref<8x!T>
    %y = affine.load %a[%i] : memref<8x!T>
    %z = lldmir.simd "add"(%x, %y : !T, !T) -> !T
    affine.store %z, %c[%i] : memref<8x!T>
  }
  return
}

// A store that may alias between them keeps both.
// CHECK-LABEL: func @aliasing_store
// CHECK-COUNT-2: affine.load %arg0
func.func @aliasing_store(%a: memref<8x!T>, %t: !T, %j: index) -> (!T, !T) {
  %x = affine.load %a[0] : memref<8x!T>
  affine.store %t, %a[symbol(%j)] : memref<8x!T>
  %y = affine.load %a[0] : memref<8x!T>
  return %x, %y : !T, !T
}

// So does an op that writes the whole memref.
// CHECK-LABEL: func @writing_op
// CHECK-COUNT-2: affine.load %arg0
func.func @writing_op(%a: memref<8x!T>, %b: memref<8x!T>) -> (!T, !T) {
  %x = affine.load %a[0] : memref<8x!T>
  lldmir.simd "relu"(%b : memref<8x!T>) outs(%a : memref<8x!T>)
  %y = affine.load %a[0] : memref<8x!T>
  return %x, %y : !T, !T
}

// An overwritten store is removed; the one that stays is seen outside.
// CHECK-LABEL: func @dead_store
// CHECK: affine.store %arg2, %arg0[0]
// CHECK-NOT: affine.store
// CHECK: return
func.func @dead_store(%a: memref<8x!T>, %t: !T, %u: !T) {
  affine.store %t, %a[0] : memref<8x!T>
  affine.store %u, %a[0] : memref<8x!T>
  return
}

// Read in between by an op on the whole memref: both stay.
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
