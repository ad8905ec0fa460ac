// Branches and loops are tasks that own programs; what they give lies in result buffers.
// REQUIRES: frontend-mlir, target-cpu
// RUN: dmxc %s -t cpu:x86-64-v3 --emit schedule -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: dmxc %t.mlir --from schedule -t cpu:x86-64-v3 -o %t.bundle
// RUN: dmx-inspect %t.bundle | FileCheck %s --check-prefix=BUNDLE

func.func @main(%x: tensor<?x4xf32, #dmir.dims<"n">>, %c: tensor<i1>, %trips: tensor<i64>) -> tensor<?x4xf32, #dmir.dims<"m">> {
  %r = dmir.if %c then @first else @second (%x) : (tensor<i1>, tensor<?x4xf32, #dmir.dims<"n">>) -> tensor<?x4xf32, #dmir.dims<"m">>
  %y = dmir.loop @body trips %trips carries (%r) (%x) : (tensor<i64>, tensor<?x4xf32, #dmir.dims<"m">>, tensor<?x4xf32, #dmir.dims<"n">>) -> tensor<?x4xf32, #dmir.dims<"m">>
  return %y : tensor<?x4xf32, #dmir.dims<"m">>
}
func.func private @first(%x: tensor<?x4xf32, #dmir.dims<"n">>) -> tensor<?x4xf32, #dmir.dims<"2*n">> {
  %y = dmir.concat %x, %x {axis = 0 : i64} : (tensor<?x4xf32, #dmir.dims<"n">>, tensor<?x4xf32, #dmir.dims<"n">>) -> tensor<?x4xf32, #dmir.dims<"2*n">>
  return %y : tensor<?x4xf32, #dmir.dims<"2*n">>
}
func.func private @second(%x: tensor<?x4xf32, #dmir.dims<"n">>) -> tensor<?x4xf32, #dmir.dims<"n">> {
  return %x : tensor<?x4xf32, #dmir.dims<"n">>
}
func.func private @body(%i: tensor<i64>, %go: tensor<i1>, %v: tensor<?x4xf32, #dmir.dims<"k">>, %x: tensor<?x4xf32, #dmir.dims<"n">>) -> (tensor<i1>, tensor<?x4xf32, #dmir.dims<"k">>) {
  %y = dmir.exp %v : (tensor<?x4xf32, #dmir.dims<"k">>) -> tensor<?x4xf32, #dmir.dims<"k">>
  return %go, %y : tensor<i1>, tensor<?x4xf32, #dmir.dims<"k">>
}

// CHECK: dlir.program @main
// CHECK: %[[R:.*]] = dlir.buffer result "{{.*}}" : tensor<?x4xf32, #dmir.dims<"m">>
// CHECK: %[[Y:.*]] = dlir.buffer result
// CHECK: %[[DONE:.*]] = dlir.if {{.*}} then @first else @second({{.*}}) -> (%[[R]])
// CHECK: dlir.while @body trips {{.*}} carries(%[[R]]) ({{.*}}) -> (%[[Y]]) after %[[DONE]]
// CHECK: dlir.program @first attributes {{.*}}owned
// CHECK: dlir.program @body attributes {{.*}}owned
// BUNDLE: requires {{ *}}control-flow
