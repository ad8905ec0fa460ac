// What a text means, in the numbers of the card: 1/3 is one of f16.
// RUN: dmx-opt %s --dmxc-evaluate="seed=1" -o /dev/null 2>&1 | FileCheck %s
// RUN: sed 's/func.func @k/func.func @other/' %s | not dmx-opt --dmxc-evaluate -o /dev/null 2>&1 | FileCheck %s --check-prefix=NONE
// CHECK: y: f32 4x8, min 0.333252, max 0.333252,
// NONE: there is no kernel 'k'

dlir.program @main attributes {arenas = [], inputs = [{name = "x", type = tensor<4x8xf32>}], outputs = [{name = "y", type = tensor<4x8xf32>}]} {
  %x = dlir.buffer input "x" : tensor<4x8xf32> {size = 128 : i64}
  %y = dlir.buffer output "y" : tensor<4x8xf32> {size = 128 : i64}
  %done = dlir.dispatch @k(%x) -> (%y) {nodes = ["n"], queue = "corsair", work = 1 : i64}
}
func.func @k(%x: tensor<4x8xf16> {lldmir.type = tensor<4x8xf32>}) -> (tensor<4x8xf16> {lldmir.type = tensor<4x8xf32>}) attributes {dlir.device = "corsair", lldmir.quads = 1 : i64} {
  %third = dmir.constant dense<0.33333333> : tensor<4x8xf32>
  %h = dmir.cast %third : (tensor<4x8xf32>) -> tensor<4x8xf16>
  %zero = dmir.sub %x, %x : (tensor<4x8xf16>, tensor<4x8xf16>) -> tensor<4x8xf16> loc("z")
  %y = dmir.add %zero, %h : (tensor<4x8xf16>, tensor<4x8xf16>) -> tensor<4x8xf16> loc("n")
  return %y : tensor<4x8xf16>
}
