// Ops on loops, one at a time; what the forms are is tested in tests/cli/schedules/forms.py.
// RUN: dmx-opt %s -split-input-file --transform-interpreter -mlir-print-local-scope 2>/dev/null | FileCheck %s
// The texts of the ops: what is printed is read again.
// RUN: dmx-opt %s -split-input-file | dmx-opt -split-input-file | FileCheck %s --check-prefix=TEXT

// TEXT: transform.dmx.interchange %{{.*}} [2, 0, 1] : !transform.any_op -> !transform.dmx.form<"nest.perfect">
// CHECK-LABEL: func @interchange
// CHECK: affine.for %[[K:.*]] = 2 to 9 step 3
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 4
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 5
// CHECK-NEXT: affine.load %{{.*}}[%[[I]], %[[J]], %[[K]]]
module attributes {transform.with_named_sequence} {
  func.func @interchange(%a: memref<4x5x9xf32>, %b: memref<4x5x9xf32>) {
    affine.for %i = 0 to 4 {
      affine.for %j = 0 to 5 {
        affine.for %k = 2 to 9 step 3 {
          %x = affine.load %a[%i, %j, %k] : memref<4x5x9xf32>
          affine.store %x, %b[%i, %j, %k] : memref<4x5x9xf32>
        }
      }
    }
    return
  }
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %n = transform.dmx.match {kind = "nest"} in %m expect 1 : !transform.any_op -> !transform.any_op
    %o = transform.dmx.interchange %n [2, 0, 1] : !transform.any_op -> !transform.dmx.form<"nest.perfect">
    transform.yield
  }
}

// -----

// A loop that is not cut stays with the loops over tiles; the last tile is shorter.
// TEXT: transform.dmx.tile %{{.*}} [%{{.*}}, 0, 2] : !transform.any_op, !transform.param<i64> -> !transform.any_op, !transform.any_op
// CHECK-LABEL: func @tile
// CHECK: affine.for %[[I:.*]] = 0 to 8 step 4
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 5
// CHECK-NEXT: affine.for %[[K:.*]] = 1 to 8 step 2
// CHECK-NEXT: affine.for %[[II:.*]] = affine_map<(d0) -> (d0)>(%[[I]]) to affine_map<(d0) -> (d0 + 4)>(%[[I]])
// CHECK-NEXT: affine.for %[[KK:.*]] = affine_map<(d0) -> (d0)>(%[[K]]) to min affine_map<(d0) -> (d0 + 2, 8)>(%[[K]]) {
// CHECK-NEXT: affine.load %{{.*}}[%[[II]], %[[J]], %[[KK]]]
module attributes {transform.with_named_sequence} {
  func.func @tile(%a: memref<8x5x8xf32>, %b: memref<8x5x8xf32>) {
    affine.for %i = 0 to 8 {
      affine.for %j = 0 to 5 {
        affine.for %k = 1 to 8 {
          %x = affine.load %a[%i, %j, %k] : memref<8x5x8xf32>
          affine.store %x, %b[%i, %j, %k] : memref<8x5x8xf32>
        }
      }
    }
    return
  }
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %n = transform.dmx.match {kind = "nest"} in %m expect 1 : !transform.any_op -> !transform.any_op
    %size = transform.param.constant 4 : i64 -> !transform.param<i64>
    %t, %p = transform.dmx.tile %n [%size, 0, 2] : !transform.any_op, !transform.param<i64> -> !transform.any_op, !transform.any_op
    transform.yield
  }
}

// -----

// Values that loops carry are handed on; slices that are inserted at places of their own may come in any order.
// CHECK-LABEL: func @carried
// CHECK: %[[OUT:.*]] = affine.for %[[J:.*]] = 0 to 3 iter_args(%[[A:.*]] = %{{.*}}) -> (tensor<8x6xf32>)
// CHECK-NEXT: %[[IN:.*]] = affine.for %[[I:.*]] = 0 to 4 iter_args(%[[B:.*]] = %[[A]]) -> (tensor<8x6xf32>)
// CHECK-NEXT: affine.apply affine_map<(d0) -> (d0 * 2)>(%[[I]])
// CHECK: affine.yield %[[IN]]
// CHECK: return %[[OUT]]
module attributes {transform.with_named_sequence} {
  func.func @carried(%t: tensor<8x6xf32>, %part: tensor<2x2xf32>) -> tensor<8x6xf32> {
    %0 = affine.for %i = 0 to 4 iter_args(%a = %t) -> (tensor<8x6xf32>) {
      %1 = affine.for %j = 0 to 3 iter_args(%b = %a) -> (tensor<8x6xf32>) {
        %down = affine.apply affine_map<(d0) -> (d0 * 2)>(%i)
        %right = affine.apply affine_map<(d0) -> (d0 * 2)>(%j)
        %2 = tensor.insert_slice %part into %b[%down, %right] [2, 2] [1, 1] : tensor<2x2xf32> into tensor<8x6xf32>
        affine.yield %2 : tensor<8x6xf32>
      }
      affine.yield %1 : tensor<8x6xf32>
    }
    return %0 : tensor<8x6xf32>
  }
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %n = transform.dmx.match {kind = "nest"} in %m expect 1 : !transform.any_op -> !transform.any_op
    %o = transform.dmx.interchange %n [1, 0] : !transform.any_op -> !transform.any_op
    transform.yield
  }
}

// -----

