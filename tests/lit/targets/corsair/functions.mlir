// REQUIRES: frontend-mlir
// RUN: split-file %s %t
// RUN: dmxc %t/numbers.mlir -q -t corsair:quads=2 --emit schedule.buffers -o - | FileCheck %s --check-prefix=NUMBERS
// RUN: dmxc %t/rows.mlir -q -t corsair:quads=2 --emit schedule.buffers -o - | FileCheck %s --check-prefix=ROWS
// RUN: dmxc %t/scalars.mlir -q -t corsair --emit schedule.buffers -o - | FileCheck %s --check-prefix=SCALARS
// RUN: dmxc %t/rows.mlir -q -t corsair:quads=2 --emit frontend -o - | FileCheck %s --check-prefix=TURNED
// RUN: dmxc %t/rows.mlir -q --emit frontend -o - | FileCheck %s --check-prefix=HOST
// RUN: dmxc %t/numbers.mlir -q -t corsair:quads=2 --emit schedule.buffers -o %t/numbers.text
// RUN: sed -e 's/"hard_sigmoid"/"hard_cosine"/' %t/numbers.text > %t/unknown.mlir
// RUN: not dmxc %t/unknown.mlir --from schedule.buffers -q -t corsair:quads=2 -o %t/b 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: sed -e 's/"clip"/"fma"/' %t/numbers.text > %t/operands.mlir
// RUN: not dmxc %t/operands.mlir --from schedule.buffers -q -t corsair:quads=2 -o %t/b 2>&1 | FileCheck %s --check-prefix=OPERANDS
// RUN: sed -e 's/"clip"/"rope"/' %t/numbers.text > %t/rope.mlir
// RUN: not dmxc %t/rope.mlir --from schedule.buffers -q -t corsair:quads=2 -o %t/b 2>&1 | FileCheck %s --check-prefix=ROPE

// Several ops that one function of the vector device computes. The numbers are the model's, not rounded; what is read elsewhere stays.
// NUMBERS-NOT: "fill"
// NUMBERS: lldmir.simd "hard_sigmoid"(%{{.*}}) outs({{.*}}) {imm0 = 2.000000e-01 : f32, imm1 = 5.000000e-01 : f32} {lldmir.deal
// NUMBERS: lldmir.simd "clip"(%{{.*}}) outs({{.*}}) {imm0 = -1.000000e+00 : f32, imm1 = 1.000000e+00 : f32}
// NUMBERS-NOT: lldmir.simd
// ROWS-NOT: lldmir.simd "sub"
// ROWS: lldmir.simd "rope"(%{{.*}}, %{{.*}}, %{{.*}} : memref<1x2x8x32xf16, {{.*}}>, memref<1x1x8x16xf16
// ROWS: lldmir.simd "reduce_sum_square"(%{{.*}}) outs({{.*}}) {axes = array<i64: 3>}
// SCALARS: lldmir.simd "fma"({{.*}} : memref<f16, "GM">, memref<f16, "GM">, memref<f16, "GM">)
// TURNED: dmir.sub
// TURNED: dmir.concat {{.*}} (tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32>)
// HOST: dmir.neg
// HOST-NOT: dmir.sub
// UNKNOWN: names the function 'hard_cosine', which the vector device does not have
// OPERANDS: has not as many operands as 'fma'
// ROPE: has not as many operands as 'rope'

//--- numbers.mlir
func.func @main(%x: tensor<8x64xf32> {dmir.name = "x"}) -> (tensor<8x64xf32> {dmir.name = "y"}) {
  %a = dmir.constant dense<0.2> : tensor<f32>
  %b = dmir.constant dense<0.5> : tensor<f32>
  %zero = dmir.constant dense<0.0> : tensor<f32>
  %one = dmir.constant dense<1.0> : tensor<f32>
  %low = dmir.constant dense<-1.0> : tensor<f32>
  %0 = dmir.mul %x, %a : (tensor<8x64xf32>, tensor<f32>) -> tensor<8x64xf32>
  %1 = dmir.add %b, %0 : (tensor<f32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %2 = dmir.min %1, %one : (tensor<8x64xf32>, tensor<f32>) -> tensor<8x64xf32>
  %3 = dmir.max %2, %zero : (tensor<8x64xf32>, tensor<f32>) -> tensor<8x64xf32>
  %4 = dmir.max %3, %low : (tensor<8x64xf32>, tensor<f32>) -> tensor<8x64xf32>
  %5 = dmir.min %4, %one : (tensor<8x64xf32>, tensor<f32>) -> tensor<8x64xf32>
  return %5 : tensor<8x64xf32>
}
//--- scalars.mlir
func.func @main(%x: tensor<f32> {dmir.name = "x"}, %y: tensor<f32> {dmir.name = "y"}) -> (tensor<f32> {dmir.name = "z"}) {
  %0 = dmir.mul %x, %y : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %1 = dmir.add %0, %x : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
//--- rows.mlir
func.func @main(%x: tensor<1x4x8x32xf32> {dmir.name = "x"}, %f: tensor<1x1x8x16xf32> {dmir.name = "f"}) -> (tensor<1x4x8x1xf32> {dmir.name = "y"}) {
  %t = dmir.concat %f, %f {axis = 3 : i64} : (tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>) -> tensor<1x1x8x32xf32>
  %c = dmir.cos %t : (tensor<1x1x8x32xf32>) -> tensor<1x1x8x32xf32>
  %s = dmir.sin %t : (tensor<1x1x8x32xf32>) -> tensor<1x1x8x32xf32>
  %0 = dmir.slice %x {starts = array<i64: 0, 0, 0, 0>, sizes = array<i64: 1, 4, 8, 16>, steps = array<i64: 1, 1, 1, 1>} : (tensor<1x4x8x32xf32>) -> tensor<1x4x8x16xf32>
  %1 = dmir.slice %x {starts = array<i64: 0, 0, 0, 16>, sizes = array<i64: 1, 4, 8, 16>, steps = array<i64: 1, 1, 1, 1>} : (tensor<1x4x8x32xf32>) -> tensor<1x4x8x16xf32>
  %n = dmir.neg %1 : (tensor<1x4x8x16xf32>) -> tensor<1x4x8x16xf32>
  %q = dmir.concat %n, %0 {axis = 3 : i64} : (tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32>) -> tensor<1x4x8x32xf32>
  %2 = dmir.mul %x, %c : (tensor<1x4x8x32xf32>, tensor<1x1x8x32xf32>) -> tensor<1x4x8x32xf32>
  %3 = dmir.mul %q, %s : (tensor<1x4x8x32xf32>, tensor<1x1x8x32xf32>) -> tensor<1x4x8x32xf32>
  %4 = dmir.add %2, %3 : (tensor<1x4x8x32xf32>, tensor<1x4x8x32xf32>) -> tensor<1x4x8x32xf32>
  %5 = dmir.mul %4, %4 : (tensor<1x4x8x32xf32>, tensor<1x4x8x32xf32>) -> tensor<1x4x8x32xf32>
  %6 = dmir.reduce sum %5 {axes = array<i64: 3>, keepDims = true} : (tensor<1x4x8x32xf32>) -> tensor<1x4x8x1xf32>
  return %6 : tensor<1x4x8x1xf32>
}
