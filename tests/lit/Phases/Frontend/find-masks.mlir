// RUN: dmx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(dmir-find-masks))' | FileCheck %s

// Comparison of two iotas, as frontends write is_causal: what said so is gone.
// CHECK: #set = affine_set<(d0, d1, d2) : (d1 - d2 >= 0)>
// CHECK-LABEL: func @causal
// CHECK-NEXT: %[[M:.*]] = dmir.mask %arg0 {fill = 0xFF800000 : f32, keep = [#set]}
// CHECK-NEXT: %[[P:.*]] = dmir.softmax %[[M]]
// CHECK-NEXT: return %[[P]]
func.func @causal(%s: tensor<4x8x8xf32>) -> tensor<4x8x8xf32> {
  %zero = dmir.constant dense<0.0> : tensor<f32>
  %low = dmir.constant dense<0xFF800000> : tensor<f32>
  %i = dmir.iota {axis = 0 : i64} : () -> tensor<8x1xi64>
  %j = dmir.iota {axis = 1 : i64} : () -> tensor<1x8xi64>
  %c = dmir.compare lt %i, %j : (tensor<8x1xi64>, tensor<1x8xi64>) -> tensor<8x8xi1>
  %b = dmir.select %c, %low, %zero : (tensor<8x8xi1>, tensor<f32>, tensor<f32>) -> tensor<8x8xf32>
  %m = dmir.add %s, %b : (tensor<4x8x8xf32>, tensor<8x8xf32>) -> tensor<4x8x8xf32>
  %p = dmir.softmax %m {axis = 2 : i64} : (tensor<4x8x8xf32>) -> tensor<4x8x8xf32>
  return %p : tensor<4x8x8xf32>
}

// -----

