// RUN: dmx-opt %s -pass-pipeline='builtin.module(dlir-build-program,dlir.program(dlir-order-tasks))' | FileCheck %s

// Both branches may run at once; the join waits for both.
// CHECK-LABEL: dlir.program @main
// CHECK: %[[A:.*]] = dlir.dispatch {{.*}}nodes = ["left"]
// CHECK: %[[B:.*]] = dlir.dispatch
// CHECK-NOT: after
// CHECK-SAME: nodes = ["right"]
// CHECK: dlir.dispatch {{.*}} after %[[A]], %[[B]]
// CHECK-SAME: nodes = ["join"]
func.func @main(%x: tensor<16xf32> {dmir.name = "x"}) -> (tensor<16xf32> {dmir.name = "y"})
    attributes {dmir.arenas = [{size = 128, lower_bound = 128}]} {
  %0 = dmir.region "cpu" (%a = %x : tensor<16xf32>) -> (tensor<16xf32>) attributes {strategy = {algorithm = "pointwise", work = 1 : i64}, placement = [{arena = 0, offset = 0, size = 64}]} {
    %r = dmir.exp %a : (tensor<16xf32>) -> tensor<16xf32>
    dmir.yield %r : tensor<16xf32>
  } loc("left")
  %1 = dmir.region "cpu" (%a = %x : tensor<16xf32>) -> (tensor<16xf32>) attributes {strategy = {algorithm = "pointwise", work = 1 : i64}, placement = [{arena = 0, offset = 64, size = 64}]} {
    %r = dmir.neg %a : (tensor<16xf32>) -> tensor<16xf32>
    dmir.yield %r : tensor<16xf32>
  } loc("right")
  %2 = dmir.region "cpu" (%a = %0 : tensor<16xf32>, %b = %1 : tensor<16xf32>) -> (tensor<16xf32>) attributes {strategy = {algorithm = "pointwise", work = 1 : i64}, placement = [{output = 0, size = 64}]} {
    %r = dmir.add %a, %b : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    dmir.yield %r : tensor<16xf32>
  } loc("join")
  return %2 : tensor<16xf32>
}
