// RUN: dmx-opt %s -pass-pipeline='builtin.module(func.func(dmir-check-placement))' -split-input-file -verify-diagnostics

// What dmir-place-buffers makes: in place, over what is dead, into the output.
func.func @good(%x: tensor<16xf32>) -> tensor<16xf32> attributes {dmir.arenas = [{lower_bound = 64 : i64, size = 64 : i64}]} {
  %0 = dmir.region "cpu" (%a = %x : tensor<16xf32>) -> (tensor<16xf32>) attributes {placement = [{arena = 0 : i64, offset = 0 : i64, size = 64 : i64}], strategy = {}} {
    %r = dmir.exp %a : (tensor<16xf32>) -> tensor<16xf32>
    dmir.yield %r : tensor<16xf32>
  }
  %1 = dmir.region "cpu" (%a = %0 : tensor<16xf32>) -> (tensor<16xf32>) attributes {placement = [{arena = 0 : i64, offset = 0 : i64, size = 64 : i64}], strategy = {in_place = [0]}} {
    %r = dmir.neg %a : (tensor<16xf32>) -> tensor<16xf32>
    dmir.yield %r : tensor<16xf32>
  }
  %2 = dmir.region "cpu" (%a = %1 : tensor<16xf32>) -> (tensor<16xf32>) attributes {placement = [{output = 0 : i64, size = 64 : i64}], strategy = {}} {
    %r = dmir.abs %a : (tensor<16xf32>) -> tensor<16xf32>
    dmir.yield %r : tensor<16xf32>
  }
  return %2 : tensor<16xf32>
}

// -----

// Without in_place it writes over what it reads.
func.func @over(%x: tensor<16xf32>) -> tensor<16xf32> attributes {dmir.arenas = [{lower_bound = 64 : i64, size = 64 : i64}]} {
  %0 = dmir.region "cpu" (%a = %x : tensor<16xf32>) -> (tensor<16xf32>) attributes {placement = [{arena = 0 : i64, offset = 0 : i64, size = 64 : i64}], strategy = {}} {
    %r = dmir.exp %a : (tensor<16xf32>) -> tensor<16xf32>
    dmir.yield %r : tensor<16xf32>
  }
  // expected-error @below {{the placement of result 0 has 'offset' = 0, where the result of node 'dmir.region' is still needed}}
  %1 = dmir.region "cpu" (%a = %0 : tensor<16xf32>) -> (tensor<16xf32>) attributes {placement = [{arena = 0 : i64, offset = 0 : i64, size = 64 : i64}], strategy = {}} {
    %r = dmir.neg %a : (tensor<16xf32>) -> tensor<16xf32>
    dmir.yield %r : tensor<16xf32>
  }
  return %1 : tensor<16xf32>
}

// -----

// A view keeps what it looks at alive.
func.func @view(%x: tensor<16xf32>) -> tensor<16xf32> attributes {dmir.arenas = [{lower_bound = 128 : i64, size = 128 : i64}]} {
  %0 = dmir.region "cpu" (%a = %x : tensor<16xf32>) -> (tensor<16xf32>) attributes {placement = [{arena = 0 : i64, offset = 0 : i64, size = 64 : i64}], strategy = {}} {
    %r = dmir.exp %a : (tensor<16xf32>) -> tensor<16xf32>
    dmir.yield %r : tensor<16xf32>
  }
  %v = dmir.reshape %0 : (tensor<16xf32>) -> tensor<4x4xf32>
  // expected-error @below {{where the result of node 'dmir.region' is still needed}}
  %1 = dmir.region "cpu" (%a = %x : tensor<16xf32>) -> (tensor<16xf32>) attributes {placement = [{arena = 0 : i64, offset = 0 : i64, size = 64 : i64}], strategy = {}} {
    %r = dmir.neg %a : (tensor<16xf32>) -> tensor<16xf32>
    dmir.yield %r : tensor<16xf32>
  }
  %2 = dmir.region "cpu" (%a = %1 : tensor<16xf32>, %b = %v : tensor<4x4xf32>) -> (tensor<16xf32>) attributes {placement = [{output = 0 : i64, size = 64 : i64}], strategy = {}} {
    %s = dmir.reshape %b : (tensor<4x4xf32>) -> tensor<16xf32>
    %r = dmir.add %a, %s : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    dmir.yield %r : tensor<16xf32>
  }
  return %2 : tensor<16xf32>
}

// -----

func.func @output(%x: tensor<16xf32>) -> tensor<16xf32> attributes {dmir.arenas = []} {
  // expected-error @below {{the placement of result 0 is the output 3, but the function has 1}}
  %0 = dmir.region "cpu" (%a = %x : tensor<16xf32>) -> (tensor<16xf32>) attributes {placement = [{output = 3 : i64, size = 64 : i64}], strategy = {}} {
    %r = dmir.exp %a : (tensor<16xf32>) -> tensor<16xf32>
    dmir.yield %r : tensor<16xf32>
  }
  return %0 : tensor<16xf32>
}

// -----

func.func @nothing(%x: tensor<16xf32>) -> tensor<16xf32> {
  // expected-error @below {{the region has no placement}}
  %0 = dmir.region "cpu" (%a = %x : tensor<16xf32>) -> (tensor<16xf32>) attributes {strategy = {}} {
    %r = dmir.exp %a : (tensor<16xf32>) -> tensor<16xf32>
    dmir.yield %r : tensor<16xf32>
  }
  return %0 : tensor<16xf32>
}

// -----

func.func @kinds(%x: tensor<16xf32>) -> tensor<16xf32> {
  // expected-error @below {{C4: 'placement' must be an array}}
  %0 = dmir.region "cpu" (%a = %x : tensor<16xf32>) -> (tensor<16xf32>) attributes {placement = [{output = 0 : i64, size = unit}], strategy = {}} {
    %r = dmir.exp %a : (tensor<16xf32>) -> tensor<16xf32>
    dmir.yield %r : tensor<16xf32>
  }
  return %0 : tensor<16xf32>
}
