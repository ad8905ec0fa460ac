// RUN: dmx-opt %s | dmx-opt | FileCheck %s

// Dims of results are expressions over those of the operands, in one canonical form.
// CHECK-LABEL: @shapes
// CHECK-SAME: tensor<?x8xf32, #dmir.dims<"n">>
func.func @shapes(%x: tensor<?x8xf32, #dmir.dims<"n">>, %y: tensor<?x8xf32, #dmir.dims<"m">>, %w: tensor<8x?xf32, #dmir.dims<"k">>) {
  // CHECK: dmir.concat {{.*}} -> tensor<?x8xf32, #dmir.dims<"m + n">>
  %0 = dmir.concat %x, %y {axis = 0 : i64} : (tensor<?x8xf32, #dmir.dims<"n">>, tensor<?x8xf32, #dmir.dims<"m">>) -> tensor<?x8xf32, #dmir.dims<"n + m">>
  // CHECK: dmir.matmul {{.*}} -> tensor<?x?xf32, #dmir.dims<"m + n", "k">>
  %1 = dmir.matmul %0, %w : (tensor<?x8xf32, #dmir.dims<"m + n">>, tensor<8x?xf32, #dmir.dims<"k">>) -> tensor<?x?xf32, #dmir.dims<"m + n", "k">>
  // CHECK: dmir.add {{.*}} -> tensor<?x8xf32, #dmir.dims<"broadcast(m, n)">>
  %2 = dmir.add %x, %y : (tensor<?x8xf32, #dmir.dims<"n">>, tensor<?x8xf32, #dmir.dims<"m">>) -> tensor<?x8xf32, #dmir.dims<"broadcast(m, n)">>
  // CHECK: dmir.reshape {{.*}} -> tensor<?xf32, #dmir.dims<"8*n">>
  %3 = dmir.reshape %x : (tensor<?x8xf32, #dmir.dims<"n">>) -> tensor<?xf32, #dmir.dims<"n*4 + 4*n">>
  // CHECK: dmir.slice {{.*}} {dims = #dmir.dims<"n - 2">, {{.*}} -> tensor<2x8xf32>
  %4 = dmir.slice %x {starts = array<i64: -9223372036854775808, 0>, sizes = array<i64: 2, 8>, steps = array<i64: 1, 1>, dims = #dmir.dims<"n - 2">} : (tensor<?x8xf32, #dmir.dims<"n">>) -> tensor<2x8xf32>
  // CHECK: dmir.dim_tensor {dims = #dmir.dims<"3*n">, values = array<i64: 4, -9223372036854775808>} : tensor<2xi64>
  %5 = dmir.dim_tensor {values = array<i64: 4, -9223372036854775808>, dims = #dmir.dims<"n*3">} : tensor<2xi64>
  // CHECK: dmir.define_dims %{{.*}} {max = #dmir.dims<"n", "100">, symbols = ["a", "b"]} : tensor<2xi64>
  dmir.define_dims %5 {symbols = ["a", "b"], max = #dmir.dims<"n", "100">} : tensor<2xi64>
  return
}
