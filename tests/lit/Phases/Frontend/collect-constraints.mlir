// RUN: dmx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(dmir-collect-constraints))' | FileCheck %s

// What types do not prove is written down, each condition once, with the first node that asks for it.
// CHECK-LABEL: func.func @open
// CHECK-SAME: dmir.constraints = [
// CHECK-SAME: "k"{{.*}}"l"
// CHECK-SAME: 'first'
// CHECK-NOT: 'second'
// CHECK: return
func.func @open(%a: tensor<4x?xf32, #dmir.dims<"k">>, %b: tensor<?x6xf32, #dmir.dims<"l">>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %0 = dmir.matmul %a, %b : (tensor<4x?xf32, #dmir.dims<"k">>, tensor<?x6xf32, #dmir.dims<"l">>) -> tensor<4x6xf32> loc("first")
  %1 = dmir.matmul %a, %b : (tensor<4x?xf32, #dmir.dims<"k">>, tensor<?x6xf32, #dmir.dims<"l">>) -> tensor<4x6xf32> loc("second")
  return %0, %1 : tensor<4x6xf32>, tensor<4x6xf32>
}

// -----

// What types prove is none, and conditions of a text that no longer hold for its ops go.
// CHECK-LABEL: func.func @fixed
// CHECK-NOT: dmir.constraints
// CHECK: return
func.func @fixed(%a: tensor<4x?xf32, #dmir.dims<"k">>, %b: tensor<?x6xf32, #dmir.dims<"k">>) -> tensor<4x6xf32> attributes {dmir.constraints = []} {
  %0 = dmir.matmul %a, %b : (tensor<4x?xf32, #dmir.dims<"k">>, tensor<?x6xf32, #dmir.dims<"k">>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
