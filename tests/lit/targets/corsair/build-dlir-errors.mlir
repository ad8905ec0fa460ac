// What has no schedule is refused where it stands.
// RUN: dmx-opt %s -corsair-tile-matmul -corsair-bufferize-tiles -corsair-lower-tiles -corsair-outline-spmd=quads=2 -corsair-build-dlir -split-input-file -verify-diagnostics

!R = !dmir.block_fp<BFP16_64R>
!C = !dmir.block_fp<BFP16_64C>
func.func @epilogue(%a: tensor<64x64x!R>, %b: tensor<64x64x!C>) -> tensor<64x64xf16> {
  %0 = dmir.matmul %a, %b : (tensor<64x64x!R>, tensor<64x64x!C>) -> tensor<64x64xf16>
  // expected-error @+1 {{no schedule for 'lldmir.simd' beside the product of a function}}
  %1 = dmir.exp %0 : (tensor<64x64xf16>) -> tensor<64x64xf16>
  return %1 : tensor<64x64xf16>
}

// -----

!R = !dmir.block_fp<BFP16_64R>
!C = !dmir.block_fp<BFP16_64C>
func.func @two(%a: tensor<64x64x!R>, %b: tensor<64x64x!C>) -> (tensor<64x64xf16>, tensor<64x64xf32>) {
  %0 = dmir.matmul %a, %b : (tensor<64x64x!R>, tensor<64x64x!C>) -> tensor<64x64xf16>
  // expected-error @+1 {{no schedule for a second product of a function}}
  %1 = dmir.matmul %a, %b : (tensor<64x64x!R>, tensor<64x64x!C>) -> tensor<64x64xf32>
  return %0, %1 : tensor<64x64xf16>, tensor<64x64xf32>
}

// -----

!R = !dmir.block_fp<BFP16_32R>
!C = !dmir.block_fp<BFP16_32C>
func.func @format(%a: tensor<64x64x!R>, %b: tensor<64x64x!C>) -> tensor<64x64xf16> {
  // expected-error @+1 {{no schedule for this kernel: the device has no tiles of these formats}}
  %0 = dmir.matmul %a, %b : (tensor<64x64x!R>, tensor<64x64x!C>) -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}
