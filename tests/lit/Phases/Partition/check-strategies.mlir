// RUN: dmx-opt %s -split-input-file -verify-diagnostics -pass-pipeline='builtin.module(func.func(dmir-choose-strategies))'

// What follows from a strategy's choices is derived again, and what text says else is refused.
func.func @work(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{'work' of its strategy is 3 : i64, but must be 1 : i64; what is left out is derived}}
  %0 = dmir.region "cpu" (%a = %x : tensor<8xf32>) -> (tensor<8xf32>) attributes {strategy = {work = 3 : i64}} {
    %r = dmir.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    dmir.yield %r : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// -----

func.func @scratch(%x: tensor<4x40xf32>) -> tensor<4x40xf32> {
  // expected-error @+1 {{'scratch' of its strategy is 0 : i64, but must be 192 : i64}}
  %0 = dmir.region "cpu" (%a = %x : tensor<4x40xf32>) -> (tensor<4x40xf32>) attributes {strategy = {scratch = 0 : i64}} {
    %r = dmir.softmax %a {axis = 1 : i64} : (tensor<4x40xf32>) -> tensor<4x40xf32>
    dmir.yield %r : tensor<4x40xf32>
  }
  return %0 : tensor<4x40xf32>
}

// -----

// An operand that is no constant has no packed form.
func.func @packed(%x: tensor<8x16xf32>, %w: tensor<16x32xf32>) -> tensor<8x32xf32> {
  // expected-error @+1 {{'packed' of its strategy is {"1" = {form = "panel16"}}, but it has none; leave it out}}
  %0 = dmir.region "cpu" (%a = %x : tensor<8x16xf32>, %b = %w : tensor<16x32xf32>) -> (tensor<8x32xf32>) attributes {strategy = {packed = {"1" = {form = "panel16"}}}} {
    %r = dmir.matmul %a, %b : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
    dmir.yield %r : tensor<8x32xf32>
  }
  return %0 : tensor<8x32xf32>
}

// -----

func.func @in_place(%x: tensor<4x40xf32>) -> tensor<40x4xf32> {
  // expected-error @+1 {{'in_place' of its strategy is [0], but it has none}}
  %0 = dmir.region "cpu" (%a = %x : tensor<4x40xf32>) -> (tensor<40x4xf32>) attributes {strategy = {in_place = [0]}} {
    %r = dmir.transpose %a {permutation = array<i64: 1, 0>} : (tensor<4x40xf32>) -> tensor<40x4xf32>
    dmir.yield %r : tensor<40x4xf32>
  }
  return %0 : tensor<40x4xf32>
}

// -----

func.func @device(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{the region is for the device 'gpu', which is no target of this compile}}
  %0 = dmir.region "gpu" (%a = %x : tensor<8xf32>) -> (tensor<8xf32>) {
    %r = dmir.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    dmir.yield %r : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}
