// RUN: dmx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(dmir-form-regions))' | FileCheck %s

// Bias, activation and residual are written through the matmul; the scalar is inside, the bias an operand.
// CHECK-LABEL: func @epilogue
// CHECK-COUNT-1: dmir.region "cpu"
// CHECK: dmir.matmul
// CHECK-NEXT: dmir.add
// CHECK-NEXT: dmir.relu
// CHECK-NEXT: dmir.add
// CHECK-NOT: dmir.region
func.func @epilogue(%x: tensor<8x16xf32>, %w: tensor<16x32xf32>, %b: tensor<32xf32>, %r: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %0 = dmir.matmul %x, %w : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %1 = dmir.add %0, %b : (tensor<8x32xf32>, tensor<32xf32>) -> tensor<8x32xf32>
  %2 = dmir.relu %1 : (tensor<8x32xf32>) -> tensor<8x32xf32>
  %3 = dmir.add %2, %r : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  return %3 : tensor<8x32xf32>
}

// -----

// An activation that reads the result twice belongs to the epilogue, and so does what follows it.
// CHECK-LABEL: func @silu
// CHECK-COUNT-1: dmir.region "cpu"
// CHECK: dmir.matmul
// CHECK-NEXT: dmir.add
// CHECK-NEXT: dmir.sigmoid
// CHECK-NEXT: dmir.mul
// CHECK-NEXT: dmir.relu
// CHECK-NOT: dmir.region
func.func @silu(%x: tensor<8x16xf32>, %w: tensor<16x32xf32>, %b: tensor<32xf32>) -> tensor<8x32xf32> {
  %0 = dmir.matmul %x, %w : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %1 = dmir.add %0, %b : (tensor<8x32xf32>, tensor<32xf32>) -> tensor<8x32xf32>
  %2 = dmir.sigmoid %1 : (tensor<8x32xf32>) -> tensor<8x32xf32>
  %3 = dmir.mul %1, %2 : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  %4 = dmir.relu %3 : (tensor<8x32xf32>) -> tensor<8x32xf32>
  return %4 : tensor<8x32xf32>
}

// -----

// Not where another region reads the result, too, on its way or at its end.
// CHECK-LABEL: func @used_outside
// CHECK: dmir.region "cpu"
// CHECK: dmir.matmul
// CHECK-NEXT: dmir.yield
// CHECK: dmir.region "cpu"
// CHECK: dmir.sigmoid
// CHECK-NEXT: dmir.mul
func.func @used_outside(%x: tensor<8x16xf32>, %w: tensor<16x32xf32>) -> (tensor<8x32xf32>, tensor<8x32xf32>) {
  %0 = dmir.matmul %x, %w : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %1 = dmir.sigmoid %0 : (tensor<8x32xf32>) -> tensor<8x32xf32>
  %2 = dmir.mul %0, %1 : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  return %0, %2 : tensor<8x32xf32>, tensor<8x32xf32>
}

// -----

// Nor where the second operand waits for what the result becomes elsewhere.
// CHECK-LABEL: func @around
// CHECK: dmir.matmul
// CHECK-NEXT: dmir.yield
// CHECK: dmir.matmul
// CHECK-NEXT: dmir.add
func.func @around(%x: tensor<8x16xf32>, %w: tensor<16x32xf32>, %v: tensor<32x32xf32>) -> tensor<8x32xf32> {
  %0 = dmir.matmul %x, %w : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %1 = dmir.matmul %0, %v : (tensor<8x32xf32>, tensor<32x32xf32>) -> tensor<8x32xf32>
  %2 = dmir.add %0, %1 : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  return %2 : tensor<8x32xf32>
}

// -----

