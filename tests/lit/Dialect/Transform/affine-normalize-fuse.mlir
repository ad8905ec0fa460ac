// RUN: dmx-opt %s -affine-normalize-fuse | FileCheck %s
// RUN: dmx-opt %s -affine-normalize-fuse=normalize=false | FileCheck %s --check-prefix=OFF

// 4..12 step 2 and 0..4 have four trips each, which shows once both run from 0 by 1.
// CHECK-LABEL: func @fused
// CHECK: affine.for %{{.*}} = 0 to 4
// CHECK-NOT: affine.for
// CHECK-LABEL: func @producer_read_later
// OFF-LABEL: func @fused
// OFF: affine.for %{{.*}} = 4 to 12 step 2
// OFF: affine.for %{{.*}} = 0 to 4
func.func @fused(%a: memref<16xf16>, %b: memref<16xf16>, %c: memref<16xf16>) {
  affine.for %i = 4 to 12 step 2 {
    %x = affine.load %a[%i] : memref<16xf16>
    affine.store %x, %b[%i] : memref<16xf16>
  }
  affine.for %i = 0 to 4 {
    %x = affine.load %b[2 * %i + 4] : memref<16xf16>
    affine.store %x, %c[%i] : memref<16xf16>
  }
  return
}

// The consumer reads what a later trip of the producer stores.
// CHECK: affine.for %{{.*}} = 0 to 4
// CHECK: affine.for %{{.*}} = 0 to 4
// CHECK: return
func.func @producer_read_later(%a: memref<16xf16>, %b: memref<16xf16>, %c: memref<16xf16>) {
  affine.for %i = 0 to 4 {
    %x = affine.load %a[%i] : memref<16xf16>
    affine.store %x, %b[%i] : memref<16xf16>
  }
  affine.for %i = 0 to 4 {
    %x = affine.load %b[3 - %i] : memref<16xf16>
    %y = affine.load %b[0] : memref<16xf16>
    affine.store %x, %c[%i] : memref<16xf16>
    affine.store %y, %c[%i + 4] : memref<16xf16>
  }
  return
}

// Loops of other counts stay apart.
// CHECK-LABEL: func @counts
// CHECK: affine.for %{{.*}} = 0 to 4
// CHECK: affine.for %{{.*}} = 0 to 3
func.func @counts(%a: memref<16xf32>, %b: memref<16xf32>, %c: memref<16xf32>) {
  affine.for %i = 0 to 4 {
    %x = affine.load %a[%i] : memref<16xf32>
    affine.store %x, %b[%i] : memref<16xf32>
  }
  affine.for %i = 0 to 3 {
    %x = affine.load %b[%i] : memref<16xf32>
    affine.store %x, %c[%i] : memref<16xf32>
  }
  return
}
