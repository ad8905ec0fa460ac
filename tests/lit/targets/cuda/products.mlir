// REQUIRES: frontend-mlir
// RUN: dmxc %s -t cuda --emit partition -o - | FileCheck %s
// RUN: dmxc %s -t cuda --emit partition -o %t.partition.mlir --explain-decisions | FileCheck %s --check-prefix=FREE
// RUN: dmxc %s -t cuda --emit partition -o - --schedule %S/Inputs/tile.txt | FileCheck %s --check-prefix=DECIDED
// RUN: not dmxc %s -t cuda -o %t.bundle --schedule %S/Inputs/wrong-stages.txt 2>&1 | FileCheck %s --check-prefix=STAGES
// RUN: dmxc %s -t cuda --emit schedule -o %t.mlir
// RUN: sed 's/columns = 64 : i64, rows/columns = 32 : i64, rows/' %t.partition.mlir > %t.early.mlir
// RUN: not dmxc %t.early.mlir --from partition -t cuda -o %t.bundle 2>&1 | FileCheck %s --check-prefix=EARLY
// RUN: sed 's/matmul-plain/matmul-specialised/' %t.mlir > %t.plain.mlir
// RUN: not dmxc %t.plain.mlir --from schedule -t cuda -o %t.bundle 2>&1 | FileCheck %s --check-prefix=PLAIN

// What tensor cores compute: constants are packed with rows of whole 16 bytes; what follows is fused; threads copy what no tensor map can read.
// What they do not, and why.
// CHECK-LABEL: func.func @main
// CHECK: algorithm = "matmul-specialised"
// CHECK-SAME: packed = {"1" = {form = "columns16", k = 80 : i64, n = 50 : i64, offset = 0 : i64, pitch = 80 : i64, size = 8000 : i64, stride_k = 50 : i64, stride_n = 1 : i64}}
// CHECK-SAME: product = {columns = 64 : i64, rows = 64 : i64, stages = 3 : i64}
// CHECK-SAME: work = 2
// CHECK: algorithm = "matmul-specialised"
// CHECK-SAME: thread_copies = "right: its rows are 34 bytes apart, no multiple of 16"
// CHECK: algorithm = "matmul-plain"
// CHECK-SAME: why_plain = "its rows are few"
// CHECK: algorithm = "matmul-plain"
// CHECK-NOT: why_plain

// FREE: node 'first': cuda, matmul-specialised
// FREE-NEXT: algorithm = "matmul-specialised"  (default)  of "matmul-specialised", "matmul-by-warps", "matmul-plain"; by tensor cores, by warps that share terms, or an element a thread; changes results by order
// FREE-NEXT: rows = 64  (default)  of 64, 128; rows of a block's part of the result; changes no bits
// FREE-NEXT: columns = 64  (default)  of 64, 128, 256; columns of a block's part of the result; changes no bits
// FREE-NEXT: stages = 3  (default)  of 2 to 8; slots of operand tiles that a block keeps in flight; changes no bits
// FREE-NEXT: 3146 clocks with 64 x 64 expected; else 3530 clocks with 128 x 64, 3786 clocks with 64 x 128,
// FREE-NOT: without what threads copy
// FREE: node 'odd': cuda, matmul-specialised
// FREE: clocks with 128 x 256; without what threads copy
// FREE: node 'few': cuda, matmul-plain
// FREE-NEXT: algorithm = "matmul-plain"  (default)
// FREE: node 'f32': cuda, matmul-plain
// FREE-NEXT: algorithm = "matmul-plain"  (default)  of "matmul-by-tiles", "matmul-plain"; by tiles in shared memory, or an element a thread; changes results by order

// DECIDED: product = {columns = 256 : i64, rows = 128 : i64, stages = 2 : i64}
// DECIDED-SAME: work = 1
// DECIDED: product = {columns = {{[0-9]+}} : i64, rows = 64 : i64, stages = {{[0-9]}} : i64}
// DECIDED: product = {columns = {{[0-9]+}} : i64, rows = 64 : i64, stages = {{[0-9]}} : i64}
// DECIDED-NOT: why_plain

// STAGES: stages{{.*}}2 to 4
// EARLY: node 'first'{{.*}}'product.columns' of its strategy is 32 : i64, but must be 64 : i64
// PLAIN: its strategy has the algorithm matmul-specialised, but its kernel has no cuda.pipeline, which the stage schedule.pipeline makes
func.func @main(%x: tensor<100x80xbf16> {dmir.name = "x"}, %o: tensor<80x17xbf16> {dmir.name = "o"}, %f: tensor<4x80xbf16> {dmir.name = "f"},
                %s: tensor<8x4xf32> {dmir.name = "s"}, %v: tensor<4x8xf32> {dmir.name = "v"})
    -> (tensor<100x50xf32> {dmir.name = "a"}, tensor<100x17xf32> {dmir.name = "b"}, tensor<4x16xf32> {dmir.name = "c"}, tensor<8x8xf32> {dmir.name = "d"}) {
  %w = dmir.constant dense<0.5> : tensor<80x50xbf16>
  %u = dmir.constant dense<0.25> : tensor<80x16xbf16>
  %first = dmir.matmul %x, %w : (tensor<100x80xbf16>, tensor<80x50xbf16>) -> tensor<100x50xf32> loc("first")
  %a = dmir.relu %first : (tensor<100x50xf32>) -> tensor<100x50xf32> loc("first")
  %b = dmir.matmul %x, %o : (tensor<100x80xbf16>, tensor<80x17xbf16>) -> tensor<100x17xf32> loc("odd")
  %c = dmir.matmul %f, %u : (tensor<4x80xbf16>, tensor<80x16xbf16>) -> tensor<4x16xf32> loc("few")
  %d = dmir.matmul %s, %v : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32> loc("f32")
  return %a, %b, %c, %d : tensor<100x50xf32>, tensor<100x17xf32>, tensor<4x16xf32>, tensor<8x8xf32>
}