// A value that is read behind the region is a further result.
// CHECK-LABEL: func @read_behind
// CHECK: %[[R:.*]]:2 = dmir.region "cpu"
// CHECK: dmir.yield
// CHECK-NOT: dmir.region
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @read_behind(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = dmir.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %1 = dmir.neg %0 : (tensor<8xf32>) -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// -----

// One of another shape is not, nor one that is read before the region's end: it has a region of its own.
// CHECK-LABEL: func @read_elsewhere
// CHECK-COUNT-2: dmir.region "cpu"
// CHECK-NOT: dmir.region
func.func @read_elsewhere(%x: tensor<8xf32>, %y: tensor<4x8xf32>) -> (tensor<8xf32>, tensor<4x8xf32>) {
  %0 = dmir.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %1 = dmir.add %0, %y : (tensor<8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0, %1 : tensor<8xf32>, tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func @read_between
// CHECK-COUNT-3: dmir.region "cpu"
// CHECK-NOT: dmir.region
func.func @read_between(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = dmir.exp %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = dmir.matmul %0, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = dmir.transpose %1 {permutation = array<i64: 1, 0>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = dmir.add %0, %2 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}

// -----

// An elementwise chain is one region, used twice inside or not.
// CHECK-LABEL: func @chain
// CHECK-COUNT-1: dmir.region "cpu"
// CHECK-NOT: dmir.region
func.func @chain(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c = dmir.constant dense<2.0> : tensor<f32>
  %0 = dmir.mul %x, %c : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %1 = dmir.exp %0 : (tensor<8xf32>) -> tensor<8xf32>
  %2 = dmir.add %0, %1 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

// Attention is one region, its scores' product, mask and softmax inside.
// CHECK-LABEL: func @attention
// CHECK-COUNT-1: dmir.region "cpu"
// CHECK: dmir.matmul
// CHECK: dmir.softmax
// CHECK: dmir.matmul
// CHECK-NOT: dmir.region
func.func @attention(%q: tensor<2x8x4xf32>, %k: tensor<2x4x8xf32>, %v: tensor<2x8x4xf32>, %mask: tensor<8x8xf32>) -> tensor<2x8x4xf32> {
  %0 = dmir.matmul %q, %k : (tensor<2x8x4xf32>, tensor<2x4x8xf32>) -> tensor<2x8x8xf32>
  %1 = dmir.add %0, %mask : (tensor<2x8x8xf32>, tensor<8x8xf32>) -> tensor<2x8x8xf32>
  %2 = dmir.softmax %1 {axis = 2 : i64} : (tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %3 = dmir.matmul %2, %v : (tensor<2x8x8xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  return %3 : tensor<2x8x4xf32>
}

// -----

// So it is with weights that are 0 where they would be NaN: they are read twice, but by the guard alone.
// CHECK-LABEL: func @guarded_attention
// CHECK-COUNT-1: dmir.region "cpu"
// CHECK: dmir.matmul
// CHECK: dmir.is_nan
// CHECK: dmir.matmul
// CHECK-NOT: dmir.region
func.func @guarded_attention(%q: tensor<2x8x4xf32>, %k: tensor<2x4x8xf32>, %v: tensor<2x8x4xf32>, %mask: tensor<8x8xf32>) -> tensor<2x8x4xf32> {
  %zero = dmir.constant dense<0.0> : tensor<f32>
  %0 = dmir.matmul %q, %k : (tensor<2x8x4xf32>, tensor<2x4x8xf32>) -> tensor<2x8x8xf32>
  %1 = dmir.add %0, %mask : (tensor<2x8x8xf32>, tensor<8x8xf32>) -> tensor<2x8x8xf32>
  %2 = dmir.softmax %1 {axis = 2 : i64} : (tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %3 = dmir.is_nan %2 : (tensor<2x8x8xf32>) -> tensor<2x8x8xi1>
  %4 = dmir.select %3, %zero, %2 : (tensor<2x8x8xi1>, tensor<f32>, tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %5 = dmir.matmul %4, %v : (tensor<2x8x8xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  return %5 : tensor<2x8x4xf32>
}

// -----

// Weights that are something else than 0 there are computed apart.
// CHECK-LABEL: func @replaced_weights
// CHECK-COUNT-3: dmir.region "cpu"
func.func @replaced_weights(%q: tensor<2x8x4xf32>, %k: tensor<2x4x8xf32>, %v: tensor<2x8x4xf32>) -> tensor<2x8x4xf32> {
  %one = dmir.constant dense<1.0> : tensor<f32>
  %0 = dmir.matmul %q, %k : (tensor<2x8x4xf32>, tensor<2x4x8xf32>) -> tensor<2x8x8xf32>
  %1 = dmir.softmax %0 {axis = 2 : i64} : (tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %2 = dmir.is_nan %1 : (tensor<2x8x8xf32>) -> tensor<2x8x8xi1>
  %3 = dmir.select %2, %one, %1 : (tensor<2x8x8xi1>, tensor<f32>, tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %4 = dmir.matmul %3, %v : (tensor<2x8x8xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  return %4 : tensor<2x8x4xf32>
}

// -----

// Weights that are read elsewhere are in memory: three kernels.
// CHECK-LABEL: func @attention_weights
// CHECK-COUNT-3: dmir.region "cpu"
func.func @attention_weights(%q: tensor<2x8x4xf32>, %k: tensor<2x4x8xf32>, %v: tensor<2x8x4xf32>) -> (tensor<2x8x4xf32>, tensor<2x8x8xf32>) {
  %0 = dmir.matmul %q, %k : (tensor<2x8x4xf32>, tensor<2x4x8xf32>) -> tensor<2x8x8xf32>
  %1 = dmir.softmax %0 {axis = 2 : i64} : (tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %2 = dmir.matmul %1, %v : (tensor<2x8x8xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  return %2, %1 : tensor<2x8x4xf32>, tensor<2x8x8xf32>
}

// -----

// Factors within 1 of a 1x1 convolution's input go to its weights, in its kernel.
// CHECK-LABEL: func @scaled_conv
// CHECK: dmir.region "cpu"
// CHECK: dmir.sigmoid
// CHECK: dmir.region "cpu"
// CHECK-NEXT: dmir.mul
// CHECK-NEXT: dmir.conv
// CHECK-NOT: dmir.region
func.func @scaled_conv(%x: tensor<1x16x8x8xf32, #dmir.blocked<1, 16>>, %g: tensor<1x16x1x1xf32>) -> tensor<1x8x8x8xf32, #dmir.blocked<1, 16>> {
  %w = dmir.constant dense<0.5> : tensor<8x16x1x1xf32>
  %s = dmir.sigmoid %g : (tensor<1x16x1x1xf32>) -> tensor<1x16x1x1xf32>
  %y = dmir.mul %s, %x : (tensor<1x16x1x1xf32>, tensor<1x16x8x8xf32, #dmir.blocked<1, 16>>) -> tensor<1x16x8x8xf32, #dmir.blocked<1, 16>>
  %r = dmir.conv %y, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>} : (tensor<1x16x8x8xf32, #dmir.blocked<1, 16>>, tensor<8x16x1x1xf32>) -> tensor<1x8x8x8xf32, #dmir.blocked<1, 16>>
  return %r : tensor<1x8x8x8xf32, #dmir.blocked<1, 16>>
}

// -----

// A clip's are.
// CHECK-LABEL: func @scaled_conv_clip
// CHECK: dmir.mul
// CHECK-NEXT: dmir.conv
func.func @scaled_conv_clip(%x: tensor<1x16x8x8xf32, #dmir.blocked<1, 16>>, %g: tensor<1x16x1x1xf32>) -> tensor<1x8x8x8xf32, #dmir.blocked<1, 16>> {
  %w = dmir.constant dense<0.5> : tensor<8x16x1x1xf32>
  %one = dmir.constant dense<1.0> : tensor<f32>
  %zero = dmir.constant dense<0.0> : tensor<f32>
  %m = dmir.min %one, %g : (tensor<f32>, tensor<1x16x1x1xf32>) -> tensor<1x16x1x1xf32>
  %s = dmir.max %zero, %m : (tensor<f32>, tensor<1x16x1x1xf32>) -> tensor<1x16x1x1xf32>
  %y = dmir.mul %s, %x : (tensor<1x16x1x1xf32>, tensor<1x16x8x8xf32, #dmir.blocked<1, 16>>) -> tensor<1x16x8x8xf32, #dmir.blocked<1, 16>>
  %r = dmir.conv %y, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>} : (tensor<1x16x8x8xf32, #dmir.blocked<1, 16>>, tensor<8x16x1x1xf32>) -> tensor<1x8x8x8xf32, #dmir.blocked<1, 16>>
  return %r : tensor<1x8x8x8xf32, #dmir.blocked<1, 16>>
}

// -----

// Others might overflow with a weight.
// CHECK-LABEL: func @scaled_conv_unbounded
// CHECK: dmir.mul
// CHECK-NEXT: dmir.yield
// CHECK: dmir.conv
func.func @scaled_conv_unbounded(%x: tensor<1x16x8x8xf32, #dmir.blocked<1, 16>>, %g: tensor<1x16x1x1xf32>) -> tensor<1x8x8x8xf32, #dmir.blocked<1, 16>> {
  %w = dmir.constant dense<0.5> : tensor<8x16x1x1xf32>
  %s = dmir.exp %g : (tensor<1x16x1x1xf32>) -> tensor<1x16x1x1xf32>
  %y = dmir.mul %s, %x : (tensor<1x16x1x1xf32>, tensor<1x16x8x8xf32, #dmir.blocked<1, 16>>) -> tensor<1x16x8x8xf32, #dmir.blocked<1, 16>>
  %r = dmir.conv %y, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>} : (tensor<1x16x8x8xf32, #dmir.blocked<1, 16>>, tensor<8x16x1x1xf32>) -> tensor<1x8x8x8xf32, #dmir.blocked<1, 16>>
  return %r : tensor<1x8x8x8xf32, #dmir.blocked<1, 16>>
}

// -----

// Where there are few positions for each channel, scaling the image is less work.
// CHECK-LABEL: func @scaled_conv_few_positions
// CHECK: dmir.mul
// CHECK-NEXT: dmir.yield
// CHECK: dmir.conv
func.func @scaled_conv_few_positions(%x: tensor<1x16x8x8xf32, #dmir.blocked<1, 16>>, %g: tensor<1x16x1x1xf32>) -> tensor<1x24x8x8xf32, #dmir.blocked<1, 16>> {
  %w = dmir.constant dense<0.5> : tensor<24x16x1x1xf32>
  %s = dmir.sigmoid %g : (tensor<1x16x1x1xf32>) -> tensor<1x16x1x1xf32>
  %y = dmir.mul %s, %x : (tensor<1x16x1x1xf32>, tensor<1x16x8x8xf32, #dmir.blocked<1, 16>>) -> tensor<1x16x8x8xf32, #dmir.blocked<1, 16>>
  %r = dmir.conv %y, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>} : (tensor<1x16x8x8xf32, #dmir.blocked<1, 16>>, tensor<24x16x1x1xf32>) -> tensor<1x24x8x8xf32, #dmir.blocked<1, 16>>
  return %r : tensor<1x24x8x8xf32, #dmir.blocked<1, 16>>
}

// -----

// A rotary embedding is one region: vectors lie in one of its halves.
// CHECK-LABEL: func @rotary
// CHECK-COUNT-1: dmir.region "cpu"
// CHECK: dmir.transpose
// CHECK: dmir.concat
// CHECK-NOT: dmir.region
func.func @rotary(%p: tensor<1x8x2x64xf32>, %c: tensor<8x64xf32>, %s: tensor<8x64xf32>) -> tensor<1x2x8x64xf32> {
  %x = dmir.transpose %p {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x8x2x64xf32>) -> tensor<1x2x8x64xf32>
  %l = dmir.slice %x {starts = array<i64: 0, 0, 0, 0>, sizes = array<i64: 1, 2, 8, 32>, steps = array<i64: 1, 1, 1, 1>} : (tensor<1x2x8x64xf32>) -> tensor<1x2x8x32xf32>
  %h = dmir.slice %x {starts = array<i64: 0, 0, 0, 32>, sizes = array<i64: 1, 2, 8, 32>, steps = array<i64: 1, 1, 1, 1>} : (tensor<1x2x8x64xf32>) -> tensor<1x2x8x32xf32>
  %n = dmir.neg %h : (tensor<1x2x8x32xf32>) -> tensor<1x2x8x32xf32>
  %r = dmir.concat %n, %l {axis = 3 : i64} : (tensor<1x2x8x32xf32>, tensor<1x2x8x32xf32>) -> tensor<1x2x8x64xf32>
  %a = dmir.mul %x, %c : (tensor<1x2x8x64xf32>, tensor<8x64xf32>) -> tensor<1x2x8x64xf32>
  %b = dmir.mul %r, %s : (tensor<1x2x8x64xf32>, tensor<8x64xf32>) -> tensor<1x2x8x64xf32>
  %y = dmir.add %a, %b : (tensor<1x2x8x64xf32>, tensor<1x2x8x64xf32>) -> tensor<1x2x8x64xf32>
  return %y : tensor<1x2x8x64xf32>
}

// -----

// Halves shorter than a vector are put together first.
// CHECK-LABEL: func @rotary_short
// CHECK: dmir.concat
// CHECK-NEXT: dmir.yield
// CHECK: dmir.region
func.func @rotary_short(%p: tensor<1x8x2x16xf32>, %c: tensor<8x16xf32>, %s: tensor<8x16xf32>) -> tensor<1x2x8x16xf32> {
  %x = dmir.transpose %p {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x8x2x16xf32>) -> tensor<1x2x8x16xf32>
  %l = dmir.slice %x {starts = array<i64: 0, 0, 0, 0>, sizes = array<i64: 1, 2, 8, 8>, steps = array<i64: 1, 1, 1, 1>} : (tensor<1x2x8x16xf32>) -> tensor<1x2x8x8xf32>
  %h = dmir.slice %x {starts = array<i64: 0, 0, 0, 8>, sizes = array<i64: 1, 2, 8, 8>, steps = array<i64: 1, 1, 1, 1>} : (tensor<1x2x8x16xf32>) -> tensor<1x2x8x8xf32>
  %n = dmir.neg %h : (tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32>
  %r = dmir.concat %n, %l {axis = 3 : i64} : (tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x8x16xf32>
  %a = dmir.mul %x, %c : (tensor<1x2x8x16xf32>, tensor<8x16xf32>) -> tensor<1x2x8x16xf32>
  %b = dmir.mul %r, %s : (tensor<1x2x8x16xf32>, tensor<8x16xf32>) -> tensor<1x2x8x16xf32>
  %y = dmir.add %a, %b : (tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>) -> tensor<1x2x8x16xf32>
  return %y : tensor<1x2x8x16xf32>
}

// -----

// The scores of an attention are no other one's result: of three products with softmax between, two are one region.
// CHECK-LABEL: func @products_in_a_row
// CHECK: dmir.region "cpu"
// CHECK: dmir.matmul
// CHECK: dmir.softmax
// CHECK: dmir.matmul
// CHECK: dmir.region "cpu"
// CHECK-NEXT: dmir.softmax
// CHECK: dmir.region "cpu"
// CHECK-NEXT: dmir.matmul
// CHECK-NOT: dmir.region
func.func @products_in_a_row(%q: tensor<8x16xf32>, %k: tensor<16x8xf32>, %v: tensor<8x6xf32>, %w: tensor<6x32xf32>) -> tensor<8x32xf32> {
  %0 = dmir.matmul %q, %k : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %1 = dmir.softmax %0 {axis = 1 : i64} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = dmir.matmul %1, %v : (tensor<8x8xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
  %3 = dmir.softmax %2 {axis = 1 : i64} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  %4 = dmir.matmul %3, %w : (tensor<8x6xf32>, tensor<6x32xf32>) -> tensor<8x32xf32>
  return %4 : tensor<8x32xf32>
}

// -----

// Each step reads the one before at two places: what would be computed at more than 32 places is kept in memory.
// CHECK-LABEL: func @doubling
// CHECK-COUNT-2: dmir.region "cpu"
// CHECK-NOT: dmir.region
func.func @doubling(%x: tensor<17x64xf32>) -> tensor<10x64xf32> {
  %a0 = dmir.slice %x {starts = array<i64: 0, 0>, sizes = array<i64: 16, 64>, steps = array<i64: 1, 1>} : (tensor<17x64xf32>) -> tensor<16x64xf32>
  %b0 = dmir.slice %x {starts = array<i64: 1, 0>, sizes = array<i64: 16, 64>, steps = array<i64: 1, 1>} : (tensor<17x64xf32>) -> tensor<16x64xf32>
  %s0 = dmir.add %a0, %b0 : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %a1 = dmir.slice %s0 {starts = array<i64: 0, 0>, sizes = array<i64: 15, 64>, steps = array<i64: 1, 1>} : (tensor<16x64xf32>) -> tensor<15x64xf32>
  %b1 = dmir.slice %s0 {starts = array<i64: 1, 0>, sizes = array<i64: 15, 64>, steps = array<i64: 1, 1>} : (tensor<16x64xf32>) -> tensor<15x64xf32>
  %s1 = dmir.add %a1, %b1 : (tensor<15x64xf32>, tensor<15x64xf32>) -> tensor<15x64xf32>
  %a2 = dmir.slice %s1 {starts = array<i64: 0, 0>, sizes = array<i64: 14, 64>, steps = array<i64: 1, 1>} : (tensor<15x64xf32>) -> tensor<14x64xf32>
  %b2 = dmir.slice %s1 {starts = array<i64: 1, 0>, sizes = array<i64: 14, 64>, steps = array<i64: 1, 1>} : (tensor<15x64xf32>) -> tensor<14x64xf32>
  %s2 = dmir.add %a2, %b2 : (tensor<14x64xf32>, tensor<14x64xf32>) -> tensor<14x64xf32>
  %a3 = dmir.slice %s2 {starts = array<i64: 0, 0>, sizes = array<i64: 13, 64>, steps = array<i64: 1, 1>} : (tensor<14x64xf32>) -> tensor<13x64xf32>
  %b3 = dmir.slice %s2 {starts = array<i64: 1, 0>, sizes = array<i64: 13, 64>, steps = array<i64: 1, 1>} : (tensor<14x64xf32>) -> tensor<13x64xf32>
  %s3 = dmir.add %a3, %b3 : (tensor<13x64xf32>, tensor<13x64xf32>) -> tensor<13x64xf32>
  %a4 = dmir.slice %s3 {starts = array<i64: 0, 0>, sizes = array<i64: 12, 64>, steps = array<i64: 1, 1>} : (tensor<13x64xf32>) -> tensor<12x64xf32>
  %b4 = dmir.slice %s3 {starts = array<i64: 1, 0>, sizes = array<i64: 12, 64>, steps = array<i64: 1, 1>} : (tensor<13x64xf32>) -> tensor<12x64xf32>
  %s4 = dmir.add %a4, %b4 : (tensor<12x64xf32>, tensor<12x64xf32>) -> tensor<12x64xf32>
  %a5 = dmir.slice %s4 {starts = array<i64: 0, 0>, sizes = array<i64: 11, 64>, steps = array<i64: 1, 1>} : (tensor<12x64xf32>) -> tensor<11x64xf32>
  %b5 = dmir.slice %s4 {starts = array<i64: 1, 0>, sizes = array<i64: 11, 64>, steps = array<i64: 1, 1>} : (tensor<12x64xf32>) -> tensor<11x64xf32>
  %s5 = dmir.add %a5, %b5 : (tensor<11x64xf32>, tensor<11x64xf32>) -> tensor<11x64xf32>
  %a6 = dmir.slice %s5 {starts = array<i64: 0, 0>, sizes = array<i64: 10, 64>, steps = array<i64: 1, 1>} : (tensor<11x64xf32>) -> tensor<10x64xf32>
  %b6 = dmir.slice %s5 {starts = array<i64: 1, 0>, sizes = array<i64: 10, 64>, steps = array<i64: 1, 1>} : (tensor<11x64xf32>) -> tensor<10x64xf32>
  %s6 = dmir.add %a6, %b6 : (tensor<10x64xf32>, tensor<10x64xf32>) -> tensor<10x64xf32>
  return %s6 : tensor<10x64xf32>
}

// -----

// What a product reads from memory is computed before, though the epilogue, which reads it too, could compute it.
// CHECK-LABEL: func @residual_of_an_operand
// CHECK: dmir.region "cpu"
// CHECK-NEXT: dmir.exp
// CHECK-NEXT: dmir.yield
// CHECK: dmir.region "cpu"
// CHECK-NEXT: dmir.matmul
// CHECK-NEXT: dmir.add
// CHECK-NOT: dmir.region
func.func @residual_of_an_operand(%x: tensor<8x16xf32>, %w: tensor<16x16xf32>) -> tensor<8x16xf32> {
  %0 = dmir.exp %x : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = dmir.matmul %0, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %2 = dmir.add %1, %0 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}

// -----

// What one gather picks twice is computed where it is read; what the two taps of an interpolation pick so often is not.
// CHECK-LABEL: func @picked
// CHECK-COUNT-1: dmir.region "cpu"
// CHECK: dmir.add
// CHECK-NEXT: dmir.gather
// CHECK-NOT: dmir.region
// CHECK-LABEL: func @interpolated
// CHECK: dmir.region "cpu"
// CHECK: dmir.add
// CHECK-NEXT: dmir.yield
// CHECK: dmir.region "cpu"
// CHECK: dmir.gather
// CHECK: dmir.gather
// CHECK: dmir.add
func.func @picked(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %i: tensor<16xi64>) -> tensor<4x16xf32> {
  %0 = dmir.add %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = dmir.gather %0, %i {axis = 1 : i64} : (tensor<4x8xf32>, tensor<16xi64>) -> tensor<4x16xf32>
  return %1 : tensor<4x16xf32>
}
func.func @interpolated(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %i: tensor<16xi64>, %j: tensor<16xi64>) -> tensor<4x16xf32> {
  %0 = dmir.add %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = dmir.gather %0, %i {axis = 1 : i64} : (tensor<4x8xf32>, tensor<16xi64>) -> tensor<4x16xf32>
  %2 = dmir.gather %0, %j {axis = 1 : i64} : (tensor<4x8xf32>, tensor<16xi64>) -> tensor<4x16xf32>
  %3 = dmir.add %1, %2 : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  return %3 : tensor<4x16xf32>
}
