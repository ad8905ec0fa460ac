// RUN: dmx-opt %s -pass-pipeline='builtin.module(dlir-build-program,dlir.program(dlir-order-tasks))' | FileCheck %s

// Two equal regions share a kernel; the view is an alias; the second output, the same value, is a copy.
// CHECK-LABEL: dlir.program @main
// CHECK-DAG: %[[X:.*]] = dlir.buffer input "x"
// CHECK-DAG: %[[T:.*]] = dlir.buffer arena "first"
// CHECK-DAG: %[[V:.*]] = dlir.buffer alias "{{.*}}" of %[[T]]
// CHECK-DAG: %[[Y:.*]] = dlir.buffer output "y"
// CHECK-DAG: %[[Z:.*]] = dlir.buffer output "z"
// CHECK: %[[A:.*]] = dlir.dispatch @[[K:.*]](%[[X]]) -> (%[[T]])
// CHECK: %[[B:.*]] = dlir.dispatch @[[K]](%[[V]]) -> (%[[Y]]) after %[[A]]
// CHECK: dlir.copy_buffer %[[Y]] to %[[Z]] after %[[B]]
// CHECK: dlir.kernel @[[K]] on "cpu"
// CHECK-NOT: dlir.kernel
func.func @main(%x: tensor<16xf32> {dmir.name = "x"}) -> (tensor<16xf32> {dmir.name = "y"}, tensor<16xf32> {dmir.name = "z"})
    attributes {dmir.arenas = [{size = 64, lower_bound = 64}]} {
  %0 = dmir.region "cpu" (%a = %x : tensor<16xf32>) -> (tensor<16xf32>) attributes {strategy = {algorithm = "pointwise", work = 1 : i64}, placement = [{arena = 0, offset = 0, size = 64}]} {
    %r = dmir.exp %a : (tensor<16xf32>) -> tensor<16xf32>
    dmir.yield %r : tensor<16xf32>
  } loc("first")
  %v = dmir.reshape %0 : (tensor<16xf32>) -> tensor<16xf32>
  %1 = dmir.region "cpu" (%a = %v : tensor<16xf32>) -> (tensor<16xf32>) attributes {strategy = {algorithm = "pointwise", work = 1 : i64}, placement = [{output = 0, size = 64}]} {
    %r = dmir.exp %a : (tensor<16xf32>) -> tensor<16xf32>
    dmir.yield %r : tensor<16xf32>
  } loc("second")
  return %1, %1 : tensor<16xf32>, tensor<16xf32>
}
