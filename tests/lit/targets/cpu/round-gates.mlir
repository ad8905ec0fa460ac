// REQUIRES: frontend-mlir
// RUN: dmxc %s -t cpu:x86-64-v3 --numerics bf16 --emit partition -o - | FileCheck %s

// The gates of a recurrent net that a run calls for one step: neither what they make of state nor what they make of the input, added to it, has a
// rounded left operand; a product of the same rows whose sum no state goes into has both rounded.
// CHECK-LABEL: func.func @main
// CHECK: dmir.matmul {{.*}} : (tensor<?x128xbf16, #dmir.dims<"b">>, tensor<128x256xbf16>)
// CHECK-COUNT-2: dmir.matmul {{.*}} : ({{.*}}128xf32, #dmir.dims<"b">>, {{.*}})
// CHECK-NOT: dmir.matmul
func.func @main(%x: tensor<?x128xf32, #dmir.dims<"b">> {dmir.name = "x"}, %h: tensor<2x?x128xf32, #dmir.dims<"b">> {dmir.name = "h"})
    -> (tensor<?x256xf32, #dmir.dims<"b">> {dmir.name = "gates"}, tensor<?x256xf32, #dmir.dims<"b">> {dmir.name = "other"}) {
  %w = dmir.constant dense<0.5> : tensor<128x256xf32>
  %r = dmir.constant dense<0.25> : tensor<128x256xf32>
  %v = dmir.constant dense<0.125> : tensor<128x256xf32>
  %bias = dmir.constant dense<1.0> : tensor<256xf32>
  %zero = dmir.constant dense<0> : tensor<i64>
  %relu = dmir.relu %x : (tensor<?x128xf32, #dmir.dims<"b">>) -> tensor<?x128xf32, #dmir.dims<"b">>
  %other = dmir.matmul %relu, %v : (tensor<?x128xf32, #dmir.dims<"b">>, tensor<128x256xf32>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %step = dmir.reshape %relu : (tensor<?x128xf32, #dmir.dims<"b">>) -> tensor<1x?x128xf32, #dmir.dims<"b">>
  %ofInput = dmir.matmul %step, %w : (tensor<1x?x128xf32, #dmir.dims<"b">>, tensor<128x256xf32>) -> tensor<1x?x256xf32, #dmir.dims<"b">>
  %biased = dmir.add %ofInput, %bias : (tensor<1x?x256xf32, #dmir.dims<"b">>, tensor<256xf32>) -> tensor<1x?x256xf32, #dmir.dims<"b">>
  %flat = dmir.reshape %biased : (tensor<1x?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %state = dmir.gather %h, %zero {axis = 0 : i64} : (tensor<2x?x128xf32, #dmir.dims<"b">>, tensor<i64>) -> tensor<?x128xf32, #dmir.dims<"b">>
  %ofState = dmir.matmul %state, %r : (tensor<?x128xf32, #dmir.dims<"b">>, tensor<128x256xf32>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %gates = dmir.add %flat, %ofState : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  return %gates, %other : tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>
}
