// REQUIRES: frontend-mlir
// RUN: dmxc %s -t cuda --emit partition -o - | FileCheck %s
// RUN: dmxc %s -t cuda --emit schedule -o %t.mlir
// RUN: sed 's/together = 16/together = 8/' %t.mlir > %t.form.mlir
// RUN: not dmxc %t.form.mlir --from schedule -t cuda -o %t.bundle 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: dmxc %s -t cuda --emit schedule.pipeline -o %t.pipeline.mlir
// RUN: FileCheck %s --check-prefix=PIPELINE --input-file %t.pipeline.mlir
// RUN: sed 's/threads 16/threads 2/' %t.pipeline.mlir > %t.pairs.mlir
// RUN: not dmxc %t.pairs.mlir --from schedule.pipeline -t cuda -o %t.bundle 2>&1 | FileCheck %s --check-prefix=PAIRS
// RUN: sed 's/threads 16/threads 4/' %t.pipeline.mlir > %t.four.mlir
// RUN: dmxc %t.four.mlir --from schedule.pipeline -t cuda -o %t.bundle

// 16 groups of four outputs are a matrix of 64 rows, whose weights are packed tap by tap: 9 taps of 64 channels; groups
// of one output are none.
// CHECK: algorithm = "conv-specialised"
// CHECK-SAME: packed = {"1" = {apart = 36 : i64, channels = 4 : i64, form = "taps16", offset = 0 : i64, outputs = 128 : i64, rows = 4 : i64, size = 147456 : i64, taps = 9 : i64, together = 16 : i64}}
// CHECK: algorithm = "conv-by-patches"
// CHECK-NOT: taps16

// FORM: node 'groups': the packed form of its weights in its strategy is not the one that its kernel reads; leave the strategy out and it is derived
// PIPELINE: cuda.copy "left" map of <"576", "64", "2">
// PIPELINE: cuda.copy "right" threads 16
// PAIRS: has threads that load 2 pairs at a time; it is a part of 16, a multiple of 4
func.func @main(%x: tensor<1x128x8x8xbf16> {dmir.name = "x"}) -> (tensor<1x128x8x8xf32> {dmir.name = "a"}, tensor<1x128x8x8xf32> {dmir.name = "b"}) {
  %w = dmir.constant dense<0.5> : tensor<128x4x3x3xbf16>
  %v = dmir.constant dense<0.5> : tensor<128x1x3x3xbf16>
  %a = dmir.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 1, 1>, groups = 32 : i64} : (tensor<1x128x8x8xbf16>, tensor<128x4x3x3xbf16>) -> tensor<1x128x8x8xf32> loc("groups")
  %b = dmir.conv %x, %v {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 1, 1>, groups = 128 : i64} : (tensor<1x128x8x8xbf16>, tensor<128x1x3x3xbf16>) -> tensor<1x128x8x8xf32> loc("depthwise")
  return %a, %b : tensor<1x128x8x8xf32>, tensor<1x128x8x8xf32>
}
