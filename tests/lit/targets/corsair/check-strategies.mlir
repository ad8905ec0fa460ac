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

// -----

// What is decided of an op may be another choice, where the op can be computed so.
func.func @deal(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  // expected-error @+1 {{node 'sm': 'lldmir.deal' is #lldmir.deal<dim 1, quads 4>, but each quad needs all of that dim}}
  %0 = dmir.region "corsair" (%a = %x : tensor<64x64xf32>) -> (tensor<64x64xf32>) attributes {strategy = {quads = 4 : i64}} {
    %r = dmir.softmax %a {axis = 1 : i64, lldmir.deal = #lldmir.deal<dim 1, quads 4>} : (tensor<64x64xf32>) -> tensor<64x64xf32> loc("sm")
    dmir.yield %r : tensor<64x64xf32>
  }
  return %0 : tensor<64x64xf32>
}

// -----

func.func @dims(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  // expected-error @+1 {{node 'r': 'lldmir.deal' is #lldmir.deal<dim 7, quads 4>, but the value has 2 dims}}
  %0 = dmir.region "corsair" (%a = %x : tensor<64x64xf32>) -> (tensor<64x64xf32>) attributes {strategy = {quads = 4 : i64}} {
    %r = dmir.relu %a {lldmir.deal = #lldmir.deal<dim 7, quads 4>} : (tensor<64x64xf32>) -> tensor<64x64xf32> loc("r")
    dmir.yield %r : tensor<64x64xf32>
  }
  return %0 : tensor<64x64xf32>
}

// -----

func.func @team(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  // expected-error @+1 {{node 'r': 'lldmir.deal' is #lldmir.deal<dim 0, quads 8>, but the region is for a team of 4}}
  %0 = dmir.region "corsair" (%a = %x : tensor<64x64xf32>) -> (tensor<64x64xf32>) attributes {strategy = {quads = 4 : i64}} {
    %r = dmir.relu %a {lldmir.deal = #lldmir.deal<dim 0, quads 8>} : (tensor<64x64xf32>) -> tensor<64x64xf32> loc("r")
    dmir.yield %r : tensor<64x64xf32>
  }
  return %0 : tensor<64x64xf32>
}

// -----

func.func @cores(%x: tensor<64x4096xf32>) -> tensor<64x64xf32> {
  %w = dmir.constant dense<0.5> : tensor<4096x64xf32>
  // expected-error @+1 {{node 'mm': 'lldmir.plan' is #lldmir.plan<num_imc 32, ppr_mode 5, groups 1, slices 1, share columns, segment 8>, but num_imc 32 <= 2^ppr_mode 5 <= 16 cores of a slice does not hold}}
  %0 = dmir.region "corsair" (%a = %x : tensor<64x4096xf32>, %b = %w : tensor<4096x64xf32>) -> (tensor<64x64xf32>) attributes {strategy = {quads = 1 : i64}} {
    %r = dmir.matmul %a, %b {lldmir.plan = #lldmir.plan<num_imc 32, ppr_mode 5, groups 1, slices 1, share columns, segment 8>} : (tensor<64x4096xf32>, tensor<4096x64xf32>) -> tensor<64x64xf32> loc("mm")
    dmir.yield %r : tensor<64x64xf32>
  }
  return %0 : tensor<64x64xf32>
}

// -----

func.func @segment(%x: tensor<64x4096xf32>) -> tensor<64x64xf32> {
  %w = dmir.constant dense<0.5> : tensor<4096x64xf32>
  // expected-error @+1 {{but segment is 16, and must be 8 at most}}
  %0 = dmir.region "corsair" (%a = %x : tensor<64x4096xf32>, %b = %w : tensor<4096x64xf32>) -> (tensor<64x64xf32>) attributes {strategy = {quads = 1 : i64}} {
    %r = dmir.matmul %a, %b {lldmir.plan = #lldmir.plan<num_imc 8, ppr_mode 3, groups 1, slices 1, share columns, segment 16>} : (tensor<64x4096xf32>, tensor<4096x64xf32>) -> tensor<64x64xf32> loc("mm")
    dmir.yield %r : tensor<64x64xf32>
  }
  return %0 : tensor<64x64xf32>
}

// -----

func.func @gather(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  // expected-error @+1 {{node 'r': 'lldmir.gather' is array<i64: 3>, but of its 1 operands it has no such one}}
  %0 = dmir.region "corsair" (%a = %x : tensor<64x64xf32>) -> (tensor<64x64xf32>) attributes {strategy = {quads = 4 : i64}} {
    %r = dmir.relu %a {lldmir.gather = array<i64: 3>} : (tensor<64x64xf32>) -> tensor<64x64xf32> loc("r")
    dmir.yield %r : tensor<64x64xf32>
  }
  return %0 : tensor<64x64xf32>
}

// -----

// One packed form serves both readers.
func.func @shared(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %w = dmir.constant dense<0.5> : tensor<64x64xf32>
  // expected-error @+1 {{reads the same weights and has #lldmir.plan<num_imc 1, ppr_mode 0, groups 1, slices 1, share columns, segment 8>}}
  %0:2 = dmir.region "corsair" (%a = %x : tensor<64x64xf32>, %b = %w : tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) attributes {strategy = {quads = 1 : i64}} {
    %r = dmir.matmul %a, %b {lldmir.plan = #lldmir.plan<num_imc 1, ppr_mode 0, groups 2, slices 1, share columns, segment 8>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("mm")
    %s = dmir.matmul %r, %b {lldmir.plan = #lldmir.plan<num_imc 1, ppr_mode 0, groups 1, slices 1, share columns, segment 8>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("mn")
    dmir.yield %r, %s : tensor<64x64xf32>, tensor<64x64xf32>
  }
  return %0#0, %0#1 : tensor<64x64xf32>, tensor<64x64xf32>
}
