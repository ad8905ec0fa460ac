// What a target has an instruction for, and what f16 would lose: for corsair alone.
// RUN: split-file %s %t
// RUN: dmxc %t/silu.mlir -t corsair --emit frontend -o - | FileCheck %s --check-prefix=SILU
// RUN: dmxc %t/silu.mlir -t cpu --emit frontend -o - | FileCheck %s --check-prefix=CPU
// RUN: dmxc %t/others.mlir -t corsair --emit frontend -o - | FileCheck %s --check-prefix=OTHERS
// RUN: dmxc %t/others.mlir -t cpu --emit frontend -o - | FileCheck %s --check-prefix=CPU
// RUN: dmxc %t/length.mlir -t corsair --emit frontend -o - | FileCheck %s --check-prefix=LENGTH
// RUN: dmxc %t/length.mlir -t cpu --emit frontend -o - | FileCheck %s --check-prefix=CPU
// RUN: dmxc %t/unit.mlir -t corsair --emit frontend -o - | FileCheck %s --check-prefix=UNIT
// RUN: dmxc %t/unit.mlir -t cpu --emit frontend -o - | FileCheck %s --check-prefix=CPU
// CPU-NOT: dmir.{{silu|gelu|softplus|hard_swish|rsqrt|normalize|abs}}

// SILU-LABEL: func.func @main
// SILU: %[[R:.*]] = dmir.silu %arg0
// SILU-NEXT: return %[[R]]
// Of what is computed before, too; another function, and another operand, are none.
// OTHERS-LABEL: func.func @main
// OTHERS: %[[S:.*]] = dmir.add %arg0, %arg1
// OTHERS: dmir.gelu %[[S]]
// OTHERS: dmir.sigmoid
// OTHERS: dmir.sigmoid
// OTHERS: return
// LENGTH-LABEL: func.func @main
// LENGTH: %[[A:.*]] = dmir.abs %arg0
// LENGTH: %[[M:.*]] = dmir.reduce max %[[A]]
// LENGTH: %[[S:.*]] = dmir.max %[[M]]
// LENGTH: %[[Q:.*]] = dmir.div %arg0, %[[S]]
// LENGTH: dmir.mul %[[Q]], %[[Q]]
// LENGTH: dmir.sqrt
// UNIT-LABEL: func.func @main
// UNIT: %[[N:.*]] = dmir.normalize rms %arg0
// UNIT: dmir.mul %[[N]]

//--- silu.mlir
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = dmir.sigmoid %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = dmir.mul %0, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
//--- others.mlir
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %half = dmir.constant dense<0.5> : tensor<f32>
  %one = dmir.constant dense<1.0> : tensor<f32>
  %root = dmir.constant dense<1.41421354> : tensor<f32>
  %slope = dmir.constant dense<1.702> : tensor<f32>
  %s = dmir.add %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %d = dmir.div %s, %root : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %e = dmir.erf %d : (tensor<4xf32>) -> tensor<4xf32>
  %p = dmir.add %e, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %m = dmir.mul %s, %p : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %gelu = dmir.mul %m, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %t = dmir.mul %x, %slope : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %u = dmir.sigmoid %t : (tensor<4xf32>) -> tensor<4xf32>
  %quick = dmir.mul %x, %u : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %v = dmir.sigmoid %y : (tensor<4xf32>) -> tensor<4xf32>
  %gate = dmir.mul %x, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %gelu, %quick, %gate : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
//--- length.mlir
func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %0 = dmir.mul %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = dmir.reduce sum %0 {axes = array<i64: 1>, keepDims = false} : (tensor<4x8xf32>) -> tensor<4xf32>
  %2 = dmir.sqrt %1 : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
//--- unit.mlir
func.func @main(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %e = dmir.constant dense<1.0e-12> : tensor<f32>
  %0 = dmir.mul %x, %x : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %1 = dmir.reduce sum %0 {axes = array<i64: 1>} : (tensor<4x16xf32>) -> tensor<4x1xf32>
  %2 = dmir.sqrt %1 : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %3 = dmir.max %2, %e : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %4 = dmir.div %x, %3 : (tensor<4x16xf32>, tensor<4x1xf32>) -> tensor<4x16xf32>
  return %4 : tensor<4x16xf32>
}