// TEXT: transform.dmx.loop %{{.*}}[0] : !transform.any_op -> !transform.any_op
// TEXT: transform.dmx.unroll %{{.*}} by 2 : !transform.any_op -> !transform.any_op
// TEXT: transform.dmx.unroll %{{.*}} full : !transform.any_op -> !transform.any_op
// CHECK-LABEL: func @unroll
// CHECK: affine.for %[[I:.*]] = 0 to 4 step 2
// CHECK-NEXT: affine.load %{{.*}}[%[[I]]]
// CHECK: affine.load %{{.*}}[%[[I]] + 1]
// CHECK: affine.load %{{.*}}[4]
// CHECK-NOT: affine.for
module attributes {transform.with_named_sequence} {
  func.func @unroll(%a: memref<5xf32>, %b: memref<5xf32>) {
    affine.for %i = 0 to 5 {
      %x = affine.load %a[%i] : memref<5xf32>
      affine.store %x, %b[%i] : memref<5xf32>
    }
    affine.for %i = 0 to 2 {
      %x = affine.load %a[%i] : memref<5xf32>
      affine.store %x, %b[%i] : memref<5xf32>
    }
    return
  }
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %n = transform.dmx.match {kind = "nest", nth = 0} in %m expect 2 : !transform.any_op -> !transform.any_op
    %s = transform.dmx.match {kind = "nest", nth = 1} in %m expect 2 : !transform.any_op -> !transform.any_op
    %l = transform.dmx.loop %n[0] : !transform.any_op -> !transform.any_op
    %u = transform.dmx.unroll %l by 2 : !transform.any_op -> !transform.any_op
    %v = transform.dmx.unroll %s full : !transform.any_op -> !transform.any_op
    transform.yield
  }
}

// -----

// TEXT: transform.dmx.fuse_into %{{.*}} into %{{.*}} depth 2 : !transform.any_op, !transform.any_op -> !transform.any_op
// CHECK-LABEL: func @fuse
// CHECK: memref.alloc
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 4
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 5
// CHECK: affine.store %{{.*}}, %{{.*}}[%[[I]], %[[J]]]
// CHECK-NEXT: affine.load %{{.*}}[%[[I]], %[[J]]]
// CHECK-NOT: affine.for
module attributes {transform.with_named_sequence} {
  func.func @fuse(%a: memref<4x5xf32>, %b: memref<4x5xf32>) {
    affine.for %i = 0 to 4 {
      affine.for %j = 0 to 5 {
        %x = affine.load %a[%i, %j] : memref<4x5xf32>
        affine.store %x, %b[%i, %j] : memref<4x5xf32>
      }
    }
    %c = memref.alloc() : memref<4x5xf32>
    affine.for %i = 0 to 4 {
      affine.for %j = 0 to 5 {
        %x = affine.load %b[%i, %j] : memref<4x5xf32>
        affine.store %x, %c[%i, %j] : memref<4x5xf32>
      }
    }
    return
  }
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %n = transform.dmx.match {kind = "nest", nth = 0} in %m expect 2 : !transform.any_op -> !transform.any_op
    %s = transform.dmx.match {kind = "nest", nth = 1} in %m expect 2 : !transform.any_op -> !transform.any_op
    %f = transform.dmx.fuse_into %n into %s depth 2 : !transform.any_op, !transform.any_op -> !transform.any_op
    transform.yield
  }
}

// -----

// TEXT: transform.dmx.pad %{{.*}} to_multiple_of 4 : !transform.any_op -> !transform.any_op
// CHECK-LABEL: func @pad
// CHECK: affine.for %[[I:.*]] = 0 to 8 iter_args(%[[S:.*]] = %{{.*}}) -> (f32)
// CHECK-NEXT: %[[IF:.*]] = affine.if affine_set<(d0) : (-d0 + 4 >= 0)>(%[[I]]) -> f32
// CHECK: affine.yield %[[S]]
// CHECK: affine.yield %[[IF]]
module attributes {transform.with_named_sequence} {
  func.func @pad(%a: memref<5xf32>, %zero: f32) -> f32 {
    %0 = affine.for %i = 0 to 5 iter_args(%s = %zero) -> (f32) {
      %x = affine.load %a[%i] : memref<5xf32>
      %y = arith.addf %s, %x : f32
      affine.yield %y : f32
    }
    return %0 : f32
  }
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %n = transform.dmx.match {kind = "nest"} in %m expect 1 : !transform.any_op -> !transform.any_op
    %p = transform.dmx.pad %n to_multiple_of 4 : !transform.any_op -> !transform.any_op
    transform.yield
  }
}

// -----

// TEXT: transform.dmx.run_pass "affine-normalize-fuse" {normalize = false} on %{{.*}} : !transform.any_op -> !transform.any_op
// TEXT: transform.dmx.normalize %{{.*}} to "even" : !transform.any_op
// TEXT: transform.dmx.check %{{.*}} is "even" ensured : !transform.any_op
// TEXT: transform.dmx.define_form @even extends "nest.perfect" check @is_even reach @make_even
// CHECK-LABEL: func @pass
module attributes {transform.with_named_sequence} {
  func.func @pass(%a: memref<5xf32>) {
    affine.for %i = 0 to 4 {
      %x = affine.load %a[%i] : memref<5xf32>
      affine.store %x, %a[%i] : memref<5xf32>
    }
    return
  }
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %f = transform.structured.match ops{["func.func"]} in %m : (!transform.any_op) -> !transform.any_op
    %g = transform.dmx.run_pass "affine-normalize-fuse" {normalize = false} on %f : !transform.any_op -> !transform.any_op
    transform.dmx.normalize %g to "even" : !transform.any_op
    transform.dmx.check %g is "even" ensured : !transform.any_op
    transform.yield
  }
  transform.dmx.define_form @even extends "nest.perfect" check @is_even reach @make_even
  transform.named_sequence @is_even(%n: !transform.any_op {transform.readonly}) {
    transform.yield
  }
  transform.named_sequence @make_even(%n: !transform.any_op {transform.readonly}) {
    transform.yield
  }
}
