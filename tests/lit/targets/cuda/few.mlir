// REQUIRES: frontend-mlir
// RUN: dmxc %s -t cuda --emit partition -o %t.mlir --explain-decisions | FileCheck %s --check-prefix=FREE
// RUN: FileCheck %s --input-file %t.mlir
// RUN: dmxc %t.mlir --from partition -t cuda -o %t.bundle
// RUN: sed 's/together = [0-9]* : i64/together = 3 : i64/' %t.mlir > %t.together.mlir
// RUN: not dmxc %t.together.mlir --from partition -t cuda -o %t.bundle 2>&1 | FileCheck %s --check-prefix=TOGETHER
// RUN: dmxc %s -t cuda --emit schedule -o %t.schedule.mlir
// RUN: sed 's/matmul-by-warps/matmul-plain/' %t.schedule.mlir > %t.plain.mlir
// RUN: not dmxc %t.plain.mlir --from schedule -t cuda -o %t.bundle 2>&1 | FileCheck %s --check-prefix=PLAIN
// RUN: sed 's/attention-by-warps/matmul-plain/' %t.schedule.mlir > %t.attention.mlir
// RUN: not dmxc %t.attention.mlir --from schedule -t cuda -o %t.bundle 2>&1 | FileCheck %s --check-prefix=ATTENTION
// RUN: sed 's/queries = {blocks = [0-9]* : i64/queries = {blocks = 16 : i64/' %t.schedule.mlir > %t.blocks.mlir
// RUN: not dmxc %t.blocks.mlir --from schedule -t cuda -o %t.bundle 2>&1 | FileCheck %s --check-prefix=BLOCKS

// Products of one row with constants: projections of one operand into heads are one, and each has the norm that it reads; attention is one kernel.
// CHECK-LABEL: func.func @main
// CHECK: algorithm = "matmul-by-warps"
// CHECK-SAME: few_rows = {columns = {{[0-9]+}} : i64, rows = 1 : i64, together = {{[0-9]+}} : i64, warps = {{[0-9]+}} : i64}
// CHECK-SAME: packed = {"{{[0-9]}}" = {form = "columns16", k = 512 : i64, n = 384 : i64
// CHECK: dmir.normalize
// CHECK: dmir.matmul
// CHECK: algorithm = "attention-by-warps"
// CHECK-SAME: queries = {blocks = {{[0-9]+}} : i64, rows = {{[0-9]+}} : i64, warps = {{[0-9]+}} : i64}
// CHECK: dmir.softmax
// CHECK: algorithm = "matmul-by-warps"
// CHECK: dmir.normalize
// CHECK: algorithm = "matmul-by-warps"
// CHECK: dmir.normalize
// CHECK-NOT: dmir.normalize
// CHECK: return

// FREE: node 'first': cuda, matmul-by-warps
// FREE-NEXT: rows = 1
// FREE-NEXT: warps =
// FREE-NEXT: columns =
// FREE-NEXT: together =
// FREE-NEXT: clocks expected
// FREE: attention-by-warps
// FREE-NEXT: rows =
// FREE-NEXT: warps =
// FREE-NEXT: blocks =

// TOGETHER: few_rows.together' of its strategy is 3 : i64, but must be
// PLAIN: a norm is computed in its region, which matmul-by-warps alone can
// ATTENTION: its region is an attention, which is computed by attention-by-warps; leave the strategy out and it is derived
// BLOCKS: 'queries.blocks' of its strategy is 16; its values are 1, 2, 4, 8
func.func @main(%x: tensor<1x512xf32> {dmir.name = "x"}, %k: tensor<4x64x30xf32> {dmir.name = "k"}, %v: tensor<4x30x64xf32> {dmir.name = "v"})
    -> (tensor<4x1x64xf32> {dmir.name = "a"}, tensor<2x1x64xf32> {dmir.name = "b"}, tensor<1x256xf32> {dmir.name = "c"}, tensor<1x256xf32> {dmir.name = "d"}) {
  %wq = dmir.constant dense<0.5> : tensor<512x256xf32>
  %wk = dmir.constant dense<0.25> : tensor<512x128xf32>
  %wc = dmir.constant dense<0.125> : tensor<512x256xf32>
  %wd = dmir.constant dense<0.75> : tensor<512x256xf32>
  %n = dmir.normalize rms %x {axes = array<i64: 1>, epsilon = 1.0e-5 : f64} : (tensor<1x512xf32>) -> tensor<1x512xf32> loc("first")
  %q = dmir.matmul %n, %wq : (tensor<1x512xf32>, tensor<512x256xf32>) -> tensor<1x256xf32> loc("q")
  %p = dmir.matmul %n, %wk : (tensor<1x512xf32>, tensor<512x128xf32>) -> tensor<1x128xf32> loc("p")
  %qh = dmir.reshape %q : (tensor<1x256xf32>) -> tensor<4x1x64xf32>
  %ph = dmir.reshape %p : (tensor<1x128xf32>) -> tensor<2x1x64xf32>
  %s = dmir.matmul %qh, %k : (tensor<4x1x64xf32>, tensor<4x64x30xf32>) -> tensor<4x1x30xf32> loc("scores")
  %w = dmir.softmax %s {axis = 2 : i64} : (tensor<4x1x30xf32>) -> tensor<4x1x30xf32> loc("weights")
  %a = dmir.matmul %w, %v : (tensor<4x1x30xf32>, tensor<4x30x64xf32>) -> tensor<4x1x64xf32> loc("attention")
  %b = dmir.neg %ph : (tensor<2x1x64xf32>) -> tensor<2x1x64xf32> loc("b")
  %m = dmir.normalize standard %x {axes = array<i64: 1>, epsilon = 1.0e-5 : f64} : (tensor<1x512xf32>) -> tensor<1x512xf32> loc("second")
  %c = dmir.matmul %m, %wc : (tensor<1x512xf32>, tensor<512x256xf32>) -> tensor<1x256xf32> loc("c")
  %d = dmir.matmul %m, %wd : (tensor<1x512xf32>, tensor<512x256xf32>) -> tensor<1x256xf32> loc("d")
  return %a, %b, %c, %d : tensor<4x1x64xf32>, tensor<2x1x64xf32>, tensor<1x256xf32>, tensor<1x256xf32>
}
