// RUN: dmx-opt %s -split-input-file -pass-pipeline='builtin.module(dmir-narrow-dims)' | FileCheck %s --check-prefixes=CHECK,NARROW
// RUN: dmx-opt %s -split-input-file -pass-pipeline='builtin.module(dmir-narrow-dims,func.func(dmir-collect-constraints))' | FileCheck %s --check-prefixes=CHECK,KEPT

// A table of 256 positions, of which the last row is taken: more than 256 keys would not broadcast, so that there is
// one row of past + 1. What that rests on stays as the file has it; computed dims that nobody mentions any more go.
// CHECK-NOT: dmir.computed_dims
// CHECK-LABEL: func.func @table
// CHECK-SAME: -> tensor<1x?xf32, #dmir.dims<"past + 1">>
// NARROW-SAME: dmir.assumed = [{lhs = #dmir.dims<"min(256, past + 1)">, rel = "broadcast", rhs = #dmir.dims<"past + 1">, text = "'mask': the operands broadcast"}]
// KEPT-SAME: dmir.constraints = [{lhs = #dmir.dims<"past + 1">, rel = "le", rhs = 256
// KEPT-SAME: {lhs = #dmir.dims<"min(256, past + 1)">, rel = "broadcast", rhs = #dmir.dims<"past + 1">, text = "'mask': the operands broadcast"}]
// KEPT-NOT: dmir.assumed
// CHECK: dmir.slice %{{.*}} {dims = #dmir.dims<"past">, sizes = array<i64: 1, 256>, starts = array<i64: -9223372036854775808, 0>, {{.*}} -> tensor<1x256xf32>
// CHECK: dmir.slice %{{.*}} {dims = #dmir.dims<"past + 1">, sizes = array<i64: 1, -9223372036854775808>, starts = array<i64: 0, 0>
// CHECK: dmir.add {{.*}} -> tensor<1x?xf32, #dmir.dims<"past + 1">>
module attributes {dmir.computed_dims = [["rows", #dmir.dims<"max(0, min(256, past + 1) - min(256, past))">]]} {
  func.func @table(%s: tensor<1x?xf32, #dmir.dims<"past + 1">>, %p: tensor<?xf32, #dmir.dims<"past">>, %t: tensor<256x256xf32>) -> tensor<?x?xf32, #dmir.dims<"rows", "past + 1">> {
    %0 = dmir.slice %t {starts = array<i64: -9223372036854775808, 0>, sizes = array<i64: -9223372036854775808, 256>, steps = array<i64: 1, 1>, dims = #dmir.dims<"min(256, past)", "rows">} : (tensor<256x256xf32>) -> tensor<?x256xf32, #dmir.dims<"rows">>
    %1 = dmir.slice %0 {starts = array<i64: 0, 0>, sizes = array<i64: -9223372036854775808, -9223372036854775808>, steps = array<i64: 1, 1>, dims = #dmir.dims<"rows", "min(256, past + 1)">} : (tensor<?x256xf32, #dmir.dims<"rows">>) -> tensor<?x?xf32, #dmir.dims<"rows", "min(256, past + 1)">>
    %2 = dmir.add %1, %s : (tensor<?x?xf32, #dmir.dims<"rows", "min(256, past + 1)">>, tensor<1x?xf32, #dmir.dims<"past + 1">>) -> tensor<?x?xf32, #dmir.dims<"rows", "past + 1">> loc("mask")
    return %2 : tensor<?x?xf32, #dmir.dims<"rows", "past + 1">>
  }
}

// -----

// Nothing asks for n <= 256, which a table of one row would not either: it broadcasts.
// CHECK-LABEL: func.func @open
// CHECK-SAME: -> (tensor<?xf32, #dmir.dims<"min(256, n)">>, tensor<?xf32, #dmir.dims<"n">>)
// NARROW-NOT: dmir.assumed
// CHECK: dims = #dmir.dims<"min(256, n)">
// CHECK: dims = #dmir.dims<"min(1, n)">
func.func @open(%a: tensor<?xf32, #dmir.dims<"n">>, %t: tensor<256xf32>, %u: tensor<1xf32>) -> (tensor<?xf32, #dmir.dims<"min(256, n)">>, tensor<?xf32, #dmir.dims<"n">>) {
  %0 = dmir.slice %t {starts = array<i64: 0>, sizes = array<i64: -9223372036854775808>, steps = array<i64: 1>, dims = #dmir.dims<"min(256, n)">} : (tensor<256xf32>) -> tensor<?xf32, #dmir.dims<"min(256, n)">>
  %1 = dmir.slice %u {starts = array<i64: 0>, sizes = array<i64: -9223372036854775808>, steps = array<i64: 1>, dims = #dmir.dims<"min(1, n)">} : (tensor<1xf32>) -> tensor<?xf32, #dmir.dims<"min(1, n)">>
  %2 = dmir.add %1, %a : (tensor<?xf32, #dmir.dims<"min(1, n)">>, tensor<?xf32, #dmir.dims<"n">>) -> tensor<?xf32, #dmir.dims<"n">>
  return %0, %2 : tensor<?xf32, #dmir.dims<"min(256, n)">>, tensor<?xf32, #dmir.dims<"n">>
}

// -----

// Bounds of a symbol that a user gave are checked anyway. Only what they allow is left out.
// CHECK-LABEL: func.func @bounds
// CHECK-SAME: -> (tensor<?xf32, #dmir.dims<"n">>, tensor<?xf32, #dmir.dims<"min(255, n)">>)
// CHECK-NOT: dmir.assumed
module attributes {dmir.dims = {n = array<i64: 1, 256>}} {
  func.func @bounds(%a: tensor<?xf32, #dmir.dims<"n">>, %t: tensor<256xf32>) -> (tensor<?xf32, #dmir.dims<"min(256, n)">>, tensor<?xf32, #dmir.dims<"min(255, n)">>) {
    %0 = dmir.slice %t {starts = array<i64: 0>, sizes = array<i64: -9223372036854775808>, steps = array<i64: 1>, dims = #dmir.dims<"min(256, n)">} : (tensor<256xf32>) -> tensor<?xf32, #dmir.dims<"min(256, n)">>
    %1 = dmir.slice %t {starts = array<i64: 0>, sizes = array<i64: -9223372036854775808>, steps = array<i64: 1>, dims = #dmir.dims<"min(255, n)">} : (tensor<256xf32>) -> tensor<?xf32, #dmir.dims<"min(255, n)">>
    return %0, %1 : tensor<?xf32, #dmir.dims<"min(256, n)">>, tensor<?xf32, #dmir.dims<"min(255, n)">>
  }
}

// -----

// A size that a run finds out is not known when the function is called: what is asked of it comes too late.
// CHECK-LABEL: func.func @found
// CHECK-SAME: -> tensor<?xf32, #dmir.dims<"min(4, k)">>
// CHECK-NOT: dmir.assumed
func.func @found(%v: tensor<1xi64>, %t: tensor<4xf32>) -> tensor<?xf32, #dmir.dims<"min(4, k)">> {
  dmir.define_dims %v {symbols = ["k"], max = #dmir.dims<"9">} : tensor<1xi64>
  %0 = dmir.slice %t {starts = array<i64: 0>, sizes = array<i64: -9223372036854775808>, steps = array<i64: 1>, dims = #dmir.dims<"k">} : (tensor<4xf32>) -> tensor<?xf32, #dmir.dims<"k">>
  %1 = dmir.slice %0 {starts = array<i64: 0>, sizes = array<i64: -9223372036854775808>, steps = array<i64: 1>, dims = #dmir.dims<"min(4, k)">} : (tensor<?xf32, #dmir.dims<"k">>) -> tensor<?xf32, #dmir.dims<"min(4, k)">>
  return %1 : tensor<?xf32, #dmir.dims<"min(4, k)">>
}

// -----

// Conditions that no run meets: all stays, and each run is told.
// CHECK-LABEL: func.func @never
// CHECK-SAME: -> tensor<?xf32, #dmir.dims<"min(256, n)">>
// CHECK: dims = #dmir.dims<"n">
module attributes {dmir.dims = {n = array<i64: 300, 400>}} {
  func.func @never(%a: tensor<?xf32, #dmir.dims<"n">>, %t: tensor<256xf32>) -> tensor<?xf32, #dmir.dims<"min(256, n)">> {
    %0 = dmir.slice %t {starts = array<i64: 0>, sizes = array<i64: -9223372036854775808>, steps = array<i64: 1>, dims = #dmir.dims<"n">} : (tensor<256xf32>) -> tensor<?xf32, #dmir.dims<"n">>
    %1 = dmir.slice %0 {starts = array<i64: 0>, sizes = array<i64: -9223372036854775808>, steps = array<i64: 1>, dims = #dmir.dims<"min(256, n)">} : (tensor<?xf32, #dmir.dims<"n">>) -> tensor<?xf32, #dmir.dims<"min(256, n)">>
    return %1 : tensor<?xf32, #dmir.dims<"min(256, n)">>
  }
}
