// RUN: dmx-opt %s -split-input-file -verify-diagnostics -pass-pipeline='builtin.module(func.func(dmir-choose-strategies))'

// The team may be chosen; what follows from it may not.
func.func @team(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  // expected-error @+1 {{'work' of its strategy is 2 : i64, but must be 1 : i64}}
  %0 = dmir.region "corsair" (%a = %x : tensor<64x64xf32>) -> (tensor<64x64xf32>) attributes {strategy = {quads = 4 : i64, work = 2 : i64}} {
    %r = dmir.relu %a : (tensor<64x64xf32>) -> tensor<64x64xf32>
    dmir.yield %r : tensor<64x64xf32>
  }
  return %0 : tensor<64x64xf32>
}

// -----

func.func @quads(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  // expected-error @+1 {{'quads' of its strategy is 999 : i64, but must be}}
  %0 = dmir.region "corsair" (%a = %x : tensor<64x64xf32>) -> (tensor<64x64xf32>) attributes {strategy = {quads = 999 : i64}} {
    %r = dmir.relu %a : (tensor<64x64xf32>) -> tensor<64x64xf32>
    dmir.yield %r : tensor<64x64xf32>
  }
  return %0 : tensor<64x64xf32>
}

// -----

func.func @packed(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %w = dmir.constant dense<0.5> : tensor<64x64xf32>
  // expected-error @+1 {{'packed.1.}}
  %0 = dmir.region "corsair" (%a = %x : tensor<64x64xf32>, %b = %w : tensor<64x64xf32>) -> (tensor<64x64xf32>) attributes {strategy = {packed = {"1" = {size = 1 : i64}}}} {
    %r = dmir.matmul %a, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    dmir.yield %r : tensor<64x64xf32>
  }
  return %0 : tensor<64x64xf32>
}
