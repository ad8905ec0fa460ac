// RUN: dmx-opt %s -split-input-file -corsair-bufferize-tiles -verify-diagnostics

// expected-error @+1 {{tiles need static shapes with elements and no layout}}
func.func @f(%x: tensor<?x64xf16>) {
  return
}

// -----

func.func @f(%a: tensor<64x128x!dmir.block_fp<BFP16_64R>>, %b: tensor<128x128x!dmir.block_fp<BFP16_64C>>) -> tensor<64x128xf16> {
  // expected-error @+1 {{run corsair-tile-matmul before}}
  %0 = dmir.matmul %a, %b : (tensor<64x128x!dmir.block_fp<BFP16_64R>>, tensor<128x128x!dmir.block_fp<BFP16_64C>>) -> tensor<64x128xf16>
  return %0 : tensor<64x128xf16>
}

// -----

func.func @f(%a: tensor<128x128xf16>) -> tensor<128x64xf16> {
  // expected-error @+1 {{at whole tiles in dimension 1}}
  %0 = tensor.extract_slice %a[0, 32] [128, 64] [1, 1] : tensor<128x128xf16> to tensor<128x64xf16>
  return %0 : tensor<128x64xf16>
}

// -----

// The tensor that is carried is read elsewhere too: writing it in place would change what is returned.
func.func @f(%t: tensor<64x64xf16>) -> (tensor<128x64xf16>, tensor<128x64xf16>) {
  %u = dmir.undef : tensor<128x64xf16>
  // expected-error @+1 {{carries a tensor that others may read}}
  %0 = affine.for %i = 0 to 2 iter_args(%c = %u) -> (tensor<128x64xf16>) {
    %o = affine.apply affine_map<(d0) -> (d0 * 64)>(%i)
    %n = tensor.insert_slice %t into %c[%o, 0] [64, 64] [1, 1] : tensor<64x64xf16> into tensor<128x64xf16>
    affine.yield %n : tensor<128x64xf16>
  }
  return %0, %u : tensor<128x64xf16>, tensor<128x64xf16>
}

// -----

func.func @f(%t: tensor<64x64xf16>, %x: tensor<128x64xf16>) -> tensor<128x64xf16> {
  // expected-error @+1 {{inserts into a tensor that others may read}}
  %n = tensor.insert_slice %t into %x[0, 0] [64, 64] [1, 1] : tensor<64x64xf16> into tensor<128x64xf16>
  return %n : tensor<128x64xf16>
}

// -----

// The old value is read after the new one is written.
func.func @f(%t: tensor<64x64xf16>) -> tensor<128x64xf16> {
  %u = dmir.undef : tensor<128x64xf16>
  %0 = affine.for %i = 0 to 2 iter_args(%c = %u) -> (tensor<128x64xf16>) {
    // expected-error @+1 {{inserts into a tensor that others may read}}
    %n = tensor.insert_slice %t into %c[0, 0] [64, 64] [1, 1] : tensor<64x64xf16> into tensor<128x64xf16>
    %o = tensor.extract_slice %c[64, 0] [64, 64] [1, 1] : tensor<128x64xf16> to tensor<64x64xf16>
    %m = tensor.insert_slice %o into %n[64, 0] [64, 64] [1, 1] : tensor<64x64xf16> into tensor<128x64xf16>
    affine.yield %m : tensor<128x64xf16>
  }
  return %0 : tensor<128x64xf16>
}

// -----

func.func @f(%i: index) -> index {
  // expected-error @+1 {{has no form on tiles}}
  %0 = arith.addi %i, %i : index
  return %0 : index
}
