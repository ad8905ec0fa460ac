// REQUIRES: frontend-mlir
// RUN: dmxc %s -t cuda --emit partition -o - | FileCheck %s
// RUN: dmxc %s -t cuda --emit partition -o %t.partition.mlir --explain-decisions | FileCheck %s --check-prefix=FREE
// RUN: dmxc %s -t cuda --emit schedule -o %t.mlir
// RUN: sed 's/conv-by-patches/conv-specialised/' %t.mlir > %t.plain.mlir
// RUN: not dmxc %t.plain.mlir --from schedule -t cuda -o %t.bundle 2>&1 | FileCheck %s --check-prefix=PLAIN
// RUN: sed 's/{columns = 8 : i64, outputs = 1 : i64, own = 1 : i64, parts = 2/{columns = 16 : i64, outputs = 1 : i64, own = 1 : i64, parts = 2/;s/, work = [0-9]* : i64//' %t.partition.mlir > %t.other.mlir
// RUN: dmxc %t.other.mlir --from partition -t cuda --emit schedule -o - | FileCheck %s --check-prefix=OTHER
// RUN: sed 's/patches = {columns = 8/patches = {columns = 24/' %t.mlir > %t.wrong.mlir
// RUN: not dmxc %t.wrong.mlir --from schedule -t cuda -o %t.bundle 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: sed 's/patches = {columns = 8/patches = {stages = 3 : i64, columns = 8/' %t.mlir > %t.fields.mlir
// RUN: not dmxc %t.fields.mlir --from schedule -t cuda -o %t.bundle 2>&1 | FileCheck %s --check-prefix=FIELDS

// Convolutions by tensor cores: pixels by tensor maps, windows by threads; depthwise ones and those of f32 by patches, tiny ones plain.
// CHECK-LABEL: func.func @main
// CHECK: algorithm = "conv-specialised"
// CHECK-SAME: product = {columns = 64 : i64, rows = 64 : i64, stages = {{[0-9]}} : i64}
// CHECK-NOT: thread_copies
// CHECK-SAME: work = 4
// CHECK: algorithm = "conv-specialised"
// CHECK-SAME: thread_copies = "right: windows of an image that overlap, have gaps or reach beyond it"
// CHECK: algorithm = "conv-specialised"
// CHECK-SAME: thread_copies = "left: its rows are 54 bytes apart, no multiple of 16; right: windows of an image that overlap, have gaps or reach beyond it"
// CHECK: algorithm = "conv-by-patches"
// CHECK-SAME: patches = {columns = 8 : i64, outputs = 1 : i64, own = 1 : i64, parts = {{[0-9]+}} : i64, rows = {{[0-9]+}} : i64}
// CHECK: algorithm = "conv-by-patches"
// CHECK-NOT: why_plain

// FREE: node 'pixels': cuda, conv-specialised
// FREE-NEXT: algorithm = "conv-specialised"  (default)  of "conv-specialised", "conv-by-patches", "conv-plain"; by tensor cores, by patches in shared memory, or an element a thread; changes results by order
// FREE-NEXT: rows = 64  (default)  of 64, 128; rows of a block's part of the result; changes no bits
// FREE-NEXT: columns = 64  (default)  of 64, 128, 256; columns of a block's part of the result; changes no bits
// FREE-NEXT: stages = 2  (default)  of 2 to 8; slots of operand tiles that a block keeps in flight; changes no bits
// FREE: node 'windows': cuda, conv-specialised
// FREE: node 'stem': cuda, conv-specialised
// FREE: node 'depthwise': cuda, conv-by-patches
// FREE: node 'f32': cuda, conv-by-patches
// FREE-NEXT: algorithm = "conv-by-patches"  (default)  of "conv-by-tiles", "conv-by-patches", "conv-plain"; by tiles in shared memory, by patches in shared memory, or an element a thread; changes results by order
// FREE-NEXT: columns = 8  (default)  of 8, 16, 32, 64; pixels of a row of the result that a block has side by side; changes no bits
// FREE-NEXT: rows = {{[0-9]+}}  (default)  of 1, 2, 4, 8, 16, 32; rows of the result that a block has one below the other; changes no bits
// FREE-NEXT: parts = {{[0-9]+}}  (default)  of 1, 2, 4, 8; runs of outputs that a block has, each of one group; changes no bits
// FREE-NEXT: outputs = 1  (default)  of 1, 2, 4, 8; outputs of a thread; changes no bits
// FREE-NEXT: own = 1  (default)  of 1, 2, 4, 8; pixels of a thread, one below the other; changes no bits
// FREE-NEXT: {{[0-9]+}} clocks expected

// OTHER: algorithm = "conv-by-patches"{{.*}}patches = {columns = 16
// WRONG: 'patches.columns' of its strategy is 24; its values are 8, 16, 32, 64
// FIELDS: 'patches.stages' of its strategy is no field of it; it has columns, outputs, own, parts, rows
// PLAIN: its strategy has the algorithm conv-specialised, but its kernel has no cuda.pipeline, which the stage schedule.pipeline makes
func.func @main(%x: tensor<2x16x8x16xbf16> {dmir.name = "x"}, %i: tensor<1x3x20x20xbf16> {dmir.name = "i"}, %f: tensor<1x8x6x6xf32> {dmir.name = "f"})
    -> (tensor<2x40x8x16xf32> {dmir.name = "a"}, tensor<2x40x8x16xf32> {dmir.name = "b"}, tensor<1x40x10x10xf32> {dmir.name = "c"},
        tensor<2x16x8x16xf32> {dmir.name = "d"}, tensor<1x8x6x6xf32> {dmir.name = "e"}) {
  %w1 = dmir.constant dense<0.5> : tensor<40x16x1x1xbf16>
  %w3 = dmir.constant dense<0.5> : tensor<40x16x3x3xbf16>
  %ws = dmir.constant dense<0.5> : tensor<40x3x3x3xbf16>
  %wd = dmir.constant dense<0.5> : tensor<16x1x3x3xbf16>
  %wf = dmir.constant dense<0.5> : tensor<8x8x3x3xf32>
  %a = dmir.conv %x, %w1 {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>} : (tensor<2x16x8x16xbf16>, tensor<40x16x1x1xbf16>) -> tensor<2x40x8x16xf32> loc("pixels")
  %b = dmir.conv %x, %w3 {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 1, 1>} : (tensor<2x16x8x16xbf16>, tensor<40x16x3x3xbf16>) -> tensor<2x40x8x16xf32> loc("windows")
  %c = dmir.conv %i, %ws {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 1, 1>} : (tensor<1x3x20x20xbf16>, tensor<40x3x3x3xbf16>) -> tensor<1x40x10x10xf32> loc("stem")
  %d = dmir.conv %x, %wd {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 1, 1>, groups = 16 : i64} : (tensor<2x16x8x16xbf16>, tensor<16x1x3x3xbf16>) -> tensor<2x16x8x16xf32> loc("depthwise")
  %e = dmir.conv %f, %wf {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 1, 1>} : (tensor<1x8x6x6xf32>, tensor<8x8x3x3xf32>) -> tensor<1x8x6x6xf32> loc("f32")
  return %a, %b, %c, %d, %e : tensor<2x40x8x16xf32>, tensor<2x40x8x16xf32>, tensor<1x40x10x10xf32>, tensor<2x16x8x16xf32>, tensor<1x8x6x6xf32>
}
