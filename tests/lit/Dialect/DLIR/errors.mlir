// RUN: dmx-opt %s -split-input-file -verify-diagnostics

dlir.program @misaligned attributes {inputs = [], outputs = [], arenas = [{size = 64, lower_bound = 64}]} {
  // expected-error @+1 {{C1: arena offset 8 is not a multiple of 64}}
  %t = dlir.buffer arena "t" : tensor<4xf32> {offset = 8 : i64, size = 16 : i64}
}

// -----

dlir.program @outside attributes {inputs = [], outputs = [], arenas = [{size = 64, lower_bound = 64}]} {
  %t = dlir.buffer arena "t" : tensor<4xf32> {size = 16 : i64}
  // expected-error @+1 {{C2: an alias must lie inside a buffer}}
  %v = dlir.buffer alias "v" of %t : tensor<4xf32> {offset = 8 : i64, size = 16 : i64}
}

// -----

// A read that does not wait for the write before it.
dlir.program @hazard attributes {inputs = [], outputs = [], arenas = [{size = 64, lower_bound = 64}]} {
  %x = dlir.buffer input "x" : tensor<16xf32> {size = 64 : i64}
  %t = dlir.buffer arena "t" : tensor<16xf32> {size = 64 : i64}
  %y = dlir.buffer output "y" : tensor<16xf32> {size = 64 : i64}
  %a = dlir.copy_buffer %x to %t {nodes = ["a"], queue = "cpu", size = 64 : i64}
  // expected-error @+1 {{C3: touches the bytes of 't' without waiting}}
  %b = dlir.copy_buffer %t to %y {nodes = ["b"], queue = "cpu", size = 64 : i64}
}

// -----

// Ordered accesses, but the second buffer overwrites the first before its last read.
dlir.program @overlap attributes {inputs = [], outputs = [], arenas = [{size = 64, lower_bound = 64}]} {
  %x = dlir.buffer input "x" : tensor<16xf32> {size = 64 : i64}
  %s = dlir.buffer arena "s" : tensor<16xf32> {size = 64 : i64}
  // expected-error @+1 {{C2: overlaps 's' while both are live}}
  %t = dlir.buffer arena "t" : tensor<16xf32> {size = 64 : i64}
  %y = dlir.buffer output "y" : tensor<16xf32> {size = 64 : i64}
  %z = dlir.buffer output "z" : tensor<16xf32> {index = 1 : i64, size = 64 : i64}
  %a = dlir.copy_buffer %x to %s {nodes = ["a"], queue = "cpu", size = 64 : i64}
  %b = dlir.copy_buffer %x to %t after %a {nodes = ["b"], queue = "cpu", size = 64 : i64}
  %c = dlir.copy_buffer %s to %y after %b {nodes = ["c"], queue = "cpu", size = 64 : i64}
  %d = dlir.copy_buffer %t to %z after %c {nodes = ["d"], queue = "cpu", size = 64 : i64}
}

// -----

// expected-error @+1 {{C4: input 1 must be {name, type of a tensor}, not {name = "b"}}}
dlir.program @port attributes {inputs = [{name = "a", type = tensor<2xf32>}, {name = "b"}], outputs = [], arenas = []} {
}

// -----

// expected-error @+1 {{C4: output 0 must be {name, type of a tensor}, not {name = "a", type = i32}}}
dlir.program @type attributes {inputs = [], outputs = [{name = "a", type = i32}], arenas = []} {
}

// -----

// expected-error @+1 {{C4: an arena must be {size, lower_bound}, and a unit where they are multiples of it, not 64}}
dlir.program @arena attributes {inputs = [], outputs = [], arenas = [64]} {
}
