// RUN: dmx-opt %s -affine-tile-scalrep | FileCheck %s

// A load of the tile just stored is gone.
// CHECK-LABEL: func @forward
// CHECK: affine.for
// CHECK: %[[X:.*]] = affine.load %arg0
// CHECK-NEXT: affine.store %[[X]], %arg1
// CHECK-NOT: affine.load
// CHECK: arith.negf %[[X]]
func.func @forward(%a: memref<8xf16>, %b: memref<8xf16>, %c: memref<8xf16>) {
  affine.for %i = 0 to 8 {
    %x = affine.load %a[%i] : memref<8xf16>
    affine.store %x, %b[%i] : memref<8xf16>
    %y = affine.load %b[%i] : memref<8xf16>
    %z = arith.negf %y : f16
    affine.store %z, %c[%i] : memref<8xf16>
  }
  return
}

// Another tile is not forwarded.
// CHECK-LABEL: func @other_tile
// CHECK-COUNT-2: affine.load
func.func @other_tile(%a: memref<8xf16>, %b: memref<8xf16>, %c: memref<8xf16>) {
  affine.for %i = 0 to 7 {
    %x = affine.load %a[%i] : memref<8xf16>
    affine.store %x, %b[%i] : memref<8xf16>
    %y = affine.load %b[%i + 1] : memref<8xf16>
    affine.store %y, %c[%i] : memref<8xf16>
  }
  return
}

// Two equal loads become one.
// CHECK-LABEL: func @redundant
// CHECK: %[[X:.*]] = affine.load
// CHECK-NOT: affine.load
// CHECK: arith.addf %[[X]], %[[X]]
func.func @redundant(%a: memref<8xf16>, %c: memref<8xf16>) {
  affine.for %i = 0 to 8 {
    %x = affine.load %a[%i] : memref<8xf16>
    %y = affine.load %a[%i] : memref<8xf16>
    %z = arith.addf %x, %y : f16
    affine.store %z, %c[%i] : memref<8xf16>
  }
  return
}

// A store that may alias between them keeps both.
// CHECK-LABEL: func @aliasing_store
// CHECK-COUNT-2: affine.load %arg0
func.func @aliasing_store(%a: memref<8xf16>, %t: f16, %j: index) -> (f16, f16) {
  %x = affine.load %a[0] : memref<8xf16>
  affine.store %t, %a[symbol(%j)] : memref<8xf16>
  %y = affine.load %a[0] : memref<8xf16>
  return %x, %y : f16, f16
}

// An overwritten store is removed; the one that stays is seen outside.
// CHECK-LABEL: func @dead_store
// CHECK: affine.store %arg2, %arg0[0]
// CHECK-NOT: affine.store
// CHECK: return
func.func @dead_store(%a: memref<8xf16>, %t: f16, %u: f16) {
  affine.store %t, %a[0] : memref<8xf16>
  affine.store %u, %a[0] : memref<8xf16>
  return
}
