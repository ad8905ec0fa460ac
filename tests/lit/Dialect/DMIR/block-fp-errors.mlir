// Each labelled constraint on block floating point, broken once.
// RUN: dmx-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{'BFP16_46R' is not a block floating point format; did you mean}}
func.func private @f(tensor<8x8x!dmir.block_fp<BFP16_46R>>)

// -----

// expected-error @+1 {{'INT8' is not a block floating point format}}
func.func private @f(tensor<8x8x!dmir.block_fp<INT8>>)

// -----

// expected-error @+1 {{'BFP16_64' needs an orientation: R after the name (blocks along rows) or C}}
func.func private @f(tensor<8x8x!dmir.block_fp<BFP16_64>>)

// -----

// expected-error @+1 {{BFP32_1 has no blocks and so no orientation}}
func.func private @f(tensor<8x8x!dmir.block_fp<BFP32_1R>>)

// -----

// expected-error @+1 {{an orientation is R or C, not 'X'}}
func.func private @f(tensor<8x8x!dmir.block_fp<BFP16_64, X>>)

// -----

// expected-error @+1 {{the name already has the other orientation}}
func.func private @f(tensor<8x8x!dmir.block_fp<BFP16_64R, C>>)

// -----

// expected-error @+1 {{a type has no rounding}}
func.func private @f(tensor<8x8x!dmir.block_fp<"BFP[8|8]{64}(SS)", R>>)

// -----

// expected-warning @+1 {{}}
func.func private @f(tensor<8x8x!dmir.block_fp<"BFP[8|8]{64,-1}(SN)", R>>)

// -----

func.func @f(%x: tensor<64x64xi32>) {
  // expected-error @+1 {{C2: block_fp is cast from and to floats only, got 'tensor<64x64xi32>'}}
  %0 = dmir.cast %x : (tensor<64x64xi32>) -> tensor<64x64x!dmir.block_fp<BFP16_64R>>
  return
}

// -----

func.func @f(%x: tensor<64xf32>) {
  // expected-error @+1 {{C3: tensor<64x!dmir.block_fp<BFP16_64R>> has no wire format: blocks run along one of the last two dimensions, and it has fewer}}
  %0 = dmir.cast %x : (tensor<64xf32>) -> tensor<64x!dmir.block_fp<BFP16_64R>>
  return
}

// -----

func.func @f(%x: tensor<64x?xf32>) {
  // expected-error-re @+1 {{C3: {{.*}} has no wire format: its shape is not static}}
  %0 = dmir.cast %x : (tensor<64x?xf32>) -> tensor<64x?x!dmir.block_fp<BFP16_64R>>
  return
}

// -----

func.func @f(%x: tensor<64x64xf32>) {
  // expected-error-re @+1 {{C3: {{.*}} has no wire format}}
  %0 = dmir.cast %x : (tensor<64x64xf32>) -> tensor<64x64x!dmir.block_fp<"MXFP8[E4M3]{32}", R>>
  return
}

// -----

func.func @f(%x: tensor<64x64x!dmir.block_fp<BFP16_64R>>) {
  // expected-warning @+1 {{values rounded to BFP16_64R are rounded again to BFP12_64R; the attribute 'dmir.rounds_twice' says that it is meant}}
  %0 = dmir.cast %x : (tensor<64x64x!dmir.block_fp<BFP16_64R>>) -> tensor<64x64x!dmir.block_fp<BFP12_64R>>
  return
}

// -----

func.func @f(%x: tensor<64x64x!dmir.block_fp<BFP16_64R>>, %y: tensor<64x64xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: element types differ}}
  %0 = dmir.matmul %x, %y : (tensor<64x64x!dmir.block_fp<BFP16_64R>>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return
}

// -----

// R in slot 1.
func.func @f(%x: tensor<64x64x!dmir.block_fp<BFP16_64R>>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C5: blocks must run along k, so operand 0 must be R and operand 1 C}}
  %0 = dmir.matmul %x, %x : (tensor<64x64x!dmir.block_fp<BFP16_64R>>, tensor<64x64x!dmir.block_fp<BFP16_64R>>) -> tensor<64x64xf32>
  return
}

// -----

func.func @f(%x: tensor<64x64x!dmir.block_fp<BFP16_64R>>, %y: tensor<64x64x!dmir.block_fp<BFP16_32C>>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C6: the array has no product of '!dmir.block_fp<BFP16_64R>' and '!dmir.block_fp<BFP16_32C>'}}
  %0 = dmir.matmul %x, %y : (tensor<64x64x!dmir.block_fp<BFP16_64R>>, tensor<64x64x!dmir.block_fp<BFP16_32C>>) -> tensor<64x64xf32>
  return
}

// -----

