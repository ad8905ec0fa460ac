// RUN: dmx-opt %s -split-input-file -corsair-tile-matmul -verify-diagnostics

func.func @f(%a: tensor<?x64x!dmir.block_fp<BFP16_64R>>, %b: tensor<64x64x!dmir.block_fp<BFP16_64C>>) -> tensor<?x64xf16> {
  // expected-error @+1 {{has no tiles: its shape must be static, with elements}}
  %0 = dmir.matmul %a, %b : (tensor<?x64x!dmir.block_fp<BFP16_64R>>, tensor<64x64x!dmir.block_fp<BFP16_64C>>) -> tensor<?x64xf16>
  return %0 : tensor<?x64xf16>
}
