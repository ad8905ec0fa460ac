// RUN: dmx-opt %s -affine-promote-single | FileCheck %s

// The innermost loop of one trip vanishes, the outer one stays.
// CHECK-LABEL: func @nest
// CHECK: affine.for %[[I:.*]] = 0 to 1 {
// CHECK-NEXT: affine.store %{{.*}}, %{{.*}}[%[[I]], %{{.*}}]
// CHECK-NOT: affine.for
// CHECK-LABEL: func @others
func.func @nest(%a: memref<1x1xf32>, %v: f32) {
  affine.for %i = 0 to 1 {
    affine.for %j = 0 to 1 {
      affine.store %v, %a[%i, %j] : memref<1x1xf32>
    }
  }
  return
}

// Other counts stay; a step that leaves one trip counts as one.
// CHECK: affine.for %{{.*}} = 0 to 2
// CHECK-NOT: affine.for
// CHECK: return
func.func @others(%a: memref<8xf32>, %v: f32) {
  affine.for %i = 0 to 2 {
    affine.store %v, %a[%i] : memref<8xf32>
  }
  affine.for %i = 3 to 8 step 5 {
    affine.store %v, %a[%i] : memref<8xf32>
  }
  return
}