func.func @f(%x: tensor<64x64x!dmir.block_fp<BFP16_64R>>, %y: tensor<64x64x!dmir.block_fp<BFP12_64C>>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C6: the array has no product of}}
  %0 = dmir.matmul %x, %y : (tensor<64x64x!dmir.block_fp<BFP16_64R>>, tensor<64x64x!dmir.block_fp<BFP12_64C>>) -> tensor<64x64xf32>
  return
}

// -----

func.func @f(%x: tensor<64x64x!dmir.block_fp<BFP14_64R>>, %y: tensor<64x64x!dmir.block_fp<BFP14_64C>>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C6: the array has no product of}}
  %0 = dmir.matmul %x, %y : (tensor<64x64x!dmir.block_fp<BFP14_64R>>, tensor<64x64x!dmir.block_fp<BFP14_64C>>) -> tensor<64x64xf32>
  return
}

// -----

func.func @f(%x: tensor<64x64x!dmir.block_fp<BFP16_64R>>, %y: tensor<64x64x!dmir.block_fp<BFP16_64C>>) {
  // expected-error @+1 {{C7: the product of block_fp is BFP32_1, f32 or f16, not 'bf16'}}
  %0 = "dmir.matmul"(%x, %y) : (tensor<64x64x!dmir.block_fp<BFP16_64R>>, tensor<64x64x!dmir.block_fp<BFP16_64C>>) -> tensor<64x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<64x64x!dmir.block_fp<BFP16_64R>>, %y: tensor<64x64x!dmir.block_fp<BFP16_64C>>) {
  // expected-error @+1 {{C8: 'dmir.tree_tiles' must be an i64 from 1 to 64, got 65 : i64}}
  %0 = dmir.matmul %x, %y {dmir.tree_tiles = 65 : i64} : (tensor<64x64x!dmir.block_fp<BFP16_64R>>, tensor<64x64x!dmir.block_fp<BFP16_64C>>) -> tensor<64x64xf16>
  return
}

// -----

func.func @f(%x: tensor<2x64x64x!dmir.block_fp<BFP16_64R>>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: the last two dimensions of}}
  %0 = dmir.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<2x64x64x!dmir.block_fp<BFP16_64R>>) -> tensor<64x2x64x!dmir.block_fp<BFP16_64R>>
  return
}

// -----

func.func @f(%x: tensor<64x128x!dmir.block_fp<BFP16_64R>>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error-re @+1 {{C3: axis 1 of {{.*}} is cut between multiples of its block of 64: start 32, size 64, step 1}}
  %0 = dmir.slice %x {starts = array<i64: 0, 32>, sizes = array<i64: 64, 64>, steps = array<i64: 1, 1>} : (tensor<64x128x!dmir.block_fp<BFP16_64R>>) -> tensor<64x64x!dmir.block_fp<BFP16_64R>>
  return
}

// -----

func.func @f(%x: tensor<64x96x!dmir.block_fp<BFP16_64R>>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error-re @+1 {{C4: along its blocked dimension {{.*}} would be joined after 96 elements, which is no multiple of the block}}
  %0 = dmir.concat %x, %x {axis = 1 : i64} : (tensor<64x96x!dmir.block_fp<BFP16_64R>>, tensor<64x96x!dmir.block_fp<BFP16_64R>>) -> tensor<64x192x!dmir.block_fp<BFP16_64R>>
  return
}

// -----

func.func @f(%x: tensor<64x96xf32>) {
  // expected-error @+1 {{C1: needs one block_fp type and one rank}}
  %0 = dmir.pad_blocks %x : (tensor<64x96xf32>) -> tensor<64x128xf32>
  return
}

// -----

func.func @f(%x: tensor<64x96x!dmir.block_fp<BFP16_64R>>) {
  // expected-error-re @+1 {{C2: dimension 1 of {{.*}} does not become that of}}
  %0 = dmir.pad_blocks %x : (tensor<64x96x!dmir.block_fp<BFP16_64R>>) -> tensor<64x64x!dmir.block_fp<BFP16_64R>>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{C1: the shape of 'tensor<?xf32>' is not static}}
  %0 = dmir.undef : tensor<?xf32>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{C2: tensor<64x!dmir.block_fp<BFP16_64R>> has no wire format}}
  %0 = dmir.constant dense_resource<w> : tensor<64x!dmir.block_fp<BFP16_64R>>
  return
}

// -----

// Ops that do not know block floating point refuse it.
func.func @f(%x: tensor<64x64x!dmir.block_fp<BFP16_64R>>) {
  // expected-error @+1 {{operand #0 must be}}
  %0 = dmir.mul %x, %x : (tensor<64x64x!dmir.block_fp<BFP16_64R>>, tensor<64x64x!dmir.block_fp<BFP16_64R>>) -> tensor<64x64x!dmir.block_fp<BFP16_64R>>
  return
}
