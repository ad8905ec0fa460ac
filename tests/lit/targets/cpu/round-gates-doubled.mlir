// REQUIRES: frontend-mlir
// RUN: timeout 20 dmxc %s -q --numerics bf16 -o %t.bundle

// Whether a sum adds up what a net makes of its state is asked of each term once: 40 sums of a value with itself have 2^40 ways to it.
func.func @main(%h: tensor<?x128xf32, #dmir.dims<"b">> {dmir.name = "h"}) -> (tensor<?x256xf32, #dmir.dims<"b">> {dmir.name = "y"}) {
  %w = dmir.constant dense<0.5> : tensor<128x256xf32>
  %v = dmir.constant dense<0.25> : tensor<128x256xf32>
  %r = dmir.relu %h : (tensor<?x128xf32, #dmir.dims<"b">>) -> tensor<?x128xf32, #dmir.dims<"b">>
  %p = dmir.matmul %r, %w : (tensor<?x128xf32, #dmir.dims<"b">>, tensor<128x256xf32>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %q = dmir.matmul %r, %v : (tensor<?x128xf32, #dmir.dims<"b">>, tensor<128x256xf32>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %x = dmir.relu %q : (tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a0 = dmir.add %x, %x : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a1 = dmir.add %a0, %a0 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a2 = dmir.add %a1, %a1 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a3 = dmir.add %a2, %a2 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a4 = dmir.add %a3, %a3 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a5 = dmir.add %a4, %a4 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a6 = dmir.add %a5, %a5 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a7 = dmir.add %a6, %a6 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a8 = dmir.add %a7, %a7 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a9 = dmir.add %a8, %a8 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a10 = dmir.add %a9, %a9 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a11 = dmir.add %a10, %a10 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a12 = dmir.add %a11, %a11 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a13 = dmir.add %a12, %a12 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a14 = dmir.add %a13, %a13 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a15 = dmir.add %a14, %a14 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a16 = dmir.add %a15, %a15 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a17 = dmir.add %a16, %a16 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a18 = dmir.add %a17, %a17 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a19 = dmir.add %a18, %a18 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a20 = dmir.add %a19, %a19 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a21 = dmir.add %a20, %a20 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a22 = dmir.add %a21, %a21 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a23 = dmir.add %a22, %a22 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a24 = dmir.add %a23, %a23 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a25 = dmir.add %a24, %a24 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a26 = dmir.add %a25, %a25 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a27 = dmir.add %a26, %a26 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a28 = dmir.add %a27, %a27 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a29 = dmir.add %a28, %a28 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a30 = dmir.add %a29, %a29 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a31 = dmir.add %a30, %a30 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a32 = dmir.add %a31, %a31 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a33 = dmir.add %a32, %a32 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a34 = dmir.add %a33, %a33 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a35 = dmir.add %a34, %a34 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a36 = dmir.add %a35, %a35 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a37 = dmir.add %a36, %a36 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a38 = dmir.add %a37, %a37 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a39 = dmir.add %a38, %a38 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %a40 = dmir.add %a39, %a39 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  %y = dmir.add %p, %a40 : (tensor<?x256xf32, #dmir.dims<"b">>, tensor<?x256xf32, #dmir.dims<"b">>) -> tensor<?x256xf32, #dmir.dims<"b">>
  return %y : tensor<?x256xf32, #dmir.dims<"b">>
}
