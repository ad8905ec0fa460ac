// RUN: dmx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(dmir-propagate-sparsity))' | FileCheck %s

// A mask by -inf, weights that are zero there, and what is a product with them: all of its rows have something.
// CHECK: #[[TRIL:.*]] = affine_set<(d0, d1) : (d0 - d1 >= 0)>
// CHECK-LABEL: func @chain
// CHECK: dmir.mask {{.*}}dmir.sparsity = {known = {keep = [#[[TRIL]]], value = 0xFF800000 : f32}}
// CHECK: dmir.softmax {{.*}}dmir.sparsity = {known = {keep = [#[[TRIL]]], value = 0.000000e+00 : f32}}
// CHECK: dmir.mul {{.*}}dmir.sparsity = {known = {keep = [#[[TRIL]]], value = 0.000000e+00 : f32}}
// CHECK: dmir.matmul
// CHECK-NOT: dmir.sparsity
// CHECK: return
func.func @chain(%x: tensor<64x64xf32>, %v: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %m = dmir.mask %x {fill = 0xFF800000 : f32, keep = [affine_set<(i, j) : (i - j >= 0)>]} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %w = dmir.softmax %m {axis = 1 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %o = dmir.mul %w, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = dmir.matmul %o, %v : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %p : tensor<64x64xf32>
}

// -----

// Rows that see nothing are NaN: nothing is known of the weights.
// CHECK-LABEL: func @blind
// CHECK: dmir.softmax %{{.*}} {axis = 1 : i64} :
func.func @blind(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %m = dmir.mask %x {fill = 0xFF800000 : f32, keep = [affine_set<(i, j) : (i - j - 1 >= 0)>]} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %w = dmir.softmax %m {axis = 1 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %w : tensor<64x64xf32>
}

// -----

// tril(A) B' of two: the product of two triangles is one, by k alone where they are the other way round.
// CHECK: #[[LOW:.*]] = affine_set<(d0, d1) : (d0 - d1 >= 0)>
// CHECK-LABEL: func @triangles
// CHECK: dmir.select {{.*}}keep = [#[[LOW]]]
// CHECK: dmir.matmul {{.*}}known = {keep = [#[[LOW]]], value = 0.000000e+00 : f32}
func.func @triangles(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %zero = dmir.constant dense<0.0> : tensor<f32>
  %i = dmir.iota {axis = 0 : i64} : () -> tensor<64x1xi64>
  %j = dmir.iota {axis = 1 : i64} : () -> tensor<1x64xi64>
  %c = dmir.compare le %j, %i : (tensor<1x64xi64>, tensor<64x1xi64>) -> tensor<64x64xi1>
  %l = dmir.select %c, %a, %zero : (tensor<64x64xi1>, tensor<64x64xf32>, tensor<f32>) -> tensor<64x64xf32>
  %f = dmir.cast %c : (tensor<64x64xi1>) -> tensor<64x64xf32>
  %r = dmir.mul %f, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = dmir.matmul %l, %r : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %p : tensor<64x64xf32>
}

// -----

// tril(A B) with open sizes: the upper half of the product is not demanded. A square in blocks, at other dims.
// CHECK: #[[KEPT:.*]] = affine_set<(d0, d1)[s0] : (d0 - d1 + s0 >= 0)>
// CHECK-LABEL: func @behind
// CHECK: dmir.matmul {{.*}}dmir.sparsity = {demanded = {dims = #dmir.dims<"p">, keep = [#[[KEPT]]]}}
// CHECK: dmir.mask {{.*}}known = {dims = #dmir.dims<"p">, keep = [#[[KEPT]]], value = 0.000000e+00 : f32}
func.func @behind(%a: tensor<?x64xf32, #dmir.dims<"n">>, %b: tensor<64x?xf32, #dmir.dims<"n + p">>) -> tensor<?x?xf32, #dmir.dims<"n", "n + p">> {
  %p = dmir.matmul %a, %b : (tensor<?x64xf32, #dmir.dims<"n">>, tensor<64x?xf32, #dmir.dims<"n + p">>) -> tensor<?x?xf32, #dmir.dims<"n", "n + p">>
  %m = dmir.mask %p {fill = 0.0 : f32, dims = #dmir.dims<"p">, keep = [affine_set<(i, j)[p] : (i - j + p >= 0)>]} : (tensor<?x?xf32, #dmir.dims<"n", "n + p">>) -> tensor<?x?xf32, #dmir.dims<"n", "n + p">>
  return %m : tensor<?x?xf32, #dmir.dims<"n", "n + p">>
}

// -----

// Zero columns of a table stay so whatever rows are picked; parts of a whole that cover it are the whole.
// CHECK: #[[HALF:.*]] = affine_set<(d0, d1) : (-d1 + 31 >= 0)>
// CHECK-LABEL: func @table
// CHECK: dmir.mask {{.*}}keep = [#[[HALF]]]
// CHECK: dmir.gather {{.*}}keep = [#[[HALF]]], value = 0.000000e+00
// CHECK: dmir.relu %{{[a-z0-9]+}} : (tensor<64x64xf32>)
func.func @table(%t: tensor<64x64xf32>, %i: tensor<64xi64>) -> (tensor<64x64xf32>, tensor<64x32xf32>, tensor<64x32xf32>) {
  %m = dmir.mask %t {fill = 0.0 : f32, keep = [affine_set<(i, j) : (31 - j >= 0)>]} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %g = dmir.gather %m, %i {axis = 0 : i64} : (tensor<64x64xf32>, tensor<64xi64>) -> tensor<64x64xf32>
  %r = dmir.relu %t : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %u = dmir.slice %r {starts = array<i64: 0, 0>, sizes = array<i64: 64, 32>, steps = array<i64: 1, 1>} : (tensor<64x64xf32>) -> tensor<64x32xf32>
  %v = dmir.slice %r {starts = array<i64: 0, 32>, sizes = array<i64: 64, 32>, steps = array<i64: 1, 1>} : (tensor<64x64xf32>) -> tensor<64x32xf32>
  return %g, %u, %v : tensor<64x64xf32>, tensor<64x32xf32>, tensor<64x32xf32>
}
