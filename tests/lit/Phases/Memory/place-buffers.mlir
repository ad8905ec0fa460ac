// RUN: dmx-opt %s -pass-pipeline='builtin.module(func.func(dmir-place-buffers))' | FileCheck %s

// The result goes to the output; the first intermediate is overwritten in place by the second, which may share its bytes.
// CHECK-LABEL: func @chain
// CHECK-SAME: dmir.arenas = [{lower_bound = 64 : i64, size = 64 : i64}]
// CHECK: placement = [{arena = 0 : i64, offset = 0 : i64, size = 64 : i64}]
// CHECK: placement = [{arena = 0 : i64, offset = 0 : i64, size = 64 : i64}]
// CHECK: placement = [{output = 0 : i64, size = 64 : i64}]
func.func @chain(%x: tensor<16xf32>) -> tensor<16xf32> {
  %0 = dmir.region "cpu" (%a = %x : tensor<16xf32>) -> (tensor<16xf32>) attributes {strategy = {}} {
    %r = dmir.exp %a : (tensor<16xf32>) -> tensor<16xf32>
    dmir.yield %r : tensor<16xf32>
  }
  %1 = dmir.region "cpu" (%a = %0 : tensor<16xf32>) -> (tensor<16xf32>) attributes {strategy = {in_place = [0]}} {
    %r = dmir.neg %a : (tensor<16xf32>) -> tensor<16xf32>
    dmir.yield %r : tensor<16xf32>
  }
  %2 = dmir.region "cpu" (%a = %1 : tensor<16xf32>) -> (tensor<16xf32>) attributes {strategy = {in_place = [0]}} {
    %r = dmir.abs %a : (tensor<16xf32>) -> tensor<16xf32>
    dmir.yield %r : tensor<16xf32>
  }
  return %2 : tensor<16xf32>
}

// Without in_place two live buffers need two places; a third reuses the first.
// CHECK-LABEL: func @reuse
// CHECK-SAME: dmir.arenas = [{lower_bound = 128 : i64, size = 128 : i64}]
func.func @reuse(%x: tensor<16xf32>) -> tensor<16xf32> {
  %0 = dmir.region "cpu" (%a = %x : tensor<16xf32>) -> (tensor<16xf32>) attributes {strategy = {}} {
    %r = dmir.exp %a : (tensor<16xf32>) -> tensor<16xf32>
    dmir.yield %r : tensor<16xf32>
  }
  %1 = dmir.region "cpu" (%a = %0 : tensor<16xf32>) -> (tensor<16xf32>) attributes {strategy = {}} {
    %r = dmir.neg %a : (tensor<16xf32>) -> tensor<16xf32>
    dmir.yield %r : tensor<16xf32>
  }
  // The view keeps its base alive.
  %v = dmir.reshape %1 : (tensor<16xf32>) -> tensor<4x4xf32>
  %2 = dmir.region "cpu" (%a = %v : tensor<4x4xf32>) -> (tensor<4x4xf32>) attributes {strategy = {}} {
    %r = dmir.abs %a : (tensor<4x4xf32>) -> tensor<4x4xf32>
    dmir.yield %r : tensor<4x4xf32>
  }
  %w = dmir.reshape %2 : (tensor<4x4xf32>) -> tensor<16xf32>
  %3 = dmir.region "cpu" (%a = %w : tensor<16xf32>) -> (tensor<16xf32>) attributes {strategy = {}} {
    %r = dmir.abs %a : (tensor<16xf32>) -> tensor<16xf32>
    dmir.yield %r : tensor<16xf32>
  }
  return %3 : tensor<16xf32>
}
