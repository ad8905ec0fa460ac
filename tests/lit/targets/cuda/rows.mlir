// REQUIRES: frontend-mlir
// RUN: dmxc %s -t cuda --emit partition -o - | FileCheck %s
// RUN: dmxc %s -t cuda --emit partition -o %t.partition.mlir --explain-decisions | FileCheck %s --check-prefix=FREE
// RUN: dmxc %s -t cuda --bundle-format dir -o %t.decided --schedule %S/Inputs/team.txt
// RUN: FileCheck %s --check-prefix=DECIDED < %t.decided/code/cuda/sm_90a/kernels.ptx
// RUN: not dmxc %s -t cuda -o %t.bundle --schedule %S/Inputs/wrong-team.txt 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: dmxc %s -t cuda --emit schedule -o %t.mlir
// RUN: sed 's/blocks = 8 : i64, columns = 1/blocks = 4 : i64, columns = 1/' %t.mlir > %t.four.mlir
// RUN: dmxc %t.four.mlir --from schedule -t cuda --bundle-format dir -o %t.four
// RUN: FileCheck %s --check-prefix=FOUR < %t.four/code/cuda/sm_90a/kernels.ptx
// RUN: sed 's/blocks = 8 : i64, columns = 1/blocks = 16 : i64, columns = 1/' %t.mlir > %t.many.mlir
// RUN: not dmxc %t.many.mlir --from schedule -t cuda -o %t.bundle 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: sed 's/columns = 1 : i64, threads = 1024/columns = 1 : i64, threads = 100/' %t.mlir > %t.odd.mlir
// RUN: not dmxc %t.odd.mlir --from schedule -t cuda -o %t.bundle 2>&1 | FileCheck %s --check-prefix=ODD

// A long row is shared by blocks, many rows by threads of one each, those that lie beside each other by columns; what is large takes 16 bytes at a
// time. Kernels are as the text says.
// CHECK: algorithm = "softmax-by-team"
// CHECK-SAME: team = {blocks = 8 : i64, columns = 1 : i64, threads = 1024 : i64}
// CHECK: algorithm = "softmax-by-team"
// CHECK-SAME: team = {blocks = 1 : i64, columns = 1 : i64, threads = 256 : i64}
// CHECK: algorithm = "reduce-by-team"
// CHECK-SAME: columns = {{8|16|32}} : i64
// CHECK: algorithm = "elementwise"
// CHECK-SAME: neighbours = 4 : i64

// FREE: node 'long': cuda, softmax-by-team
// FREE-NEXT: threads = 1024  (default)  of 32, 64, 128, 256, 512, 1024; threads of a block that has a row, or some; changes results by order
// FREE-NEXT: blocks = 8  (default)  of 1, 2, 4, 8; blocks that share a row; changes results by order
// FREE: node 'beside': cuda, reduce-by-team
// FREE: columns = {{[0-9]+}}  (default)  of 2, 4, 8, 16, 32;

// DECIDED: "block":256,"grid":2,"cluster":2
// DECIDED: .reqnctapercluster 2
// FOUR: "block":1024,"grid":4,"cluster":4
// FOUR: .reqnctapercluster 4
// WRONG: blocks{{.*}}1, 2, 4, 8
// MANY: node 'long': 'team.blocks' of its strategy is 16; its values are 1, 2, 4, 8
// ODD: node 'long': 'team.threads' of its strategy is 100; its values are 32, 64, 128, 256, 512, 1024
func.func @main(%x: tensor<1x32000xf32> {dmir.name = "x"}, %m: tensor<4096x1024xf32> {dmir.name = "m"})
    -> (tensor<1x32000xf32> {dmir.name = "a"}, tensor<4096x1024xf32> {dmir.name = "b"}, tensor<1x1024xf32> {dmir.name = "c"}, tensor<4096x1024xf32> {dmir.name = "d"}) {
  %a = dmir.softmax %x {axis = 1 : i64} : (tensor<1x32000xf32>) -> tensor<1x32000xf32> loc("long")
  %b = dmir.softmax %m {axis = 1 : i64} : (tensor<4096x1024xf32>) -> tensor<4096x1024xf32> loc("many")
  %c = dmir.reduce sum %m {axes = array<i64: 0>} : (tensor<4096x1024xf32>) -> tensor<1x1024xf32> loc("beside")
  %d = dmir.relu %m : (tensor<4096x1024xf32>) -> tensor<4096x1024xf32> loc("all")
  return %a, %b, %c, %d : tensor<1x32000xf32>, tensor<4096x1024xf32>, tensor<1x1024xf32>, tensor<4096x1024xf32>
}
