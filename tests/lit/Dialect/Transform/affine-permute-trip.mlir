// RUN: dmx-opt %s -split-input-file -affine-permute-trip | FileCheck %s

// 2 x 64 x 8 becomes 64, 8, 2.
// CHECK-LABEL: func @sorted
// CHECK: affine.for %[[J:.*]] = 0 to 64
// CHECK-NEXT: affine.for %[[K:.*]] = 0 to 8
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 2
// CHECK: affine.store %{{.*}}, %{{.*}}[%[[I]], %[[J]], %[[K]]]
func.func @sorted(%a: memref<2x64x8xf16>, %b: memref<2x64x8xf16>) {
  affine.for %i = 0 to 2 {
    affine.for %j = 0 to 64 {
      affine.for %k = 0 to 8 {
        %x = affine.load %a[%i, %j, %k] : memref<2x64x8xf16>
        affine.store %x, %b[%i, %j, %k] : memref<2x64x8xf16>
      }
    }
  }
  return
}

// -----

// Equal counts keep their order.
// CHECK-LABEL: func @stable
// CHECK: affine.for %[[I:.*]] = 0 to 8
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 8
// CHECK: affine.store %{{.*}}, %{{.*}}[%[[I]], %[[J]]]
func.func @stable(%a: memref<8x8xf32>, %b: memref<8x8xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 8 {
      %x = affine.load %a[%i, %j] : memref<8x8xf32>
      affine.store %x, %b[%i, %j] : memref<8x8xf32>
    }
  }
  return
}

// -----

// (1, -1) is carried by the outer loop; with the loops exchanged it would run backwards.
// CHECK-LABEL: func @dependence
// CHECK: affine.for %{{.*}} = 1 to 4
// CHECK-NEXT: affine.for %{{.*}} = 0 to 63
func.func @dependence(%a: memref<4x64xf32>) {
  affine.for %i = 1 to 4 {
    affine.for %j = 0 to 63 {
      %x = affine.load %a[%i - 1, %j + 1] : memref<4x64xf32>
      affine.store %x, %a[%i, %j] : memref<4x64xf32>
    }
  }
  return
}

// -----

// What the dependence analysis does not see blocks too.
// CHECK-LABEL: func @unknown
// CHECK: affine.for %{{.*}} = 0 to 2
// CHECK-NEXT: affine.for %{{.*}} = 0 to 64
func.func private @effect(index)
func.func @unknown() {
  affine.for %i = 0 to 2 {
    affine.for %j = 0 to 64 {
      func.call @effect(%j) : (index) -> ()
    }
  }
  return
}

// -----

// A count that depends on another loop is none.
// CHECK-LABEL: func @triangle
// CHECK: affine.for %[[I:.*]] = 0 to 2
// CHECK-NEXT: affine.for %{{.*}} = 0 to #{{.*}}(%[[I]])
func.func @triangle(%a: memref<2x64xf32>, %v: f32) {
  affine.for %i = 0 to 2 {
    affine.for %j = 0 to affine_map<(d0) -> (d0 + 60)>(%i) {
      affine.store %v, %a[%i, %j] : memref<2x64xf32>
    }
  }
  return
}