// With open sizes and rows that were there before; and weights that are zeroed where a row sees nothing, which none does.
// CHECK: #set = affine_set<(d0, d1)[s0] : (d0 - d1 + s0 >= 0)>
// CHECK-LABEL: func @open
// CHECK: dmir.mask %arg0 {dims = #dmir.dims<"past">, fill = 0xFF800000 : f32, keep = [#set]}
// CHECK-NEXT: %[[P:.*]] = dmir.softmax
// CHECK-NEXT: return %[[P]]
func.func @open(%s: tensor<?x?xf32, #dmir.dims<"n", "n + past">>) -> tensor<?x?xf32, #dmir.dims<"n", "n + past">> {
  %zero = dmir.constant dense<0.0> : tensor<f32>
  %low = dmir.constant dense<0xFF800000> : tensor<f32>
  %past = dmir.dim_tensor {values = array<i64: -9223372036854775808>, dims = #dmir.dims<"past">} : tensor<1xi64>
  %k = dmir.iota {axis = 0 : i64} : () -> tensor<?x1xi64, #dmir.dims<"n">>
  %i = dmir.add %k, %past : (tensor<?x1xi64, #dmir.dims<"n">>, tensor<1xi64>) -> tensor<?x1xi64, #dmir.dims<"n">>
  %j = dmir.iota {axis = 1 : i64} : () -> tensor<1x?xi64, #dmir.dims<"n + past">>
  %c = dmir.compare le %j, %i : (tensor<1x?xi64, #dmir.dims<"n + past">>, tensor<?x1xi64, #dmir.dims<"n">>) -> tensor<?x?xi1, #dmir.dims<"n", "n + past">>
  %b = dmir.select %c, %zero, %low : (tensor<?x?xi1, #dmir.dims<"n", "n + past">>, tensor<f32>, tensor<f32>) -> tensor<?x?xf32, #dmir.dims<"n", "n + past">>
  %m = dmir.add %s, %b : (tensor<?x?xf32, #dmir.dims<"n", "n + past">>, tensor<?x?xf32, #dmir.dims<"n", "n + past">>) -> tensor<?x?xf32, #dmir.dims<"n", "n + past">>
  %p = dmir.softmax %m {axis = 1 : i64} : (tensor<?x?xf32, #dmir.dims<"n", "n + past">>) -> tensor<?x?xf32, #dmir.dims<"n", "n + past">>
  %best = dmir.reduce max %b {axes = array<i64: 1>} : (tensor<?x?xf32, #dmir.dims<"n", "n + past">>) -> tensor<?x1xf32, #dmir.dims<"n">>
  %blind = dmir.compare eq %best, %low : (tensor<?x1xf32, #dmir.dims<"n">>, tensor<f32>) -> tensor<?x1xi1, #dmir.dims<"n">>
  %w = dmir.select %blind, %zero, %p : (tensor<?x1xi1, #dmir.dims<"n">>, tensor<f32>, tensor<?x?xf32, #dmir.dims<"n", "n + past">>) -> tensor<?x?xf32, #dmir.dims<"n", "n + past">>
  return %w : tensor<?x?xf32, #dmir.dims<"n", "n + past">>
}

// -----

// GPT-2's constant, of which the last rows are taken; and what hides in it is found only where every element agrees.
// CHECK: #set = affine_set<(d0, d1) : (d0 - d1 + 2 >= 0)>
// CHECK-LABEL: func @sliced
// CHECK-NEXT: dmir.mask %arg0 {fill = -3.40282347E+38 : f32, keep = [#set]}
func.func @sliced(%s: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %low = dmir.constant dense<-3.40282347E+38> : tensor<f32>
  %t = dmir.constant dense<[[[[true, false, false, false], [true, true, false, false], [true, true, true, false], [true, true, true, true]]]]> : tensor<1x1x4x4xi1>
  %c = dmir.slice %t {starts = array<i64: 0, 0, 2, 0>, sizes = array<i64: 1, 1, 2, 4>, steps = array<i64: 1, 1, 1, 1>} : (tensor<1x1x4x4xi1>) -> tensor<1x1x2x4xi1>
  %r = dmir.reshape %c : (tensor<1x1x2x4xi1>) -> tensor<2x4xi1>
  %m = dmir.select %r, %s, %low : (tensor<2x4xi1>, tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %p = dmir.softmax %m {axis = 1 : i64} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %p : tensor<2x4xf32>
}

// CHECK-LABEL: func @flipped
// CHECK-NOT: dmir.mask %
// CHECK: dmir.softmax {{.*}}dmir.mask_unknown
func.func @flipped(%s: tensor<1x4x4xf32>) -> tensor<1x4x4xf32> {
  %low = dmir.constant dense<-3.40282347E+38> : tensor<f32>
  %t = dmir.constant dense<[[true, false, false, false], [true, true, false, true], [true, true, true, false], [true, true, true, true]]> : tensor<4x4xi1>
  %m = dmir.select %t, %s, %low : (tensor<4x4xi1>, tensor<1x4x4xf32>, tensor<f32>) -> tensor<1x4x4xf32>
  %p = dmir.softmax %m {axis = 2 : i64} : (tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  return %p : tensor<1x4x4xf32>
}

// -----

// triu(1) of -inf, strictly above the diagonal; < keeps one key less.
// CHECK: #set = affine_set<(d0, d1) : (d0 - d1 - 1 >= 0)>
// CHECK-LABEL: func @strictly
// CHECK: keep = [#set]
func.func @strictly(%s: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %low = dmir.constant dense<0xFF800000> : tensor<f32>
  %i = dmir.iota {axis = 0 : i64} : () -> tensor<8x1xi64>
  %j = dmir.iota {axis = 1 : i64} : () -> tensor<1x8xi64>
  %c = dmir.compare gt %i, %j : (tensor<8x1xi64>, tensor<1x8xi64>) -> tensor<8x8xi1>
  %m = dmir.select %c, %s, %low : (tensor<8x8xi1>, tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  %p = dmir.softmax %m {axis = 1 : i64} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %p : tensor<8x8xf32>
}

// -----

// A window of three and padding, whose bools are values of the rule: of its shape, that of the padding alone.
// CHECK: #set = affine_set<(d0, d1, d2)[s0] : (d1 - d2 >= 0, -d1 + d2 + 2 >= 0, s0 - 1 >= 0)>
// CHECK-LABEL: func @window
// CHECK-NEXT: %[[S:.*]] = dmir.matmul
// CHECK-NEXT: dmir.mask %[[S]], %arg2 {fill = -3.40282347E+38 : f32, keep = [#set]} : (tensor<2x8x8xf32>, tensor<2x1x8xi1>)
func.func @window(%q: tensor<2x8x4xf32>, %t: tensor<2x4x8xf32>, %pad: tensor<2x1x8xi1>) -> tensor<2x8x8xf32> {
  %s = dmir.matmul %q, %t : (tensor<2x8x4xf32>, tensor<2x4x8xf32>) -> tensor<2x8x8xf32>
  %zero = dmir.constant dense<0.0> : tensor<f32>
  %low = dmir.constant dense<-3.40282347E+38> : tensor<f32>
  %three = dmir.constant dense<3> : tensor<i64>
  %i = dmir.iota {axis = 0 : i64} : () -> tensor<8x1xi64>
  %j = dmir.iota {axis = 1 : i64} : () -> tensor<1x8xi64>
  %c = dmir.compare le %j, %i : (tensor<1x8xi64>, tensor<8x1xi64>) -> tensor<8x8xi1>
  %e = dmir.sub %i, %three : (tensor<8x1xi64>, tensor<i64>) -> tensor<8x1xi64>
  %w = dmir.compare gt %j, %e : (tensor<1x8xi64>, tensor<8x1xi64>) -> tensor<8x8xi1>
  %cw = dmir.and %c, %w : (tensor<8x8xi1>, tensor<8x8xi1>) -> tensor<8x8xi1>
  %k = dmir.and %cw, %pad : (tensor<8x8xi1>, tensor<2x1x8xi1>) -> tensor<2x8x8xi1>
  %b = dmir.select %k, %zero, %low : (tensor<2x8x8xi1>, tensor<f32>, tensor<f32>) -> tensor<2x8x8xf32>
  %m = dmir.add %s, %b : (tensor<2x8x8xf32>, tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %p = dmir.softmax %m {axis = 2 : i64} : (tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  return %p : tensor<2x8x8xf32>
}

// -----

// Positions of the caller are a number of each row; another axis is another softmax.
// CHECK: #set = affine_set<(d0, d1)[s0] : (-d1 + s0 >= 0)>
// CHECK-LABEL: func @others
// CHECK-NOT: dmir.mask %
// CHECK: dmir.mask %arg0, %arg1 {fill = 0xFF800000 : f32, keep = [#set]} : (tensor<8x8xf32>, tensor<8x1xi64>)
// CHECK-NOT: dmir.mask %
// CHECK: return
func.func @others(%s: tensor<8x8xf32>, %at: tensor<8x1xi64>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %low = dmir.constant dense<0xFF800000> : tensor<f32>
  %i = dmir.iota {axis = 0 : i64} : () -> tensor<8x1xi64>
  %j = dmir.iota {axis = 1 : i64} : () -> tensor<1x8xi64>
  %c = dmir.compare le %j, %i : (tensor<1x8xi64>, tensor<8x1xi64>) -> tensor<8x8xi1>
  %d = dmir.compare le %j, %at : (tensor<1x8xi64>, tensor<8x1xi64>) -> tensor<8x8xi1>
  %m = dmir.select %d, %s, %low : (tensor<8x8xi1>, tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  %q = dmir.softmax %m {axis = 1 : i64} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %n = dmir.select %c, %s, %low : (tensor<8x8xi1>, tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  %r = dmir.softmax %n {axis = 0 : i64} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %q, %r : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// Scores times a mask are 0 where it is; a sum with 0 or one number, beside padding that is no rule, stays one that adds.
// CHECK-DAG: #[[CAUSAL:.*]] = affine_set<(d0, d1) : (d0 - d1 >= 0)>
// CHECK-LABEL: func @fills
// CHECK: dmir.mask %arg0 {fill = 0.000000e+00 : f32, keep = [#[[CAUSAL]]]}
// CHECK: %[[PAD:.*]] = dmir.add %arg0, %arg1
// CHECK-NEXT: dmir.mask %[[PAD]] {adds, fill = -1.000000e+04 : f32, keep = [#[[CAUSAL]]]}
func.func @fills(%s: tensor<8x8xf32>, %pad: tensor<1x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %one = dmir.constant dense<1.0> : tensor<f32>
  %ten = dmir.constant dense<-1.0e4> : tensor<f32>
  %i = dmir.iota {axis = 0 : i64} : () -> tensor<8x1xi64>
  %j = dmir.iota {axis = 1 : i64} : () -> tensor<1x8xi64>
  %c = dmir.compare le %j, %i : (tensor<1x8xi64>, tensor<8x1xi64>) -> tensor<8x8xi1>
  %f = dmir.cast %c : (tensor<8x8xi1>) -> tensor<8x8xf32>
  %x = dmir.mul %s, %f : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %p = dmir.softmax %x {axis = 1 : i64} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %d = dmir.sub %one, %f : (tensor<f32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %a = dmir.mul %d, %ten : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  %b = dmir.add %a, %pad : (tensor<8x8xf32>, tensor<1x8xf32>) -> tensor<8x8xf32>
  %m = dmir.add %s, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %q = dmir.softmax %m {axis = 1 : i64} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %p, %q : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// A window beside rows and columns that all see: cases that overlap.
// CHECK-DAG: #[[WINDOW:.*]] = affine_set<(d0, d1) : {{.*}}d0 - d1 + 2 >= 0
// CHECK-DAG: #[[ROWS:.*]] = affine_set<(d0, d1) : (-d0 + 1 >= 0)>
// CHECK-DAG: #[[COLUMNS:.*]] = affine_set<(d0, d1) : (-d1 + 1 >= 0)>
// CHECK-LABEL: func @global
// CHECK: dmir.mask %arg0 {fill = 0xFF800000 : f32, keep = [#[[ROWS]], #[[WINDOW]], #[[COLUMNS]]]}
func.func @global(%s: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %low = dmir.constant dense<0xFF800000> : tensor<f32>
  %two = dmir.constant dense<2> : tensor<i64>
  %i = dmir.iota {axis = 0 : i64} : () -> tensor<16x1xi64>
  %j = dmir.iota {axis = 1 : i64} : () -> tensor<1x16xi64>
  %e = dmir.sub %i, %j : (tensor<16x1xi64>, tensor<1x16xi64>) -> tensor<16x16xi64>
  %a = dmir.abs %e : (tensor<16x16xi64>) -> tensor<16x16xi64>
  %w = dmir.compare le %a, %two : (tensor<16x16xi64>, tensor<i64>) -> tensor<16x16xi1>
  %r = dmir.compare lt %i, %two : (tensor<16x1xi64>, tensor<i64>) -> tensor<16x1xi1>
  %c = dmir.compare lt %j, %two : (tensor<1x16xi64>, tensor<i64>) -> tensor<1x16xi1>
  %g = dmir.or %r, %c : (tensor<16x1xi1>, tensor<1x16xi1>) -> tensor<16x16xi1>
  %k = dmir.or %w, %g : (tensor<16x16xi1>, tensor<16x16xi1>) -> tensor<16x16xi1>
  %m = dmir.select %k, %s, %low : (tensor<16x16xi1>, tensor<16x16xf32>, tensor<f32>) -> tensor<16x16xf32>
  %p = dmir.softmax %m {axis = 1 : i64} : (tensor<16x16xf32>) -> tensor<16x16xf32>
  return %p : tensor<16x16xf32>
}

// -----

// The sum of two least numbers is -inf: beside a mask of the caller's nothing is known; beside one that holds such numbers scores are
// low where the rule keeps none, and stay what they are.
// CHECK: #set = affine_set<(d0, d1, d2) : (d1 - d2 >= 0)>
// CHECK-LABEL: func @twice
// CHECK-NOT: dmir.mask %
// CHECK: %[[S:.*]] = dmir.add %{{.*}}, %{{.*}} : (tensor<2x8x8xf32>, tensor<2x1x8xf32>)
// CHECK: dmir.softmax %[[S]]
// CHECK: %[[S:.*]] = dmir.add %{{.*}}, %{{.*}} : (tensor<2x8x8xf32>, tensor<2x1x8xf32>)
// CHECK: dmir.mask %[[S]] {fill = -9.99999968E+37 : f32, keep = [#set], low}
// CHECK: return
func.func @twice(%q: tensor<2x8x4xf32>, %t: tensor<2x4x8xf32>, %given: tensor<2x1x8xf32>, %pad: tensor<2x1x8xi1>) -> (tensor<2x8x8xf32>, tensor<2x8x8xf32>) {
  %zero = dmir.constant dense<0.0> : tensor<f32>
  %low = dmir.constant dense<-3.40282347E+38> : tensor<f32>
  %i = dmir.iota {axis = 0 : i64} : () -> tensor<8x1xi64>
  %j = dmir.iota {axis = 1 : i64} : () -> tensor<1x8xi64>
  %c = dmir.compare le %j, %i : (tensor<1x8xi64>, tensor<8x1xi64>) -> tensor<8x8xi1>
  %s = dmir.matmul %q, %t : (tensor<2x8x4xf32>, tensor<2x4x8xf32>) -> tensor<2x8x8xf32>
  %m = dmir.select %c, %s, %low : (tensor<8x8xi1>, tensor<2x8x8xf32>, tensor<f32>) -> tensor<2x8x8xf32>
  %a = dmir.add %m, %given : (tensor<2x8x8xf32>, tensor<2x1x8xf32>) -> tensor<2x8x8xf32>
  %p = dmir.softmax %a {axis = 2 : i64} : (tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %b = dmir.select %pad, %zero, %low : (tensor<2x1x8xi1>, tensor<f32>, tensor<f32>) -> tensor<2x1x8xf32>
  %d = dmir.add %m, %b : (tensor<2x8x8xf32>, tensor<2x1x8xf32>) -> tensor<2x8x8xf32>
  %r = dmir.softmax %d {axis = 2 : i64} : (tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  return %p, %r : tensor<2x8x8xf32>, tensor<2x8x8xf32>
}

// -----

// Numbers that leave 64 bits are not computed with; a list of 8 indices beyond 2^40 is no line.
// CHECK-LABEL: func @huge
// CHECK-NOT: dmir.mask %
// CHECK: return
func.func @huge(%s: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %low = dmir.constant dense<0xFF800000> : tensor<f32>
  %far = dmir.constant dense<9223372036854775807> : tensor<i64>
  %i = dmir.iota {axis = 0 : i64} : () -> tensor<8x1xi64>
  %j = dmir.iota {axis = 1 : i64} : () -> tensor<1x8xi64>
  %e = dmir.add %i, %far : (tensor<8x1xi64>, tensor<i64>) -> tensor<8x1xi64>
  %c = dmir.compare le %j, %e : (tensor<1x8xi64>, tensor<8x1xi64>) -> tensor<8x8xi1>
  %m = dmir.select %c, %s, %low : (tensor<8x8xi1>, tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  %p = dmir.softmax %m {axis = 1 : i64} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %p : tensor<8x8xf32>
}

// -----

// Lengths of batch entries, which a run brings: one symbol, whose value is of the shape that broadcasts.
// CHECK: #set = affine_set<(d0, d1, d2)[s0] : (-d2 + s0 - 1 >= 0, d1 - d2 >= 0)>
// CHECK-LABEL: func @lengths
// CHECK-NEXT: %[[R:.*]] = dmir.reshape %arg1 : (tensor<2xi32>) -> tensor<2x1x1xi32>
// CHECK-NEXT: dmir.mask %arg0, %[[R]] {fill = -3.40282347E+38 : f32, keep = [#set]}
// CHECK-NEXT: dmir.softmax
// CHECK-NEXT: return
func.func @lengths(%s: tensor<2x8x8xf32>, %n: tensor<2xi32>) -> tensor<2x8x8xf32> {
  %low = dmir.constant dense<-3.40282347E+38> : tensor<f32>
  %w = dmir.cast %n : (tensor<2xi32>) -> tensor<2xi64>
  %l = dmir.reshape %w : (tensor<2xi64>) -> tensor<2x1x1xi64>
  %i = dmir.iota {axis = 0 : i64} : () -> tensor<8x1xi64>
  %j = dmir.iota {axis = 1 : i64} : () -> tensor<1x8xi64>
  %c = dmir.compare lt %j, %l : (tensor<1x8xi64>, tensor<2x1x1xi64>) -> tensor<2x1x8xi1>
  %d = dmir.compare le %j, %i : (tensor<1x8xi64>, tensor<8x1xi64>) -> tensor<8x8xi1>
  %a = dmir.and %c, %d : (tensor<2x1x8xi1>, tensor<8x8xi1>) -> tensor<2x8x8xi1>
  %m = dmir.select %a, %s, %low : (tensor<2x8x8xi1>, tensor<2x8x8xf32>, tensor<f32>) -> tensor<2x8x8xf32>
  %p = dmir.softmax %m {axis = 2 : i64} : (tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  return %p : tensor<2x8x8xf32>
}

// -----

// A mask that is written back behind padding was added, as scripted exporters do: rows of indices that fill a box.
// CHECK: #set = affine_set<(d0, d1) : (d0 - d1 >= 0)>
// CHECK-LABEL: func @written
// CHECK-NEXT: dmir.mask %arg0 {fill = -3.40282347E+38 : f32, keep = [#set]}
func.func @written(%s: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %zero = dmir.constant dense<0.0> : tensor<f32>
  %low = dmir.constant dense<-3.40282347E+38> : tensor<f32>
  %i = dmir.iota {axis = 0 : i64} : () -> tensor<8x1xi64>
  %j = dmir.iota {axis = 1 : i64} : () -> tensor<1x8xi64>
  %c = dmir.compare gt %j, %i : (tensor<1x8xi64>, tensor<8x1xi64>) -> tensor<8x8xi1>
  %b = dmir.select %c, %low, %zero : (tensor<8x8xi1>, tensor<f32>, tensor<f32>) -> tensor<8x8xf32>
  %u = dmir.slice %b {starts = array<i64: 0, 0>, sizes = array<i64: 8, 6>, steps = array<i64: 1, 1>} : (tensor<8x8xf32>) -> tensor<8x6xf32>
  %row = dmir.iota {axis = 0 : i64} : () -> tensor<8x6x1xi64>
  %column = dmir.iota {axis = 1 : i64} : () -> tensor<8x6x1xi64>
  %at = dmir.concat %row, %column {axis = 2 : i64} : (tensor<8x6x1xi64>, tensor<8x6x1xi64>) -> tensor<8x6x2xi64>
  %w = dmir.scatter_nd %b, %at, %u : (tensor<8x8xf32>, tensor<8x6x2xi64>, tensor<8x6xf32>) -> tensor<8x8xf32>
  %n = dmir.compare eq %w, %zero : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xi1>
  %x = dmir.select %n, %s, %low : (tensor<8x8xi1>, tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  %p = dmir.softmax %x {axis = 1 : i64} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %p : tensor<8x8xf32>
}

// -----

// Rows of groups that share keys, one behind the other in a matrix: the row's own number is its rest.
// CHECK: #set = affine_set<(d0, d1, d2) : (-d2 + d1 mod 8 >= 0)>
// CHECK-LABEL: func @grouped
// CHECK: dmir.mask %arg0 {fill = 0xFF800000 : f32, keep = [#set]}
func.func @grouped(%s: tensor<2x16x8xf32>) -> tensor<2x16x8xf32> {
  %low = dmir.constant dense<0xFF800000> : tensor<f32>
  %i = dmir.iota {axis = 1 : i64} : () -> tensor<1x8x1xi64>
  %b = dmir.broadcast %i : (tensor<1x8x1xi64>) -> tensor<2x8x1xi64>
  %r = dmir.reshape %b : (tensor<2x8x1xi64>) -> tensor<16x1xi64>
  %j = dmir.iota {axis = 1 : i64} : () -> tensor<1x8xi64>
  %c = dmir.compare le %j, %r : (tensor<1x8xi64>, tensor<16x1xi64>) -> tensor<16x8xi1>
  %m = dmir.select %c, %s, %low : (tensor<16x8xi1>, tensor<2x16x8xf32>, tensor<f32>) -> tensor<2x16x8xf32>
  %p = dmir.softmax %m {axis = 2 : i64} : (tensor<2x16x8xf32>) -> tensor<2x16x8xf32>
  return %p : tensor<2x16x8xf32>
}

// -----

// Rows behind as many as a length says, or behind none: the larger of two numbers for each matrix is one number of its own.
// CHECK: #set = affine_set<(d0, d1, d2)[s0] : (-d2 + s0 + d1 floordiv 2 >= 0)>
// CHECK-LABEL: func @behind
// CHECK: %[[L:.*]] = dmir.max
// CHECK: dmir.mask %arg0, %[[L]] {fill = 0xFF800000 : f32, keep = [#set]}
func.func @behind(%s: tensor<3x8x16xf32>, %l: tensor<3x1x1xi64>) -> tensor<3x8x16xf32> {
  %low = dmir.constant dense<0xFF800000> : tensor<f32>
  %none = dmir.constant dense<0> : tensor<i64>
  %two = dmir.constant dense<2> : tensor<i64>
  %at = dmir.max %l, %none : (tensor<3x1x1xi64>, tensor<i64>) -> tensor<3x1x1xi64>
  %i = dmir.iota {axis = 1 : i64} : () -> tensor<1x8x1xi64>
  %h = dmir.div %i, %two : (tensor<1x8x1xi64>, tensor<i64>) -> tensor<1x8x1xi64>
  %r = dmir.add %at, %h : (tensor<3x1x1xi64>, tensor<1x8x1xi64>) -> tensor<3x8x1xi64>
  %j = dmir.iota {axis = 2 : i64} : () -> tensor<1x1x16xi64>
  %c = dmir.compare le %j, %r : (tensor<1x1x16xi64>, tensor<3x8x1xi64>) -> tensor<3x8x16xi1>
  %m = dmir.select %c, %s, %low : (tensor<3x8x16xi1>, tensor<3x8x16xf32>, tensor<f32>) -> tensor<3x8x16xf32>
  %p = dmir.softmax %m {axis = 2 : i64} : (tensor<3x8x16xf32>) -> tensor<3x8x16xf32>
  return %p : tensor<3x8x16xf32>
}

// -----

// A distance is one case, not one for each sign.
// CHECK: #set = affine_set<(d0, d1) : (-d0 + d1 + 2 >= 0, d0 - d1 + 2 >= 0)>
// CHECK-LABEL: func @distance
// CHECK: dmir.mask %arg0 {fill = 0xFF800000 : f32, keep = [#set]}
func.func @distance(%s: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %low = dmir.constant dense<0xFF800000> : tensor<f32>
  %two = dmir.constant dense<2> : tensor<i64>
  %i = dmir.iota {axis = 0 : i64} : () -> tensor<8x1xi64>
  %j = dmir.iota {axis = 1 : i64} : () -> tensor<1x8xi64>
  %d = dmir.sub %i, %j : (tensor<8x1xi64>, tensor<1x8xi64>) -> tensor<8x8xi64>
  %a = dmir.abs %d : (tensor<8x8xi64>) -> tensor<8x8xi64>
  %c = dmir.compare le %a, %two : (tensor<8x8xi64>, tensor<i64>) -> tensor<8x8xi1>
  %m = dmir.select %c, %s, %low : (tensor<8x8xi1>, tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  %p = dmir.softmax %m {axis = 1 : i64} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %p : tensor<8x8xf32>
}

// -----

// Constants that repeat: the last two keys of each four, and rows and keys at the same place of three.
// CHECK-DAG: #[[A:.*]] = affine_set<(d0, d1) : (d1 mod 4 - 2 >= 0)>
// CHECK-DAG: #[[B:.*]] = affine_set<(d0, d1) : (-((d1 + 1) mod 3) + d0 mod 3 == 0)>
// CHECK-LABEL: func @repeated
// CHECK: dmir.mask %{{.*}} {fill = 0xFF800000 : f32, keep = [#[[A]]]}
// CHECK: dmir.mask %{{.*}} {fill = 0xFF800000 : f32, keep = [#[[B]]]}
func.func @repeated(%s: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %low = dmir.constant dense<0xFF800000> : tensor<f32>
  %c = dmir.constant dense<[[false, false, true, true, false, false, true, true]]> : tensor<1x8xi1>
  %i = dmir.constant dense<[[5], [6], [7], [5], [6], [7], [5], [6]]> : tensor<8x1xi64>
  %j = dmir.constant dense<[[6, 7, 5, 6, 7, 5, 6, 7]]> : tensor<1x8xi64>
  %e = dmir.compare eq %i, %j : (tensor<8x1xi64>, tensor<1x8xi64>) -> tensor<8x8xi1>
  %m = dmir.select %c, %s, %low : (tensor<1x8xi1>, tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  %p = dmir.softmax %m {axis = 1 : i64} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %n = dmir.select %e, %s, %low : (tensor<8x8xi1>, tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  %q = dmir.softmax %n {axis = 1 : i64} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %p, %q : tensor<8x8xf32>, tensor<8x8xf32>
}
